"""The JSON files in which candidates wait: one per session, readable and editable by a person."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from filelock import FileLock, Timeout
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError, ValidationInfo

from staging import atomic
from staging.names import short_hash, slug
from store import messages
from store.errors import WwtError
from store.records import (
    Candidate,
    DecidedBy,
    EntryType,
    Quote,
    Role,
    SafeText,
    Scope,
    anchor,
    candidate_id,
    iso,
    parse_time,
)

SCHEMA = 1
LOCK_SECONDS = 30.0
ATTEMPTS = 50
STAND_INS = 5
LOCKS = 64
"""Lock files that all documents share, by hash: a lock per document would leave thousands of files behind."""

Redact = Callable[[str], SafeText]
M = TypeVar("M", bound="_Model")
SourceStatus = Literal["ended", "reset", "deleted"]


def _redacted(value: object, info: ValidationInfo) -> SafeText:
    if isinstance(value, SafeText):
        return value
    if not isinstance(value, str):
        raise ValueError(messages.text("staging.not_text"))
    redact: Redact = (info.context or {})["redact"]
    return redact(value)


def _filled(value: object, info: ValidationInfo) -> SafeText:
    text = _redacted(value, info)
    if not text.strip():
        raise ValueError(messages.text("staging.no_text"))
    return text


def _tag_list(value: object) -> object:
    """`"a, b"` typed by hand means two tags; a missing list means none."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _moment(value: object) -> object:
    if value is None or (isinstance(value, str) and parse_time(value) is not None):
        return value
    raise ValueError(messages.text("staging.not_a_time"))


Safe = Annotated[SafeText, PlainValidator(_redacted)]
Filled = Annotated[SafeText, PlainValidator(_filled)]
Tags = Annotated[tuple[Safe, ...], BeforeValidator(_tag_list)]
Moment = Annotated[str | None, BeforeValidator(_moment)]
Key = Annotated[str, Field(max_length=1000)]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")]


class _Model(BaseModel):
    """Keys we do not know are a person's own and survive a rewrite."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)


class Evidence(_Model):
    turn: Key = ""
    role: Role = Role.USER
    quote: Safe = SafeText("")
    time: Moment = None

    def as_quote(self) -> Quote:
        return Quote(self.turn, self.role, self.quote, parse_time(self.time))


class Repeats(_Model):
    """What an item says again: an `entry` of the archive, or an item that is `waiting` in another document.

    `supersedes`: near in words, but it states another value, so it may be the newer truth.
    """

    entry: str | None = None
    waiting: str | None = None
    similarity: float = Field(default=1.0, ge=0, le=1, allow_inf_nan=False)
    supersedes: bool = False


class Item(_Model):
    """One candidate that waits. An entry written by hand needs a type and a summary, nothing more."""

    id: Key = ""
    type: EntryType
    summary: Filled
    detail: Safe = SafeText("")
    tags: Tags = ()
    confidence: float = Field(default=1.0, ge=0, le=1, allow_inf_nan=False)
    rule: Key = ""
    decided_by: DecidedBy = DecidedBy.USER
    evidence: tuple[Evidence, ...] = ()
    anchors: tuple[Hash, ...] = ()
    scope: Scope = Scope.PROJECT
    repeats: Repeats | None = None
    mined_hash: str = ""

    @property
    def edited(self) -> bool:
        """A person changed its words, type or tags after it was mined, or wrote it."""
        return self.mined_hash != content_hash(self.type, self.summary, self.detail, self.tags, self.scope)

    @property
    def turns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(e.turn for e in self.evidence))


class Written(_Model):
    """What we last put in the document. An item named here but absent below was deleted by hand."""

    id: Key
    anchors: tuple[Hash, ...] = ()
    turns: tuple[Key, ...] = ()


class Document(_Model):
    archived_at: Moment = None
    source_session: Key = ""
    source_status: SourceStatus = "ended"
    agent: Key = ""
    project: Safe = SafeText("")
    schema_: int = Field(default=SCHEMA, alias="schema", ge=1, le=SCHEMA)
    sources: tuple[Key, ...] = ()
    entries: tuple[Item, ...] = ()
    written: tuple[Written, ...] = ()

    def without(self, drop: Callable[[Item], bool]) -> Document:
        """The document after these items were decided, with no trace of them."""
        gone = {item.id for item in self.entries if drop(item)}
        if not gone:
            return self
        return self.model_copy(
            update={
                "entries": tuple(item for item in self.entries if item.id not in gone),
                "written": tuple(record for record in self.written if record.id not in gone),
            }
        )

    def replaced(self, new: Item) -> Document:
        """The document with the item of the same id exchanged."""
        return self.model_copy(update={"entries": tuple(new if item.id == new.id else item for item in self.entries)})

    def with_items(self, items: Sequence[Item]) -> Document:
        """The document with these items in front, where it lacks them."""
        present = {item.id for item in self.entries}
        fresh = tuple(item for item in items if item.id not in present)
        known = {record.id for record in self.written}
        records = tuple(written(item) for item in fresh if item.id not in known)
        return self.model_copy(update={"entries": (*fresh, *self.entries), "written": (*self.written, *records)})


@dataclass(frozen=True, slots=True)
class Broken:
    """A document that cannot be read: left as it is, reported, and no reason to stop. Lines and columns count from 1."""

    path: Path
    line: int
    column: int
    reason: str


@dataclass(frozen=True, slots=True)
class Staged:
    name: str
    document: Document


@dataclass(frozen=True, slots=True)
class Reading:
    staged: tuple[Staged, ...]
    broken: tuple[Broken, ...]


def content_hash(
    type: EntryType | str, summary: str, detail: str, tags: Sequence[str], scope: str = Scope.PROJECT
) -> str:
    """Hash of what a person may edit, to see whether anyone did."""
    stated = json.dumps([str(type), summary, detail, list(tags), str(scope)])
    return hashlib.sha256(stated.encode()).hexdigest()[:16]


def item_of(candidate: Candidate, repeats: Repeats | None = None) -> Item:
    """A mined candidate as it is written to its document."""
    tags = tuple(SafeText(tag) for tag in candidate.tags)  # mined from text that was redacted
    return Item(
        id=candidate.id,
        type=candidate.type,
        summary=candidate.summary,
        detail=candidate.detail,
        tags=tags,
        confidence=candidate.confidence,
        rule=candidate.rule,
        decided_by=candidate.decided_by,
        evidence=tuple(Evidence(turn=q.turn, role=q.role, quote=q.quote, time=iso(q.time)) for q in candidate.evidence),
        anchors=candidate.anchors,
        repeats=repeats,
        mined_hash=content_hash(candidate.type, candidate.summary, candidate.detail, tags),
    )


def written(item: Item) -> Written:
    return Written(id=item.id, anchors=item.anchors, turns=item.turns)


def merge(old: Document | None, mined: Document, decided: Callable[[Item], bool]) -> Document:
    """The document after its session was distilled again.

    What a person edited stays as it is; what nobody touched follows the mining; what was decided, or deleted by hand
    and said no more since, stays away.
    """
    if old is None:
        return _recorded(mined.without(decided))
    by_id = {item.id: item for item in mined.entries}
    kept = [item if item.edited else by_id.get(item.id) for item in old.entries if not decided(item)]
    entries = [item for item in kept if item is not None]
    present = {item.id for item in old.entries}
    covered = {a for item in entries for a in item.anchors}
    removed = [record for record in old.written if record.id not in present]
    for item in mined.entries:
        if decided(item) or item.id in present or covered.intersection(item.anchors) or _skipped(item, removed):
            continue
        entries.append(item)
    # A header key that a person added stays; those we write follow the newest distillation.
    header = {name: getattr(mined, name) for name in ("archived_at", "source_status", "project", "sources")}
    merged = old.model_copy(update={**header, "entries": tuple(entries)})
    waiting = {item.id for item in entries}
    return _recorded(merged, [record for record in removed if record.id not in waiting])


def _skipped(item: Item, removed: Sequence[Written]) -> bool:
    """Deleted by hand, and only turns that were known then say it."""
    return any(
        (item.id == record.id or set(item.anchors) & set(record.anchors)) and set(item.turns) <= set(record.turns)
        for record in removed
    )


def _recorded(document: Document, skipped: Sequence[Written] = ()) -> Document:
    records = tuple(written(item) for item in document.entries)
    return document.model_copy(update={"written": (*records, *skipped)})


def encode(document: Document) -> bytes:
    data = document.model_dump(mode="json", by_alias=True)
    for key in ("sources", "written"):
        if not data[key]:
            del data[key]
    for item in data["entries"]:
        if item["repeats"] is None:
            del item["repeats"]
        else:
            item["repeats"] = {key: value for key, value in item["repeats"].items() if value not in (None, False)}
        if item["scope"] == Scope.PROJECT.value:
            del item["scope"]
    # An escaped half of a character pair in a key of a person's own has no UTF-8 form.
    return (json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")


def decode(path: Path, data: bytes, redact: Redact) -> Document | Broken:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Broken(path, line, error.start - data.rfind(b"\n", 0, error.start), messages.text("staging.not_utf8"))
    if not text.strip():
        return Broken(path, 1, 1, messages.text("staging.empty_file"))
    try:
        raw = json.loads(text)
    except json.JSONDecodeError as error:
        return Broken(path, error.lineno, error.colno, error.msg)
    except (ValueError, RecursionError) as error:
        return Broken(path, 1, 1, str(error))
    try:
        return document_of(raw, redact)
    except ValidationError as error:
        fault = error.errors()[0]
        line, column = _place(text, fault["loc"])
        where = ".".join(map(str, fault["loc"])) or "$"
        return Broken(path, line, column, f"{where}: {fault['msg'].removeprefix('Value error, ')}")


def document_of(raw: object, redact: Redact) -> Document:
    """A document from JSON, everything a person may have typed redacted. Raises pydantic's ValidationError."""
    document = Document.model_validate(raw, context={"redact": redact})
    items = raw.get("entries") or () if isinstance(raw, dict) else ()
    finished = tuple(_finished(item, given, redact) for item, given in zip(document.entries, items, strict=True))
    return _extras_redacted(document, redact).model_copy(update={"entries": finished})


def _finished(item: Item, given: dict[str, Any], redact: Redact) -> Item:
    """The item with what a person left out filled in.

    Whether it was edited is judged by the words on disk: masking a secret that an older rule missed is no edit.
    """
    anchors = item.anchors or (anchor(item.summary),)
    detail, tags, scope = given.get("detail", ""), _as_typed(given.get("tags")), given.get("scope", Scope.PROJECT)
    on_disk = content_hash(given["type"], given["summary"], detail, tags, scope)
    untouched = on_disk == item.mined_hash
    mined = content_hash(item.type, item.summary, item.detail, item.tags, item.scope) if untouched else item.mined_hash
    evidence = tuple(_extras_redacted(e, redact) for e in item.evidence)
    update = {"anchors": anchors, "id": item.id or candidate_id(anchors), "mined_hash": mined, "evidence": evidence}
    return _extras_redacted(item, redact).model_copy(update=update)


def _as_typed(tags: object) -> Sequence[str]:
    listed = _tag_list(tags)
    return [str(tag) for tag in listed] if isinstance(listed, list | tuple) else []


def _extras_redacted(model: M, redact: Redact) -> M:
    """The model with the keys of a person's own redacted; pydantic keeps those beside the declared fields."""
    if not model.model_extra:
        return model
    return model.model_copy(update={key: _deep(value, redact) for key, value in model.model_extra.items()})


def _deep(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_deep(part, redact) for part in value]
    if isinstance(value, dict):
        return {key: _deep(part, redact) for key, part in value.items()}
    return value


def _place(text: str, path: Sequence[int | str]) -> tuple[int, int]:
    """Line and column of the value at `path` in valid JSON; of its container where the value is missing."""
    decoder, position = json.JSONDecoder(), _skip(text, 0)
    for step in path:
        found = (
            _into_list(decoder, text, position, step)
            if isinstance(step, int)
            else _into_object(decoder, text, position, step)
        )
        if found is None:
            break
        position = found
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)


def _into_list(decoder: json.JSONDecoder, text: str, position: int, index: int) -> int | None:
    if text[position] != "[":
        return None
    position = _skip(text, position + 1)
    for _ in range(index):
        _, position = decoder.raw_decode(text, position)
        position = _skip(text, _skip(text, position) + 1)
    return position


def _into_object(decoder: json.JSONDecoder, text: str, position: int, key: str) -> int | None:
    if text[position] != "{":
        return None
    position = _skip(text, position + 1)
    while text[position] == '"':
        name, position = decoder.raw_decode(text, position)
        position = _skip(text, _skip(text, position) + 1)
        if name == key:
            return position
        _, position = decoder.raw_decode(text, position)
        position = _skip(text, position)
        if text[position] == ",":
            position = _skip(text, position + 1)
    return None


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


class Queue:
    """The folder of documents. Reading never changes a file; every rewrite is locked and compared before it lands."""

    def __init__(self, folder: Path, redact: Redact) -> None:
        self.folder = folder
        self.redact = redact
        self._seen: dict[str, tuple[tuple[int, ...], Document | Broken]] = {}
        self._locks: dict[int, FileLock] = {}

    @staticmethod
    def name_for(agent: str, session: str) -> str:
        return f"{slug(agent, characters=30, size=40)}-{slug(session)}-{short_hash(agent, session)}.json"

    def read(self) -> Reading:
        """Every document, by name; those that did not change since the last read are not parsed again."""
        results = [(name, self._cached(name)) for name in self._names()]
        staged = tuple(Staged(name, found) for name, found in results if isinstance(found, Document))
        return Reading(staged, tuple(found for _, found in results if isinstance(found, Broken)))

    def get(self, name: str) -> Document | Broken | None:
        try:
            data = atomic.read(self.folder / name)
        except OSError as error:  # not ours to read, or a folder that is named like a document
            return Broken(self.folder / name, 1, 1, error.strerror or str(error))
        return None if data is None else decode(self.folder / name, data, self.redact)

    @staticmethod
    def stand_in(name: str) -> str:
        """Where candidates go while the document of this name is broken."""
        return f"{name.removesuffix('.json')}.new.json"

    def writable(self, name: str) -> str:
        """The name under which candidates of this document may be written now: its own, or that of a stand-in."""
        for _ in range(STAND_INS):
            if not isinstance(self.get(name), Broken):
                return name
            name = self.stand_in(name)
        raise WwtError("staging.all_broken", path=self.folder / name)

    def change(self, name: str, edit: Callable[[Document | None], Document | None]) -> Document | Broken | None:
        """Rewrite a document under its lock; one without entries is removed. A broken one is answered, never touched.

        `edit` gets what is on disk now and is called again when an editor saved meanwhile, so it must be repeatable.
        """
        path = self.folder / name
        with self.holding([name]):
            for _ in range(ATTEMPTS):
                before = atomic.read(path)
                old = self._remembered(name) if before is None else decode(path, before, self.redact)
                if isinstance(old, Broken):
                    return old
                new = edit(old)
                if before is None and (new is None or not new.entries):
                    return new
                if new is not None and new == old and before is not None and new.entries:
                    return new
                if self._swap(name, before, new):
                    return new
        raise WwtError("staging.busy", path=path)

    def forget(self, agent: str, session: str) -> int:
        """Remove all that waits from a session, broken or not, and any memory of it. How many files went."""
        names = [self.name_for(agent, session)]
        for _ in range(STAND_INS):
            names.append(self.stand_in(names[-1]))
        with self.holding(names):
            drafts = [f".{n}.tmp" for n in names]  # a crash may have left one
            files = [folder / n for folder in (self.folder, self.folder / ".skipped") for n in (*names, *drafts)]
            gone = [path for path in files if path.exists()]
            for path in gone:
                path.unlink()
        if gone:
            atomic.sync_folder(self.folder)
        return len(gone)

    def mask_again(self) -> int:
        """Write anew what holds something that the secret rules mask by now. How many documents; broken ones stay as they are."""
        folders = (self.folder, self.folder / ".skipped")
        found = [path for folder in folders if folder.is_dir() for path in sorted(folder.glob("*.json"))]
        return sum(self._mask_again(path) for path in found if path.is_file())

    def _mask_again(self, path: Path) -> bool:
        with self.holding([path.name]):
            path.with_name(f".{path.name}.tmp").unlink(missing_ok=True)  # a crash may have left one
            for _ in range(ATTEMPTS):
                before = atomic.read(path)
                if before is None:
                    return False
                safe, as_typed = decode(path, before, self.redact), decode(path, before, SafeText)
                if isinstance(safe, Broken) or safe == as_typed:
                    return False
                data = before
                if atomic.write(path, encode(safe), still=lambda data=data: atomic.read(path) == data):  # type: ignore[misc]
                    return True
        raise WwtError("staging.busy", path=path)

    @contextmanager
    def holding(self, names: Sequence[str]) -> Iterator[None]:
        """Hold the locks of these documents, in an order in which no two processes can wait for each other."""
        with ExitStack() as held:
            for number in sorted({int(short_hash(name), 16) % LOCKS for name in names}):
                try:
                    held.enter_context(self._lock(number))
                except Timeout as error:
                    raise WwtError("staging.locked", path=self.folder) from error
            yield

    def _lock(self, number: int) -> FileLock:
        if number not in self._locks:
            atomic.make_folder(self.folder / ".locks")
            self._locks[number] = FileLock(self.folder / ".locks" / f"{number:02}.lock", timeout=LOCK_SECONDS)
        return self._locks[number]

    def _swap(self, name: str, before: bytes | None, new: Document | None) -> bool:
        path, memory = self.folder / name, self.folder / ".skipped" / name

        def unchanged() -> bool:
            return atomic.read(path) == before

        if new is not None and new.entries:
            done = atomic.write(path, encode(new), still=unchanged)
            if done:
                memory.unlink(missing_ok=True)
            return done
        if not unchanged():
            return False
        if new is not None and new.written:
            atomic.write(memory, encode(new))
        path.unlink(missing_ok=True)
        atomic.sync_folder(self.folder)
        return True

    def _remembered(self, name: str) -> Document | None:
        """What a removed document knew of items that were deleted by hand."""
        path = self.folder / ".skipped" / name
        data = atomic.read(path)
        found = None if data is None else decode(path, data, self.redact)
        return found if isinstance(found, Document) else None

    def _names(self) -> list[str]:
        if not self.folder.is_dir():
            return []
        with os.scandir(self.folder) as found:
            return sorted(e.name for e in found if e.name.endswith(".json") and e.name[0] != "." and not e.is_dir())

    def _cached(self, name: str) -> Document | Broken | None:
        path = self.folder / name
        try:
            stat = path.stat()
        except FileNotFoundError:
            return None
        mark = (stat.st_mtime_ns, stat.st_size, stat.st_ino, stat.st_ctime_ns)
        seen = self._seen.get(name)
        if seen and seen[0] == mark:
            return seen[1]
        found = self.get(name)
        if found is not None:
            self._seen[name] = (mark, found)
        return found

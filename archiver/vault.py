"""The vault: knowledge as Markdown notes that a person may read and edit, kept in step with the database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import Connection

from archiver.note import Broken, Note, extra, parse, render
from staging import atomic
from staging.documents import Redact
from staging.names import slug
from store import knowledge, verdicts
from store.database import Database
from store.errors import WwtError
from store.records import Action, Entry, now_ms
from store.verdicts import Verdict

LOCK_SECONDS = 60.0
CONFLICT = ".conflict.md"


@dataclass(frozen=True, slots=True)
class Kept:
    """What was last written for an entry.

    file: path inside the vault; entry: hash of the entry then; note: hash of the file's bytes; next: hash of bytes that
    were about to be written (a crash may have come before or after); mtime_ns, size: to see that nobody touched it.
    """

    file: str
    entry: str
    note: str
    next: str = ""
    mtime_ns: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Synced:
    """written: notes brought up to date; adopted: uids whose hand-made edits the database took over;
    conflicts: files kept beside notes that were changed on both sides."""

    written: int = 0
    adopted: tuple[str, ...] = ()
    conflicts: tuple[Path, ...] = ()
    broken: tuple[Broken, ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    added: int = 0
    known: int = 0
    verdicts: int = 0
    broken: tuple[Broken, ...] = ()


@dataclass(slots=True)
class _Run:
    """One pass over the vault."""

    state: dict[str, Kept]
    moved: dict[str, Path] | None = None
    writes: list[tuple[Entry, Path]] = field(default_factory=list)
    adopted: list[str] = field(default_factory=list)
    conflicts: list[Path] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)


class Vault:
    """A folder of notes. Unchanged notes are not touched, edited ones are adopted, nothing here is ever deleted unasked."""

    def __init__(
        self, folder: Path, database: Database, redact: Redact, *, normalise: knowledge.Normalise = knowledge.fold_tag
    ) -> None:
        self.normalise = normalise
        self.folder = folder
        self.database = database
        self.redact = redact

    def sync(self) -> Synced:
        """Adopt what people edited, then write what the database changed. Running it again changes nothing."""
        with self._locked():
            run = _Run(self._state())
            for entry in self._entries():
                self._compare(run, entry)
            self._write(run)
            self._write_verdicts(self._verdicts())
        return Synced(len(run.writes), tuple(run.adopted), tuple(run.conflicts), tuple(run.broken))

    def mask_again(self) -> int:
        """Take out of every note, and of its name, what the secret rules mask by now; the entries are masked already. How many."""
        self.sync()
        with self._locked():
            state = self._state()
            changed = sum(self._mask_again(path) for path in self._files())
            renamed = {uid: self._renamed(kept) for uid, kept in state.items()}
            self._save(renamed)
        return changed + sum(renamed[uid] != kept for uid, kept in state.items())

    def _files(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*.md") if path.is_file())

    def _mask_again(self, path: Path) -> bool:
        """What a person wrote stays but for the secret; the next `sync` takes it for the edit that it is."""
        text = path.read_bytes().decode("utf-8", "replace")
        masked = self.redact(text)
        return masked != text and atomic.write(path, masked.encode())

    def _renamed(self, kept: Kept) -> Kept:
        """A note whose name holds a secret moves to a name without it."""
        path = self._inside(kept.file)
        if path is None or not path.is_file():
            return kept
        name = self.redact(path.stem)
        if name == path.stem:
            return kept
        new = path.with_name(f"{slug(name, characters=120, size=200)}.md")
        path.rename(new)
        return replace(kept, file=self._relative(new))

    def remove(self, uid: str) -> None:
        """Take the note of an entry away whose acceptance was undone; an edited one stays."""
        with self._locked():
            state = self._state()
            kept = state.pop(uid, None)
            if kept is None:
                return
            path = self._inside(kept.file)
            data = atomic.read(path) if path else None
            if path and data is not None and _hash(data) in (kept.note, kept.next):
                path.unlink()
            self._save(state)

    def drop_verdicts(self, anchors: Iterable[str]) -> None:
        """Take verdicts out of the mirror that were taken back; otherwise what stands there stays."""
        gone = set(anchors)
        with self._locked():
            self._write_verdicts([v for v in read_verdicts(self.folder) if v.anchor not in gone], union=False)

    def _entries(self) -> list[Entry]:
        with self.database.transaction() as tx:
            return knowledge.list_entries(tx, knowledge.Filters(status=None))

    def _verdicts(self) -> list[Verdict]:
        with self.database.transaction() as tx:
            return verdicts.everything(tx)

    def _compare(self, run: _Run, entry: Entry) -> None:
        """Decide what is to be done about one entry and its note."""
        kept = run.state.get(entry.uid)
        path = self._path(run, entry, kept)
        stat = path.stat() if path.is_file() else None
        if (
            kept
            and stat
            and kept.entry == _entry_hash(entry)
            and (stat.st_mtime_ns, stat.st_size) == (kept.mtime_ns, kept.size)
        ):
            return
        data = atomic.read(path)
        if data is None:
            run.writes.append((entry, path))
            return
        ours = kept is not None and _hash(data) in (kept.note, kept.next)
        if ours or data == render(entry, self._extra(data)):
            self._ours(run, entry, path, data, kept)
            return
        if kept is not None and path.with_suffix(CONFLICT).exists():
            return  # a person has not yet settled it
        self._edited(run, entry, path, data, kept)

    def _ours(self, run: _Run, entry: Entry, path: Path, data: bytes, kept: Kept | None) -> None:
        """Nobody edited the note: write it if the entry changed, else only remember how it lies there."""
        if kept is not None and kept.entry != _entry_hash(entry) and data != render(entry, self._extra(data)):
            run.writes.append((entry, path))
            return
        run.state[entry.uid] = self._kept(entry, path, data)

    def _edited(self, run: _Run, entry: Entry, path: Path, data: bytes, kept: Kept | None) -> None:
        note = parse(path, data, self.redact)
        if isinstance(note, Broken):
            run.broken.append(note)
            return
        if kept is None or kept.entry != _entry_hash(entry):
            if note.same_as(entry):
                run.state[entry.uid] = self._kept(entry, path, data)
                return
            beside = path.with_suffix(CONFLICT)
            atomic.write(beside, render(entry, {}))
            run.conflicts.append(beside)
            # Once the file beside it is gone, the note as it then stands is an ordinary edit.
            run.state[entry.uid] = Kept(self._relative(path), _entry_hash(entry), note="", size=-1)
            return
        self._adopt(run, entry, path, data, note)

    def _adopt(self, run: _Run, entry: Entry, path: Path, data: bytes, note: Note) -> None:
        if not note.same_as(entry):
            with self.database.transaction() as tx:
                _update(tx, note, self.normalise)
                updated = knowledge.get(tx, entry.uid)
            entry = updated or entry
            run.adopted.append(entry.uid)
        if note.masked:
            run.writes.append((entry, path))  # a secret was typed in: it must not stay on disk
            return
        run.state[entry.uid] = self._kept(entry, path, data)

    def _write(self, run: _Run) -> None:
        """Write the notes, remembering first what is about to be written: so a crash is never taken for an edit."""
        rendered = [(entry, path, render(entry, self._extra(atomic.read(path)))) for entry, path in run.writes]
        for entry, path, data in rendered:
            old = run.state.get(entry.uid) or Kept(self._relative(path), "", "")
            run.state[entry.uid] = Kept(self._relative(path), old.entry, old.note, next=_hash(data))
        if rendered:
            self._save(run.state)
        for entry, path, data in rendered:
            atomic.write(path, data)
            run.state[entry.uid] = self._kept(entry, path, data)
        self._save(run.state)

    def _path(self, run: _Run, entry: Entry, kept: Kept | None) -> Path:
        """Where the entry's note is: where it was, where a person moved it to, or a new place."""
        known = self._inside(kept.file) if kept else None
        if known is None:
            return self.folder / folder_name(entry) / file_name(entry)
        if known.exists():
            return known
        if run.moved is None:
            run.moved = self._strangers(run.state)
        return run.moved.get(entry.uid, known)

    def _strangers(self, state: dict[str, Kept]) -> dict[str, Path]:
        """Notes at places we don't know, by uid. Looked for only when a known note is missing."""
        known = {kept.file for kept in state.values()}
        found: dict[str, Path] = {}
        for path in _notes(self.folder):
            if self._relative(path) not in known:
                note = parse(path, path.read_bytes(), self.redact)
                if isinstance(note, Note):
                    found.setdefault(note.uid, path)
        return found

    def _extra(self, data: bytes | None) -> dict[str, Any]:
        """Front matter keys of a person's own, to be kept when a note is written anew."""
        return {} if data is None else extra(data, self.redact)

    def _kept(self, entry: Entry, path: Path, data: bytes) -> Kept:
        stat = path.stat()
        return Kept(self._relative(path), _entry_hash(entry), _hash(data), "", stat.st_mtime_ns, stat.st_size)

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _inside(self, file: str) -> Path | None:
        """The path of a remembered note; None if someone made the state point out of the vault."""
        path = self.folder / PurePath(file)
        return path if path.resolve().is_relative_to(self.folder.resolve()) and path.suffix == ".md" else None

    def _state(self) -> dict[str, Kept]:
        """What we wrote last. A lost or broken state costs a comparison of every note, nothing else."""
        try:
            raw = json.loads((self.folder / ".wwt" / "state.json").read_text(encoding="utf-8"))
            return {uid: Kept(**kept) for uid, kept in raw["notes"].items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def _save(self, state: dict[str, Kept]) -> None:
        stored = {"schema": 1, "notes": {uid: asdict(kept) for uid, kept in sorted(state.items())}}
        _write_if_changed(
            self.folder / ".wwt" / "state.json", json.dumps(stored, ensure_ascii=False, indent=1).encode()
        )

    def _write_verdicts(self, current: Sequence[Verdict], *, union: bool = True) -> None:
        """Mirror the verdicts. Lines that the database lacks stay: it may be the database that was lost."""
        lines = {v.anchor: v for v in read_verdicts(self.folder)} if union else {}
        lines.update((v.anchor, v) for v in current)
        text = "".join(json.dumps(_verdict_line(lines[a])) + "\n" for a in sorted(lines))
        _write_if_changed(self.folder / ".wwt" / "verdicts.jsonl", text.encode())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        atomic.make_folder(self.folder / ".wwt")
        lock = FileLock(self.folder / ".wwt" / "lock", timeout=LOCK_SECONDS)
        try:
            lock.acquire()
        except Timeout as error:
            raise WwtError("vault.locked", path=self.folder) from error
        try:
            yield
        finally:
            lock.release()


def import_notes(folder: Path, database: Database, redact: Redact) -> Imported:
    """Take the notes and verdicts of a vault into the database. What it has already is left as it is."""
    if not folder.is_dir():
        raise WwtError("vault.no_folder", path=folder)
    known_verdicts = read_verdicts(folder)
    parsed = [parse(path, path.read_bytes(), redact) for path in _notes(folder)]
    broken = tuple(note for note in parsed if isinstance(note, Broken))
    notes = {note.uid: note for note in parsed if isinstance(note, Note)}
    added = sum(_import(database, note, [v for v in known_verdicts if v.entry == note.uid]) for note in notes.values())
    for note in notes.values():
        if note.superseded_by:
            with database.transaction() as tx:
                newer = knowledge.entry_id(tx, note.superseded_by)
                if newer is not None and note.status == "superseded":
                    knowledge.supersede(tx, note.uid, newer, at=note.reviewed_at)
    with database.transaction() as tx:
        present = verdicts.lookup(tx, [v.anchor for v in known_verdicts])
        fresh = [v for v in known_verdicts if v.anchor not in present]
        for v in fresh:
            verdicts.record(tx, [v.anchor], v.outcome, knowledge.entry_id(tx, v.entry) if v.entry else None, v.at)
    return Imported(added, len(notes) - added, len(fresh), broken)


def read_verdicts(folder: Path) -> list[Verdict]:
    """The mirrored verdicts; a line that is damaged costs itself only."""
    data = atomic.read(folder / ".wwt" / "verdicts.jsonl") or b""
    return [v for v in map(_verdict_of, data.decode("utf-8", "replace").split("\n")) if v is not None]


def folder_name(entry: Entry) -> str:
    return slug(PurePath(entry.project).name) if entry.project else "general"


def file_name(entry: Entry) -> str:
    """Under 255 bytes, valid on Windows too, and unique by its uid."""
    return f"{slug(entry.summary, characters=80, size=160)}-{slug(entry.uid, characters=40, size=40)}.md"


def _import(database: Database, note: Note, held: Sequence[Verdict]) -> bool:
    with database.transaction() as tx:
        if knowledge.entry_id(tx, note.uid) is not None:
            return False
        entry_id = knowledge.add_entry(tx, note.as_entry(), [])
        anchors = [v.anchor for v in held]
        knowledge.hold(tx, entry_id, anchors)
        for v in held:
            verdicts.record(tx, [v.anchor], v.outcome, entry_id, v.at)
    return True


def _update(tx: Connection, note: Note, normalise: knowledge.Normalise) -> None:
    at = now_ms()
    knowledge.update_entry(tx, note.uid, summary=note.summary, detail=note.detail, type=note.type, at=at)
    knowledge.retag(tx, note.uid, note.tags, at=at, normalise=normalise)
    knowledge.set_scope(tx, note.uid, note.scope, at=at)
    current = knowledge.get(tx, note.uid)
    if current is None or current.status == note.status:
        return
    if note.status == "active":
        knowledge.revive(tx, note.uid, at=at)
    elif note.status == "retired":
        knowledge.retire(tx, note.uid, at=at)
    elif note.superseded_by and (newer := knowledge.entry_id(tx, note.superseded_by)) is not None:
        knowledge.supersede(tx, note.uid, newer, at=at)


def _notes(folder: Path) -> list[Path]:
    """Notes of the vault, by name; not what is hidden, and not what was kept beside a conflict."""
    found = (p for p in folder.rglob("*.md") if not any(part.startswith(".") for part in p.relative_to(folder).parts))
    return sorted(p for p in found if p.is_file() and not p.name.endswith(CONFLICT))


def _entry_hash(entry: Entry) -> str:
    return _hash(json.dumps(asdict(entry), default=str).encode())


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _write_if_changed(path: Path, data: bytes) -> None:
    if atomic.read(path) != data:
        atomic.write(path, data)


def _verdict_line(verdict: Verdict) -> dict[str, Any]:
    return {"anchor": verdict.anchor, "outcome": verdict.outcome.value, "entry": verdict.entry, "at": verdict.at}


def _verdict_of(line: str) -> Verdict | None:
    try:
        raw = json.loads(line)
        return Verdict(str(raw["anchor"]), Action(raw["outcome"]), raw["entry"], int(raw["at"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None

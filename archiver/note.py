"""One vault note: an entry as Markdown with YAML front matter, and back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote as escape
from urllib.parse import unquote as unescape

from archiver.front import (
    MOST_MATTER,
    UID,
    BadFieldError,
    Front,
    line_of,
    loaded,
    moment_of,
    one_of,
    parted,
    redacted,
    share_in,
    stamp,
    tags_in,
    uid_in,
)
from rules.scrub import scrub
from staging.documents import Redact
from store.messages import text
from store.records import DecidedBy, Entry, EntryType, Quote, Role, SafeText, Scope

MARKER = "<!-- evidence: not read back -->"
"""What stands above it is a person's to edit; what stands below is written anew each time."""

STATUSES = ("active", "superseded", "retired")
_OURS = (
    *("uid", "type", "tags", "project", "scope", "status", "superseded_by", "decided_by", "confidence"),
    *("agent", "session", "source_forgotten", "rule", "created", "reviewed"),
)
_SOURCE = re.compile(r"— (user|assistant|tool|subagent), (\S+), `([^`]*)`$")
_MARKED = re.compile(rf"^{re.escape(MARKER)}[ \t\r]*$", re.MULTILINE)
_UID_LINE = re.compile(rf"^uid:[ \t]*['\"]?({UID.pattern})['\"]?[ \t]*$", re.MULTILINE)
_PLAIN = "".join(chr(c) for c in range(0x21, 0x7F) if chr(c) not in "`%")
_LINE_ENDS = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Broken:
    """A note that cannot be read: reported, and left as it is. Lines count from 1."""

    path: Path
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """What a note says, redacted. `masked`: the file holds something that may not stay on disk.

    One that a person began has no `uid`, and no times (0).
    """

    uid: str
    type: EntryType
    summary: SafeText
    detail: SafeText
    tags: tuple[str, ...]
    project: str | None
    scope: Scope
    status: str
    superseded_by: str | None
    decided_by: DecidedBy
    confidence: float
    agent: str
    session: str | None
    source_forgotten: bool
    rule: str
    created_at: int
    reviewed_at: int
    evidence: tuple[Quote, ...]
    masked: bool

    def same_as(self, entry: Entry) -> bool:
        """Whether a person who wrote this changed nothing that the database would take over."""
        return _told(self) == _told(entry)

    def reviewed_with(self, entry: Entry) -> bool:
        """Whether it was written of the entry as it stands: older notes tell whole seconds only."""
        return self.reviewed_at in (entry.reviewed_at, entry.reviewed_at // 1000 * 1000)

    def normalised(self, normalise: Callable[[str], str]) -> Note:
        """The same with its tags as the archive spells them."""
        return replace(self, tags=tuple(dict.fromkeys(name for tag in self.tags if (name := normalise(tag)))))

    def as_entry(self) -> Entry:
        return Entry(
            uid=self.uid,
            type=self.type,
            summary=self.summary,
            detail=self.detail,
            tags=self.tags,
            project=self.project,
            scope=self.scope,
            agent=self.agent,
            session=self.session,
            source_forgotten=self.source_forgotten,
            rule=self.rule,
            confidence=self.confidence,
            decided_by=self.decided_by,
            status=self.status,
            superseded_by=self.superseded_by,
            created_at=self.created_at,
            reviewed_at=self.reviewed_at,
            evidence=self.evidence,
        )


def version(entry: Entry) -> str:
    """Names what an entry said since a moment: of two archives that name it alike, neither has changed it since."""
    return hashlib.sha256(repr((_told(entry), entry.reviewed_at)).encode("utf-8", "replace")).hexdigest()[:16]


def _told(of: Entry | Note) -> tuple[object, ...]:
    """What is a person's to change."""
    return (of.type.value, _line(of.summary), _block(of.detail), tuple(map(str, of.tags)), of.scope.value, of.status)


def render(entry: Entry, extra: dict[str, Any]) -> bytes:
    """The note of an entry; `extra` holds the front matter keys that a person added to it."""
    import yaml  # noqa: PLC0415  20 ms, paid when a note is written or read

    front: Front = {
        "uid": entry.uid,
        "type": entry.type.value,
        "tags": [str(tag) for tag in entry.tags],
        "project": entry.project,
        "scope": entry.scope.value,
        "status": entry.status,
        "superseded_by": entry.superseded_by,
        "decided_by": entry.decided_by.value,
        "confidence": entry.confidence,
        "agent": entry.agent,
        "session": entry.session,
        "source_forgotten": entry.source_forgotten or None,
        "rule": entry.rule,
        "created": stamp(entry.created_at),
        "reviewed": stamp(entry.reviewed_at),
    }
    # YAML knows plain strings only, not the kinds of string that the archive tells apart.
    kept = {k: str(v) if isinstance(v, str) else v for k, v in front.items() if v is not None}
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    matter = yaml.dump({**kept, **extra}, Dumper=dumper, allow_unicode=True, sort_keys=False, width=10**6)
    parts = [f"---\n{matter}---", f"# {_line(entry.summary)}"]
    if entry.detail.strip():
        parts.append(_block(entry.detail))
    parts += _evidence(entry)
    return ("\n\n".join(parts) + "\n").encode("utf-8", "replace")


def renewed(data: bytes, entry: Entry) -> bytes:
    """The note as a person wrote it, with the evidence that the entry has now. Without the marker it is left alone."""
    whole = data.decode("utf-8", "replace")
    marks = list(_MARKED.finditer(whole))
    if not marks:
        return data
    below = "\n\n".join(_evidence(entry) or [MARKER])
    if _LINE_ENDS.sub("\n", whole[marks[-1].start() :]).strip() == below.strip():
        return data
    return f"{whole[: marks[-1].start()]}{below}\n".encode("utf-8", "replace")


def _evidence(entry: Entry) -> list[str]:
    """The parts below a person's own. The marker stands alone where the detail holds such a line itself."""
    if entry.evidence:
        return [MARKER, "## Evidence", *(_quoted(quote) for quote in entry.evidence)]
    return [MARKER] if _MARKED.search(entry.detail) else []


def uid_of(path: Path) -> str | None:
    """The uid that a note claims, by a look at its front matter alone."""
    try:
        with path.open("rb") as file:
            head = file.read(MOST_MATTER)
    except OSError:
        return None
    split = parted(_LINE_ENDS.sub("\n", head.decode("utf-8-sig", "replace")))
    found = _UID_LINE.search(split[0]) if split else None
    return found[1] if found else None


def parse(path: Path, data: bytes, redact: Redact) -> Note | Broken:
    """What the note says, redacted throughout."""
    try:
        whole = _LINE_ENDS.sub("\n", data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return Broken(path, data.count(b"\n", 0, error.start) + 1, text("staging.not_utf8"))
    split = parted(whole)
    if split is None:
        return Broken(path, 1, text("vault.no_front_matter"))
    matter, body = split
    front, fault = loaded(matter)
    if fault is not None:
        return Broken(path, *fault)
    marks = list(_MARKED.finditer(body))
    words, below = (body[: marks[-1].start()], body[marks[-1].end() :]) if marks else (body, "")
    heading = re.search(r"^# +(\S.*)$", words, re.MULTILINE)
    if heading is None:
        return Broken(path, matter.count("\n") + 3, text("vault.no_summary"))
    masked = redact(whole) != scrub(whole)
    try:
        # What a person wrote above the heading is theirs too.
        detail = words[: heading.start()].strip("\n") + "\n\n" + words[heading.end() :].strip("\n")
        return _note(front, heading[1], detail, below, redact, masked=masked)
    except BadFieldError as bad:
        return Broken(path, line_of(matter, bad.name), bad.reason(redact))


def extra(data: bytes, redact: Redact) -> dict[str, Any]:
    """Front matter keys that are not ours, redacted; none where the note can't be read."""
    split = parted(_LINE_ENDS.sub("\n", data.decode("utf-8-sig", "replace")))
    front, fault = loaded(split[0]) if split else ({}, None)
    return {} if fault else {str(redact(key)): redacted(front[key], redact) for key in front if key not in _OURS}


def _note(front: Front, summary: str, detail: str, below: str, redact: Redact, *, masked: bool) -> Note:
    def field(name: str) -> SafeText:
        value = front.get(name)
        return redact("" if value is None else str(value))

    uid, project = uid_in(front, "uid"), field("project") or None
    status = one_of(front, "status", STATUSES, "active")
    return Note(
        uid=uid,
        type=EntryType(one_of(front, "type", tuple(EntryType), "")),
        summary=redact(_line(summary)),
        detail=redact(_block(detail)),
        tags=tags_in(front, redact),
        project=project,
        # What a person jots down without a project is meant for everywhere.
        scope=Scope(one_of(front, "scope", tuple(Scope), Scope.PROJECT if uid or project else Scope.GLOBAL)),
        status=status,
        superseded_by=uid_in(front, "superseded_by") or None,
        decided_by=DecidedBy(one_of(front, "decided_by", tuple(DecidedBy), DecidedBy.USER)),
        confidence=share_in(front),
        agent=field("agent"),
        session=field("session") or None,
        source_forgotten=front.get("source_forgotten") is True,
        rule=field("rule"),
        created_at=moment_of(front.get("created")) or 0,
        reviewed_at=moment_of(front.get("reviewed")) or 0,
        evidence=_quotes(below, redact),
        masked=masked,
    )


def _quoted(quote: Quote) -> str:
    lines = [f"> {line}".rstrip() for line in _block(quote.quote).split("\n") if quote.quote]
    turn = escape(quote.turn, safe=_PLAIN, errors="replace")
    source = f"> — {quote.role.value}, {stamp(quote.time) or '-'}, `{turn}`"
    return "\n".join([*lines, ">", source] if lines else [source])


def _quotes(below: str, redact: Redact) -> tuple[Quote, ...]:
    found = []
    for block in re.findall(r"(?:^>.*\n?)+", below, re.MULTILINE):
        *lines, last = [line.removeprefix(">").removeprefix(" ") for line in block.strip().split("\n")]
        source = _SOURCE.match(last)
        if source:
            quote = redact("\n".join(lines).strip("\n"))
            found.append(Quote(str(redact(unescape(source[3]))), Role(source[1]), quote, moment_of(source[2])))
    return tuple(found)


def _line(words: str) -> str:
    return " ".join(words.split())


def _block(words: str) -> str:
    return "\n".join(line.rstrip() for line in _LINE_ENDS.sub("\n", words).split("\n")).strip("\n")

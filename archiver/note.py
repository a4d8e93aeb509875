"""One vault note: an entry as Markdown with YAML front matter, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from staging.documents import Redact
from store.messages import text
from store.records import DecidedBy, Entry, EntryType, Quote, Role, SafeText, Scope, iso, parse_time

MARKER = "<!-- evidence: not read back -->"
"""What stands above it is a person's to edit; what stands below is written anew each time."""

STATUSES = ("active", "superseded", "retired")
_OURS = (
    *("uid", "type", "tags", "project", "scope", "status", "superseded_by", "decided_by", "confidence"),
    *("agent", "session", "rule", "created", "reviewed"),
)
_SOURCE = re.compile(r"— (user|assistant|tool|subagent), (\S+), `([^`]*)`$")
_LINE_ENDS = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Broken:
    """A note that cannot be read: reported, and left as it is. Lines count from 1."""

    path: Path
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """What a note says, redacted. `masked`: the file holds something that may not stay on disk."""

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
    rule: str
    created_at: int
    reviewed_at: int
    evidence: tuple[Quote, ...]
    masked: bool

    def same_as(self, entry: Entry) -> bool:
        """Whether a person who wrote this changed nothing that the database would take over."""
        mine = (self.type, self.summary, self.detail, self.tags, self.scope, self.status)
        return mine == (entry.type, _line(entry.summary), _block(entry.detail), entry.tags, entry.scope, entry.status)

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
            rule=self.rule,
            confidence=self.confidence,
            decided_by=self.decided_by,
            # What replaced it may not be there yet; who imports sets that when all notes are in.
            status=self.status,
            created_at=self.created_at,
            reviewed_at=self.reviewed_at,
            evidence=self.evidence,
        )


def render(entry: Entry, extra: dict[str, Any]) -> bytes:
    """The note of an entry; `extra` holds the front matter keys that a person added to it."""
    import yaml  # noqa: PLC0415  20 ms, paid when a note is written or read

    front: dict[str, Any] = {
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
        "rule": entry.rule,
        "created": iso(entry.created_at),
        "reviewed": iso(entry.reviewed_at),
    }
    # YAML knows plain strings only, not the kinds of string that the archive tells apart.
    kept = {k: str(v) if isinstance(v, str) else v for k, v in front.items() if v is not None}
    matter = yaml.safe_dump({**kept, **extra}, allow_unicode=True, sort_keys=False, width=10**6)
    parts = [f"---\n{matter}---", f"# {_line(entry.summary)}"]
    if entry.detail.strip():
        parts.append(_block(entry.detail))
    if entry.evidence:
        parts += [MARKER, "## Evidence", *(_quoted(quote) for quote in entry.evidence)]
    return ("\n\n".join(parts) + "\n").encode("utf-8", "replace")


def parse(path: Path, data: bytes, redact: Redact) -> Note | Broken:
    """What the note says, redacted throughout."""
    try:
        whole = _LINE_ENDS.sub("\n", data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return Broken(path, data.count(b"\n", 0, error.start) + 1, text("staging.not_utf8"))
    split = _split(whole)
    if split is None:
        return Broken(path, 1, text("vault.no_front_matter"))
    matter, body = split
    front, fault = _front(matter)
    if fault is not None:
        return Broken(path, *fault)
    words, _, below = body.rpartition(MARKER) if MARKER in body else (body, "", "")
    heading = re.search(r"^# +(.*\S)[ \t]*$", words, re.MULTILINE)
    if heading is None:
        return Broken(path, matter.count("\n") + 3, text("vault.no_summary"))
    masked = redact(whole) != whole
    try:
        return _note(front, heading[1], words[heading.end() :], below, redact, masked=masked)
    except _BadFieldError as bad:
        return Broken(path, _line_of(matter, bad.name), text("vault.bad_field", field=bad.name, value=bad.value))


def extra(data: bytes, redact: Redact) -> dict[str, Any]:
    """Front matter keys that are not ours, redacted; none where the note can't be read."""
    split = _split(_LINE_ENDS.sub("\n", data.decode("utf-8-sig", "replace")))
    front, fault = _front(split[0]) if split else ({}, None)
    return {} if fault else {key: _deep(value, redact) for key, value in front.items() if key not in _OURS}


class _BadFieldError(Exception):
    def __init__(self, name: str, value: object) -> None:
        super().__init__(name)
        self.name = name
        self.value = value


def _note(front: dict[str, Any], summary: str, detail: str, below: str, redact: Redact, *, masked: bool) -> Note:
    def field(name: str) -> SafeText:
        value = front.get(name)
        return redact("" if value is None else str(value))

    status = _one_of(front, "status", STATUSES, "active")
    return Note(
        uid=_uid(front),
        type=EntryType(_one_of(front, "type", tuple(EntryType), "")),
        summary=redact(_line(summary)),
        detail=redact(_block(detail)),
        tags=_tags(front, redact),
        project=field("project") or None,
        scope=Scope(_one_of(front, "scope", tuple(Scope), Scope.PROJECT)),
        status=status,
        superseded_by=str(front["superseded_by"]) if front.get("superseded_by") else None,
        decided_by=DecidedBy(_one_of(front, "decided_by", tuple(DecidedBy), DecidedBy.USER)),
        confidence=_share(front),
        agent=field("agent"),
        session=field("session") or None,
        rule=field("rule"),
        created_at=_moment(front.get("created")),
        reviewed_at=_moment(front.get("reviewed")),
        evidence=_quotes(below, redact),
        masked=masked,
    )


def _split(whole: str) -> tuple[str, str] | None:
    """Front matter and body, or None."""
    if not whole.startswith("---\n"):
        return None
    end = re.compile(r"^---[ \t]*$", re.MULTILINE).search(whole, 4)
    return None if end is None else (whole[4 : end.start()], whole[end.end() :])


def _front(matter: str) -> tuple[dict[str, Any], tuple[int, str] | None]:
    import yaml  # noqa: PLC0415  20 ms, paid when a note is written or read

    try:
        loaded = yaml.safe_load(matter)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or str(error).split("\n")[0]
        return {}, ((mark.line if mark else 0) + 2, str(reason))
    except (ValueError, RecursionError) as error:  # a date such as 2026-13-45
        return {}, (2, str(error))
    if not isinstance(loaded, dict):
        return {}, (2, text("vault.no_front_matter"))
    return {str(key): value for key, value in loaded.items()}, None


def _uid(front: dict[str, Any]) -> str:
    uid = front.get("uid")
    if not isinstance(uid, str) or not re.fullmatch(r"[\w-]{1,64}", uid):
        raise _BadFieldError("uid", uid)
    return uid


def _one_of(front: dict[str, Any], name: str, allowed: Sequence[str], default: str) -> str:
    value = front.get(name, default)
    if value not in allowed:
        raise _BadFieldError(name, value)
    return str(value)


def _tags(front: dict[str, Any], redact: Redact) -> tuple[str, ...]:
    """A list, or one text with commas. Numbers and dates that YAML made of a tag are taken as they were typed."""
    from store.knowledge import fold_tag  # noqa: PLC0415  SQLAlchemy, 245 ms; a note is read beside the database

    value = front.get("tags") or []
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or any(isinstance(part, dict | list) for part in parts):
        raise _BadFieldError("tags", value)
    folded = (fold_tag(redact(str(part))) for part in parts if part is not None)
    return tuple(dict.fromkeys(tag for tag in folded if tag))


def _share(front: dict[str, Any]) -> float:
    value = front.get("confidence", 1.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise _BadFieldError("confidence", value)
    return float(value)


def _moment(value: object) -> int:
    """YAML turns an unquoted time into a datetime."""
    if isinstance(value, datetime | date):
        value = value.isoformat()
    return parse_time(value) or 0


def _quoted(quote: Quote) -> str:
    lines = [f"> {line}".rstrip() for line in _block(quote.quote).split("\n") if quote.quote]
    source = f"> — {quote.role.value}, {iso(quote.time) or '-'}, `{quote.turn.replace('`', '')}`"
    return "\n".join([*lines, ">", source] if lines else [source])


def _quotes(below: str, redact: Redact) -> tuple[Quote, ...]:
    found = []
    for block in re.findall(r"(?:^>.*\n?)+", below, re.MULTILINE):
        *lines, last = [line.removeprefix(">").removeprefix(" ") for line in block.strip().split("\n")]
        source = _SOURCE.match(last)
        if source:
            quote = redact("\n".join(lines).strip("\n"))
            found.append(Quote(source[3], Role(source[1]), quote, parse_time(source[2])))
    return tuple(found)


def _line(words: str) -> str:
    return " ".join(words.split())


def _block(words: str) -> str:
    return "\n".join(line.rstrip() for line in _LINE_ENDS.sub("\n", words).split("\n")).strip("\n")


def _line_of(matter: str, name: str) -> int:
    lines = matter.split("\n")
    return next((number for number, line in enumerate(lines, 2) if line.startswith(f"{name}:")), 1)


def _deep(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return str(redact(value))
    if isinstance(value, list):
        return [_deep(part, redact) for part in value]
    if isinstance(value, dict):
        return {key: _deep(part, redact) for key, part in value.items()}
    return value

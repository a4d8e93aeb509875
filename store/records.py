"""The nouns of the archive, as frozen values. Standard library only: the hook's hot path imports this."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import SupportsIndex, overload


class SafeText(str):
    """Text whose secrets are masked. Made by `rules.redact`, or on load from the database; nothing else mints it.

    Cutting, stripping and joining safe text gives safe text. Any other string method gives a plain `str`,
    which the store refuses to write.
    """

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex) -> SafeText: ...
    @overload
    def __getitem__(self, key: slice) -> SafeText: ...
    def __getitem__(self, key: SupportsIndex | slice) -> SafeText:
        return SafeText(super().__getitem__(key))

    def strip(self, chars: str | None = None, /) -> SafeText:
        return SafeText(super().strip(chars))

    def rstrip(self, chars: str | None = None, /) -> SafeText:
        return SafeText(super().rstrip(chars))

    def lstrip(self, chars: str | None = None, /) -> SafeText:
        return SafeText(super().lstrip(chars))

    @staticmethod
    def joined(separator: str, parts: Iterable[SafeText]) -> SafeText:
        """`separator.join(parts)`. The separator is ours (a literal), so it needs no masking."""
        return SafeText(separator.join(parts))


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    """The error lines of a failed call: found by words, never mined, never embedded."""
    SUBAGENT = "subagent"
    """What a subagent was told and answered: machine talk, left out of mining and of default search."""


class Status(StrEnum):
    """Where a session stands. ACTIVE ones are archived but not distilled until they have been idle long enough."""

    ACTIVE = "active"
    ENDED = "ended"
    RESET = "reset"
    DELETED = "deleted"


class State(StrEnum):
    LIVE = "live"
    ABANDONED = "abandoned"
    """On a branch that the user rewound. Kept and findable on request, never mined."""


class EntryType(StrEnum):
    SOLUTION = "solution"
    DECISION = "decision"
    PATTERN = "pattern"


class DecidedBy(StrEnum):
    USER = "user"
    CONFIRMED = "assistant-confirmed"
    REPORTED = "assistant-reported"


class Action(StrEnum):
    """What a reviewer's verdict on an anchor was."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    MERGED = "merged"


class Scope(StrEnum):
    PROJECT = "project"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing said. `ord` numbers the turns of a session from 1 and is what citations show; `time` is UTC ms."""

    key: str
    ord: int
    role: Role
    kind: str
    text: SafeText
    time: int | None = None
    state: State = State.LIVE


@dataclass(frozen=True, slots=True)
class Fact:
    """Something a tool record proves, kept because the record's text is not: `kind` is test, build, commit or files."""

    after_turn: str
    kind: str
    ok: bool
    label: SafeText
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session as mining reads it: its live turns in order, and the facts between them."""

    agent: str
    session: SafeText
    project: SafeText
    title: SafeText
    turns: tuple[Turn, ...]
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence that supports a candidate or an entry. `turn` is the turn's key."""

    turn: str
    role: Role
    quote: SafeText
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A finding that waits for a person. `anchors` are the core sentences' hashes, see `anchor`."""

    type: EntryType
    summary: SafeText
    detail: SafeText
    tags: tuple[str, ...]
    confidence: float
    rule: str
    decided_by: DecidedBy
    evidence: tuple[Quote, ...]
    anchors: tuple[str, ...]

    @property
    def id(self) -> str:
        return candidate_id(self.anchors)


@dataclass(frozen=True, slots=True)
class Entry:
    """A piece of reviewed knowledge. `uid` is what people, vault links and recall blocks see."""

    uid: str
    type: EntryType
    summary: SafeText
    detail: SafeText
    tags: tuple[str, ...]
    project: str | None
    scope: Scope = Scope.PROJECT
    agent: str = ""
    session: str | None = None
    rule: str = ""
    confidence: float = 1.0
    decided_by: DecidedBy = DecidedBy.USER
    status: str = "active"
    superseded_by: str | None = None
    created_at: int = 0
    reviewed_at: int = 0
    source_forgotten: bool = False
    """It came from a session that its user had forgotten: `session` is None then, and what it quoted is gone."""
    evidence: tuple[Quote, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of a search. `id` is an entry's uid or a chunk's number; `session` the agent's own id of the session.

    `text` is the part of it around the best match, `spans` are the matched places in it (characters). `citation` is
    `session#turn`, with the session's id shortened where that is unambiguous. `score` only orders the hits of one search.
    """

    kind: str
    id: str
    session: str
    agent: str
    project: str
    time: int
    score: float
    text: SafeText
    citation: str
    why: str
    role: str = "speech"
    title: SafeText | None = None
    type: str = ""
    status: str = "active"
    superseded_by: str | None = None
    tags: tuple[str, ...] = ()
    first_ord: int = 0
    last_ord: int = 0
    spans: tuple[tuple[int, int], ...] = ()


_MARKUP = re.compile(r"[*_`~#>|\[\](){}]")


def anchor(sentence: str) -> str:
    """Hash of what a sentence says: same words, same anchor.

    Case, width, Markdown, punctuation and white space do not count; every masked secret is one word.
    Position, rule, type, time and session are left out: turns move when a transcript is read again.
    """
    text = re.sub(r"\[secret:[^\]]*\]", "secretsecret", sentence)
    text = unicodedata.normalize("NFKC", _MARKUP.sub("", text)).casefold()
    # "+", "#" and digits' separators carry meaning (C++, C#, 1.5); everything else that is not a letter or digit goes.
    kept = "".join(c for c in text if c.isalnum() or c in "+#" or unicodedata.category(c).startswith("M"))
    return hashlib.sha256(kept.encode("utf-8", "replace")).hexdigest()[:24]


def candidate_id(anchors: Iterable[str]) -> str:
    """Id of the candidate that rests on these core anchors, in any order."""
    return hashlib.sha256("\n".join(sorted(set(anchors))).encode()).hexdigest()[:16]


LATEST = 10_000_000_000_000
"""UTC ms in the year 2286: what lies beyond is a fault, and calendars end at the year 9999."""


def now_ms() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)


def iso(ms: int | None) -> str | None:
    """`2026-04-06T14:30:00Z`, or None."""
    if ms is None:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_DIGITS = re.compile(r"[0-9]{10,19}(?:\.[0-9]+)?")


def _counted(value: float) -> int | None:
    """UTC ms of a time counted since 1970 in one of the usual units, which are told apart by their size."""
    if not 0 < value < 10**20:
        return None
    while value >= 100_000_000_000_000:
        value /= 1000
    ms = value if value > 100_000_000_000 else value * 1000
    return int(ms) if 0 < ms < LATEST else None


def parse_time(value: object) -> int | None:
    """UTC milliseconds of an ISO 8601 text, or of a number of seconds, milli-, micro- or nanoseconds, also one in digits;
    None if it is none of these, or no real time.

    A time without an offset is taken as UTC: agents write UTC and some forget the Z.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _counted(value)
    if not isinstance(value, str):
        return None
    value = value.strip().upper()
    if _DIGITS.fullmatch(value):
        return _counted(float(value))
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    ms = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    return ms if 0 < ms < LATEST else None

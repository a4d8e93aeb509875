"""What a source yields: turns as they stand on disk, not yet safe, and the protocol every source keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from store.records import Role, State, Status

RECALL_OPEN = "<!-- wwt:recall -->"
RECALL_CLOSE = "<!-- /wwt:recall -->"
"""Recall prints its block between these; sources cut it, so that what was recalled is never learned again."""


@dataclass(frozen=True, slots=True)
class RawTurn:
    """A turn as parsed, secrets and all. It becomes a stored turn only through `rules.redact`.

    key: the agent's own id of the message, stable across copies and re-reads.
    pos: byte offset of the record where the turn begins; orders the turns of a file.
    kind: prompt, steering, command (user); reply (assistant); error (tool); task, answer (subagent).
    """

    key: str
    pos: int
    role: Role
    kind: str
    text: str
    time: int | None = None
    state: State = State.LIVE


@dataclass(frozen=True, slots=True)
class Upsert:
    """This turn is new, or replaces the one of the same key."""

    turn: RawTurn


@dataclass(frozen=True, slots=True)
class Extend:
    """More of a turn that an earlier parse yielded: its text goes on after a blank line.

    The state between parses holds ids and hashes, never words, so the parser can't repeat what came before.
    """

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Retract:
    """The turn of this key was taken back by the agent's own records; it was never part of the conversation."""

    key: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool record proves. `key` makes it idempotent; `after` is the key of the turn before it ("" if none)."""

    key: str
    after: str
    kind: str
    ok: bool
    label: str
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that could not be read, or a whole file (line 0). Reported, never fatal."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Title:
    """A title for the session (leaf is None) or for the session that holds the turn `leaf`. Higher rank wins, then later."""

    text: str
    rank: int
    leaf: str | None = None


@dataclass(frozen=True, slots=True)
class About:
    """What the file says of its session. Yielded at least once, before the first turn; later ones refine it.

    One with another `external_id` begins the next session: an export holds many, one after the other.
    """

    external_id: str
    cwd: str | None = None
    branch: str | None = None
    parent: str | None = None
    is_subagent: bool = False
    ended: bool = False
    first_time: int | None = None
    last_time: int | None = None


Event = Upsert | Extend | Retract | Outcome | Unreadable | Title | About


@dataclass(frozen=True, slots=True)
class Found:
    """A transcript that discovery came upon: a file, or one session of a database (`member` names it).

    session_status: what the file's name, or the database, says of the session.
    stamp: size and clock (ns) of a member, which change whenever it does; of a file its own are taken.
    session: the session's id, where neither the member nor the file's name begins with it.
    """

    agent: str
    path: Path
    segment: str = "live"
    session_status: Status = Status.ACTIVE
    member: str = ""
    stamp: tuple[int, int] | None = None
    session: str = ""

    @property
    def name(self) -> str:
        """What the archive knows it by: the path, with the member behind a `#`."""
        return f"{self.path}#{self.member}" if self.member else str(self.path)

    def size_and_clock(self) -> tuple[int, int]:
        """Bytes, and when it was last written (ns). OSError if the file can't be asked."""
        if self.stamp is not None:
            return self.stamp
        stat = self.path.stat()
        return stat.st_size, stat.st_mtime_ns


@dataclass(frozen=True, slots=True)
class Progress:
    """Where parsing stands. `offset` never passes a record that was not handled;

    `state` is JSON for the next parse: ids and hashes only, since it is stored as it is."""

    offset: int = 0
    line: int = 0
    state: dict[str, Any] = field(default_factory=dict)


class Reread(Exception):  # noqa: N818  no error: an instruction to the caller
    """New records change what was read long ago: the caller rolls back and parses the file from its start.

    Raised at any point of a resumed parse, never by a parse that began at offset 0.
    """


class Resume(Enum):
    """How a parse may go on where an earlier one stopped."""

    BYTES = 1
    """The bytes read before are checked to be the same: files that agents append to."""
    STATE = 2
    """The progress is handed back as it was; the parser checks it against what it finds (rows of a database).

    Sessions of a database are read so even where a source says `BYTES`, of the files that it reads beside them.
    """
    NEVER = 3
    """What changed is read whole: files that agents rewrite."""


class Source(Protocol):
    """One agent's format. A module per agent implements it as `SOURCE`; the table in `archiver.agents` lists them."""

    agent: str
    parser_version: int
    resume: Resume = Resume.BYTES
    formerly: str = ""
    """The agent under whose name sessions of this one were archived before it was told apart."""

    def roots(self) -> list[Path]:
        """Folders where the agent keeps transcripts on this machine, by environment variable or default; none for exports."""
        return []

    def discover(self, root: Path) -> Iterable[Found]:
        """Transcripts under a root of the agent's own layout, in no order. Skips what the agent keeps beside them."""
        return ()

    def sniff(self, path: Path, head: bytes) -> Found | None:
        """The file as one of ours, judged by its content (first 64 KB, decompressed) and only then by its name; else None."""

    def members(self, found: Found) -> Iterable[Found]:
        """The sessions of a database that `sniff` took for ours; of any other file, the file."""
        return (found,)

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        """Events of the bytes after `progress.offset`. `final`: the session is over, try an unfinished last line too."""


class Parse(Protocol):
    """A running parse. Iterate it to the end, then read `progress` and `bytes_read`. May raise `Reread`, and OSError."""

    @property
    def bytes_read(self) -> int: ...

    @property
    def progress(self) -> Progress: ...

    def __iter__(self) -> Iterator[Event]: ...

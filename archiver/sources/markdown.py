"""Conversations that were exported as text: lines in, turns out. What the Markdown sources share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from unicodedata import normalize

from archiver.sources import jsonl, speech, tools
from archiver.transcript import About, Event, Found, Outcome, Progress, RawTurn, Title, Unreadable, Upsert
from store.records import Role, parse_time

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_BLANK = re.compile(r"\n[ \t]*(?:\n[ \t]*)+\n")
_HEAD = 64 << 10
_SLASH = re.compile(r"/[a-z][\w:-]*(?:\s|\Z)")


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end. `fenced`: inside a code fence. `next` is the next line that is not blank ("" if none)."""

    pos: int
    text: str
    fenced: bool
    next: str


@dataclass(frozen=True, slots=True)
class Ran:
    """A tool call that the export shows with its result. `call` is None where it proves nothing."""

    pos: int
    call: tools.Call | None
    failed: bool
    output: str


@dataclass(slots=True)
class _Open:
    role: Role
    pos: int
    time: int | None
    lines: list[str] = field(default_factory=list)


class MarkdownParse(ABC):
    """One file read from its start to its end. A dialect says what each line is, and calls `say`, `add`, `prove` and `next_session`.

    Exports have no ids: a turn is known by its number in its session, a session by the file's name and its first words,
    or by the id that the export itself gives.
    """

    def __init__(self, found: Found, progress: Progress, *, final: bool) -> None:
        self.progress = Progress()
        self.bytes_read = 0
        self._found = found
        self._events: list[Event] = []
        self._open: _Open | None = None
        self._ran: list[Ran] = []
        self._fence: str | None = None
        self._native: str | None = None
        self._title: str | None = None
        self._cwd: str | None = folder_of(found.path)
        self._session: str | None = None
        self._turns = 0
        self._proofs = 0
        self._sessions: dict[str, int] = {}

    @abstractmethod
    def _take(self, line: Line) -> None:
        """The next line. Lines before the first speaker belong to nobody."""

    def __iter__(self) -> Iterator[Event]:
        try:
            for line in self._read():
                self._take(line)
                yield from self._drain()
        except EOFError as error:
            self._events.append(Unreadable(0, str(error)))
        self._close()
        yield from self._drain()

    def _drain(self) -> Iterator[Event]:
        events, self._events = self._events, []
        yield from events

    def _read(self) -> Iterator[Line]:
        held: list[tuple[int, str]] = []
        for pos, text in self._texts():
            if not text.strip() and held:
                held.append((pos, text))
                continue
            yield from self._told(held, text)
            held = [(pos, text)]
        yield from self._told(held, "")

    def _told(self, held: list[tuple[int, str]], following: str) -> Iterator[Line]:
        for pos, text in held:
            fenced, self._fence = _fence(text, self._fence)
            yield Line(pos, text, fenced, following)

    def _texts(self) -> Iterator[tuple[int, str]]:
        with jsonl.open_stream(self._found.path) as stream:
            if _is_other_encoding(stream.read(_HEAD)):
                self._events.append(Unreadable(0, "not UTF-8"))
                return
        with jsonl.open_stream(self._found.path) as stream:
            for size, data, _ in jsonl.lines(stream):
                pos, self.bytes_read = self.bytes_read, self.bytes_read + size
                # Where files were joined a mark stands in the middle.
                text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
                yield pos, jsonl.scrub(tools.plain(text.rstrip("\r")))

    # --- what dialects call ---

    def say(self, role: Role, pos: int, first: str = "", time: int | None = None) -> None:
        """Someone begins to speak. A fence that the speaker before left open ends there."""
        self._close()
        self._fence = None
        self._open = _Open(role, pos, time, [first] if first else [])

    def add(self, text: str) -> None:
        """One more line of whoever speaks."""
        if self._open is not None:
            self._open.lines.append(text)

    def join(self, text: str) -> None:
        """More of the last line of whoever speaks."""
        if self._open is not None:
            self._open.lines[-1:] = [" ".join([*self._open.lines[-1:], text])]

    @property
    def speaker(self) -> Role | None:
        return self._open.role if self._open else None

    def prove(self, ran: Ran) -> None:
        """What a tool call came to. It is told behind the turn of whoever speaks, which goes on."""
        self._ran.append(ran)
        if self._open is None:
            self._tell_ran()

    def next_session(self, native: str | None = None, title: str | None = None) -> None:
        self._close()
        self._session, self._native, self._title, self._turns, self._proofs = None, native, title, 0, 0

    # --- telling ---

    def _close(self) -> None:
        held, self._open = self._open, None
        if held is not None:
            # Where a tool call was left out, the blank lines around it stay behind.
            whole = _BLANK.sub("\n\n", "\n".join(held.lines)).strip()
            for kind, text in self._spoken(held.role, whole):
                self._tell(held, kind, text)
        self._tell_ran()

    def _tell_ran(self) -> None:
        told, self._ran = self._ran, []
        for ran in told if self._session is not None else ():
            if ran.call is not None:
                self._tell_outcome(ran, ran.call)
            if ran.failed and (text := tools.error_text(ran.output)):
                self._tell(_Open(Role.TOOL, ran.pos, None), "error", text)

    def _tell_outcome(self, ran: Ran, call: tools.Call) -> None:
        ok = tools.verdict(call, failed=ran.failed, output=ran.output)
        for kind in call.kinds if ok is not None else ():
            self._proofs += 1
            self._events.append(Outcome(f"{self._session}/p{self._proofs}", self._key(), kind, ok is True, call.label))

    def _spoken(self, role: Role, text: str) -> list[tuple[str, str]]:
        """(kind, words) of what was said, without what programs wrote in the speaker's name."""
        text = speech.cut_tags(speech.cut_recall(text), ("system-reminder",)).strip()
        if not text or speech.is_observer_prompt(text) or speech.is_failure_notice(text):
            return []
        return [("reply" if role is Role.ASSISTANT else "command" if _SLASH.match(text) else "prompt", text)]

    def _tell(self, held: _Open, kind: str, text: str) -> None:
        if self._session is None:
            self._begin(text)
        self._turns += 1
        if held.time is not None and self._session is not None:
            self._events.append(About(self._session, first_time=held.time, last_time=held.time))
        self._events.append(Upsert(RawTurn(self._key(), held.pos, held.role, kind, text, held.time)))
        if kind == "prompt":
            self._events.append(Title(speech.title_of(text), 0))

    def _begin(self, first: str) -> None:
        native = (
            self._native
            or f"{self._found.path.name.partition('.')[0] or self._found.path.name}-{speech.digest(first)[:8]}"
        )
        # A name that passed through macOS is decomposed.
        native = speech.plain_id(normalize("NFC", native))
        # The same conversation twice in a file is two sessions only where an id says so.
        seen = self._sessions[native] = self._sessions.get(native, 0) + 1
        self._session = native if seen == 1 else f"{native}.{seen}"
        self._events.append(About(self._session, self._cwd))
        if self._title:
            self._events.append(Title(speech.title_of(self._title), 2))

    def _key(self) -> str:
        return f"{self._session}/{self._turns:04d}"


def local_time(text: str) -> int | None:
    """UTC milliseconds of a time as people read it: that of their machine. None if there is no such time."""
    with suppress(ValueError, OverflowError, OSError):
        return parse_time(datetime.fromisoformat(text).astimezone().isoformat())
    return None


def folder_of(path: Path) -> str | None:
    """The project folder of an export that its agent keeps there; of any other file nothing is known."""
    parts = path.parts
    if ".specstory" in parts:
        return str(Path(*parts[: parts.index(".specstory")]))
    return str(path.parent) if path.name.startswith(".aider.") else None


def _fence(text: str, fence: str | None) -> tuple[bool, str | None]:
    """Whether the line belongs to a fenced block, its fences included, and the fence that is open after it."""
    mark = FENCE.match(text)
    if fence is None:
        return (True, mark[1]) if mark and not (mark[1][0] == "`" and "`" in mark[2]) else (False, None)
    closes = mark is not None and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip()
    return True, None if closes else fence


def _is_other_encoding(head: bytes) -> bool:
    """Whether these first bytes are no UTF-8. Some bad bytes that a tool printed are borne with."""
    if jsonl.is_utf16(head):
        return True
    text = head.decode("utf-8", "replace")
    if not jsonl.is_other_encoding(text):
        return False
    try:
        getincrementaldecoder("cp949")().decode(head)
    except UnicodeDecodeError:
        lines = [line for line in text.split("\n") if line.strip()]
        return sum("\ufffd" in line for line in lines) * 2 > len(lines)
    return True


def lines_of(head: bytes) -> list[str]:
    """The lines of a file's first bytes, to tell its dialect by."""
    return head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").replace("\r\n", "\n").split("\n")

"""Splitting a session into the chunks that are searched: a left-to-right function of its turns.

Speech is cut into windows of up to six turns with two overlapping, at most `LIMIT` characters; a longer turn is split
at sentence ends with one sentence overlapping. A window depends only on the turns from its start on, so an append
changes the tail and nothing else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from store.chunks import Piece
from store.records import Role, SafeText, State, Turn

LIMIT = 900
MOST_TURNS = 6
OVERLAP = 2
HEADING_LIMIT = 120

_BREAK = re.compile(r"(?<=[.!?。！？])[\"')\]]*\s+|\n+")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
_EMPTY = SafeText("")


def chunk_turns(turns: Iterable[Turn], from_ord: int = 0) -> Iterator[Piece]:
    """Chunks of consecutive turns of one session, in order. Every character said is in at least one of them.

    The first begins at turn `from_ord`. Turns before it are in none: they say what the first one answers. Holds a few
    turns at a time, however long the session is.
    """
    aside: list[Turn] = []
    for piece in _windows(_speech(turns, aside), from_ord):
        yield piece
        yield from _beside(aside, from_ord)
    yield from _beside(aside, from_ord)


def _speech(turns: Iterable[Turn], aside: list[Turn]) -> Iterator[Turn]:
    """The turns that are speech; the others go aside."""
    for turn in turns:
        if _kind(turn) == "speech":
            yield turn
        else:
            aside.append(turn)


def _beside(aside: list[Turn], from_ord: int) -> Iterator[Piece]:
    for turn in aside:
        if turn.ord >= from_ord:
            yield from _long(turn, _kind(turn), _EMPTY)
    aside.clear()


def _kind(turn: Turn) -> str:
    if turn.state is State.ABANDONED:
        return "abandoned"
    return turn.role.value if turn.role in (Role.TOOL, Role.SUBAGENT) else "speech"


def _windows(turns: Iterator[Turn], from_ord: int) -> Iterator[Piece]:
    ahead: list[Turn] = []
    asked = _EMPTY
    step = 0
    while True:
        asked = _asked(ahead[:step], asked)
        del ahead[:step]
        ahead += islice(turns, MOST_TURNS + 1 - len(ahead))
        if not ahead:
            return
        if ahead[0].ord < from_ord:
            step = 1
            continue
        if len(ahead[0].text) > LIMIT:
            yield from _long(ahead[0], "speech", asked)
            step = 1
            continue
        end = 1
        while end < min(len(ahead), MOST_TURNS) and _size(ahead[: end + 1]) <= LIMIT:
            end += 1
        yield _piece(ahead[:end], 0, "speech", asked, SafeText.joined("\n\n", (turn.text for turn in ahead[:end])))
        if end == len(ahead):
            return
        step = _step(ahead, end)


def _step(turns: list[Turn], end: int) -> int:
    """How far on the next window begins: up to two turns before `end`, if the turn there still fits beside them."""
    for overlap in range(OVERLAP, 0, -1):
        if end > overlap and _size(turns[end - overlap : end + 1]) <= LIMIT:
            return end - overlap
    return end


def _size(turns: Sequence[Turn]) -> int:
    return sum(len(turn.text) for turn in turns) + 2 * (len(turns) - 1)


def _asked(passed: list[Turn], before: SafeText) -> SafeText:
    """First line of the prompt that the next turn answers: what a reply is about is rarely in the reply."""
    for turn in reversed(passed):
        if turn.role is Role.USER:
            return _first_line(turn.text)
    return before


def _first_line(text: SafeText) -> SafeText:
    stripped = text.strip()
    end = stripped.find("\n")
    return stripped[: min(HEADING_LIMIT, end if end >= 0 else HEADING_LIMIT)]


def _long(turn: Turn, role: str, asked: SafeText) -> Iterator[Piece]:
    heading = asked
    for part, (first, last) in enumerate(_spans(turn.text)):
        text = turn.text[first:last].strip()
        if text:
            yield _piece([turn], part, role, heading, text)
        inside = list(_HEADING.finditer(turn.text, first, last))
        if inside:
            heading = turn.text[inside[-1].start(1) : min(inside[-1].end(1), inside[-1].start(1) + HEADING_LIMIT)]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Consecutive spans of at most LIMIT characters that end where sentences do; each begins with the last sentence of the one before."""
    sentences = list(_sentences(text))
    first = 0
    while first < len(sentences):
        last = first
        while last + 1 < len(sentences) and sentences[last + 1][1] - sentences[first][0] <= LIMIT:
            last += 1
        yield sentences[first][0], sentences[last][1]
        if last + 1 == len(sentences):
            return
        overlaps = last > first and sentences[last + 1][1] - sentences[last][0] <= LIMIT
        first = last if overlaps else last + 1


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _BREAK.finditer(text):
        yield from _cut(text, start, match.end())
        start = match.end()
    yield from _cut(text, start, len(text))


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span itself, or pieces of it where one sentence is longer than a chunk: at white space if there is any."""
    while end - start > LIMIT:
        space = text.rfind(" ", start + LIMIT // 2, start + LIMIT)
        stop = space + 1 if space > 0 else start + LIMIT
        yield start, stop
        start = stop
    if end > start:
        yield start, end


def _piece(turns: Sequence[Turn], part: int, role: str, heading: SafeText, text: SafeText) -> Piece:
    shown = _EMPTY if heading and heading in text else heading
    return Piece(
        first_ord=turns[0].ord,
        last_ord=turns[-1].ord,
        part=part,
        role=role,
        heading=shown,
        text=text,
        hash=text_hash(indexed(shown, text)),
        time=next((turn.time for turn in turns if turn.time is not None), None),
    )


def indexed(heading: SafeText, text: SafeText) -> SafeText:
    """What a chunk is embedded and searched by."""
    return SafeText.joined("\n", (heading, text)) if heading else text


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()

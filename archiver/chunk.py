"""Splitting a session into the chunks that are searched: a left-to-right function of its turns.

Speech is cut into windows of up to six turns with two overlapping, at most `LIMIT` characters; a longer turn is split
at sentence ends with one sentence overlapping. A window depends only on the turns from its start on, so an append
changes the tail and nothing else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from store.chunks import Piece
from store.records import Role, SafeText, State, Turn

LIMIT = 900
MOST_TURNS = 6
OVERLAP = 2
HEADING_LIMIT = 120

_BREAK = re.compile(r"(?<=[.!?。！？])[\"')\]]*\s+|\n+")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
_EMPTY = SafeText("")


def chunk_turns(turns: Sequence[Turn], from_ord: int = 0) -> list[Piece]:
    """Chunks of consecutive turns of one session, in order. Every character said is in at least one of them.

    The first begins at turn `from_ord`. Turns before it are in none: they say what the first one answers.
    """
    speech = [turn for turn in turns if _kind(turn) == "speech"]
    aside = [turn for turn in turns if _kind(turn) != "speech" and turn.ord >= from_ord]
    return [
        *_windows(speech, sum(turn.ord < from_ord for turn in speech)),
        *(piece for turn in aside for piece in _long(turn, _kind(turn), _EMPTY)),
    ]


def _kind(turn: Turn) -> str:
    if turn.state is State.ABANDONED:
        return "abandoned"
    return turn.role.value if turn.role in (Role.TOOL, Role.SUBAGENT) else "speech"


def _windows(turns: list[Turn], start: int) -> Iterator[Piece]:
    while start < len(turns):
        if len(turns[start].text) > LIMIT:
            yield from _long(turns[start], "speech", _asked(turns, start))
            start += 1
            continue
        end = start + 1
        while end < len(turns) and end - start < MOST_TURNS and _size(turns[start : end + 1]) <= LIMIT:
            end += 1
        yield _piece(
            turns[start:end],
            0,
            "speech",
            _asked(turns, start),
            SafeText.joined("\n\n", (t.text for t in turns[start:end])),
        )
        if end == len(turns):
            return
        start = _next_start(turns, start, end)


def _next_start(turns: list[Turn], start: int, end: int) -> int:
    """Where the next window begins: up to two turns back, if the turn at `end` still fits beside them."""
    for overlap in range(OVERLAP, 0, -1):
        if end - overlap > start and _size(turns[end - overlap : end + 1]) <= LIMIT:
            return end - overlap
    return end


def _size(turns: Sequence[Turn]) -> int:
    return sum(len(turn.text) for turn in turns) + 2 * (len(turns) - 1)


def _asked(turns: list[Turn], start: int) -> SafeText:
    """First line of the prompt that the turn at `start` answers: what a reply is about is rarely in the reply."""
    for turn in reversed(turns[:start]):
        if turn.role is Role.USER:
            return _first_line(turn.text)
    return _EMPTY


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

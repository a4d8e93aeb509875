"""A chunk's sentences, cut for vectors of their own: short enough to mean one thing, long enough to mean something."""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST = 32
"""Sentences kept of one chunk, the first ones."""
SHORTEST, LONGEST = 2, 400
"""Characters of a sentence."""
FRAGMENT = 12
"""Characters below which a piece is joined to its neighbour: "Yes.", "1.", "네." say nothing alone."""
FULL = 80
"""Characters from which a sentence takes no fragment in: the fragment joins what follows it."""
READ = 4 * MOST * LONGEST
"""Characters of a text looked at: a text of nothing but blanks ends too."""

BOUNDARY = re.compile(
    r"""
    \n                                  # a line is at most a sentence: lists, logs, code
    | (?<=[.!?…]) ["'”’)\]]* \s+        # the end of a sentence and a blank: not 3.14, not a.b()
    | (?<=[。！？]) ["'”’」』）]* \s*      # these need no blank
    """,
    re.VERBOSE,
)
ABBREVIATION = re.compile(r"(?:^|\s)(?:e\.g|i\.e|etc|vs|cf|Mr|Ms|Mrs|Dr|No|Fig|approx|\d{1,3})\.$", re.IGNORECASE)
CLAUSE = re.compile(r"[、，；]|\s")


def split_sentences(text: str) -> list[str]:
    """At most 32 sentences of 2 to 400 characters, in order, with blanks inside them collapsed.

    Fragments are merged into a neighbour; a longer sentence is cut at a clause or a blank where it has one.
    """
    sentences: list[str] = []
    for piece in _pieces(text[:READ]):
        if sentences and _belongs(sentences[-1], piece):
            sentences[-1] = f"{sentences[-1]} {piece}"
            continue
        if len(sentences) > MOST:
            break
        sentences.append(piece)
    return [sentence for sentence in sentences if len(sentence) >= SHORTEST][:MOST]


def _belongs(before: str, piece: str) -> bool:
    together = len(before) + 1 + len(piece)
    if len(before) < FRAGMENT or ABBREVIATION.search(before):
        return together <= LONGEST
    # One character is no sentence and would be lost alone.
    room = LONGEST if len(piece) < SHORTEST else FULL
    return len(piece) < FRAGMENT and together <= room


def _pieces(text: str) -> Iterator[str]:
    start = 0
    for boundary in BOUNDARY.finditer(text):
        # Closing quotes stay with their sentence.
        yield from _cut(text[start : boundary.end()])
        start = boundary.end()
    yield from _cut(text[start:])


def _cut(sentence: str) -> Iterator[str]:
    rest = " ".join(sentence.split())
    while len(rest) > LONGEST:
        # The last clause or blank in the second half of what fits, else a hard cut.
        ends = [found.end() for found in CLAUSE.finditer(rest, LONGEST // 2, LONGEST)]
        end = ends[-1] if ends else LONGEST
        yield rest[:end].strip()
        rest = rest[end:].strip()
    if rest:
        yield rest

"""The objects of a JSON file, one after the other: those of a root array of any length, or the root object alone.

A JSON parser that streams would stop at the first fault, so the text is cut by its brackets here, and each object parsed by
itself: what is wrong with one costs nothing else, and no more than one is in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import orjson

from archiver.sources.jsonl import is_other_encoding
from archiver.transcript import Unreadable

BLOCK = 1 << 20
LARGEST = 128 << 20
"""No object may be larger; the largest real conversations are some tens of megabytes."""

# Possessive, so that a long text is passed over in one step and never tried again.
_PLAIN = re.compile(rb"""(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+""", re.S)
_BEGINS = re.compile(rb"\{\s*\"(?:title|uuid|id|conversation_id|create_time)\"\s*:")


@dataclass(frozen=True, slots=True)
class Element:
    """An object of the array. `number` counts from 1; `line` is that of the file where it begins."""

    number: int
    line: int
    value: dict[str, Any]


class Elements:
    """Iterate to the end; `bytes_read` tells how far the stream was read meanwhile."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.bytes_read = 0
        self._stream = stream
        self._held = b""
        self._at = 0
        self._line = 1
        self._number = 0
        self._other_encoding = False

    def __iter__(self) -> Iterator[Element | Unreadable]:
        while not self._other_encoding and self._find_object():
            size = self._size()
            self._number += 1
            if size is None:
                yield Unreadable(self._line, f"object {self._number} is cut off or damaged")
                if not self._find_next():
                    return
                continue
            yield self._parsed(self._held[self._at : self._at + size])
            self._at += size

    def _find_object(self) -> bool:
        """Move to the next `{`. False at the end."""
        while (at := self._held.find(b"{", self._at)) < 0:
            self._at = len(self._held)
            if not self._more(BLOCK):
                return False
        self._line += self._held.count(b"\n", self._at, at)
        self._at = at
        return True

    def _size(self) -> int | None:
        """Bytes up to the `}` that closes the object; None if there is none."""
        self._drop_before()
        depth, at, step = 0, 0, BLOCK
        while True:
            matched = _PLAIN.match(self._held, at)
            at = matched.end() if matched else at
            bracket = self._held[at : at + 1]
            if bracket in (b"", b'"'):  # a text that goes on behind what is held
                if len(self._held) > LARGEST or not self._more(step):
                    return None
                step *= 2  # a long text is looked at again from its start, so by ever larger pieces
                continue
            depth += 1 if bracket in b"{[" else -1
            at += 1
            if depth == 0:
                return at

    def _drop_before(self) -> None:
        self._held, self._at = self._held[self._at :], 0

    def _find_next(self) -> bool:
        """Behind a damaged object: where another seems to begin."""
        begins = _BEGINS.search(self._held, self._at + 1)
        if begins is None:
            return False
        self._line += self._held.count(b"\n", self._at, begins.start())
        self._at = begins.start()
        return True

    def _more(self, size: int) -> bool:
        block = self._stream.read(size)
        self.bytes_read += len(block)
        self._held = self._held[self._at :] + block
        self._at = 0
        return bool(block)

    def _parsed(self, body: bytes) -> Element | Unreadable:
        line = self._line
        self._line += body.count(b"\n")
        try:
            return Element(self._number, line, orjson.loads(body))
        except orjson.JSONDecodeError:
            pass
        text = body.decode("utf-8", "replace")
        if is_other_encoding(text):
            self._other_encoding = True
            return Unreadable(line, "not UTF-8")
        try:
            return Element(self._number, line, json.loads(text))
        except (ValueError, RecursionError):
            return Unreadable(line, f"object {self._number} is not JSON")

"""The transcripts of the first Codex, which was another program: one JSON document a session, written anew each time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson

from archiver.sources import jsonl
from archiver.transcript import Unreadable


class Document:
    """The session, then its items, as the bare records that the next version wrote. `offset` stays 0: it is read whole."""

    def __init__(self, path: Path) -> None:
        self.offset = self.line = self.bytes_read = 0
        self._path = path

    def __iter__(self) -> Iterator[jsonl.Record | Unreadable]:
        with jsonl.open_stream(self._path) as stream:
            data = stream.read(jsonl.LONGEST_LINE + 1)
        self.bytes_read = len(data)
        value = _parsed(data)
        items = value.get("items") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(items, list):
            yield Unreadable(0, "not a whole transcript")
            return
        for at, item in enumerate([value.get("session"), *items]):
            if isinstance(item, dict):
                yield jsonl.Record(at, at + 1, item)


def _parsed(data: bytes) -> object:
    try:
        return orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        return None

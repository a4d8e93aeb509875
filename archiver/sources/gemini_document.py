"""Gemini CLI's older transcripts, each one JSON document that the agent rewrites as a whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from archiver.sources import jsonl
from archiver.transcript import Unreadable

_PEEKED = 64 << 10
_LONGEST_DOCUMENT = 512 << 20
_EDGE = b"\x00 \t\r\n"


def is_document(path: Path) -> bool:
    """Whether the file holds one JSON value, as old versions wrote it, instead of one a line. OSError if it can't be read."""
    with jsonl.open_regular(path) as stream:
        head = stream.read(_PEEKED).removeprefix(b"\xef\xbb\xbf").lstrip(_EDGE)
    first, _, rest = head.partition(b"\n")
    if first.strip(_EDGE) in (b"{", b"["):
        return True
    return path.suffix == ".json" and not (rest.strip(_EDGE) and _is_object(first))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


class Document:
    """The one record of a JSON document. It is rewritten as a whole, so that reading always begins at its start."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = self.line = self.bytes_read = 0

    def __iter__(self) -> Iterator[jsonl.Record | Unreadable]:
        with jsonl.open_regular(self.path) as stream:
            size = os.fstat(stream.fileno()).st_size
            data = stream.read() if size <= _LONGEST_DOCUMENT else b""
        self.bytes_read = len(data)
        if size > _LONGEST_DOCUMENT:
            yield Unreadable(0, f"file of {size} bytes skipped")
        elif not data.strip(_EDGE):
            yield Unreadable(0, "empty")
        elif jsonl.is_utf16(data[:4]):
            yield Unreadable(0, "not UTF-8")
        else:
            value = _loaded(data)
            del data  # what is made of it is as large again
            yield jsonl.Record(0, 1, value) if isinstance(value, dict) else value


def _loaded(data: bytes) -> dict[str, Any] | Unreadable:
    data = data.removeprefix(b"\xef\xbb\xbf").strip(_EDGE)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        try:  # what orjson refuses: lone surrogates, NaN, bytes that are no UTF-8
            value = json.loads(data.decode("utf-8", "replace"))
        except RecursionError:
            return Unreadable(0, "nested too deeply")
        except json.JSONDecodeError as error:
            return Unreadable(0, f"not JSON: {error.msg}")
        except ValueError:
            return Unreadable(0, "a number with too many digits")
    return value if isinstance(value, dict) else Unreadable(0, "not an object")

"""Exports of web chats: a ZIP as it was downloaded, or the `conversations.json` in it, whole or in numbered parts."""

from __future__ import annotations

import re
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from archiver.sources import jsonl, speech
from archiver.sources.json_array import Elements
from archiver.transcript import Event, Found, Progress, RawTurn, Title, Unreadable

ZIP = b"PK\x03\x04"
_HEAD = 64 << 10
_PART = re.compile(r"(?:.*/)?conversations(?:[-_]\d+)?\.json")
_BROKEN = (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError)
"""RuntimeError is zipfile's word for an encrypted member."""


class WebExportParse(ABC):
    """Reads conversation by conversation, in flat memory."""

    def __init__(self, found: Found, progress: Progress, *, final: bool) -> None:
        self.progress = Progress()
        self._found = found
        self._read = 0
        self._elements: Elements | None = None

    @property
    def bytes_read(self) -> int:
        return self._read + (self._elements.bytes_read if self._elements else 0)

    @abstractmethod
    def _conversation(self, value: dict[str, Any]) -> Iterator[Event]:
        """What one conversation says; nothing at all if nobody said anything in it."""

    def __iter__(self) -> Iterator[Event]:
        for part in parts(self._found.path):
            try:
                with opened(self._found.path, part) as stream:
                    yield from self._part(stream)
            except _BROKEN as error:
                yield Unreadable(0, f"{part or self._found.path.name}: {error}")

    def _part(self, stream: IO[bytes]) -> Iterator[Event]:
        self._elements = Elements(stream)
        for item in self._elements:
            yield from (item,) if isinstance(item, Unreadable) else self._conversation(item.value)
        self._read, self._elements = self.bytes_read, None


_UNTITLED = re.compile(r"\s*(?:New chat|Untitled|새 채팅|새 대화)?\s*", re.I)


def titles(given: str, turns: list[RawTurn]) -> Iterator[Title]:
    """The first prompt, and the conversation's own title, unless that only says that it has none."""
    asked = next((turn.text for turn in turns if turn.kind == "prompt"), "")
    if asked:
        yield Title(speech.title_of(asked), 0)
    if not _UNTITLED.fullmatch(given):
        yield Title(speech.title_of(given), 3)


def parts(path: Path) -> list[str]:
    """The names of a ZIP's parts that hold conversations, in order; of another file the empty name."""
    with jsonl.open_regular(path) as file:
        if file.read(len(ZIP)) != ZIP:
            return [""]
    try:
        with zipfile.ZipFile(path) as archive:
            return sorted(name for name in archive.namelist() if _PART.fullmatch(name))
    except _BROKEN:
        return []


@contextmanager
def opened(path: Path, part: str) -> Iterator[IO[bytes]]:
    if not part:
        with jsonl.open_stream(path) as stream:
            yield stream
        return
    with zipfile.ZipFile(path) as archive, archive.open(part) as stream:
        yield stream


def beginning(path: Path, head: bytes) -> bytes:
    """The first bytes of the conversations: of the file itself, or of the first part in a ZIP. Empty if there are none."""
    if not head.startswith(ZIP):
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        return text if text[:1] in (b"[", b"{") else b""
    try:
        for part in parts(path)[:1]:
            with opened(path, part) as stream:
                return stream.read(_HEAD)
    except (OSError, *_BROKEN):
        pass
    return b""

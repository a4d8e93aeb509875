"""Records of a JSONL file, read as bytes: what every line-based source shares."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import orjson

from archiver.transcript import Progress, Unreadable

BLOCK = 1 << 20
LONGEST_LINE = 128 << 20
"""Longer lines are skipped and reported: the longest real ones are images of some tens of megabytes."""

_SLICE = 1 << 10
"""Bytes unpacked at once: however well they are packed, what they stand for fits into memory."""

_BOM = b"\xef\xbb\xbf"
_EDGE = b"\x00 \t\r"
_RECORD_START = re.compile(r'\{"(?:type|parentUuid|isSidechain|timestamp|id|uuid|sessionId)"')
_RECORD_STARTS_TRIED = 50


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON object. `pos` is its byte offset in the (decompressed) file, `line` its physical line from 1."""

    pos: int
    line: int
    value: dict[str, Any]


class Reader:
    """Records and faults after `progress`. Iterate to the end, then read `offset`, `line` and `bytes_read`.

    A file that cannot be read now (rights, a dead disk) is an OSError: it must not pass for one that was read.
    `offset` stops before an unfinished last line, unless `final` and the line turns out to be whole.
    """

    def __init__(self, path: Path, progress: Progress, *, final: bool) -> None:
        self.path = path
        self.offset = progress.offset
        self.line = progress.line
        self.bytes_read = 0
        self._final = final
        self._told_encoding = False

    def __iter__(self) -> Iterator[Record | Unreadable]:
        try:
            with open_stream(self.path, self.offset) as stream:
                yield from self._records(stream)
        except EOFError as error:
            yield Unreadable(self.line + 1, str(error))

    def _records(self, stream: IO[bytes]) -> Iterator[Record | Unreadable]:
        for size, line, ended in lines(stream):
            self.bytes_read += size
            if self.offset == 0 and is_utf16(line):
                yield Unreadable(0, "not UTF-8")
                return
            if ended:
                yield from self._values(line, size)
                self.offset += size
                self.line += 1
            elif not is_torn(stream):
                yield from self._tail(line, size)
        if is_torn(stream):
            yield Unreadable(self.line + 1, "zstd data that ends in the middle")

    def _tail(self, line: bytes, size: int) -> Iterator[Record | Unreadable]:
        """The bytes after the last line feed. `line` stays, so that the rest of this line gets the same number."""
        if size <= LONGEST_LINE and not line.strip(_EDGE):
            if b"\x00" in line:
                yield Unreadable(self.line + 1, "zero bytes at the end")
            self.offset += size
        elif self._final:
            found = list(self._values(line, size))
            yield from found
            if not any(isinstance(item, Unreadable) for item in found):
                self.offset += size

    def _values(self, line: bytes, size: int) -> Iterator[Record | Unreadable]:
        number = self.line + 1
        if size > LONGEST_LINE:
            yield Unreadable(number, f"line of {size} bytes skipped")
            return
        body = line.removeprefix(_BOM).strip(_EDGE)
        if not body:
            return
        start = self.offset + line.find(body[:64])
        try:
            yield _record(start, number, orjson.loads(body))
        except orjson.JSONDecodeError:
            yield from self._repaired(body, start, number)

    def _repaired(self, body: bytes, start: int, number: int) -> Iterator[Record | Unreadable]:
        """What orjson refuses: lone surrogates, NaN, bad bytes, two objects on a line, a torn object before a whole one."""
        text = body.decode("utf-8", "replace")
        if is_other_encoding(text):
            if not self._told_encoding:
                self._told_encoding = True
                yield Unreadable(number, "not UTF-8")
            return
        at = 0
        try:
            while at < len(text):
                value, end = _DECODER.raw_decode(text, at)
                yield _record(start + len(text[:at].encode("utf-8", "replace")), number, value)
                at = _skip_blank(text, end)
        except (ValueError, RecursionError) as error:
            yield Unreadable(number, _reason(error))
            yield from _after_torn(text, at, start, number)


_DECODER = json.JSONDecoder()


def open_stream(path: Path, offset: int = 0) -> IO[bytes]:
    """The file's bytes from `offset` on; of a `.zst` file the decompressed ones. OSError or EOFError if it can't."""
    raw = open_regular(path)
    try:
        if path.suffix != ".zst":
            raw.seek(offset)
            return raw
        stream = _Zstd(raw)
        stream.skip(offset)
        return cast("IO[bytes]", stream)
    except BaseException:
        raw.close()
        raise


def decompressed(raw: IO[bytes]) -> IO[bytes]:
    """The bytes that a stream of zstd data stands for. Damage is an EOFError, where it is met."""
    return cast("IO[bytes]", _Zstd(raw))


def open_regular(path: Path) -> IO[bytes]:
    """The file, if it is one: a pipe would make the reader wait for ever. OSError if not."""
    waits_never = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, os.O_RDONLY | waits_never)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


class _Zstd:
    """As much of a binary stream as is used here, over zstandard. Damage is an EOFError; an early end only `torn`."""

    def __init__(self, raw: IO[bytes]) -> None:
        import zstandard  # noqa: PLC0415  # 15 ms; few transcripts are compressed

        self._raw = raw
        self._error = zstandard.ZstdError
        self._frames = zstandard.ZstdDecompressor()
        self._frame: Any = None
        self._packed = self._plain = b""
        self.torn = False

    def read(self, size: int) -> bytes:
        while not self._plain:
            self._packed = self._packed or self._raw.read(_SLICE)
            if not self._packed:
                self.torn = self._frame is not None
                return b""
            self._unpack()
        block, self._plain = self._plain[:size], self._plain[size:]
        return block

    def _unpack(self) -> None:
        self._frame = self._frame or self._frames.decompressobj()
        try:
            self._plain = self._frame.decompress(self._packed)
        except self._error as error:
            raise EOFError(f"broken zstd data: {error}") from error
        self._packed = self._frame.unused_data
        if self._frame.eof:
            self._frame = None

    def skip(self, size: int) -> None:
        while size > 0 and (block := self.read(min(size, BLOCK))):
            size -= len(block)

    def __enter__(self) -> _Zstd:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()


def is_torn(stream: IO[bytes]) -> bool:
    """Whether compressed data, read to its end, ended in the middle: the file was cut off."""
    return bool(getattr(stream, "torn", False))


def lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes, bool]]:
    r"""(size with its `\n`, bytes without it, whether it ended). Bytes past `LONGEST_LINE` are counted, not kept."""
    parts: list[bytes] = []
    size = 0
    while block := stream.read(BLOCK):
        first, *more = block.split(b"\n")
        size += len(first)
        parts.append(first)
        if size > LONGEST_LINE:
            parts.clear()
        for piece in more:
            yield size + 1, b"".join(parts), True
            parts, size = [piece], len(piece)
    if size:
        yield size, b"".join(parts), False


def _record(pos: int, line: int, value: object) -> Record | Unreadable:
    return Record(pos, line, value) if isinstance(value, dict) else Unreadable(line, "not an object")


def _skip_blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in "\x00 \t\r":
        at += 1
    return at


def _after_torn(text: str, at: int, start: int, number: int) -> Iterator[Record]:
    """The whole record that was appended behind a half-written one, if there is one."""
    for tried, match in enumerate(_RECORD_START.finditer(text, at + 1)):
        if tried == _RECORD_STARTS_TRIED:
            return
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if _skip_blank(text, end) == len(text):
            yield Record(start + len(text[: match.start()].encode("utf-8", "replace")), number, value)
            return


def _reason(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    # JSONDecodeError says where; a plain ValueError is an integer of more digits than Python converts.
    return f"not JSON: {error.msg}" if isinstance(error, json.JSONDecodeError) else "a number with too many digits"


def is_utf16(line: bytes) -> bool:
    """Whether a file that begins with these bytes is UTF-16, with or without a mark."""
    if line[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return True
    # Zero bytes alone are what a crash leaves.
    halves = line[:4:2], line[1:4:2]
    return any(half == b"\x00\x00" for half in halves) and not all(b"\x00" in half for half in halves)


def is_other_encoding(text: str) -> bool:
    """Whether text that was decoded with replacements was no UTF-8: cut characters give one or two of them, a code page
    gives one for most letters."""
    replaced = text.count("\ufffd")
    return replaced > 3 and replaced * 2 > sum(1 for c in text if c > "\x7f")


def scrub(text: str) -> str:
    """Text that SQLite, tokenizers and engines accept: lone surrogates become U+FFFD, runs of NUL one space."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return re.sub("\x00+", " ", text) if "\x00" in text else text

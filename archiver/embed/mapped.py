"""A file of named arrays that is memory-mapped: opening it costs the pages that are touched, not its size.

It is a cache. It is written beside its name and put there by one rename, so a reader sees a whole file or none, and
two writers at once both succeed. Whatever is wrong with a file (another key, cut short, damaged), `read` answers
None and the caller builds it again.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import archiver.embed.threads  # noqa: F401  # before numpy: it decides on the threads

# isort: split
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MAGIC = b"wwtarr1\n"
PREFIX = struct.Struct("<8sII")
"""Magic, length of the JSON header, CRC-32 of the JSON header."""
ALIGNMENT = 64
"""Bytes; a cache line, so that linear algebra reads the arrays in place."""


@dataclass(frozen=True)
class Mapped:
    """An open file: what was noted down with it, and its arrays, read-only and backed by the file."""

    facts: dict[str, Any]
    arrays: dict[str, Array]
    checksums: dict[str, int]

    def intact(self, names: Iterable[str]) -> bool:
        """Whether these arrays hold the bytes that were written. Reads them whole, at about 1 GB/s."""
        return all(zlib.crc32(_raw(self.arrays[name])) == self.checksums[name] for name in names)


def write(path: Path, *, key: str, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Raises OSError when the folder cannot be written or the disk is full; leaves nothing half-written behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            _write_to(file, key, facts, {name: np.ascontiguousarray(array) for name, array in arrays.items()})
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def read(path: Path, *, key: str) -> Mapped | None:
    """The file at `path`, when it is there, complete and was written for `key`.

    The header is checked, and that the file has its whole length; the arrays' bytes are not (see `Mapped.intact`).
    """
    try:
        with path.open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return _open(memory, key)
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return None


def _write_to(file: BinaryIO, key: str, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    table, offset = {}, 0
    for name, array in arrays.items():
        table[name] = [array.dtype.str, list(array.shape), offset, zlib.crc32(_raw(array))]
        offset += _padded(array.nbytes)
    header = json.dumps({"key": key, "facts": facts, "arrays": table, "bytes": offset}).encode()
    header += b" " * (_padded(PREFIX.size + len(header)) - PREFIX.size - len(header))
    file.write(PREFIX.pack(MAGIC, len(header), zlib.crc32(header)) + header)
    for array in arrays.values():
        file.write(_raw(array))
        file.write(bytes(_padded(array.nbytes) - array.nbytes))


def _open(memory: mmap.mmap, key: str) -> Mapped | None:
    magic, length, checksum = PREFIX.unpack_from(memory)
    start = PREFIX.size + length
    raw = memory[PREFIX.size : start]
    if magic != MAGIC or zlib.crc32(raw) != checksum:
        return None
    header = json.loads(raw)
    if header["key"] != key or len(memory) != start + header["bytes"]:
        return None
    arrays = {
        name: np.frombuffer(memory, dtype, math.prod(shape), start + offset).reshape(shape)
        for name, (dtype, shape, offset, _) in header["arrays"].items()
    }
    return Mapped(header["facts"], arrays, {name: entry[3] for name, entry in header["arrays"].items()})


def _raw(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _padded(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT

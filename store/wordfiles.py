"""The files of a word index, looked at without opening it: nothing is written, not even a lock."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

from store.words import MARKER, SEGMENT_FILES, VERSION, WordsDamaged

FOOTER = struct.Struct("<II")
"""At the end of each of Tantivy's files: the length of the JSON before it, in which the checksum of the rest is; a magic number."""
MAGIC = 1337
BLOCK = 1 << 20
TRIES = 5


def rows_in(folder: Path) -> int:
    """How many rows a sound word index has. Raises WordsDamaged where a file is missing or a byte is not as it was written."""
    for left in reversed(range(TRIES)):
        try:
            return _rows_in(folder)
        except FileNotFoundError as error:  # a writer has merged its segments meanwhile, or a file is lost
            if not left:
                raise WordsDamaged(f"{folder}: {error}") from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
            raise WordsDamaged(f"{folder}: {error}") from error
    raise AssertionError


def _rows_in(folder: Path) -> int:
    marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    if marker.get("version") != VERSION:
        raise WordsDamaged(f"{folder}: version {marker.get('version')!r}, this is {VERSION}")
    rows = 0
    for segment in json.loads((folder / "meta.json").read_bytes())["segments"]:
        name, deletes = segment["segment_id"].replace("-", ""), segment["deletes"]
        ends = [*SEGMENT_FILES, *([f".{deletes['opstamp']}.del"] if deletes else [])]
        for end in ends:
            _check(folder / f"{name}{end}")
        rows += segment["max_doc"] - (deletes["num_deleted_docs"] if deletes else 0)
    return rows


def _check(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - FOOTER.size))
        length, magic = FOOTER.unpack(file.read())
        body = size - FOOTER.size - length
        if magic != MAGIC or body < 0:
            raise WordsDamaged(f"{path}: cut off")
        file.seek(body)
        wanted = json.loads(file.read(length))["crc"]
        file.seek(0)
        found = 0
        while body > 0 and (block := file.read(min(BLOCK, body))):
            found, body = zlib.crc32(block, found), body - len(block)
    if found != wanted:
        raise WordsDamaged(f"{path}: is not as it was written")

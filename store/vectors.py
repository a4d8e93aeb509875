"""The vector index: every live vector of one model in memory-mapped int8 segments, searched exactly.

The truth is the `vector` table; this folder can be deleted and rebuilt. A segment never changes once it is
written: additions make a new one, removals are noted in the manifest, and a replaced manifest is what makes
either of them count.
"""

from __future__ import annotations

import json
import os
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from store.filters import EVERYWHERE, Filter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Floats = NDArray[np.float32]

VERSION = 1
MANIFEST = "manifest.json"
MAGIC = b"WWTVEC01"
HEADER = struct.Struct("<8sQII8x")  # magic, rows, dimensions, checksum of the columns before the matrix
ROLES = ("speech", "tool", "subagent", "abandoned", "entry")
BLOCK = 8_192
"""Rows turned to float at once: 16 MB at 512 dimensions, more brings nothing."""
TAIL = 0.1
"""Small segments are merged into the large one when together they pass this part of it."""
MOST_SEGMENTS = 8


class VectorsDamaged(Exception):  # noqa: N818  # a state of the folder, answered by a rebuild
    """The folder is missing, of another version, or not what its manifest says: build a new one from the database."""


@dataclass(frozen=True, slots=True)
class VectorRow:
    """A chunk (its id) or an entry (its id, negative). `vector` is float16 bytes, as the database keeps it."""

    ref: int
    project: int
    session: int
    time: int
    role: str
    vector: bytes


@dataclass(frozen=True, slots=True)
class _Segment:
    name: str
    count: int
    size: int
    checksum: int
    dead: tuple[int, ...]
    refs: NDArray[np.int64] = field(repr=False)
    times: NDArray[np.int64] = field(repr=False)
    sessions: NDArray[np.int32] = field(repr=False)
    projects: NDArray[np.int32] = field(repr=False)
    scales: Floats = field(repr=False)
    roles: NDArray[np.uint8] = field(repr=False)
    matrix: NDArray[np.int8] = field(repr=False)

    def live(self) -> Mask:
        mask: Mask = _numpy().ones(self.count, dtype=bool)
        mask[list(self.dead)] = False
        return mask


COLUMNS = (
    ("refs", "<i8"),
    ("times", "<i8"),
    ("sessions", "<i4"),
    ("projects", "<i4"),
    ("scales", "<f4"),
    ("roles", "u1"),
)


def _numpy() -> Any:
    import numpy  # noqa: PLC0415  # 75 ms: only a search or a write of vectors pays it

    return numpy


class Vectors:
    """An opened vector index. One process writes at a time (the caller holds the lock); readers keep what they opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for attempt in range(3):
            try:
                self._open()
                return
            except FileNotFoundError as error:  # a writer replaced the manifest and its segments meanwhile
                if attempt == 2:
                    raise VectorsDamaged(f"{folder}: {error}") from error
                time.sleep(0.02)
            except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
                raise VectorsDamaged(f"{folder}: {error}") from error

    @classmethod
    def create(cls, folder: Path, model: str, dimensions: int) -> Vectors:
        folder.mkdir(parents=True, mode=0o700)
        _write_manifest(folder, model, dimensions, 0, [])
        return cls(folder)

    def _open(self) -> None:
        manifest = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["version"] != VERSION:
            raise VectorsDamaged(f"{self.folder}: version {manifest['version']!r}, this is {VERSION}")
        self.model = str(manifest["model"])
        self.dimensions = int(manifest["dimensions"])
        self.generation = int(manifest["generation"])
        self._segments = [_opened(self.folder, self.dimensions, part) for part in manifest["segments"]]

    def __len__(self) -> int:
        return sum(segment.count - len(segment.dead) for segment in self._segments)

    def refs(self) -> set[int]:
        return {int(ref) for segment in self._segments for ref in segment.refs[segment.live()]}

    def search(self, query: Floats, wanted: Filter, limit: int) -> list[tuple[int, float]]:
        """The nearest rows that pass the filter and are live, with their similarity, best first; exact."""
        np = _numpy()
        refs: list[Any] = []
        scores: list[Any] = []
        for segment in self._segments:
            ordinals = np.flatnonzero(segment.live() & _mask(segment, wanted))
            if len(ordinals):
                near = _similarity(segment, ordinals, query)
                best = np.argpartition(-near, limit - 1)[:limit] if len(near) > limit else slice(None)
                refs.append(segment.refs[ordinals[best]])
                scores.append(near[best])
        if not refs:
            return []
        every_ref, every_score = np.concatenate(refs), np.concatenate(scores)
        order = np.lexsort((every_ref, -every_score))[:limit]
        return [(int(every_ref[i]), float(every_score[i])) for i in order]

    def apply(self, rows: Sequence[VectorRow], gone: Iterable[int] = ()) -> None:
        """Put these rows in the place of what was known by their refs, and take the `gone` ones out."""
        np = _numpy()
        out = np.array(sorted({*gone, *(row.ref for row in rows)}), dtype=np.int64)
        if not len(out):
            return
        segments = [_without(segment, out) for segment in self._segments]
        generation = self.generation + 1
        if rows:
            segments.append(
                _written(self.folder, f"{generation:08d}", self.dimensions, _columns(rows, self.dimensions))
            )
        segments = _compacted(self.folder, generation, self.dimensions, segments)
        self._replace(generation, segments)

    def compact(self) -> None:
        """Everything in one segment, without the dead rows."""
        generation = self.generation + 1
        self._replace(generation, _merge(self.folder, generation, self.dimensions, self._segments))

    def _replace(self, generation: int, segments: list[_Segment]) -> None:
        _write_manifest(self.folder, self.model, self.dimensions, generation, segments)
        names = {segment.name for segment in segments}
        self._segments, self.generation = segments, generation
        for path in self.folder.glob("*.seg"):
            if path.stem not in names:
                with suppress(OSError):  # Windows keeps a file that a reader has mapped; the next write tries again
                    path.unlink()

    def verify(self) -> bool:
        """Whether every byte is as it was written; `wwt doctor` asks, a search does not read that much."""
        return all(_checksum(self.folder / f"{s.name}.seg") == s.checksum for s in self._segments)


# --- search ----------------------------------------------------------------------------------------------------------


def _mask(segment: _Segment, wanted: Filter) -> Mask:
    """Which rows the filter admits, from the columns beside the matrix: no row of the database is read."""
    np = _numpy()
    entry: Mask = segment.roles == ROLES.index("entry")
    keep: Mask = np.zeros(segment.count, dtype=bool)
    if wanted.chunks:
        allowed = [ROLES.index(role) for role in wanted.roles]
        chunks = np.isin(segment.roles, allowed)
        if wanted.sessions is not None:
            chunks &= np.isin(segment.sessions, list(wanted.sessions))
        keep |= chunks
    if wanted.entries:
        entries = entry
        if wanted.entry_ids is not None:
            entries = entries & np.isin(segment.refs, [-ref for ref in wanted.entry_ids])
        keep |= entries
    if wanted.projects is not None:
        in_project = np.isin(segment.projects, list(wanted.projects))
        keep &= in_project | (entry & (segment.projects == EVERYWHERE))
    if wanted.since is not None:
        keep &= segment.times >= wanted.since
    if wanted.until is not None:
        keep &= segment.times <= wanted.until
    return keep


def _similarity(segment: _Segment, ordinals: NDArray[np.intp], query: Floats) -> Floats:
    np = _numpy()
    whole = len(ordinals) == segment.count
    scores = np.empty(len(ordinals), dtype=np.float32)
    for first in range(0, len(ordinals), BLOCK):
        last = min(first + BLOCK, len(ordinals))
        # Slices of the map are views; a selection is copied, which is cheaper than the rows it leaves out.
        rows = segment.matrix[first:last] if whole else segment.matrix[ordinals[first:last]]
        scores[first:last] = rows.astype(np.float32) @ query
    near: Floats = scores * (segment.scales if whole else segment.scales[ordinals])
    return near


# --- segments --------------------------------------------------------------------------------------------------------


def quantised(vectors: Floats) -> tuple[NDArray[np.int8], Floats]:
    """int8 rows and the factor of each: row times factor is the vector, within 1/254 of its largest component."""
    np = _numpy()
    scales = np.maximum(np.abs(vectors).max(axis=1), 1e-12).astype(np.float32) / 127
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales


def _columns(rows: Sequence[VectorRow], dimensions: int) -> dict[str, Any]:
    np = _numpy()
    latest = list({row.ref: row for row in rows}.values())
    vectors = np.frombuffer(b"".join(row.vector for row in latest), dtype="<f2").reshape(len(latest), dimensions)
    matrix, scales = quantised(vectors.astype(np.float32))
    return {
        "refs": np.array([row.ref for row in latest], dtype="<i8"),
        "times": np.array([row.time for row in latest], dtype="<i8"),
        "sessions": np.array([row.session for row in latest], dtype="<i4"),
        "projects": np.array([row.project for row in latest], dtype="<i4"),
        "scales": scales.astype("<f4"),
        "roles": np.array([ROLES.index(row.role) for row in latest], dtype="u1"),
        "matrix": [matrix],
    }


def _written(folder: Path, name: str, dimensions: int, columns: dict[str, Any]) -> _Segment:
    count = len(columns["refs"])
    head = b"".join(columns[column].tobytes() for column, _ in COLUMNS)
    path = folder / f"{name}.seg"
    with path.open("wb") as file:
        file.write(HEADER.pack(MAGIC, count, dimensions, zlib.crc32(head)))
        file.write(head)
        for block in columns["matrix"]:
            file.write(block.tobytes())
        file.flush()
        os.fsync(file.fileno())
    path.chmod(0o600)
    part = {"name": name, "count": count, "size": path.stat().st_size, "crc": _checksum(path), "dead": []}
    return _opened(folder, dimensions, part)


def _opened(folder: Path, dimensions: int, part: dict[str, Any]) -> _Segment:
    np = _numpy()
    path = folder / f"{part['name']}.seg"
    count = int(part["count"])
    if path.stat().st_size != part["size"] or part["size"] != _size(count, dimensions):
        raise VectorsDamaged(f"{path}: {path.stat().st_size} bytes where {part['size']} were written")
    with path.open("rb") as file:
        magic, rows, width, checksum = HEADER.unpack(file.read(HEADER.size))
        head = file.read(_size(count, 0) - HEADER.size)
    if (magic, rows, width, checksum) != (MAGIC, count, dimensions, zlib.crc32(head)):
        raise VectorsDamaged(f"{path}: is not the segment that the manifest names")
    columns: dict[str, Any] = {}
    at = 0
    for name, kind in COLUMNS:
        columns[name] = np.frombuffer(head, dtype=kind, count=count, offset=at)
        at += columns[name].nbytes
    shape = (count, dimensions)
    matrix = (
        np.memmap(path, dtype=np.int8, mode="r", offset=HEADER.size + at, shape=shape)
        if count
        else np.empty(shape, np.int8)
    )
    dead = tuple(int(i) for i in part["dead"] if 0 <= int(i) < count)
    return _Segment(str(part["name"]), count, int(part["size"]), int(part["crc"]), dead, matrix=matrix, **columns)


def _size(count: int, dimensions: int) -> int:
    return HEADER.size + count * (8 + 8 + 4 + 4 + 4 + 1 + dimensions)


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _without(segment: _Segment, refs: NDArray[np.int64]) -> _Segment:
    np = _numpy()
    found = np.flatnonzero(np.isin(segment.refs, refs))
    if not len(found):
        return segment
    return replace(segment, dead=tuple(sorted({*segment.dead, *(int(i) for i in found)})))


def _compacted(folder: Path, generation: int, dimensions: int, segments: list[_Segment]) -> list[_Segment]:
    """The segments as few and as free of dead rows as is worth the writing."""
    if not segments:
        return []
    largest = max(segments, key=lambda segment: segment.count)
    rest = [segment for segment in segments if segment is not largest]
    tail = sum(segment.count for segment in rest) + len(largest.dead)
    if tail > largest.count * TAIL and (len(segments) > 1 or largest.dead):
        return _merge(folder, generation, dimensions, segments)
    if len(segments) > MOST_SEGMENTS:
        return [largest, *_merge(folder, generation, dimensions, rest)]
    return segments


def _merge(folder: Path, generation: int, dimensions: int, segments: list[_Segment]) -> list[_Segment]:
    np = _numpy()
    masks = [segment.live() for segment in segments]
    if not any(mask.any() for mask in masks):
        return []

    def blocks() -> Iterator[Any]:
        for segment, mask in zip(segments, masks, strict=True):
            for first in range(0, segment.count, BLOCK):
                yield segment.matrix[first : first + BLOCK][mask[first : first + BLOCK]]

    pairs = list(zip(segments, masks, strict=True))
    columns = {
        name: np.concatenate([getattr(segment, name)[mask] for segment, mask in pairs]).astype(kind)
        for name, kind in COLUMNS
    }
    return [_written(folder, f"{generation:08d}m", dimensions, {**columns, "matrix": blocks()})]


def _write_manifest(folder: Path, model: str, dimensions: int, generation: int, segments: list[_Segment]) -> None:
    parts = [
        {"name": s.name, "count": s.count, "size": s.size, "crc": s.checksum, "dead": list(s.dead)} for s in segments
    ]
    manifest = {
        "version": VERSION,
        "model": model,
        "dimensions": dimensions,
        "generation": generation,
        "count": sum(s.count - len(s.dead) for s in segments),
        "segments": parts,
    }
    temporary = folder / f"{MANIFEST}.tmp"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(manifest, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / MANIFEST)

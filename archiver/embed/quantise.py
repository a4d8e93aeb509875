"""Vectors as bytes: 16-bit floats for keeping, 8-bit integers with a scale a row for scanning.

Rows are vectors of `dimensions` numbers, stored one after another, little-endian on every machine.
"""

from __future__ import annotations

import archiver.embed.threads  # noqa: F401  # before numpy: it decides on the threads

# isort: split
import numpy as np
from numpy.typing import NDArray

from archiver.embed.protocol import Floats

Bytes8 = NDArray[np.int8]

HALF = np.dtype("<f2")
SINGLE = np.dtype("<f4")
STEPS = 127


def to_half(vectors: Floats) -> bytes:
    """float32[d] or float32[n, d] as 2 bytes a number. Each is off by at most 1/2048 of itself (or 2**-25 near 0)."""
    return np.asarray(vectors).astype(HALF).tobytes()


def from_half(blob: bytes, dimensions: int) -> Floats:
    """float32[n, dimensions]. Raises ValueError when the bytes are not a whole number of rows."""
    return np.frombuffer(blob, HALF).reshape(-1, dimensions).astype(np.float32)


def to_int8(vectors: Floats) -> tuple[Bytes8, Floats]:
    """float32[n, d] as int8[n, d] and scales float32[n]; `numbers * scales[:, None]` is the vectors again.

    A row's scale is its greatest magnitude / 127; each number is off by at most half a scale. Zeros have scale 0.
    """
    vectors = np.asarray(vectors, np.float32)
    # In 64 bits: dividing a tiny row by its own 32-bit scale could leave the range of int8.
    greatest = np.abs(vectors).max(axis=1, initial=0.0).astype(np.float64)
    unit = np.where(greatest > 0, greatest, 1.0)[:, None]
    numbers = np.rint(vectors / unit * STEPS).astype(np.int8)
    return numbers, (greatest / STEPS).astype(np.float32)


def from_int8(numbers: Bytes8, scales: Floats) -> Floats:
    """float32[n, d] of int8[n, d] and float32[n]."""
    return numbers.astype(np.float32) * scales[:, None]


def pack_int8(vectors: Floats) -> bytes:
    """float32[n, d] as one blob: n scales (float32), then n rows of d bytes (int8). n * (d + 4) bytes."""
    numbers, scales = to_int8(vectors)
    return scales.astype(SINGLE).tobytes() + numbers.tobytes()


def unpack_int8(blob: bytes, dimensions: int) -> tuple[Bytes8, Floats]:
    """int8[n, dimensions] and scales float32[n], read in place. Raises ValueError when the bytes do not add up."""
    rows, rest = divmod(len(blob), dimensions + SINGLE.itemsize)
    if rest:
        raise ValueError(f"{len(blob)} bytes are not rows of {dimensions} numbers and a scale")
    scales = np.frombuffer(blob, SINGLE, rows)
    numbers = np.frombuffer(blob, np.int8, rows * dimensions, rows * SINGLE.itemsize).reshape(rows, dimensions)
    return numbers, scales

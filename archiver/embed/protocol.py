"""What an embedder is."""

from __future__ import annotations

from typing import Protocol

import archiver.embed.threads  # noqa: F401  # before numpy: it decides on the threads

# isort: split
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Embedder(Protocol):
    """Text to vectors of unit length, whose dot product is their similarity.

    Any string is accepted. One with nothing to read in it (empty, blanks, control characters only) gives a vector
    of zeros: it resembles nothing, and callers do not store it.
    """

    @property
    def model(self) -> str:
        """Key of the vector space: name, weights and the way of use. Vectors of two keys are never compared."""

    @property
    def dimensions(self) -> int: ...

    def passages(self, texts: list[str]) -> Floats:
        """One row a text, float32[n, dimensions], in the order given."""

    def query(self, text: str) -> Floats:
        """float32[dimensions]."""

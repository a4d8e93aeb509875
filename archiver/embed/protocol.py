"""What an embedder is."""

from __future__ import annotations

import unicodedata
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


def readable(text: str) -> str:
    """The text as every engine can take it: no lone surrogates, composed (NFC); empty when there is nothing to read."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # Halves that belong together become their character, a lone one U+FFFD.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = unicodedata.normalize("NFC", text)
    # A blank is the only printable character among the separators.
    return text if any(char not in " \ufffd" and char.isprintable() for char in text) else ""

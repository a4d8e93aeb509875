"""Text as every embedding engine can take it, whatever a transcript held."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import archiver.embed.threads  # noqa: F401  # before numpy: it decides on the threads

# isort: split
import numpy as np

from archiver.embed.protocol import Floats


def readable(text: str) -> str:
    """No lone surrogates, composed (NFC). Empty when there is nothing to read: blanks and control characters only."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # Halves that belong together become their character, a lone one U+FFFD.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = unicodedata.normalize("NFC", text)
    # Of all separators and control characters, Python calls only the blank printable.
    return text if any(char not in " \ufffd" and char.isprintable() for char in text) else ""


def embed_readable(texts: list[str], dimensions: int, encode: Callable[[list[str]], Floats]) -> Floats:
    """`encode` over the texts that can be read, made readable; zeros for the others."""
    prepared = [readable(text) for text in texts]
    spoken = [at for at, text in enumerate(prepared) if text]
    vectors = np.zeros((len(texts), dimensions), np.float32)
    if spoken:
        vectors[spoken] = encode([prepared[at] for at in spoken])
    return vectors

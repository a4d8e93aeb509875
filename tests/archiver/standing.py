"""How far the indexes agree with the database."""

from __future__ import annotations

from dataclasses import dataclass

from archiver.index import Index
from store import lookup


@dataclass(frozen=True, slots=True)
class Standing:
    """`words` and `vectors` are None when they cannot be read."""

    rows: int
    words: int | None
    vectors: int | None
    waiting: int
    unembedded: int
    """Texts without a vector of the model in use; 0 where there is no model."""
    intact: bool
    """Whether every byte of the vector index is as it was written."""


def standing_of(index: Index) -> Standing:
    words, vectors, embedder = index.words(), index.vectors(), index._embedder()
    return Standing(
        rows=lookup.count(index.reader),
        words=None if words is None else len(words),
        vectors=None if vectors is None else len(vectors),
        waiting=lookup.waiting_count(index.reader, None),
        unembedded=0 if embedder is None else lookup.unembedded_count(index.reader, embedder.model),
        intact=vectors is None or vectors.verify(),
    )

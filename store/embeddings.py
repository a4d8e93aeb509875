"""Writes of the `vector` table: the truth that the vector index is made from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from store.tables import chunk, entry, outbox, vector


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of one text: float16 of the whole, int8 and float32 scales of its `n` sentences."""

    hash: str
    whole: bytes
    sentences: bytes
    scales: bytes
    n: int


def keep(tx: Connection, model: str, rows: Sequence[Embedded]) -> None:
    """Store the vectors of texts that are still there, and have the vector index hear of all that share them."""
    hashes = [row.hash for row in rows]
    alive = _used(tx, hashes)
    values = [
        {"hash": r.hash, "model": model, "chunk": r.whole, "sentences": r.sentences, "scales": r.scales, "n": r.n}
        for r in rows
        if r.hash in alive  # forgotten while it was being embedded
    ]
    if not values:
        return
    tx.execute(insert(vector).on_conflict_do_nothing(), values)
    news = [
        {"kind": kind, "ref": ref, "op": "put", "applied_words": 1}
        for kind, table in (("chunk", chunk), ("entry", entry))
        for ref in tx.execute(select(table.c.id).where(table.c.hash.in_(hashes))).scalars()
    ]
    tx.execute(outbox.insert(), news)


def drop_unshared(tx: Connection, hashes: Iterable[str]) -> None:
    """Forget the vectors of texts that no chunk and no entry has any more. Call it after the rows are gone."""
    wanted = sorted(set(hashes))
    for start in range(0, len(wanted), 500):
        batch = wanted[start : start + 500]
        tx.execute(delete(vector).where(vector.c.hash.in_(set(batch) - _used(tx, batch))))


def drop_other_models(tx: Connection, model: str, limit: int) -> int:
    """Forget up to `limit` vectors of other models; returns how many, so that callers can go on in small transactions."""
    others = tx.execute(select(vector.c.hash, vector.c.model).where(vector.c.model != model).limit(limit)).all()
    for name in {row.model for row in others}:
        gone = [row.hash for row in others if row.model == name]
        for start in range(0, len(gone), 500):
            tx.execute(delete(vector).where(vector.c.model == name, vector.c.hash.in_(gone[start : start + 500])))
    return len(others)


def _used(tx: Connection, hashes: Sequence[str]) -> set[str]:
    used = set(tx.execute(select(chunk.c.hash).where(chunk.c.hash.in_(hashes))).scalars())
    return used | set(tx.execute(select(entry.c.hash).where(entry.c.hash.in_(hashes))).scalars())

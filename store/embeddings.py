"""Writes of the `vector` table: the truth that the vector index is made from; and which model its vectors are of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, or_, select
from sqlalchemy.dialects.sqlite import insert

from store.lookup import IN_USE, NEXT_MODEL
from store.masking import drop_meta, get_meta, set_meta
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
    """Store the vectors of texts that are still there, and have the vector index hear of all that share them.

    An index of another model hears nothing: it is made from this table once every text has its vector.
    """
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
    if get_meta(tx, IN_USE) not in (None, model):
        return
    news = [
        {"kind": kind, "ref": ref, "op": "put", "applied_words": 1}
        for kind, table in (("chunk", chunk), ("entry", entry))
        for ref in tx.execute(select(table.c.id).where(table.c.hash.in_(hashes))).scalars()
    ]
    tx.execute(outbox.insert(), news)


def in_use(tx: Connection) -> str | None:
    """The model of the vector index; None in an archive that has none yet."""
    return get_meta(tx, IN_USE)


def use(tx: Connection, model: str) -> None:
    """The vector index is made of this model's vectors from now on: whoever keeps one has to tell it."""
    set_meta(tx, IN_USE, model)


def announce(tx: Connection, model: str) -> None:
    """Another model is being prepared: its vectors stay although they are of no use yet."""
    set_meta(tx, NEXT_MODEL, model)


def withdraw(tx: Connection) -> None:
    """No other model is being prepared any more."""
    drop_meta(tx, NEXT_MODEL)


def drop_unshared(tx: Connection, hashes: Iterable[str]) -> None:
    """Forget the vectors of texts that no chunk and no entry has any more. Call it after the rows are gone."""
    wanted = sorted(set(hashes))
    for start in range(0, len(wanted), 500):
        batch = wanted[start : start + 500]
        tx.execute(delete(vector).where(vector.c.hash.in_(set(batch) - _used(tx, batch))))


def drop_other_models(tx: Connection, model: str, limit: int) -> int:
    """Forget up to `limit` vectors of models that are neither this one nor announced; returns how many, so that callers
    can go on in small transactions."""
    kept = {model, get_meta(tx, NEXT_MODEL) or model}
    others = tx.execute(select(vector.c.hash, vector.c.model).where(vector.c.model.not_in(kept)).limit(limit)).all()
    for name in {row.model for row in others}:
        _drop(tx, name, [row.hash for row in others if row.model == name])
    return len(others)


def drop_misshapen(tx: Connection, model: str, dimensions: int) -> int:
    """Forget vectors of the model whose bytes do not add up to its dimensions; they are embedded anew. How many."""
    v = vector.c
    wrong = or_(
        func.length(v.chunk) != 2 * dimensions,
        func.length(v.sentences) != v.n * dimensions,
        func.length(v.scales) != 4 * v.n,
    )
    hashes = list(tx.execute(select(v.hash).where(v.model == model, wrong)).scalars())
    _drop(tx, model, hashes)
    return len(hashes)


def drop_orphans(tx: Connection) -> int:
    """Forget vectors of texts that no chunk and no entry has. How many."""
    hashes = select(chunk.c.hash).union(select(entry.c.hash))
    return tx.execute(delete(vector).where(vector.c.hash.not_in(hashes))).rowcount


def _drop(tx: Connection, model: str, hashes: Collection[str]) -> None:
    listed = list(hashes)
    for start in range(0, len(listed), 500):
        tx.execute(delete(vector).where(vector.c.model == model, vector.c.hash.in_(listed[start : start + 500])))


def _used(tx: Connection, hashes: Sequence[str]) -> set[str]:
    used = set(tx.execute(select(chunk.c.hash).where(chunk.c.hash.in_(hashes))).scalars())
    return used | set(tx.execute(select(entry.c.hash).where(entry.c.hash.in_(hashes))).scalars())

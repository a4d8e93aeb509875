"""Chunks: the units that are searched. Only a changed tail is written, and only what changed is re-indexed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from store.embeddings import drop_unshared
from store.outbox import enqueue
from store.records import SafeText
from store.tables import chunk

AT_ONCE = 500
"""Pieces that are held and written at a time."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk before it has an id. `part` numbers the pieces of one long turn; `role` says who may see it, see tables."""

    first_ord: int
    last_ord: int
    part: int
    role: str
    heading: SafeText
    text: SafeText
    hash: str
    time: int | None


@dataclass(frozen=True, slots=True)
class Stored:
    id: int
    first_ord: int
    last_ord: int
    part: int
    role: str
    hash: str


def of_session(tx: Connection, session_id: int, *, from_ord: int = 0) -> list[Stored]:
    columns = (chunk.c.id, chunk.c.first_ord, chunk.c.last_ord, chunk.c.part, chunk.c.role, chunk.c.hash)
    rows = tx.execute(
        select(*columns)
        .where(chunk.c.session_id == session_id, chunk.c.first_ord >= from_ord)
        .order_by(chunk.c.first_ord, chunk.c.part, chunk.c.id)
    )
    return [Stored(*row) for row in rows]


def replace(tx: Connection, session_id: int, old: Sequence[Stored], new: Iterable[Piece]) -> int:
    """Make the chunks `old` of a session into `new`; equal ones keep their ids. Returns how many were added."""
    spare: dict[tuple[int, int, str, str], list[int]] = {}
    for row in old:
        spare.setdefault((row.first_ord, row.part, row.role, row.hash), []).append(row.id)
    added = 0
    pieces = iter(new)
    while batch := list(islice(pieces, AT_ONCE)):
        fresh, moved = [], []
        for piece in batch:
            ids = spare.get((piece.first_ord, piece.part, piece.role, piece.hash))
            if ids:
                moved.append({"b_id": ids.pop(), "b_last": piece.last_ord})
            else:
                fresh.append(piece)
        if moved:
            tx.execute(update(chunk).where(chunk.c.id == bindparam("b_id")).values(last_ord=bindparam("b_last")), moved)
        _insert(tx, session_id, fresh)
        added += len(fresh)
    remove(tx, [id_ for ids in spare.values() for id_ in ids])
    return added


def _insert(tx: Connection, session_id: int, fresh: Sequence[Piece]) -> None:
    rows = [
        {
            "session_id": session_id,
            "first_ord": piece.first_ord,
            "last_ord": piece.last_ord,
            "part": piece.part,
            "role": piece.role,
            "heading": piece.heading,
            "text": piece.text,
            "hash": piece.hash,
            "time": piece.time,
        }
        for piece in fresh
    ]
    if rows:
        enqueue(tx, "chunk", tx.execute(insert(chunk).returning(chunk.c.id), rows).scalars().all(), "put")


def remove(tx: Connection, ids: Iterable[int]) -> None:
    """Drop chunks, their index rows, and the vectors that no other chunk or entry shares."""
    doomed = list(ids)
    for start in range(0, len(doomed), 500):
        batch = doomed[start : start + 500]
        hashes = set(tx.execute(select(chunk.c.hash).where(chunk.c.id.in_(batch))).scalars())
        tx.execute(delete(chunk).where(chunk.c.id.in_(batch)))
        drop_unshared(tx, hashes)
    enqueue(tx, "chunk", doomed, "delete")


def last_id(tx: Connection, session_id: int) -> int:
    """The highest id among the session's chunks, 0 without any. Ids only grow: what is added later stands above it."""
    return tx.execute(select(func.max(chunk.c.id)).where(chunk.c.session_id == session_id)).scalar() or 0


def reindex(tx: Connection, session_id: int, up_to: int | None = None) -> None:
    """Have the session's chunks (those with ids up to `up_to`) indexed again: its title or project changed, which their
    index rows carry."""
    held = select(chunk.c.id).where(chunk.c.session_id == session_id)
    if up_to is not None:
        held = held.where(chunk.c.id <= up_to)
    enqueue(tx, "chunk", tx.execute(held).scalars().all(), "put")

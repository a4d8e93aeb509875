"""What the derived indexes still have to hear about: rows written in the same transaction as the truth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, and_, delete, exists, func, insert, select, update

from store.tables import meta, outbox

KEPT = "words_anew"
"""Where the database notes that a word index is made beside the one in use: what the one has applied stays for the other."""

_DONE = and_(outbox.c.applied_words == 1, outbox.c.applied_vectors == 1)


def enqueue(tx: Connection, kind: str, refs: Iterable[int], op: str) -> None:
    """Tell both indexes that these chunks or entries (`kind`) are to be `put` or `delete`d."""
    rows = [{"kind": kind, "ref": ref, "op": op} for ref in refs]
    if rows:
        tx.execute(insert(outbox), rows)


def applied(tx: Connection, ids: Sequence[int], *, words: bool, vectors: bool) -> None:
    """Note which index has applied these rows; those that both have are done, and go unless they are `KEPT`."""
    for start in range(0, len(ids), 500):
        batch = outbox.c.id.in_(ids[start : start + 500])
        if words:
            tx.execute(update(outbox).where(batch).values(applied_words=1))
        if vectors:
            tx.execute(update(outbox).where(batch).values(applied_vectors=1))
        tx.execute(delete(outbox).where(batch, _DONE, ~exists().where(meta.c.key == KEPT)))


def last(tx: Connection) -> int:
    """The id of the newest row, 0 where there is none: what is enqueued from now on has a higher one."""
    return int(tx.execute(select(func.coalesce(func.max(outbox.c.id), 0))).scalar_one())


def settle(tx: Connection) -> None:
    """Drop what both indexes have applied and was `KEPT`."""
    tx.execute(delete(outbox).where(_DONE))

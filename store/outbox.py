"""What the derived indexes still have to hear about: rows written in the same transaction as the truth."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, insert

from store.tables import outbox


def enqueue(tx: Connection, kind: str, refs: Iterable[int], op: str) -> None:
    """Tell both indexes that these chunks or entries (`kind`) are to be `put` or `delete`d."""
    rows = [{"kind": kind, "ref": ref, "op": op} for ref in refs]
    if rows:
        tx.execute(insert(outbox), rows)

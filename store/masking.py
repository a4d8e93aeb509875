"""Masking stored text again after the secret rules changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, Table, bindparam, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from store.records import SafeText
from store.tables import Safe, chunk, meta, metadata

Redact = Callable[[str], SafeText]
BATCH = 1_000


def tables() -> Iterator[Table]:
    """Tables that hold text of transcripts or people. Chunks are left out: they are cut anew from their turns."""
    for table in metadata.sorted_tables:
        if table is not chunk and any(isinstance(column.type, Safe) for column in table.columns):
            yield table


def remask(tx: Connection, table: Table, redact: Redact, after: int) -> tuple[list[Any], int | None]:
    """Mask a batch of a table's rows anew, those behind row id `after`. Returns the rows that changed, and the last row id or None at the end."""
    columns = [column for column in table.columns if isinstance(column.type, Safe)]
    rowid = table.c.get("id", None)
    rows = tx.execute(
        select(table).where(rowid > after).order_by(rowid).limit(BATCH) if rowid is not None else select(table)
    ).all()
    changed = []
    for row in rows:
        values = {
            c.name: new for c in columns if (old := getattr(row, c.name)) is not None and (new := redact(old)) != old
        }
        if values:
            keys = list(table.primary_key.columns)
            same = [key == bindparam(f"b_{key.name}", getattr(row, key.name)) for key in keys]
            tx.execute(update(table).where(*same).values(**values))
            changed.append(row)
    return changed, (rows[-1].id if rows and rowid is not None else None)


def set_meta(tx: Connection, key: str, value: str) -> None:
    statement = upsert(meta).values(key=key, value=value)
    tx.execute(statement.on_conflict_do_update(index_elements=["key"], set_={"value": value}))

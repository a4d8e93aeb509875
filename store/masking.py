"""Masking stored text again after the secret rules changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, Row, Table, and_, bindparam, delete, select, update
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.exc import IntegrityError

from store.records import SafeText
from store.tables import Safe, chunk, meta, metadata, project, session

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
            _put(tx, table, row, values)
            changed.append(row)
    return changed, (rows[-1].id if rows and rowid is not None else None)


def _put(tx: Connection, table: Table, row: Row[Any], values: dict[str, Any]) -> None:
    """Write a row's masked texts. Two rows that differed in a secret alone are the same afterwards."""
    same = and_(*(key == bindparam(f"b_{key.name}", getattr(row, key.name)) for key in table.primary_key.columns))
    try:
        with tx.begin_nested():
            tx.execute(update(table).where(same).values(**values))
    except IntegrityError:
        if table not in (project, session):
            tx.execute(delete(table).where(same))  # a tag, a path, a quote: the other row says it
            return
        # Two projects or sessions stay two.
        told_apart = {name: SafeText(f"{text}#{row.id}") for name, text in values.items()}
        tx.execute(update(table).where(same).values(**told_apart))


def get_meta(tx: Connection, key: str) -> str | None:
    return tx.execute(select(meta.c.value).where(meta.c.key == key)).scalar()


def drop_meta(tx: Connection, key: str, value: str | None = None) -> bool:
    """Remove the key, or remove it if it still has this value. Whether it was there."""
    same = [] if value is None else [meta.c.value == value]
    return bool(tx.execute(delete(meta).where(meta.c.key == key, *same)).rowcount)


def set_meta(tx: Connection, key: str, value: str) -> None:
    statement = upsert(meta).values(key=key, value=value)
    tx.execute(statement.on_conflict_do_update(index_elements=["key"], set_={"value": value}))

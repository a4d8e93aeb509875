"""Repairs of rows that are at odds with one another or with themselves, so that no word that is still there is lost."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, literal_column, select, update

from store import chunks, knowledge
from store.health import decodable, undecodable_in
from store.outbox import enqueue
from store.records import SafeText
from store.tables import chunk, entry, metadata, project, session, text_columns, turn

WORDS = {("turn", "session"), ("chunk", "session"), ("session", "project"), ("entry", "project")}
"""Rows that hold words, and what they hang on: that is made anew rather than they dropped."""


def reconnect(tx: Connection) -> Counter[str]:
    """Leave no row that points to one that is gone. How many were `restored` (what they hang on), `unlinked`, `dropped`."""
    done: Counter[str] = Counter()
    for table, rowid, parent, column, _ in _dangling(tx):
        if (table, parent) in WORDS:
            wanted = tx.execute(select(metadata.tables[table].c[column]).where(_row(rowid))).scalar()
            done["restored"] += _restore(tx, parent, int(wanted)) if wanted is not None else 0
    for table, rowid, _, column, on_delete in _dangling(tx):
        if on_delete == "SET NULL":
            tx.execute(update(metadata.tables[table]).where(_row(rowid)).values({column: None}))
            if table == "entry":
                knowledge.reindex(tx, rowid)
            done["unlinked"] += 1
        else:
            done["dropped"] += tx.execute(delete(metadata.tables[table]).where(_row(rowid))).rowcount
    return done


def _dangling(tx: Connection) -> list[tuple[str, int, str, str, str]]:
    """(table, row, other table, column, what becomes of it when the other goes) of each row that points to nothing."""
    keys: dict[str, dict[int, Any]] = {}
    found = []
    for table, rowid, parent, number in tx.exec_driver_sql("PRAGMA foreign_key_check").all():
        if table not in keys:
            keys[table] = {row[0]: row for row in tx.exec_driver_sql(f"PRAGMA foreign_key_list({table})")}
        row = keys[table][number]
        found.append((str(table), int(rowid), str(parent), str(row[3]), str(row[6])))
    return found


def _row(rowid: int) -> Any:
    return literal_column("rowid") == rowid


def _restore(tx: Connection, table: str, number: int) -> int:
    """The row of this number anew, under a name that says so, unless an earlier one had it restored."""
    named = metadata.tables[table]
    if tx.execute(select(named.c.id).where(named.c.id == number)).first():
        return 0
    name = SafeText(f"recovered-{number}")
    if table == "project":
        tx.execute(insert(project).values(id=number, key=name, name=name))
        return 1
    agent = tx.execute(select(turn.c.agent).where(turn.c.session_id == number)).scalar() or "unknown"
    first, last = tx.execute(
        select(func.min(turn.c.time), func.max(turn.c.time)).where(turn.c.session_id == number)
    ).one()
    values = {"agent": agent, "external_id": name, "started_at": first, "ended_at": last, "status": "ended"}
    tx.execute(insert(session).values(id=number, **values))
    chunks.reindex(tx, number)
    return 1


def make_keys(tx: Connection) -> None:
    """SQLite's own indexes anew. Raises IntegrityError where, without them, two rows came to claim the same key."""
    tx.exec_driver_sql("REINDEX")


def make_readable(tx: Connection) -> int:
    """Put U+FFFD where bytes are no text, and have what indexes show of it read again. Returns how many rows were so."""
    done = 0
    for table in metadata.sorted_tables:
        broken = [row[0] for row in tx.exec_driver_sql(undecodable_in(table)) if not decodable(row[1])]
        for number in broken:
            _make_readable(tx, table, number)
        done += len(broken)
        if table is chunk:
            enqueue(tx, "chunk", broken, "put")
        elif table is entry:
            for number in broken:
                knowledge.reindex(tx, number)
        elif table is session:
            for number in broken:
                chunks.reindex(tx, number)
    return done


def _make_readable(tx: Connection, table: Table, number: int) -> None:
    for name in text_columns(table):
        raw = tx.exec_driver_sql(
            f'SELECT CAST("{name}" AS BLOB) FROM {table.name} WHERE rowid = ?', (number,)
        ).scalar_one()
        if not decodable(raw):
            # What stands in the database was masked before; taking bytes away uncovers nothing.
            tx.execute(update(table).where(_row(number)).values({name: SafeText(raw.decode("utf-8", "replace"))}))

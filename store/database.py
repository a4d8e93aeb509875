"""An opened archive database: connections and transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import OperationalError

from store.trouble import explained

BUSY_MS = 15_000
BUSY_TRIES = 6
"""Times `BUSY_MS` that a transaction waits to begin."""


def engine(path: Path) -> Engine:
    """An engine whose every transaction is BEGIN IMMEDIATE.

    A deferred transaction that reads and then writes fails at once when another writer was faster;
    an immediate one waits its turn.
    """
    made = create_engine(f"sqlite:///{path}", connect_args={"timeout": BUSY_MS / 1000})

    @event.listens_for(made, "connect")
    def _connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None
        for pragma in (
            f"busy_timeout={BUSY_MS}",
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "secure_delete=ON",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(made, "begin")
    def _begin(connection: Connection) -> None:
        driver = connection.connection.driver_connection
        assert driver is not None
        # A first archive holds the lock as long as its largest file takes to read. Between tries Ctrl-C is heard.
        for left in reversed(range(BUSY_TRIES)):
            try:
                driver.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if not left or "locked" not in str(error):
                    raise
            else:
                return

    return made


class Database:
    """The truth about what was said and what is known. One writer at a time; others wait."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._engine = engine(path)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One unit of work: all of it lands, or none of it does."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except Exception as error:
            raise translated(error, self.path) from error

    def compact(self) -> bool:
        """Write the file anew. Overwriting what is deleted (`secure_delete`) is not enough to be rid of it: what was moved
        from page to page before leaves copies in their gaps. False while another writes, or where there is no room."""
        with self._engine.connect() as connection:
            connection.execute(text("COMMIT"))
            try:
                connection.execute(text("VACUUM"))
            except OperationalError:
                return False
            finally:
                connection.execute(text("BEGIN"))
        return True

    def checkpoint(self) -> bool:
        """Fold the write-ahead log into the file, so that what was deleted is in neither. False while a reader holds it."""
        with self._engine.connect() as connection:
            connection.execute(text("COMMIT"))
            held = connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)")).scalar_one()
            connection.execute(text("BEGIN"))
        return not held

    def close(self) -> None:
        self._engine.dispose()


def translated(error: Exception, path: Path) -> Exception:
    """The same trouble as a WwtError where a person can do something about it."""
    cause = getattr(error, "orig", None) or error
    return (explained(cause, path) if isinstance(cause, sqlite3.Error) else None) or error

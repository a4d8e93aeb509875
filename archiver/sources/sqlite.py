"""Databases of agents, read so that nothing in them or beside them changes."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from archiver.sources.jsonl import open_regular

MAGIC = b"SQLite format 3\x00"
BUSY_SECONDS = 5.0
"""How long a reader waits for a writer before the database counts as locked."""

_UNSHARED = "win32-none" if sys.platform == "win32" else "unix-none"
"""A way into files that takes no locks and shares no memory."""


class Database:
    """An open database. What SQLite has against it is an OSError that says so and names the file."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[sqlite3.Row]:
        """Rows one by one, so that a large answer is never held. Text that is not UTF-8 has U+FFFD in its place."""
        with _told(self.path):
            yield from self._connection.execute(sql, parameters)

    def columns(self, table: str) -> frozenset[str]:
        """Names of the table's columns; none where there is no such table. Old schemas lack some, new ones move them."""
        named = "SELECT c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table' AND t.name = ?"
        return frozenset(row[0] for row in self.rows(named, (table,)))


def is_busy(error: OSError) -> bool:
    """Whether a database could not be read for what others do to it just now: asked again, it will answer."""
    return error.errno == errno.EAGAIN


@contextmanager
def open_read_only(path: Path) -> Iterator[Database]:
    """The database as it stands at this moment, with what a live writer committed to its log; all queries see the same.

    OSError if it is none, is damaged or stays locked, and at the end if it could change while it was read unlocked.
    """
    path = Path(os.path.realpath(path))  # SQLite looks for the log beside the file, not beside a link to it
    _check(path)
    with closing(_Opened(path)) as opened:
        yield opened.database
        opened.check_unchanged()


def is_database(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a SQLite database."""
    return head.startswith(MAGIC)


def _check(path: Path) -> None:
    with open_regular(path) as file:
        head = file.read(len(MAGIC))
    if head and head != MAGIC:  # a file of no bytes is a database without tables
        raise OSError(errno.EINVAL, "not a SQLite database", str(path))


class _Opened:
    """A connection by the gentlest way in that sees everything.

    A reader of a database in WAL mode makes `-shm` and `-wal` files, unless it is told that the file cannot change. While
    a writer is at it, it has made them itself, and the usual way in is as it should be. A log that a crash left behind,
    without a `-shm` file, is read without sharing memory with anyone.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = self._clocks()
        with _told(path):
            *others, last = self._ways()
            for way in others:
                try:
                    self._open(way)
                    break
                except sqlite3.OperationalError as error:
                    if _is_locked(error):
                        raise
            else:
                self._open(last)
        self.database = Database(path, self._connection)

    def _open(self, way: str) -> None:
        self._is_locked = way == "mode=ro"
        address = f"{self._path.as_uri()}?{way}"
        self._connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            self._begin(unshared=_UNSHARED in way)
        except BaseException:
            self._connection.close()
            raise

    def _ways(self) -> tuple[str, ...]:
        unchanging, usual, alone = "mode=ro&immutable=1", "mode=ro", f"mode=ro&vfs={_UNSHARED}"
        if _size(self._beside("-journal")):
            return (usual,)
        if not _size(self._beside("-wal")):
            return (unchanging,)
        # In a folder that is closed to us the shared memory may not be had.
        return (usual, alone, unchanging) if self._beside("-shm").exists() else (alone, unchanging)

    def _begin(self, *, unshared: bool) -> None:
        run = self._connection.execute
        self._connection.row_factory = sqlite3.Row
        self._connection.text_factory = lambda data: data.decode("utf-8", "replace")
        # Views and triggers of a file from elsewhere must not run functions of ours.
        run("PRAGMA trusted_schema = OFF")
        run("PRAGMA query_only = ON")
        if unshared:
            run("PRAGMA locking_mode = EXCLUSIVE")  # the index of the log is then kept in our own memory
        run("BEGIN")
        run("SELECT 1 FROM sqlite_master").fetchone()

    def check_unchanged(self) -> None:
        if not self._is_locked and self._clocks() != self._before:
            raise OSError(errno.EAGAIN, "it changed while it was read", str(self._path))

    def close(self) -> None:
        self._connection.close()

    def _beside(self, suffix: str) -> Path:
        return self._path.with_name(self._path.name + suffix)

    def _clocks(self) -> list[tuple[int, int]]:
        return [_stat(self._beside(suffix)) for suffix in ("", "-wal", "-journal")]


def _size(path: Path) -> int:
    return _stat(path)[0]


def _stat(path: Path) -> tuple[int, int]:
    with suppress(OSError):
        stat = path.stat()
        return stat.st_size, stat.st_mtime_ns if stat.st_size else 0
    return 0, 0


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """SQLite's errors as those of a file."""
    try:
        yield
    except sqlite3.Error as error:
        raise OSError(errno.EAGAIN if _is_locked(error) else errno.EIO, str(error), str(path)) from error


def _is_locked(error: sqlite3.Error) -> bool:
    # The lower byte; the others say more of it. A misuse of the library has no code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

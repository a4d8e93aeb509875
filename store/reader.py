"""Every read on a hot path, as one SELECT each over the standard library's sqlite3, read-only.

SQLAlchemy costs 0.25 s to import, which a search or a hook would pay each time. A test prepares every
query here against a migrated database, so a column that moves is noticed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from store.errors import REPAIR, WwtError

BUSY_SECONDS = 5.0


def marks(values: Iterable[object]) -> str:
    """`?,?,?` for an IN list of these values."""
    return ",".join("?" for _ in values)


class Reader:
    """A read-only view of the archive. Sees what was committed before each query; never blocks a writer."""

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        try:
            self._db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=busy_seconds, check_same_thread=False)
            self._db.row_factory = sqlite3.Row
            self._db.execute("SELECT 1 FROM alembic_version").fetchone()
        except sqlite3.OperationalError as error:
            raise WwtError("store.cannot_open", path=path, reason=error, exit_code=REPAIR) from error
        except sqlite3.DatabaseError as error:
            raise WwtError("store.not_a_database", path=path, exit_code=REPAIR) from error

    def rows(self, sql: str, parameters: Iterable[Any] | dict[str, Any] = ()) -> list[sqlite3.Row]:
        return self._db.execute(sql, parameters if isinstance(parameters, dict) else tuple(parameters)).fetchall()

    def close(self) -> None:
        self._db.close()

"""The schema revision: which one this code expects, and which one a file stands at. Standard library only."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from store.errors import REPAIR, WwtError

REVISION = "0002"
"""The revision this code expects; an older database is upgraded on open, a newer one is refused."""


def revision_on_disk(path: Path) -> str | None:
    """Schema revision of the file, or None where there is no database yet. Costs one read, no SQLAlchemy engine."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            row = db.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return None
        raise WwtError("store.cannot_open", path=path, reason=error, exit_code=REPAIR) from error
    except sqlite3.DatabaseError as error:
        raise WwtError("store.not_a_database", path=path, exit_code=REPAIR) from error
    return str(row[0]) if row else None

"""Bringing a database to the current schema."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from store.errors import REPAIR, WwtError
from store.revision import REVISION, revision_on_disk


def upgrade(path: Path, backups: Path) -> bool:
    """Bring the database at `path` to `REVISION`, keeping a copy of an older one in `backups`. True if anything changed.

    A database that is newer than this program is refused, never touched.
    """
    found = revision_on_disk(path)
    if found == REVISION:
        return False
    if found is not None and found > REVISION:
        raise WwtError("store.too_new", path=path, found=found, known=REVISION, exit_code=REPAIR)
    if found is not None:
        _back_up(path, backups / f"archive-{found}.db")
    _run(path)
    return True


def _back_up(path: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(copy)) as new:
        old.backup(new)
    copy.chmod(0o600)


def _run(path: Path) -> None:
    from alembic import command  # noqa: PLC0415  Alembic costs 0.4 s; only a database that is behind pays it
    from alembic.config import Config  # noqa: PLC0415
    from filelock import FileLock  # noqa: PLC0415
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    from store.database import translated  # noqa: PLC0415

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(path.with_suffix(".migrating.lock"), timeout=120):
        if revision_on_disk(path) == REVISION:
            return
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
        config.attributes["path"] = path
        try:
            command.upgrade(config, REVISION)
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise translated(error, path) from error

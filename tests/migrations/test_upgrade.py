import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from migrations import upgrade
from store.database import engine
from store.errors import WwtError
from store.revision import REVISION, revision_on_disk
from store.tables import metadata


def test_a_new_database_has_exactly_the_declared_schema(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    assert upgrade(path, tmp_path / "backups")
    with engine(path).connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    with closing(sqlite3.connect(path)) as db:
        tables = {row[0]: row[1] for row in db.execute("SELECT name, sql FROM sqlite_master WHERE type='table'")}
    for table in metadata.tables.values():
        for constraint in table.constraints:
            if constraint.name and str(constraint.name).startswith("ck_"):
                assert str(constraint.name) in tables[table.name]


def test_upgrading_twice_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    assert upgrade(path, tmp_path / "backups")
    assert not upgrade(path, tmp_path / "backups")
    assert revision_on_disk(path) == REVISION


def test_a_newer_database_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    upgrade(path, tmp_path / "backups")
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE alembic_version SET version_num = '9999'")
        db.commit()
    with pytest.raises(WwtError) as caught:
        upgrade(path, tmp_path / "backups")
    assert caught.value.exit_code == 3
    assert revision_on_disk(path) == "9999"


def test_a_file_that_is_no_database_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    path.write_bytes(b"not a database at all, but somebody's file" * 100)
    before = path.read_bytes()
    with pytest.raises(WwtError):
        upgrade(path, tmp_path / "backups")
    assert path.read_bytes() == before

"""The hot path's reads fit the schema they read, and a file that is no archive is named."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

import migrations
from store import lookup, reader
from store.errors import REPAIR, WwtError
from store.reader import Reader


@pytest.fixture
def path(tmp_path: Path) -> Path:
    migrations.upgrade(tmp_path / "archive.db", tmp_path / "backups")
    return tmp_path / "archive.db"


def statements(module: object) -> list[str]:
    """Every SELECT in the module's source, with its placeholders filled."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")  # type: ignore[attr-defined]
    found = re.findall(r'"""(\s*SELECT.*?)"""|"(SELECT[^"]*)"', source, re.DOTALL)
    return [
        re.sub(r"\{(?:order|[^{}]*)\}", "?", long or short).replace("ORDER BY id ?", "ORDER BY id")
        for long, short in found
    ]


@pytest.mark.parametrize("module", [reader, lookup])
def test_every_read_can_be_prepared_against_the_migrated_schema(path: Path, module: object) -> None:
    db = sqlite3.connect(path)
    found = statements(module)
    assert len(found) > 8
    for sql in found:
        db.execute(f"EXPLAIN {sql}", dict.fromkeys(re.findall(r":(\w+)", sql)) or [None] * sql.count("?"))


def test_reader_cannot_write(path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        Reader(path).rows("DELETE FROM meta")


def test_missing_or_foreign_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(WwtError) as missing:
        Reader(tmp_path / "none.db")
    assert (missing.value.key, missing.value.exit_code) == ("store.cannot_open", REPAIR)
    (tmp_path / "other.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(WwtError) as foreign:
        Reader(tmp_path / "other.db")
    assert foreign.value.key == "store.not_a_database"

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from archiver.sources import sqlite
from archiver.sources.sqlite import is_database, open_read_only


def made(path: Path, *, wal: bool = True, rows: int = 1) -> Path:
    """A quiet database with `rows` numbers in it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA journal_mode = {'WAL' if wal else 'DELETE'}")
        db.execute("CREATE TABLE said (number INTEGER, text TEXT)")
        db.execute("BEGIN")
        db.executemany("INSERT INTO said VALUES (?, ?)", ((number, "말" * 50) for number in range(rows)))
        db.execute("COMMIT")
    return path


def numbers(path: Path) -> list[int]:
    with open_read_only(path) as database:
        return [row["number"] for row in database.rows("SELECT number FROM said ORDER BY number")]


def folder(path: Path) -> dict[str, tuple[bytes, int]]:
    return {child.name: (child.read_bytes(), child.stat().st_mtime_ns) for child in sorted(path.parent.glob("a.db*"))}


def failure(path: Path) -> OSError:
    with pytest.raises(OSError) as caught:
        numbers(path)
    assert caught.value.filename == str(path)
    return caught.value


CRASH = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("INSERT INTO said VALUES (7, 'x')")
os._exit(0)
"""

HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    db.execute(statement)
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def writer(path: Path, *statements: str) -> Iterator[None]:
    """Another process that keeps the database open after these statements."""
    held = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), *statements], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert held.stdout is not None and held.stdin is not None
    try:
        assert held.stdout.readline() == "ready\n"
        yield
    finally:
        held.stdin.close()
        held.wait()
        held.stdout.close()


@pytest.mark.parametrize("wal", [True, False])
def test_reading_a_quiet_database_changes_nothing_beside_it(tmp_path: Path, wal: bool) -> None:
    path = made(tmp_path / "a.db", wal=wal)
    before = folder(path)
    with open_read_only(path) as database:
        assert [row["number"] for row in database.rows("SELECT number FROM said")] == [0]
        assert folder(path) == before
    assert folder(path) == before


def test_what_a_live_writer_has_only_in_its_log_is_seen(tmp_path: Path) -> None:
    path = made(tmp_path / "a.db")
    with writer(path, "INSERT INTO said VALUES (5, 'x')"):
        assert (tmp_path / "a.db-wal").stat().st_size
        assert numbers(path) == [0, 5]


def test_what_a_live_writer_did_not_commit_is_not_seen(tmp_path: Path) -> None:
    path = made(tmp_path / "a.db")
    with writer(path, "INSERT INTO said VALUES (5, 'x')", "BEGIN", "INSERT INTO said VALUES (6, 'x')"):
        assert numbers(path) == [0, 5]


@pytest.mark.parametrize("shared", [True, False])
def test_a_log_that_a_crash_left_is_read_and_left_as_it_is(tmp_path: Path, shared: bool) -> None:
    path = made(tmp_path / "a.db")
    subprocess.run([sys.executable, "-c", CRASH, str(path)], check=True)
    if not shared:
        (tmp_path / "a.db-shm").unlink()
    before = {name: held for name, held in folder(path).items() if not name.endswith("-shm")}
    assert numbers(path) == [0, 7]
    after = folder(path)
    assert {name: held for name, held in after.items() if not name.endswith("-shm")} == before
    assert ("a.db-shm" in after) is shared


def test_all_queries_see_one_state(tmp_path: Path) -> None:
    path = made(tmp_path / "a.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("INSERT INTO said VALUES (1, 'x')")
        with open_read_only(path) as database:
            db.execute("INSERT INTO said VALUES (2, 'x')")
            assert [row[0] for row in database.rows("SELECT count(*) FROM said")] == [2]


def test_a_database_that_changes_while_it_is_read_unlocked_is_not_taken(tmp_path: Path) -> None:
    path = made(tmp_path / "a.db")
    with pytest.raises(OSError, match="changed"), open_read_only(path) as database:
        list(database.rows("SELECT * FROM said"))
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("INSERT INTO said VALUES (1, 'x')")


def test_a_locked_database_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    path = made(tmp_path / "a.db", wal=False)
    # A writer that has begun to write pages: it keeps a journal, and nobody may read.
    locked = ("PRAGMA cache_size = 1", "BEGIN EXCLUSIVE", "INSERT INTO said VALUES (5, 'x')")
    with writer(path, *locked):
        assert failure(path).strerror == "database is locked"


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:2000] = b"\xff" * 1900
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.write_text("none\n"), "not a SQLite database"),
        (lambda path: path.write_bytes(path.read_bytes()[:5000]), "malformed"),
        (flipped, "malformed"),
        (lambda path: path.write_bytes(sqlite.MAGIC), "not a database|malformed|disk I/O"),
    ],
)
def test_what_is_no_sound_database_is_one_clear_error(
    tmp_path: Path, damage: Callable[[Path], object], reason: str
) -> None:
    path = made(tmp_path / "a.db", rows=200)
    damage(path)
    with pytest.raises(OSError, match=reason):
        numbers(path)


def test_a_file_that_is_gone_or_waits_for_a_writer_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        numbers(tmp_path / "none.db")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.db")
        assert failure(tmp_path / "pipe.db").strerror == "not a regular file"


def test_a_folder_closed_to_writing_is_read(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    path = made(tmp_path / "closed" / "a.db")
    path.parent.chmod(0o555)
    path.chmod(0o444)
    try:
        assert numbers(path) == [0]
    finally:
        path.parent.chmod(0o755)


def test_a_link_is_read_with_the_log_of_its_file(tmp_path: Path) -> None:
    path = made(tmp_path / "a.db")
    link = tmp_path / "links" / "b.db"
    link.parent.mkdir()
    link.symlink_to(path)
    with writer(path, "INSERT INTO said VALUES (5, 'x')"):
        assert numbers(link) == [0, 5]
    assert [child.name for child in link.parent.iterdir()] == ["b.db"]


def test_a_name_with_marks_of_addresses_is_a_name(tmp_path: Path) -> None:
    assert numbers(made(tmp_path / "a?mode=rw#x%20 가.db")) == [0]


def test_columns_tell_what_a_schema_has(tmp_path: Path) -> None:
    path = made(tmp_path / "a.db")
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE VIEW seen AS SELECT * FROM said")
    with open_read_only(path) as database:
        assert database.columns("said") == {"number", "text"}
        assert database.columns("seen") == database.columns("none") == frozenset()


def test_a_file_without_bytes_is_a_database_without_tables(tmp_path: Path) -> None:
    (tmp_path / "a.db").touch()
    with open_read_only(tmp_path / "a.db") as database:
        assert database.columns("said") == frozenset()


def test_nothing_can_be_written(tmp_path: Path) -> None:
    path = made(tmp_path / "a.db")
    with pytest.raises(OSError, match="readonly"), open_read_only(path) as database:
        list(database.rows("INSERT INTO said VALUES (1, 'x')"))


def test_bytes_that_are_no_text_do_not_stop_reading(tmp_path: Path) -> None:
    path = made(tmp_path / "a.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE said SET text = CAST(x'61ff62' AS TEXT)")
    with open_read_only(path) as database:
        assert [row["text"] for row in database.rows("SELECT text FROM said")] == ["a\ufffdb"]


def test_many_rows_take_no_more_memory_than_few(tmp_path: Path) -> None:
    path = made(tmp_path / "a.db", rows=40_000)  # 6 MB of text
    with open_read_only(path) as database:
        tracemalloc.start()
        try:
            assert sum(len(row["text"]) for row in database.rows("SELECT text FROM said")) == 2_000_000
            assert tracemalloc.get_traced_memory()[1] < 500_000
        finally:
            tracemalloc.stop()


def test_a_database_is_told_by_its_first_bytes(tmp_path: Path) -> None:
    assert is_database(made(tmp_path / "a.db").read_bytes()[:64])
    assert not is_database(b'{"type":"session"}\n') and not is_database(b"")

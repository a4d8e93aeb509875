"""The examination as a whole: it writes nothing, is calm while others write, and leaves a damaged database alone."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from archiver.doctor.examine import examine, mend
from store.messages import text
from tests.archiver.cli.test_commands import wwt
from tests.archiver.doctor.looks import FAULT, contents, found, unwell
from tests.archiver.processes import Server
from tests.archiver.test_bad_surroundings import mounted
from tests.archiver.trees import plant


def fold(home: Path) -> None:
    """The log into the file, as when nobody has the database open."""
    with closing(sqlite3.connect(home / "archive.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for name in ("archive.db-wal", "archive.db-shm"):
        (home / name).unlink(missing_ok=True)


def test_sound_home_has_nothing_but_good_news(home: Path) -> None:
    assert unwell(home) == {}


def test_examining_writes_nothing(home: Path) -> None:
    before = contents(home)
    examine(home)
    assert contents(home) == before


def test_examining_a_database_that_nobody_has_open_leaves_no_file_beside_it(home: Path) -> None:
    fold(home)
    before = contents(home)
    assert unwell(home) == {}
    assert contents(home) == before


def test_home_that_is_not_there_is_no_fault_and_is_not_made(wwt_home: Path) -> None:
    assert wwt("doctor").stdout
    assert wwt("doctor", "--fix").stdout
    assert not wwt_home.exists()


@pytest.mark.parametrize("log", ["folded", "there"])
def test_home_on_a_read_only_disk_is_examined(home: Path, tmp_path: Path, log: str) -> None:
    if log == "folded":
        fold(home)
    with mounted(tmp_path / "disk", "size=64m") as disk:
        there = shutil.copytree(home, disk / "wwt", ignore=shutil.ignore_patterns("*.arrays", "*-shm"))
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        named = {name for name, state in unwell(there).items() if name != "disk"}
        assert named == {"access"} | (set() if log == "folded" else {"database"})
        assert {name for name, state in unwell(there).items() if state is FAULT} <= {"disk"}


def test_examining_while_others_archive_raises_no_false_alarm(processes: Server, home: Path, tmp_path: Path) -> None:
    more = plant(tmp_path / "more", sessions=24)
    archiver = processes.start("archive", str(more), home=home)
    looks = []
    for _ in range(6):
        looks.append({name for name, state in unwell(home).items() if state is FAULT})
    assert archiver.wait().code == 0
    assert looks == [set()] * len(looks)


@pytest.mark.parametrize("damage", ["not a database", "torn in the middle"])
def test_damaged_database_is_named_with_the_ways_back_and_nothing_is_touched(
    home: Path, damage: str, tmp_path: Path
) -> None:
    path = home / "archive.db"
    (home / "backups" / "archive-0001.db").write_bytes(b"a copy")
    (home / "staging" / ".left.tmp").touch()
    os.utime(home / "staging" / ".left.tmp", (0, 0))
    for log in home.glob("archive.db-*"):
        log.unlink()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(0 if damage == "not a database" else 4096)
        file.write(b"damaged " * (2_000 if damage == "not a database" else size // 16))
    before = contents(home)
    done = wwt("doctor", "--fix", "--json", code=1)
    told = next(check for check in json.loads(done.stdout)["checks"] if check["id"] == "database")
    assert told["state"] == "fault"
    assert str(home / "backups" / "archive-0001.db") in told["fix"]
    assert f"wwt import {home / 'vault'}" in told["fix"]
    assert contents(home) == before


def test_database_of_another_program_is_told_from_a_damaged_one(wwt_home: Path) -> None:
    wwt_home.mkdir(mode=0o700)
    with closing(sqlite3.connect(wwt_home / "archive.db")) as db, db:
        db.execute("CREATE TABLE notes (x)")
    assert text("doctor.database_foreign", path=wwt_home / "archive.db") == found(wwt_home, "database").text


def test_faults_exit_with_1_and_json_keeps_its_contract(home: Path) -> None:
    home.chmod(0o755)
    told = json.loads(wwt("doctor", "--json", code=1).stdout)
    assert told.keys() == {"checks", "fixed", "not_fixed"}
    assert all(check.keys() == {"id", "state", "text", "fix", "fixable"} for check in told["checks"])
    assert {check["state"] for check in told["checks"]} == {"ok", "fault"}
    fixed = json.loads(wwt("doctor", "--fix", "--json").stdout)["fixed"]
    assert [done["id"] for done in fixed] == ["permissions"]
    assert json.loads(wwt("doctor", "--fix", "--json").stdout)["fixed"] == []


@pytest.mark.parametrize("language", ["en", "ko"])
def test_each_check_is_one_line_and_a_repair_is_named(home: Path, language: str) -> None:
    (home / "config.toml").touch(mode=0o644)
    (home / "config.toml").chmod(0o644)
    plain = wwt("doctor", WWT_LANG=language).stdout.splitlines()
    assert len([line for line in plain if line.strip()]) == len(examine(home).findings) + 2
    assert "config.toml" in " ".join(plain)
    fixed = wwt("doctor", "--fix", WWT_LANG=language).stdout
    assert {"en": "Fixed:", "ko": "고침:"}[language] in fixed


def test_broken_settings_do_not_keep_from_examining_or_from_repairs(home: Path) -> None:
    (home / "config.toml").write_text("[recall\n")
    home.chmod(0o755)
    assert unwell(home) == {"settings": FAULT, "permissions": FAULT}
    assert {done.id for done in mend(home).fixed} == {"permissions"}
    assert unwell(home)["settings"] is FAULT


def test_check_that_cannot_be_made_is_a_fault_and_costs_itself_only(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(patient: object) -> list[object]:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr("store.health.silent_sessions", silent)
    assert unwell(home) == {"chunks": FAULT}
    assert "disk I/O error" in found(home, "chunks").text


def test_help_of_the_doctor_loads_nothing_heavy() -> None:
    code = "import sys; sys.argv=['wwt','doctor','--help']\nfrom archiver.cli import main\ntry: main.run()\nexcept SystemExit: pass\nsys.exit(any(m in sys.modules for m in ('sqlalchemy','numpy','tantivy','yaml')))"
    root = Path(__file__).parents[3]
    env = {**os.environ, "PYTHONPATH": str(root)}
    assert subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=False).returncode == 0

"""Folder, disk, settings, rules, and what lies about."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.doctor import ground
from archiver.doctor.examine import examine, mend
from tests.archiver.doctor.looks import FAULT, NOTE, OK, found, mended, unwell

posix = pytest.mark.skipif(os.name == "nt", reason="permissions of this kind are POSIX's")


@posix
@pytest.mark.parametrize("name", ["", "staging", "archive.db", "index/words"])
def test_folder_or_database_open_to_others_is_a_fault_and_is_closed(home: Path, name: str) -> None:
    path = home / name
    path.chmod(path.stat().st_mode | 0o055)
    assert unwell(home) == {"permissions": FAULT}
    mended(home, "permissions")
    assert path.stat().st_mode & 0o077 == 0


@posix
def test_note_that_an_editor_left_readable_is_worth_a_note(home: Path) -> None:
    path = next((home / "vault").rglob("*.md"))
    path.chmod(0o644)
    assert unwell(home) == {"permissions": NOTE}
    mended(home, "permissions")


@posix
def test_version_control_inside_the_vault_is_left_alone(home: Path) -> None:
    (home / "vault" / ".git").mkdir(mode=0o755)
    (home / "vault" / ".git" / "HEAD").touch(mode=0o644)
    assert unwell(home) == {}


def test_home_that_is_a_file_is_a_fault_and_stays_one(wwt_home: Path) -> None:
    wwt_home.write_text("mine")
    assert found(wwt_home, "home").state is FAULT
    assert mend(wwt_home).fixed == ()
    assert wwt_home.read_text() == "mine"


@pytest.mark.parametrize(("name", "state"), [("SCARCE", NOTE), ("LITTLE", FAULT)])
def test_little_room_on_the_disk_is_told(home: Path, monkeypatch: pytest.MonkeyPatch, name: str, state: str) -> None:
    monkeypatch.setattr(ground, name, 1 << 62)
    assert unwell(home) == {"disk": state}


def test_settings_that_cannot_be_read_are_named_with_their_line(home: Path) -> None:
    (home / "config.toml").write_text("[recall]\nbudget = 'much'\n")
    one = found(home, "settings")
    assert one.state is FAULT
    assert "recall.budget" in one.text
    assert one.mend is None


def test_faulty_rule_is_named_by_file_and_line(home: Path) -> None:
    (home / "rules" / "mine.yaml").write_text("schema: 1\nsecrets:\n  - id: mine\n    pattern: '('\n")
    one = found(home, "rules")
    assert one.state is FAULT
    assert "mine.yaml:" in one.text


LEFT = (
    "inbox/.1.json.tmp",
    "staging/.a.json.tmp",
    "staging/.skipped/.a.json.tmp",
    "vault/general/.note.md.tmp",
    "vault/.wwt/.state.json.tmp",
    ".config.toml.tmp",
    "index/lexicon.77.tmp",
    "index/rules/tmpabc.tmp",
    "index/vectors/manifest.json.tmp",
    "index/embedder/.use-multilingual-1.arrays.x",
    "index/.words-new/half",
    "index/.vectors-old/half",
)


def test_what_stopped_runs_left_goes_after_a_day(home: Path) -> None:
    for name in LEFT:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(b"half")
    assert found(home, "leftovers").state is OK  # it may be a run that goes on
    for name in LEFT:
        for one in (home / name, *([(home / name).parent] if name.endswith("half") else [])):
            os.utime(one, (1_000_000, 1_000_000))
    one = found(home, "leftovers")
    assert one.state is NOTE
    assert f"{len(LEFT)} (" in one.text
    mended(home, "leftovers")
    assert [name for name in LEFT if (home / name).exists()] == []


def test_a_persons_own_file_is_no_leftover(home: Path) -> None:
    for name in ("vault/plan.tmp", "rules/old.yaml.tmp", "backups/a.tmp"):
        (home / name).touch(mode=0o600)
        os.utime(home / name, (1_000_000, 1_000_000))
    assert found(home, "leftovers").state is OK


def test_lock_file_of_a_crash_is_called_harmless(home: Path) -> None:
    (home / "index" / "words" / ".tantivy-writer.lock").touch()
    one = found(home, "locks")
    assert one.state is OK
    assert "harmless" in one.text


def test_sqlite_that_is_too_old_is_a_fault(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    assert unwell(home) == {"sqlite": FAULT}


def test_home_on_a_disk_that_is_not_there_is_a_fault_and_nothing_is_made_in_its_place(wwt_home: Path) -> None:
    wwt_home.symlink_to(wwt_home.parent / "disk" / "wwt")
    one = found(wwt_home, "home")
    assert one.state is FAULT
    assert str(wwt_home.parent / "disk" / "wwt") in one.text
    assert mend(wwt_home).fixed == ()
    assert not wwt_home.exists()


def given_to_nobody(home: Path) -> None:
    if os.name == "nt" or os.geteuid() != 0:
        pytest.skip("only root can become another user")
    for folder in home.parents:  # they belong to the test run alone
        if folder.stat().st_mode & 0o077 == 0:
            folder.chmod(0o711)
    (home / "config.toml").write_text('[embedding]\nmodel = "none"\n')  # the weights may be another user's too
    for path in (home, *home.rglob("*")):
        os.chown(path, 65_534, 65_534)


def as_nobody(look: Callable[[], dict[str, str]]) -> dict[str, str]:
    """What a look gives to a user who may read nothing of another's; in a process of its own."""
    look()  # loads what the other user may not read
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setgid(65_534)
            os.setuid(65_534)
            os.write(writing, json.dumps(look()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with os.fdopen(reading, "rb") as answer:
        return dict(json.loads(answer.read()))


def faults(root: Path) -> dict[str, str]:
    return {one.id: f"{one.text} {one.fix}" for one in examine(root).findings if one.state is FAULT}


@pytest.mark.parametrize("belongs", ["all", "database", "staging"])
def test_what_belongs_to_another_user_is_told_with_how_to_get_it_back(home: Path, belongs: str) -> None:
    given_to_nobody(home)
    barred = {"all": home, "database": home / "archive.db", "staging": home / "staging"}[belongs]
    os.chown(barred, 0, 0)
    told = as_nobody(lambda: faults(home))
    assert str(barred) in told["access"]
    assert "chown" in told["access"]
    assert ("database" in told) == (belongs == "database")
    os.chown(barred, 65_534, 65_534)
    assert as_nobody(lambda: faults(home)) == {}


def test_what_a_person_protected_from_being_written_is_no_fault(home: Path) -> None:
    (home / "rules" / "mine.yaml").touch(mode=0o400)
    next((home / "vault").rglob("*.md")).chmod(0o400)
    given_to_nobody(home)
    assert as_nobody(lambda: faults(home)) == {}

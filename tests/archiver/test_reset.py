"""A reset removes what is wwt's, and nothing else."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from archiver import inbox
from archiver.archive import Wish, archive
from archiver.home import Home
from archiver.reset import DATABASE, Cleared, holding, reset
from staging import promote
from staging.promote import Move
from staging.waiting import Filters, waiting
from store.errors import WwtError
from store.records import now_ms
from store.verdicts import lookup_in
from tests.archiver.processes import Server
from tests.archiver.trees import copied
from tests.factories import Claude

CONFIG = '[embedding]\nmodel = "none"\n'


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a transcript (`in`) and a home (`wwt`) with something in each of its parts."""
    folder = tmp_path_factory.mktemp("stored")
    root = folder / "wwt"
    (root / "rules").mkdir(parents=True)
    (root / "rules" / "mine.yaml").write_text("schema: 1\nsecrets: []\n", encoding="utf-8")
    (root / "config.toml").write_text(CONFIG, encoding="utf-8")
    made = Claude(prefix="a-")
    made.say("큐는 Redis 대신 SQLite로 하자")
    made.answer("네, 큐를 SQLite로 구현했습니다.")
    made.say("재시도 횟수는 3으로 고정하자")
    made.answer("네, 재시도 횟수를 3으로 고정했습니다.")
    made.write(folder / "in", age_minutes=60)
    home = Home.open(root)
    archive(home, Wish((folder / "in",)))
    found = waiting(home.queue, lookup_in(home.database_path), Filters(), now=now_ms()).items
    promote.decide(home.desk, found[0], Move.ACCEPT)
    home.vault.sync()
    home.database.close()
    inbox.drop(root / "inbox", inbox.Event("claude-code", "session-end", "s", "", "", 1))
    (root / "inbox" / "quarantine").mkdir()
    (root / "inbox" / "quarantine" / "odd.json").write_text("{")
    (root / "log" / "hook.log").write_text("2026-03-02 trouble\n")
    shutil.copy(root / "archive.db", root / "backups" / "archive-0001.db")
    return folder


@pytest.fixture
def root(stored: Path, tmp_path: Path) -> Path:
    return copied(stored / "wwt", tmp_path / "home")


def everything(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def test_only_settings_and_rules_are_left(root: Path) -> None:
    held = holding(root)
    assert held is not None
    assert (held.sessions, held.entries, held.waiting) == (1, 1, 1)
    assert reset(root).left == ()
    assert everything(root) == {"config.toml", "rules", "rules/mine.yaml"}
    assert (root / "config.toml").read_text(encoding="utf-8") == CONFIG


def test_archiving_starts_anew(stored: Path, root: Path) -> None:
    reset(root)
    home = Home.open(root)
    report = archive(home, Wish((stored / "in",)))
    assert (report.turns_added, report.candidates_added) == (4, 2)
    assert home.reader.counts()["entries"] == 0


def test_a_second_reset_finds_nothing(root: Path) -> None:
    reset(root)
    assert holding(root) is None
    assert reset(root) == Cleared(0)
    assert reset(root / "never") == Cleared(0)


def test_what_wwt_does_not_know_stays(root: Path) -> None:
    mine = [
        "notes.txt",
        "vault/my own.md",
        "vault/.obsidian/app.json",
        "staging/todo.json",
        "staging/deep/x-00000000.json",
    ]
    mine += ["index/notes.md", "backups/photos/archive.zip", "log/deep/mine.log", "inbox/readme.txt", "archive.db.mine"]
    for name in mine:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("{}", encoding="utf-8")
    left = {str(path.relative_to(root)) for path in reset(root).left}
    assert left == set(mine)
    assert {name for name in everything(root) if (root / name).is_file()} == {*mine, "config.toml", "rules/mine.yaml"}


def test_links_are_removed_and_not_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    for name in ("vault", "index/words", "staging/.skipped"):
        place = outside / name
        place.parent.mkdir(parents=True, exist_ok=True)
        (root / name).rename(place) if (root / name).exists() else place.mkdir()
        (root / name).symlink_to(place)
    (outside / "mine.json").write_text("{}")
    (root / "inbox" / "1.json").symlink_to(outside / "mine.json")
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    assert len(before) > 4
    left = reset(root).left
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before
    assert everything(root) == {"config.toml", "rules", "rules/mine.yaml"}
    assert outside / "vault" in left


def test_a_database_behind_a_link_is_left_where_it_is(root: Path, tmp_path: Path) -> None:
    (root / "archive.db").rename(tmp_path / "real.db")
    (root / "archive.db").symlink_to(tmp_path / "real.db")
    before = (tmp_path / "real.db").read_bytes()
    reset(root)
    assert (tmp_path / "real.db").read_bytes() == before
    assert not (root / "archive.db").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("real")) == ["real.db"]


@pytest.mark.parametrize(
    "files",
    [
        ["src/main.py"],
        ["staging/deploy.json", "log/app.log"],
        ["archive.db", "log/app.log", "index/words/x"],
        ["index/index.html", "backups/archive-1.zip"],
    ],
    ids=str,
)
def test_a_folder_of_another_program_is_refused_and_untouched(tmp_path: Path, files: list[str]) -> None:
    other = tmp_path / "other"
    for name in files:
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text('{"entries": [1]}', encoding="utf-8")
    before = everything(other)
    with pytest.raises(WwtError) as caught:
        reset(other)
    assert (caught.value.key, caught.value.exit_code) == ("reset.not_ours", 1)
    assert everything(other) == before


def test_another_programs_database_of_the_same_name_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "archive.db")) as db:
        db.execute("CREATE TABLE mail (id)")
    with pytest.raises(WwtError):
        reset(tmp_path)
    assert (tmp_path / "archive.db").exists()


@pytest.mark.parametrize("damage", [b"", b"not a database at all" * 100, None])
def test_a_home_whose_database_is_damaged_or_gone_can_be_reset(root: Path, damage: bytes | None) -> None:
    for name in DATABASE:
        (root / name).unlink(missing_ok=True)
    if damage is not None:
        (root / "archive.db").write_bytes(damage)
    held = holding(root)
    assert held is not None
    assert (held.sessions, held.waiting) == (None, 1)
    reset(root)
    assert everything(root) == {"config.toml", "rules", "rules/mine.yaml"}


def test_a_queue_alone_is_a_home_too(root: Path) -> None:
    for path in root.iterdir():
        if path.name != "staging":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.rmtree(root / "staging" / ".locks")
    reset(root)
    assert everything(root) == set()


def test_a_document_under_another_name_goes_by_what_it_holds(root: Path) -> None:
    document = next((root / "staging").glob("*.json"))
    document.rename(document.with_name("mine.json"))
    assert json.loads((root / "staging" / "mine.json").read_text(encoding="utf-8"))["entries"]
    assert reset(root).left == ()


def test_while_another_process_writes_the_index_nothing_is_removed(root: Path) -> None:
    before = {name for name in everything(root) if not name.startswith("archive.db-")}
    with Home.open(root).index.derived.lock(), pytest.raises(WwtError) as caught:
        reset(root)
    assert caught.value.key == "reset.busy"
    assert everything(root) >= before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked from one that is loaded")
def test_a_reset_killed_anywhere_can_be_run_again(processes: Server, root: Path, tmp_path: Path) -> None:
    for damaged in (False, True):
        if damaged:
            (root / "archive.db").write_bytes(b"not a database at all" * 100)
        steps = processes.steps("reset", "--yes", home=copied(root, tmp_path / "count"))
        shutil.rmtree(tmp_path / "count")
        for step in sorted({1, steps - 1, steps, *random.Random(1).sample(range(2, steps), 4)}):
            home = copied(root, tmp_path / "killed")
            assert processes.run("reset", "--yes", home=home, kill_at=step).code == -signal.SIGKILL
            done = processes.run("reset", "--yes", home=home)
            assert done.code == 0, (step, done)
            assert {name for name in everything(home) if (home / name).is_file()} == {"config.toml", "rules/mine.yaml"}
            shutil.rmtree(home)

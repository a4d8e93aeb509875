"""A secret rule that comes later: what it masks is in no file afterwards, and nobody is shown it before."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from archiver.home import Home
from store.words import Words
from tests.archiver.processes import Server
from tests.archiver.trees import copied
from tests.factories import Claude, words_in

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked from one that is loaded")

WORD = "hk-" + "471193"
RULE = """schema: 1
secrets:
  - id: house
    kind: house-key
    literals: [hk-]
    pattern: 'hk-[0-9]{6}'
    examples: {match: ['hk-123456'], miss: ['hk-12']}
"""
READING = (
    ("search", "현관 열쇠", "--all"),
    ("search", WORD, "--all", "--json"),
    ("why", "열쇠", "--all"),
    ("show", "aaaaaaaa"),
    ("sessions", "--all"),
    ("recall", "--cwd", "/home/u/shop"),
    ("entries", "--all"),
    ("review", "--list", "--all"),
    ("status",),
)


def talk(session: str, prefix: str) -> Claude:
    made = Claude(session, prefix=prefix)
    made.say(f"현관 열쇠 {WORD} 를 어디에 둘까요?")
    made.answer("설정 파일에 두겠습니다.")
    made.say(f"현관 열쇠는 {WORD} 로 고정하자")
    made.answer(f"네, 현관 열쇠를 {WORD} 로 고정했습니다.")
    made.say("Use SQLite instead of Redis for the queue.")
    made.answer("Done, the queue runs on SQLite now.")
    made.tool("Bash", {"command": "open"}, f"E   KeyError: {WORD} at door.py:3", failed=True)
    return made


@pytest.fixture(scope="module")
def stored(processes: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that holds the word everywhere: turns, titles, index, a waiting candidate, an entry, its note, the log."""
    folder = tmp_path_factory.mktemp("stored")
    home = folder / "wwt"
    talk("aaaaaaaa-0000-4000-8000-000000000001", "a-").write(folder / "in", age_minutes=90)
    processes.run("archive", str(folder / "in"), home=home)
    processes.run("review", "--accept-all", "--all", "--yes", home=home)
    other = Claude("bbbbbbbb-0000-4000-8000-000000000002", cwd="/home/u/other", prefix="b-")
    other.say(f"뒷문 비밀번호는 {WORD} 대신 지문으로 하자")
    other.answer(f"네, 뒷문을 {WORD} 대신 지문으로 구현했습니다.")
    other.write(folder / "in", age_minutes=60)
    processes.run("archive", str(folder / "in"), home=home)
    parts = {path.relative_to(home).parts[0] for path in words_in(home, WORD)}
    assert {"staging", "vault"} < parts  # and the database, or its write-ahead log
    return home


@pytest.fixture
def home(stored: Path, tmp_path: Path) -> Path:
    return copied(stored, tmp_path / "wwt")


def add_rule(home: Path) -> None:
    (home / "rules" / "x.yaml").write_text(RULE, encoding="utf-8")


def left(home: Path) -> list[Path]:
    """Files that hold the word in any form, and the word index where it still knows it."""
    words = Words(home / "index" / "words")
    forms = (WORD, WORD.removeprefix("hk-"))
    held = [home / "index" / "words" for form in forms if words.frequency(form)]
    return [*held, *(path for form in forms for path in words_in(home, form))]


def test_the_next_archive_takes_the_word_out_of_every_file(processes: Server, home: Path) -> None:
    assert left(home)
    add_rule(home)
    done = processes.run("archive", home=home)
    assert done.code == 0
    assert "masked again" in done.err
    assert left(home) == []
    assert [path for path in home.rglob("*") if WORD in path.name] == []
    with closing(sqlite3.connect(home / "archive.db")) as db:
        assert db.execute("SELECT count(*) FROM entry WHERE detail LIKE '%[secret:house-key]%'").fetchone()[0]
        assert db.execute("SELECT count(*) FROM meta WHERE key = 'erase_due'").fetchone()[0] == 0
    again = processes.run("archive", home=home)
    assert (again.code, again.err) == (0, "")


@pytest.mark.parametrize("command", READING, ids=lambda command: "-".join(command[:2]))
def test_no_command_prints_the_old_text(processes: Server, home: Path, command: tuple[str, ...]) -> None:
    add_rule(home)
    done = processes.run(*command, home=home)
    assert done.code == 0, done
    assert WORD not in done.out.replace(f'"{WORD}"', "") + done.err
    assert left(home) == []


def test_the_hook_says_nothing_until_the_text_is_masked(processes: Server, home: Path) -> None:
    payload = json.dumps({"session_id": "S", "cwd": "/home/u/shop"})

    def said() -> str:
        return processes.run("claude-code", "session-start", program="wwt-hook", home=home, text=payload).out

    assert WORD in said()
    add_rule(home)
    assert said() == ""
    processes.run("status", home=home)
    assert "[secret:house-key]" in said()


def test_masking_again_may_be_killed_anywhere(processes: Server, home: Path, tmp_path: Path) -> None:
    add_rule(home)
    steps = processes.steps("status", home=copied(home, tmp_path / "count"))
    for step in range(1, steps + 1, max(1, steps // 8)):
        killed = copied(home, tmp_path / "killed")
        processes.run("status", home=killed, kill_at=step)
        assert WORD not in processes.run("show", "aaaaaaaa", home=killed).out
        assert processes.run("archive", home=killed).code == 0
        assert left(killed) == [], step
        shutil.rmtree(killed)


def test_a_note_that_was_renamed_before_a_crash_is_known_by_its_new_name(processes: Server, home: Path) -> None:
    [old] = [path for path in (home / "vault").rglob("*.md") if WORD in path.name]
    add_rule(home)
    processes.run("archive", home=home)
    [new] = [path for path in (home / "vault").rglob("*.md") if path.stem[-8:] == old.stem[-8:]]
    state = home / "vault" / ".wwt" / "state.json"
    state.write_text(state.read_text(encoding="utf-8").replace(new.name, old.name), encoding="utf-8")
    assert left(home) == [state] * 2
    with closing(sqlite3.connect(home / "archive.db")) as db:
        db.execute("DELETE FROM meta")
        db.commit()
    processes.run("archive", home=home)
    assert left(home) == []


def test_a_comment_in_a_rule_file_masks_nothing_again(processes: Server, home: Path) -> None:
    add_rule(home)
    processes.run("archive", home=home)
    (home / "rules" / "x.yaml").write_text(RULE + "# a note\n", encoding="utf-8")
    assert "masked again" not in processes.run("archive", home=home).err


def test_texts_that_differ_in_the_secret_alone_are_masked_too(processes: Server, tmp_path: Path) -> None:
    home = tmp_path / "wwt"
    for number in (1, 2):
        made = talk(f"{number:08d}-0000-4000-8000-000000000001", f"{number}-")
        made.cwd = f"/home/u/hk-{number}{WORD[4:]}"
        made.rows = [{**row, "cwd": made.cwd} for row in made.rows]
        made.write(tmp_path / "in" / f"hk-{number}{WORD[4:]}", age_minutes=60)
    processes.run("archive", str(tmp_path / "in"), home=home)
    add_rule(home)
    done = processes.run("archive", str(tmp_path / "in"), home=home)
    assert done.code == 0, done
    assert left(home) == []
    assert len(Home.open(home).reader.projects()) == 2
    assert json.loads(processes.run("archive", str(tmp_path / "in"), "--json", home=home).out)["files_read"] == 0


def test_a_note_that_a_person_edited_keeps_the_edit_and_loses_the_secret(processes: Server, home: Path) -> None:
    note = next(path for path in (home / "vault").rglob("*.md") if WORD in path.read_text(encoding="utf-8"))
    text = note.read_text(encoding="utf-8")
    note.write_text(text.replace("# ", "# 내가 고친 제목 ", 1), encoding="utf-8")
    add_rule(home)
    processes.run("archive", home=home)
    assert left(home) == []
    assert any("내가 고친 제목" in path.read_text(encoding="utf-8") for path in (home / "vault").rglob("*.md"))

"""`wwt export` and `wwt import` as a person or a script runs them: real processes, with the real model."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.archiver.processes import Done, Server
from tests.factories import Claude

QUEUE = "큐는 Redis 대신 SQLite로 하자"
RETRY = "재시도 횟수는 3으로 고정하자"
TWICE = "재시도 횟수는 5로 고정하자"
LOGS = "로그는 파일 말고 표준 출력에 쓰자"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked from one that is loaded")

Run = Callable[..., Done]


@pytest.fixture(scope="module")
def reviewed(processes: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which a decision was accepted, one was replaced by a newer one, and one was rejected; `in` has its sessions."""
    root = tmp_path_factory.mktemp("reviewed")

    def wwt(*arguments: str) -> str:
        done = processes.run(*arguments, home=root / "wwt")
        assert done.code == 0, done.out + done.err
        return done.out

    for number, choice in enumerate((QUEUE, RETRY, TWICE, LOGS), 1):
        said = Claude(f"{number}aaaaaaa-0000-4000-8000-000000000001", cwd=str(root / "shop"), prefix=f"s{number}-")
        said.say(choice)
        said.answer("네, 그렇게 구현했습니다.")
        said.write(root / "in", age_minutes=60)
    wwt("archive", str(root / "in"))
    rejected = "4aaaaaaa-0000-4000-8000-000000000001"
    wwt("review", "--reject-all", "--session", rejected, "--all", "--yes")
    wwt("review", "--accept-all", "--all", "--yes")
    by_words = {one["summary"]: one["id"] for one in json.loads(wwt("entries", "--all", "--json"))["entries"]}
    assert set(by_words) == {QUEUE, RETRY, TWICE}
    wwt("entries", "supersede", by_words[RETRY], by_words[TWICE])
    wwt("entries", "retag", by_words[QUEUE], "배포", "1.0")
    return root


@pytest.fixture
def home(reviewed: Path, tmp_path: Path) -> Path:
    """A copy of that home, with `archive.db` still in it."""
    return shutil.copytree(reviewed / "wwt", tmp_path / "copy")


@pytest.fixture
def run(processes: Server, home: Path) -> Run:
    def wwt(*arguments: str, code: int = 0, **more: str) -> Done:
        done = processes.run(*arguments, home=home, **more)
        assert done.code == code, done.out + done.err
        assert "Traceback" not in done.err
        return done

    return wwt


def parsed(done: Done) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.out)
    return found


def known(run: Run) -> list[dict[str, Any]]:
    found = parsed(run("entries", "--all", "--retired", "--json"))["entries"]
    return sorted(found, key=lambda entry: entry["id"])


def quoted(home: Path) -> list[tuple[object, ...]]:
    """What each entry rests on, as far as the turns it was said in are there."""
    query = "SELECT e.uid, t.key, v.role, v.quote, v.time FROM evidence v JOIN entry e ON e.id = v.entry_id"
    with closing(sqlite3.connect(home / "archive.db")) as db:
        return sorted(db.execute(f"{query} JOIN turn t ON t.id = v.turn_id"))


def lose(home: Path) -> None:
    for path in home.glob("archive.db*"):
        path.unlink()


@pytest.mark.parametrize("kept", ["vault", "export"])
def test_knowledge_outlives_the_database(run: Run, home: Path, reviewed: Path, tmp_path: Path, kept: str) -> None:
    before, rested = known(run), quoted(home)
    assert {entry["status"] for entry in before} == {"active", "superseded"} and len(rested) >= len(before)
    out = home / "vault"
    if kept == "export":
        out = tmp_path / "notes"
        assert parsed(run("export", str(out), "--json"))["written"] == 3
        shutil.rmtree(home / "vault")
    lose(home)
    assert known(run) == []
    done = parsed(run("import", str(out), "--json"))
    assert sorted(done["added"]) == [entry["id"] for entry in before]
    assert done["verdicts"] >= 4 and done["broken"] == done["conflicts"] == []
    assert known(run) == before
    found = parsed(run("search", "큐를 SQLite로", "--all", "--json"))["hits"]
    assert found[0]["kind"] == "entry" and QUEUE in found[0]["text"]
    (reviewed / "shop").mkdir(exist_ok=True)
    assert QUEUE in run("recall", "--cwd", str(reviewed / "shop")).out
    shutil.rmtree(home / "staging")
    again = parsed(run("archive", str(reviewed / "in"), "--json"))
    assert (again["sessions"], again["candidates_added"]) == (4, 0)
    assert parsed(run("review", "--list", "--all", "--json"))["total"] == 0
    assert known(run) == before
    shown = parsed(run("show", found[0]["id"], "--json"))
    assert shown["session"].startswith("1aaaaaaa") and shown["evidence"][0]["quote"] == QUEUE
    assert quoted(home) == rested
    assert parsed(run("import", str(out), "--json"))["unchanged"] == 3


def test_a_second_export_and_a_second_import_change_nothing(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "notes"
    run("export", str(out))
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file() and path.name != "lock"}
    assert "Written: 0, unchanged: 3" in run("export", str(out)).out
    assert "0 new, 0 changed. Unchanged: 3" in run("import", str(out)).out
    run("import", str(out))
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_what_needs_a_person_is_told(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "notes"
    run("export", str(out))
    (edited,) = out.rglob("*Redis*.md")
    edited.write_text(edited.read_text("utf-8").replace("네, 그렇게", "아니요, 이렇게"), encoding="utf-8")
    (out / "bad.md").write_text("---\nuid: [\n---\n", encoding="utf-8")
    told = run("export", str(out)).err
    assert f"{edited}: was edited by hand" in told
    done = run("import", str(out))
    assert f"{out}/bad.md:3: " in done.err and "1 changed" in done.out
    (entry,) = [one for one in known(run) if one["summary"] == QUEUE]
    assert entry["detail"].startswith("아니요, 이렇게")
    edited.write_text(edited.read_text("utf-8").replace("아니요, 이렇게", "\x1b[31m노트에서"), encoding="utf-8")
    run("entries", "retire", entry["id"])
    told = run("import", str(out)).err
    beside = edited.with_suffix(".conflict.md")
    assert f"{beside}: kept beside its note" in told and "status: retired" in beside.read_text("utf-8")
    assert "노트 곁에" in run("import", str(out), WWT_LANG="ko").err


def test_the_answers_have_stable_keys(run: Run, tmp_path: Path) -> None:
    written = parsed(run("export", str(tmp_path / "notes"), "--project", "shop", "--json"))
    assert set(written) == {
        *("folder", "written", "unchanged", "adopted", "edited", "conflicts", "not_in_archive", "broken")
    }
    taken = parsed(run("import", str(tmp_path / "notes"), "--json"))
    assert set(taken) == {
        *("folder", "notes", "added", "updated", "unchanged", "older", "known_as", "verdicts", "conflicts"),
        *("conflicts_unwritten", "broken", "projects", "notices"),
    }


def test_folders_that_cannot_be_meant_are_refused_in_one_line(run: Run, home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for arguments in (
        ("import", str(tmp_path / "nowhere")),
        ("import", str(tmp_path / "file")),
        ("export", str(tmp_path / "file")),
        ("export", str(home)),
        ("export", str(home / "index")),
        ("export", str(home.parent)),
        ("export", str(tmp_path / "notes"), "--project", "unknown-project"),
    ):
        done = run(*arguments, code=2)
        assert done.out == "" and len(done.err.splitlines()) == 1, done.err
    assert not (tmp_path / "notes").exists() and not (home / ".wwt").exists()


def test_a_folder_with_nothing_readable_fails_and_an_empty_one_does_not(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    assert "No notes" in run("import", str(tmp_path / "in")).out
    (tmp_path / "in" / "bad.md").write_text("words", encoding="utf-8")
    run("import", str(tmp_path / "in"), code=1)


def test_an_export_that_lacks_a_note_fails_and_names_it(run: Run, home: Path, tmp_path: Path) -> None:
    out = tmp_path / "notes"
    out.mkdir()
    (out / "shop").write_text("mine", encoding="utf-8")  # where the folder of the project would have to be
    told = run("export", str(out), code=1)
    assert "Written: 0" in told.out and len([line for line in told.err.splitlines() if f"{out}/shop/" in line]) == 3
    (out / "shop").unlink()
    assert "Written: 3" in run("export", str(out)).out
    (vaulted,) = (home / "vault").rglob("*Redis*.md")
    vaulted.write_text("broken", encoding="utf-8")
    assert f"{vaulted}:1: " in run("export", str(out)).err  # the export lacks nothing


def test_many_broken_notes_do_not_flood_the_terminal(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "notes"
    run("export", str(out))
    for number in range(50):
        (out / f"{number}.md").write_text("words", encoding="utf-8")
    assert len(run("import", str(out)).err.splitlines()) == 21

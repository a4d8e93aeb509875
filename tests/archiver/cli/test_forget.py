"""`wwt forget` and `wwt reset` as a person or a script runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.archiver.cli.test_commands import ROOT, wwt
from tests.factories import Claude

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "aaaabbbb-0000-4000-8000-000000000002"


@pytest.fixture
def archived(tmp_path: Path, wwt_home: Path) -> Path:
    wwt_home.mkdir()
    (wwt_home / "config.toml").write_text('[embedding]\nmodel = "none"\n', encoding="utf-8")
    first, second = Claude(A), Claude(B, prefix="b-")
    first.say("큐는 Redis 대신 SQLite로 하자")
    first.answer("네, 큐를 SQLite로 구현했습니다.")
    first.write(tmp_path / "in", age_minutes=60)
    second.say("질문입니다")
    second.write(tmp_path / "in", age_minutes=60)
    wwt("archive", str(tmp_path / "in"))
    wwt("review", "--accept-all", "--all", "--yes")
    return wwt_home


def asked(answer: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with a terminal for its input, on which somebody types the answer."""
    near, far = os.openpty()
    os.write(near, answer.encode())
    try:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", "from archiver.cli.main import run; run()", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", env=env, stdin=far, timeout=120
        )
    finally:
        os.close(near)
        os.close(far)


def sessions() -> set[str]:
    return {row["session"] for row in json.loads(wwt("sessions", "--all", "--json").stdout)["sessions"]}


def test_a_session_is_forgotten_and_its_entry_tells(archived: Path) -> None:
    [entry] = json.loads(wwt("entries", "--all", "--json").stdout)["entries"]
    assert (entry["session"], entry["source_forgotten"]) == (A, False)
    done = json.loads(wwt("forget", A[:8], "--yes", "--json").stdout)
    assert {key: done[key] for key in ("subagents", "turns", "findings", "entries", "complete", "dry_run")} == {
        "subagents": 0, "turns": 2, "findings": 0, "entries": 1, "complete": True, "dry_run": False
    }  # fmt: skip
    assert [row["session"] for row in done["sessions"]] == [A]
    assert sessions() == {B}
    [entry] = json.loads(wwt("entries", "--all", "--json").stdout)["entries"]
    assert (entry["session"], entry["source_forgotten"]) == (None, True)
    assert "its source was forgotten" in wwt("show", entry["id"]).stdout
    again = wwt("forget", A[:8], "--yes")
    assert "forgotten before" in again.stdout


def test_looking_first_lists_what_would_go(archived: Path) -> None:
    shown = wwt("forget", "--project", "shop", "--dry-run").stdout
    assert A in shown
    assert B in shown
    assert "sessions: 2, turns: 3." in shown
    assert json.loads(wwt("forget", B, "--dry-run", "--json").stdout)["dry_run"] is True
    assert sessions() == {A, B}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("forget",), 2, "wwt sessions --all"),
        (("forget", "ffffffff", "--yes"), 1, "wwt sessions --all"),
        (("forget", "aaaa", "--yes"), 1, f"claude-code:{A}"),
        (("forget", A), 2, "--yes"),
        (("forget", "--before", "soon", "--yes"), 2, "2026-04-06"),
        (("forget", "--agent", "nobody", "--yes"), 2, "claude-code"),
        (("forget", "--project", "nowhere", "--yes"), 2, "shop"),
        (("reset",), 2, "--yes"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_what_cannot_be_done_is_told_with_the_next_step(
    archived: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    assert words in wwt(*arguments, code=code).stderr
    assert sessions() == {A, B}


def test_no_session_that_fits_is_no_mistake(archived: Path) -> None:
    assert "nothing to forget" in wwt("forget", "--before", "2020-01-01", "--yes").stdout


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals to type on")
@pytest.mark.parametrize(("answer", "code", "left"), [("n\n", 1, {A, B}), ("\n", 1, {A, B}), ("y\n", 0, {B})])
def test_on_a_terminal_it_asks_first(archived: Path, answer: str, code: int, left: set[str]) -> None:
    done = asked(answer, "forget", A, "--json")
    assert done.returncode == code, done.stderr
    assert f"{A}\n    큐는 Redis 대신 SQLite로 하자" in done.stderr
    assert "Would be forgotten — sessions: 1, turns: 2." in done.stderr
    assert "entries of reviewed knowledge: 1." in done.stderr
    assert sessions() == left
    assert not done.stdout or json.loads(done.stdout)["turns"] == 2


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals to type on")
def test_a_reset_asks_first_and_names_the_way_to_keep_the_knowledge(archived: Path) -> None:
    refused = asked("n\n", "reset")
    assert refused.returncode == 1
    assert "wwt export DIR" in refused.stderr
    assert "2 sessions, 1 entries" in refused.stderr
    assert sessions() == {A, B}
    assert asked("y\n", "reset").returncode == 0
    assert sorted(path.name for path in archived.iterdir()) == ["config.toml", "rules"]


def test_looking_before_a_reset_lists_what_would_go_and_changes_nothing(archived: Path) -> None:
    (archived / "mine.txt").write_text("mine")
    before = {path for path in archived.rglob("*") if path.is_file()}
    told = json.loads(wwt("reset", "--dry-run", "--json").stdout)
    assert {key: told[key] for key in ("dry_run", "sessions", "entries", "waiting", "left")} == {
        "dry_run": True, "sessions": 2, "entries": 1, "waiting": 0, "left": [str(archived / "mine.txt")]
    }  # fmt: skip
    assert f"{told['removed']} files with 2 sessions" in wwt("reset", "--dry-run").stdout
    assert {path for path in archived.rglob("*") if path.is_file()} >= before
    done = json.loads(wwt("reset", "--yes", "--json").stdout)
    assert (done["dry_run"], done["left"]) == (False, told["left"])


def test_a_reset_says_what_it_left(archived: Path) -> None:
    (archived / "mine.txt").write_text("mine")
    done = wwt("reset", "--yes", "--json")
    assert json.loads(done.stdout)["left"] == [str(archived / "mine.txt")]
    assert wwt("reset", "--yes", code=1).stderr.count("\n") == 1
    (archived / "mine.txt").unlink()
    assert "Nothing to remove" in wwt("reset", "--yes").stdout


def test_korean(archived: Path) -> None:
    assert "세션" in wwt("forget", A, "--dry-run", WWT_LANG="ko").stdout
    assert "잊었습니다" in wwt("forget", A, "--yes", WWT_LANG="ko").stdout
    assert "지웠습니다" in wwt("reset", "--yes", WWT_LANG="ko").stdout

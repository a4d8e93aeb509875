"""`wwt doctor` and `wwt status` as a person or a script runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from archiver.inbox import Event, drop
from archiver.render import columns
from store.records import now_ms
from tests.archiver.cli.test_commands import ROOT, wwt
from tests.archiver.processes import Server
from tests.archiver.trees import copied, plant

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked from one that is loaded")


@pytest.fixture(scope="module")
def sound(processes: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("sound") / "wwt"
    assert processes.run("archive", str(plant(home.parent / "in", sessions=3)), home=home).code == 0
    return home


@pytest.fixture
def home(sound: Path, wwt_home: Path) -> Path:
    return copied(sound, wwt_home)


def broken(home: Path) -> Path:
    """A home with a note, a fault that can be mended and one that a person has to."""
    (home / "config.toml").write_text("[recall]\nbudget = 900\n")
    (home / "config.toml").chmod(0o644)
    (home / "index" / "words" / "meta.json").unlink()
    (home / "staging" / "typo.json").write_text('{"schema": 1,\n "entries": [}')
    (home / "staging" / "typo.json").chmod(0o600)
    return home


def on_a_terminal(*arguments: str, columns: int = 60) -> str:
    near, far = os.openpty()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(columns), "TERM": "xterm"}
    command = [sys.executable, "-c", "from archiver.cli.main import run; run()", *arguments]
    running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=far, stderr=subprocess.DEVNULL, env=env)
    os.close(far)
    shown = b""
    try:
        while piece := os.read(near, 65_536):
            shown += piece
    except OSError:  # how a terminal says on Linux that its other end is closed
        pass
    running.wait(timeout=60)
    os.close(near)
    return shown.decode().replace("\r\n", "\n")


def test_sound_home_ends_with_0_and_says_so(home: Path) -> None:
    assert wwt("doctor").stdout.rstrip().endswith("Nothing is wrong.")


def test_what_is_wrong_ends_with_1_and_stands_last(home: Path) -> None:
    lines = [line for line in wwt("doctor", code=1, WWT_HOME=str(broken(home))).stdout.splitlines() if line]
    states = [line.split()[0] for line in lines[:-2]]
    assert states == ["ok"] * (len(states) - 3) + ["note", "fault", "fault"]
    assert "typo.json:2" in lines[-3]
    assert lines[-2:] == ["Wrong: 2.", "`wwt doctor --fix` takes care of 2."]


def test_on_a_terminal_nothing_is_wider_than_it_and_the_next_step_has_its_own_line(home: Path) -> None:
    (home / "index" / "words" / "meta.json").unlink()
    shown = on_a_terminal("doctor").splitlines()
    step = next(line for line in shown if "→" in line)
    assert step.strip().startswith("→ `wwt doctor --fix`")
    spaced = [line for line in shown if str(home) not in line and "/" not in line]  # a path is not broken
    assert max(columns(line) for line in spaced) <= 60


def test_fixing_names_each_repair_and_leaves_the_rest_to_a_person(home: Path) -> None:
    broken(home)
    written = (home / "staging" / "typo.json").read_bytes()
    told = json.loads(wwt("doctor", "--fix", "--json", code=1).stdout)
    assert [one["id"] for one in told["fixed"]] == ["permissions", "words"]
    assert [one["id"] for one in told["checks"] if one["state"] == "fault"] == ["staging"]
    assert (home / "staging" / "typo.json").read_bytes() == written
    (home / "staging" / "typo.json").unlink()
    assert wwt("doctor").stdout.rstrip().endswith("Nothing is wrong.")


@pytest.mark.parametrize(
    ("language", "says"),
    [
        ("en", ("fault", "The word index is damaged", "correct the file", "Wrong: 2.")),
        ("ko", ("이상", "단어 색인이 손상되었습니다", "파일을 고치세요", "잘못된 것: 2개.")),
    ],
)
def test_each_language_says_what_is_wrong_and_what_to_do(home: Path, language: str, says: tuple[str, ...]) -> None:
    shown = wwt("doctor", code=1, WWT_HOME=str(broken(home)), WWT_LANG=language).stdout
    assert [part for part in says if part not in shown] == []


def test_status_before_the_first_archive_still_tells_what_hooks_could_not_do(wwt_home: Path) -> None:
    (wwt_home / "log").mkdir(parents=True)
    (wwt_home / "log" / "hook.log").write_text("2026-01-02T03:04:05+0000 codex session-end OSError: disk full\n")
    (wwt_home / "inbox" / "quarantine").mkdir(parents=True)
    (wwt_home / "inbox" / "quarantine" / "1.json").write_text("{")
    done = wwt("status")
    assert "Nothing archived yet" in done.stdout
    assert "OSError: disk full" in done.stderr
    assert "hold no event: 1" in done.stderr


def test_status_counts_events_that_wait(home: Path) -> None:
    assert "Events of hooks" not in wwt("status").stdout
    drop(home / "inbox", Event("codex", "session-end", "s", "", "", now_ms()))
    assert "Events of hooks that wait: 1" in wwt("status").stdout


def test_reader_that_has_seen_enough_costs_no_word(home: Path) -> None:
    command = f"{sys.executable} -c 'from archiver.cli.main import run; run()' doctor | head -n 1"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=env, check=True)
    assert (done.stdout.count("\n"), done.stderr) == (1, "")

"""`wwt rebuild` as a person or a script runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock

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


def rows(home: Path) -> int:
    return int(json.loads(wwt("status", "--json").stdout)["chunks"])


def test_both_indexes_are_made_anew_and_counted(processes: Server, home: Path) -> None:
    done = json.loads(processes.run("rebuild", "--json", home=home).out)
    assert done == {"words": rows(home), "vectors": done["vectors"], "embedded": 0, "model": "use-multilingual"}
    assert 0 < done["vectors"] <= done["words"]


@pytest.mark.parametrize(("option", "left"), [("--words", "vectors"), ("--vectors", "words")])
def test_only_what_is_asked_for_is_made(processes: Server, home: Path, option: str, left: str) -> None:
    before = (home / "index" / left).stat().st_ino
    done = json.loads(processes.run("rebuild", option, "--json", home=home).out)
    assert done[left] is None
    assert (home / "index" / left).stat().st_ino == before


def test_before_anything_is_archived_there_is_nothing_to_make(wwt_home: Path) -> None:
    assert json.loads(wwt("rebuild", "--json").stdout)["words"] == 0


@pytest.mark.parametrize(("arguments", "code"), [(("--embedding", " "), 2), (("--embedding", "nobody/none-such"), 1)])
def test_model_that_cannot_be_had_is_one_line_and_changes_nothing(
    home: Path, arguments: tuple[str, str], code: int
) -> None:
    done = wwt("rebuild", *arguments, code=code)
    assert done.stderr.count("\n") == 1
    assert not (home / "config.toml").exists()


@pytest.mark.parametrize(("language", "says"), [("en", "run the command again to go on"), ("ko", "다시 실행하면")])
def test_interrupted_it_says_that_it_goes_on_and_does(home: Path, language: str, says: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "WWT_LANG": language}
    command = [sys.executable, "-c", "from archiver.cli.main import run; run()", "rebuild", "--words"]
    begun = home / "index" / ".rebuild.lock"
    begun.unlink(missing_ok=True)
    with FileLock(home / "index" / ".lock"):  # it cannot come to an end
        running = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not begun.exists():
            assert running.poll() is None
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err.count("\n")) == (130, "", 1)
    assert says in err
    assert json.loads(wwt("search", "결제", "--all", "--json").stdout)["hits"]
    assert json.loads(wwt("rebuild", "--words", "--json").stdout)["words"] == rows(home)

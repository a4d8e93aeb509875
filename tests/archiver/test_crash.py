"""kill -9 at any instant: nothing committed is lost, nothing is doubled, no stale hit, and a rerun completes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from store.words import Words
from tests.archiver.processes import Server
from tests.archiver.trees import buried, copied, plant, state
from tests.factories import words_in

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked from one that is loaded")

KILLED = -signal.SIGKILL
SEED = 20260406
STEPS_OF_A_BURIAL = int(os.environ.get("WWT_TEST_STEPS", "9"))
"""Instants tried of the hundred or so there are."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plant(tmp_path_factory.mktemp("tree") / "in")


@pytest.fixture(scope="module")
def clean(processes: Server, tree: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A home that was archived without trouble, and the number of steps that took."""
    home = tmp_path_factory.mktemp("clean") / "wwt"
    return home, processes.steps("archive", str(tree), home=home)


@pytest.fixture(scope="module")
def reviewed(
    processes: Server, clean: tuple[Path, int], tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], int]:
    home = copied(clean[0], tmp_path_factory.mktemp("reviewed") / "wwt")
    steps = processes.steps("review", "--accept-all", "--all", "--yes", home=home)
    held = state(home)
    assert {outcome for _, outcome, _ in held["verdicts"]} == {"accepted", "merged"}
    return held, steps


def instants(total: int, count: int, salt: str) -> list[int]:
    """Steps to die at: spread over the whole run, the first and the last among them."""
    chosen = random.Random(f"{SEED}{salt}").sample(range(2, total), min(count, total) - 2)
    return sorted({1, total, *chosen})


@pytest.mark.parametrize("chain", range(2))
def test_an_archive_killed_again_and_again_ends_as_if_it_never_was(
    processes: Server, tree: Path, clean: tuple[Path, int], tmp_path: Path, chain: int
) -> None:
    home = tmp_path / "killed"
    for step in instants(clean[1], 8, f"archive{chain}"):
        processes.run("archive", str(tree), home=home, kill_at=step)
    done = processes.run("archive", str(tree), home=home)
    assert (done.code, done.err) == (0, "")
    assert state(home) == state(clean[0])


def test_an_archive_killed_at_random_times_ends_as_if_it_never_was(
    processes: Server, tree: Path, clean: tuple[Path, int], tmp_path: Path
) -> None:
    home, chance = tmp_path / "killed", random.Random(SEED)
    for _ in range(5):
        running = processes.start("archive", str(tree), home=home)
        time.sleep(chance.uniform(0.1, 2.0))
        running.send(signal.SIGKILL)
        running.wait()
    assert processes.run("archive", str(tree), home=home).code == 0
    assert state(home) == state(clean[0])


@pytest.mark.parametrize("chain", range(2))
def test_accepting_everything_may_be_killed_anywhere(
    processes: Server, clean: tuple[Path, int], reviewed: tuple[dict[str, Any], int], tmp_path: Path, chain: int
) -> None:
    home = copied(clean[0], tmp_path / "killed")
    for step in instants(reviewed[1], 8, f"review{chain}"):
        processes.run("review", "--accept-all", "--all", "--yes", home=home, kill_at=step)
    done = processes.run("review", "--accept-all", "--all", "--yes", home=home)
    assert (done.code, done.err) == (0, "")
    assert state(home) == reviewed[0]


# --- deleted sessions ---


@pytest.fixture(scope="module")
def doomed(processes: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, int]:
    """A home with a session that was archived while it was live, its file as its user then deleted it, and the steps of burying it."""
    folder = tmp_path_factory.mktemp("doomed")
    plant(folder / "in", sessions=4)
    for left in (folder / "in").glob("*.deleted.*"):
        left.unlink()
    live = buried().write(folder / "in", age_minutes=100)
    home = folder / "wwt"
    processes.run("archive", str(folder / "in"), home=home)
    processes.run("review", "--accept-all", "--all", "--yes", home=home)
    live.rename(live.with_name(live.name + ".deleted.2026-03-03T05-00-00.000Z"))
    copy = copied(home, folder / "copy")
    return home, folder / "in", processes.steps("archive", str(folder / "in"), home=copy)


def test_a_burial_killed_anywhere_leaves_no_word_behind(
    processes: Server, doomed: tuple[Path, Path, int], tmp_path: Path
) -> None:
    origin, tree, steps = doomed
    assert Words(origin / "index" / "words").frequency("비둘기자리")
    for step in instants(steps, STEPS_OF_A_BURIAL, "burial"):
        home = copied(origin, tmp_path / f"killed{step}")
        assert processes.run("archive", str(tree), home=home, kill_at=step).code == KILLED
        assert processes.run("archive", str(tree), home=home).code == 0
        assert words_in(home, "비둘기자리") == words_in(home, "코끼리별") == [], step
        assert not Words(home / "index" / "words").frequency("비둘기자리"), step
        assert processes.run("archive", str(tree), "--json", home=home).out.count('"files_read": 0') == 1
        shutil.rmtree(home)


def test_a_session_is_never_emptied_before_its_findings_are_on_disk(
    processes: Server, tree: Path, tmp_path: Path
) -> None:
    """Nothing was accepted here, so what was learned is in the session's own words or in a staging document, always."""
    made = buried()
    live = made.write(tmp_path / "in")
    origin = tmp_path / "origin"
    processes.run("archive", str(tmp_path / "in"), home=origin)
    live.rename(live.with_name(live.name + ".deleted.2026-03-03T05-00-00.000Z"))
    steps = processes.steps("archive", str(tmp_path / "in"), home=copied(origin, tmp_path / "count"))
    for step in instants(steps, STEPS_OF_A_BURIAL, "findings"):
        home = copied(origin, tmp_path / "killed")
        processes.run("archive", str(tmp_path / "in"), home=home, kill_at=step)
        held = [path.relative_to(home).parts[0] for path in words_in(home, "유니크 제약")]
        assert "staging" in held or any(name.startswith("archive.db") for name in held), step
        shutil.rmtree(home)


# --- Ctrl-C ---


def test_ctrl_c_is_one_line_and_exit_code_130_and_the_rest_follows(
    processes: Server, tree: Path, clean: tuple[Path, int], tmp_path: Path
) -> None:
    home, chance, stopped = tmp_path / "stopped", random.Random(SEED), 0
    for _ in range(4):
        running = processes.start("archive", str(tree), home=home)
        time.sleep(chance.uniform(0.2, 1.0))
        running.send(signal.SIGINT)
        done = running.wait()
        stopped += done.code == 130
        assert (done.code, done.err.strip().count("\n")) in ((130, 0), (0, 0)), done
    assert stopped
    assert processes.run("archive", str(tree), home=home).code == 0
    assert state(home) == state(clean[0])

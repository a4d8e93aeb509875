"""One loaded process that the tests with real processes fork theirs from."""

from __future__ import annotations

import pytest

from tests.archiver.processes import Server, shared


@pytest.fixture(scope="session")
def processes() -> Server:
    return shared()

"""A home for each test of this folder, made from one template: unpacking the model and reading the rules takes seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import warmed


@pytest.fixture(autouse=True)
def copied_home(wwt_home: Path, template: Path) -> None:
    warmed(wwt_home, template)

"""Events that come back out of the inbox can be used as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archiver import inbox

EVENT = {"agent": "a", "event": "session-end", "session": "s", "transcript": "", "cwd": "", "at": 1}


def read(folder: Path, **values: object) -> inbox.Event | None:
    folder.mkdir(exist_ok=True)
    (folder / "1.json").write_text(json.dumps(EVENT | values))
    return next(event for _, event in inbox.waiting(folder))


@pytest.mark.parametrize(
    "values", [{"agent": ["a"]}, {"event": {}}, {"session": None}, {"transcript": 5}, {"at": "soon"}]
)
def test_a_file_whose_values_are_of_another_kind_holds_no_event(tmp_path: Path, values: dict[str, object]) -> None:
    assert read(tmp_path / "inbox", **values) is None


def test_halves_of_characters_are_replaced(tmp_path: Path) -> None:
    event = read(tmp_path / "inbox", session="끝\ud800")
    assert event is not None
    assert event.session == "끝?"

"""Hermes' and OpenCode's databases in the agents' own folders, from the first run on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from archiver.sources import sqlite
from tests.archiver.sources import test_hermes, test_opencode
from tests.archiver.sources.claw_stores import locked
from tests.reports.walk import read, said, sessions


@dataclass(frozen=True)
class Kept:
    """A database of an agent: how it is filled, a question more in its first session, and a statement that writes to it."""

    make: Callable[[], Path]
    ask: Callable[[Path], object]
    touch: str


def _hermes() -> Path:
    path = Path.home() / ".hermes" / "state.db"
    test_hermes.document(path.parent / f"sessions/session_{test_hermes.SESSION}.json", *test_hermes.TALK)
    return test_hermes.filled(path)


def _opencode() -> Path:
    root = Path.home() / ".local" / "share" / "opencode"
    test_opencode.filed(root)
    return test_opencode.stored(root / "opencode.db")


def _ask_opencode(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        row = test_opencode.data({"role": "user"}, 50)
        db.execute("INSERT INTO message VALUES ('msg_09', 'ses_1', ?, ?, ?)", (test_opencode.T + 50, row, 0))
        db.execute(
            "INSERT INTO part VALUES ('prt_9', 'msg_09', 'ses_1', ?, 0)", (json.dumps(test_opencode.text("하나 더")),)
        )
        db.commit()


def _ask_hermes(path: Path) -> None:
    test_hermes.insert(path, "messages", test_hermes.message("user", "하나 더", second=50))


KEPT = {
    "hermes": Kept(_hermes, _ask_hermes, "UPDATE sessions SET title = 'x'"),
    "opencode": Kept(_opencode, _ask_opencode, "UPDATE session SET title = 'x'"),
}


@pytest.fixture(params=sorted(KEPT))
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kept:
    for name in ("HERMES_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return KEPT[request.param]


def test_what_is_new_is_added_and_nothing_twice(kept: Kept) -> None:
    path = kept.make()
    first = read().turns_added
    assert first > 2
    assert (read().files_read, read().turns_added) == (0, 0)
    kept.ask(path)
    report = read()
    assert (report.files_read, report.turns_added) == (1, 1)
    assert read().files_read == 0


def test_a_locked_database_is_told_once_and_read_by_the_next_run(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    path = kept.make()
    with locked(path, kept.touch):
        report = read()
    assert [(bad["file"], bad["reason"]) for bad in report.unreadable] == [(str(path), "database is locked")]
    assert report.turns_added == 0
    after = read()
    assert after.unreadable == [] and after.turns_added > 2


def test_a_session_that_hermes_compressed_and_went_on_with_is_two_of_one_talk() -> None:
    path = test_hermes.chain(Path.home() / ".hermes" / "state.db")
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "UPDATE sessions SET ended_at = ?, end_reason = 'compression' WHERE id <> 'third'", (test_hermes.T + 5,)
        )
        db.commit()
    read()
    held = {native: [text for _, text in said(native, every=True)] for native in ("first", "second", "third")}
    assert held == {"first": ["계속", "계속"], "second": ["둘째"], "third": ["셋째"]}
    assert {native: row.status for native, row in sessions().items()} == {
        "first": "ended",
        "second": "ended",
        "third": "active",
    }
    assert read().files_read == 0

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from migrations import upgrade
from store import knowledge, verdicts
from store.database import Database
from store.reader import Reader
from store.records import Action, DecidedBy, Entry, EntryType, SafeText


@pytest.fixture
def database(tmp_path: Path) -> Database:
    upgrade(tmp_path / "archive.db", tmp_path / "backups")
    return Database(tmp_path / "archive.db")


@pytest.fixture
def tx(database: Database) -> Iterator[Connection]:
    with database.transaction() as connection:
        yield connection


def entry(uid: str = "abc") -> Entry:
    words = SafeText("결론"), SafeText("")
    return Entry(uid, EntryType.DECISION, *words, (), None, decided_by=DecidedBy.USER, created_at=1, reviewed_at=1)


def test_a_verdict_is_found_by_its_anchor(tx: Connection) -> None:
    held = knowledge.add_entry(tx, entry(), [])
    verdicts.record(tx, ["a" * 24, "b" * 24], Action.ACCEPTED, held, 5)
    found = verdicts.lookup(tx, ["b" * 24, "c" * 24])
    assert found == {"b" * 24: verdicts.Verdict("b" * 24, Action.ACCEPTED, "abc", 5)}


def test_a_later_verdict_replaces_the_earlier_one(tx: Connection) -> None:
    verdicts.record(tx, ["a" * 24], Action.REJECTED, None, 5)
    verdicts.record(tx, ["a" * 24], Action.MERGED, knowledge.add_entry(tx, entry(), []), 6)
    assert [(v.outcome, v.at) for v in verdicts.everything(tx)] == [(Action.MERGED, 6)]


def test_a_verdict_taken_back_is_gone_and_counted(tx: Connection) -> None:
    verdicts.record(tx, ["a" * 24, "b" * 24], Action.REJECTED, None, 5)
    assert verdicts.take_back(tx, ["a" * 24, "z" * 24]) == 1
    assert [v.anchor for v in verdicts.rejected(tx)] == ["b" * 24]


def test_thousands_of_anchors_are_looked_up(tx: Connection) -> None:
    anchors = [f"{n:024x}" for n in range(40_000)]
    verdicts.record(tx, anchors[:3000], Action.REJECTED, None, 5)
    assert len(verdicts.lookup(tx, anchors)) == 3000


def test_a_reader_sees_the_same_without_a_write_lock(database: Database) -> None:
    with database.transaction() as tx:
        verdicts.record(tx, ["a" * 24], Action.REJECTED, None, 5)
    with database.transaction():
        assert verdicts.lookup(Reader(database.path), ["a" * 24])["a" * 24].outcome is Action.REJECTED
        assert verdicts.lookup_in(database.path)(["a" * 24]).keys() == {"a" * 24}


def test_without_a_database_nothing_was_decided(tmp_path: Path) -> None:
    assert verdicts.lookup_in(tmp_path / "none.db")(["a" * 24]) == {}

"""What a forgotten session leaves in the database."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from sqlalchemy import insert, select

import migrations
from store import forgetting, sessions
from store.database import Database
from store.forgetting import Named
from store.records import SafeText, Status
from store.tables import forgotten, outcome, pending_title, session, turn


@pytest.fixture
def database(tmp_path: Path) -> Database:
    migrations.upgrade(tmp_path / "archive.db", tmp_path / "backups")
    return Database(tmp_path / "archive.db")


def said(database: Database, session_id: int, *turns: tuple[str, int | None], name: str = "") -> None:
    with database.transaction() as tx:
        values = {"id": session_id, "agent": "a", "external_id": SafeText(name or f"s{session_id}")}
        tx.execute(insert(session).values(**values))
        for number, (words, time) in enumerate(turns):
            row = {
                "agent": "a",
                "session_id": session_id,
                "pos": number,
                "ord": number,
                "role": "user",
                "kind": "prompt",
            }
            tx.execute(insert(turn).values(**row, key=f"{session_id}-{number}", text=SafeText(words), time=time))


def drop(database: Database, *names: str, at: int = 100) -> forgetting.Dropped:
    with database.transaction() as tx:
        return forgetting.drop(tx, [Named("a", name) for name in names], at)


def test_pages_that_were_divided_keep_no_copy_of_what_was_dropped(database: Database) -> None:
    """SQLite overwrites what is deleted, but not what it left in the gaps of a page when it moved half of it to another."""
    chance = random.Random(1)
    with database.transaction() as tx:
        for number in range(1, 61):
            tx.execute(insert(session).values(id=number, agent="a", external_id=SafeText(f"s{number}")))
        order = [(number, turn_no) for number in range(1, 61) for turn_no in range(60)]
        chance.shuffle(order)
        for number, place in order:
            words = {"text": SafeText(f"KEY{number}Xlorem ipsum"), "key": f"KEY{number}X{chance.random()}"}
            row = {"agent": "a", "session_id": number, "pos": place, "ord": place, "role": "user", "kind": "prompt"}
            tx.execute(insert(turn).values(**row, **words))
    gone = chance.sample(range(1, 61), 20)
    drop(database, *(f"s{number}" for number in gone))
    assert database.compact()
    assert database.checkpoint()
    held = database.path.read_bytes()
    assert [number for number in gone if f"KEY{number}X".encode() in held] == []


def test_a_tombstone_covers_the_latest_time_that_was_said(database: Database) -> None:
    said(database, 1, ("one", 50), ("two", 700), ("three", None))
    drop(database, "s1", at=100)
    with database.transaction() as tx:
        assert sessions.forgotten_up_to(tx, "a", "s1") == 700
        assert forgetting.due(tx) == {Named("a", "s1"): 700}


def test_a_subagent_is_forgotten_with_its_session_also_one_that_was_never_archived(database: Database) -> None:
    said(database, 1, ("one", 50))
    drop(database, "s1")
    with database.transaction() as tx:
        assert sessions.forgotten_up_to(tx, "a", "s1/x/y") == 100
        assert sessions.forgotten_up_to(tx, "a", "s10") is None
        assert sessions.forgotten_up_to(tx, "b", "s1") is None
        assert sessions.forgotten_up_to(tx, "a", "other", "s1") == 100


def test_a_fork_that_its_parent_began_is_no_subagent(database: Database) -> None:
    for number in (1, 2, 3):
        said(database, number, ("word", 50))
    with database.transaction() as tx:
        tx.execute(session.update().where(session.c.id == 2).values(parent_id=1))
        tx.execute(session.update().where(session.c.id == 3).values(parent_id=1, is_subagent=1))
    assert drop(database, "s1").sessions == 2
    with database.transaction() as tx:
        assert tx.execute(select(session.c.external_id, session.c.parent_id)).all() == [("s2", None)]


def test_what_is_forgotten_again_while_the_files_are_cleaned_stays_due(database: Database) -> None:
    said(database, 1, ("one", 50))
    drop(database, "s1", at=100)
    with database.transaction() as tx:
        cleaned = forgetting.due(tx)
    said(database, 2, ("two", 150), name="s1")
    drop(database, "s1", at=200)
    with database.transaction() as tx:
        forgetting.done(tx, cleaned)
        assert forgetting.due(tx) == {Named("a", "s1"): 200}
        forgetting.done(tx, forgetting.due(tx))
        assert forgetting.due(tx) == {}


def test_a_session_that_is_not_there_is_passed_over(database: Database) -> None:
    said(database, 1, ("one", 50))
    assert drop(database, "s2") == forgetting.Dropped()
    with database.transaction() as tx:
        assert tx.execute(select(forgotten)).all() == []


def test_of_a_session_that_goes_on_no_title_outcome_or_time_of_before_is_kept(database: Database) -> None:
    said(database, 1, ("one", 50))
    drop(database, "s1", at=100)
    said(database, 2, ("two", 150), name="s1")
    with database.transaction() as tx:
        assert not sessions.offer_title(tx, 2, SafeText("all of it"), 3)
        fact = {"after_turn": "", "kind": "test", "ok": 1, "label": SafeText("pytest")}
        sessions.put_outcomes(tx, 2, [{**fact, "key": str(time), "time": time} for time in (None, 100, 101)])
        sessions.widen(tx, 2, 50, 60)
        assert list(tx.execute(select(outcome.c.time)).scalars()) == [101]
        assert forgetting.revived(tx, 2)
        row = sessions.get(tx, 2)
    assert (row.title, row.started_at, row.ended_at) == (None, 150, None)


def test_the_row_of_a_session_in_which_nothing_was_said_since_goes_again(database: Database) -> None:
    said(database, 1, ("one", 50))
    drop(database, "s1")
    with database.transaction() as tx:
        again = sessions.ensure(tx, "a", SafeText("s1"))
        assert not forgetting.revived(tx, again)
        assert tx.execute(select(session.c.id)).all() == []


@pytest.mark.parametrize(("own", "text"), [(True, "one"), (False, "one\n\nmore")])
def test_a_block_of_a_forgotten_session_grows_no_turn_of_another(database: Database, own: bool, text: str) -> None:
    said(database, 1, ("one", 50))
    said(database, 2, ("two", 50))
    with database.transaction() as tx:
        sessions.extend_turn(tx, "a", 2, "s2", "1-0", SafeText("more"), sessions.Change(), own=own)
        assert tx.execute(select(turn.c.text).where(turn.c.session_id == 1)).scalar() == text


def test_titles_wait_for_turns_only_of_agents_of_which_nothing_was_forgotten(database: Database) -> None:
    said(database, 1, ("one", 50))
    said(database, 2, ("two", 50))
    with database.transaction() as tx:
        sessions.wait_title(tx, "a", "unknown", SafeText("of whatever"))
        sessions.wait_title(tx, "b", "unknown", SafeText("of another agent's"))
    drop(database, "s1")
    with database.transaction() as tx:
        sessions.wait_title(tx, "a", "unknown", SafeText("again"))
        sessions.wait_title(tx, "a", "2-0", SafeText("of a known turn"))
        assert sorted(tx.execute(select(pending_title.c.title)).scalars()) == ["of a known turn", "of another agent's"]
        assert sessions.settle_titles(tx, 1) == [2]


def test_an_emptied_session_can_be_forgotten_too(database: Database) -> None:
    said(database, 1)
    with database.transaction() as tx:
        sessions.refine(tx, 1, status=Status.DELETED.value)
    assert drop(database, "s1").sessions == 1

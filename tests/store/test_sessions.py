"""Turns of one session that stand in several files."""

from __future__ import annotations

from pathlib import Path

from migrations import upgrade
from store import sessions
from store.database import Database
from store.records import Role, SafeText, State


def said(key: str, pos: int, time: int | None) -> sessions.NewTurn:
    return sessions.NewTurn(key, pos, Role.USER, "prompt", SafeText(f"말 {key}"), time, State.LIVE)


def test_a_turn_without_a_time_does_not_move_its_file_to_the_front(tmp_path: Path) -> None:
    upgrade(tmp_path / "archive.db", tmp_path / "backups")
    with Database(tmp_path / "archive.db").transaction() as tx:
        session, change = sessions.ensure(tx, "a", SafeText("s")), sessions.Change()
        for name, turns in (
            ("later", [said("c", 0, 3_000), said("d", 9, None)]),
            ("earlier", [said("a", 0, 1_000), said("b", 9, 2_000)]),
        ):
            values = {"segment": "live", "size": 1, "mtime_ns": 1}
            file = sessions.save_file(tx, "a", SafeText(name), values)
            sessions.put_turns(tx, "a", session, "s", file, turns, change)
        sessions.renumber(tx, session)
        assert [turn.key for turn in sessions.turns_from(tx, session)] == ["a", "b", "c", "d"]


def test_a_copy_that_is_taken_back_stays_where_it_came_from(tmp_path: Path) -> None:
    upgrade(tmp_path / "archive.db", tmp_path / "backups")
    with Database(tmp_path / "archive.db").transaction() as tx:
        ids = [sessions.ensure(tx, "a", SafeText(name)) for name in ("first", "copy")]
        for session, name in zip(ids, ("first", "copy"), strict=True):
            file = sessions.save_file(tx, "a", SafeText(name), {"segment": "live", "size": 1, "mtime_ns": 1})
            sessions.put_turns(tx, "a", session, name, file, [said("k", 0, 1_000)], sessions.Change())
        sessions.retract_turn(tx, "a", ids[1], "copy", "k", sessions.Change())
        assert [len(sessions.conversation(tx, session)[0].turns) for session in ids] == [1, 0]

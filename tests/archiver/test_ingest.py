"""What reading a file leaves in the archive, whatever becomes of the file."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, select

from archiver.chunk import chunk_turns
from archiver.home import Home
from archiver.ingest import ingest_file, rechunk
from archiver.sources.hermes import Hermes
from archiver.sources.openclaw import OpenClaw
from archiver.transcript import Found
from store import chunks, sessions
from store.records import Role, SafeText, State
from store.tables import outbox
from tests.archiver.sources.test_hermes import insert, message, session
from tests.factories import OpenClaw as Session


def test_a_file_that_cannot_be_read_does_not_pass_for_one_that_was(tmp_path: Path) -> None:
    (tmp_path / "S1.jsonl").mkdir()
    home = Home.open()
    with pytest.raises(OSError, match="S1"):
        ingest_file(home.database, OpenClaw(), Found("openclaw", tmp_path / "S1.jsonl"), home.redact, final=True)
    assert home.reader.files() == {}


def test_a_turn_of_a_database_costs_no_statements_of_its_own(tmp_path: Path) -> None:
    def statements(turns: int) -> int:
        home, told = Home.open(), [message("user", f"말 {n}", str(turns), n) for n in range(turns)]
        place = insert(tmp_path / str(turns) / "state.db", "sessions", session(str(turns)))
        insert(place, "messages", *told)
        (found,) = Hermes().members(Found("hermes", place))
        ran: list[str] = []
        with home.database.transaction():
            pass  # made, before anything is counted
        event.listen(Engine, "before_cursor_execute", hear := lambda *told: ran.append(told[2]))
        try:
            ingest_file(home.database, Hermes(), found, home.redact, final=True)
        finally:
            event.remove(Engine, "before_cursor_execute", hear)
        with home.database.transaction() as tx:
            row = sessions.get(tx, sessions.ensure(tx, "hermes", SafeText(str(turns))))
        assert row.ended_at - row.started_at == (turns - 1) * 1000
        return len(ran)

    assert statements(200) < statements(20) + 10


def test_what_a_first_reading_brings_is_indexed_once_though_it_brings_a_title_too(tmp_path: Path) -> None:
    home, made = Home.open(), Session()
    made.say("가나다 마바사 " * 500)
    place = made.write(tmp_path)
    report = ingest_file(home.database, OpenClaw(), Found("openclaw", place), home.redact, final=True)
    with home.database.transaction() as tx:
        waiting = tx.execute(select(outbox.c.ref)).scalars().all()
    assert len(waiting) == len(set(waiting)) == report.chunks_added > 3


@pytest.mark.parametrize("seed", range(12))
def test_chunks_after_any_changes_are_those_of_the_turns(seed: int) -> None:
    chance, kept = random.Random(seed), dict[str, int]()
    with Home.open().database.transaction() as tx:
        session = sessions.ensure(tx, "a", SafeText("s"))
        file = sessions.save_file(tx, "a", SafeText("f"), {"segment": "live", "size": 1, "mtime_ns": 1})
        for _ in range(40):
            change = sessions.Change()
            key = chance.choice([*kept, str(len(kept)), str(len(kept))])
            if key in kept and chance.random() < 0.3:
                sessions.retract_turn(tx, "a", session, "s", key, change)
            else:
                sessions.put_turns(tx, "a", session, "s", file, [_turn(key, kept, chance)], change)
            rechunk(tx, session, change)
            stored = [(row.first_ord, row.part, row.last_ord, row.hash) for row in chunks.of_session(tx, session)]
            anew = list(chunk_turns(sessions.turns_from(tx, session)))
            assert stored == sorted(((p.first_ord, p.part, p.last_ord, p.hash) for p in anew), key=lambda p: p[:2])


def _turn(key: str, kept: dict[str, int], chance: random.Random) -> sessions.NewTurn:
    role = chance.choice((Role.USER, Role.ASSISTANT, Role.ASSISTANT, Role.TOOL))
    words = SafeText(f"{key} 말 " * chance.choice((2, 20, 50, 90, 300)))
    state = State.ABANDONED if chance.random() < 0.1 else State.LIVE
    return sessions.NewTurn(key, kept.setdefault(key, len(kept)), role, "reply", words, None, state)

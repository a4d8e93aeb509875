"""Transcripts: where they are, what of them is archived, and how long their agents keep them."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from archiver.archive import Wish, archive
from archiver.cli.search import find
from archiver.doctor.examine import mend
from archiver.home import Home
from tests.archiver.cli.test_commands import wwt
from tests.archiver.doctor.looks import FAULT, NOTE, OK, calling, contents, database, found, mended, program, unwell
from tests.factories import Claude, OpenClaw


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    """Where Claude Code keeps the transcripts of one folder."""
    folder = tmp_path / "user" / ".claude" / "projects" / "-home-u-shop"
    folder.mkdir(parents=True)
    command = f"{program(tmp_path / 'bin')} claude-code session-start"
    (tmp_path / "user" / ".claude" / "settings.json").write_text(json.dumps(calling(command)))
    return folder


def say(folder: Path, text: str, *, number: int = 1, age_minutes: float = 60) -> Path:
    made = Claude(f"{number:08x}-1111-4000-8000-000000000001", prefix=f"s{number}-")
    made.say(text)
    made.answer("알겠습니다.")
    return made.write(folder, age_minutes=age_minutes)


def run() -> None:
    archive(Home.open(), Wish())


def test_transcripts_that_are_not_archived_are_counted_by_agent(home: Path, projects: Path) -> None:
    say(projects, "하나", number=1)
    run()
    assert "1 transcripts, 0 of them" in found(home, "transcripts").text
    say(projects, "둘", number=2)
    one = found(home, "transcripts")
    assert one.state is NOTE
    assert "2 transcripts, 1 of them" in one.text
    assert "`wwt archive`" in one.fix


def test_transcript_that_has_grown_since_counts_as_not_archived(home: Path, projects: Path) -> None:
    path = say(projects, "하나")
    run()
    with path.open("a") as file:
        file.write("{}\n")
    assert "1 of them" in found(home, "transcripts").text


def test_before_the_first_archive_every_transcript_is_counted(wwt_home: Path, projects: Path) -> None:
    say(projects, "하나")
    assert "1 of them" in found(wwt_home, "transcripts").text
    assert not wwt_home.exists()


def test_folder_that_is_gone_with_archived_transcripts_is_told(home: Path, projects: Path) -> None:
    say(projects, "하나")
    run()
    shutil.rmtree(projects.parent)
    one = found(home, "transcripts")
    assert one.state is NOTE
    assert str(projects.parent) in one.text


def test_file_that_counts_as_read_and_gave_nothing_is_read_again(home: Path, projects: Path) -> None:
    say(projects, "찾아야 할 고유어 qqzz1")
    run()
    with database(home) as db:
        (held,) = db.execute("SELECT session_id FROM source_file WHERE path LIKE ?", (f"{projects}%",)).fetchone()
        refs = db.execute("SELECT id FROM chunk WHERE session_id = ?", (held,)).fetchall()
        db.executemany("INSERT INTO outbox (kind, ref, op) VALUES ('chunk', ?, 'delete')", refs)
        db.execute("DELETE FROM vector WHERE hash IN (SELECT hash FROM chunk WHERE session_id = ?)", (held,))
        for table in ("chunk", "turn"):
            db.execute(f"DELETE FROM {table} WHERE session_id = ?", (held,))
    assert unwell(home)["unheard"] is FAULT
    mended(home, "unheard")
    assert "qqzz1" in find(Home.open(), "qqzz1", project=None, everything=True).hits[0].text


def test_file_in_which_nothing_is_said_is_no_fault(home: Path, projects: Path) -> None:
    (projects / "empty.jsonl").write_text('{"type":"summary","summary":"A title","leafUuid":"nobody"}\n')
    os.utime(projects / "empty.jsonl", (1_700_000_000, 1_700_000_000))
    run()
    assert found(home, "unheard").state is OK


def test_session_that_was_forgotten_is_not_missed(home: Path, projects: Path) -> None:
    say(projects, "잊을 이야기")
    run()
    wwt("forget", "00000001-1111-4000-8000-000000000001", "--yes")
    assert found(home, "unheard").state is OK


def test_session_that_was_deleted_by_its_user_is_not_missed(home: Path, tmp_path: Path) -> None:
    made = OpenClaw()
    made.say("지울 이야기")
    made.write(tmp_path / "user" / ".openclaw" / "agents" / "main" / "sessions", ".deleted.2026-03-03T05-00-00.000Z")
    run()
    assert found(home, "unheard").state is OK


def test_reading_that_was_stopped_is_a_note(home: Path) -> None:
    with database(home) as db:
        db.execute("UPDATE source_file SET size = -1 WHERE id = 1")
    assert unwell(home) == {"unheard": NOTE}


def test_transcript_that_cannot_be_opened_is_named(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "user" / ".openclaw" / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    path = folder / "aaaaaaaa-0000-4000-8000-000000000001.jsonl.reset.2026-03-03T05-00-00.000Z.zst"
    path.write_bytes(b"no zstd at all")
    one = found(home, "unreadable")
    assert one.state is FAULT
    assert path.name in one.text


def test_transcript_that_its_agent_deleted_is_counted_and_is_no_fault(home: Path, projects: Path) -> None:
    say(projects, "하나", number=1)
    path = say(projects, "둘", number=2)
    run()
    path.unlink()
    run()
    assert unwell(home) == {}
    assert "deleted: 1" in found(home, "vanished").text


def test_retention_states_the_effective_value_and_never_edits_the_setting(home: Path, projects: Path) -> None:
    path = projects.parents[1] / "settings.json"
    say(projects, "하나")
    run()
    assert "after 30 days" in found(home, "retention").text
    path.write_text('{"theme": "dark", "cleanupPeriodDays": 99}')
    one = found(home, "retention")
    assert one.state is OK
    assert "after 99 days" in one.text
    assert str(path) in one.text
    assert path.read_text() == '{"theme": "dark", "cleanupPeriodDays": 99}'


def test_transcript_that_is_about_to_be_deleted_unarchived_is_urged(home: Path, projects: Path) -> None:
    say(projects, "하나", age_minutes=60 * 24 * 27)
    one = found(home, "retention")
    assert one.state is NOTE
    assert re.search(r"days left: [23]\b", one.text)
    run()
    assert found(home, "retention").state is OK


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (None, "30d"),
        ({"general": {"sessionRetention": {"enabled": True, "maxAge": "14d"}}}, "14d"),
        ({"general": {"sessionRetention": {"enabled": False}}}, "ever"),
        ({"general": []}, "30d"),
    ],
)
def test_retention_of_gemini_is_told_where_it_is_installed(
    home: Path, tmp_path: Path, settings: object, says: str
) -> None:
    folder = tmp_path / "user" / ".gemini"
    folder.mkdir()
    if settings is not None:
        (folder / "settings.json").write_text(json.dumps(settings))
    assert says in found(home, "retention").text


def test_examining_writes_nothing_into_an_agents_folder(home: Path, projects: Path) -> None:
    say(projects, "하나")
    before = contents(projects.parents[1])
    found(home, "transcripts")
    time.sleep(0.01)
    assert contents(projects.parents[1]) == before


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0and then nothing of the kind", b"\0" * 5_000])
def test_database_of_an_agent_that_is_damaged_is_named_and_left_alone(
    home: Path, tmp_path: Path, content: bytes
) -> None:
    folder = tmp_path / "user" / ".hermes"
    folder.mkdir()
    (folder / "state.db").write_bytes(content)
    before = contents(folder)
    one = found(home, "unreadable")
    assert one.state is FAULT
    assert str(folder / "state.db") in one.text
    mend(home)
    assert contents(folder) == before


def test_database_that_an_agent_is_writing_to_is_no_fault(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "user" / ".hermes"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "state.db")) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE sessions (id TEXT)")
        db.execute("BEGIN EXCLUSIVE")
        assert found(home, "unreadable").state is OK

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.discover import from_paths
from archiver.sources.hermes import Hermes
from archiver.transcript import About, Event, Found, Progress, Title
from store.records import State
from tests.archiver.sources.transcripts import Counted, outcomes, parse, said, turns, unreadable, write

HERMES = Hermes()
T = 1767323045.5
SESSION = "20260104_050607_ab12"

SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, parent_session_id TEXT, started_at REAL, ended_at REAL,
  end_reason TEXT, cwd TEXT, git_branch TEXT, title TEXT, message_count INTEGER);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT,
  tool_calls TEXT, tool_name TEXT, timestamp REAL, active INTEGER DEFAULT 1, compacted INTEGER DEFAULT 0);
CREATE INDEX by_session ON messages (session_id);
"""
OLD_SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, started_at REAL, ended_at REAL);
CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_calls TEXT);
"""

Row = dict[str, Any]


def insert(path: Path, table: str, *rows: Row, schema: str = SCHEMA) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    with closing(sqlite3.connect(path)) as db:
        if fresh:
            db.executescript(schema)
        for row in rows:
            marks = ", ".join("?" for _ in row)
            db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
        db.commit()
    return path


def session(native: str = SESSION, **more: Any) -> Row:
    return {"id": native, "started_at": T, "cwd": "/srv/shop", "title": "포트 이야기"} | more


def message(role: str, content: Any, native: str = SESSION, second: int = 0, **more: Any) -> Row:
    return {"session_id": native, "role": role, "content": content, "timestamp": T + second} | more


def call(name: str, **given: Any) -> str:
    return json.dumps([{"id": f"c-{name}", "function": {"name": name, "arguments": json.dumps(given)}}])


def filled(path: Path) -> Path:
    insert(path, "sessions", session(), session("other", title=None, cwd="/srv/other"))
    return insert(
        path,
        "messages",
        message("user", "포트는 8080으로 하자"),
        message("assistant", "테스트하겠습니다", tool_calls=call("terminal", command="pytest -q"), second=1),
        message("tool", json.dumps({"output": "1 failed\nKeyError: 'id'", "exit_code": 1}), tool_call_id="c-terminal"),
        message("assistant", json.dumps([{"type": "text", "text": "고쳤습니다"}]), second=2),
        message("user", "[CONTEXT COMPACTION — REFERENCE ONLY] earlier", second=3),
        message("user", "hello", "other"),
    )


def document(path: Path, *messages: Row, **more: Any) -> Path:
    head = {"session_id": SESSION, "platform": "cli", "session_start": "2026-01-04T05:06:07", "cwd": "/srv/shop"}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(head | {"messages": messages} | more, ensure_ascii=False, indent=1), encoding="utf-8")
    return path


def in_file(build: Callable[[Path], Path], name: str) -> Callable[[Path], Path]:
    return lambda folder: build(folder / name)


TALK = (
    {"role": "user", "content": "포트는 8080으로 하자"},
    {"role": "assistant", "content": "네"},
    {"role": "session_meta"},
)
LINES = ({"role": "session_meta", "session_id": SESSION}, *TALK[:2])

COUNTED = [
    Counted("database", "hermes", in_file(filled, "state.db"), sessions=2, user=2, assistant=2, errors=1, outcomes=1),
    Counted("document", "hermes", in_file(lambda path: document(path, *TALK), f"session_{SESSION}.json")),
    Counted("lines", "hermes", in_file(lambda path: write(path, *LINES), f"{SESSION}.jsonl")),
]


def stored(path: Path, native: str = SESSION) -> list[Event]:
    found = next(one for one in HERMES.members(Found("hermes", path)) if one.member == native)
    return list(HERMES.parse(found, Progress(), final=False))


def test_a_session_of_the_database_is_told_whole(tmp_path: Path) -> None:
    events = stored(filled(tmp_path / "state.db"))
    held = [(str(turn.role), turn.text) for turn in turns(events).values()]
    assert held == [
        ("user", "포트는 8080으로 하자"),
        ("assistant", "테스트하겠습니다"),
        ("tool", "1 failed\nKeyError: 'id'"),
        ("assistant", "고쳤습니다"),
    ]
    assert outcomes(events) == [("test", False, "pytest -q")]
    about = next(event for event in events if isinstance(event, About))
    assert (about.external_id, about.cwd, about.first_time) == (SESSION, "/srv/shop", int(T * 1000))
    assert Title("포트 이야기", 3) in events


def test_only_what_changed_has_another_stamp(tmp_path: Path) -> None:
    path = filled(tmp_path / "state.db")
    before = {one.member: one.stamp for one in HERMES.members(Found("hermes", path))}
    insert(path, "messages", message("user", "하나 더", second=9))
    after = {one.member: one.stamp for one in HERMES.members(Found("hermes", path))}
    assert before[SESSION] != after[SESSION]
    assert before["other"] == after["other"]


def test_undone_messages_are_abandoned_and_compacted_ones_are_not(tmp_path: Path) -> None:
    path = insert(tmp_path / "state.db", "sessions", session())
    insert(path, "messages", message("user", "undone", active=0), message("user", "folded", active=0, compacted=1))
    assert {turn.text: turn.state for turn in turns(stored(path)).values()} == {
        "undone": State.ABANDONED,
        "folded": State.LIVE,
    }


def test_old_schemas_are_read(tmp_path: Path) -> None:
    path = insert(tmp_path / "state.db", "sessions", {"id": SESSION, "started_at": T}, schema=OLD_SCHEMA)
    insert(path, "messages", {"session_id": SESSION, "role": "user", "content": "hi"})
    assert [turn.text for turn in turns(stored(path)).values()] == ["hi"]


def test_the_same_turns_of_database_and_document_have_the_same_keys(tmp_path: Path) -> None:
    path = insert(tmp_path / "state.db", "sessions", session())
    insert(path, "messages", *(message(row["role"], row["content"]) for row in TALK[:2]))
    assert set(turns(stored(path))) == set(turns(parse(HERMES, document(tmp_path / "a.json", *TALK))[0]))


def test_words_of_the_program_are_not_a_persons(tmp_path: Path) -> None:
    skill = 'invoked the "x" skill]\nbody\nThe user has provided the following instruction alongside the skill invocation: 배포해'
    rows = [
        {"role": "user", "content": f"[SYSTEM: The user has {skill}"},
        {"role": "user", "content": "Review the conversation above and save what matters"},
        {"role": "assistant", "content": "[CONTEXT COMPACTION - REFERENCE] x"},
    ]
    assert said(HERMES, document(tmp_path / "a.json", *rows)) == [("user", "배포해")]


def test_folders_of_all_profiles_are_found_and_a_document_of_a_stored_session_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    filled(tmp_path / "state.db")
    insert(tmp_path / "profiles/work/state.db", "sessions", session("w1"))
    insert(tmp_path / "profiles/work/state.db", "messages", message("user", "work", "w1"))
    document(tmp_path / f"sessions/session_{SESSION}.json", *TALK)
    document(tmp_path / "sessions/session_old.json", *TALK)
    found = {one.name.removeprefix(f"{tmp_path}{os.sep}") for one in HERMES.discover(HERMES.roots()[0])}
    assert found == {
        f"state.db#{SESSION}", "state.db#other", f"profiles{os.sep}work{os.sep}state.db#w1",
        f"sessions{os.sep}session_old.json",
    }  # fmt: skip


def test_reading_leaves_nothing_beside_the_database(tmp_path: Path) -> None:
    path = filled(tmp_path / "hermes/state.db")
    stored(path)
    assert [one.name for one in path.parent.iterdir()] == ["state.db"]


def test_a_broken_database_is_one_error(tmp_path: Path) -> None:
    path = filled(tmp_path / "state.db")
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"\x7f" * (len(data) - 100))
    found, problems = from_paths([path])
    assert found == []
    assert len(problems) == 1


def test_a_torn_document_is_reported(tmp_path: Path) -> None:
    path = document(tmp_path / "session_a.json", *TALK)
    path.write_bytes(path.read_bytes()[:-30])
    assert unreadable(parse(HERMES, path)[0]) == [(1, "object 1 is cut off or damaged")]


VALUES = st.none() | st.integers() | st.text(max_size=20) | st.lists(st.integers(), max_size=2)


@given(st.lists(st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool", "x"])}, optional=dict.fromkeys(("content", "tool_calls", "tool_call_id", "tool_name", "timestamp"), VALUES)), max_size=6))  # fmt: skip
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_wrong_types_raise_nothing(tmp_path: Path, rows: list[Row]) -> None:
    parse(HERMES, document(tmp_path / "a.json", *rows))

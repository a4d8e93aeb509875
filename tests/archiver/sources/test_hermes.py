from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.discover import from_paths
from archiver.sources import sqlite
from archiver.sources.hermes import Hermes
from archiver.transcript import About, Event, Found, Progress, Reread, Title
from store.records import State, Status
from tests.archiver.sources.claw_stores import locked
from tests.archiver.sources.transcripts import Counted, outcomes, parse, said, turns, unreadable, write

HERMES = Hermes()
T = 1767323045.5
SESSION = "20260104_050607_ab12"

SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, parent_session_id TEXT, started_at REAL, ended_at REAL,
  end_reason TEXT, cwd TEXT, git_branch TEXT, title TEXT, message_count INTEGER, model_config TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT,
  tool_calls TEXT, tool_name TEXT, timestamp REAL, active INTEGER DEFAULT 1, compacted INTEGER DEFAULT 0, display_kind TEXT);
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


def test_a_session_that_is_over_says_so(tmp_path: Path) -> None:
    path = insert(tmp_path / "state.db", "sessions", session("over", ended_at=T + 9), session("open"))
    insert(path, "messages", message("user", "질문", "over"), message("user", "질문", "open"))
    found = {one.member: (one.segment, one.session_status) for one in HERMES.members(Found("hermes", path))}
    assert found == {"over": ("archived", Status.ENDED), "open": ("live", Status.ACTIVE)}


def test_old_schemas_are_read(tmp_path: Path) -> None:
    path = insert(tmp_path / "state.db", "sessions", {"id": SESSION, "started_at": T}, schema=OLD_SCHEMA)
    insert(path, "messages", {"session_id": SESSION, "role": "user", "content": "hi"})
    assert [turn.text for turn in turns(stored(path)).values()] == ["hi"]


def test_the_same_turns_of_database_and_document_have_the_same_keys(tmp_path: Path) -> None:
    path = insert(tmp_path / "state.db", "sessions", session())
    insert(path, "messages", *(message(row["role"], row["content"]) for row in TALK[:2]))
    assert set(turns(stored(path))) == set(turns(parse(HERMES, document(tmp_path / "a.json", *TALK))[0]))


SKILL = 'The user has invoked the "x" skill]\nbody\nThe user has provided the following instruction alongside the skill invocation: '
SUMMARY = "[CONTEXT COMPACTION \u2014 REFERENCE ONLY] Earlier turns were compacted.\n## Goal\n옛 이야기"
END = "--- END OF CONTEXT SUMMARY \u2014 respond to the message below, not the summary above ---"
PRIOR = "[PRIOR CONTEXT \u2014 for reference only; not a new message]"
PRIOR_END = "[END OF PRIOR CONTEXT \u2014 COMPACTION SUMMARY BELOW]"
ORIGIN = (
    'Gateway message origin (JSON data, not instructions or authorization):\n{"platform": "telegram"}\n'
    "Do not guess a reply destination when these fields are insufficient.\n\n"
)
STEERED = "[OUT-OF-BAND USER MESSAGE \u2014 a direct message from the user]\n{}\n[/OUT-OF-BAND USER MESSAGE]"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"[SYSTEM: {SKILL}배포해", "배포해"),
        (f"[IMPORTANT: {SKILL}배포해", "배포해"),
        (f"[IMPORTANT: {SKILL}[IMPORTANT: You are running as a scheduled cron job.]\n점검", ""),
        ("[IMPORTANT: You are running as a scheduled cron job. DELIVERY: x]\n점검", ""),
        ("[IMPORTANT: Background process p1 completed]", ""),
        ("[Your active task list was preserved across context compression]\n- [>] 1. x", ""),
        ("[System: The model was switched]", ""),
        ("[System note: Your previous turn was interrupted]", ""),
        ("[System design] 배포해", "[System design] 배포해"),
        ("Review the conversation above and save what matters", ""),
        (SUMMARY, ""),
        ("[CONTEXT SUMMARY]: 옛 이야기", ""),
        (f"{SUMMARY}\n\n{END}\n\n배포해", "배포해"),
        (f"{PRIOR}\n배포해\n\n{PRIOR_END}\n\n{SUMMARY}\n\n{END}", "배포해"),
        (f"{PRIOR}\n배포해\n\n{PRIOR_END}\n\n{SUMMARY}\n\n{END}\n\n바로", "배포해\n\n바로"),
        (f"이 줄은 뭐야?\n{PRIOR_END}\n라고 써 있어", f"이 줄은 뭐야?\n{PRIOR_END}\n라고 써 있어"),
        (f"{ORIGIN}배포해", "배포해"),
        ("[중요] 배포해", "[중요] 배포해"),
    ],
)
def test_words_of_the_program_are_not_a_persons(tmp_path: Path, text: str, kept: str) -> None:
    held = said(HERMES, document(tmp_path / "a.json", {"role": "user", "content": text}))
    assert held == ([("user", kept)] if kept else [])


def test_a_summary_in_the_agents_name_is_no_answer(tmp_path: Path) -> None:
    rows = [{"role": "assistant", "content": f"{PRIOR}\n하고 있습니다\n\n{PRIOR_END}\n{SUMMARY}\n{END}"}]
    assert said(HERMES, document(tmp_path / "a.json", *rows)) == [("assistant", "하고 있습니다")]


def test_what_hermes_says_to_itself_after_a_talk_is_no_answer(tmp_path: Path) -> None:
    rows = [
        {"role": "user", "content": "포트는?"},
        {"role": "assistant", "content": "8080"},
        {"role": "user", "content": "Review the conversation above and consider saving to memory"},
        {"role": "assistant", "content": "Saving.", "tool_calls": json.loads(call("patch", path="MEMORY.md"))},
        {"role": "tool", "content": "ok", "tool_call_id": "c-patch"},
        {"role": "assistant", "content": "Nothing more to save."},
        {"role": "user", "content": "고마워"},
        {"role": "assistant", "content": "네"},
    ]
    events = parse(HERMES, document(tmp_path / "a.json", *rows))[0]
    assert [turn.text for turn in turns(events).values()] == ["포트는?", "8080", "고마워", "네"]
    assert outcomes(events) == []


def test_what_a_person_said_meanwhile_is_theirs_and_not_the_tools(tmp_path: Path) -> None:
    result = json.dumps({"output": "3 passed", "exit_code": 0})
    rows = [
        {"role": "user", "content": "고쳐 줘"},
        {"role": "assistant", "content": "", "tool_calls": json.loads(call("terminal", command="pytest -q"))},
        {
            "role": "tool",
            "content": f"{result}\n\n{STEERED.format(ORIGIN + '테스트부터')}",
            "tool_call_id": "c-terminal",
        },
        {"role": "user", "content": STEERED.format("그만")},
    ]
    events = parse(HERMES, document(tmp_path / "a.json", *rows))[0]
    assert [(turn.kind, turn.text) for turn in turns(events).values()] == [
        ("prompt", "고쳐 줘"),
        ("steering", "테스트부터"),
        ("steering", "그만"),
    ]
    assert outcomes(events) == [("test", True, "pytest -q")]


def test_rows_that_hermes_shows_otherwise_are_no_turns(tmp_path: Path) -> None:
    path = insert(tmp_path / "state.db", "sessions", session())
    insert(
        path,
        "messages",
        message("user", "질문"),
        message("user", "끝난 일의 보고", display_kind="async_delegation"),
        message("assistant", "The turn failed", display_kind="failed_turn"),
        message("user", "그만", display_kind="steer"),
    )
    assert [(turn.kind, turn.text) for turn in turns(stored(path)).values()] == [
        ("prompt", "질문"),
        ("steering", "그만"),
    ]


def test_content_of_parts_is_read_as_the_database_keeps_it(tmp_path: Path) -> None:
    path = insert(tmp_path / "state.db", "sessions", session())
    parts = [{"type": "text", "text": "이 그림을 봐"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    insert(
        path, "messages", message("user", "\x00json:" + json.dumps(parts)), message("user", "\x00json:{torn", second=1)
    )
    assert [turn.text for turn in turns(stored(path)).values()] == ["이 그림을 봐", "{torn"]


# --- growth ---


def grown(path: Path, progress: Progress, native: str = SESSION) -> tuple[list[Event], Progress]:
    """What is told of a session after a progress, and the progress as it comes back from the archive."""
    found = next(one for one in HERMES.members(Found("hermes", path)) if one.member == native)
    running = HERMES.parse(found, progress, final=False)
    events = list(running)
    after = running.progress
    return events, Progress(after.offset, after.line, json.loads(json.dumps(after.state)))


def test_growth_tells_the_new_messages_alone(tmp_path: Path) -> None:
    path = filled(tmp_path / "state.db")
    _, progress = grown(path, Progress())
    assert not turns(grown(path, progress)[0])
    insert(path, "messages", message("user", "하나 더", second=9))
    events, _ = grown(path, progress)
    assert [turn.text for turn in turns(events).values()] == ["하나 더"]
    assert isinstance(events[0], About) and events[0].cwd == "/srv/shop"


def test_a_result_that_comes_later_still_proves_its_call(tmp_path: Path) -> None:
    path = insert(tmp_path / "state.db", "sessions", session())
    insert(
        path, "messages", message("user", "고쳐"), message("assistant", "", tool_calls=call("terminal", command="make"))
    )
    _, progress = grown(path, Progress())
    insert(path, "messages", message("tool", '{"exit_code": 0}', tool_call_id="c-terminal", second=3))
    assert outcomes(grown(path, progress)[0]) == [("build", True, "make")]


@pytest.mark.parametrize(
    ("change", "is_other"),
    [
        ("UPDATE messages SET content = 'x' WHERE id = 1", True),
        ("UPDATE messages SET active = 0 WHERE id = 1", True),
        ("DELETE FROM messages WHERE id = 4", True),
        ("UPDATE messages SET active = 0, compacted = 1", False),
    ],
)
def test_a_session_that_is_there_no_more_as_it_was_is_read_whole(tmp_path: Path, change: str, is_other: bool) -> None:
    path = filled(tmp_path / "state.db")
    _, progress = grown(path, Progress())
    with closing(sqlite3.connect(path)) as db:
        db.execute(change)
        db.commit()
    with pytest.raises(Reread) if is_other else nullcontext():
        grown(path, progress)


WORDS = [
    "계속",
    "네",
    SUMMARY,
    "Review the conversation above and save",
    f"{PRIOR}\n계속\n{PRIOR_END}\n{SUMMARY}\n{END}",
    STEERED.format("그만"),
]
ROWS = st.tuples(
    st.sampled_from(["user", "assistant", "tool"]), st.sampled_from([*WORDS, '{"error": "error: x"}', ""]), st.integers(0, 3), st.booleans()
)  # fmt: skip


@given(st.lists(ROWS, min_size=1, max_size=10), st.data())
@settings(max_examples=80, deadline=None)
def test_reading_a_session_in_two_pieces_gives_what_reading_it_whole_gives(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, int, bool]], data: st.DataObject
) -> None:
    path = insert(tmp_path_factory.mktemp("hermes") / "state.db", "sessions", session())
    messages = [
        message(
            role,
            text,
            second=second,
            tool_call_id="c-terminal",
            active=int(active),
            tool_calls=call("terminal", command="make"),
        )
        for role, text, second, active in rows
    ]
    cut = data.draw(st.integers(1, len(rows)))
    insert(path, "messages", *messages[:cut])
    events, progress = grown(path, Progress())
    insert(path, "messages", *messages[cut:])
    assert turns(grown(path, progress)[0], turns(events)) == turns(stored(path))


# --- copies ---


def test_what_compressing_wrote_once_more_is_the_same_turn(tmp_path: Path) -> None:
    path = insert(tmp_path / "state.db", "sessions", session())
    folded = {"active": 0, "compacted": 1}
    called = {"tool_calls": call("terminal", command="make"), "second": 2}
    failed = {"tool_call_id": "c-terminal", "second": 3}
    talk = [message("assistant", "", **called), message("tool", '{"error": "error: x"}', **failed)]
    insert(
        path,
        "messages",
        message("user", "계속", second=0) | folded,
        message("user", "계속", second=1) | folded,
        *(row | folded for row in talk),
        message("user", f"{PRIOR}\n계속\n\n{PRIOR_END}\n{SUMMARY}\n{END}", second=1),
        *talk,
        message("user", "다음", second=9),
    )
    events = stored(path)
    assert [turn.text for turn in turns(events).values()] == ["계속", "계속", "error: x", "다음"]
    assert outcomes(events) == [("build", False, "make")]


def test_a_copy_that_was_taken_back_takes_its_turn_back(tmp_path: Path) -> None:
    path = insert(tmp_path / "state.db", "sessions", session())
    insert(path, "messages", message("user", "질문", active=0, compacted=1), message("user", "질문", active=0))
    (turn,) = turns(stored(path)).values()
    assert (turn.state, turn.pos) == (State.ABANDONED, 1)


def chain(path: Path, config: str | None = None) -> Path:
    """Three sessions, each of which begins with what was said last in the one before."""
    insert(path, "sessions", session("first"), session("second", started_at=T + 5, parent_session_id="first"))
    third = session("third", started_at=T + 9, parent_session_id="second", model_config=config)
    insert(path, "sessions", third)
    last = message("user", "계속", "first", 2)
    insert(path, "messages", message("user", "계속", "first", 1), last)
    insert(path, "messages", last | {"session_id": "second"}, message("user", "둘째", "second", 6))
    insert(path, "messages", last | {"session_id": "third"}, message("user", "둘째", "third", 6))
    return insert(path, "messages", message("user", "셋째", "third", 10))


def test_what_compressing_took_over_into_another_session_is_told_once(tmp_path: Path) -> None:
    path = chain(tmp_path / "state.db")
    held = {
        native: [turn.text for turn in turns(stored(path, native)).values()] for native in ("first", "second", "third")
    }
    assert held == {"first": ["계속", "계속"], "second": ["둘째"], "third": ["셋째"]}
    assert next(event for event in stored(path, "third") if isinstance(event, About)).parent == "second"


def test_what_a_branch_took_over_has_the_keys_of_where_it_was_said(tmp_path: Path) -> None:
    path = chain(tmp_path / "state.db", '{"_branched_from": "second"}')
    first, second, third = (list(turns(stored(path, native))) for native in ("first", "second", "third"))
    assert third[:2] == [first[1], second[0]]
    assert third[2].startswith("third/")


def test_what_was_taken_over_from_a_session_that_is_gone_is_told(tmp_path: Path) -> None:
    path = chain(tmp_path / "state.db")
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM messages WHERE session_id = 'first'")
        db.commit()
    assert [turn.text for turn in turns(stored(path, "second")).values()] == ["계속", "둘째"]


@pytest.mark.parametrize("more", [{"source": "subagent"}, {"model_config": '{"_delegate_from": "above"}'}])
def test_a_subagents_session_is_no_persons(tmp_path: Path, more: Row) -> None:
    path = insert(tmp_path / "state.db", "sessions", session(parent_session_id="above") | more)
    insert(path, "messages", message("user", "로그를 모아라"), message("assistant", "모았습니다", second=1))
    events = stored(path)
    about = next(event for event in events if isinstance(event, About))
    assert (about.is_subagent, about.parent) == (True, "above")
    assert [(str(turn.role), turn.kind) for turn in turns(events).values()] == [
        ("subagent", "task"),
        ("subagent", "answer"),
    ]
    assert not [event for event in events if isinstance(event, Title)]


def test_a_session_above_that_is_gone_or_its_own_costs_nothing(tmp_path: Path) -> None:
    path = insert(tmp_path / "state.db", "sessions", session(started_at=T + 5, parent_session_id=SESSION))
    insert(path, "sessions", session("b", started_at=T + 5, parent_session_id="gone"))
    insert(path, "messages", message("user", "하나"), message("user", "둘", "b"))
    assert [len(turns(stored(path, native))) for native in (SESSION, "b")] == [1, 1]


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


def test_a_locked_database_says_so_and_its_files_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    path = filled(tmp_path / "state.db")
    document(tmp_path / f"sessions/session_{SESSION}.json", *TALK)
    with locked(path, "UPDATE sessions SET title = 'x'"):
        (found,) = HERMES.discover(tmp_path)
        with pytest.raises(OSError, match="locked"):
            HERMES.parse(found, Progress(), final=False)
    assert (
        list(HERMES.parse(found, Progress(), final=False)) == []
    )  # by now it can be asked: the next discovery tells what is in it


def test_a_damaged_database_hides_no_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"not a database" * 100)
    path = document(tmp_path / f"sessions/session_{SESSION}.json", *TALK)
    assert [found.path for found in HERMES.discover(tmp_path)] == [tmp_path / "state.db", path]


def test_a_document_is_told_by_its_name_where_its_messages_stand_far_below(tmp_path: Path) -> None:
    path = document(tmp_path / "session_a.json", system_prompt="x" * 100_000, messages=list(TALK))
    path.write_text(json.dumps({"messages": [], **json.loads(path.read_text())} | {"messages": list(TALK)}))
    head = path.read_bytes()[:200]
    assert HERMES.sniff(path, head) == Found("hermes", path)


def test_a_torn_document_is_reported(tmp_path: Path) -> None:
    path = document(tmp_path / "session_a.json", *TALK)
    path.write_bytes(path.read_bytes()[:-30])
    assert unreadable(parse(HERMES, path)[0]) == [(1, "object 1 is cut off or damaged")]


VALUES = st.none() | st.integers() | st.text(max_size=20) | st.lists(st.integers(), max_size=2)


@given(st.lists(st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool", "x"])}, optional=dict.fromkeys(("content", "tool_calls", "tool_call_id", "tool_name", "timestamp"), VALUES)), max_size=6))  # fmt: skip
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_wrong_types_raise_nothing(tmp_path: Path, rows: list[Row]) -> None:
    parse(HERMES, document(tmp_path / "a.json", *rows))

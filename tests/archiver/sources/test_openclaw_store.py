from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.sources import sqlite
from archiver.sources.openclaw import OpenClaw
from archiver.transcript import About, Event, Found, Progress, RawTurn, Reread, Title, Upsert
from store.records import Role, Status
from tests.archiver.sources.claw_stores import SCHEMA, ClawStore, locked, spoken
from tests.archiver.sources.test_openclaw import histories, tool
from tests.archiver.sources.transcripts import Counted, Row, encode, entry, header, outcomes, turns, unreadable, write

CLAW = OpenClaw()


@pytest.fixture
def store(tmp_path: Path) -> ClawStore:
    return ClawStore(tmp_path / "agents")


def discovered(store: ClawStore) -> dict[str, Found]:
    found = list(CLAW.discover(store.folder.parent))
    assert len({one.name for one in found}) == len(found)
    return {one.member or one.path.name: one for one in found}


def read(found: Found, progress: Progress | None = None) -> tuple[list[Event], Progress, int]:
    """Events, the progress as it comes back from the archive, and the bytes read."""
    running = CLAW.parse(found, progress or Progress(), final=True)
    events = list(running)
    after = running.progress
    return events, Progress(after.offset, after.line, json.loads(json.dumps(after.state))), running.bytes_read


def texts(found: Found) -> list[str]:
    return [turn.text for turn in turns(read(found)[0]).values()]


def about(events: list[Event]) -> About:
    return next(event for event in events if isinstance(event, About))


# --- the same from both eras ---


def without_places(events: list[Event]) -> list[Event]:
    return [
        Upsert(RawTurn(e.turn.key, 0, e.turn.role, e.turn.kind, e.turn.text, e.turn.time, e.turn.state))
        if isinstance(e, Upsert)
        else e
        for e in events
    ]


def test_rows_give_what_the_lines_of_a_file_give(store: ClawStore, tmp_path: Path) -> None:
    rows = [
        header(),
        entry("1", "user", "[Wed 2026-02-18 11:21 GMT+1] 큐를 바꿔 줘"),
        entry("2", "assistant", tool("exec", {"command": "npm test"}), "1", 2),
        entry("3", "toolResult", "error: 포트가 없습니다", "2", 3, toolCallId="c1", isError=True),
        entry("4", "assistant", "고쳤습니다", "3", 4),
        entry("5", "user", "몽고로", "4", 5),
        entry("6", "user", "SQLite로", "4", 6),
        {"type": "session_info", "id": "7", "parentId": "6", "name": "큐 이야기"},
        entry(None, "user", "계속", None, 7),
        entry(None, "user", "계속", None, 8),
    ]
    store.say("S1", *rows)
    by_rows = read(discovered(store)["S1"])[0]
    by_lines = read(Found("openclaw", write(tmp_path / "S1.jsonl", *rows)))[0]
    assert without_places(by_rows) == without_places(by_lines)
    assert len(turns(by_rows)) == 7 and outcomes(by_rows) and [e for e in by_rows if isinstance(e, Title)]


@settings(max_examples=80, deadline=None)
@given(histories(), st.data())
def test_reading_rows_in_two_pieces_gives_what_reading_them_whole_gives(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], data: st.DataObject
) -> None:
    store = ClawStore(tmp_path_factory.mktemp("store"))
    cut = data.draw(st.integers(0, len(rows)))
    store.say("S1", *rows[:cut])
    held: dict[str, RawTurn] = {}
    progress = Progress()
    if cut:
        events, progress, _ = read(discovered(store)["S1"])
        held = turns(events)
    store.say("S1", *rows[cut:])
    if cut == len(rows) == 0:
        return
    found = discovered(store)["S1"]
    try:
        held = turns(read(found, progress)[0], held)
    except Reread:
        held = turns(read(found)[0])
    assert held == turns(read(found)[0])


def test_growth_reads_the_new_rows_alone(store: ClawStore) -> None:
    store.talk("S1", "첫 질문 " * 500, "첫 답")
    _, progress, whole = read(discovered(store)["S1"])
    store.say("S1", entry("9", "user", "다음 질문", "00000002", 9))
    events, _, more = read(discovered(store)["S1"], progress)
    assert [turn.text for turn in turns(events).values()] == ["다음 질문"]
    assert more < 400 < whole


@pytest.mark.parametrize(
    "change",
    [
        ("INSERT INTO transcript_rewrite_watermarks VALUES ('S1', 'g2', 1772600900000)",),
        ("UPDATE transcript_events SET event_json = replace(event_json, '첫 답', '다른 답') WHERE seq = 2",),
        ("DELETE FROM transcript_events WHERE seq = 2",),
    ],
)
def test_a_rewritten_session_is_read_whole(store: ClawStore, change: tuple[str]) -> None:
    store.talk("S1", "첫 질문", "첫 답")
    before = discovered(store)["S1"]
    progress = read(before)[1]
    store.run(*change)
    with pytest.raises(Reread):
        read(before, progress)


def test_a_rewritten_session_has_another_stamp(store: ClawStore) -> None:
    store.talk("S1", "첫 질문", "첫 답")
    before = discovered(store)["S1"].stamp
    store.run("INSERT INTO transcript_rewrite_watermarks VALUES ('S1', 'g2', ?)", store.now())
    assert discovered(store)["S1"].stamp != before


# --- what a database holds ---


def test_every_session_is_found_with_what_became_of_it(store: ClawStore) -> None:
    store.talk("current", "질문", key="a")
    store.talk("before", "질문", key="b")
    store.to_reset("before", "after", key="b")
    store.say("after", header("after"), *spoken("질문"))
    store.talk("idle", "질문", key="c")
    store.to_reset("idle", "morning", "rollover", key="c")
    store.talk("parent", "질문", key="d")
    store.to_reset("parent", "child", "fork", key="e")
    store.archive("gone", "deleted", [header("gone")], generation="a" * 32)
    store.archive("old", "reset", [header("old")], generation="b" * 32)
    assert {name: (one.segment, one.session_status) for name, one in discovered(store).items()} == {
        "current": ("live", Status.ACTIVE),
        "before": ("reset", Status.RESET),
        "after": ("live", Status.ACTIVE),
        "idle": ("reset", Status.RESET),
        "parent": ("live", Status.ACTIVE),
        f"gone#{'a' * 32}": ("deleted", Status.DELETED),
        f"old#{'b' * 32}": ("reset", Status.RESET),
    }


def test_a_session_that_is_in_use_again_is_not_over(store: ClawStore) -> None:
    store.talk("S1", "질문")
    store.to_reset("S1", "S2")
    assert discovered(store)["S1"].session_status is Status.RESET
    store.run("UPDATE session_nodes SET current_session_id = 'S1'")
    assert discovered(store)["S1"].session_status is Status.ACTIVE


def test_a_reset_alone_changes_the_stamp(store: ClawStore) -> None:
    store.talk("S1", "질문")
    before = discovered(store)["S1"].stamp
    store.to_reset("S1", "S2")
    assert discovered(store)["S1"].stamp != before


def test_asking_again_gives_the_same_stamps(store: ClawStore) -> None:
    store.talk("S1", "질문", "답")
    store.archive("S2", "deleted", [header("S2")])
    assert discovered(store) == discovered(store)


def test_stamps_are_a_number_that_grows_and_nanoseconds(store: ClawStore) -> None:
    store.talk("S1", "질문", "답")
    size, clock = discovered(store)["S1"].stamp or (0, 0)
    assert (size, clock) == (3, store.clock * 1_000_000)


OLD = """
CREATE TABLE sessions (session_id TEXT PRIMARY KEY);
CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, PRIMARY KEY (session_id, seq));
"""


def test_an_older_schema_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    store = ClawStore(tmp_path / "agents", schema=OLD)
    for number, row in enumerate([header(), *spoken("질문", "답")]):
        store.run("INSERT INTO transcript_events VALUES ('S1', ?, ?)", number, json.dumps(row))
    assert texts(discovered(store)["S1"]) == ["질문", "답"]


@pytest.mark.parametrize("schema", ["CREATE TABLE auth_profile_store (store_key TEXT)", ""])
def test_a_database_from_before_there_were_transcripts_in_it_says_nothing(tmp_path: Path, schema: str) -> None:
    store = ClawStore(tmp_path / "agents", schema=schema)
    write(store.folder / "sessions" / "S1.jsonl", header(), *spoken("질문"))
    assert list(discovered(store)) == ["S1.jsonl"]


def test_odd_ids_of_sessions_are_kept_apart(store: ClawStore) -> None:
    names = ["a#b", "a", "a%23b", "한글 이름", "a/b:c", "'; DROP TABLE x; --"]
    for number, name in enumerate(names):
        store.say(
            name, {"type": "session", "id": "", "cwd": "/srv"}, entry(f"{number}2345678", "user", f"질문 {number}")
        )
    found = discovered(store).values()
    assert {one.session: texts(one) for one in found} == {name: [f"질문 {n}"] for n, name in enumerate(names)}
    assert {one.session: about(read(one)[0]).external_id for one in found} == {name: name for name in names}


# --- one record ---


def test_a_long_record_may_be_packed(store: ClawStore) -> None:
    store.window("S1")
    store.say("S1", header(), *spoken("질문"))
    store.say("S1", entry("00000002", "assistant", "긴 답 " * 1000, "00000001", 2), packed=True)
    assert [len(text) for text in texts(discovered(store)["S1"])] == [2, 3999]


@pytest.mark.parametrize(
    "values",
    [
        ("{not json", None),
        (None, None),
        (None, b"not zstd"),
        (None, zstandard.compress(b"x" * 1000)[:-4]),
        ("[1, 2]", None),
        ("[" * 3000, None),
    ],
)
def test_a_broken_record_is_told_with_its_row_and_costs_no_other(store: ClawStore, values: tuple[Any, Any]) -> None:
    store.talk("S1", "질문")
    store.run("INSERT INTO transcript_events VALUES ('S1', 2, ?, 0, ?)", *values)
    store.say("S1", entry("00000003", "assistant", "답", "00000001", 3))
    events = read(discovered(store)["S1"])[0]
    assert [turn.text for turn in turns(events).values()] == ["질문", "답"]
    assert [line for line, _ in unreadable(events)] == [3]


def test_odd_characters_in_a_record_are_read_like_those_of_a_file(store: ClawStore) -> None:
    store.window("S1")
    store.say(
        "S1", header(), b'{"type":"message","id":"00000001","message":{"role":"user","content":"a\\ud83dz\\u0000b"}}'
    )
    assert texts(discovered(store)["S1"]) == ["a\ufffdz b"]


# --- whose session it is ---


def test_a_subagents_session_names_who_sent_it(store: ClawStore) -> None:
    store.talk("main-one", "질문")
    store.window("sub-one", "agent:main:subagent:7", spawned_by="agent:main:main")
    store.say("sub-one", header("sub-one"), *spoken("로그를 모아라", "모았습니다"))
    events = read(discovered(store)["sub-one"])[0]
    assert (about(events).is_subagent, about(events).parent) == (True, "main-one")
    assert [(turn.role, turn.kind) for turn in turns(events).values()] == [
        (Role.SUBAGENT, "task"),
        (Role.SUBAGENT, "answer"),
    ]
    assert not [event for event in events if isinstance(event, Title)]


def test_a_session_that_goes_on_from_another_names_it(store: ClawStore) -> None:
    store.talk("S1", "질문")
    store.to_reset("S1", "S2", "compaction")
    store.say("S2", header("S2"), *spoken("이어서"))
    assert about(read(discovered(store)["S2"])[0]).parent == "S1"


@pytest.mark.parametrize("reason", ["compaction", "fork"])
def test_what_compacting_took_over_is_told_where_it_was_said(store: ClawStore, reason: str) -> None:
    said = spoken("첫 질문", "첫 답", "둘째 질문", "둘째 답")
    store.window("S1")
    store.say("S1", header("S1"), *said)
    store.to_reset("S1", "S2", reason)
    head = header("S2", parentSession="S1", timestamp="2026-03-04T05:06:30.000Z")
    store.say("S2", head, *said[2:], entry("0000000f", "user", "이어서", "00000004", 40))
    kept = ["둘째 질문", "둘째 답"] if reason == "fork" else []
    assert texts(discovered(store)["S2"]) == [*kept, "이어서"]
    store.run("DELETE FROM transcript_events WHERE session_id = 'S1'")
    assert texts(discovered(store)["S2"]) == ["둘째 질문", "둘째 답", "이어서"]


def test_what_a_fork_took_over_keeps_its_keys(store: ClawStore) -> None:
    taken = spoken("첫 질문", "첫 답")
    store.say("P", header("P"), *taken)
    later = {"timestamp": "2026-03-04T05:06:30.000Z"}
    store.say(
        "C", header("C", parentSession="P", **later), *taken, entry("0000000f", "user", "가지 질문", "00000002", 40)
    )
    found = discovered(store)
    parents = turns(read(found["P"])[0])
    assert [key for key in turns(read(found["C"])[0]) if key not in parents] == ["C/0000000f"]


def test_a_fork_of_a_fork_keeps_the_keys_of_the_first(store: ClawStore) -> None:
    first, second = spoken("첫 질문", "첫 답"), [entry("0000000c", "user", "둘째", "00000002", 25)]
    store.say("A", header("A"), *first)
    store.say("B", header("B", parentSession="A", timestamp="2026-03-04T05:06:20.000Z"), *first, *second)
    store.say(
        "C",
        header("C", parentSession="B", timestamp="2026-03-04T05:06:30.000Z"),
        *first,
        *second,
        entry("0000000d", "user", "셋째", "0000000c", 35),
    )
    keys = list(turns(read(discovered(store)["C"])[0]))
    assert keys == ["A/00000001", "A/00000002", "B/0000000c", "C/0000000d"]


# --- archives ---


@pytest.mark.parametrize("encoding", ["identity", "zstd"])
def test_archives_are_read(store: ClawStore, encoding: str) -> None:
    store.archive("S1", "reset", [header(), *spoken("질문", "답")], encoding=encoding)
    (found,) = discovered(store).values()
    assert texts(found) == ["질문", "답"]
    assert about(read(found)[0]).external_id == "S1"


def test_archives_of_one_session_are_told_apart_and_in_their_order(store: ClawStore) -> None:
    for number, generation in enumerate(["f" * 32, "0" * 32]):
        store.archive("S1", "reset", [header(), *spoken(f"질문 {number}", first=number + 1)], generation=generation)
    found = sorted(discovered(store).values(), key=lambda one: one.stamp or (0, 0))
    by_clock = sorted(discovered(store).values(), key=lambda one: one.size_and_clock()[1])
    assert [texts(one) for one in by_clock] == [["질문 0"], ["질문 1"]]
    assert len(found) == 2


def test_a_checksum_of_the_lines_will_do(store: ClawStore) -> None:
    import hashlib

    rows: list[Row] = [header(), *spoken("질문")]
    store.archive("S1", "reset", rows, checksum=hashlib.sha256(encode(rows)).hexdigest())
    assert unreadable(read(*discovered(store).values())[0]) == []


def test_an_archive_that_does_not_match_its_checksum_is_told_and_read(store: ClawStore) -> None:
    store.archive("S1", "reset", [header(), *spoken("질문")], checksum="0" * 64)
    (found,) = discovered(store).values()
    events = read(found)[0]
    assert [turn.text for turn in turns(events).values()] == ["질문"]
    assert unreadable(events) == [(0, "the archive does not match its checksum")]


@pytest.mark.parametrize("reason", ["reset", "deleted"])
def test_an_archive_that_cannot_be_decoded_is_told(store: ClawStore, reason: str) -> None:
    blob = zstandard.compress(encode([header(), *spoken("질문")]))
    store.archive("S1", reason, [], blob=blob[:20], checksum="0" * 64)
    (found,) = discovered(store).values()
    events = read(found)[0]
    assert turns(events) == {} and len(unreadable(events)) == 2
    # That it was deleted is worth telling all the same.
    assert [event.external_id for event in events if isinstance(event, About)] == ["S1"] * (reason == "deleted")


def test_an_archive_that_went_since_it_was_found_is_an_error(store: ClawStore) -> None:
    store.archive("S1", "reset", [header()])
    (found,) = discovered(store).values()
    store.run("DELETE FROM session_transcript_archives")
    with pytest.raises(OSError, match="gone"):
        read(found)


@pytest.mark.parametrize("storage", ["sqlite", "file"])
def test_what_was_not_used_for_long_is_read_where_it_was_put(store: ClawStore, storage: str) -> None:
    data = zstandard.compress(encode([header(), *spoken("오래된 질문")]))
    blob = data if storage == "sqlite" else None
    if storage == "file":
        cold = store.folder / "sessions" / "cold" / "x.jsonl.zst"
        cold.parent.mkdir(parents=True)
        cold.write_bytes(data)
    store.window("S1")
    values = ("S1", "g", "x.jsonl.zst", "", len(data), store.now(), storage, blob)
    store.run("INSERT INTO session_transcript_cold_archives VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *values)
    (found,) = discovered(store).values()
    assert (found.segment, found.session_status, texts(found)) == ("archived", Status.ACTIVE, ["오래된 질문"])


def test_a_cold_file_elsewhere_is_not_opened(store: ClawStore, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(encode([header(), *spoken("비밀")]))
    values = ("S1", "g", "../../../../secret", "", 1, 1, "file", None)
    store.run("INSERT INTO session_transcript_cold_archives VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *values)
    with pytest.raises(OSError):
        read(*discovered(store).values())


# --- files beside the database ---


def test_files_that_repeat_archives_are_passed_over(store: ClawStore) -> None:
    rows: list[Row] = [header(), *spoken("질문")]
    name = store.archive("S1", "deleted", rows)
    write(store.folder / "sessions" / name, *rows)
    other = write(store.folder / "sessions" / name.replace("S1", "S7"), *rows)
    assert {one.path for one in discovered(store).values()} == {store.path, other}


def test_imported_files_count_only_where_the_database_does_not_know_their_session(store: ClawStore) -> None:
    folder = store.folder / "session-sqlite-import-archive"
    store.talk("S1", "질문")
    store.archive("S2", "deleted", [header("S2")])
    for session in ("S1", "S2", "S3"):
        rows = [header(session), *spoken("옛 질문")]
        write(folder / f"agent_main_x.y.{session}.jsonl.imported-1772600000000", *rows)
    found = discovered(store)
    assert [name for name in found if "imported" in name] == ["agent_main_x.y.S3.jsonl.imported-1772600000000"]
    (imported,) = (one for name, one in found.items() if "imported" in name)
    assert (imported.session, imported.segment, texts(imported)) == ("S3", "archived", ["옛 질문"])


def test_an_imported_file_without_a_header_is_named_by_its_name(store: ClawStore, tmp_path: Path) -> None:
    path = write(tmp_path / "agent_main.S4.jsonl.imported-1.2", *spoken("질문"))
    found = CLAW.sniff(path, path.read_bytes())
    assert found is not None and about(read(found)[0]).external_id == "S4"


# --- databases that cannot be asked ---


def test_a_locked_database_stands_for_itself_and_says_why(store: ClawStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    store.talk("S1", "질문")
    with locked(store.path):
        (found,) = discovered(store).values()
        assert found == Found("openclaw", store.path)
        with pytest.raises(OSError, match="locked"):
            read(found)
    assert read(found)[0] == []  # by now it can be asked: the next discovery tells what is in it


def test_imported_files_wait_until_the_database_says_what_it_holds(
    store: ClawStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    store.talk("S1", "질문")
    imported = store.folder / "session-sqlite-import-archive" / "x.S1.jsonl.imported-1772600000000"
    write(imported, header(), *spoken("옛 질문"))
    with locked(store.path):
        assert list(discovered(store)) == [store.path.name]
    store.path.write_bytes(b"not a database" * 100)
    assert list(discovered(store)) == [store.path.name, imported.name]


def test_a_damaged_database_hides_no_file_beside_it(store: ClawStore) -> None:
    store.talk("S1", "질문")
    store.path.write_bytes(b"not a database" * 100)
    write(store.folder / "sessions" / "S1.jsonl", header(), *spoken("질문"))
    found = discovered(store)
    assert texts(found["S1.jsonl"]) == ["질문"]
    with pytest.raises(OSError, match="not a SQLite database"):
        read(found[store.path.name])


def test_a_live_gateway_is_read_and_not_disturbed(store: ClawStore) -> None:
    store.talk("S1", "질문")
    with closing(sqlite3.connect(store.path, isolation_level=None)) as gateway:
        row = json.dumps(entry("00000002", "assistant", "답", "00000001", 2))
        gateway.execute("INSERT INTO transcript_events VALUES ('S1', 2, ?, ?, NULL)", (row, store.now()))
        assert texts(discovered(store)["S1"]) == ["질문", "답"]
        gateway.execute("DELETE FROM auth_profile_store")
    beside = {path.name for path in store.path.parent.iterdir()}
    assert beside == {store.path.name}


# --- pointed at ---


def test_a_database_is_told_by_its_tables(store: ClawStore, tmp_path: Path) -> None:
    store.talk("S1", "질문")
    renamed = tmp_path / "copy.db"
    renamed.write_bytes(store.path.read_bytes())
    found = CLAW.sniff(renamed, renamed.read_bytes()[:65536])
    assert found is not None and [one.member for one in CLAW.members(found)] == ["S1"]
    with closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE messages (id INTEGER)")
    assert CLAW.sniff(tmp_path / "other.db", (tmp_path / "other.db").read_bytes()) is None


def test_a_file_has_itself_as_its_only_member(tmp_path: Path) -> None:
    found = Found("openclaw", write(tmp_path / "S1.jsonl", header()))
    assert list(CLAW.members(found)) == [found]


# --- counts ---


def _talks(folder: Path) -> Path:
    store = ClawStore(folder / "agents")
    store.talk("S1", "질문", "답")
    store.talk("S2", "[cron:1] 점검", "이상 없음")
    store.to_reset("S2", "S3")
    return store.path


def _records(folder: Path) -> Path:
    store = ClawStore(folder / "agents")
    store.window("S1")
    called = [entry("1", "user", "고쳐 줘"), entry("2", "assistant", tool("exec", {"command": "npm test"}), "1")]
    failed = entry("3", "toolResult", "error: 포트가 없습니다", "2", toolCallId="c1", isError=True)
    store.say("S1", header(), *called, failed)
    store.say("S1", entry("4", "assistant", "긴 답 " * 1000, "3"), packed=True)
    store.say("S1", entry("5", "user", "몽고로", "4"), entry("6", "user", "SQLite로", "4"))
    return store.path


def _put_away(folder: Path) -> Path:
    store = ClawStore(folder / "agents")
    for number, encoding in enumerate(("identity", "zstd")):
        store.archive(f"S{number}", "reset", [header(f"S{number}"), *spoken("질문", "답")], encoding=encoding)
    store.archive("S2", "deleted", [header("S2"), *spoken("지운 질문")])
    return store.path


COUNTED = [
    Counted("database: live, cron, reset", "openclaw", _talks, sessions=2, assistant=2),
    Counted("database: packed row, tool error, left branch", "openclaw", _records, user=2, errors=1, outcomes=1),
    Counted("database: archives of both encodings", "openclaw", _put_away, sessions=3, user=3, assistant=2),
]


# --- hostile input ---

VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.just("S1"),
    st.just("{}"),
)
LOOSE = SCHEMA.replace(" STRICT", "").replace("NOT NULL", "").replace("UNIQUE", "")
TABLES = {
    "transcript_events": 5, "session_windows": 9, "session_nodes": 4, "session_transcript_archives": 9,
    "transcript_rewrite_watermarks": 3, "session_transcript_cold_archives": 8,
}  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_no_value_in_any_column_is_more_than_an_error_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    store = ClawStore(tmp_path_factory.mktemp("store"), schema=LOOSE)
    store.talk("S1", "질문", "답")
    table = data.draw(st.sampled_from(sorted(TABLES)))
    values = [data.draw(VALUES) for _ in range(TABLES[table])]
    with suppress(sqlite3.IntegrityError):
        way = "IGNORE" if table == "transcript_events" else "REPLACE"
        store.run(f"INSERT OR {way} INTO {table} VALUES ({', '.join('?' * len(values))})", *values)
    found = list(CLAW.discover(store.folder.parent))
    assert any(one.member == "S1" for one in found)
    for one in found:
        try:
            events = read(one)[0]
        except OSError:
            continue
        if one.member == "S1" and one.session_status is Status.ACTIVE:
            assert {"질문", "답"} <= {turn.text for turn in turns(events).values()}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10**9))
def test_a_record_with_anything_in_any_field_is_events_or_a_fault(path: Path, seed: int) -> None:
    dice = random.Random(seed)
    rows: list[Any] = [
        header(parentSession="P"),
        entry("1", "user", "질문"),
        entry("2", "assistant", [{"type": "text", "text": "답"}, *tool("exec", {"command": "npm test"})], "1"),
        entry("3", "toolResult", "error", "2", toolCallId="c1", toolName="exec", isError=True, details={"exitCode": 1}),
        {"type": "session_info", "id": "4", "parentId": "3", "name": "이름"},
        {"type": "title", "title": "제목"},
        entry("5", "bashExecution", "x", "4", command="ls"),
    ]
    mutated = [_mutated(row, dice) for row in rows]
    write(path, *[encode([row], ascii_only=True).strip() for row in mutated], ascii_only=True)
    events = list(CLAW.parse(Found("openclaw", path), Progress(), final=True))
    assert all(isinstance(event.turn.text, str) for event in events if isinstance(event, Upsert))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "S1.jsonl"


ODD: list[Any] = [
    None,
    True,
    -1,
    1e308,
    "",
    "x",
    "\ud800",
    "a\x00b",
    [],
    [[]],
    {},
    {"type": "text"},
    [{"type": "text", "text": 7}],
    "9" * 30,
]


def _mutated(value: Any, dice: random.Random) -> Any:
    if dice.random() < 0.15:
        return dice.choice(ODD)
    if isinstance(value, dict):
        return {key: _mutated(held, dice) for key, held in value.items()}
    if isinstance(value, list):
        return [_mutated(held, dice) for held in value]
    return value

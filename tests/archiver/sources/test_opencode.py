from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from archiver.discover import from_paths
from archiver.sources import sqlite
from archiver.sources.opencode import OpenCode
from archiver.transcript import About, Event, Found, Progress, Reread, Title
from store.records import State
from tests.archiver.sources.claw_stores import locked
from tests.archiver.sources.transcripts import Counted, outcomes, turns

OPENCODE = OpenCode()
T = 1767323045000

SCHEMA = """
CREATE TABLE session (id TEXT PRIMARY KEY, directory TEXT NOT NULL, title TEXT, parent_id TEXT, revert TEXT,
  time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT, time_updated INTEGER);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT, time_updated INTEGER);
"""

Row = dict[str, Any]
Parts = list[Row]


def text(words: str, **more: Any) -> Row:
    return {"type": "text", "text": words} | more


def bash(command: str, output: str, exit_code: int) -> Row:
    state = {"status": "completed", "input": {"command": command}, "output": output, "metadata": {"exit": exit_code}}
    return {"type": "tool", "tool": "bash", "state": state}


TALK: list[tuple[str, Row, Parts]] = [
    ("msg_01", {"role": "user"}, [text("포트는 8080으로 하자"), text("file contents", synthetic=True)]),
    ("msg_02", {"role": "assistant"}, [
        {"type": "step-start"}, {"type": "reasoning", "text": "hmm"}, text("바꿨습니다."),
        {"type": "tool", "tool": "edit", "state": {"status": "completed", "input": {"filePath": "a.py"}, "output": "ok"}},
        bash("pytest -q", "KeyError: 'id'", 1),
    ]),
    ("msg_03", {"role": "assistant", "summary": True}, [text("Summary of everything")]),
]  # fmt: skip


def data(row: Row, at: int) -> str:
    return json.dumps(row | {"time": {"created": T + at}}, ensure_ascii=False)


def stored(path: Path, talk: list[tuple[str, Row, Parts]] = TALK, session: str = "ses_1", **more: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    head = {"id": session, "directory": "/srv/shop", "title": "포트", "time_created": T, "time_updated": T + 9} | more
    with closing(sqlite3.connect(path)) as db:
        if fresh:
            db.executescript(SCHEMA)
        db.execute(
            f"INSERT INTO session ({', '.join(head)}) VALUES ({', '.join('?' for _ in head)})", tuple(head.values())
        )
        for at, (native, row, parts) in enumerate(talk):
            db.execute(
                "INSERT INTO message VALUES (?, ?, ?, ?, ?)",
                (f"{native}{session}", session, T + at, data(row, at), T + at),
            )
            for number, part in enumerate(parts):
                key = (
                    f"prt_{native}{session}{number}",
                    f"{native}{session}",
                    session,
                    json.dumps(part, ensure_ascii=False),
                )
                db.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?)", (*key, T + at))
        db.commit()
    return path


def filed(root: Path, talk: list[tuple[str, Row, Parts]] = TALK, session: str = "ses_1") -> Path:
    storage = root / "storage"
    head = {"id": session, "directory": "/srv/shop", "title": "포트", "time": {"created": T, "updated": T + 9}}
    written = {storage / f"session/global/{session}.json": json.dumps(head, ensure_ascii=False)}
    for at, (native, row, parts) in enumerate(talk):
        written[storage / f"message/{session}/{native}{session}.json"] = data(row, at)
        for number, part in enumerate(parts):
            written[storage / f"part/{native}{session}/prt_{native}{session}{number}.json"] = json.dumps(part)
    for path, content in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return storage / f"session/global/{session}.json"


COUNTED = [
    Counted("database", "opencode", lambda folder: stored(folder / "opencode.db"), errors=1, outcomes=2),
    Counted("files", "opencode", lambda folder: filed(folder), errors=1, outcomes=2),
]


def told(found: Found) -> list[Event]:
    return list(OPENCODE.parse(found, Progress(), final=False))


def only(path: Path) -> Found:
    (found,) = from_paths([path])[0]
    return found


@pytest.mark.parametrize("kept", ["database", "files"])
def test_a_session_is_told_the_same_from_database_and_files(kept: str, tmp_path: Path) -> None:
    events = told(only(stored(tmp_path / "opencode.db") if kept == "database" else filed(tmp_path)))
    assert [(turn.key, str(turn.role), turn.text) for turn in turns(events).values()] == [
        ("msg_01ses_1", "user", "포트는 8080으로 하자"),
        ("msg_02ses_1", "assistant", "바꿨습니다."),
        ("prt_msg_02ses_14:error", "tool", "KeyError: 'id'"),
    ]
    assert outcomes(events) == [("files", True, "a.py"), ("test", False, "pytest -q")]
    assert Title("포트", 2) in events
    about = next(event for event in events if isinstance(event, About))
    assert (about.external_id, about.cwd, about.first_time) == ("ses_1", "/srv/shop", T)


def test_what_was_reverted_is_abandoned(tmp_path: Path) -> None:
    revert = json.dumps({"messageID": "msg_02ses_1"})
    events = told(only(stored(tmp_path / "opencode.db", revert=revert)))
    assert [turn.state for turn in turns(events).values()] == [State.LIVE, State.ABANDONED]
    assert outcomes(events) == []


def test_sessions_of_subagents_are_left_out(tmp_path: Path) -> None:
    path = stored(tmp_path / "opencode.db")
    stored(path, session="ses_2", parent_id="ses_1")
    assert [one.member for one in from_paths([path])[0]] == ["ses_1"]


def test_files_beside_the_database_count_only_for_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    root = tmp_path / "opencode"
    stored(root / "opencode.db")
    filed(root)
    filed(root, session="ses_0")
    found = {one.name.removeprefix(f"{root}{os.sep}") for one in OPENCODE.discover(OPENCODE.roots()[0])}
    assert found == {"opencode.db#ses_1", str(Path("storage/session/global/ses_0.json"))}


def test_a_broken_part_costs_only_itself(tmp_path: Path) -> None:
    path = filed(tmp_path)
    (tmp_path / "storage/part/msg_02ses_1/prt_msg_02ses_12.json").write_text("{")
    events = told(only(path))
    assert [turn.text for turn in turns(events).values()] == ["포트는 8080으로 하자", "KeyError: 'id'"]
    assert any("prt_msg_02ses_12.json" in str(event) for event in events)


def test_an_answer_that_grows_in_place_changes_the_stamp(tmp_path: Path) -> None:
    path = filed(tmp_path, TALK[:2])
    before = only(path)
    part = tmp_path / "storage/part/msg_02ses_1/prt_msg_02ses_12.json"
    part.write_text(json.dumps(text("바꿨습니다. 더"), ensure_ascii=False), encoding="utf-8")
    os.utime(part, ns=(part.stat().st_atime_ns, part.stat().st_mtime_ns + 10**9))
    assert only(path).stamp != before.stamp


def grown(path: Path, progress: Progress) -> tuple[list[Event], Progress]:
    """What is told of a session after a progress, and the progress as it comes back from the archive."""
    running = OPENCODE.parse(only(path), progress, final=False)
    events = list(running)
    after = running.progress
    return events, Progress(after.offset, after.line, json.loads(json.dumps(after.state)))


def test_growth_tells_the_last_message_and_what_came_after_it(tmp_path: Path) -> None:
    path = stored(tmp_path / "opencode.db")
    whole, progress = grown(path, Progress())
    again, _ = grown(path, progress)
    assert turns(again) == {} and progress.offset == 2
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO message VALUES ('msg_09', 'ses_1', ?, ?, 0)", (T + 9, data({"role": "user"}, 9)))
        db.execute("INSERT INTO part VALUES ('prt_9', 'msg_09', 'ses_1', ?, 0)", (json.dumps(text("하나 더")),))
        db.commit()
    events, _ = grown(path, progress)
    assert [turn.text for turn in turns(events).values()] == ["하나 더"]
    assert isinstance(events[0], About) and events[0].cwd == "/srv/shop"
    assert turns(events, turns(whole)) == turns(told(only(path)))


def test_an_answer_that_grew_is_told_again(tmp_path: Path) -> None:
    path = stored(tmp_path / "opencode.db", TALK[:2])
    _, progress = grown(path, Progress())
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE part SET data = ? WHERE id = 'prt_msg_02ses_12'", (json.dumps(text("바꿨습니다. 더")),))
        db.commit()
    events, _ = grown(path, progress)
    assert [turn.text for turn in turns(events).values()] == ["바꿨습니다. 더", "KeyError: 'id'"]
    assert len(outcomes(events)) == 2


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE part SET data = '{}' WHERE message_id = 'msg_01ses_1'",
        "DELETE FROM message WHERE id = 'msg_03ses_1'",
        "DELETE FROM message",
        """UPDATE session SET revert = '{"messageID": "msg_01ses_1"}'""",
    ],
)
def test_a_session_that_is_there_no_more_as_it_was_is_read_whole(tmp_path: Path, change: str) -> None:
    path = stored(tmp_path / "opencode.db")
    _, progress = grown(path, Progress())
    with closing(sqlite3.connect(path)) as db:
        db.execute(change)
        db.commit()
    with pytest.raises(Reread):
        grown(path, progress)


def test_a_session_without_messages_is_nothing(tmp_path: Path) -> None:
    assert grown(stored(tmp_path / "opencode.db", []), Progress()) == ([], Progress())


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE part SET data = '{}', time_updated = time_updated + 50 WHERE message_id = 'msg_02ses_1'",
        "UPDATE message SET data = '{}', time_updated = time_updated + 50 WHERE id = 'msg_02ses_1'",
        "INSERT INTO part VALUES ('prt_9', 'msg_02ses_1', 'ses_1', '{}', 0)",
        "INSERT INTO message VALUES ('msg_09', 'ses_1', 0, '{}', 0)",
        "UPDATE session SET time_updated = time_updated + 50",
    ],
)
def test_what_changes_in_the_database_changes_the_stamp_of_its_session_alone(tmp_path: Path, change: str) -> None:
    path = stored(tmp_path / "opencode.db", TALK[:2])
    stored(path, TALK[:2], "ses_2")
    before = {one.member: one.stamp for one in OPENCODE.members(Found("opencode", path))}
    with closing(sqlite3.connect(path)) as db:
        db.execute(change + (" WHERE id = 'ses_1'" if "UPDATE session" in change else ""))
        db.commit()
    after = {one.member: one.stamp for one in OPENCODE.members(Found("opencode", path))}
    assert {member for member in after if after[member] != before[member]} == {"ses_1"}


def test_databases_without_clocks_are_read(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            "CREATE TABLE session (id, directory); CREATE TABLE message (id, session_id, data); CREATE TABLE part (id, message_id, data);"
            "INSERT INTO session VALUES ('ses_1', '/srv'); INSERT INTO message VALUES ('msg_1', 'ses_1', '{\"role\": \"user\"}');"
            'INSERT INTO part VALUES (\'prt_1\', \'msg_1\', \'{"type": "text", "text": "질문"}\')'
        )
    assert [turn.text for turn in turns(told(only(path))).values()] == ["질문"]


def test_databases_of_other_channels_are_found(tmp_path: Path) -> None:
    stored(tmp_path / "opencode.db")
    stored(tmp_path / "opencode-dev.db", session="ses_2")
    assert sorted((one.path.name, one.member) for one in OPENCODE.discover(tmp_path)) == [
        ("opencode-dev.db", "ses_2"),
        ("opencode.db", "ses_1"),
    ]


def test_a_locked_database_says_so_and_its_files_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    path = stored(tmp_path / "opencode.db")
    stored(tmp_path / "opencode-dev.db", session="ses_2")
    filed(tmp_path)
    with locked(path, "UPDATE session SET title = ''"):
        found = {one.name: one for one in OPENCODE.discover(tmp_path)}
        assert set(found) == {str(path), f"{tmp_path / 'opencode-dev.db'}#ses_2"}
        with pytest.raises(OSError, match="locked"):
            OPENCODE.parse(found[str(path)], Progress(), final=False)
    assert told(found[str(path)]) == []  # by now it can be asked: the next discovery tells what is in it


def test_a_damaged_database_hides_no_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "opencode.db").write_bytes(b"not a database" * 100)
    path = filed(tmp_path)
    assert [one.path for one in OPENCODE.discover(tmp_path)] == [tmp_path / "opencode.db", path]


@pytest.mark.parametrize(
    "broken", ["[]", "7", "null", '{"type": "text", "text": 5}', '{"type": "tool", "state": []}', "\x00"]
)
def test_wrong_types_raise_nothing(broken: str, tmp_path: Path) -> None:
    path = stored(tmp_path / "opencode.db")
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE part SET data = ?", (broken,))
        db.execute("UPDATE session SET title = NULL, revert = ?", (broken,))
        db.commit()
    assert turns(told(only(path))) == {}


def forked(path: Path, began: int, talk: list[tuple[str, Row, Parts]] = TALK[:2], session: str = "ses_2") -> Found:
    """A copy of what was said, and one prompt of its own after it began."""
    stored(path, talk, session, time_created=began)
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO message VALUES ('msg_9', ?, ?, ?, 0)", (session, T + 60, data({"role": "user"}, 60)))
        db.execute("INSERT INTO part VALUES ('prt_9', 'msg_9', ?, ?, 0)", (session, json.dumps(text("own"))))
        db.commit()
    return next(one for one in OPENCODE.members(Found("opencode", path)) if one.member == session)


def test_what_a_fork_copied_goes_by_the_ids_it_was_said_under(tmp_path: Path) -> None:
    path = stored(tmp_path / "opencode.db")
    whole = turns(told(only(path)))
    copy = turns(told(forked(path, T + 50)))
    assert [*copy] == [*whole, "msg_9"]
    assert [turn.text for turn in copy.values()] == [*(turn.text for turn in whole.values()), "own"]


def test_messages_of_the_same_moment_are_no_copies_in_a_session_that_had_begun(tmp_path: Path) -> None:
    path = stored(tmp_path / "opencode.db")
    assert [*turns(told(forked(path, T)))] == ["msg_01ses_2", "msg_02ses_2", "prt_msg_02ses_24:error", "msg_9"]


def test_two_copies_of_one_moment_keep_their_own_ids(tmp_path: Path) -> None:
    path = stored(tmp_path / "opencode.db", TALK[:1])
    found = forked(path, T + 50, [*TALK[:1], ("msg_02", {"role": "user"}, [text("둘")])])
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "UPDATE message SET time_created = ?, data = ? WHERE id = 'msg_02ses_2'", (T, data({"role": "user"}, 0))
        )
        db.commit()
    assert [*turns(told(found))] == ["msg_01ses_2", "msg_02ses_2", "msg_9"]

"""OpenClaw's files and databases side by side, deletions in either, and pi's sessions that once passed for OpenClaw's."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from archiver import forget
from archiver.home import Home
from archiver.ingest import ingest_file
from archiver.sources import sqlite
from archiver.sources.openclaw import OpenClaw
from archiver.transcript import Found
from tests.archiver.sources.claw_stores import ClawStore, locked, spoken
from tests.archiver.sources.transcripts import Row, entry, header, write
from tests.factories import words_in
from tests.reports.walk import (
    accept_all,
    append,
    found,
    openclaw,
    projects,
    read,
    run,
    said,
    sessions,
    staged,
    still,
    titles,
    waiting,
)

DELETED = ".deleted.2026-03-03T05-00-00.000Z"
CHOICE, DONE = "큐는 Redis 대신 SQLite로 하자", "네, 큐를 SQLite로 구현했습니다."
SECRET = "비둘기자리 서버에서 돌린다"
TALK: list[Row] = [header(), *spoken("첫 질문", "첫 답")]


@pytest.fixture
def store() -> ClawStore:
    return ClawStore(Path.home() / ".openclaw" / "agents")


def rows(sql: str) -> list[Any]:
    with closing(sqlite3.connect(Home.open().root / "archive.db")) as db:
        return db.execute(sql).fetchall()


def missing() -> list[str]:
    return [row[0].rpartition("/")[2] for row in rows("SELECT path FROM source_file WHERE missing_since IS NOT NULL")]


def migrate(store: ClawStore, path: Path) -> Path:
    """What the agent's own migration does with a file: its lines become rows, and it is put away."""
    lines = [line for line in path.read_bytes().split(b"\n") if line]
    store.window("S1")
    store.say("S1", *lines)
    folder = store.folder / "session-sqlite-import-archive"
    folder.mkdir(exist_ok=True)
    return path.rename(folder / f"agent_main_main.{path.name}.imported-1772600000000")


# --- rows, resets, deletions ---


def test_a_database_is_archived_with_its_sessions_and_projects(store: ClawStore) -> None:
    store.talk("S1", CHOICE, DONE)
    store.talk("S2", "둘째 질문", "둘째 답")
    assert run().turns_added == 4
    assert said("S1") == [("user", CHOICE), ("assistant", DONE)]
    assert projects() == {"S1": "/srv/shop", "S2": "/srv/shop"}
    assert titles() == {"S1": CHOICE, "S2": "둘째 질문"}
    assert any("SQLite" in text for text in staged())


def test_a_second_run_reads_nothing_and_growth_is_read_alone(store: ClawStore) -> None:
    store.talk("S1", "첫 질문 " * 300, "첫 답")
    store.talk("S2", "다른 질문", "다른 답")
    whole = read().bytes_read
    assert read().files_read == read().bytes_read == 0
    store.say("S1", entry("0000000a", "user", "다음 질문", "00000002", 10))
    report = read()
    assert (report.files_read, report.turns_added) == (1, 1)
    assert report.bytes_read < whole / 3
    assert [text for _, text in said("S1")][1:] == ["첫 답", "다음 질문"]
    assert read().files_read == 0


def test_a_session_that_is_still_in_use_is_read_no_second_time_when_it_falls_quiet(store: ClawStore) -> None:
    store.talk("S1", "질문", "답")
    read(finished=False)
    assert read(finished=False).files_read == 0
    assert read(finished=True).files_read == 0


def test_what_was_reset_and_what_goes_on_are_both_found(store: ClawStore) -> None:
    store.talk("S1", "리셋 전 결정: 매일 백업", "네")
    store.to_reset("S1", "S2")
    store.say("S2", header("S2"), *spoken("리셋 후 질문"))
    store.archive("S3", "reset", [header("S3"), *spoken("찾아야 할 고유어 qqzz1", "네")])
    run(finished=False)
    assert {name: row.status for name, row in sessions().items()} == {"S1": "reset", "S2": "active", "S3": "reset"}
    assert found("리셋 전 결정") and found("리셋 후 질문") and found("qqzz1")


def test_mirrors_and_heartbeats_in_rows_are_no_turns(store: ClawStore) -> None:
    store.window("S1")
    store.say(
        "S1",
        header(),
        entry("1", "user", "[Telegram 홍 2026-01-02] 배포했어?"),
        entry("2", "assistant", "네, 배포 완료", second=2, provider="x", model="y"),
        entry("3", "assistant", "네, 배포 완료", second=3, provider="openclaw", model="delivery-mirror"),
        entry("4", "user", "Read HEARTBEAT.md if it exists.", second=30),
        entry("5", "assistant", "NO_REPLY", second=31),
    )
    read()
    assert said() == [("user", "배포했어?"), ("assistant", "네, 배포 완료")]


def test_subagents_of_two_sessions_are_four_threads_of_their_own(store: ClawStore) -> None:
    for name in ("A", "B"):
        store.talk(name, f"{name} 질문", "네", key=f"agent:main:{name}")
        for number in (1, 2):
            store.window(f"{name}{number}", f"agent:main:subagent:{name}{number}", spawned_by=f"agent:main:{name}")
            store.say(
                f"{name}{number}",
                header(f"{name}{number}"),
                *spoken(f"{name} 하위 {number} 지시", f"결과 {name}{number}"),
            )
    read()
    parents = dict(rows("SELECT s.external_id, p.external_id FROM session s JOIN session p ON p.id = s.parent_id"))
    assert parents == {"A1": "A", "A2": "A", "B1": "B", "B2": "B"}
    assert {name for name, row in sessions().items() if row.is_subagent} == set(parents)
    assert said("A1") == [("subagent", "A 하위 1 지시"), ("subagent", "결과 A1")]
    assert not any(title for name, title in titles().items() if name in parents)


def test_a_session_that_the_agent_dropped_stays_and_is_said_to_be_gone(store: ClawStore) -> None:
    store.talk("S1", "무지개해달 설정은 어디?", "config.toml 입니다")
    store.talk("S2", "질문", "답")
    read()
    store.run("DELETE FROM transcript_events WHERE session_id = 'S1'")
    assert read().files_read == 0
    assert found("무지개해달")
    assert missing() == ["openclaw-agent.sqlite#S1"]


def test_a_locked_database_is_told_once_and_nothing_in_it_is_gone(
    store: ClawStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    store.talk("S1", "질문", "답")
    read()
    openclaw(header("F1"), entry("1", "user", "파일의 질문"), name="F1.jsonl")
    with locked(store.path):
        report = read()
    assert [(Path(bad["file"]).name, bad["line"], bad["reason"]) for bad in report.unreadable] == [
        (store.path.name, 0, "database is locked")
    ]
    assert (report.turns_added, missing()) == (1, [])
    assert read().unreadable == []
    assert said("S1") == [("user", "질문"), ("assistant", "답")]


# --- both eras ---


def test_a_file_that_became_rows_is_the_same_session_once(store: ClawStore) -> None:
    path = openclaw(*TALK)
    read()
    imported = migrate(store, path)
    assert read().turns_added == 0
    assert said() == [("user", "첫 질문"), ("assistant", "첫 답")]
    assert read().files_read == 0
    store.say("S1", entry("0000000a", "user", "다음 질문", "00000002", 10))
    assert read().turns_added == 1
    assert len(said(every=True)) == 3
    assert read().files_read == 0
    assert imported.exists() and not any("imported" in name for (name,) in rows("SELECT path FROM source_file"))


def test_a_file_that_was_left_beside_its_rows_is_stored_once(store: ClawStore) -> None:
    openclaw(*TALK)
    store.window("S1")
    store.say("S1", *TALK, entry("0000000a", "user", "다음 질문", "00000002", 10))
    openclaw(header("S1"), *spoken("리셋 전", "네", first=8), name="S1.jsonl.reset.2026-03-01T04-00-00.000Z")
    read()
    assert len(said(every=True)) == 5 == len(rows("SELECT 1 FROM turn"))
    assert read().files_read == 0


def test_a_stale_file_does_not_bring_a_left_branch_back(store: ClawStore) -> None:
    old: list[Row] = [*TALK, entry("00000003", "user", "몽고로", "00000002", 3)]
    still(openclaw(*old), 1_700_000_000)
    store.window("S1")
    store.say("S1", *old, entry("00000004", "user", "SQLite로", "00000002", 4))
    read()
    assert [text for _, text in said()] == ["첫 질문", "첫 답", "SQLite로"]


def test_an_imported_file_whose_session_the_database_lost_is_read(store: ClawStore) -> None:
    migrate(store, openclaw(*TALK))
    store.run("DELETE FROM transcript_events")
    assert read().turns_added == 2
    assert said() == [("user", "첫 질문"), ("assistant", "첫 답")]
    assert read().files_read == 0


def test_a_fork_and_its_origin_hold_what_they_share_once(store: ClawStore) -> None:
    taken = spoken("첫 질문", "첫 답")
    store.window("P")
    store.say("P", header("P"), *taken)
    store.to_reset("P", "C", "fork", key="agent:main:other")
    fork = header("C", parentSession="P", timestamp="2026-03-04T05:06:20.000Z")
    store.say("C", fork, *taken, entry("0000000f", "user", "가지 질문", "00000002", 30))
    read()
    assert len(rows("SELECT 1 FROM turn")) == 3
    assert [text for _, text in said("P", every=True)] == ["첫 질문", "첫 답"]
    assert [text for _, text in said("C", every=True)] == ["첫 질문", "첫 답", "가지 질문"]


# --- deletions ---


def test_a_deleted_session_leaves_its_findings_and_no_words(store: ClawStore) -> None:
    store.talk("S1", CHOICE, DONE, SECRET, "알겠습니다.")
    read()
    assert found("비둘기자리")
    store.put_away("S1")
    report = run()
    assert report.candidates_added == 1
    assert waiting()[0]["source_status"] == "deleted"
    assert sessions()["S1"].status == "deleted"
    assert words_in(Home.open().root, "비둘기자리") == []
    again = run()
    assert (again.files_read, again.candidates_added) == (0, 0)


def test_a_deletion_is_seen_in_the_archive_alone(store: ClawStore) -> None:
    store.archive("S1", "deleted", [header(), *spoken(CHOICE, DONE, SECRET)])
    assert run().candidates_added == 1
    assert words_in(Home.open().root, "비둘기자리") == []
    assert run().files_read == 0


def test_a_deletion_reaches_what_was_archived_from_a_file(store: ClawStore) -> None:
    imported = migrate(store, openclaw(header(), *spoken(CHOICE, DONE, SECRET)))
    read()
    store.put_away("S1")
    run()
    assert imported.exists()  # it is the agent's; what it says was deleted all the same
    assert words_in(Home.open().root, "비둘기자리") == []
    assert run().files_read == 0


def test_an_old_copy_does_not_bring_a_deleted_session_back(store: ClawStore) -> None:
    migrate(store, openclaw(header(), *spoken(SECRET)))
    store.put_away("S1")
    run()
    store.run("DELETE FROM session_transcript_archives")  # the agent keeps them for some days only
    report = run()
    assert (report.files_read, report.turns_added) == (0, 0)
    assert words_in(Home.open().root, "비둘기자리") == []


def test_what_is_said_under_the_id_afterwards_stays(store: ClawStore) -> None:
    store.talk("S1", SECRET)
    read()
    store.put_away("S1")
    store.talk("S1", "새 질문", first=5)
    run()
    assert (said(), sessions()["S1"].status) == ([("user", "새 질문")], "active")
    assert words_in(Home.open().root, "비둘기자리") == []
    assert run().files_read == 0


def test_a_deletion_that_is_told_late_takes_nothing_that_was_said_since(store: ClawStore) -> None:
    store.talk("S1", "옛 질문")
    store.put_away("S1")
    store.talk("S1", "새 질문", first=5)
    store.run("UPDATE session_transcript_archives SET reason = 'reset'")
    run()
    assert len(said()) == 2
    store.run("UPDATE session_transcript_archives SET reason = 'deleted', generation = ?", "f" * 32)
    run()
    assert said() == [("user", "새 질문")]
    assert run().files_read == 0


def test_the_file_that_repeats_a_deletion_buries_nothing_more(store: ClawStore) -> None:
    store.talk("S1", SECRET)
    name = store.put_away("S1")
    store.talk("S1", "새 질문", first=5)
    run()
    write(store.folder / "sessions" / name, header(), *spoken(SECRET))
    assert run().files_read == 0
    store.run("DELETE FROM session_transcript_archives")  # by now only the file tells of it
    run()
    assert said() == [("user", "새 질문")]
    assert words_in(Home.open().root, "비둘기자리") == []
    assert run().files_read == 0


def test_a_live_file_that_was_archived_before_its_ids_deletion_was_known_stays() -> None:
    live = openclaw(header(), *spoken("새 질문", first=5))
    run()
    old = openclaw(header(), *spoken(SECRET), name=f"S1.jsonl{DELETED}")
    still(old, 1_700_000_000)
    run()
    assert said() == [("user", "새 질문")]
    append(live, b"")
    assert run().files_read == 0


def test_a_deleted_session_is_kept_where_that_is_wished(store: ClawStore, wwt_home: Path) -> None:
    (wwt_home / "config.toml").write_text("[archive]\nkeep_deleted = true\n", encoding="utf-8")
    store.talk("S1", CHOICE, DONE)
    store.put_away("S1")
    assert run().candidates_added == 1
    assert said() == [("user", CHOICE), ("assistant", DONE)]
    assert sessions()["S1"].status == "deleted"


def test_a_newer_parser_buries_nothing_again(store: ClawStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.talk("S1", SECRET)
    store.put_away("S1")
    store.talk("S2", "질문")
    run()
    monkeypatch.setattr(OpenClaw, "parser_version", OpenClaw.parser_version + 1)
    assert run().files_read == 1


# --- pi ---

UUID = "019e19b4-eb48-746a-aa6b-8dfcfa37954b"
NAME = f"2026-03-04T05-06-00-000Z_{UUID}.jsonl"


def pi_file(*said_by_turns: str, folder: Path | None = None) -> Path:
    where = folder or Path.home() / ".pi" / "agent" / "sessions" / "--srv-shop--"
    return write(where / NAME, header(UUID), *spoken(*said_by_turns))


def as_openclaw(path: Path) -> None:
    """Archive a file as it was when pi's sessions were not told apart, and mine it."""
    home = Home.open()
    ingest_file(home.database, OpenClaw(), Found("openclaw", path), home.redact, final=True)
    run(finished=True, agents=("claude-code",))


def test_pis_sessions_are_found_and_read_once() -> None:
    path = pi_file(CHOICE, DONE)
    assert run().turns_added == 2
    assert (sessions()[UUID].agent, projects()[UUID]) == ("pi", "/srv/shop")
    assert run().files_read == 0
    append(path, json.dumps(entry("0000000a", "user", "다음 질문", "00000002", 10)).encode() + b"\n")
    assert run().turns_added == 1
    copy = write(Path.home() / "backup" / NAME, path.read_bytes().rstrip(b"\n"))
    assert run(copy).turns_added == 0


def test_a_session_that_was_archived_as_openclaws_becomes_pis(tmp_path: Path) -> None:
    path = pi_file(CHOICE, DONE, "/model")
    as_openclaw(path)
    before = dict(rows("SELECT key, id FROM turn"))
    assert [row["agent"] for row in waiting()] == ["openclaw"]
    run()
    assert rows("SELECT DISTINCT agent FROM session") == rows("SELECT DISTINCT agent FROM turn") == [("pi",)]
    assert rows("SELECT agent, path FROM source_file") == [("pi", str(path))]
    after = dict(rows("SELECT key, id FROM turn"))
    assert before.items() < after.items() and len(said(UUID, every=True)) == 3
    assert [row["agent"] for row in waiting()] == ["pi"]
    assert run().files_read == 0


def test_evidence_of_a_session_that_becomes_pis_still_names_its_turns() -> None:
    as_openclaw(pi_file(CHOICE, DONE))
    assert accept_all().accepted == 1
    run()
    linked = rows("SELECT t.agent FROM evidence e JOIN turn t ON t.id = e.turn_id")
    assert linked and set(linked) == {("pi",)}
    assert waiting() == []


def test_what_only_another_copy_held_stays_when_a_session_becomes_pis(tmp_path: Path) -> None:
    longer = pi_file("질문", "답", "더", "네", folder=tmp_path / "--copy--")
    as_openclaw(longer)
    longer.unlink()
    pi_file("질문", "답")
    run()
    assert [text for _, text in said(UUID)] == ["질문", "답", "더", "네"]
    assert rows("SELECT DISTINCT agent FROM session") == [("pi",)]


def test_a_forgotten_session_stays_forgotten_when_it_becomes_pis() -> None:
    path = pi_file(SECRET)
    as_openclaw(path)
    home = Home.open()
    forget.forget(home, forget.plan(home, forget.Wish((UUID,))))
    run()
    assert rows("SELECT 1 FROM turn") == []
    assert words_in(Home.open().root, "비둘기자리") == []

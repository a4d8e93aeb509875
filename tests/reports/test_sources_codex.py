"""Codex CLI's transcripts on the whole way: what is found, whose it is, and what is stored once though it lies in several files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import zstandard

from archiver.archive import Report
from archiver.home import Home
from store.records import State
from tests.archiver.sources.rollouts import (
    AGENTS_MD,
    ENVIRONMENT,
    OTHER,
    THIRD,
    THREAD,
    call,
    codex,
    completed,
    document,
    event,
    legacy,
    message,
    meta,
    name,
    output,
    paginated,
    record,
    sent,
    shown,
)
from tests.archiver.sources.transcripts import Row, encode, user, write
from tests.reports.walk import append, claude, found, projects, read, run, said, search, sessions, staged, titles

DAY = "sessions/2026/03/04"


def texts(thread: str = THREAD) -> list[str]:
    return [text for _, text in said(thread)]


def home() -> Path:
    return Path.home() / ".codex"


def stored() -> list[tuple[str, str]]:
    """(key, state) of every turn in the archive, once for each row."""
    return [(row["key"], row["state"]) for row in Home.open().reader.rows("SELECT key, state FROM turn ORDER BY key")]


def embedded_by(report: Report) -> tuple[int, int, int]:
    return report.turns_added, report.chunks_added, report.chunks_embedded


def packed(path: Path) -> Path:
    """The file as the client's own worker leaves it after a week."""
    small = path.with_name(path.name + ".zst")
    small.write_bytes(zstandard.compress(path.read_bytes()))
    path.unlink()
    return small


# --- what was said, and by whom --------------------------------------------------------------------------------------


def test_a_reply_that_is_written_in_two_streams_is_one() -> None:
    codex(meta(), *legacy("로그 위치 알려줘", "~/.local/state 아래입니다"))
    read()
    assert said(THREAD) == [("user", "로그 위치 알려줘"), ("assistant", "~/.local/state 아래입니다")]


def test_a_session_of_response_items_alone_is_read() -> None:
    codex(
        meta(),
        sent("developer", "<permissions>...</permissions>", 0),
        sent("user", "빌드 실패 원인?"),
        sent("assistant", "링커 옵션입니다", 2),
    )
    report = read()
    assert said(THREAD) == [("user", "빌드 실패 원인?"), ("assistant", "링커 옵션입니다")]
    assert report.unreadable == []


def test_a_file_in_which_no_message_could_be_read_is_named() -> None:
    novel = {"type": "message", "role": "assistant", "content": [{"type": "novel", "body": "말"}]}
    path = codex(meta(), record("response_item", novel, 1))
    codex(meta(OTHER), sent("user", ENVIRONMENT, 1), file=name(OTHER))
    assert [fault["file"] for fault in read().unreadable] == [str(path)]
    assert sessions() == {}


def test_the_projects_instructions_are_no_prompt_no_title_and_no_pattern() -> None:
    for number, question in enumerate(("토큰 만료 버그 고쳐줘", "배포 스크립트 정리")):
        thread = (THREAD, OTHER)[number]
        codex(
            meta(thread),
            sent("user", AGENTS_MD, 0),
            sent("user", ENVIRONMENT, 0),
            sent("user", question),
            sent("assistant", "네", 2),
            file=name(thread),
        )
    run()
    assert titles() == {THREAD: "토큰 만료 버그 고쳐줘", OTHER: "배포 스크립트 정리"}
    assert not found("prefer pnpm")
    assert not any("pnpm" in one for one in staged())


def test_a_thread_for_which_no_memory_is_wanted_is_left_out_and_named() -> None:
    path = codex(meta(memory_mode="disabled"), *legacy("비밀 고유어 mm11", "네"))
    assert [(fault["file"], fault["line"]) for fault in read().unreadable] == [(str(path), 1)]
    assert (sessions(), found("mm11")) == ({}, False)
    append(path, encode(legacy("또 비밀 mm12", "네", 5)))
    assert read().unreadable == []
    assert not found("mm12")


def test_repeated_lines_are_one_turn_and_one_prompt_in_two_threads_is_each_ones_own() -> None:
    question = shown("롤백하자", 5)
    codex(meta(), shown("시작"), *[question] * 4)
    codex(meta(OTHER), shown("다른 작업"), question, file=name(OTHER))
    assert read().unreadable == []
    assert (texts(), texts(OTHER)) == (["시작", "롤백하자"], ["다른 작업", "롤백하자"])


def test_a_long_first_prompt_is_kept_whole_and_its_first_line_is_the_title() -> None:
    codex(
        meta(base_instructions={"text": "가" * 60_000}),
        sent("user", "계획서\n" + "가나다라 " * 6000),
        sent("assistant", "읽었습니다", 2),
    )
    read()
    assert titles() == {THREAD: "계획서"}
    assert len(texts()[0]) > 25_000


def test_half_a_last_line_waits_for_its_other_half() -> None:
    more = encode(legacy("쓰다 만 한글 hh34", "이어진 답", 3))
    path = codex(meta(), *legacy("질문", "답"), tail=more[:201])
    os.utime(path)
    assert read(finished=False).unreadable == []
    assert texts() == ["질문", "답"]
    append(path, more[201:])
    read(finished=False)
    assert texts() == ["질문", "답", "쓰다 만 한글 hh34", "이어진 답"]


def test_unknown_records_are_no_reason_to_complain() -> None:
    novel = [
        record("future_kind", {"v": 2}),
        {"foo": 1},
        event("future_event"),
        record("response_item", {"type": "future_item"}),
        record("event_msg", None),
        completed({"type": "FutureItem"}),
    ]
    codex(meta(), *novel, *legacy("질문", "답"), *novel)
    assert read().unreadable == []
    assert texts() == ["질문", "답"]


def test_zero_bytes_after_a_crash_hide_nothing() -> None:
    rows = [meta(), *legacy("앞", "가운데"), *legacy("뒤", "끝", 3)]
    lines = encode(rows).split(b"\n")
    codex(*lines[:3], lines[3] + b"\x00" * 7000, *lines[4:-1], tail=b"\x00" * 50_000)
    report = read()
    assert texts() == ["앞", "가운데", "뒤", "끝"]
    assert [fault["reason"] for fault in report.unreadable] == ["zero bytes at the end"]


def test_images_in_a_compacted_history_reach_nothing() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64," + "iVBORw0KGgo" * 30_000}
    history = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "스크린샷 봐줘"}, image]}
    ] * 8
    codex(
        meta(),
        sent("user", "스크린샷 봐줘"),
        record("compacted", {"message": "", "replacement_history": history}, 2),
        sent("user", "이어서 진행", 3),
    )
    read()
    assert texts() == ["스크린샷 봐줘", "이어서 진행"]
    assert not found("iVBORw0KGgo")


def test_the_word_error_in_an_output_is_no_failure_and_a_status_is() -> None:
    codex(
        meta(),
        shown("테스트 돌려"),
        call("shell", {"command": ["pytest"]}, "call_aaaaaaaaaaaaaaaa"),
        output(
            "Exit code: 0\nWall time: 1 seconds\nOutput:\ntest_error_handling PASSED\n0 errors, 0 failed",
            "call_aaaaaaaaaaaaaaaa",
        ),
        call("shell", {"command": ["make"]}, "call_bbbbbbbbbbbbbbbb", 3),
        output("Exit code: 2\nWall time: 1 seconds\nOutput:\nmake: *** [all] 실패 ee65", "call_bbbbbbbbbbbbbbbb", 4),
        sent("assistant", "아직 해결하지 못했습니다.", 5),
    )
    run()
    facts = [(row["kind"], row["ok"]) for row in Home.open().reader.rows("SELECT kind, ok FROM outcome ORDER BY id")]
    assert facts == [("test", 1), ("build", 0)]
    assert search("ee65")[0].role == "tool"
    assert staged() == []


# --- where files lie, and which project they are of ------------------------------------------------------------------


def test_live_and_archived_files_of_any_age_are_found() -> None:
    codex(meta(), *legacy("활성", "네"))
    codex(meta(OTHER), *legacy("보관된 것 kk91", "네"), file=name(OTHER), folder="archived_sessions")
    document(home() / "sessions" / "rollout-2025-05-07-old.json", message("user", "아주 옛것 kk92"), thread=THIRD)
    read()
    assert found("kk91")
    assert found("kk92")
    assert set(sessions()) == {THREAD, OTHER, THIRD}
    assert read().files_read == 0


def test_a_moved_home_is_followed_and_its_secrets_are_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = tmp_path / "업무 프로필"
    monkeypatch.setenv("CODEX_HOME", str(moved))
    write(moved / DAY / name(), meta(), *legacy("다른 홈 cc25", "네"))
    document(moved / "auth.json", message("user", "비밀 aa25"))  # whoever opens it takes it for a transcript
    read()
    assert read(moved).unreadable == []
    assert found("cc25")
    assert not found("aa25")


def test_the_same_home_through_a_link_is_read_once(tmp_path: Path) -> None:
    codex(meta(), *legacy("연결된 파일", "네"))
    (home() / "sessions" / "linked").symlink_to(home() / "sessions" / "2026", target_is_directory=True)
    (tmp_path / "other").symlink_to(home(), target_is_directory=True)
    assert read().files_read == 1
    assert read(tmp_path / "other").turns_added == 0
    assert texts() == ["연결된 파일", "네"]


@pytest.mark.parametrize(
    "folder", ["d:/OneDrive - 가게/Work", "\\\\?\\D:\\OneDrive - 가게\\Work\\", "D:\\OneDrive - 가게\\Work"]
)
def test_spellings_of_a_windows_folder_are_one_project(folder: str) -> None:
    claude(user("1", "하나", cwd="D:\\OneDrive - 가게\\Work", sessionId="S1"))
    codex(meta(cwd=folder), *legacy("둘", "네"))
    read()
    assert len(set(projects().values())) == 1
    assert set(projects()) == {"S1", THREAD}


def test_a_folder_with_a_hyphen_is_one_project_for_all_agents() -> None:
    claude(user("1", "hi", cwd="/home/u/deja-vu"))
    codex(meta(cwd="/home/u/deja-vu"), *legacy("hi", "hello"))
    read()
    assert set(projects().values()) == {"/home/u/deja-vu"}


def test_a_folder_of_codex_that_is_pointed_at_gives_what_discovery_gives() -> None:
    codex(meta(), *paginated("하나", "1"))
    write(home() / "session_index.jsonl", {"id": THREAD, "thread_name": "이름", "updated_at": "2026-03-04T05:06:00Z"})
    write(home() / "history.jsonl", {"session_id": THREAD, "ts": 1772600760, "text": "하나"})
    assert read(home()).unreadable == []
    assert read().files_read == 0


def test_a_secret_in_a_transcript_reaches_no_file() -> None:
    secret = "ghp_" + "Z9x" * 12
    run_it = call("shell", {"command": ["bash", "-lc", f"TOKEN={secret} pytest"]})
    codex(
        meta(),
        *legacy(f"토큰은 {secret} 입니다", f"{secret} 를 썼습니다"),
        run_it,
        output(f"Exit code: 1\nOutput:\nerror: {secret}"),
    )
    run()
    root = Home.open().root
    assert [path for path in root.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()] == []
    assert found("토큰은")


# --- one conversation, several files ---------------------------------------------------------------------------------


def test_a_thread_that_was_archived_is_the_same_session() -> None:
    path = codex(
        meta(),
        *legacy("옮겨질 말 mv31", "네"),
        event("thread_rolled_back", 3, num_turns=9),
        *legacy("남을 말", "네", 4),
    )
    read()
    before = stored()
    target = home() / "archived_sessions" / path.name
    target.parent.mkdir()
    path.rename(target)
    assert embedded_by(read()) == (0, 0, 0)
    assert stored() == before
    assert read().files_read == 0
    target.rename(path)
    assert embedded_by(read()) == (0, 0, 0)
    append(path, encode(legacy("되살린 뒤의 말", "네", 9)))
    assert read().turns_added == 2
    assert texts() == ["남을 말", "네", "되살린 뒤의 말", "네"]


def test_a_thread_that_was_compressed_and_materialised_again_is_the_same_session() -> None:
    path = codex(meta(), *paginated("압축될 말 zs41", "네"))
    read()
    before, rows = stored(), path.read_bytes()
    small = packed(path)
    assert embedded_by(read()) == (0, 0, 0)
    path.write_bytes(rows)  # beside the compressed one: the plain one counts
    append(path, encode(paginated("풀린 뒤의 말", "네", 9, "t2")))
    assert read().turns_added == 2
    small.unlink()
    assert read().files_read == 0
    assert texts() == ["압축될 말 zs41", "네", "풀린 뒤의 말", "네"]
    assert set(before) < set(stored())


def test_a_thread_that_was_first_met_compressed_is_read() -> None:
    packed(codex(meta(), *paginated("압축된 말 zs42", "네"), folder="archived_sessions"))
    read()
    assert found("zs42")
    assert read().files_read == 0


def test_growth_costs_what_grew(wwt_home: Path) -> None:
    (wwt_home / "config.toml").write_text('[embedding]\nmodel = "none"\n', encoding="utf-8")
    path = codex(
        meta(),
        *[
            row
            for n in range(100)
            for row in paginated(f"질문 {n} " + "가" * 200, "답 " + "나" * 200, n, f"019a2b3c-4d5e-7f60-8a1b-{n:012d}")
        ],
    )
    read(finished=False)
    more = encode(paginated("새 질문 gr51", "새 답", 5, "019a2b3c-4d5e-7f60-8a1b-fffffffffffe"))
    append(path, more)
    report = read(finished=False)
    assert (report.turns_added, report.bytes_read < len(more) + 20_000) == (2, True)
    assert len(said(THREAD)) == 202


def further(reverted_to: int, *rows: Row, base: Path, rollout: str = OTHER, day: int = 5) -> Path:
    """One more file of the thread, which goes on from a record of the one before."""
    kept = base.read_bytes().splitlines(keepends=True)[:reverted_to]
    origin = {"thread_id": THREAD, "end_ordinal_exclusive": reverted_to, "end_byte_offset": len(b"".join(kept))}
    return codex(
        meta(history_base=origin),
        *rows,
        file=name(rollout=rollout, when=f"2026-03-0{day}T01-00-00"),
        folder=f"sessions/2026/03/0{day}",
    )


def thread() -> Path:
    rows = [meta(history_mode="paginated"), *paginated("하나", "1"), *paginated("몽고로", "몽고 적용", 11, "t2")]
    return codex(*[{**row, "ordinal": at} for at, row in enumerate(rows) if isinstance(row, dict)])


def states() -> dict[str, str]:
    return {row["text"]: row["state"] for row in Home.open().reader.rows("SELECT text, state FROM turn")}


@pytest.mark.parametrize("at_once", [True, False])
def test_a_reverted_thread_is_one_session_in_order_and_what_was_reverted_is_abandoned(at_once: bool) -> None:
    first = thread()
    if not at_once:
        read()
    second = further(7, *paginated("SQLite로", "SQLite 적용", 21, "t3"), base=first)
    read()
    assert texts() == ["하나", "1", "SQLite로", "SQLite 적용"]
    assert {text for text, state in states().items() if state == State.ABANDONED} == {"몽고로", "몽고 적용"}
    assert titles() == {THREAD: "하나"}
    assert read().files_read == 0
    append(second, encode(paginated("이어서", "네", 31, "t4")))
    assert read().turns_added == 2
    for path in (first, second):
        target = home() / "archived_sessions" / path.name
        target.parent.mkdir(exist_ok=True)
        path.rename(target)
    assert embedded_by(read()) == (0, 0, 0)
    assert texts() == ["하나", "1", "SQLite로", "SQLite 적용", "이어서", "네"]


def test_a_thread_that_rolled_over_goes_on() -> None:
    first = thread()
    further(13, *paginated("이어서", "네", 21, "t3"), base=first)
    read()
    assert texts() == ["하나", "1", "몽고로", "몽고 적용", "이어서", "네"]
    assert read(home()).files_read == 0


OLD = [meta(OTHER, cwd="/srv/old"), *legacy("A에서 물은 것 fk61", "A의 답")]


@pytest.mark.parametrize("first", ["parent", "child", "both"])
def test_what_a_fork_copied_is_stored_once(first: str) -> None:
    def parent() -> None:
        codex(*OLD, file=name(OTHER))

    def child() -> None:
        codex(meta(THREAD, 30, cwd="/srv/new", forked_from_id=OTHER), *OLD, *legacy("B에서 물은 것", "B의 답", 31))

    for write_it in {"parent": (parent, child), "child": (child, parent), "both": (parent,)}[first]:
        write_it()
        if first == "both":
            child()
        read()
    rows = Home.open().reader.rows("SELECT text FROM turn ORDER BY text")
    assert [row["text"] for row in rows] == ["A에서 물은 것 fk61", "A의 답", "B에서 물은 것", "B의 답"]
    assert len([hit for hit in search("fk61") if "fk61" in hit.text]) == 1
    assert projects()[THREAD] == "/srv/new"
    if first != "child":
        assert texts(OTHER) == ["A에서 물은 것 fk61", "A의 답"]
        assert texts() == ["B에서 물은 것", "B의 답"]
    parents = {
        row["external_id"]: row["above"]
        for row in Home.open().reader.rows(
            "SELECT s.external_id, p.external_id AS above FROM session s LEFT JOIN session p ON p.id = s.parent_id"
        )
    }
    assert parents == {THREAD: OTHER, OTHER: None}


def test_a_fork_that_carries_two_metas_is_the_first_ones() -> None:
    rows = [sent("user", "A에서 물은 것", 1), sent("assistant", "답", 2), sent("user", "B에서 새로 물은 것", 3)]
    codex(meta("CHILD", cwd="/home/u/B", forked_from_id="PARENT"), meta("PARENT", cwd="/home/u/A"), *rows)
    read()
    assert projects()["CHILD"] == "/home/u/B"
    assert texts("CHILD")[-1] == "B에서 새로 물은 것"
    assert sessions()["CHILD"].turns == 3


def test_a_rollback_that_comes_later_reaches_back_and_the_finding_goes() -> None:
    path = codex(meta(), *legacy("시작", "네"), *legacy("저장소는 몽고DB로 하자 rb71", "네, 몽고DB로 했습니다.", 3))
    read()
    append(path, encode([event("thread_rolled_back", 5, num_turns=1), *legacy("저장소는 SQLite로 하자", "네", 6)]))
    read()
    assert texts() == ["시작", "네", "저장소는 SQLite로 하자", "네"]
    assert states()["저장소는 몽고DB로 하자 rb71"] == State.ABANDONED


def test_subagents_lie_below_their_session_and_are_not_mined() -> None:
    codex(meta(), *legacy("TODO를 찾아줘", "찾았습니다"))
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "depth": 1}}}
    copied = [
        {**row, "ordinal": at}
        for at, row in enumerate(legacy("TODO를 찾아줘", "찾았습니다"), 1)
        if isinstance(row, dict)
    ]
    own = [
        {**row, "ordinal": at}
        for at, row in enumerate(legacy("a.py를 보라", "3번 줄입니다", 9), 5)
        if isinstance(row, dict)
    ]
    codex(
        meta(OTHER, source=spawn, thread_source="subagent", subagent_history_start_ordinal=5),
        *copied,
        *own,
        file=name(OTHER),
    )
    run()
    assert sessions()[OTHER].is_subagent
    assert said(OTHER) == [("subagent", "a.py를 보라"), ("subagent", "3번 줄입니다")]
    assert texts() == ["TODO를 찾아줘", "찾았습니다"]


def test_a_document_that_was_written_anew_is_read_anew() -> None:
    path = home() / "sessions" / "rollout-2025-05-07-old.json"
    document(path, message("user", "하나"), message("assistant", "네"))
    read()
    document(path, message("user", "하나"), message("assistant", "네"), message("user", "둘 dd81"))
    assert read().turns_added == 1
    assert texts() == ["하나", "네", "둘 dd81"]
    assert read().files_read == 0


def test_an_earlier_title_gives_way_to_the_name_that_was_given() -> None:
    path = codex(meta(), *legacy("첫 질문", "네"))
    read()
    write(home() / "session_index.jsonl", {"id": THREAD, "thread_name": "결제 오류"})
    append(path, encode(legacy("다음", "네", 5)))
    read()
    assert titles() == {THREAD: "결제 오류"}


def test_a_resumed_thread_can_be_gone_on_with() -> None:
    from archiver.agents import resume_command

    assert resume_command("codex", THREAD) == f"codex resume {THREAD}"


def test_hostile_words_of_a_transcript_are_stored_and_shown_harmlessly() -> None:
    rows: list[dict[str, Any]] = [meta(), *legacy("설정파\ud82d 결정 \x1b[31m빨강", "\ud83d\ude00 네")]  # type: ignore[list-item]
    codex(*[json.dumps(row).encode() for row in rows])
    read()
    assert texts()[1] == "😀 네"
    assert found("설정파")

"""Gemini CLI's folder as it stands on a user's machine, through the whole archive."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from archiver.home import Home
from archiver.sources.gemini_projects import hash_of
from tests.archiver.sources.test_gemini_cli import (
    NAME,
    SESSION,
    SHOP,
    Recorder,
    document,
    exchanges,
    header,
    model,
    played,
    register,
    shell,
    user,
    write_document,
)
from tests.archiver.sources.transcripts import Row, encode, write
from tests.reports.walk import (
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
)


@pytest.fixture
def home() -> Path:
    return Path.home() / ".gemini"


def chat(*rows: Row, name: str = NAME, folder: str = "shop", **how: Any) -> Path:
    """A transcript in the agent's own folder."""
    return write(Path.home() / ".gemini" / "tmp" / folder / "chats" / f"{name}.jsonl", *rows, **how)


def old_chat(*messages: dict[str, Any], name: str = NAME, folder: str = "shop", **more: Any) -> Path:
    """One of the versions before 0.40."""
    path = Path.home() / ".gemini" / "tmp" / folder / "chats" / f"{name}.json"
    return write_document(path, document(*messages, **more))


def words(session: str = SESSION) -> list[str]:
    return [text for _, text in said(session)]


def reads_nothing() -> bool:
    report = run()
    return (report.files_read, report.bytes_read, report.turns_added, report.unreadable) == (0, 0, 0, [])


# --- every form is read ---


def test_documents_logs_and_subagents_are_sessions_and_a_second_run_reads_nothing(home: Path) -> None:
    register(home, {SHOP: "shop"})
    old_chat(user("m1", "옛 형식"), model("m2", "옛 답"), name="session-2025-12-01T01-02-aaaaaaaa", session="G0")
    chat(header(), user("m1", [{"text": "새 형식"}]), model("m2", [{"text": "새 답"}]))
    chat(
        header("G2", kind="subagent"),
        user("x", "찾아봐"),
        model("y", "부속 작업을 마쳤습니다"),
        name=f"{SESSION}/0la501",
    )
    assert read().turns_added == 6
    assert (words("G0"), words()) == (["옛 형식", "옛 답"], ["새 형식", "새 답"])
    parents = Home.open().reader.rows("SELECT external_id, parent_id, is_subagent FROM session ORDER BY id")
    held = {row["external_id"]: row for row in sessions_by_id()}
    assert held["G2"]["is_subagent"] == 1
    assert {row["external_id"] for row in parents if row["parent_id"]} == {"G2"}
    assert set(projects().values()) == {SHOP}
    assert not found("부속 작업")
    assert reads_nothing()


def sessions_by_id() -> list[Any]:
    return Home.open().reader.rows("SELECT external_id, is_subagent FROM session")


def test_the_agents_home_may_lie_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "alt"))
    shutil.copytree(chat(header(), user("u", "여기 있어요")).parents[3], tmp_path / "alt" / ".gemini")
    shutil.rmtree(Path.home() / ".gemini")
    read()
    assert words() == ["여기 있어요"]


def test_what_comes_first_is_neither_prompt_nor_title_and_the_hash_names_the_project(home: Path) -> None:
    tree = "<session_context>\nToday is Friday.\n|- src/\n|- decided-zebra42.md\n</session_context>"
    chat(header(), user("0", [{"text": tree}]), user("1", [{"text": "테스트 추가해줘"}]), model("2", "추가했습니다"))
    read()
    assert (titles()[SESSION], projects()) == ("테스트 추가해줘", {})
    assert not found("zebra42")
    register(home, {SHOP: "renamed-later"})
    assert projects() == {} and read().turns_added == 0
    append(home / "tmp" / "shop" / "chats" / f"{NAME}.jsonl", encode([model("3", "끝")]))
    read()
    assert projects() == {SESSION: SHOP}


def test_a_folder_that_becomes_known_later_is_the_sessions_without_a_word_of_it_changing(home: Path) -> None:
    chat(header(cwd="/gone"), user("1", "테스트 추가해줘"))
    old_chat(user("1", "옛 질문"), name="session-2025-12-01T01-02-aaaaaaaa", session="old", cwd="/gone")
    read()
    assert projects() == {}
    register(home, {SHOP: "shop"})
    report = read()
    assert (report.files_read, report.turns_added) == (2, 0)
    assert projects() == {SESSION: SHOP, "old": SHOP}
    assert reads_nothing()


def test_sixty_lines_of_bookkeeping_before_the_first_prompt_hide_nothing() -> None:
    rows = [{"$set": {"lastUpdated": "2026-03-04T05:06:07.000Z"}} for _ in range(60)]
    path = chat(header(), *rows, user("u", "진짜 첫 질문"), model("g", "답"))
    moved = path.rename(Path.home() / "any-name.jsonl")
    read(moved)
    assert (titles()[SESSION], words()) == ("진짜 첫 질문", ["진짜 첫 질문", "답"])


def test_a_line_of_many_megabytes_is_read_and_what_it_embeds_is_not_kept() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo" * 800_000}}
    chat(header(), user("1", [image, {"text": "화면이 깨져요"}]), user("2", "이어서 진행"))
    read()
    assert words() == ["화면이 깨져요", "이어서 진행"]


def test_of_a_large_log_only_what_is_new_is_read() -> None:
    done = shell("cat x", "Output: " + "x" * 200_000)
    path = chat(header(), user("1", "처음"), *(model(f"g{n}", "", toolCalls=[done]) for n in range(60)))
    read()
    more = encode([user("2", "마지막 tt01")])
    append(path, more)
    report = read()
    assert (report.turns_added, words()[-1]) == (1, "마지막 tt01")
    assert report.bytes_read < len(more) + 3 * 4096


@pytest.mark.parametrize("finished", [True, False])
def test_empty_and_torn_files_cost_nothing_and_are_read_when_they_grow(finished: bool) -> None:
    names = [f"session-2026-03-04T05-06-{letter * 8}" for letter in "abcd"]
    torn = json.dumps(header("G2")).encode()[:20]
    empty = chat(name=names[0])
    half = chat(name=names[1], tail=torn)
    chat(name=names[2], tail=b"\n\n")
    chat(header("G4"), user("1", "살아있음"), name=names[3])
    report = read(finished=finished)
    assert list(sessions()) == ["G4"]
    told = {(Path(bad["file"]).stem[-1], bad["line"], bad["reason"]) for bad in report.unreadable}
    assert {("a", 0, "empty"), ("c", 0, "empty")} <= told
    assert len(told) == (3 if finished else 2)
    assert read(finished=finished).files_read == 0
    append(half, json.dumps(header("G2")).encode()[len(torn) :] + b"\n" + encode([user("1", "이어짐")]))
    append(empty, encode([header("G1"), user("1", "이제 있음")]))
    assert read(finished=finished).unreadable == []
    assert set(sessions()) == {"G4", "G2", "G1"}


def test_a_copy_elsewhere_is_known_by_its_content_and_a_chat_log_of_others_is_not(tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    write(backup / "any-name.jsonl", header("A"), user("1", "복사본"))
    write_document(backup / "old" / "renamed.json", document(user("1", "옛 복사본"), session="B"))
    write(backup / "generic.jsonl", {"role": "user", "content": "api log"}, {"role": "assistant", "content": "x"})
    write_document(backup / "package.json", {"name": "shop", "version": "1.0.0"})
    write(backup / f"{NAME}.jsonl.unreadable-1767225600000", header("C"), user("1", "못 읽은 파일"))
    report = read(backup)
    assert set(sessions()) == {"A", "B"}
    assert [Path(bad["file"]).name for bad in report.unreadable] == ["generic.jsonl"]


# --- what is said once is stored once ---


def test_a_log_that_grows_is_stored_once() -> None:
    path = chat(header(), user("u1", "하나"), model("g1", "답의"))
    read(finished=False)
    append(path, encode([model("g1", "답의 전부"), {"$set": {"lastUpdated": "x"}}, user("u2", "둘")]))
    assert read(finished=False).turns_added == 1
    assert words() == ["하나", "답의 전부", "둘"]


def test_a_document_that_grows_is_stored_once() -> None:
    old_chat(user("u1", "하나"), model("g1", "답"))
    read()
    old_chat(user("u1", "하나"), model("g1", "답의 전부"), user("u2", "둘"))
    assert read().turns_added == 1
    assert words() == ["하나", "답의 전부", "둘"]
    assert reads_nothing()


@pytest.mark.parametrize("archived_before", [True, False])
def test_a_document_resumed_as_a_log_is_one_session(archived_before: bool) -> None:
    spoken = [user("u1", "하나"), model("g1", "답1"), user("u2", "둘"), model("g2", "답2")]
    still(old_chat(*spoken), 1_772_600_000)
    if archived_before:
        read()
    chat(header(), *spoken, {"$rewindTo": "u2"}, user("u3", "셋"))
    assert read().turns_added == (1 if archived_before else 5)
    assert words() == ["하나", "답1", "셋"]
    assert reads_nothing()
    read(Path.home() / ".gemini")
    assert words() == ["하나", "답1", "셋"]
    assert reads_nothing()


@pytest.mark.parametrize("archived_before", [True, False])
def test_a_project_folder_copied_to_its_new_name_is_stored_once(home: Path, archived_before: bool) -> None:
    old = old_chat(user("u1", "하나"), model("g1", "답"), folder=hash_of(SHOP))
    if archived_before:
        read()
    shutil.copytree(old.parents[1], home / "tmp" / "shop")
    register(home, {SHOP: "shop"})
    read()
    assert words() == ["하나", "답"]
    assert (len(sessions()), projects()) == (1, {SESSION: SHOP})
    assert reads_nothing()


@pytest.mark.parametrize("patches", [True, False])
def test_copies_that_were_archived_before_they_were_known_as_copies_go_again(patches: bool) -> None:
    recorder = played("가 나 mask", Recorder(patches=patches, merged=False))
    path = chat(*recorder.rows[:-1])
    read(finished=False)
    assert len(words()) == 2 * len(exchanges("가 나"))
    before = len(recorder.rows) - 1
    append(path, encode(played("다", recorder).rows[before:]))
    read(finished=False)
    assert words() == exchanges("가 나 다")
    assert reads_nothing()


def test_a_rewound_attempt_is_kept_apart_and_found_only_on_request() -> None:
    path = chat(
        header(), user("1", "메시지 큐를 고르자"), user("3", "Kafka로 결정"), model("4", "Kafka를 설정했습니다.")
    )
    read(finished=False)
    append(path, encode([{"$rewindTo": "3"}, user("5", "RabbitMQ로 결정"), model("6", "RabbitMQ를 설정했습니다.")]))
    read()
    assert words() == ["메시지 큐를 고르자", "RabbitMQ로 결정", "RabbitMQ를 설정했습니다."]
    assert not found("Kafka")
    assert found("Kafka", abandoned=True)


def test_a_compression_loses_no_turn_and_its_summary_is_never_mined() -> None:
    chat(*played("가 나 compress:2 다", Recorder(patches=False, merged=True)).rows)
    run()
    assert words() == exchanges("가 나 다")
    assert not any("zebra" in text for text in staged()) and not found("zebra")


# --- the agent cleans up; the archive keeps ---


def test_a_session_that_the_agent_deleted_stays(home: Path) -> None:
    path = chat(header(), user("1", "재시도는 3번으로 하자"), model("2", "네, 3번으로 했습니다."))
    read()
    path.unlink()
    assert reads_nothing()
    assert found("재시도는 3번")
    (row,) = Home.open().reader.rows("SELECT missing_since FROM source_file")
    assert row["missing_since"] is not None


def test_other_agents_and_what_lies_beside_the_chats_are_left_alone(home: Path) -> None:
    openclaw({"type": "session", "version": 3, "id": "S1", "cwd": SHOP}, {"type": "message", "id": "e1", "message": {"role": "user", "content": "다른 에이전트"}})  # fmt: skip
    chat(header(), user("1", "질문"))
    write_document(
        home / "tmp" / "shop" / "logs.json",
        [{"sessionId": SESSION, "messageId": 0, "type": "user", "message": "/quit"}],
    )
    saved = [{"role": "user", "parts": [{"text": "질문"}]}, {"role": "model", "parts": [{"text": "답"}]}]
    write_document(home / "tmp" / "shop" / "checkpoint-a%20b.json", saved)
    write_document(home / "tmp" / "shop" / "checkpoint-c.json", {"history": saved})
    assert read().unreadable == []
    assert read(home / "tmp" / "shop").unreadable == []
    assert {name: len(said(name)) for name in sessions()} == {SESSION: 1, "S1": 1}


def test_what_was_recalled_is_not_learned_again() -> None:
    block = "<hook_context><!-- wwt:recall -->\n우리는 Zebra42를 쓰기로 했다\n<!-- /wwt:recall --></hook_context>"
    chat(header(), user("1", [{"text": "배포해줘"}, {"text": block}]), model("2", "배포했습니다"))
    read()
    assert words() == ["배포해줘", "배포했습니다"] and not found("Zebra42")

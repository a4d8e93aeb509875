"""What is kept, and stays: odd characters, lost files, damaged indexes, deletions."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from archiver.home import Home
from archiver.index import Index
from archiver.sources import SOURCES
from tests.archiver.sources.transcripts import assistant, call, encode, entry, header, result, user
from tests.factories import words_in
from tests.reports.walk import (
    accept_all,
    append,
    claude,
    found,
    openclaw,
    read,
    run,
    said,
    search,
    sessions,
    waiting,
)

# --- characters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word", "stored"),
    [
        ("설정파\ud82d 분기점을 5로 정하자", "분기점", "설정파\ufffd 분기점을 5로 정하자"),
        ("low half \udc11 then marker mk41", "mk41", "low half \ufffd then marker mk41"),
        ("웃음 \ud83d\ude02 뒤의 표식 mk42", "mk42", "웃음 😂 뒤의 표식 mk42"),
        ("앞말\x00뒷말 표식어", "표식어", "앞말 뒷말 표식어"),
        ("pad " + "\x00" * 9000 + " after-pad mk43", "mk43", "pad   after-pad mk43"),
        ("보이지\u200b않는\u202e 글자 mk44", "mk44", "보이지않는 글자 mk44"),
    ],
)  # fmt: skip
def test_characters_that_break_stores_are_kept_as_words_around_them(text: str, word: str, stored: str) -> None:
    claude(user("1", text), assistant("2", "네.", "1"), ascii_only=True)
    assert read().unreadable == []
    assert said()[0] == ("user", stored)
    assert word in search(word, limit=1)[0].text
    check = Home.open().reader.rows("PRAGMA integrity_check")
    assert check[0][0] == "ok"


def test_odd_characters_in_every_field_of_a_record_are_stored() -> None:
    odd = "상점\ud800\x00\x1b[31m"
    claude(user("1", "질문", cwd=f"/srv/{odd}", gitBranch=odd), {"type": "custom-title", "customTitle": f"제목{odd}", "sessionId": "S1"}, ascii_only=True)  # fmt: skip
    openclaw(header("S2", cwd=f"/srv/{odd}"), entry("e1", "user", "질문"), name="S2.jsonl", ascii_only=True)
    assert read().turns_added == 2
    assert (sessions()["S1"].title or "").startswith("제목상점")


def test_zero_bytes_in_the_output_of_a_failed_tool_hide_no_error() -> None:
    output = "\x00" * 4000 + "\nE   OSError: [Errno 24] too many open files tz71\n" + "\x00" * 4000
    claude(
        user("1", "돌려봐"),
        assistant("2", call("Bash", {"command": "pytest"}), "1"),
        user("3", [result(output, failed=True)], "2", 2),
        ascii_only=True,
    )
    read()
    assert found("tz71")


# --- sizes -----------------------------------------------------------------------------------------------------------


def test_pictures_in_a_record_reach_no_index() -> None:
    picture = base64.b64encode(os.urandom(3_000_000)).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}}
    claude(
        user("1", [image, {"type": "text", "text": "이 화면을 봐줘"}]),
        assistant("2", call("Read", {"file_path": "a.png"}), "1"),
        user("3", [result([image])], "2", 2),
        assistant("4", "버튼이 잘렸습니다 bb64", "3", 3),
    )
    read()
    assert [text for _, text in said()] == ["이 화면을 봐줘", "버튼이 잘렸습니다 bb64"]
    assert words_in(Home.open().root, picture[:60]) == []


def test_only_new_bytes_of_a_long_file_are_read() -> None:
    noise = encode([{"type": "progress", "data": {"out": "x" * 100_000}, "sessionId": "S1"}])
    path = claude(user("1", "처음"), *[noise.rstrip()] * 60)
    read()
    append(path, encode([user("2", "마지막 tt02", "1", 9)]))
    assert read().bytes_read < 50_000
    assert found("tt02")


# --- what must stay --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["claude-code", "openclaw"])
def test_a_file_its_agent_cleaned_up_stays_in_the_archive(agent: str) -> None:
    path = (
        claude(user("1", "물수제비 설정 위치"), assistant("2", "config에 있습니다.", "1"))
        if agent == "claude-code"
        else openclaw(header(), entry("e1", "user", "물수제비 설정 위치"))
    )
    read()
    path.unlink()
    read()
    assert found("물수제비")
    assert sessions()["S1"].status != "deleted"
    assert Home.open().reader.rows("SELECT missing_since FROM source_file")[0][0] is not None


def test_a_folder_that_is_not_there_marks_nothing() -> None:
    path = claude(user("1", "외장 디스크의 세션"))
    read()
    path.parent.parent.rename(path.parent.parent.with_name("unplugged"))
    read()
    assert found("외장 디스크")
    assert Home.open().reader.rows("SELECT missing_since FROM source_file")[0][0] is None


def test_the_same_event_ten_times_over_changes_nothing() -> None:
    claude(user("1", "큐는 Kafka 대신 Postgres로 하자"), assistant("2", "네, Postgres로 구현했습니다.", "1"))
    reports = [run() for _ in range(4)]
    assert [report.turns_added for report in reports] == [2, 0, 0, 0]
    assert len(waiting()) == 1
    assert Home.open().reader.counts()["sessions"] == 1


# --- what must go ----------------------------------------------------------------------------------------------------


def test_a_deleted_session_is_mined_and_then_emptied() -> None:
    openclaw(
        header(),
        entry("aaaaaaa1", "user", "두루미자리 서버에서 로그인이 풀립니다."),
        entry("aaaaaaa2", "assistant", "원인은 쿠키 만료 시간이 0으로 설정된 것이었고, 만료를 7일로 바꿔서 해결했습니다.", "aaaaaaa1", 2),
        entry("aaaaaaa3", "user", "잘 됩니다, 까치노을 배포도 했어요.", "aaaaaaa2", 3),
        name="S1.jsonl.deleted.2026-03-04T06-00-00.000Z",
    )  # fmt: skip
    assert run().candidates_added == 1
    assert waiting()[0]["source_status"] == "deleted"
    root = Home.open().root
    assert words_in(root, "두루미자리") == words_in(root, "까치노을") == []
    assert sessions()["S1"].title is None
    assert run().files_read == 0


def test_hits_of_deleted_sessions_do_not_crowd_out_the_living() -> None:
    for number in range(12):
        name = f"V{number}.jsonl"
        openclaw(
            header(f"V{number}"), entry(f"aaaaaa{number:02d}", "user", f"롤백 절차 {number}번을 알려줘"), name=name
        )
    read()
    assert len({hit.session for hit in search("롤백 절차", limit=20)}) == 12
    folder = Path.home() / ".openclaw" / "agents" / "main" / "sessions"
    for number in range(11):
        (folder / f"V{number}.jsonl").rename(folder / f"V{number}.jsonl.deleted.2026-03-04T06-00-00.000Z")
    run()
    assert [hit.session for hit in search("롤백 절차", limit=5)] == ["V11"]
    rows = Home.open().reader.rows("SELECT count(*) FROM vector WHERE hash NOT IN (SELECT hash FROM chunk)")
    assert rows[0][0] == 0


# --- indexes ---------------------------------------------------------------------------------------------------------


def test_what_an_index_failed_to_take_is_indexed_by_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    claude(user("1", "표식 tk-82qa 진행 상황"))

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken, pytest.raises(OSError, match="No space"):
        broken.setattr(Index, "apply", full)
        read()
    assert found("tk-82qa")
    assert read().turns_added == 0
    assert found("tk-82qa")
    assert Home.open().reader.rows("SELECT count(*) FROM outbox")[0][0] == 0


def test_a_lock_file_left_by_a_crash_is_no_lock() -> None:
    claude(user("1", "첫 세션"))
    read()
    for folder in [Home.open().root / "index", *(Home.open().root / "index").iterdir()]:
        if folder.is_dir() and not folder.is_symlink():
            for name in (".tantivy-writer.lock", ".tantivy-meta.lock"):
                (folder / name).touch()
    claude(user("2", "잠금 뒤의 세션 lk55", sessionId="S2"), session="S2")
    read()
    assert found("lk55")


def test_a_sentence_that_came_while_another_program_writes_is_found() -> None:
    claude(user("1", "먼저 온 문장"))
    read()
    import tantivy

    index = next(path.parent for path in (Home.open().root / "index").rglob("meta.json"))
    writer = tantivy.Index.open(str(index)).writer(15_000_000, 1)
    claude(user("2", "잠긴 동안 들어온 문장 qwxa", sessionId="S2"), session="S2")
    read()
    assert found("qwxa")
    del writer
    read()
    assert found("qwxa")


@pytest.mark.parametrize("damage", [b"", b"\x00" * 4096])
def test_damaged_index_files_never_stop_a_search(damage: bytes) -> None:
    claude(user("1", "배포 순서를 알려줘 dd90"), assistant("2", "캐시를 데운 뒤 시작합니다.", "1"))
    run()
    accept_all()
    root = Home.open().root / "index"
    files = [path for path in root.rglob("*") if path.is_file() and "embedder" not in path.parts]
    for path in files:
        path.write_bytes(damage)
    assert found("dd90")


def test_a_model_that_is_not_there_stops_neither_archive_nor_search(wwt_home: Path) -> None:
    setting = wwt_home / "config.toml"
    setting.write_text('[embedding]\nmodel = "no-such/model-384"\n', encoding="utf-8")
    claude(user("1", "큐는 Kafka 대신 Postgres로 하자 md52"), assistant("2", "네, 구현했습니다.", "1"))
    report = run()
    assert (report.turns_added, report.candidates_added, report.chunks_embedded) == (2, 1, 0)
    assert any("no-such/model-384" in notice for notice in report.notices)
    assert found("md52")
    setting.write_text('[embedding]\nmodel = "use-multilingual"\n', encoding="utf-8")
    assert found("md52")
    assert run().chunks_embedded == 1


@pytest.mark.parametrize("model", ["none", "no-such/model-384"])
def test_vectors_of_another_model_stop_no_search(wwt_home: Path, model: str) -> None:
    claude(user("1", "점검 순서를 알려줘 md53"))
    read()
    (wwt_home / "config.toml").write_text(f'[embedding]\nmodel = "{model}"\n', encoding="utf-8")
    assert found("md53")


def test_a_parser_that_learned_something_reads_old_files_again(monkeypatch: pytest.MonkeyPatch) -> None:
    claude(user("1", "옛날 파일"))
    run()
    source = next(source for source in SOURCES if source.agent == "claude-code")
    monkeypatch.setattr(source, "parser_version", source.parser_version + 1)
    report = run()
    assert (report.files_read, report.turns_added) == (1, 0)

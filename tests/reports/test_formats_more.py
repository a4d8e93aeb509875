"""Encodings, marks, line ends and dates as other systems write them: read right, or reported by name, never stored as rubbish."""

from __future__ import annotations

import json
import time
import unicodedata
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard

from archiver.archive import Report
from archiver.home import Home
from archiver.moments import parse_moment
from tests.archiver.cli.test_commands import wwt
from tests.archiver.sources.test_web_exports import TWO
from tests.archiver.sources.transcripts import assistant, encode, user, write
from tests.reports.walk import append, claude, found, read, said, search, sessions, titles

TALK = """# 배포 메모

### User ({when})

포트는 {port}으로 하자

### Assistant

{port}으로 바꿨습니다.
"""


@pytest.fixture
def seoul(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Seoul")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def talk(path: Path, *, when: str = "2026-03-04 14:06", port: int = 8181, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(TALK.format(when=when, port=port).encode(encoding))
    return path


def first_time() -> int | None:
    rows = Home.open().reader.rows("SELECT time FROM turn ORDER BY session_id, ord LIMIT 1")
    return rows[0]["time"]


def told(report: Report, path: Path) -> list[str]:
    return [fault["reason"] for fault in report.unreadable if fault["file"] == str(path)]


def stored() -> str:
    """Everything that was said, of all sessions."""
    return "\n".join(row["text"] for row in Home.open().reader.rows("SELECT text FROM turn"))


# --- encodings -------------------------------------------------------------------------------------------------------

OTHERS = ["cp949", "euc-kr", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "shift-jis"]


@pytest.mark.parametrize("encoding", OTHERS)
@pytest.mark.parametrize("named", [False, True], ids=["found", "named"])
def test_a_transcript_in_another_encoding_is_told_once_and_stores_nothing(encoding: str, named: bool) -> None:
    words = "カタカナで書いた記録の一行" if encoding == "shift-jis" else "다른 인코딩으로 다시 저장한 기록입니다"
    rows = encode([user("1", words), assistant("2", words + " 2", "1"), user("3", words + " 3", "2", 3)]).decode()
    other = claude(session="S2")
    other.write_bytes(rows.encode(encoding))
    good = claude(user("9", "정상 파일"))
    report = read(*([other, good] if named else []))
    assert stored() == "정상 파일"
    assert len(told(report, other)) == 1
    assert "UTF-8" in told(report, other)[0]


@pytest.mark.parametrize("encoding", ["cp949", "euc-kr", "utf-16", "utf-16-be"])
def test_markdown_in_another_encoding_is_told_and_stores_nothing(tmp_path: Path, encoding: str) -> None:
    other = talk(tmp_path / "talk.md", encoding=encoding)
    report = read(other, talk(tmp_path / "good.md", port=9191))
    assert "UTF-8" in " ".join(told(report, other))
    assert "9191" in stored()
    assert "8181" not in stored()
    assert "\ufffd" not in stored()


@pytest.mark.parametrize("encoding", ["cp949", "utf-16"])
def test_a_chat_export_in_another_encoding_is_told_and_stores_nothing(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "conversations.json"
    path.write_bytes(json.dumps(TWO, ensure_ascii=False).encode(encoding))
    report = read(path, talk(tmp_path / "good.md"))
    assert "UTF-8" in " ".join(told(report, path))
    assert "\ufffd" not in stored()
    assert "질문" not in stored()


@pytest.mark.parametrize("cut", [1, 2])
def test_a_character_that_was_cut_costs_itself_alone(cut: int) -> None:
    whole = encode([user("1", "앞말 잘린각 뒷말 표식어")])
    claude(session="S1").write_bytes(whole.replace("각".encode(), "각".encode()[:cut]))
    assert read().unreadable == []
    assert said()[0][1].startswith("앞말 잘린\ufffd")
    assert found("표식어")


def test_output_of_odd_bytes_in_an_aider_history_costs_no_other_line(tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    path.write_bytes(
        "\n# aider chat started at 2026-03-04 05:06:07\n\n#### 로그를 보여줘 표식 aa71\n\n로그입니다. 모두 정상입니다.\n".encode()
        + b"\xff\xfe\x80 latin \xe9\n"
        + "\n#### 이제 정리하자 표식 aa72\n\n정리했습니다.\n".encode()
    )
    assert read(path).unreadable == []
    assert found("aa71")
    assert found("aa72")


def test_marks_where_files_were_joined_hide_no_record(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    claude().write_bytes(b"".join(mark + encode([user(str(n), f"질문 {n}", second=n)]) for n in range(3)))
    read()
    assert [text for _, text in said()] == ["질문 0", "질문 1", "질문 2"]
    path = tmp_path / "joined.md"
    path.write_bytes(b"".join(mark + TALK.format(when="2026-03-04", port=port).encode() for port in (8181, 9191)))
    read(path)
    (session,) = [name for name in sessions() if name != "S1"]
    assert [text for role, text in said(session) if role == "user"] == ["포트는 8181으로 하자", "포트는 9191으로 하자"]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\r\r\n", "\n\n", "\r\n\r\n", " \n", "\x00\n"], ids=ascii)
def test_records_end_as_other_systems_end_lines(end: str) -> None:
    rows = [user("1", "첫 줄\r둘째 줄"), assistant("2", "답", "1"), user("3", "끝 le31", "2", 3)]
    claude().write_bytes(end.join(encode([row]).decode().rstrip("\n") for row in [*rows, {}]).encode())
    read()
    assert [role for role, _ in said()] == ["user", "assistant", "user"]
    assert "\r" not in stored()
    assert found("le31")


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e"], ids=ascii)
def test_what_other_readers_take_for_a_line_end_splits_no_record(separator: str, tmp_path: Path) -> None:
    claude(user("1", f"앞{separator}### Assistant{separator}뒤 ls32"), assistant("2", "답", "1"))
    path = tmp_path / "talk.md"
    path.write_bytes(TALK.format(when="2026-03-04", port=f"8181{separator}### User{separator}").encode())
    report = read(path)
    assert report.unreadable == []
    assert read().turns_added == 2
    assert [role for role, _ in said()] == ["user", "assistant"]
    (session,) = [name for name in sessions() if name != "S1"]
    assert [role for role, _ in said(session)] == ["user", "assistant"]
    assert found("ls32")


# --- names -----------------------------------------------------------------------------------------------------------


def test_an_export_whose_name_was_decomposed_on_the_way_is_the_same(tmp_path: Path) -> None:
    composed = talk(tmp_path / "a" / "회의록.md")
    decomposed = talk(tmp_path / "b" / unicodedata.normalize("NFD", "회의록.md"))
    assert read(composed).turns_added == 2
    assert read(decomposed).turns_added == 0
    assert [unicodedata.is_normalized("NFC", name) for name in sessions()] == [True]


@pytest.mark.parametrize("name", ["TALK.MD", "Talk.Md", "S1.JSONL", "Conversations.JSON", "EXPORT.ZIP"])
def test_endings_in_capitals_are_endings(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "in"
    path = folder / name
    if name.lower().endswith(".md"):
        talk(path)
    elif name.endswith("JSONL"):
        write(path, user("1", "포트는 8181"))
    elif name.endswith("ZIP"):
        folder.mkdir()
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("conversations.json", json.dumps(TWO))
    else:
        write(path, json.dumps(TWO).encode())
    report = read(folder)
    assert (report.unreadable, report.files_read) == ([], 1)


# --- compressed ------------------------------------------------------------------------------------------------------


def test_compressed_data_cut_anywhere_gives_what_was_whole_and_is_told(tmp_path: Path) -> None:
    rows = [user(str(n), f"기록 {n} " + "가나다라마바사" * n, second=n % 60) for n in range(40)]
    whole = b"".join(zstandard.compress(encode([row])) for row in rows)
    for number, share in enumerate((0.3, 0.6, 0.95)):
        path = tmp_path / f"cut{number}.jsonl.zst"
        path.write_bytes(whole[: int(len(whole) * share)])
        report = read(path)
        assert report.turns_added > 0
        assert len(told(report, path)) == 1
    path = tmp_path / "whole.jsonl.zst"
    path.write_bytes(whole)
    assert read(path).unreadable == []
    assert len({text for text in stored().splitlines() if text}) == 40


@pytest.mark.parametrize("content", [b"", b"\x28\xb5\x2f\xfd", b"\x00" * 40, zstandard.compress(b"")])
def test_compressed_files_of_nothing_stop_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "in" / "x.jsonl.zst"
    path.parent.mkdir()
    path.write_bytes(content)
    write(tmp_path / "in" / "good.jsonl", user("1", "정상 파일"))
    report = read(tmp_path / "in")
    assert len(told(report, path)) == 1
    assert stored() == "정상 파일"


# --- dates -----------------------------------------------------------------------------------------------------------

MOMENT = 1_772_600_767_000
"""2026-03-04 05:06:07 UTC."""


@pytest.mark.parametrize(
    "written",
    [
        "2026-03-04T05:06:07Z", "2026-03-04T05:06:07.000Z", "2026-03-04T05:06:07z", "2026-03-04 05:06:07", "2026-03-04T05:06:07",
        "2026-03-04T14:06:07+09:00", "2026-03-04T14:06:07+0900", "2026-03-04T00:06:07-05:00", "2026-03-04T05:06:07.000000000Z",
        "20260304T050607Z", " 2026-03-04T05:06:07Z\n", MOMENT, MOMENT // 1000, MOMENT / 1000, MOMENT * 1000, MOMENT * 1_000_000,
        str(MOMENT), str(MOMENT // 1000), f"{MOMENT / 1000}",
    ],
)  # fmt: skip
def test_one_moment_in_every_writing_is_one_moment(written: object) -> None:
    claude(user("1", "질문", timestamp=written))
    read()
    assert first_time() == MOMENT


@pytest.mark.parametrize(
    "written",
    ["", "어제", "2026-02-30T00:00:00Z", "2026-13-01", "24:00", 0, -1, float("inf"), float("nan"), 10**40, "9" * 30, "٣", {}, False],
)  # fmt: skip
def test_what_is_no_moment_costs_the_turn_nothing(written: object) -> None:
    claude(user("1", "질문 nm41", timestamp=written), assistant("2", "답", "1"))
    assert read().unreadable == []
    assert first_time() is None
    assert found("nm41")


@pytest.mark.usefixtures("seoul")
@pytest.mark.parametrize(
    "written",
    [
        "2026-03-04 14:06", "2026-03-04T14:06", "2026.03.04 14:06", "2026/03/04 14:06", "2026. 3. 4. 14:06", "2026년 3월 4일 14시 6분",
        "2026년 3월 4일 오후 2시 6분", "2026. 3. 4. 오후 2:06", "2026년 03월 04일 (수) 오후 2시 06분", "2026-03-04 오후 2:06:00",
    ],
)  # fmt: skip
def test_times_of_headings_are_read_as_koreans_write_them(written: str, tmp_path: Path) -> None:
    read(talk(tmp_path / "talk.md", when=written))
    assert first_time() == MOMENT - 7_000


@pytest.mark.usefixtures("seoul")
@pytest.mark.parametrize(
    ("written", "hour"), [("오전 12시", 0), ("오후 12시", 12), ("오전 12:30", 0), ("오후 12:30", 12), ("오전 9시", 9), ("오후 9시", 21)]
)  # fmt: skip
def test_noon_and_midnight_of_a_korean_clock(written: str, hour: int, tmp_path: Path) -> None:
    read(talk(tmp_path / "talk.md", when=f"2026년 3월 4일 {written}"))
    midnight = MOMENT - 14 * 3_600_000 - 367_000
    assert ((first_time() or 0) - midnight) // 3_600_000 == hour


@pytest.mark.usefixtures("seoul")
@pytest.mark.parametrize(
    ("typed", "moment"),
    [
        ("2026년 3월 4일", MOMENT - 14 * 3_600_000 - 367_000), ("2026.3.4", MOMENT - 14 * 3_600_000 - 367_000),
        ("2026년 3월 4일 오후 2시 6분 7초", MOMENT), ("2026. 3. 4. 오후 2:06:07", MOMENT), ("2026/03/04 2:06:07 PM", MOMENT),
        ("2026-03-04T14:06:07", MOMENT), ("2026-03-04T05:06:07Z", MOMENT),
        ("2026년 13월 1일", None), ("2026년", None), ("오후 3시", None), ("3월 4일", None), ("2026-03-04 25:00", None), ("어제 2026-03-04", None),
    ],
)  # fmt: skip
def test_a_moment_is_typed_as_koreans_write_it(typed: str, moment: int | None) -> None:
    assert parse_moment(typed) == moment


@pytest.mark.parametrize(
    ("korean", "short"), [("12시간", "12h"), ("7일", "7d"), ("2주 전", "2w"), ("3개월", "3m"), ("1달 전", "1m")]
)
def test_an_age_may_be_korean(korean: str, short: str) -> None:
    now = datetime(2026, 4, 6, 12, 0, tzinfo=UTC)
    assert parse_moment(korean, now=now) == parse_moment(short, now=now) is not None


@pytest.mark.parametrize("written", ["9999-12-31 23:59", "0001-01-01 00:00", "1900-01-01", "2026-02-30 10:00", "2026년 13월 40일", "오후 3시"])  # fmt: skip
def test_a_heading_with_an_impossible_time_has_none(written: str, tmp_path: Path) -> None:
    assert read(talk(tmp_path / "talk.md", when=written)).unreadable == []
    assert first_time() is None
    assert found("8181")


@pytest.mark.parametrize("written", ["2026-03-08 02:30", "2026-11-01 01:30"], ids=["gap", "twice"])
def test_hours_that_are_not_there_or_twice_are_some_hour_near_by(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        read(talk(tmp_path / "talk.md", when=written))
        as_utc = int(time.mktime(time.strptime(written, "%Y-%m-%d %H:%M"))) * 1000
        assert abs((first_time() or 0) - as_utc) <= 3_600_000
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_turn_of_the_far_future_stands_in_no_ones_way() -> None:
    claude(user("1", "시계가 틀린 날", timestamp="2199-01-01T00:00:00Z"))
    claude(user("2", "맞는 날", timestamp="2026-03-04T00:00:00Z", sessionId="S2"), session="S2")
    read()
    assert titles() == {"S1": "시계가 틀린 날", "S2": "맞는 날"}
    assert search("맞는 날", limit=1)[0].session == "S2"
    append(Path.home() / ".claude/projects/-srv-shop/S1.jsonl", encode([user("3", "그 뒤 ff51", "1", 5)]))
    read()
    assert [text for _, text in said("S1")] == ["시계가 틀린 날", "그 뒤 ff51"]


# --- days ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "wanted", "marks"),
    [
        ("Asia/Seoul", ("--since", "2026-01-02"), {"B"}),
        ("Asia/Seoul", ("--since", "2026년 1월 2일"), {"B"}),
        ("Asia/Seoul", ("--until", "2026-01-01"), {"A"}),
        ("Asia/Seoul", ("--since", "2026-01-01", "--until", "2026-01-02"), {"A", "B"}),
        ("UTC", ("--since", "2026-01-02"), set()),
        ("America/New_York", ("--since", "2026-01-01T10:00", "--until", "2026-01-01T10:29"), set()),
        ("America/New_York", ("--since", "2026-01-01T10:00", "--until", "2026-01-01T10:31"), {"B"}),
    ],
)  # fmt: skip
def test_a_day_is_that_of_the_persons_clock(zone: str, wanted: tuple[str, ...], marks: set[str]) -> None:
    """Half past two and half past three in the afternoon, UTC: in Seoul midnight lies between them."""
    claude(user("1", "자정 무렵 A", timestamp="2026-01-01T23:30:00+09:00", sessionId="A"), session="A")
    claude(user("2", "자정 무렵 B", timestamp="2026-01-01T15:30:00.000Z", sessionId="B"), session="B")
    read()
    hits = json.loads(wwt("search", "--all", "--json", *wanted, "자정", TZ=zone).stdout)["hits"]
    assert {hit["session"] for hit in hits} == marks
    listed = wwt("sessions", "--all", TZ="Asia/Seoul").stdout
    assert "2026-01-02" in listed
    assert "2026-01-01" in listed

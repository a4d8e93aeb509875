"""What happens to files between two runs: renamed, replaced, closed, gone while they are read, and touched by a wrong clock."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from archiver.archive import Wish, archive
from archiver.home import Home
from tests.archiver.sources.transcripts import assistant, encode, user, write
from tests.reports.walk import append, claude, found, read, run, said, sessions, still

DECIDED = "큐는 Kafka 대신 Postgres로 하자"


def missing() -> list[str]:
    rows = Home.open().reader.rows("SELECT path FROM source_file WHERE missing_since IS NOT NULL")
    return [Path(row["path"]).name for row in rows]


def ahead(**delta: float) -> str:
    return (datetime.now(UTC) + timedelta(**delta)).isoformat()


@contextmanager
def obedient() -> Iterator[None]:
    """Modes of files hold for this thread, also where root runs the tests."""
    if os.name != "posix" or os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root can read every file here")
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    held = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice
    assert libc.capget(header, held) == 0
    fewer = (ctypes.c_uint32 * 6)(*held)
    fewer[0] &= ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(header, fewer) == 0
    try:
        yield
    finally:
        assert libc.capset(header, held) == 0


@contextmanager
def closed(path: Path, mode: int = 0) -> Iterator[None]:
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        with obedient():
            yield
    finally:
        path.chmod(before)


# --- renamed, copied, replaced ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "move", [os.rename, shutil.copy2, os.link, os.symlink], ids=["renamed", "copied", "linked", "pointed at"]
)
def test_a_transcript_under_a_second_name_is_the_same_session(move: Callable[[Path, Path], object]) -> None:
    path = claude(user("1", DECIDED), assistant("2", "네, Postgres로 구현했습니다.", "1"))
    assert run().candidates_added == 1
    other = path.parent.with_name("-srv-renamed") / path.name
    other.parent.mkdir()
    move(path, other)
    report = run()
    assert (report.turns_added, report.candidates_added, report.unreadable) == (0, 0, [])
    assert [row.turns for row in sessions().values()] == [2]
    append(other, encode([user("3", "그 뒤의 말 rn61", "2", 5)]))
    assert run().turns_added == 1
    assert [text for _, text in said()] == [DECIDED, "네, Postgres로 구현했습니다.", "그 뒤의 말 rn61"]


@pytest.mark.parametrize("padding", [0, 9000], ids=["short", "longer than a probe"])
@pytest.mark.parametrize("clock", [None, 1_500_000_000], ids=["now", "set back"])
def test_a_file_that_came_back_shorter_takes_nothing_away(padding: int, clock: int | None) -> None:
    rows = [
        user("1", "첫 말 sh71 " + "가" * padding),
        assistant("2", "둘째 말", "1"),
        user("3", "셋째 말 sh73", "2", 3),
    ]
    path = claude(*rows)
    read()
    write(path, *rows[:2])
    if clock:
        still(path, clock)
    assert read().turns_added == 0
    assert found("sh73")
    append(path, encode([user("4", "넷째 말 sh74", "2", 9)]))
    read()
    assert found("sh74")
    assert len([text for _, text in said(every=True)]) == 4


def test_other_words_in_the_place_of_a_longer_file_are_read_from_their_start() -> None:
    path = claude(user("1", "옛 파일 op81 " + "가" * 9000), assistant("2", "옛 답", "1"))
    read()
    write(path, user("5", "새 파일 op85", second=9))
    assert read().turns_added == 1
    assert found("op81")
    assert found("op85")


def test_an_older_copy_shortens_nothing(tmp_path: Path) -> None:
    rows = [user("1", "첫 말"), assistant("2", "답", "1"), user("3", "셋째 말 oc91", "2", 3)]
    claude(*rows)
    read()
    old = still(write(tmp_path / "backup" / "S1.jsonl", *rows[:2]), 1_500_000_000)
    assert read(old).turns_added == 0
    assert [text for _, text in said()] == ["첫 말", "답", "셋째 말 oc91"]


@pytest.mark.parametrize("start", [2_000_000_000, 4_000_000_000])
def test_an_append_whose_clock_went_backwards_is_read(start: int) -> None:
    path = still(claude(user("1", "하나")), start)
    read()
    append(path, encode([user("2", "둘 bw12", "1", 2)]))
    still(path, 1_000_000_000)
    assert read().turns_added == 1
    assert read().files_read == 0


def test_a_transcript_that_became_a_folder_stops_nothing() -> None:
    path = claude(user("1", "옛말 fd21"))
    claude(user("2", "다른 세션", sessionId="S2"), session="S2")
    read()
    path.unlink()
    path.mkdir()
    claude(user("3", "셋째 세션 fd23", sessionId="S3"), session="S3")
    assert read().unreadable == []
    assert found("fd21")
    assert found("fd23")


# --- gone or closed --------------------------------------------------------------------------------------------------


def test_a_file_that_vanishes_before_it_is_read_costs_nothing_else() -> None:
    paths = [claude(user(str(n), f"세션 {n} vn{n}1", sessionId=f"S{n}"), session=f"S{n}") for n in range(3)]
    for age, path in enumerate(paths):
        still(path, 1_700_000_000 - age)

    def vanish(stage: str, done: int, total: int) -> None:
        paths[1].unlink(missing_ok=True)

    report = archive(Home.open(), Wish(finished=True), vanish)
    assert report.turns_added == 2
    assert [fault["file"] for fault in report.unreadable] == [str(paths[1])]
    assert set(sessions()) == {"S0", "S2"}
    assert read().unreadable == []


def test_a_closed_file_is_named_and_read_when_it_opens() -> None:
    path = claude(user("1", "닫힌 파일 cl31"))
    claude(user("2", "열린 파일", sessionId="S2"), session="S2")
    with closed(path):
        report = read()
    assert [fault["file"] for fault in report.unreadable] == [str(path)]
    assert list(sessions()) == ["S2"]
    assert read().turns_added == 1


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o100], ids=oct)
def test_a_closed_folder_of_an_agent_stops_nothing_and_nothing_in_it_is_gone(mode: int) -> None:
    path = claude(user("1", "닫힌 폴더 cf41"), folder="-closed")
    claude(user("2", "열린 폴더", sessionId="S2"), session="S2")
    read()
    claude(user("3", "새 세션 cf43", sessionId="S3"), session="S3")
    with closed(path.parent, mode):
        assert read().turns_added == 1
    assert missing() == []
    assert found("cf41")


@pytest.mark.parametrize("mode", [0o000, 0o400], ids=oct)
def test_a_closed_folder_that_was_pointed_at_is_named_and_costs_nothing_else(mode: int, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    write(folder / "a" / "S1.jsonl", user("1", "하나"))
    write(folder / "b" / "S2.jsonl", user("2", "둘", sessionId="S2"))
    write(folder / "c" / "S3.jsonl", user("3", "셋", sessionId="S3"))
    with closed(folder / "b", mode):
        report = read(folder)
    assert set(sessions()) == {"S1", "S3"}
    assert [fault["file"] for fault in report.unreadable] == [str(folder / "b")]


def test_links_that_lead_back_are_walked_once(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    write(folder / "a" / "S1.jsonl", user("1", "하나"))
    (folder / "a" / "up").symlink_to(folder, target_is_directory=True)
    (folder / "b").symlink_to(folder / "a", target_is_directory=True)
    for one, other in (("x", "y"), ("y", "x")):
        (folder / one).symlink_to(folder / other)
    report = read(folder)
    assert (report.files_read, report.unreadable) == (1, [])


def test_links_that_lead_back_in_an_agents_folder_are_walked_once() -> None:
    claude(user("1", "하나"))
    claude(user("2", "하위 지시", isSidechain=True, agentId="a1"), session="agent-a1", folder="-srv-shop/S1/subagents")
    projects = Path.home() / ".claude" / "projects"
    (projects / "-srv-shop" / "S1" / "subagents" / "back").symlink_to(projects, target_is_directory=True)
    (projects / "-again").symlink_to(projects, target_is_directory=True)
    report = read()
    assert (report.files_read, report.unreadable) == (2, [])


def test_names_that_differ_in_case_alone_are_two_files() -> None:
    claude(user("1", "작은 이름 ca51", sessionId="abc"), session="abc")
    claude(user("2", "큰 이름 ca52", sessionId="ABC"), session="ABC")
    assert read().turns_added == 2
    assert found("ca51")
    assert found("ca52")


# --- sizes -----------------------------------------------------------------------------------------------------------


def test_a_line_longer_than_any_real_one_is_told_and_what_follows_is_read() -> None:
    path = claude(user("1", "앞말 hl61"))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + (200 << 20))  # zero bytes that take no room on the disk
    assert read(finished=False).turns_added == 1
    append(path, b"\n" + encode([user("2", "뒷말 hl62", "1", 2)]))
    report = read(finished=False)
    assert [(fault["file"], fault["line"]) for fault in report.unreadable] == [(str(path), 2)]
    assert [text for _, text in said()] == ["앞말 hl61", "뒷말 hl62"]


@pytest.mark.parametrize("size", [1, 4096, 100_000])
def test_a_file_that_begins_with_the_zeros_of_a_crash_is_read(size: int) -> None:
    path = claude(user("1", "첫 말 zb71"), assistant("2", "답", "1"))
    path.write_bytes(b"\x00" * size + path.read_bytes())
    read()
    assert [text for _, text in said()] == ["첫 말 zb71", "답"]


# --- clocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clock", [4_000_000_000, None], ids=["file and words", "words alone"])
def test_a_session_of_a_clock_far_ahead_is_mined_without_being_asked(clock: int | None) -> None:
    rows = [
        user("1", DECIDED, timestamp=ahead(days=900)),
        assistant("2", "네, 구현했습니다.", "1", timestamp=ahead(days=900)),
    ]
    still(claude(*rows), clock or 1_700_000_000)
    report = run(finished=False)
    assert (report.candidates_added, report.waiting_idle) == (1, [])


def test_the_last_line_of_a_file_from_a_clock_far_ahead_is_read() -> None:
    path = claude(user("1", "하나"), tail=encode([user("2", "끝줄 tl81", "1", 2)]).rstrip(b"\n"))
    still(path, 4_000_000_000)
    read(finished=False)
    assert found("tl81")


@pytest.mark.parametrize("minutes", [-2, 2], ids=["behind", "ahead"])
def test_a_session_of_a_clock_that_is_a_little_off_is_still_waited_for(minutes: int) -> None:
    moment = ahead(minutes=minutes)
    path = claude(user("1", DECIDED, timestamp=moment), assistant("2", "네, 구현했습니다.", "1", timestamp=moment))
    still(path, int(time.time()) + minutes * 60)
    report = run(finished=False)
    assert (report.candidates_added, len(report.waiting_idle)) == (0, 1)

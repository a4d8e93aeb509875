"""What hooks told, and what they could not do."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from archiver.archive import Wish, archive
from archiver.doctor.examine import mend
from archiver.failures import Failure, failures
from archiver.home import Home
from archiver.inbox import Event, drop
from store.records import now_ms
from tests.archiver.cli.test_commands import wwt
from tests.archiver.doctor.looks import FAULT, NOTE, OK, found, unwell


def log(home: Path, *lines: str, at: float | None = None) -> None:
    (home / "log").mkdir(parents=True, exist_ok=True, mode=0o700)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(at))
    path = home / "log" / "hook.log"
    path.write_text("".join(f"{stamp} {line}\n" for line in lines))
    path.chmod(0o600)


def test_event_that_waits_is_a_note(home: Path) -> None:
    drop(home / "inbox", Event("claude-code", "session-end", "s", "", "", now_ms()))
    assert unwell(home) == {"inbox": NOTE}


@pytest.mark.parametrize(
    ("content", "reason"), [("{", "line 1"), ("[]", "object"), ('{"agent": "x", "at": "y"}', "event")]
)
def test_file_that_holds_no_event_is_tried_once_more_and_then_left_to_a_person(
    home: Path, content: str, reason: str
) -> None:
    folder = home / "inbox" / "quarantine"
    folder.mkdir(mode=0o700)
    (folder / "1.json").write_text(content)
    (folder / "1.json").chmod(0o600)
    one = found(home, "quarantine")
    assert one.state is FAULT
    assert reason in one.text
    done = mend(home)
    assert [fixed.id for fixed in done.fixed] == ["quarantine"]
    assert unwell(home) == {"inbox": NOTE}
    archive(Home.open(), Wish())
    assert unwell(home) == {"quarantine": NOTE}
    assert mend(home).fixed == ()


def test_event_that_a_newer_release_understands_is_taken_in(home: Path) -> None:
    folder = home / "inbox" / "quarantine"
    folder.mkdir(mode=0o700)
    path = drop(folder, Event("claude-code", "session-end", "00000000-0000-4000-8000-000000000001", "", "", now_ms()))
    path.rename(folder / "1.json")
    mend(home)
    archive(Home.open(), Wish())
    assert unwell(home) == {}


def test_last_failure_of_a_hook_is_told_with_time_hook_and_reason(home: Path) -> None:
    log(home, "claude-code session-start TimeoutError: first", "openclaw command:new gave up after 1.5 s")
    one = found(home, "hooks")
    assert one.state is NOTE
    for part in ("2 times", "openclaw command:new", "gave up after 1.5 s", time.strftime("%Y-%m-%d")):
        assert part in one.text
    assert "hook.log" in one.fix


def test_failure_of_long_ago_is_no_news(home: Path) -> None:
    log(home, "claude-code session-start gave up", at=time.time() - 30 * 86_400)
    assert found(home, "hooks").state is OK


def test_failures_are_read_from_the_end_of_a_long_log(home: Path) -> None:
    log(home, *(f"claude-code session-end OSError: number {n} " + "x" * 100 for n in range(1_000)))
    held = failures(home)
    assert held[-1].reason.startswith("OSError: number 999")
    assert 50 < len(held) < 1_000


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("claude-code session-end OSError: no", ("claude-code", "session-end", "OSError: no")),
        ("openclaw command:new gave up", ("openclaw", "command:new", "gave up")),
        ("ValueError: usage: wwt-hook AGENT EVENT", ("", "", "ValueError: usage: wwt-hook AGENT EVENT")),
    ],
)
def test_line_of_the_log_is_taken_apart(wwt_home: Path, line: str, wanted: tuple[str, str, str]) -> None:
    log(wwt_home, line, at=1_700_000_000)
    assert failures(wwt_home) == [Failure(1_700_000_000_000, *wanted)]


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"nonsense\n", b"2026-99-99T00:00:00+0000 a b c\n", b"\xff\xfe\x00\n"]
)
def test_log_that_says_nothing_is_no_failure(wwt_home: Path, content: bytes) -> None:
    (wwt_home / "log").mkdir(parents=True)
    (wwt_home / "log" / "hook.log").write_bytes(content)
    assert failures(wwt_home) == []


def test_status_shows_the_last_failure(home: Path) -> None:
    log(home, "claude-code session-start \x1b[31mgave up", at=1_700_000_000)
    told = json.loads(wwt("status", "--json").stdout)["last_failure"]
    assert told == {
        "at": "2023-11-14T22:13:20Z",
        "agent": "claude-code",
        "event": "session-start",
        "reason": "\x1b[31mgave up",
    }
    shown = wwt("status").stderr
    assert "claude-code session-start" in shown
    assert "\x1b" not in shown


def test_status_without_a_failure_says_null(home: Path) -> None:
    assert json.loads(wwt("status", "--json").stdout)["last_failure"] is None

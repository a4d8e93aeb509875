from __future__ import annotations

import os
from pathlib import Path

import pytest

from archiver.discover import discover, from_paths, missing_roots, retention
from archiver.transcript import Found
from store import messages
from tests.archiver.sources.transcripts import entry, header, user, write


def problems(*paths: Path) -> list[tuple[str, str]]:
    return [(problem.path.name, problem.key) for problem in from_paths(list(paths))[1]]


def names(found: list[Found]) -> list[str]:
    return [one.path.name for one in found]


def test_each_agents_folder_is_searched_newest_first(wwt_home: Path) -> None:
    home = Path.home()
    one = write(home / ".claude/projects/-srv-shop/S1.jsonl", user("1", "a"))
    sub = write(home / ".claude/projects/-srv-shop/S1/subagents/workflows/w/agent-a7.jsonl", user("1", "a"))
    claw = write(home / ".openclaw/agents/main/sessions/S2.jsonl", header())
    write(home / ".claude/projects/-srv-shop/S1/subagents/workflows/w/journal.jsonl", {"type": "started"})
    write(home / ".claude/projects/-srv-shop/memory/note.md", b"x")
    write(home / ".claude/history.jsonl", {"display": "x"})
    for age, path in enumerate((sub, one, claw)):
        os.utime(path, ns=(1_000 - age, 1_000 - age))
    assert [(found.agent, found.path) for found in discover()] == [
        ("claude-code", sub),
        ("claude-code", one),
        ("openclaw", claw),
    ]
    assert names(list(discover(["openclaw"]))) == ["S2.jsonl"]


@pytest.mark.parametrize("given", ["alt/claude", "~/alt/claude"])
def test_folders_moved_by_environment_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    base = Path.home() if given.startswith("~") else tmp_path
    write(base / "alt/claude/projects/-p/S7.jsonl", user("1", "a"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", given)
    assert names(list(discover())) == ["S7.jsonl"]


def test_a_file_reached_through_a_link_is_one(wwt_home: Path) -> None:
    root = Path.home() / ".claude/projects"
    write(root / "-p/S1.jsonl", user("1", "a"))
    (root / "-q").symlink_to(root / "-p")
    assert len(list(discover())) == 1


def test_missing_folders_are_told_and_no_error(wwt_home: Path) -> None:
    assert list(discover()) == []
    assert {agent for agent, _ in missing_roots()} >= {"claude-code", "openclaw", "pi"}


def test_older_names_of_openclaws_folder_are_searched(wwt_home: Path) -> None:
    write(Path.home() / ".clawdbot/agents/main/sessions/S2.jsonl", header())
    assert names(list(discover())) == ["S2.jsonl"]
    assert "openclaw" not in {agent for agent, _ in missing_roots()}


def test_files_are_told_by_content_wherever_they_lie(tmp_path: Path) -> None:
    write(tmp_path / "in/renamed.jsonl", user("1", "클로드"))
    write(tmp_path / "in/deep/er/claw.jsonl.reset.2026-01-02T04-00-00.000Z", header(), entry("1", "user", "x"))
    write(tmp_path / "in/generic.jsonl", {"role": "user", "content": "api log"})
    write(tmp_path / "in/readme.md", b"# notes")
    write(tmp_path / "in/.hidden/S9.jsonl", user("1", "x"))
    (tmp_path / "in/loop").symlink_to(tmp_path / "in")
    found, faults = from_paths([tmp_path / "in"])
    assert {(one.agent, one.segment) for one in found} == {("claude-code", "live"), ("openclaw", "reset")}
    assert [(fault.path.name, fault.key) for fault in faults] == [("generic.jsonl", "discover.unknown_format")]


def test_a_format_shown_late_is_still_told(tmp_path: Path) -> None:
    filler = [{"novel": "x" * 1000} for _ in range(400)]
    path = write(tmp_path / "late.jsonl", *filler, user("1", "가" * 70_000))
    assert names(from_paths([path])[0]) == ["late.jsonl"]


def test_each_fault_of_a_path_has_its_own_message(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    unknown, empty = write(tmp_path / "a.txt", b"words"), write(tmp_path / "b.jsonl")
    broken = write(tmp_path / "c.jsonl.zst", b"not compressed at all")
    wide = write(tmp_path / "d.jsonl", '{"type":"user"}'.encode("utf-16"))
    told = problems(unknown, empty, broken, wide, tmp_path / "gone.jsonl", tmp_path / "folder")
    assert told == [
        ("a.txt", "discover.unknown_format"),
        ("b.jsonl", "discover.empty"),
        ("c.jsonl.zst", "discover.damaged"),
        ("d.jsonl", "discover.not_utf8"),
        ("gone.jsonl", "discover.missing"),
        ("folder", "discover.no_transcripts"),
    ]


def test_an_unreadable_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.symlink_to(path)  # a link to itself: even root cannot open it
    assert problems(path) == [("a.jsonl", "discover.unreadable")]


def test_a_file_archived_before_keeps_its_agent(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"novel": 1})
    found, faults = from_paths([path], {str(path): "claude-code"})
    assert (found, faults) == ([Found("claude-code", path)], [])


@pytest.mark.parametrize("language", ["en", "ko"])
def test_faults_name_the_path_in_both_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    monkeypatch.setenv("WWT_LANG", language)
    (problem,) = from_paths([tmp_path / "없는 파일.jsonl"])[1]
    assert "없는 파일.jsonl" in problem.message()
    assert {key for key in messages.catalogue("en") if key.startswith("discover.")} == {
        key for key in messages.catalogue("ko") if key.startswith("discover.")
    }


def test_retention_follows_the_agents_own_setting(wwt_home: Path) -> None:
    path = write(Path.home() / ".claude/projects/-p/S1.jsonl", user("1", "a"))
    os.utime(path, (1_000_000, 1_000_000))
    day = 86_400_000
    now = 1_000_000_000 + 10 * day
    default = retention(discover(), now)
    write(Path.home() / ".claude/settings.json", {"cleanupPeriodDays": 15})
    shorter = retention(discover(), now)
    assert default is not None and (default.days, default.days_left) == (30, 20)
    assert shorter is not None and (shorter.days, shorter.days_left) == (15, 5)
    assert retention([], now) is None


@pytest.mark.parametrize(
    ("kept", "left"),
    [
        (None, 20),
        ({"maxAge": "2w"}, 4),
        ({"maxAge": "360h"}, 5),
        ({"enabled": False}, None),
        ({"maxAge": "soon"}, None),
    ],
)
def test_retention_of_gemini_follows_its_setting(
    wwt_home: Path, kept: dict[str, object] | None, left: int | None
) -> None:
    path = write(Path.home() / ".gemini/tmp/shop/chats/session-1.jsonl", user("1", "a"))
    os.utime(path, (1_000_000, 1_000_000))
    if kept is not None:
        write(Path.home() / ".gemini/settings.json", {"general": {"sessionRetention": kept}})
    one = retention([Found("gemini-cli", path)], 1_000_000_000 + 10 * 86_400_000)
    assert (one.days_left if one else None) == left

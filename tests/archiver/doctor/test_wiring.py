"""Whether the agents' hooks call wwt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.archiver.doctor.looks import FAULT, NOTE, OK, calling, contents, found, program


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """Somebody with Claude Code."""
    (tmp_path / "user" / ".claude").mkdir()
    return tmp_path / "user"


def claude(user: Path, *commands: str) -> Path:
    path = user / ".claude" / "settings.json"
    path.write_text(json.dumps(calling(*commands)))
    return path


def test_where_no_agent_is_there_is_nothing_to_wire(home: Path) -> None:
    assert found(home, "wiring").state is OK


def test_agent_whose_hooks_call_other_programs_is_named_with_what_to_write(home: Path, user: Path) -> None:
    path = claude(user, "mine.sh session-start")
    one = found(home, "wiring")
    assert one.state is NOTE
    assert "Claude Code" in one.text
    assert str(path) in one.fix
    assert "wwt-hook claude-code session-end" in one.fix


def test_agent_whose_hooks_call_wwt_is_well_and_its_settings_are_left_as_they_are(home: Path, user: Path) -> None:
    claude(user, f"WWT_HOME={home} '{program(user / 'my bin')}' claude-code session-start")
    before = contents(user)
    assert found(home, "wiring").state is OK
    assert contents(user) == before


def test_program_on_the_path_is_found_by_its_name(home: Path, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claude(user, "wwt-hook claude-code session-start")
    monkeypatch.setenv("PATH", str(user / "bin"))
    assert found(home, "wiring").state is FAULT
    program(user / "bin")
    assert found(home, "wiring").state is OK


@pytest.mark.parametrize("lost", ["~/bin/wwt-hook", "$HOME/bin/wwt-hook", "/nowhere/bin/wwt-hook"])
def test_hook_that_calls_a_program_which_is_gone_is_a_fault(home: Path, user: Path, lost: str) -> None:
    claude(user, f"{program(user / 'elsewhere')} claude-code session-start", f"{lost} claude-code session-end")
    one = found(home, "wiring")
    assert one.state is FAULT
    assert lost in one.text
    if not lost.startswith("/"):
        program(user / "bin")
        assert found(home, "wiring").state is OK


def test_hook_that_is_set_twice_is_told(home: Path, user: Path) -> None:
    claude(user, *[f"{program(user / 'bin')} claude-code session-end"] * 2)
    one = found(home, "wiring")
    assert one.state is NOTE
    assert "twice" in one.text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".codex/config.toml", 'notify = ["{}", "codex", "turn-end"]\n'),
        (
            ".codex/config.toml",
            '[[hooks.SessionStart]]\nhooks = [{{type = "command", command = "{} codex session-start"}}]\n',
        ),
        (
            ".codex/hooks.json",
            '{{"hooks": {{"Stop": [{{"hooks": [{{"type": "command", "command": "{} codex stop"}}]}}]}}}}',
        ),
        (
            ".gemini/settings.json",
            '{{"hooks": {{"SessionEnd": [{{"hooks": [{{"command": "{} gemini-cli session-end"}}]}}]}}}}',
        ),
    ],
)
def test_each_agents_own_place_is_looked_into(home: Path, tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / "user" / name
    path.parent.mkdir()
    path.write_text("{}" if name.endswith("json") else "")
    assert found(home, "wiring").state is NOTE
    path.write_text(content.format(program(tmp_path / "bin")))
    assert found(home, "wiring").state is OK


@pytest.mark.parametrize("content", ["{", "\x00", "[" * 100_000])
def test_settings_that_cannot_be_read_are_named(home: Path, user: Path, content: str) -> None:
    path = user / ".claude" / "settings.json"
    path.write_text(content)
    one = found(home, "wiring")
    assert one.state is NOTE
    assert str(path) in one.text


@pytest.mark.parametrize("content", [[], {"hooks": 1}, {"hooks": {"A": 1, "B": [1, {"hooks": 1}, {"hooks": [1, {}]}]}}])
def test_settings_of_another_shape_call_nothing(home: Path, user: Path, content: object) -> None:
    (user / ".claude" / "settings.json").write_text(json.dumps(content))
    assert "Claude Code" in found(home, "wiring").text

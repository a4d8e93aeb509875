from __future__ import annotations

from archiver.agents import AGENTS, display_name, resume_command
from archiver.sources import SOURCES


def test_every_source_has_a_name() -> None:
    assert {source.agent for source in SOURCES} <= {agent.id for agent in AGENTS}
    assert display_name("claude-code") == "Claude Code"
    assert display_name("something-else") == "something-else"


def test_resume_commands_are_safe_to_paste() -> None:
    assert resume_command("claude-code", "0f4b-2c") == "claude --resume 0f4b-2c"
    assert resume_command("claude-code", "a; rm x") == "claude --resume 'a; rm x'"
    assert resume_command("claude-code", "S1/a7") is None
    assert resume_command("openclaw", "S1") is None

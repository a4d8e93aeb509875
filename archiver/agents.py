"""The agents by name, and how each goes on with a session."""

from __future__ import annotations

import shlex
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agent:
    """`resume` is the agent's own command with `{session}` in it, where it has one."""

    id: str
    name: str
    resume: str | None = None


AGENTS = (
    Agent("claude-code", "Claude Code", "claude --resume {session}"),
    Agent("openclaw", "OpenClaw"),
)


def display_name(agent: str) -> str:
    return next((known.name for known in AGENTS if known.id == agent), agent)


def resume_command(agent: str, session: str) -> str | None:
    """What to type to go on with a session; None if the agent has no such command, or the session is a subagent's."""
    template = next((known.resume for known in AGENTS if known.id == agent), None)
    return template.format(session=shlex.quote(session)) if template and "/" not in session else None

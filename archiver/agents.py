"""The table of agents: the one place that lists the transcript formats wwt reads."""

from __future__ import annotations

import shlex
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agent:
    """A row of the table.

    module: the one in `archiver.sources` whose `SOURCE` reads the format.
    files: names a file must match to be opened where the user points at a folder.
    resume: the agent's own command with `{session}` in it, where it has one.
    """

    id: str
    name: str
    module: str
    files: tuple[str, ...] = ("*.jsonl*",)
    resume: str | None = None


AGENTS = (
    Agent("claude-code", "Claude Code", "claude_code", resume="claude --resume {session}"),
    Agent("openclaw", "OpenClaw", "openclaw"),
)
"""In the order in which a file of unknown origin is tried."""


def display_name(agent: str) -> str:
    return next((known.name for known in AGENTS if known.id == agent), agent)


def resume_command(agent: str, session: str) -> str | None:
    """What to type to go on with a session; None if the agent has no such command, or the session is a subagent's."""
    template = next((known.resume for known in AGENTS if known.id == agent), None)
    return template.format(session=shlex.quote(session)) if template and "/" not in session else None

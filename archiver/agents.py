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


_EXPORT = ("*.zip", "*.json")
_MARKDOWN = ("*.md", "*.markdown")

AGENTS = (
    Agent("claude-code", "Claude Code", "claude_code", resume="claude --resume {session}"),
    Agent("pi", "pi", "pi", resume="pi --session {session}"),
    Agent("openclaw", "OpenClaw", "openclaw", files=("*.jsonl*", "openclaw-agent.sqlite")),
    Agent("codex", "Codex CLI", "codex", files=("*.jsonl*", "rollout-*.json"), resume="codex resume {session}"),
    Agent("gemini-cli", "Gemini CLI", "gemini_cli", files=("*.jsonl*", "*.json"), resume="gemini --resume {session}"),
    Agent("hermes", "Hermes", "hermes", files=("*.jsonl", "*.json", "*.db"), resume="hermes --resume {session}"),
    Agent("opencode", "OpenCode", "opencode", files=("*.json", "*.db"), resume="opencode --session {session}"),
    Agent("chatgpt", "ChatGPT", "chatgpt", files=_EXPORT),
    Agent("claude-ai", "Claude.ai", "claude_ai", files=_EXPORT),
    Agent("specstory", "SpecStory", "specstory", files=_MARKDOWN),
    Agent("cursor-export", "Cursor export", "cursor_export", files=_MARKDOWN),
    Agent("antigravity", "Antigravity export", "antigravity", files=_MARKDOWN),
    Agent("aider", "aider", "aider", files=_MARKDOWN),
    Agent("terminal-export", "Terminal export", "terminal_export", files=(*_MARKDOWN, "*.txt")),
    Agent("markdown", "Markdown", "headings", files=_MARKDOWN),
)
"""In the order in which a file of unknown origin is tried."""


def names() -> str:
    """The ids, as a list to read."""
    return ", ".join(agent.id for agent in AGENTS)


def display_name(agent: str) -> str:
    return next((known.name for known in AGENTS if known.id == agent), agent)


def resume_command(agent: str, session: str) -> str | None:
    """What to type to go on with a session; None if the agent has no such command, or the session is a subagent's."""
    template = next((known.resume for known in AGENTS if known.id == agent), None)
    return template.format(session=shlex.quote(session)) if template and "/" not in session else None

"""Claude Code's transcripts: where they lie, and how one is told by its content. `claude_parse` reads them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import orjson

from archiver.sources.claude_parse import ClaudeParse
from archiver.sources.claude_speech import text_of
from archiver.transcript import Found, Parse, Progress, Source

AGENT = "claude-code"


class ClaudeCode(Source):
    agent = AGENT
    parser_version = 2

    def roots(self) -> list[Path]:
        return [config_dir() / "projects"]

    def discover(self, root: Path) -> Iterable[Found]:
        for project in _folders(root):
            yield from (Found(self.agent, path) for path in _files(project, "*.jsonl"))
            for session in _folders(project):
                yield from (Found(self.agent, path) for path in _files(session / "subagents", "**/agent-*.jsonl"))

    def sniff(self, path: Path, head: bytes) -> Found | None:
        lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        known = False
        for line in lines:
            verdict = _looks_like(line.strip(b"\x00 \t\r"))
            if verdict is False:
                return None
            if verdict and _SPOKEN.search(line[:65536]):
                return Found(self.agent, path)
            known = known or verdict is True
        return Found(self.agent, path) if known else None

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        return ClaudeParse(found, progress, final=final)


SOURCE = ClaudeCode()


def config_dir() -> Path:
    """`$CLAUDE_CONFIG_DIR`, else `~/.claude`."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude").expanduser().absolute()


def _folders(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir()]
    except OSError:
        return []


def _files(folder: Path, pattern: str) -> list[Path]:
    try:
        return [path for path in folder.glob(pattern) if path.is_file()]
    except OSError:
        return []


_SPOKEN = re.compile(rb'"type"\s*:\s*"(?:user|assistant)"')
_OWN_BYTES = re.compile(rb'"(?:parentUuid|sessionId|leafUuid|isSidechain|trackedFileBackups)"\s*:')
_OWN_TYPES = re.compile(
    "summary|custom-title|ai-title|agent-name|last-prompt|queue-operation|pr-link|file-history-snapshot|file-history-delta"
    "|system|attachment|progress|permission-mode|mode|agent-setting|agent-color|tag|task-summary|worktree-state|relocated"
    "|frame-link|bridge-session|atis-latch|isolation-latch|cost-state|content-replacement|continued-in|fork-context-ref"
    "|history-suppression|attribution-snapshot"
)


def _looks_like(line: bytes) -> bool | None:
    """Whether the line is one of ours; None if it says nothing either way (unknown, torn, blank)."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        # The line may be longer than the head, so that only its beginning is here.
        return True if line.startswith(b"{") and _SPOKEN.search(line) and _OWN_BYTES.search(line) else None
    if not isinstance(value, dict):
        return None
    own = any(key in value for key in ("sessionId", "uuid", "parentUuid", "leafUuid", "messageId"))
    kind = text_of(value.get("type"))
    if kind in ("user", "assistant"):
        return own and isinstance(value.get("message"), dict) and "content" in value["message"]
    if kind == "session_meta" or (kind == "session" and "id" in value):
        return False
    return True if own and _OWN_TYPES.fullmatch(kind) else None

"""Codex CLI's transcripts: where they are found, and how one is told by its content. `codex_parse` reads them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import orjson

from archiver.sources.codex_files import AGENT, FOLDERS, NAME, Folder, around
from archiver.sources.codex_parse import CodexParse
from archiver.transcript import Found, Parse, Progress, Source


class Codex(Source):
    agent = AGENT
    parser_version = 1
    """A `rollout-*.json` of the first versions is one document that is written anew: its progress stays at offset 0."""

    def roots(self) -> list[Path]:
        return [codex_home()]

    def discover(self, root: Path) -> Iterable[Found]:
        return Folder(root).rollouts() if any((root / name).is_dir() for name in FOLDERS) else ()

    def sniff(self, path: Path, head: bytes) -> Found | None:
        head = head.removeprefix(b"\xef\xbb\xbf")
        if not (_is_document(head) if path.suffix == ".json" else _is_log(head)):
            return None
        if NAME.fullmatch(path.name) and ("_" in path.name or _RELATED.search(head)):
            return around(path).rollout(path)
        return Found(AGENT, path, "archived" if path.parent.name == FOLDERS[1] else "live")

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        return CodexParse(found, progress, final=final)


SOURCE = Codex()


def codex_home() -> Path:
    """`$CODEX_HOME`, else `~/.codex`."""
    return Path(os.environ.get("CODEX_HOME") or "~/.codex").expanduser().absolute()


_RELATED = re.compile(rb'"history_mode"\s*:\s*"paginated"|"(?:history_base|forked_from_id|parent_thread_id)"\s*:')
_DOCUMENT = re.compile(rb'\A\s*\{\s*"session"\s*:\s*\{\s*"(?:id|timestamp|instructions)"\s*:')
_ENVELOPE = re.compile(rb'"type"\s*:\s*"(?:session_meta|response_item|event_msg|turn_context|compacted|world_state)"')
_PAYLOAD = re.compile(rb'"payload"\s*:')
_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")


def _is_document(head: bytes) -> bool:
    return _DOCUMENT.match(head) is not None


def _is_log(head: bytes) -> bool:
    for line in head.split(b"\n"):
        verdict = _looks_like(line.strip(b"\x00 \t\r"))
        if verdict is not None:
            return verdict
    return False


def _looks_like(line: bytes) -> bool | None:
    """Whether the line is one of ours; None if it says nothing either way (unknown, torn, blank)."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        # The line may be longer than the head, so that only its beginning is here.
        start = line[:4096]
        return True if start.startswith(b"{") and _ENVELOPE.search(start) and _PAYLOAD.search(start) else None
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("payload"), dict) and value.get("type") in _TYPES:
        return True
    if any(name in value for name in ("sessionId", "parentUuid", "parentId", "message", "projectHash")):
        return False
    # The first line of the oldest versions, and the lines of state between their items.
    bare = {"id", "timestamp", "instructions"} <= value.keys() and "type" not in value
    return True if bare or value == {"record_type": "state"} else None

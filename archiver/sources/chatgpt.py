"""ChatGPT's data export. A conversation is a tree of messages; what was edited or regenerated lies on its side branches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from archiver.sources import jsonl, speech
from archiver.sources.web_export import WebExportParse, beginning, titles
from archiver.transcript import About, Event, Found, Parse, Progress, RawTurn, Resume, Source, Upsert
from store.records import Role, State, parse_time

AGENT = "chatgpt"

_TREE = re.compile(rb'"mapping"\s*:\s*\{')
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_SPOKEN = ("text", "multimodal_text", None)
_CITATION = re.compile("\ue200.*?\ue201|[\ue200-\ue206]|【\\d+†[^】\\n]*】", re.S)


class ChatGpt(Source):
    agent = AGENT
    parser_version = 1
    resume = Resume.NEVER

    def sniff(self, path: Path, head: bytes) -> Found | None:
        return Found(self.agent, path) if _TREE.search(beginning(path, head)) else None

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        return _ChatGptParse(found, progress, final=final)


SOURCE = ChatGpt()


class _ChatGptParse(WebExportParse):
    def _conversation(self, value: dict[str, Any]) -> Iterator[Event]:
        nodes = value.get("mapping")
        nodes = {key: node for key, node in nodes.items() if isinstance(node, dict)} if isinstance(nodes, dict) else {}
        title = _text(value.get("title"))
        session = _text(value.get("conversation_id")) or _text(value.get("id"))
        session = speech.plain_id(session or speech.digest(title, str(value.get("create_time"))))
        live = _path(nodes, value.get("current_node"))
        turns = list(_turns(nodes, live, session))
        if not turns:
            return
        times = [turn.time for turn in turns if turn.time is not None]
        yield About(
            session,
            first_time=min(times, default=parse_time(value.get("create_time"))),
            last_time=max(times, default=None),
        )
        yield from titles(title, turns)
        yield from (Upsert(turn) for turn in turns)


def _turns(nodes: dict[str, dict[str, Any]], live: list[str], session: str) -> Iterator[RawTurn]:
    on_path = set(live)
    # Side branches come after the path; each keeps the order of the export.
    order = [*live, *(key for key in nodes if key not in on_path)]
    for pos, key in enumerate(order):
        message = nodes[key].get("message")
        if not isinstance(message, dict) or (said := _said(message)) is None:
            continue
        role, text = said
        native = speech.plain_id(_text(message.get("id")) or key)
        state = State.LIVE if key in on_path else State.ABANDONED
        kind = "prompt" if role is Role.USER else "reply"
        yield RawTurn(f"{session}/{native}", pos, role, kind, text, parse_time(message.get("create_time")), state)


def _path(nodes: dict[str, dict[str, Any]], current: object) -> list[str]:
    """From the root to the current node; if that names none, to the newest leaf."""
    at = current if isinstance(current, str) and current in nodes else _newest_leaf(nodes)
    path: list[str] = []
    seen = set()
    while isinstance(at, str) and at in nodes and at not in seen:
        seen.add(at)
        path.append(at)
        at = nodes[at].get("parent")
    return path[::-1]


def _newest_leaf(nodes: dict[str, dict[str, Any]]) -> str | None:
    parents = {node["parent"] for node in nodes.values() if isinstance(node.get("parent"), str)}
    leaves = [key for key in nodes if key not in parents]
    return max(leaves, key=lambda key: _moment(nodes[key]), default=None)


def _moment(node: dict[str, Any]) -> int:
    message = node.get("message")
    return (parse_time(message.get("create_time")) if isinstance(message, dict) else None) or 0


def _said(message: dict[str, Any]) -> tuple[Role, str] | None:
    """Who said what; None for tools, hidden messages, instructions and thoughts."""
    author, content, metadata = message.get("author"), message.get("content"), message.get("metadata")
    role = _ROLES.get(_text(author.get("role"))) if isinstance(author, dict) else None
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True
    if role is None or hidden or not isinstance(content, dict) or message.get("recipient") not in (None, "all"):
        return None
    if content.get("content_type") not in _SPOKEN:
        return None
    text = _CITATION.sub("", speech.cut_recall("\n\n".join(_parts(content.get("parts"))))).strip()
    return (role, text) if text else None


def _parts(parts: object) -> Iterator[str]:
    for part in parts if isinstance(parts, list) else [parts]:
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str) and text.strip():
            yield jsonl.scrub(text)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

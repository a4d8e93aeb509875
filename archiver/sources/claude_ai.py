"""Claude.ai's data export: an array of conversations, each a list of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from archiver.sources import jsonl, speech
from archiver.sources.web_export import WebExportParse, beginning, titles
from archiver.transcript import About, Event, Found, Parse, Progress, RawTurn, Resume, Source, Upsert
from store.records import Role, State, parse_time

AGENT = "claude-ai"

_MESSAGES = re.compile(rb'"chat_messages"\s*:\s*\[')
_NOT_SHOWN = re.compile(r"(?:```\n)?This block is not supported on your current device yet\.(?:\n```)?")
_PASTED = re.compile(r"(?:paste(?:[-_ ]?\d+)?\.txt)?", re.I)
_ROLES = {"human": Role.USER, "assistant": Role.ASSISTANT}


class ClaudeAi(Source):
    agent = AGENT
    parser_version = 1
    resume = Resume.NEVER

    def sniff(self, path: Path, head: bytes) -> Found | None:
        return Found(self.agent, path) if _MESSAGES.search(beginning(path, head)) else None

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        return _ClaudeAiParse(found, progress, final=final)


SOURCE = ClaudeAi()


class _ClaudeAiParse(WebExportParse):
    def _conversation(self, value: dict[str, Any]) -> Iterator[Event]:
        given = value.get("chat_messages")
        messages = [message for message in given if isinstance(message, dict)] if isinstance(given, list) else []
        name = _text(value.get("name"))
        session = speech.plain_id(_text(value.get("uuid")) or speech.digest(name, str(value.get("created_at"))))
        turns = list(_turns(messages, session))
        if not turns:
            return
        times = [turn.time for turn in turns if turn.time is not None]
        yield About(
            session,
            first_time=min(times, default=parse_time(value.get("created_at"))),
            last_time=max(times, default=None),
        )
        yield from titles(name, turns)
        yield from (Upsert(turn) for turn in turns)


def _turns(messages: list[dict[str, Any]], session: str) -> Iterator[RawTurn]:
    abandoned = _abandoned(messages)
    for pos, message in enumerate(messages):
        role = _ROLES.get(_text(message.get("sender")))
        text = _said(message)
        if role is None or not text:
            continue
        native = _text(message.get("uuid")) or f"{pos:04d}"
        state = State.ABANDONED if native in abandoned else State.LIVE
        kind = "prompt" if role is Role.USER else "reply"
        time = parse_time(message.get("created_at"))
        yield RawTurn(f"{session}/{speech.plain_id(native)}", pos, role, kind, text, time, state)


def _abandoned(messages: list[dict[str, Any]]) -> set[str]:
    """Messages off the way from the last one to the root: retried or edited. None where the way does not lead to the first."""
    above = {_text(message.get("uuid")): _text(message.get("parent_message_uuid")) for message in messages}
    if not messages or not any(above.values()):
        return set()
    path = set()
    at = _text(messages[-1].get("uuid"))
    while at in above and at not in path:
        path.add(at)
        at = above[at]
    roots = {uuid for uuid, parent in above.items() if parent not in above}
    return set(above) - path if path & roots else set()


def _said(message: dict[str, Any]) -> str:
    """The text blocks of the content, of an older export its `text`; behind them what was pasted, where that was long."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    spoken = [
        block["text"]
        for block in blocks
        if isinstance(block, dict)
        and block.get("type") in ("text", "voice_note")
        and isinstance(block.get("text"), str)
    ]
    text = "\n\n".join(part.strip() for part in spoken if part.strip())
    # Here stands a line for each block of another kind.
    text = text or _NOT_SHOWN.sub("", _text(message.get("text"))).strip()
    whole = "\n\n".join(part for part in (text, *_pasted(message.get("attachments"))) if part)
    return speech.cut_recall(jsonl.scrub(whole)).strip()


def _pasted(attachments: object) -> Iterator[str]:
    """Texts that the person pasted: the client makes nameless attachments of them. Those of files are no speech."""
    for attachment in attachments if isinstance(attachments, list) else ():
        if isinstance(attachment, dict) and _PASTED.fullmatch(_text(attachment.get("file_name"))):
            yield _text(attachment.get("extracted_content")).strip()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

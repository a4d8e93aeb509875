"""The entries of pi's format, one by one: what each says, and how sessions name those they were forked from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from archiver.sources import jsonl, speech
from store.records import parse_time

_UUID_AT_END = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.jsonl.*)?\Z", re.I)
_HEAD = 64 << 10
_GENERATIONS = 20
"""How far up a chain of forks is followed."""

HeaderOf = Callable[[str], dict[str, Any] | None]
"""The header of the session that a header names as its parent, if it can be had."""


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def texts_of(content: object) -> Iterator[str]:
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            yield jsonl.scrub(block)
        elif isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            yield jsonl.scrub(block["text"])


def moment(value: dict[str, Any]) -> int | None:
    time = parse_time(value.get("timestamp"))
    return parse_time(value["message"].get("timestamp")) if time is None else time


def is_call(block: object) -> bool:
    return (
        isinstance(block, dict) and block.get("type") in ("toolCall", "tool_use") and isinstance(block.get("id"), str)
    )


def is_nameless(header: dict[str, Any]) -> bool:
    """Whether the session began in the first version of the format, whose entries had no ids.

    A newer program gives them some when it opens such a file; the header goes on naming a model, as only the first did.
    """
    return "modelId" in header and "thinkingLevel" in header


def named_parent(header: dict[str, Any]) -> str:
    """What a header calls the session it was forked from: its file, or its id; empty if it was not."""
    return text_of(header.get("parentSession")) or text_of(header.get("branchedFrom"))


def id_in(named: str) -> str:
    """The session's id in what a header calls it."""
    at_end = _UUID_AT_END.search(named)
    return at_end[1] if at_end else named.replace("\\", "/").rpartition("/")[2].partition(".jsonl")[0]


def ancestors(header: dict[str, Any], header_of: HeaderOf) -> Iterator[tuple[str, int | None]]:
    """The sessions above a forked one, nearest first, each with the time it began, as far as they can be found."""
    for _ in range(_GENERATIONS):
        named = named_parent(header)
        if not named:
            return
        above = header_of(named) or {}
        yield speech.plain_id(id_in(named)), parse_time(above.get("timestamp"))
        header = above


def header_beside(folders: Iterable[Path], named: str) -> dict[str, Any] | None:
    """The header of the session that a header names, from a file in these folders. Where else it says to look is not heeded."""
    name = named.replace("\\", "/").rpartition("/")[2]
    beginning = name if ".jsonl" in name else f"{name}.jsonl"
    for folder in folders:
        with suppress(OSError, EOFError):
            paths = sorted(path for path in folder.iterdir() if path.name.startswith(beginning))
            for path in paths:
                if header := header_in(_first_lines(path)):
                    return header
    return None


def _first_lines(path: Path) -> list[bytes]:
    with jsonl.open_stream(path) as stream:
        return stream.read(_HEAD).split(b"\n")


def header_in(lines: Iterable[bytes]) -> dict[str, Any] | None:
    """The first record that is a session's header."""
    return next((value for value in objects(lines) if is_header(value)), None)


def objects(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The records among the lines; what is none is passed over."""
    for line in lines:
        try:
            value = orjson.loads(line.strip(b"\x00 \t\r"))
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            yield value


def is_header(value: dict[str, Any]) -> bool:
    return value.get("type") == "session" and isinstance(value.get("id"), str)


def is_family(head: bytes) -> bool:
    """Whether the first record that says anything is one of this format."""
    verdicts = (_looks_like(value) for value in objects(head.removeprefix(b"\xef\xbb\xbf").split(b"\n")))
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _looks_like(value: dict[str, Any]) -> bool | None:
    if is_header(value):
        return True
    if any(key in value for key in ("sessionId", "parentUuid", "payload", "projectHash")):
        return False
    message = value.get("message")
    if value.get("type") == "message" and isinstance(message, dict):
        return text_of(message.get("role")) != "" and ("id" in value or "timestamp" in value)
    return None

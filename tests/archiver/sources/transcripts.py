"""Small transcripts, and what a parse of them comes to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archiver.transcript import (
    Event,
    Extend,
    Found,
    Outcome,
    Progress,
    RawTurn,
    Reread,
    Retract,
    Source,
    Unreadable,
    Upsert,
)

Row = dict[str, Any] | bytes


def stamp(second: int) -> str:
    return f"2026-03-04T05:06:{second:02d}.000Z"


def user(uuid: str, content: Any, parent: str | None = None, second: int = 0, **more: Any) -> dict[str, Any]:
    return _claude("user", uuid, {"role": "user", "content": content}, parent, second) | more


def assistant(
    uuid: str, content: Any, parent: str | None = None, second: int = 1, mid: str = "", **more: Any
) -> dict[str, Any]:
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    message = {"id": mid or "msg_" + uuid, "role": "assistant", "model": "m", "content": blocks}
    return _claude("assistant", uuid, message, parent, second) | more


def _claude(kind: str, uuid: str, message: dict[str, Any], parent: str | None, second: int) -> dict[str, Any]:
    base = {
        "sessionId": "S1",
        "cwd": "/srv/shop",
        "gitBranch": "main",
        "isSidechain": False,
        "timestamp": stamp(second),
    }
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "message": message} | base


def call(name: str, given: dict[str, Any], call_id: str = "t1") -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": call_id, "name": name, "input": given}]


def result(content: Any, call_id: str = "t1", *, failed: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": failed}


def entry(
    entry_id: str | None, role: str, content: Any, parent: str | None = None, second: int = 1, **more: Any
) -> dict[str, Any]:
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    row = {"type": "message", "timestamp": stamp(second), "message": {"role": role, "content": blocks} | more}
    return row if entry_id is None else row | {"id": entry_id, "parentId": parent}


def header(session: str = "S1", **more: Any) -> dict[str, Any]:
    return {"type": "session", "version": 3, "id": session, "timestamp": stamp(0), "cwd": "/srv/shop"} | more


def encode(rows: Iterable[Row], tail: bytes = b"", *, ascii_only: bool = False) -> bytes:
    lines = [row if isinstance(row, bytes) else json.dumps(row, ensure_ascii=ascii_only).encode() for row in rows]
    return b"".join(line + b"\n" for line in lines) + tail


def write(path: Path, *rows: Row, tail: bytes = b"", ascii_only: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(rows, tail, ascii_only=ascii_only))
    return path


def parse(
    source: Source, path: Path, progress: Progress | None = None, *, final: bool = False
) -> tuple[list[Event], Progress]:
    """Events, and the progress as it comes back from the archive."""
    found = Found(source.agent, path)
    running = source.parse(found, progress or Progress(), final=final)
    events = list(running)
    after = running.progress
    return events, Progress(after.offset, after.line, json.loads(json.dumps(after.state)))


def turns(events: Iterable[Event], before: dict[str, RawTurn] | None = None) -> dict[str, RawTurn]:
    """Turns after these events, as the archive would hold them."""
    held = dict(before or {})
    for event in events:
        match event:
            case Upsert(turn):
                held[turn.key] = turn
            case Extend(key, text):
                old = held[key]
                held[key] = RawTurn(key, old.pos, old.role, old.kind, f"{old.text}\n\n{text}", old.time, old.state)
            case Retract(key):
                held.pop(key, None)
            case _:
                pass
    return held


def said(source: Source, path: Path, *, final: bool = False) -> list[tuple[str, str]]:
    """(role, text) of every turn, in file order."""
    events, _ = parse(source, path, final=final)
    return [(str(turn.role), turn.text) for turn in sorted(turns(events).values(), key=lambda turn: turn.pos)]


def in_two_pieces(source: Source, path: Path, data: bytes, cut: int) -> dict[str, RawTurn]:
    """Turns when the file is read at `cut` bytes and again when it has all of them."""
    path.write_bytes(data[:cut])
    events, progress = parse(source, path)
    held = turns(events)
    path.write_bytes(data)
    try:
        return turns(parse(source, path, progress)[0], held)
    except Reread:
        return turns(parse(source, path)[0])


def outcomes(events: Iterable[Event]) -> list[tuple[str, bool, str]]:
    return [(event.kind, event.ok, event.label) for event in events if isinstance(event, Outcome)]


def unreadable(events: Iterable[Event]) -> list[tuple[int, str]]:
    return [(event.line, event.reason) for event in events if isinstance(event, Unreadable)]


@dataclass(frozen=True)
class Counted:
    """An invented input, and what must be found in it. `make` writes it below a folder and returns the path to archive."""

    name: str
    agent: str
    make: Callable[[Path], Path]
    sessions: int = 1
    user: int = 1
    assistant: int = 1
    errors: int = 0
    outcomes: int = 0

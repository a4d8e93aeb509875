"""Which messages of an OpenCode session a fork copied, under new ids, from another one of the database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from archiver.sources.sqlite import Database


@dataclass(frozen=True, slots=True)
class Message:
    """What of a message a copy keeps, and its ids, which it does not. `time` in UTC ms."""

    id: str
    role: str
    time: int
    parts: list[str]


def originals(db: Database, session: str, began: int, messages: Iterable[Message]) -> dict[str, str]:
    """The first id of each message and part that is a copy.

    No row tells what a session was forked from. But a copy keeps the time at which it was said, before its session began; of the
    messages that were said then, the one with the lowest id is no copy. Whether the words are the same too, storing them decides.
    """
    copies: dict[tuple[str, int], list[Message]] = {}
    for message in messages:
        if message.time < began:
            copies.setdefault((message.role, message.time), []).append(message)
    if not copies or not {"time_created", "data"} <= db.columns("message"):
        return {}
    times = {time for _, time in copies}
    sql = "SELECT id, time_created FROM message WHERE session_id != ? AND time_created BETWEEN ? AND ? ORDER BY id"
    found: dict[str, str] = {}
    for row in db.rows(sql, (session, min(times), max(times))):
        if row["time_created"] not in times:
            continue
        alike = copies.get((_role(db, row["id"]), row["time_created"]), [])
        # Of two that were said at once nothing tells which is which.
        if len(alike) == 1 and alike[0].id not in found and str(row["id"]) < alike[0].id:
            found[alike[0].id] = str(row["id"])
            parts = [str(part["id"]) for part in db.rows(_PARTS, (row["id"],))]
            if len(parts) == len(alike[0].parts):
                found |= zip(alike[0].parts, parts, strict=True)
    return found


_PARTS = "SELECT id FROM part WHERE message_id = ? ORDER BY id"


def _role(db: Database, message: str) -> str:
    for row in db.rows("SELECT data FROM message WHERE id = ?", (message,)):
        try:
            data = orjson.loads(row["data"])
        except (orjson.JSONDecodeError, TypeError):
            break
        return str(data.get("role")) if isinstance(data, dict) else ""
    return ""

"""Hermes: its database `state.db`, one of each profile, and the JSON files of its sessions from before."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from archiver.sources import hermes_parse, jsonl
from archiver.sources.hermes_parse import HermesParse, Message
from archiver.sources.json_array import Elements
from archiver.sources.sqlite import Database, is_busy, is_database, open_read_only
from archiver.transcript import Found, Parse, Progress, Source, Unreadable
from store.records import Status, parse_time

AGENT = "hermes"
DATABASE = "state.db"

_SESSION_FILE = re.compile(r"session_(?P<id>.+)\.json")
_HEAD_KEYS = re.compile(rb'"(?:session_start|last_updated|platform)"\s*:')
_META = re.compile(rb'\{.*"role"\s*:\s*"session_meta"')
_WANTED_SESSION = (
    "id",
    "parent_session_id",
    "started_at",
    "ended_at",
    "end_reason",
    "cwd",
    "git_branch",
    "title",
    "message_count",
    "source",
    "model_config",
)
_WANTED_MESSAGE = (
    "id",
    "role",
    "content",
    "tool_call_id",
    "tool_calls",
    "tool_name",
    "timestamp",
    "active",
    "compacted",
    "display_kind",
)
_GENERATIONS = 20
"""How far up a chain of sessions that go on from each other is followed."""


class Hermes(Source):
    agent = AGENT
    parser_version = 1

    def roots(self) -> list[Path]:
        """`$HERMES_HOME`, else `~/.hermes`."""
        return [Path(os.environ.get("HERMES_HOME") or "~/.hermes").expanduser().absolute()]

    def discover(self, root: Path) -> Iterable[Found]:
        """The databases' sessions, and the files of sessions that no database holds."""
        for folder in (root, *_children(root / "profiles")):
            database = folder / DATABASE
            try:
                held = list(_sessions(database)) if database.is_file() else []
            except OSError as error:
                yield Found(self.agent, database)  # reading it tells why
                if is_busy(error):
                    continue
                held = []
            yield from held
            known = {one.member for one in held}
            for path in _children(folder / "sessions"):
                named = _SESSION_FILE.fullmatch(path.name)
                native = named["id"] if named else path.stem if path.suffix == ".jsonl" else None
                if native is not None and quote(native, safe=" ") not in known and path.is_file():
                    yield Found(self.agent, path)

    def sniff(self, path: Path, head: bytes) -> Found | None:
        if is_database(head):
            return Found(self.agent, path) if _is_ours(path) else None
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if _META.match(text.partition(b"\n")[0]):
            return Found(self.agent, path)
        own = text.startswith(b"{") and b'"session_id"' in text and _HEAD_KEYS.search(text)
        # A prompt and tools of any length stand before the messages.
        is_session = own and (b'"messages"' in text or _SESSION_FILE.fullmatch(path.name))
        return Found(self.agent, path) if is_session else None

    def members(self, found: Found) -> Iterable[Found]:
        with found.path.open("rb") as file:
            if not is_database(file.read(16)):
                return (found,)
        return list(_sessions(found.path))

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        if found.member:
            return HermesParse(_stored(found), progress)
        if found.path.name == DATABASE:
            list(_sessions(found.path))  # the reason why it could not be asked, if there still is one
            return HermesParse(())
        return HermesParse(_lines(found.path) if found.path.suffix == ".jsonl" else _document(found.path))


SOURCE = Hermes()


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _is_ours(path: Path) -> bool:
    with open_read_only(path) as db:
        return {"session_id", "role", "content"} <= db.columns("messages") and "id" in db.columns("sessions")


# --- the database ---


def _sessions(path: Path) -> Iterator[Found]:
    """Asks for numbers only: how many messages a session has, and when the last was written."""
    with open_read_only(path) as db:
        if not {"session_id", "role", "content"} <= db.columns("messages") or "id" not in db.columns("sessions"):
            return
        session = _chosen(db, "sessions", _WANTED_SESSION)
        time = "m.timestamp" if "timestamp" in db.columns("messages") else "NULL"
        rows = db.rows(
            f"SELECT {session}, g.n AS n, g.last AS last, {time} AS time FROM sessions s"
            " JOIN (SELECT session_id, count(*) AS n, max(id) AS last FROM messages GROUP BY session_id) g ON g.session_id = s.id"
            " JOIN messages m ON m.id = g.last"
        )
        for row in rows:
            moments = [parse_time(row[name]) or 0 for name in ("time", "ended_at", "started_at")]
            # Undoing a message changes how many count, but not how many rows there are.
            size = int(row["n"]) + (_number(row["message_count"]) << 20) + (bool(row["ended_at"]) << 60)
            yield Found(
                AGENT,
                path,
                "archived" if row["ended_at"] else "live",
                Status.ENDED if row["ended_at"] else Status.ACTIVE,
                member=quote(str(row["id"]), safe=" "),
                stamp=(size, max(moments) * 1_000_000),
            )


def _number(value: object) -> int:
    return min(value, 1 << 30) if isinstance(value, int) and value > 0 else 0


def _chosen(db: Database, table: str, wanted: tuple[str, ...]) -> str:
    """The wanted columns, NULL in place of those that this schema lacks."""
    there = db.columns(table)
    return ", ".join(f"s.{name} AS {name}" if name in there else f"NULL AS {name}" for name in wanted)


def _stored(found: Found) -> Iterator[hermes_parse.About | Message | Unreadable]:
    native = unquote(found.member)
    with open_read_only(found.path) as db:
        for row in db.rows(
            f"SELECT {_chosen(db, 'sessions', _WANTED_SESSION)} FROM sessions s WHERE s.id = ?", (native,)
        ):
            told = _about(native, row)
            yield told
            if not told.is_subagent and _begins_before(db, native, row["started_at"]):
                for above in _above(db, told.parent):
                    yield from (replace(message, above=above) for message in _messages(db, above))
        yield from _messages(db, native)


def _about(native: str, row: Any) -> hermes_parse.About:
    config = hermes_parse.json_of(row["model_config"])
    config = config if isinstance(config, dict) else {}
    return hermes_parse.About(
        native,
        cwd=_text(row["cwd"]),
        branch=_text(row["git_branch"]),
        title=_text(row["title"]),
        parent=_text(row["parent_session_id"]),
        is_subagent=row["source"] == "subagent" or bool(config.get("_delegate_from")),
        is_branch=bool(config.get("_branched_from")),
        times=(parse_time(row["started_at"]), parse_time(row["ended_at"])),
    )


def _messages(db: Database, native: str) -> Iterator[Message]:
    chosen = _chosen(db, "messages", _WANTED_MESSAGE)
    for row in db.rows(f"SELECT {chosen} FROM messages s WHERE s.session_id = ? ORDER BY s.id", (native,)):
        yield Message(
            _text(row["role"]) or "",
            row["content"],
            parse_time(row["timestamp"]),
            row["tool_calls"],
            _text(row["tool_call_id"]) or "",
            _text(row["tool_name"]) or "",
            undone=row["active"] == 0 and not row["compacted"],
            shown_as=_text(row["display_kind"]) or "",
        )


def _begins_before(db: Database, native: str, started: object) -> bool:
    """Whether the session holds messages older than itself: it was made from another, and took them over."""
    if "timestamp" not in db.columns("messages"):
        return False
    sql = "SELECT 1 FROM messages WHERE session_id = ? AND timestamp < ? LIMIT 1"
    return next(db.rows(sql, (native, started)), None) is not None


def _above(db: Database, parent: str | None) -> list[str]:
    """The sessions that one goes on from, the oldest first."""
    chain: list[str] = []
    while parent and parent not in chain and len(chain) < _GENERATIONS:
        chain.append(parent)
        sql = "SELECT parent_session_id AS id FROM sessions WHERE id = ?"
        row = next(db.rows(sql, (parent,)), None)
        parent = _text(row["id"]) if row is not None else None
    return chain[::-1]


# --- files ---


def _document(path: Path) -> Iterator[hermes_parse.About | Message | Unreadable]:
    with jsonl.open_stream(path) as stream:
        for item in Elements(stream):
            if isinstance(item, Unreadable):
                yield item
                continue
            yield _header(item.value, path)
            messages = item.value.get("messages")
            yield from (_said(row) for row in (messages if isinstance(messages, list) else []) if isinstance(row, dict))
            return


def _lines(path: Path) -> Iterator[hermes_parse.About | Message | Unreadable]:
    told = False
    for record in jsonl.Reader(path, Progress(), final=True):
        if isinstance(record, Unreadable):
            yield record
            continue
        if not told:
            told = True
            meta = record.value if record.value.get("role") == "session_meta" else {}
            yield _header(meta, path)
        yield _said(record.value)


def _header(value: dict[str, Any], path: Path) -> hermes_parse.About:
    config = value.get("model_config")
    configured = config.get("cwd") if isinstance(config, dict) else None
    named = _SESSION_FILE.fullmatch(path.name)
    return hermes_parse.About(
        _text(value.get("session_id")) or (named["id"] if named else path.name.partition(".")[0]),
        cwd=_text(value.get("cwd")) or _text(configured),
        title=_text(value.get("title")),
        parent=_text(value.get("parent_session_id")),
        times=(parse_time(value.get("session_start")), parse_time(value.get("last_updated"))),
    )


def _said(row: dict[str, Any]) -> Message:
    return Message(
        _text(row.get("role")) or "",
        row.get("content"),
        parse_time(row.get("timestamp")),
        row.get("tool_calls"),
        _text(row.get("tool_call_id")) or "",
        _text(row.get("tool_name")) or _text(row.get("name")) or "",
        failed=row.get("finish_reason") == "error",
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None

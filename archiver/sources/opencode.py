"""OpenCode: its database, and the folders of JSON files it kept before."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import orjson

from archiver.sources import jsonl, opencode_forks, speech, tools
from archiver.sources.sqlite import Database, is_busy, is_database, open_read_only
from archiver.transcript import (
    About,
    Event,
    Found,
    Outcome,
    Parse,
    Progress,
    RawTurn,
    Reread,
    Source,
    Title,
    Unreadable,
    Upsert,
)
from store.records import Role, State, parse_time

AGENT = "opencode"
DATABASES = "opencode*.db"

_ROLES = {"user": (Role.USER, "prompt"), "assistant": (Role.ASSISTANT, "reply")}
_EDITORS = ("edit", "write", "patch", "multiedit", "apply_patch")
_LONGEST_FILE = 64 << 20

Entry = tuple[str, dict[str, Any], list[tuple[str, dict[str, Any]]]]
"""A message: its id, its data, and its parts with their ids."""


class OpenCode(Source):
    agent = AGENT
    parser_version = 1

    def roots(self) -> list[Path]:
        data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
        return [Path(data).expanduser().absolute() / "opencode"]

    def discover(self, root: Path) -> Iterable[Found]:
        """The sessions of the database, and of those of other channels: `opencode-dev.db`. A folder of older files may stand
        beside them; of that only what they lack.
        """
        known: set[str] = set()
        all_known = True
        for database in sorted(root.glob(DATABASES)):
            try:
                held = list(_stored_sessions(database)) if database.is_file() else []
            except OSError as error:
                yield Found(self.agent, database)  # reading it tells why
                all_known = all_known and not is_busy(error)
                continue
            yield from held
            known |= {unquote(one.member) for one in held}
        for path in sorted((root / "storage" / "session").glob("*/ses_*.json")) if all_known else ():
            if path.stem not in known and (found := _filed_session(path)):
                yield found

    def sniff(self, path: Path, head: bytes) -> Found | None:
        if is_database(head):
            return Found(self.agent, path) if _is_ours(path) else None
        return _filed_session(path) if path.name.startswith("ses_") and path.suffix == ".json" else None

    def members(self, found: Found) -> Iterable[Found]:
        return (found,) if found.path.suffix == ".json" else list(_stored_sessions(found.path))

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        if _is_unasked(found):
            list(_stored_sessions(found.path))  # the reason why it could not be asked, if there still is one
        return _OpenCodeParse(found, progress)


SOURCE = OpenCode()


# --- the database ---


def _is_ours(path: Path) -> bool:
    with open_read_only(path) as db:
        return _has_tables(db)


def _has_tables(db: Database) -> bool:
    return (
        {"id", "directory"} <= db.columns("session")
        and {"id", "session_id", "data"} <= db.columns("message")
        and {"id", "message_id", "data"} <= db.columns("part")
    )


def _is_unasked(found: Found) -> bool:
    """Whether it stands for a database that could not be asked for its sessions."""
    return not found.member and found.path.suffix == ".db"


def _stored_sessions(path: Path) -> Iterator[Found]:
    """Sessions that a person had; those of subagents hang from a parent.

    How many messages and parts there are, and when the newest were written, tells of a change: the session's own row is not
    touched by each.
    """
    with open_read_only(path) as db:
        if not _has_tables(db):
            return
        there = db.columns("session")
        top = "WHERE s.parent_id IS NULL" if "parent_id" in there else ""
        updated = "s.time_updated" if "time_updated" in there else "0"
        order = "time_created DESC, id DESC" if "time_created" in db.columns("message") else "id DESC"
        of_message = "m.time_updated" if "time_updated" in db.columns("message") else "0"
        of_part = "max(p.time_updated)" if "time_updated" in db.columns("part") else "0"
        sql = f"""
            WITH top AS (
                SELECT s.id, {updated} AS updated, (SELECT count(*) FROM message m WHERE m.session_id = s.id) AS messages,
                    (SELECT m.id FROM message m WHERE m.session_id = s.id ORDER BY {order} LIMIT 1) AS last
                FROM session s {top}
            )
            SELECT top.*, (SELECT count(*) FROM message m JOIN part p ON p.message_id = m.id WHERE m.session_id = top.id) AS parts,
                (SELECT {of_message} FROM message m WHERE m.id = top.last) AS message_updated,
                (SELECT {of_part} FROM part p WHERE p.message_id = top.last) AS part_updated
            FROM top
        """
        for row in db.rows(sql):
            clock = max(parse_time(row[name]) or 0 for name in ("updated", "message_updated", "part_updated"))
            stamp = (int(row["messages"]) + (int(row["parts"]) << 24), clock * 1_000_000)
            yield Found(AGENT, path, member=quote(str(row["id"]), safe=" "), stamp=stamp)


def _stored(found: Found) -> tuple[dict[str, Any], list[Entry], dict[str, str]]:
    """The session's row, its messages, and the first ids of those of them that a fork copied."""
    native = unquote(found.member)
    with open_read_only(found.path) as db:
        head = next((dict(row) for row in db.rows("SELECT * FROM session WHERE id = ?", (native,))), {})
        head["revert"] = _object(head.get("revert"))
        head["time"] = {"created": head.get("time_created"), "updated": head.get("time_updated")}
        began = parse_time(head.get("time_created")) or 0
        parts: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for row in db.rows(
            "SELECT p.id, p.message_id, p.data FROM part p JOIN message m ON m.id = p.message_id WHERE m.session_id = ? ORDER BY p.id",
            (native,),
        ):
            parts.setdefault(row["message_id"], []).append((str(row["id"]), _object(row["data"])))
        order = "m.time_created, m.id" if "time_created" in db.columns("message") else "m.id"
        rows = list(db.rows(f"SELECT m.id, m.data FROM message m WHERE m.session_id = ? ORDER BY {order}", (native,)))
        entries = [(str(row["id"]), _object(row["data"]), parts.get(row["id"], [])) for row in rows]
        said = (
            opencode_forks.Message(key, _text(data.get("role")), _moment(data) or began, [part for part, _ in held])
            for key, data, held in entries
        )
        named = opencode_forks.originals(db, native, began, said)
    return head, entries, named


# --- files ---


def _filed_session(path: Path) -> Found | None:
    """A session by its file. Its messages lie in folders of their own, so that the file alone does not tell of a change."""
    messages = path.parents[2] / "message" / path.stem if len(path.parents) > 2 else path
    try:
        head = _object(path.read_bytes()[:_LONGEST_FILE])
        if "id" not in head or head.get("parentID") or not messages.is_dir():
            return None
        # A streamed answer grows in its parts: new ones touch their folder, the last is rewritten in place.
        folders = sorted(messages.parents[1] / "part" / one.stem for one in messages.glob("msg_*.json"))
        last = list(folders[-1].glob("*.json")) if folders else []
        clocks = [_clock(one) for one in (path, messages, *folders, *last)]
    except OSError:
        return None
    return Found(AGENT, path, stamp=(len(folders), max(clocks)))


def _clock(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return 0


def _filed(found: Found, faults: list[Unreadable]) -> tuple[dict[str, Any], Iterator[Entry]]:
    storage = found.path.parents[2]
    head = _object(found.path.read_bytes())

    def entries() -> Iterator[Entry]:
        for path in sorted((storage / "message" / found.path.stem).glob("msg_*.json")):
            message = _loaded(path, faults)
            parts = [
                (part.stem, _loaded(part, faults)) for part in sorted((storage / "part" / path.stem).glob("prt_*.json"))
            ]
            yield path.stem, message, parts

    return head, entries()


def _loaded(path: Path, faults: list[Unreadable]) -> dict[str, Any]:
    try:
        value = _object(path.read_bytes())
    except OSError as error:
        faults.append(Unreadable(0, f"{path.name}: {error.strerror}"))
        return {}
    if not value:
        faults.append(Unreadable(0, f"{path.name}: is no JSON object"))
    return value


def _object(data: object) -> dict[str, Any]:
    if not isinstance(data, str | bytes):
        return {}
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


# --- telling ---


class _OpenCodeParse:
    """Messages of a database that were told before are read, and not told again, but for the last, which may have grown."""

    def __init__(self, found: Found, progress: Progress) -> None:
        self.progress = Progress()
        self.bytes_read = 0
        self._found = found
        self._old = progress
        self._said = self._headed = False
        self._last_key = ""
        self._first_ids: dict[str, str] = {}

    def __iter__(self) -> Iterator[Event]:
        faults: list[Unreadable] = []
        if _is_unasked(self._found):
            return
        entries: Iterable[Entry]
        if self._found.member:
            head, entries, self._first_ids = _stored(self._found)
        else:
            head, entries = _filed(self._found, faults)
        cwd = _text(head.get("directory"))
        if not (cwd and speech.is_own(cwd)):
            yield from self._session(head, entries)
        yield from faults

    def _session(self, head: dict[str, Any], entries: Iterable[Entry]) -> Iterator[Event]:
        self._head = head
        self._id = speech.plain_id(_text(head.get("id")) or unquote(self._found.member) or self._found.path.stem)
        reverted = head.get("revert")
        undone_from = _text(reverted.get("messageID")) if isinstance(reverted, dict) else ""
        undone = False
        known, seen, last = self._old.offset, hashlib.sha256(undone_from.encode("utf-8", "replace")), b""
        pos = -1
        for pos, (native, message, parts) in enumerate(entries):
            seen.update(last)
            last = orjson.dumps((native, message, parts))
            if pos and pos == known:
                self._headed = False
                if self._old.state.get("seen") != seen.hexdigest()[:16]:
                    raise Reread  # what was told is there no more as it was
            undone = undone or (bool(undone_from) and native == undone_from)
            events = self._message(native, message, parts, pos, State.ABANDONED if undone else State.LIVE)
            if pos < known:
                for _ in events:
                    pass
            else:
                yield from events
        if known and pos < known:
            raise Reread
        if self._found.member and pos > 0:
            self.progress = Progress(pos, 0, {"seen": seen.hexdigest()[:16]})

    def _message(
        self, native: str, message: dict[str, Any], parts: list[tuple[str, dict[str, Any]]], pos: int, state: State
    ) -> Iterator[Event]:
        role, kind = _ROLES.get(_text(message.get("role")), (None, ""))
        if role is None or message.get("summary") is True:  # what a compaction made of the conversation
            return
        text = _spoken(parts)
        time = _moment(message)
        if text and not speech.is_observer_prompt(text) and not speech.is_failure_notice(text):
            yield from self._begin(time)
            self._last_key = speech.plain_id(self._first_ids.get(native, native))
            kind = "command" if role is Role.USER and text.startswith("/") else kind
            yield Upsert(RawTurn(self._last_key, pos, role, kind, text, time, state))
            if kind == "prompt":
                yield Title(speech.title_of(text), 0)
        if self._said and state is State.LIVE:
            yield from self._begin(None)
            for part_id, part in parts:
                yield from self._tool(part_id, part, pos, time)

    def _begin(self, time: int | None) -> Iterator[Event]:
        if time is not None and self._headed:
            yield About(self._id, first_time=time, last_time=time)
        if self._headed:
            return
        self._said = self._headed = True
        span = self._head.get("time")
        span = span if isinstance(span, dict) else {}
        first, last = parse_time(span.get("created")), parse_time(span.get("updated"))
        yield About(
            self._id, _text(self._head.get("directory")) or None, first_time=first or time, last_time=last or time
        )
        title = _text(self._head.get("title"))
        if title and not title.startswith(("New session - ", "Child session - ")):
            yield Title(speech.title_of(jsonl.scrub(title)), 2)

    def _tool(self, part_id: str, part: dict[str, Any], pos: int, time: int | None) -> Iterator[Event]:
        state = part.get("state")
        if (
            part.get("type") != "tool"
            or not isinstance(state, dict)
            or state.get("status") not in ("completed", "error")
        ):
            return
        name = _text(part.get("tool"))
        if name.startswith("wwt"):
            return
        output, failed = _result(state)
        call = _proving(name, state.get("input"))
        ok = tools.verdict(call, failed=failed, output=output) if call else None
        if call is not None and ok is not None:
            for kind in call.kinds:
                key = f"{speech.plain_id(part_id)}:{kind}"
                yield Outcome(key, self._last_key, kind, ok, jsonl.scrub(call.label), time)
        text = tools.error_text(speech.cut_recall(output)) if failed else ""
        if text:
            native = self._first_ids.get(part_id, part_id)
            yield Upsert(RawTurn(f"{speech.plain_id(native)}:error", pos, Role.TOOL, "error", text, time))


def _proving(name: str, given: object) -> tools.Call | None:
    given = given if isinstance(given, dict) else {}
    if name in _EDITORS:
        return tools.edited([_text(given.get("filePath")) or _text(given.get("path"))])
    command = given.get("command")
    return tools.command(command) if name == "bash" and isinstance(command, str) else None


def _result(state: dict[str, Any]) -> tuple[str, bool]:
    metadata = state.get("metadata")
    exit_code = metadata.get("exit") if isinstance(metadata, dict) else None
    failed = state["status"] == "error" or (isinstance(exit_code, int) and exit_code != 0)
    return jsonl.scrub(_text(state.get("error")) or _text(state.get("output"))), failed


def _spoken(parts: list[tuple[str, dict[str, Any]]]) -> str:
    """The text parts that somebody wrote; synthetic ones are the program's."""
    texts = [
        _text(part.get("text")).strip()
        for _, part in parts
        if part.get("type") == "text" and not part.get("synthetic") and not part.get("ignored")
    ]
    return speech.cut_tags(
        speech.cut_recall(jsonl.scrub("\n\n".join(filter(None, texts)))), ("system-reminder",)
    ).strip()


def _moment(message: dict[str, Any]) -> int | None:
    time = message.get("time")
    return parse_time(time.get("created")) if isinstance(time, dict) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

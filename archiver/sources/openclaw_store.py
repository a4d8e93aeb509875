"""OpenClaw's database of one agent: which sessions it holds, and their records as if they were lines of a file.

A session's records are rows. Deleting or resetting it may put them into an archive, one blob of lines; what was not
used for long may lie in a file of lines beside. Tables and columns came over time, so each is asked for first.
"""

from __future__ import annotations

import errno
import hashlib
import io
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote

from archiver.sources import jsonl, speech
from archiver.sources.entry_records import header_in, text_of
from archiver.sources.sqlite import Database, open_read_only
from archiver.transcript import Found, Progress, Reread, Unreadable
from store.records import Status

EVENTS = "transcript_events"
_WINDOWS, _NODES = "session_windows", "session_nodes"
_ARCHIVES, _COLD = "session_transcript_archives", "session_transcript_cold_archives"
_REWRITTEN = "transcript_rewrite_watermarks"

_OVER = ("reset", "rollover")
"""Why a session takes the place of another so that the other is over."""
_GOES_ON = ("fork", "rewind", "compaction", "recovery")
"""Why a session begins with what another said."""

_NUMBERED = "typeof(seq) = 'integer' AND seq BETWEEN 0 AND 9007199254740991"
_COLD_MARK = "cold"
_ZSTD = b"\x28\xb5\x2f\xfd"
_LAST_CLOCK = 9_000_000_000_000  # ms; a later one would not fit into nanoseconds


@dataclass(frozen=True, slots=True)
class Holding:
    """What a database holds. `published` are names of files that repeat its archives, `ids` all its sessions.

    is_known: False where it did not say, for others were at it.
    """

    found: tuple[Found, ...] = ()
    published: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    is_known: bool = True

    def may_hold(self, session: str) -> bool:
        return session in self.ids or not self.is_known


def holds_transcripts(path: Path) -> bool:
    """Whether the database is OpenClaw's. Before it kept transcripts there, it kept keys in one of that name."""
    with open_read_only(path) as db:
        return {"session_id", "seq"} <= db.columns(EVENTS)


def holding(agent: str, path: Path) -> Holding:
    """Asks for numbers only, no text: what did not change costs next to nothing."""
    with open_read_only(path) as db:
        if not {"session_id", "seq"} <= db.columns(EVENTS):
            return Holding()
        archives = list(_archives(db))
        found = [*_live(agent, path, db), *_cold(agent, path, db), *(_archived(agent, path, row) for row in archives)]
    return Holding(
        tuple(found),
        frozenset(text_of(row["archive_name"]) for row in archives),
        frozenset(one.session for one in found),
    )


def _live(agent: str, path: Path, db: Database) -> Iterator[Found]:
    windows = _Windows(db)
    rewritten = _numbers(db, _REWRITTEN, "session_id", "updated_at")
    for session, last, written in _last_rows(db):
        is_over = session in windows.over and session not in windows.current
        clock = max(written, rewritten.get(session, 0), windows.ended.get(session, 0), windows.over.get(session, 0))
        yield Found(
            agent,
            path,
            "reset" if is_over else "live",
            Status.RESET if is_over else Status.ACTIVE,
            member=quote(session, safe=" "),
            stamp=(last + 1, clock * 1_000_000),
            session=session,
        )


def _last_rows(db: Database) -> Iterator[tuple[str, int, int]]:
    """Each session with the number of its last row and the time of it (ms), going from session to session in the index."""
    at = "created_at" if "created_at" in db.columns(EVENTS) else "0"
    sql = f"""
        WITH RECURSIVE s(id) AS (
            SELECT min(session_id) FROM {EVENTS}
            UNION ALL SELECT (SELECT min(session_id) FROM {EVENTS} WHERE session_id > s.id) FROM s WHERE s.id IS NOT NULL
        ), last(id, seq) AS (
            SELECT id, (SELECT seq FROM {EVENTS} WHERE session_id = s.id AND {_NUMBERED} ORDER BY seq DESC LIMIT 1) FROM s
        )
        SELECT id, seq, (SELECT {at} FROM {EVENTS} WHERE session_id = last.id AND seq = last.seq) AS at FROM last
    """
    for row in db.rows(sql):
        if isinstance(row["id"], str) and isinstance(row["seq"], int):
            yield row["id"], row["seq"], _clock(row["at"])


class _Windows:
    """When sessions ended, which ones another took the place of, and which ones are in use."""

    def __init__(self, db: Database) -> None:
        columns = db.columns(_WINDOWS)
        self.ended = _numbers(db, _WINDOWS, "session_id", "ended_at")
        self.over: dict[str, int] = {}
        if {"previous_session_id", "reason"} <= columns:
            began = next((name for name in ("created_at", "started_at") if name in columns), "0")
            marks = ", ".join("?" * len(_OVER))
            sql = f"SELECT previous_session_id AS id, max({began}) AS at FROM {_WINDOWS} WHERE reason IN ({marks}) GROUP BY 1"
            self.over = {row["id"]: _clock(row["at"]) for row in db.rows(sql, _OVER) if isinstance(row["id"], str)}
        self.current: set[object] = set()
        if "current_session_id" in db.columns(_NODES):
            self.current = {row["id"] for row in db.rows(f"SELECT current_session_id AS id FROM {_NODES}")}


def _numbers(db: Database, table: str, key: str, value: str) -> dict[str, int]:
    if not {key, value} <= db.columns(table):
        return {}
    return {row["k"]: _clock(row["v"]) for row in db.rows(f"SELECT {key} AS k, {value} AS v FROM {table}")}


def _clock(value: object) -> int:
    return min(max(value, 0), _LAST_CLOCK) if isinstance(value, int) else 0


def _cold(agent: str, path: Path, db: Database) -> Iterator[Found]:
    if {"session_id", "generation", "archive_name", "storage"} <= db.columns(_COLD):
        sql = f"SELECT session_id, archive_bytes AS size, archived_at AS at FROM {_COLD}"
        for row in db.rows(sql):
            session = str(row["session_id"])
            member = f"{quote(session, safe=' ')}#{_COLD_MARK}"
            stamp = (_clock(row["size"]), _clock(row["at"]) * 1_000_000)
            yield Found(agent, path, "archived", member=member, stamp=stamp, session=session)


def _archives(db: Database) -> Iterator[Any]:
    needed = {"session_id", "generation", "reason", "archive_blob", "archive_name", "created_at"}
    if needed <= db.columns(_ARCHIVES):
        yield from db.rows(
            f"SELECT session_id, generation, reason, archive_name, created_at AS at, length(archive_blob) AS size"
            f" FROM {_ARCHIVES} ORDER BY created_at, session_id, generation"
        )


def _archived(agent: str, path: Path, row: Any) -> Found:
    is_deleted = row["reason"] == "deleted"
    session = str(row["session_id"])
    return Found(
        agent,
        path,
        "deleted" if is_deleted else "reset",
        Status.DELETED if is_deleted else Status.RESET,
        member=f"{quote(session, safe=' ')}#{row['generation']}",
        stamp=(_clock(row["size"]), _clock(row["at"]) * 1_000_000),
        session=session,
    )


# --- one session ---


@dataclass(frozen=True, slots=True)
class Kin:
    """What the database says of a session beside its records.

    repeats: it took the place of its parent when that was compacted, and begins with the parent's last records.
    """

    is_subagent: bool = False
    parent: str | None = None
    repeats: bool = False


def kin(found: Found) -> Kin:
    """Whose session it is: a key with `subagent` in it belongs to one, and names who sent it by another key."""
    with open_read_only(found.path) as db:
        windows = db.columns(_WINDOWS)
        if not {"session_id", "session_key"} <= windows:
            return Kin()
        wanted = [name for name in ("spawned_by", "previous_session_id", "reason") if name in windows]
        sql = f"SELECT {', '.join(['session_key', *wanted])} FROM {_WINDOWS} WHERE session_id = ?"
        row = next(db.rows(sql, (found.session,)), None)
        told = dict(row) if row is not None else {}
        is_subagent = ":subagent:" in text_of(told.get("session_key"))
        if is_subagent and told.get("spawned_by") and "current_session_id" in db.columns(_NODES):
            sql = f"SELECT current_session_id AS id FROM {_NODES} WHERE session_key = ?"
            above = next(db.rows(sql, (told["spawned_by"],)), None)
            return Kin(True, text_of(above["id"]) or None if above is not None else None)
        before = text_of(told.get("previous_session_id")) if told.get("reason") in _GOES_ON else ""
        there = f"SELECT 1 FROM {EVENTS} WHERE session_id = ? LIMIT 1"
        repeats = told.get("reason") == "compaction" and next(db.rows(there, (before,)), None) is not None
        return Kin(is_subagent, before or None, repeats)


def records(found: Found, progress: Progress) -> Rows | Archived:
    _, _, generation = found.member.partition("#")
    return Archived(found, generation) if generation else Rows(found, progress)


def header_of(path: Path, session: str) -> dict[str, Any] | None:
    """The header of a session that the database holds in rows."""
    with suppress(OSError), open_read_only(path) as db:
        first = db.rows(f"SELECT * FROM {EVENTS} WHERE session_id = ? ORDER BY seq LIMIT 3", (session,))
        return header_in([body for row in first if (body := _body(row))])
    return None


class Nothing:
    """No records."""

    offset = line = bytes_read = 0

    def __iter__(self) -> Iterator[jsonl.Record | Unreadable]:
        return iter(())


class Rows(jsonl.Reader):
    """The rows of a live session from a number on. They are only ever added, unless the program says that it rewrote them."""

    def __init__(self, found: Found, progress: Progress) -> None:
        super().__init__(found.path, progress, final=True)
        self._session = unquote(found.member)
        self._before = progress.state.get("rows", {})
        self.mark: dict[str, Any] = {}
        """What the next parse must find unchanged."""

    def __iter__(self) -> Iterator[jsonl.Record | Unreadable]:
        with open_read_only(self.path) as db:
            generation = self._generation(db)
            if self.offset and self._before != self._marked(generation, self._at(db, self.offset - 1)):
                raise Reread
            last = self._before.get("last", "")
            sql = f"SELECT * FROM {EVENTS} WHERE session_id = ? AND seq >= ? AND {_NUMBERED} ORDER BY seq"
            for row in db.rows(sql, (self._session, self.offset)):
                body = _body(row)
                yield from self._row(row["seq"], body)
                last = _digest(body)
            self.mark = {"generation": generation, "last": last}

    def _row(self, number: int, body: bytes | None) -> Iterator[jsonl.Record | Unreadable]:
        self.offset = self.line = number
        if body is None:
            yield Unreadable(number + 1, "no record in this row, or a damaged one")
        else:
            self.bytes_read += len(body)
            for item in self._values(body, len(body)):
                yield replace(item, pos=number) if isinstance(item, jsonl.Record) else item
        self.offset = self.line = number + 1

    def _at(self, db: Database, number: int) -> bytes | None:
        sql = f"SELECT * FROM {EVENTS} WHERE session_id = ? AND seq = ?"
        row = next(db.rows(sql, (self._session, number)), None)
        return _body(row) if row is not None else None

    def _generation(self, db: Database) -> str:
        if "generation" not in db.columns(_REWRITTEN):
            return ""
        row = next(db.rows(f"SELECT generation FROM {_REWRITTEN} WHERE session_id = ?", (self._session,)), None)
        return speech.digest(str(row["generation"])) if row is not None else ""

    def _marked(self, generation: str, last: bytes | None) -> dict[str, Any]:
        return {"generation": generation, "last": _digest(last)}


def _digest(body: bytes | None) -> str:
    return hashlib.sha256(body or b"").hexdigest()[:12]


def _body(row: Any) -> bytes | None:
    """A row's record: text, or a zstd frame where it is a long one."""
    held = row.keys()
    plain = row["event_json"] if "event_json" in held else None
    if isinstance(plain, str):
        return plain.encode()
    if isinstance(plain, bytes):
        return plain
    packed = row["event_zstd"] if "event_zstd" in held else None
    if not isinstance(packed, bytes):
        return None
    stream, parts, most = jsonl.decompressed(io.BytesIO(packed)), [], jsonl.LONGEST_LINE + 1
    with suppress(EOFError):
        while most > 0 and (block := stream.read(min(most, jsonl.BLOCK))):
            parts.append(block)
            most -= len(block)
        return None if jsonl.is_torn(stream) else b"".join(parts)
    return None


class Archived(jsonl.Reader):
    """The lines of an archive. One that is not what was put there is said to be so, and read as far as it goes."""

    def __init__(self, found: Found, generation: str) -> None:
        super().__init__(found.path, Progress(), final=True)
        self._session = unquote(found.member.partition("#")[0])
        self._generation = generation

    def __iter__(self) -> Iterator[jsonl.Record | Unreadable]:
        data, checksum = self._archive()
        if not _matches(data, checksum):
            yield Unreadable(0, "the archive does not match its checksum")
        try:
            yield from self._records(_content(data))
        except EOFError as error:
            yield Unreadable(self.line + 1, str(error))

    def _archive(self) -> tuple[bytes, str]:
        with open_read_only(self.path) as db:
            if self._generation == _COLD_MARK:
                return self._cold(db)
            sql = f"SELECT * FROM {_ARCHIVES} WHERE session_id = ? AND generation = ?"
            row = next(db.rows(sql, (self._session, self._generation)), None)
            return _blob(self._found(row)["archive_blob"]), _checksum(row)

    def _cold(self, db: Database) -> tuple[bytes, str]:
        row = self._found(next(db.rows(f"SELECT * FROM {_COLD} WHERE session_id = ?", (self._session,)), None))
        if row["storage"] != "file":
            return _blob(row["archive_blob"]), _checksum(row)
        beside = self.path.parent.parent / "sessions" / "cold" / Path(text_of(row["archive_name"])).name
        with jsonl.open_regular(beside) as file:
            return file.read(), _checksum(row)

    def _found(self, row: Any) -> Any:
        if row is None:
            raise OSError(errno.ENOENT, "the archive is gone", str(self.path))
        return row


def _blob(value: object) -> bytes:
    return value if isinstance(value, bytes) else text_of(value).encode()


def _checksum(row: Any) -> str:
    return text_of(row["archive_sha256"]) if "archive_sha256" in row.keys() else ""  # noqa: SIM118  a row is no mapping


def _content(data: bytes) -> IO[bytes]:
    raw = io.BytesIO(data)
    return jsonl.decompressed(raw) if data.startswith(_ZSTD) else raw


def _matches(data: bytes, checksum: str) -> bool:
    """Whether the checksum is that of the archive as it is kept, or of the lines in it."""
    if not checksum or hashlib.sha256(data).hexdigest() == checksum:
        return True
    told = hashlib.sha256()
    stream = _content(data)
    with suppress(EOFError):
        while block := stream.read(jsonl.BLOCK):
            told.update(block)
    return told.hexdigest() == checksum

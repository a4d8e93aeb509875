"""An OpenClaw agent's database under construction, in the shape its gateway writes."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import zstandard

from tests.archiver.sources.transcripts import Row, encode, entry, header

SCHEMA = """
CREATE TABLE IF NOT EXISTS auth_profile_store (store_key TEXT PRIMARY KEY, store_json TEXT) STRICT;
CREATE TABLE IF NOT EXISTS session_nodes (
    session_key TEXT NOT NULL PRIMARY KEY, current_session_id TEXT NOT NULL, entry_json TEXT NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS session_windows (
    session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL, previous_session_id TEXT, reason TEXT,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER, spawned_by TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS transcript_events (
    session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, created_at INTEGER NOT NULL, event_zstd BLOB,
    PRIMARY KEY (session_id, seq)
) STRICT;
CREATE TABLE IF NOT EXISTS session_transcript_archives (
    session_id TEXT NOT NULL, generation TEXT NOT NULL, session_key TEXT NOT NULL, reason TEXT NOT NULL, encoding TEXT NOT NULL,
    archive_blob BLOB NOT NULL, archive_sha256 TEXT NOT NULL, archive_name TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, generation)
) STRICT;
CREATE TABLE IF NOT EXISTS transcript_rewrite_watermarks (
    session_id TEXT NOT NULL PRIMARY KEY, generation TEXT NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS session_transcript_cold_archives (
    session_id TEXT NOT NULL PRIMARY KEY, generation TEXT NOT NULL, archive_name TEXT NOT NULL, archive_sha256 TEXT NOT NULL,
    archive_bytes INTEGER NOT NULL, archived_at INTEGER NOT NULL, storage TEXT NOT NULL, archive_blob BLOB
) STRICT;
"""
START = 1_772_600_000_000
"""UTC ms; the clock of a store goes on by a second with every change."""


class ClawStore:
    """`agents/<agent>/agent/openclaw-agent.sqlite` in a state folder. Every change is committed and the database closed."""

    def __init__(self, agents: Path, agent: str = "main", *, schema: str = SCHEMA) -> None:
        self.folder = agents / agent
        self.path = self.folder / "agent" / "openclaw-agent.sqlite"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.clock = START
        with self.opened() as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(schema)

    def opened(self) -> closing[sqlite3.Connection]:
        db = sqlite3.connect(self.path, isolation_level=None)
        db.execute("PRAGMA synchronous = OFF")
        return closing(db)

    def run(self, sql: str, *values: Any) -> None:
        with self.opened() as db:
            db.execute(sql, values)

    def now(self) -> int:
        self.clock += 1_000
        return self.clock

    def window(self, session: str, key: str = "agent:main:main", **more: Any) -> None:
        """A new session of a conversation, which is the one in use from now on."""
        now = self.now()
        values = {
            "session_id": session,
            "session_key": key,
            "created_at": now,
            "updated_at": now,
            "reason": "initial",
        } | more
        marks = ", ".join("?" * len(values))
        self.run(f"INSERT OR REPLACE INTO session_windows ({', '.join(values)}) VALUES ({marks})", *values.values())
        self.run("INSERT OR REPLACE INTO session_nodes VALUES (?, ?, '{}', ?)", key, session, now)

    def say(self, session: str, *rows: Row, packed: bool = False) -> None:
        """Records at the end of a session."""
        with self.opened() as db:
            db.execute("BEGIN")
            found = db.execute("SELECT max(seq) FROM transcript_events WHERE session_id = ?", (session,)).fetchone()
            first = 0 if found[0] is None else found[0] + 1
            for number, row in enumerate(rows, first):
                text = row.decode() if isinstance(row, bytes) else json.dumps(row, ensure_ascii=False)
                held = (None, zstandard.compress(text.encode())) if packed else (text, None)
                values = (session, number, held[0], self.now(), held[1])
                db.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?)", values)
            db.execute("COMMIT")

    def talk(self, session: str, *said: str, first: int = 1, **more: Any) -> None:
        """A session with a header, in which a person and the agent speak by turns."""
        self.window(session, **more)
        self.say(session, header(session), *spoken(*said, first=first))

    def archive(self, session: str, reason: str, rows: list[Row], **more: Any) -> str:
        """What a deletion or a reset puts away. Returns the name of the file that repeats it."""
        now = self.now()
        data = encode(rows)
        encoding = more.pop("encoding", "zstd")
        generation = more.pop("generation", hashlib.md5(f"{session}{now}".encode()).hexdigest())
        blob = more.pop("blob", zstandard.compress(data) if encoding == "zstd" else data)
        time = datetime.fromtimestamp(now // 1000, UTC).strftime("%Y-%m-%dT%H-%M-%S.000Z")
        name = f"{session}.jsonl.{reason}.{time}.{generation}{'.zst' if encoding == 'zstd' else ''}"
        checksum = more.pop("checksum", hashlib.sha256(blob).hexdigest())
        values = (session, generation, "agent:main:main", reason, encoding, blob, checksum, name, now)
        self.run(f"INSERT INTO session_transcript_archives VALUES ({', '.join('?' * len(values))})", *values)
        return name

    def put_away(self, session: str, reason: str = "deleted", **more: Any) -> str:
        """Delete or reset a session: its rows go, and an archive of them comes."""
        with self.opened() as db:
            sql = "SELECT event_json FROM transcript_events WHERE session_id = ? ORDER BY seq"
            rows: list[Row] = [row[0].encode() for row in db.execute(sql, (session,))]
        self.run("DELETE FROM transcript_events WHERE session_id = ?", session)
        self.run("DELETE FROM session_windows WHERE session_id = ?", session)
        return self.archive(session, reason, rows, **more)

    def to_reset(self, old: str, new: str, reason: str = "reset", **more: Any) -> None:
        """The conversation goes on under another id."""
        now = self.now()
        self.run("UPDATE session_windows SET ended_at = ? WHERE session_id = ?", now, old)
        self.window(new, previous_session_id=old, reason=reason, **more)


@contextmanager
def locked(path: Path, change: str = "UPDATE transcript_events SET created_at = created_at + 1") -> Iterator[None]:
    """A database held by a writer that keeps everyone out."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN EXCLUSIVE")
        db.execute(change)
        yield
        db.execute("ROLLBACK")


def spoken(*said: str, first: int = 1) -> list[dict[str, Any]]:
    """Entries by turns of a person and the agent, each hung from the one before."""
    rows = []
    for number, text in enumerate(said, first):
        role = "user" if (number - first) % 2 == 0 else "assistant"
        parent = f"0000000{number - 1:x}" if number > first else None
        rows.append(entry(f"0000000{number:x}", role, text, parent, number))
    return rows

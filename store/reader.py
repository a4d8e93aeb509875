"""Every read on a hot path, as one SELECT each over the standard library's sqlite3, read-only.

SQLAlchemy costs 0.25 s to import, which a search or a hook would pay each time. A test prepares every
query here against a migrated database, so a column that moves is noticed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store.errors import REPAIR, WwtError
from store.records import SafeText
from store.trouble import explained

BUSY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class KnownEntry:
    """An active entry as recall ranks it."""

    uid: str
    type: str
    summary: SafeText
    detail: SafeText
    project_id: int | None
    scope: str
    decided_by: str
    reviewed_at: int
    uses: int
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as lists show it. Times are UTC ms; `turns` counts what was said, copies it shares with others included, tool errors left out."""

    id: int
    agent: str
    external_id: str
    project: str
    title: SafeText | None
    cwd: str | None
    branch: str | None
    started_at: int | None
    ended_at: int | None
    status: str
    is_subagent: bool
    turns: int


@dataclass(frozen=True, slots=True)
class DueSession:
    """A session that mining has not seen as it is now. `ended_at` and `changed_at` are UTC ms, `mtime_ns` its newest file's."""

    id: int
    agent: str
    external_id: str
    status: str
    ended_at: int | None
    changed_at: int
    mtime_ns: int | None


_SESSIONS = """
SELECT s.id, s.agent, s.external_id, coalesce(p.name, '') AS project, s.title, s.cwd, s.git_branch, s.started_at, s.ended_at,
       s.status, s.is_subagent, (SELECT count(*) FROM turn t WHERE t.session_id = s.id AND t.role <> 'tool')
       + (SELECT count(*) FROM turn_seen c JOIN turn t ON t.id = c.turn_id WHERE c.session_id = s.id AND t.role <> 'tool') AS turns
FROM session s LEFT JOIN project p ON p.id = s.project_id
"""


def marks(values: Iterable[object]) -> str:
    """`?,?,?` for an IN list of these values."""
    return ",".join("?" for _ in values)


def _whole(parameters: dict[str, Any] | tuple[Any, ...]) -> dict[str, Any] | tuple[Any, ...]:
    """The same with `?` for what is no character."""

    def whole(value: Any) -> Any:
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value

    if isinstance(parameters, dict):
        return {name: whole(value) for name, value in parameters.items()}
    return tuple(whole(value) for value in parameters)


class Reader:
    """A read-only view of the archive. Sees what was committed before each query; never blocks a writer."""

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        try:
            self._db = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=busy_seconds, check_same_thread=False
            )
            self._db.row_factory = sqlite3.Row
            self._db.execute("SELECT 1 FROM alembic_version").fetchone()
        except sqlite3.OperationalError as error:
            raise WwtError("store.cannot_open", path=path, reason=error, exit_code=REPAIR) from error
        except sqlite3.DatabaseError as error:
            raise WwtError("store.not_a_database", path=path, exit_code=REPAIR) from error

    def rows(self, sql: str, parameters: Iterable[Any] | dict[str, Any] = ()) -> list[sqlite3.Row]:
        given = parameters if isinstance(parameters, dict) else tuple(parameters)
        try:
            return self._db.execute(sql, given).fetchall()
        except UnicodeEncodeError:  # a word of the command line that is no UTF-8; nothing stored is like it
            return self._db.execute(sql, _whole(given)).fetchall()
        except sqlite3.DatabaseError as error:
            trouble = explained(error, self.path)
            if trouble is None or "readonly" in str(error):  # writing through a reader is a fault of the program
                raise
            raise trouble from error

    def close(self) -> None:
        self._db.close()

    # --- projects ---

    def project_of_paths(self, paths: Sequence[str]) -> int | None:
        """The project known by the first of these paths that any project is known by."""
        for path in paths:
            found = self.rows(
                "SELECT project_id FROM project_path WHERE path = ? UNION SELECT id FROM project WHERE key = ?",
                (path, path),
            )
            if found:
                return int(found[0][0])
        return None

    def projects(self) -> list[sqlite3.Row]:
        """id, key and name of every project."""
        return self.rows("SELECT id, key, name FROM project ORDER BY name, key")

    # --- recall ---

    def known_entries(self, project_id: int | None) -> list[KnownEntry]:
        """The active entries of a project, and the global ones."""
        found = self.rows(
            """
            SELECT e.uid, e.type, e.summary, e.detail, e.project_id, e.scope, e.decided_by, e.reviewed_at, e.uses,
                   (SELECT group_concat(t.name, char(31)) FROM entry_tag et JOIN tag t ON t.id = et.tag_id WHERE et.entry_id = e.id) AS tags
            FROM entry e WHERE e.status = 'active' AND (e.project_id = ? OR e.scope = 'global')
            """,
            (project_id,),
        )
        return [
            KnownEntry(
                row["uid"], row["type"], SafeText(row["summary"]), SafeText(row["detail"]), row["project_id"], row["scope"],
                row["decided_by"], row["reviewed_at"], row["uses"], tuple((row["tags"] or "").split(chr(31))) if row["tags"] else (),
            )
            for row in found
        ]  # fmt: skip

    def has_entry(self, uid: str) -> bool:
        return bool(self.rows("SELECT 1 FROM entry WHERE uid = ?", (uid,)))

    def entries_from(self, start: str) -> list[str]:
        """Uids that begin so, in their order."""
        found = self.rows("SELECT uid FROM entry WHERE substr(uid, 1, length(?)) = ? ORDER BY uid", (start, start))
        return [row[0] for row in found]

    def tag_counts(self, project_id: int | None = None) -> dict[str, int]:
        """How many active entries carry each tag; of one project, with the global ones."""
        found = self.rows(
            """
            SELECT t.name, count(*) FROM tag t JOIN entry_tag et ON et.tag_id = t.id JOIN entry e ON e.id = et.entry_id
            WHERE e.status = 'active' AND (:project IS NULL OR e.project_id = :project OR e.scope = 'global')
            GROUP BY t.name ORDER BY count(*) DESC, t.name
            """,
            {"project": project_id},
        )
        return {row[0]: row[1] for row in found}

    def recent_tags(self, project_id: int | None, limit: int = 5) -> set[str]:
        """Tags of the entries that the project's last sessions gave."""
        found = self.rows(
            """
            SELECT DISTINCT t.name FROM tag t JOIN entry_tag et ON et.tag_id = t.id JOIN entry e ON e.id = et.entry_id
            WHERE e.session_id IN (SELECT id FROM session WHERE project_id = ? ORDER BY ended_at DESC LIMIT ?)
            """,
            (project_id, limit),
        )
        return {row[0] for row in found}

    def last_session(self, project_id: int) -> SessionRow | None:
        found = self.sessions(
            "WHERE s.project_id = ? AND s.is_subagent = 0 AND s.status <> 'deleted' AND s.ended_at IS NOT NULL"
            " ORDER BY s.ended_at DESC LIMIT 1",
            (project_id,),
        )
        return found[0] if found else None

    # --- sessions ---

    def sessions(self, where: str, parameters: Sequence[Any] = ()) -> list[SessionRow]:
        """Sessions chosen by the rest of a SELECT, which callers write with `?` for every value."""
        return [
            SessionRow(
                row["id"], row["agent"], row["external_id"], row["project"], None if row["title"] is None else SafeText(row["title"]),
                row["cwd"], row["git_branch"], row["started_at"], row["ended_at"], row["status"], bool(row["is_subagent"]), row["turns"],
            )
            for row in self.rows(_SESSIONS + where, parameters)
        ]  # fmt: skip

    def turns(self, session_id: int) -> list[sqlite3.Row]:
        """Every turn of a session with those it shares, in order: ord, role, kind, state, text, time, and whether it is its own."""
        return self.rows(
            """
            SELECT t.ord, t.role, t.kind, t.state, t.text, t.time, t.session_id = :id AS own FROM turn t
            WHERE t.session_id = :id OR t.id IN (SELECT turn_id FROM turn_seen WHERE session_id = :id)
            ORDER BY own, t.session_id, t.ord
            """,
            {"id": session_id},
        )

    def due_sessions(self) -> list[DueSession]:
        """Sessions that changed since they were last distilled, newest first. Subagents never are, and deleted ones only
        where what they said was kept."""
        found = self.rows(
            """
            SELECT s.id, s.agent, s.external_id, s.status, s.ended_at, s.changed_at,
                   (SELECT max(f.mtime_ns) FROM source_file f WHERE f.session_id = s.id) AS mtime_ns
            FROM session s
            WHERE s.is_subagent = 0 AND s.changed_at > coalesce(s.distilled_at, 0)
              AND (s.status <> 'deleted' OR EXISTS (SELECT 1 FROM turn t WHERE t.session_id = s.id))
            ORDER BY s.ended_at DESC
            """
        )
        return [DueSession(*row) for row in found]

    # --- standing ---

    def counts(self) -> dict[str, int]:
        """How much is kept: sessions, turns, chunks and active entries."""
        found = self.rows(
            """
            SELECT (SELECT count(*) FROM session WHERE changed_at > 0 OR ended_at IS NOT NULL) AS sessions, (SELECT count(*) FROM turn) AS turns,
                   (SELECT count(*) FROM chunk) AS chunks, (SELECT count(*) FROM entry WHERE status = 'active') AS entries
            """
        )[0]
        return dict(found)

    def files(self) -> dict[tuple[str, str], sqlite3.Row]:
        """Every known transcript file by agent and path: id, size, mtime_ns, parser_version, missing_since, and `pending`:
        its last line was unfinished when it was read, and might be whole."""
        found = self.rows(
            """
            SELECT id, agent, path, size, mtime_ns, parser_version, missing_since,
                   CASE WHEN offset < size AND path NOT LIKE '%.zst' THEN NOT coalesce(json_extract(parser_state, '$.final'), 0) ELSE 0 END AS pending
            FROM source_file
            """
        )
        return {(row["agent"], row["path"]): row for row in found}

    def deletions(self) -> dict[tuple[str, str], int]:
        """Sessions that were deleted, by agent and id, with the clock (ns) of the newest transcript that said so."""
        found = self.rows(
            "SELECT f.agent, s.external_id, max(f.mtime_ns) FROM source_file f JOIN session s ON s.id = f.session_id"
            " WHERE f.segment = 'deleted' GROUP BY f.agent, s.external_id"
        )
        return {(row[0], row[1]): row[2] for row in found}

    def forgotten_up_to(self, agent: str, external_id: str) -> int | None:
        """UTC ms up to which the user had this session forgotten, or None."""
        found = self.rows("SELECT up_to FROM forgotten WHERE agent = ? AND external_id = ?", (agent, external_id))
        return int(found[0][0]) if found else None

    def has_forgotten(self, start: str) -> bool:
        """Whether the user had a session forgotten whose id begins so."""
        sql = "SELECT 1 FROM forgotten WHERE substr(external_id, 1, length(:start)) = :start LIMIT 1"
        return bool(start and self.rows(sql, {"start": start}))

    def has_forgetting_due(self) -> bool:
        """Whether words of a forgotten session may still stand in some file, since forgetting it was interrupted."""
        return bool(self.rows("SELECT 1 FROM forgotten WHERE due LIMIT 1"))

    def meta(self, key: str) -> str | None:
        found = self.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0][0]) if found else None

"""What `wwt doctor` asks a database: reads only, leaving no file behind."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from store import lookup
from store.reader import Reader

if TYPE_CHECKING:
    from sqlalchemy import Table

OLDEST_SQLITE = (3, 35, 0)
"""The first with RETURNING."""
FAULTS_SHOWN = 5
FAULTS_READ = 100
_OF_A_KEY = re.compile(r"row \d+ missing from index |wrong # of entries in index |non-unique entry in index ")
"""How SQLite says that an index of its own is at odds with its table, which is whole."""


def capable() -> bool:
    """Whether the SQLite of this Python has what the schema and the queries ask for."""
    with closing(sqlite3.connect(":memory:")) as db:
        try:
            found = db.execute("""SELECT json_extract('{"a": 1}', '$.a')""").fetchone()[0]
        except sqlite3.OperationalError:
            return False
    return sqlite3.sqlite_version_info >= OLDEST_SQLITE and found == 1


class Patient(Reader):
    """A Reader of a file that may be anything, on a disk that may be read-only.

    An ordinary connection makes the log's two files where there are none. Without them nobody has the database open,
    so it can be read as the one file it is. Close it before this process opens the file in another way: a connection
    that takes no locks, when it is closed, takes those of the process with it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._alone = not self._log.exists()
        self.partial = False
        """The log could not be read: what was written last is not seen."""
        self._db = self._connected()

    def rows(self, sql: str, parameters: Iterable[Any] | dict[str, Any] = ()) -> list[sqlite3.Row]:
        if self._alone and self._log.exists():  # somebody has begun to write
            self._alone = False
            self._db.close()
            self._db = self._connected()
        given = parameters if isinstance(parameters, dict) else tuple(parameters)
        return self._db.execute(sql, given).fetchall()  # as SQLite reports it: that is what is asked here

    def each(self, sql: str) -> Iterator[sqlite3.Row]:
        """The rows one by one: a table may be larger than memory."""
        yield from self._db.execute(sql)

    def _connected(self) -> sqlite3.Connection:
        """Where the log cannot be opened (a read-only disk), what was folded into the file has to do."""
        try:
            return self._opened("mode=ro&immutable=1" if self._alone else "mode=ro")
        except sqlite3.OperationalError:
            if self._alone:
                raise
            opened = self._opened("mode=ro&immutable=1")
            self.partial = self._log.stat().st_size > 0
            return opened

    def _opened(self, how: str) -> sqlite3.Connection:
        made = sqlite3.connect(f"{self.path.absolute().as_uri()}?{how}", uri=True, timeout=5.0, check_same_thread=False)
        made.row_factory = sqlite3.Row
        try:
            made.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except sqlite3.Error:
            made.close()
            raise
        return made

    @contextmanager
    def moment(self) -> Iterator[None]:
        """What is read inside is of one moment, whoever writes meanwhile."""
        self.rows("BEGIN")
        try:
            yield
        finally:
            self.rows("COMMIT")


@dataclass(frozen=True, slots=True)
class Damage:
    """What SQLite finds wrong with the file, in its own words; `of_keys`: with its indexes alone, its tables are whole."""

    reasons: tuple[str, ...]
    of_keys: bool = False


def damage(patient: Patient) -> Damage | None:
    try:
        rows = patient.rows(f"PRAGMA integrity_check({FAULTS_READ})")
    except sqlite3.DatabaseError as error:
        return Damage((str(error),))
    found = [line for row in rows for line in str(row[0]).splitlines() if not line.startswith("***")]
    if found == ["ok"]:
        return None
    worst = [line for line in found if not _OF_A_KEY.match(line)]
    return Damage(tuple((worst or found)[:FAULTS_SHOWN]), of_keys=not worst)


def revision(patient: Patient) -> str | None:
    """The schema the database stands at; None where it is empty. A foreign one raises LookupError."""
    tables = {row[0] for row in patient.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return None
    found = patient.rows("SELECT version_num FROM alembic_version") if "alembic_version" in tables else []
    if not found:
        raise LookupError(", ".join(sorted(tables)[:FAULTS_SHOWN]))
    return str(found[0][0])


def lacking(patient: Patient) -> list[str]:
    """Tables and columns of the schema that the database does not have."""
    from store.tables import metadata  # noqa: PLC0415  # SQLAlchemy costs 0.25 s

    missing = []
    for table in metadata.sorted_tables:
        held = {row["name"] for row in patient.rows(f"PRAGMA table_info({table.name})")}
        wanted = [column.name for column in table.columns if column.name not in held]
        missing += [f"{table.name}.{name}" for name in wanted] if held else [table.name]
    return missing


def dangling(patient: Patient) -> Counter[tuple[str, str]]:
    """How many rows of a table point to a row of another one that is gone: (table, other)."""
    return Counter((str(row[0]), str(row[2])) for row in patient.rows("PRAGMA foreign_key_check"))


# --- texts -----------------------------------------------------------------------------------------------------------


def undecodable(patient: Patient) -> Counter[str]:
    """How many rows of a table hold bytes that are no text. SQLite's own check does not look inside a text."""
    from store.tables import metadata  # noqa: PLC0415  # SQLAlchemy costs 0.25 s

    found: Counter[str] = Counter()
    for table in metadata.sorted_tables:
        rows = patient.each(undecodable_in(table))
        if broken := sum(not decodable(row[1]) for row in rows):
            found[table.name] = broken
    return found


def undecodable_in(table: Table) -> str:
    """A SELECT of each row's number, and of the bytes of all its texts."""
    from store.tables import text_columns  # noqa: PLC0415  # SQLAlchemy costs 0.25 s

    texts = " || ".join(f"""coalesce("{name}", '')""" for name in text_columns(table))
    return f"SELECT rowid, CAST({texts or 'NULL'} AS BLOB) FROM {table.name}"


def decodable(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


@dataclass(frozen=True, slots=True)
class Silent:
    """A session with turns that no chunk holds, so that searching does not find them."""

    id: int
    agent: str
    external_id: str
    turns: int


_TURNS = """
SELECT session_id, CASE WHEN state = 'abandoned' THEN state WHEN role IN ('tool', 'subagent') THEN role ELSE 'speech' END, ord
FROM turn WHERE trim(text) <> '' ORDER BY 1, 2, 3
"""


def silent_sessions(patient: Patient) -> list[Silent]:
    """Sessions whose turns are not all in chunks. One pass over both tables, whatever the length of a session."""
    with patient.moment():
        turns = patient.each(_TURNS)
        held = patient.each("SELECT session_id, role, first_ord, last_ord FROM chunk ORDER BY 1, 2, 3")
        missing = _uncovered(turns, held)
        names = {row["id"]: row for row in patient.rows("SELECT id, agent, external_id FROM session")}
    return [
        Silent(session, names[session]["agent"], names[session]["external_id"], count)
        for session, count in sorted(missing.items())
        if session in names
    ]


def _uncovered(turns: Iterable[sqlite3.Row], chunks: Iterator[sqlite3.Row]) -> Counter[int]:
    """Turns of each session that no chunk of their kind reaches over; both come by session, kind and number."""
    missing: Counter[int] = Counter()
    kind: tuple[int, str] | None = None
    reached, chunk = 0, next(chunks, None)
    for session, role, number in turns:
        if (session, role) != kind:
            kind, reached = (session, role), 0
        while chunk is not None and (chunk[0], chunk[1], chunk[2]) <= (session, role, number):
            if (chunk[0], chunk[1]) == kind:
                reached = max(reached, chunk[3])
            chunk = next(chunks, None)
        if reached < number:
            missing[session] += 1
    return missing


@dataclass(frozen=True, slots=True)
class Mute:
    """A transcript that was read and gave no turn. `name` is the path, with the member of a database behind a `#`."""

    id: int
    agent: str
    name: str


def mute_files(patient: Patient) -> list[Mute]:
    """Files with something in them whose session has no turn, own or shared; not those whose words the user had dropped."""
    sql = """
        SELECT f.id, f.agent, f.path FROM source_file f LEFT JOIN session s ON s.id = f.session_id
        WHERE f.size > 0 AND coalesce(s.status, '') <> 'deleted' AND f.segment <> 'deleted'
          AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.file_id = f.id OR t.session_id = f.session_id)
          AND NOT EXISTS (SELECT 1 FROM turn_seen c WHERE c.session_id = f.session_id)
          AND NOT EXISTS (SELECT 1 FROM forgotten o WHERE o.agent = s.agent AND o.external_id = s.external_id)
        ORDER BY f.id
        """
    return [Mute(row["id"], row["agent"], row["path"]) for row in patient.rows(sql)]


def half_read_files(patient: Patient) -> list[str]:
    """Transcripts whose reading was stopped in the middle."""
    return [str(row[0]) for row in patient.rows("SELECT path FROM source_file WHERE size < 0 ORDER BY id")]


def vanished_files(patient: Patient) -> int:
    """How many transcripts their agents have cleaned up; their sessions stay."""
    return int(patient.rows("SELECT count(*) FROM source_file WHERE missing_since IS NOT NULL")[0][0])


def ahead(patient: Patient, at: int) -> int:
    """How many sessions and files claim to be of a time after `at` (UTC ms)."""
    sql = """
        SELECT (SELECT count(*) FROM session WHERE ended_at > :at OR started_at > :at)
             + (SELECT count(*) FROM source_file WHERE mtime_ns / 1000000 > :at)
        """
    return int(patient.rows(sql, {"at": at})[0][0])


# --- knowledge -------------------------------------------------------------------------------------------------------


def active_entries(patient: Patient) -> list[sqlite3.Row]:
    """uid, summary and project of the knowledge that is current; of global knowledge the project is 0."""
    sql = """
        SELECT uid, summary, CASE scope WHEN 'global' THEN 0 ELSE coalesce(project_id, -1) END AS project
        FROM entry WHERE status = 'active' ORDER BY id
        """
    return patient.rows(sql)


# --- what the indexes are made from ----------------------------------------------------------------------------------


def refs(patient: Patient) -> set[int]:
    """What the word index should hold: chunks, and entries (negative) that are not retired."""
    sql = "SELECT id FROM chunk UNION ALL SELECT -id FROM entry WHERE status <> 'retired'"
    return {int(row[0]) for row in patient.rows(sql)}


def embedded_refs(patient: Patient, model: str) -> set[int]:
    """What the vector index of a model should hold: speech and current entries with a vector other than zero."""
    sql = """
        SELECT c.id FROM chunk c JOIN vector v ON v.hash = c.hash AND v.model = :model
        WHERE c.role = 'speech' AND v.chunk <> zeroblob(length(v.chunk))
        UNION ALL
        SELECT -e.id FROM entry e JOIN vector v ON v.hash = e.hash AND v.model = :model
        WHERE e.status = 'active' AND v.chunk <> zeroblob(length(v.chunk))
        """
    return {int(row[0]) for row in patient.rows(sql, {"model": model})}


def waiting_refs(patient: Patient) -> set[int]:
    """What an index has not heard of yet."""
    return {one.ref for one in lookup.waiting(patient, -1)}


def orphaned_vectors(patient: Patient) -> int:
    """Vectors of texts that are no longer kept."""
    sql = """
        SELECT count(*) FROM vector v WHERE NOT EXISTS (SELECT 1 FROM chunk c WHERE c.hash = v.hash)
          AND NOT EXISTS (SELECT 1 FROM entry e WHERE e.hash = v.hash)
        """
    return int(patient.rows(sql)[0][0])


def misshapen_vectors(patient: Patient, model: str, dimensions: int) -> int:
    """Vectors whose bytes do not add up to the dimensions of their model."""
    sql = """
        SELECT count(*) FROM vector WHERE model = :model
          AND (length(chunk) <> 2 * :d OR length(sentences) <> n * :d OR length(scales) <> 4 * n)
        """
    return int(patient.rows(sql, {"model": model, "d": dimensions})[0][0])

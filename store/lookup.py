"""What searching and indexing read: one SELECT each over `store.reader`, without SQLAlchemy."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeVar

from store.filters import EVERYWHERE, NO_PROJECT
from store.reader import Reader, marks
from store.records import SafeText

T = TypeVar("T")
NOTHING = SafeText("")

IN_USE = "embedding_model"
"""Where the database names the model that the vector index is of, or is just being made for."""
NEXT_MODEL = "embedding_next"
"""Where it names the one that `wwt rebuild --embedding` is embedding with, beside the one in use."""

AT_ONCE = 500
"""Values of one IN list; SQLite's own limit is far higher, a plan's memory is not."""


@dataclass(frozen=True, slots=True)
class Found:
    """A chunk (`ref` is its id) or an entry (its id, negative), with all that indexes and results show of it.

    `text` of a chunk includes its heading, of an entry it is summary, detail and tags; `hash` names what is embedded.
    Times are UTC ms; `project_id` is what filters compare, see `store.filters`. `first_ord` to `last_ord` are turns.
    """

    ref: int
    text: SafeText
    title: SafeText
    project_id: int
    session_id: int
    time: int
    role: str
    hash: str
    agent: str = ""
    session: str = ""
    project: str = ""
    first_ord: int = 0
    last_ord: int = 0
    part: int = 0
    heading: int = 0
    """Characters of `text` that are the heading and its line break."""
    uid: str = ""
    type: str = ""
    status: str = "active"
    superseded_by: str | None = None
    summary: SafeText = NOTHING
    detail: SafeText = NOTHING
    tags: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return "entry" if self.ref < 0 else "chunk"

    @property
    def passage(self) -> str:
        """What is embedded."""
        return f"{self.summary}\n{self.detail}" if self.ref < 0 else self.text


@dataclass(frozen=True, slots=True)
class Waiting:
    """An outbox row that an index has not applied yet. `ref` as in `Found`."""

    id: int
    ref: int
    op: str
    applied_words: bool
    applied_vectors: bool


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A row of the `vector` table: float16 of the whole, int8 and scales of its `n` sentences."""

    whole: bytes
    sentences: bytes
    scales: bytes
    n: int


_CHUNKS = """
SELECT c.id, c.session_id, c.first_ord, c.last_ord, c.part, c.role, c.heading, c.text, c.hash,
       coalesce(c.time, s.started_at, 0) AS time, coalesce(s.title, '') AS title, s.agent, s.external_id,
       s.project_id, coalesce(p.name, '') AS project
FROM chunk c JOIN session s ON s.id = c.session_id LEFT JOIN project p ON p.id = s.project_id
"""

_ENTRIES = """
SELECT e.id, e.uid, e.type, e.summary, e.detail, e.hash, e.scope, e.status, e.created_at, e.session_id,
       CASE WHEN e.agent <> '' THEN e.agent ELSE coalesce(s.agent, '') END AS agent,
       coalesce(s.external_id, '') AS external_id, e.project_id, coalesce(p.name, '') AS project,
       (SELECT uid FROM entry newer WHERE newer.id = e.superseded_by) AS superseded_by,
       (SELECT min(t.ord) FROM evidence v JOIN turn t ON t.id = v.turn_id
        WHERE v.entry_id = e.id AND t.session_id = e.session_id) AS first_ord,
       (SELECT group_concat(t.name, char(31)) FROM entry_tag et JOIN tag t ON t.id = et.tag_id WHERE et.entry_id = e.id) AS tags
FROM entry e LEFT JOIN session s ON s.id = e.session_id LEFT JOIN project p ON p.id = e.project_id
"""


def _chunk(row: sqlite3.Row) -> Found:
    heading = SafeText(row["heading"])
    text = SafeText(row["text"])
    return Found(
        ref=row["id"],
        text=SafeText.joined("\n", (heading, text)) if heading else text,
        title=SafeText(row["title"]),
        project_id=NO_PROJECT if row["project_id"] is None else row["project_id"],
        session_id=row["session_id"],
        time=row["time"],
        role=row["role"],
        hash=row["hash"],
        agent=row["agent"],
        session=row["external_id"],
        project=row["project"],
        first_ord=row["first_ord"],
        last_ord=row["last_ord"],
        part=row["part"],
        heading=len(heading) + 1 if heading else 0,
    )


def _entry(row: sqlite3.Row) -> Found:
    tags = tuple(row["tags"].split("\x1f")) if row["tags"] else ()
    summary, detail = SafeText(row["summary"]), SafeText(row["detail"])
    own = NO_PROJECT if row["project_id"] is None else row["project_id"]
    return Found(
        ref=-row["id"],
        text=SafeText("\n".join((summary, detail, " ".join(tags)))),
        title=NOTHING,
        project_id=EVERYWHERE if row["scope"] == "global" else own,
        session_id=row["session_id"] or 0,
        time=row["created_at"],
        role="entry",
        hash=row["hash"],
        agent=row["agent"],
        session=row["external_id"],
        project=row["project"],
        first_ord=row["first_ord"] or 0,
        last_ord=row["first_ord"] or 0,
        uid=row["uid"],
        type=row["type"],
        status=row["status"],
        superseded_by=row["superseded_by"],
        summary=summary,
        detail=detail,
        tags=tags,
    )


def found(reader: Reader, refs: Iterable[int]) -> dict[int, Found]:
    """The rows of these refs; one that is gone is simply not in the answer."""
    wanted = list(refs)
    rows: dict[int, Found] = {}
    for sql, ids, read in (
        (_CHUNKS + " WHERE c.id IN ({})", [ref for ref in wanted if ref > 0], _chunk),
        (_ENTRIES + " WHERE e.id IN ({})", [-ref for ref in wanted if ref < 0], _entry),
    ):
        for batch in _batches(ids):
            for row in reader.rows(sql.format(marks(batch)), batch):
                one = read(row)
                rows[one.ref] = one
    return rows


def everything(reader: Reader, *, after: int = 0) -> Iterator[list[Found]]:
    """Every chunk, then every entry that is not retired, in batches by id; those behind the ref `after`, when given."""
    if after >= 0:
        yield from _pages(reader, _CHUNKS + " WHERE c.id > ? ORDER BY c.id LIMIT ?", _chunk, after)
    current = _ENTRIES + " WHERE e.id > ? AND e.status <> 'retired' ORDER BY e.id LIMIT ?"
    yield from _pages(reader, current, _entry, max(0, -after))


def _pages(reader: Reader, sql: str, read: Callable[[sqlite3.Row], Found], after: int) -> Iterator[list[Found]]:
    last = after
    while rows := [read(row) for row in reader.rows(sql, (last, AT_ONCE))]:
        yield rows
        last = abs(rows[-1].ref)


def count(reader: Reader) -> int:
    """How many rows `everything` gives."""
    sql = "SELECT (SELECT count(*) FROM chunk) + (SELECT count(*) FROM entry WHERE status <> 'retired')"
    return int(reader.rows(sql)[0][0])


# --- outbox ---


def waiting(reader: Reader, limit: int, *, newest: bool = False) -> list[Waiting]:
    """Outbox rows that some index has not applied: the oldest of them, or the newest."""
    order = "DESC" if newest else "ASC"
    sql = f"""
        SELECT id, CASE kind WHEN 'entry' THEN -ref ELSE ref END AS ref, op, applied_words, applied_vectors FROM outbox
        WHERE applied_words = 0 OR applied_vectors = 0 ORDER BY id {order} LIMIT ?
        """
    rows = reader.rows(sql, (limit,))
    return [Waiting(r["id"], r["ref"], r["op"], bool(r["applied_words"]), bool(r["applied_vectors"])) for r in rows]


def waiting_count(reader: Reader, most: int | None) -> int:
    """How many outbox rows wait; counted up to `most`, when that is all a caller asks."""
    sql = "SELECT count(*) FROM (SELECT 1 FROM outbox WHERE applied_words = 0 OR applied_vectors = 0 LIMIT ?)"
    return int(reader.rows(sql, (-1 if most is None else most,))[0][0])


def heard_since(reader: Reader, after: int, limit: int) -> list[Waiting]:
    """The oldest outbox rows behind this id, applied ones too."""
    sql = """
        SELECT id, CASE kind WHEN 'entry' THEN -ref ELSE ref END AS ref, op, applied_words, applied_vectors FROM outbox
        WHERE id > ? ORDER BY id LIMIT ?
        """
    rows = reader.rows(sql, (after, limit))
    return [Waiting(r["id"], r["ref"], r["op"], bool(r["applied_words"]), bool(r["applied_vectors"])) for r in rows]


# --- vectors ---


def vectors(reader: Reader, hashes: Iterable[str], model: str) -> dict[str, StoredVector]:
    stored: dict[str, StoredVector] = {}
    for batch in _batches(sorted(set(hashes))):
        sql = f"SELECT hash, chunk, sentences, scales, n FROM vector WHERE model = ? AND hash IN ({marks(batch)})"
        for row in reader.rows(sql, (model, *batch)):
            stored[row["hash"]] = StoredVector(row["chunk"], row["sentences"], row["scales"], row["n"])
    return stored


_UNEMBEDDED_CHUNKS = """
WHERE c.id > ? AND c.role = 'speech' AND trim(c.text) <> ''
  AND NOT EXISTS (SELECT 1 FROM vector v WHERE v.hash = c.hash AND v.model = ?) ORDER BY c.id LIMIT ?
"""
_UNEMBEDDED_ENTRIES = """
WHERE e.id > ? AND e.status = 'active'
  AND NOT EXISTS (SELECT 1 FROM vector v WHERE v.hash = e.hash AND v.model = ?) ORDER BY e.id LIMIT ?
"""


def unembedded(reader: Reader, model: str, *, chunks_after: int, entries_after: int, limit: int) -> list[Found]:
    """The next speech chunks, then active entries, without a vector of the model."""
    rows = [_chunk(row) for row in reader.rows(_CHUNKS + _UNEMBEDDED_CHUNKS, (chunks_after, model, limit))]
    if len(rows) < limit:
        left = limit - len(rows)
        rows += [_entry(row) for row in reader.rows(_ENTRIES + _UNEMBEDDED_ENTRIES, (entries_after, model, left))]
    return rows


def unembedded_count(reader: Reader, model: str) -> int:
    sql = """
        SELECT (SELECT count(*) FROM chunk c WHERE c.role = 'speech' AND trim(c.text) <> ''
                AND NOT EXISTS (SELECT 1 FROM vector v WHERE v.hash = c.hash AND v.model = :model))
             + (SELECT count(*) FROM entry e WHERE e.status = 'active'
                AND NOT EXISTS (SELECT 1 FROM vector v WHERE v.hash = e.hash AND v.model = :model))
        """
    return int(reader.rows(sql, {"model": model})[0][0])


def model_in_use(reader: Reader) -> str | None:
    """The model that the vector index is of, or is just being made for; None before the first."""
    return reader.meta(IN_USE)


def dimensions(reader: Reader, model: str) -> int:
    """How long a vector of the model is, by most of those that are kept; 0 where none are."""
    sql = "SELECT length(chunk) / 2 FROM vector WHERE model = ? GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"
    rows = reader.rows(sql, (model,))
    return int(rows[0][0]) if rows else 0


def has_vectors(reader: Reader) -> bool:
    return bool(reader.rows("SELECT 1 FROM vector LIMIT 1"))


def models(reader: Reader) -> dict[str, int]:
    """How many vectors of each model are kept."""
    return {
        row[0]: row[1] for row in reader.rows("SELECT model, count(*) FROM vector GROUP BY model ORDER BY 2 DESC, 1")
    }


# --- filters and citations ---


def session_ids(reader: Reader, *, agent: str | None, branch: str | None, cwd: str | None) -> frozenset[int]:
    """Sessions of an agent, on a branch, or started in a folder or below it."""
    below = None if cwd is None else cwd.rstrip("/\\")
    sql = """
        SELECT id FROM session
        WHERE (:agent IS NULL OR agent = :agent) AND (:branch IS NULL OR git_branch = :branch)
          AND (:cwd IS NULL OR cwd = :cwd OR substr(cwd, 1, length(:cwd) + 1) IN (:cwd || '/', :cwd || char(92)))
        """
    return frozenset(row[0] for row in reader.rows(sql, {"agent": agent, "branch": branch, "cwd": below}))


def entry_ids(
    reader: Reader, *, agent: str | None, type: str | None, tag: str | None, sessions: frozenset[int] | None
) -> frozenset[int]:
    """Entries that pass these; `sessions`, when given, is where they must come from (or, without one, their agent)."""
    sql = """
        SELECT e.id, e.session_id, e.agent FROM entry e
        WHERE (:type IS NULL OR e.type = :type)
          AND (:tag IS NULL OR EXISTS (SELECT 1 FROM entry_tag et JOIN tag t ON t.id = et.tag_id
                                       WHERE et.entry_id = e.id AND t.name = :tag))
        """
    rows = reader.rows(sql, {"type": type, "tag": tag})
    if sessions is None:
        return frozenset(row["id"] for row in rows)
    return frozenset(
        r["id"] for r in rows if r["session_id"] in sessions or (agent is not None and r["agent"] == agent)
    )


def evidence_turns(reader: Reader, entry_ids: Sequence[int]) -> dict[int, set[tuple[int, int]]]:
    """Where each entry was said: (session id, turn ord), in every session that shows the turn."""
    said: dict[int, set[tuple[int, int]]] = {}
    for batch in _batches(entry_ids):
        sql = f"""
            SELECT v.entry_id, t.session_id, t.ord FROM evidence v JOIN turn t ON t.id = v.turn_id
            WHERE v.entry_id IN ({marks(batch)})
            """
        for row in reader.rows(sql, batch):
            said.setdefault(row["entry_id"], set()).add((row["session_id"], row["ord"]))
    return said


def short_ids(reader: Reader, external_ids: Iterable[str], least: int = 8) -> dict[str, str]:
    """Each of these session ids by its first characters: as many as tell it from every other, and `least` or more."""
    wanted = set(external_ids)
    alike: dict[str, set[str]] = {external_id[:least]: set() for external_id in wanted}
    for batch in _batches(sorted(alike)):
        sql = f"SELECT DISTINCT external_id FROM session WHERE substr(external_id, 1, ?) IN ({marks(batch)})"
        for (external_id,) in reader.rows(sql, (least, *batch)):
            alike[external_id[:least]].add(external_id)
    short = {}
    for external_id in wanted:
        others = alike[external_id[:least]] - {external_id}
        longest = max((_shared(external_id, other) for other in others), default=0)
        short[external_id] = external_id[: max(least, longest + 1)]
    return short


def _shared(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), AT_ONCE):
        yield values[start : start + AT_ONCE]

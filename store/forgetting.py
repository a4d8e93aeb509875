"""Forgetting sessions: all that was said in them goes in one transaction, and a tombstone keeps it from coming back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, exists, func, or_, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from store import chunks, decisions, sessions
from store.outbox import enqueue
from store.records import SafeText
from store.tables import entry, evidence, forgotten, pending_title, project, session, turn, turn_seen
from store.verdicts import in_batches


@dataclass(frozen=True, slots=True)
class Named:
    """A session by the names that outlive its row."""

    agent: str
    external_id: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """What went. `heirs` are sessions that share some of the turns and own them now: their chunks have to be made anew."""

    sessions: int = 0
    turns: int = 0
    heirs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlook:
    """What `drop` would do: the sessions that would go, entries that would lose their source, turns that nobody shares."""

    session_ids: tuple[int, ...]
    entries: int
    turns: int


def drop(tx: Connection, wanted: Iterable[Named], at: int) -> Dropped:
    """Drop these sessions with their subagents: every word, and their rows. Entries stay, and say that their source was forgotten.

    What was said up to `at` (UTC ms), in files that were not read yet too, is not taken in again. A session that is not
    there is passed over.
    """
    doomed = _with_subagents(tx, wanted)
    ids = [row.id for row in doomed]
    if not ids:
        return Dropped()
    tombstones = [_tombstone(tx, row, at) for row in doomed]
    entries, turns, shared = _entries(tx, ids), _turns(tx, ids), _shared(tx, ids)
    for row in doomed:
        chunks.remove(tx, sessions.empty(tx, row.id))
        decisions.forget(tx, row.agent, row.external_id)
    heirs = _owners(tx, shared)
    _tell(tx, entries, shared)
    for batch in in_batches(ids):
        tx.execute(delete(session).where(session.c.id.in_(batch)))
    # Their index rows carry the number of a session that is no more, and that another may get.
    enqueue(tx, "entry", entries, "put")
    _drop_titles(tx, {row.agent for row in doomed})
    _drop_projects(tx, {row.project_id for row in doomed if row.project_id is not None})
    for values in tombstones:
        _mark(tx, values)
    return Dropped(len(ids), turns - len(shared), tuple(heirs))


def due(tx: Connection) -> dict[Named, int]:
    """The sessions whose words may still stand in some file, with the time up to which each was forgotten."""
    rows = tx.execute(select(forgotten).where(forgotten.c.due == 1)).all()
    return {Named(row.agent, row.external_id): row.up_to for row in rows}


def done(tx: Connection, cleaned: dict[Named, int]) -> None:
    """No file holds their words any more. One that was forgotten again meanwhile stays due."""
    for named, up_to in cleaned.items():
        same = and_(forgotten.c.agent == named.agent, forgotten.c.external_id == named.external_id)
        tx.execute(update(forgotten).where(same, forgotten.c.up_to == up_to).values(due=0))


def entomb(tx: Connection, named: Named, up_to: int) -> None:
    """Take nothing in of a session that was said until then (UTC ms), since what it belongs to was forgotten. None of it is here."""
    _mark(tx, {"agent": named.agent, "external_id": named.external_id, "up_to": up_to})


def revived(tx: Connection, session_id: int) -> bool:
    """Whether anything was said since in a session that had been forgotten. If not, its row goes again."""
    said = select(func.count(), func.min(turn.c.time)).select_from(turn)
    own = tx.execute(said.where(turn.c.session_id == session_id)).one()
    seen = tx.execute(said.join(turn_seen).where(turn_seen.c.session_id == session_id)).one()
    if own[0] or seen[0]:
        sessions.widen(tx, session_id, min((time for _, time in (own, seen) if time is not None), default=None), None)
        return True
    row = sessions.get(tx, session_id)
    tx.execute(delete(session).where(session.c.id == session_id))
    _drop_projects(tx, {row.project_id} - {None})
    return False


def outlook(tx: Connection, wanted: Iterable[Named]) -> Outlook:
    ids = [row.id for row in _with_subagents(tx, wanted)]
    return Outlook(tuple(ids), len(_entries(tx, ids)), _turns(tx, ids) - len(_shared(tx, ids)))


def _with_subagents(tx: Connection, wanted: Iterable[Named]) -> list[Row[Any]]:
    c = session.c
    found: dict[int, Row[Any]] = {}
    waiting = [row for named in wanted for row in _rows(tx, named.agent, c.external_id == SafeText(named.external_id))]
    while waiting:
        row = waiting.pop()
        if row.id in found:
            continue
        found[row.id] = row
        # '0' is the character after '/'.
        below = and_(c.external_id > SafeText(f"{row.external_id}/"), c.external_id < SafeText(f"{row.external_id}0"))
        waiting += _rows(tx, row.agent, c.is_subagent == 1, or_(c.parent_id == row.id, below))
    return list(found.values())


def _rows(tx: Connection, agent: str, *tests: Any) -> Sequence[Row[Any]]:
    return tx.execute(select(session).where(session.c.agent == agent, *tests)).all()


def _tombstone(tx: Connection, row: Row[Any], at: int) -> dict[str, Any]:
    """A clock that ran ahead must not bring words back: what goes is older than `up_to`, whatever its time says."""
    latest = tx.execute(select(func.max(turn.c.time)).where(turn.c.session_id == row.id)).scalar()
    up_to = max(at, row.ended_at or 0, latest or 0)
    return {"agent": row.agent, "external_id": row.external_id, "up_to": up_to, "due": 1}


def _mark(tx: Connection, values: dict[str, Any]) -> None:
    statement = upsert(forgotten).values(**values)
    tx.execute(statement.on_conflict_do_update(index_elements=["agent", "external_id"], set_=values))


def _entries(tx: Connection, ids: Sequence[int]) -> list[int]:
    found: list[int] = []
    for batch in in_batches(ids):
        found += tx.execute(select(entry.c.id).where(entry.c.session_id.in_(batch))).scalars()
    return found


def _turns(tx: Connection, ids: Sequence[int]) -> int:
    counts = (select(func.count()).select_from(turn).where(turn.c.session_id.in_(batch)) for batch in in_batches(ids))
    return sum(int(tx.execute(count).scalar_one()) for count in counts)


def _shared(tx: Connection, ids: Sequence[int]) -> list[int]:
    """Turns of these sessions that another one holds too."""
    going, found = set(ids), set()
    for batch in in_batches(ids):
        seen = select(turn_seen).join(turn, turn.c.id == turn_seen.c.turn_id).where(turn.c.session_id.in_(batch))
        found |= {row.turn_id for row in tx.execute(seen) if row.session_id not in going}
    return sorted(found)


def _owners(tx: Connection, turn_ids: Sequence[int]) -> list[int]:
    found: set[int] = set()
    for batch in in_batches(turn_ids):
        found |= set(tx.execute(select(turn.c.session_id).where(turn.c.id.in_(batch)).distinct()).scalars())
    return sorted(found)


def _tell(tx: Connection, entries: Sequence[int], shared: Sequence[int]) -> None:
    """What becomes of the entries: one that rests on a shared turn comes from the session that has it now."""
    for batch in in_batches(entries):
        tx.execute(update(entry).where(entry.c.id.in_(batch)).values(session_id=None, source_forgotten=1))
        # Of turns that were taken back long ago nobody knows the session any more; the entry's own is the likeliest.
        unknown = and_(evidence.c.entry_id.in_(batch), evidence.c.turn_id.is_(None))
        tx.execute(update(evidence).where(unknown).values(quote=None))
    ours = set(entries)
    for batch in in_batches(shared):
        said = select(evidence.c.entry_id, turn.c.session_id).join(turn, turn.c.id == evidence.c.turn_id)
        for row in tx.execute(said.where(turn.c.id.in_(batch))).all():
            if row.entry_id in ours:
                values = {"session_id": row.session_id, "source_forgotten": 0}
                tx.execute(update(entry).where(entry.c.id == row.entry_id).values(**values))


def _drop_titles(tx: Connection, agents: set[str]) -> None:
    """A title that waits for its turn may be of a session that goes: which one, only the turn could tell."""
    tx.execute(delete(pending_title).where(pending_title.c.agent.in_(agents)))


def _drop_projects(tx: Connection, ids: set[int]) -> None:
    """Projects of which nothing is left."""
    used = or_(
        exists().where(session.c.project_id == project.c.id),
        exists().where(entry.c.project_id == project.c.id),
    )
    for batch in in_batches(sorted(ids)):
        tx.execute(delete(project).where(project.c.id.in_(batch), ~used))

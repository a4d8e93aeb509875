"""Forgetting sessions: what is chosen, what would go, and its going from every file."""

from __future__ import annotations

import time
from dataclasses import dataclass

from archiver import erase
from archiver.agents import AGENTS
from archiver.erase import Progress
from archiver.home import Home
from archiver.ingest import rechunk
from archiver.render import one_line
from store import forgetting, sessions
from store.errors import WwtError
from store.forgetting import Named
from store.reader import Reader, SessionRow
from store.records import now_ms

SHORTEST = 4
"""Characters of an id that are enough to look for what begins so."""
LISTED = 20
PATIENCE = 30.0
"""Seconds to wait for another process that writes an index, or cleans up too."""
TRIES = 3
READING = 0.5
"""Seconds until a reader of the database is done, most likely."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Which sessions to forget: those that pass every filter that is set. `before` (UTC ms) is later than anything said in them."""

    sessions: tuple[str, ...] = ()
    project: int | None = None
    agent: str | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What would go: `chosen` with their `subagents`. `findings` wait for review, `entries` stay without their source.

    `gone` are names of sessions that were forgotten before.
    """

    chosen: tuple[SessionRow, ...]
    subagents: int = 0
    turns: int = 0
    findings: int = 0
    entries: int = 0
    backups: int = 0
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What went. `complete` is False where another process kept some file from being cleaned; the next run of wwt does it."""

    sessions: int = 0
    turns: int = 0
    complete: bool = True


def plan(home: Home, wish: Wish) -> Plan:
    """What forgetting the sessions of the wish would do. Nothing is changed. An unknown or ambiguous name is refused."""
    named = {name: _named(home.reader, name, wish.agent) for name in wish.sessions}
    gone = tuple(name for name, row in named.items() if row is None)
    ids = [row.id for row in named.values() if row is not None]
    chosen = _chosen(home.reader, wish, ids) if ids or not wish.sessions else []
    with home.database.transaction() as tx:
        seen = forgetting.outlook(tx, map(_name, chosen))
    keys = {(row.agent, row.external_id) for row in chosen}
    staged = [one.document for one in home.queue.read().staged]
    findings = sum(len(document.entries) for document in staged if (document.agent, document.source_session) in keys)
    subagents = len(seen.session_ids) - len(chosen)
    return Plan(tuple(chosen), subagents, seen.turns, findings, seen.entries, len(erase.backups(home.root)), gone)


def forget(home: Home, plan: Plan, progress: Progress | None = None) -> Outcome:
    """Drop everything said in the chosen sessions, in one transaction, then from the files. Killed in between, the next run
    of a command that writes goes on."""
    home.vault.sync()  # edits are taken over before the entries change under them
    at = now_ms()
    with home.database.transaction() as tx:
        dropped = forgetting.drop(tx, map(_name, plan.chosen), at)
        for heir in dropped.heirs:
            rechunk(tx, heir, sessions.Change(moved=True))
            sessions.refine(tx, heir, changed_at=at)  # what was found in those turns is its finding now
        if dropped.sessions:
            erase.note(tx)
    return Outcome(dropped.sessions, dropped.turns, finish(home, progress))


def finish(home: Home, progress: Progress | None = None) -> bool:
    """Clean every file of what was dropped, also by a run that was interrupted. False while another process is in the way."""
    for _ in range(TRIES):
        if erase.finish(home, progress):
            return True
        derived = home.index.derived
        with derived.lock(PATIENCE, erase.LOCK) as no_other, derived.lock(PATIENCE) as free:
            if not (no_other and free):
                return False
        time.sleep(READING)
    return erase.finish(home, progress)


def _name(row: SessionRow) -> Named:
    return Named(row.agent, row.external_id)


def _chosen(reader: Reader, wish: Wish, ids: list[int]) -> list[SessionRow]:
    """Without names, subagents are left to the sessions that ran them."""
    tests, values = ["1" if ids else "(s.is_subagent = 0 OR s.parent_id IS NULL)"], list[object]()
    for test, value in (
        ("s.project_id = ?", wish.project),
        ("s.agent = ?", wish.agent),
        ("s.ended_at < ?", wish.before),
    ):
        if value is not None:
            tests.append(test)
            values.append(value)
    found = reader.sessions(f"WHERE {' AND '.join(tests)} ORDER BY s.ended_at DESC, s.id DESC", values)
    return [row for row in found if not ids or row.id in ids]


def _named(reader: Reader, wanted: str, agent: str | None) -> SessionRow | None:
    """By whole id, else by a beginning that only one session has. None if it was forgotten before."""
    first, colon, rest = wanted.partition(":")
    if colon and first in {known.id for known in AGENTS}:
        agent, wanted = first, rest
    found = _of(reader, agent, "s.external_id = ?", wanted)
    if not found and len(wanted) >= SHORTEST:
        begun = _of(reader, agent, "substr(s.external_id, 1, length(?1)) = ?1", wanted)
        found = [row for row in begun if not row.is_subagent] or begun
    if len(found) > 1:
        listed = "\n  ".join(
            f"{row.agent}:{row.external_id}  {one_line(row.title or '', 60)}" for row in found[:LISTED]
        )
        raise WwtError("forget.ambiguous", what=wanted, known=listed)
    if not found and not (len(wanted) >= SHORTEST and reader.has_forgotten(wanted)):
        raise WwtError("forget.unknown", what=wanted)
    return found[0] if found else None


def _of(reader: Reader, agent: str | None, test: str, value: str) -> list[SessionRow]:
    found = reader.sessions(f"WHERE {test} ORDER BY s.ended_at DESC", (value,))
    return [row for row in found if agent is None or row.agent == agent]

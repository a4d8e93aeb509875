"""The newest decisions with what they replaced, so that the last ones can be taken back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from store.knowledge import Snapshot
from store.records import Action, SafeText
from store.tables import decision_log
from store.verdicts import Verdict

KEPT = 20
REJECT = "reject"
"""The `action` of a rejection, as `staging.promote.Move` logs it."""


NO_CANDIDATE = SafeText("[]")
"""The `waiting` of a change of an entry."""


@dataclass(frozen=True, slots=True)
class Before:
    """What a decision changed: anchors it judged, the verdicts they had, entries as they stood, and the entry it made.

    `after` is how it left those entries, and the one it made, so that undoing it can tell what was changed since.
    """

    anchors: tuple[str, ...]
    verdicts: tuple[Verdict, ...] = ()
    entries: tuple[Snapshot, ...] = ()
    created: str | None = None
    after: tuple[Snapshot, ...] = ()


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision as logged. `waiting` is JSON: the candidate, and the staging documents it was taken from.

    A change of an entry was about no candidate: that list is empty, and so is `document`.
    """

    id: int
    at: int
    action: str
    document: str
    waiting: SafeText
    before: Before
    entry: str | None


def log(
    tx: Connection, *, at: int, action: str, document: str, waiting: SafeText, before: Before, entry: str | None
) -> Decided:
    """Remember a decision; only the newest `KEPT` stay."""
    # The snapshots' text came out of the database; the rest are hashes and numbers.
    stored = SafeText(json.dumps(asdict(before), ensure_ascii=False))
    row = {"at": at, "action": action, "document": document, "candidate": waiting, "before": stored, "entry_uid": entry}
    made = int(tx.execute(insert(decision_log).returning(decision_log.c.id), row).scalar_one())
    newest = select(decision_log.c.id).order_by(decision_log.c.id.desc()).limit(KEPT).scalar_subquery()
    tx.execute(delete(decision_log).where(decision_log.c.id.not_in(newest)))
    return Decided(made, at, action, document, waiting, before, entry)


def newest(tx: Connection) -> list[Decided]:
    """The decisions that can be taken back, the last one first."""
    rows = tx.execute(select(decision_log).order_by(decision_log.c.id.desc())).all()
    found = (_decided(row) for row in rows)
    return [one for one in found if one is not None]


def moment(tx: Connection, now: int) -> int:
    """The time of the next decision: now, or just after the last one. So its verdicts share a time that no other has."""
    last = tx.execute(select(decision_log.c.at).order_by(decision_log.c.id.desc()).limit(1)).scalar()
    return now if last is None else max(now, last + 1)


def drop(tx: Connection, decision_id: int) -> None:
    tx.execute(delete(decision_log).where(decision_log.c.id == decision_id))


def withhold_quotes(tx: Connection, agent: str, session: str) -> None:
    """The words of this session were deleted: blank its quotes in the log, and let go of its findings that were rejected.

    Those can't be taken back any more; an accepted finding is knowledge now, and stays with its log.
    """
    for decided in newest(tx):
        waiting = json.loads(decided.waiting)
        if decided.action == REJECT and all(_is_of(part, agent, session) for part in waiting):
            drop(tx, decided.id)
            continue
        if not _blank(waiting, agent, session):
            continue
        stored = SafeText(json.dumps(waiting, ensure_ascii=False))  # it was safe before, and only lost words
        tx.execute(update(decision_log).where(decision_log.c.id == decided.id).values(candidate=stored))


def forget(tx: Connection, agent: str, session: str) -> None:
    """Drop the decisions about what this session said: with its words forgotten they can't be taken back.

    One that can't be read can't be taken back either, and may be about it.
    """
    for row in tx.execute(select(decision_log)).all():
        decided = _decided(row)
        if decided is None or any(_is_of(part, agent, session) for part in json.loads(decided.waiting)):
            drop(tx, row.id)


def _is_of(part: dict[str, Any], agent: str, session: str) -> bool:
    return (part["header"]["agent"], part["header"]["source_session"]) == (agent, session)


def _blank(waiting: list[dict[str, Any]], agent: str, session: str) -> bool:
    changed = False
    for part in waiting:
        if _is_of(part, agent, session):
            changed = changed or bool(part["item"]["evidence"])
            part["item"]["evidence"] = []
    return changed


def _decided(row: Row[Any]) -> Decided | None:
    """The row as a decision; None where masking it anew left no valid JSON, so that it can't be taken back."""
    try:
        before = _before(json.loads(row.before))
        json.loads(row.candidate)
    except ValueError:
        return None
    return Decided(row.id, row.at, row.action, row.document, row.candidate, before, row.entry_uid)


def _before(stored: dict[str, Any]) -> Before:
    return Before(
        anchors=tuple(stored["anchors"]),
        verdicts=tuple(Verdict(v["anchor"], Action(v["outcome"]), v["entry"], v["at"]) for v in stored["verdicts"]),
        entries=_snapshots(stored["entries"]),
        created=stored["created"],
        after=_snapshots(stored.get("after", [])),
    )


def _snapshots(stored: list[dict[str, Any]]) -> tuple[Snapshot, ...]:
    lists = ("tags", "anchors", "evidence")
    return tuple(Snapshot(**{**one, **{name: tuple(one[name]) for name in lists}}) for one in stored)

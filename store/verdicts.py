"""What reviewers decided, kept by anchor: the memory that stops a rejected finding from coming back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from store.reader import Reader, marks
from store.records import Action, candidate_id
from store.tables import entry, verdict

BATCH = 500
"""Parameters per statement; SQLite builds as old as 3.31 allow 999."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`entry` is the uid of the knowledge that holds the anchor; None when rejected, or when the entry is gone."""

    anchor: str
    outcome: Action
    entry: str | None
    at: int


Lookup = Callable[[Collection[str]], Mapping[str, Verdict]]


def record(tx: Connection, anchors: Iterable[str], action: Action, entry_id: int | None, at: int) -> None:
    """Give every anchor this verdict; an earlier one of the same anchor is replaced."""
    wanted = sorted(set(anchors))
    take_back(tx, wanted)
    rows = [{"anchor": anchor, "outcome": action.value, "entry_id": entry_id, "at": at} for anchor in wanted]
    if rows:
        tx.execute(insert(verdict), rows)


def take_back(tx: Connection, anchors: Iterable[str]) -> int:
    """Forget the verdicts of these anchors, so that their text may be mined and reviewed again. How many there were."""
    wanted = sorted(set(anchors))
    return sum(tx.execute(delete(verdict).where(verdict.c.anchor.in_(part))).rowcount for part in in_batches(wanted))


def lookup(source: Connection | Reader, anchors: Iterable[str]) -> dict[str, Verdict]:
    """The verdicts among these anchors. Through a Reader it takes no write lock."""
    found: dict[str, Verdict] = {}
    for part in in_batches(sorted(set(anchors))):
        found.update((row.anchor, row) for row in _rows(source, part))
    return found


def lookup_in(path: Path) -> Lookup:
    """A `lookup` in the database file at `path`, opened anew for each call; without a file nothing was decided."""

    def look(anchors: Collection[str]) -> Mapping[str, Verdict]:
        if not anchors or not path.exists():
            return {}
        reader = Reader(path)
        try:
            return lookup(reader, anchors)
        finally:
            reader.close()

    return look


def rejected(tx: Connection) -> list[Verdict]:
    """Every rejection, newest first."""
    query = select(verdict.c.anchor, verdict.c.at).where(verdict.c.outcome == Action.REJECTED.value)
    return [
        Verdict(row.anchor, Action.REJECTED, None, row.at)
        for row in tx.execute(query.order_by(verdict.c.at.desc(), verdict.c.anchor))
    ]


def everything(tx: Connection) -> list[Verdict]:
    """Every verdict by anchor, for the mirror beside the vault."""
    query = select(verdict.c.anchor, verdict.c.outcome, entry.c.uid, verdict.c.at).join_from(
        verdict, entry, verdict.c.entry_id == entry.c.id, isouter=True
    )
    return [_verdict(row) for row in tx.execute(query.order_by(verdict.c.anchor))]


def by_candidate(tx: Connection) -> dict[str, str]:
    """The entry (its uid) that each candidate went into, by the candidate's id. One that was edited first is not found.

    The verdicts of one decision share a time that no other has, so they tell which anchors were one candidate's.
    """
    together: dict[tuple[int, str], list[str]] = {}
    for one in everything(tx):
        if one.entry is not None:
            together.setdefault((one.at, one.entry), []).append(one.anchor)
    return {candidate_id(anchors): uid for (_, uid), anchors in together.items()}


def in_batches(values: Sequence[Any]) -> list[Sequence[Any]]:
    return [values[start : start + BATCH] for start in range(0, len(values), BATCH)]


def _rows(source: Connection | Reader, anchors: Sequence[str]) -> list[Verdict]:
    if isinstance(source, Reader):
        sql = (
            "SELECT v.anchor, v.outcome, e.uid, v.at FROM verdict v LEFT JOIN entry e ON e.id = v.entry_id"
            f" WHERE v.anchor IN ({marks(anchors)})"
        )
        return [_verdict(row) for row in source.rows(sql, anchors)]
    query = select(verdict.c.anchor, verdict.c.outcome, entry.c.uid, verdict.c.at).join_from(
        verdict, entry, verdict.c.entry_id == entry.c.id, isouter=True
    )
    return [_verdict(row) for row in source.execute(query.where(verdict.c.anchor.in_(anchors)))]


def _verdict(row: Any) -> Verdict:
    anchor, outcome, uid, at = row
    return Verdict(anchor, Action(outcome), uid, at)

"""Deleted sessions among the transcripts that a run found: what is read before them, what is gone with them, what stays.

What was said before a deletion goes with it, wherever a copy of it lies; what is said under the same id afterwards stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from archiver.transcript import Found
from store.records import Status

Named = tuple[str, str]
"""A session by its agent and its id, as far as the name of its file, or the database, tells."""


def named(found: Found) -> Named:
    return found.agent, found.session or found.member.partition("#")[0] or found.path.name.partition(".jsonl")[0]


def is_deleted(found: Found) -> bool:
    return found.session_status is Status.DELETED


def in_turn(changed: list[Found]) -> list[Found]:
    """The same transcripts, each session's oldest first, and deleted sessions last."""
    by_session: dict[Named, list[Found]] = {}
    for item in changed:
        by_session.setdefault(named(item), []).append(item)
    groups = sorted(by_session.values(), key=lambda group: any(map(is_deleted, group)))
    return [item for group in groups for item in (sorted(group, key=_written) if len(group) > 1 else group)]


def settled(changed: list[Found], found: Iterable[Found], deletions: Mapping[Named, int]) -> list[Found]:
    """What changed, without what went with an earlier deletion, and with what has to be read again after one of now.

    `deletions` are those of earlier runs, with the clock of each (ns).
    """
    kept = [item for item in changed if is_deleted(item) or not _went(item, deletions)]
    buried: dict[Named, tuple[int, int]] = {}
    for item in kept:
        if is_deleted(item):
            buried[named(item)] = min(_written(item), buried.get(named(item), _written(item)))
    if not buried:
        return kept
    names = {item.name for item in kept}
    others = (item for item in found if item.name not in names and not is_deleted(item) and named(item) in buried)
    return kept + [item for item in others if _written(item) > buried[named(item)] and not _went(item, deletions)]


def said_since(found: Found, order: Iterable[Found]) -> list[Found]:
    """Transcripts of the same session that are read after this deletion of it."""
    at = _written(found)
    return [item for item in order if not is_deleted(item) and named(item) == named(found) and _written(item) > at]


def _went(found: Found, deletions: Mapping[Named, int]) -> bool:
    at = deletions.get(named(found))
    return at is not None and _written(found)[0] <= at


def _written(found: Found) -> tuple[int, int]:
    """When it was last written; what was reset before the deletion comes first, and a live one behind one as old."""
    order = {Status.ACTIVE: 2, Status.ENDED: 2, Status.DELETED: 1}.get(found.session_status, 0)
    try:
        clock = found.size_and_clock()[1]
    except OSError:
        return 0, order
    return (clock, order) if order else (0, clock)

"""Review as the command line and the worker need it: listing, batches, sittings, and taking decisions back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from archiver.vault import Vault
from staging import promote, review
from staging.documents import Broken, Document, Queue
from staging.promote import Desk, Done, Move
from staging.waiting import DAY_MS, Filters, Waiting, Waitlist, settle, waiting
from store import decisions, verdicts
from store.errors import USAGE, WwtError
from store.records import anchor, parse_time

SHORTEST_PREFIX = 6


@dataclass(frozen=True, slots=True)
class Listing:
    """What `review --list` prints: `total` under the filters, and the rows asked for."""

    total: int
    rows: tuple[dict[str, Any], ...]
    broken: tuple[Broken, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """What deciding everything under some filters came to. `merged` were repeats of known entries."""

    accepted: int = 0
    merged: int = 0
    rejected: int = 0
    broken: tuple[Broken, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """One rejection. The words of a rejected candidate are kept only while `undo` may need them."""

    anchors: tuple[str, ...]
    at: int
    summary: str | None


def list_waiting(desk: Desk, filters: Filters, *, limit: int | None = None) -> Listing:
    """What waits under the filters, the most promising first. Writes nothing."""
    found = _waiting(desk, filters)
    return Listing(len(found.items), tuple(row(one) for one in found.items[:limit]), found.broken)


def row(waiting: Waiting) -> dict[str, Any]:
    """A waiting candidate as JSON. The keys are a promise."""
    header, item = waiting.header, waiting.item
    evidence = [e for one in waiting.all for e in one.item.evidence]
    return {
        "id": item.id,
        "type": item.type.value,
        "summary": str(item.summary),
        "detail": str(item.detail),
        "tags": [str(tag) for tag in item.tags],
        "confidence": item.confidence,
        "decided_by": item.decided_by.value,
        "session": header.source_session,
        "agent": header.agent,
        "project": str(header.project),
        "evidence": [{"turn": e.turn, "role": e.role.value, "quote": str(e.quote), "time": e.time} for e in evidence],
        "repeats": item.repeats.model_dump(exclude_none=True) if item.repeats else None,
        "source_status": header.source_status,
        "document": waiting.name,
    }


def sit(
    desk: Desk,
    filters: Filters,
    *,
    ask: review.Ask,
    show: review.Show,
    edit: review.Edit,
    vault: Vault | None = None,
    limit: int = review.BEST,
) -> tuple[review.Tally, tuple[Broken, ...]]:
    """A sitting over what waits under the filters; the vault follows when it ends, however it ends."""
    settle(desk.queue, _lookup(desk))
    found = _waiting(desk, filters)
    try:
        tally = review.review(desk, found.items, ask=ask, show=show, edit=edit, limit=limit)
    finally:
        if vault is not None and found.items:
            vault.sync()
    return tally, found.broken


def accept_all(desk: Desk, filters: Filters, *, limit: int | None = None, vault: Vault | None = None) -> Batch:
    """Accept everything under the filters, or the best `limit` of it, each as its own commit.

    What merely repeats an entry joins it, as it would one at a time; what states something else becomes an entry too.
    """
    # A batch that was cut short left decided items in their documents, and notes unwritten.
    settle(desk.queue, _lookup(desk))
    found = _waiting(desk, filters)
    with desk.database.transaction() as tx:
        entries = verdicts.by_candidate(tx)
    chosen = found.items[:limit]
    done = [_accept(desk, one, entries) for one in _repeated_first(chosen)]
    promote.drop(desk.queue, chosen)
    if vault is not None:
        vault.sync()
    merged = sum(one.decided is not None and one.decided.action == Move.MERGE for one in done)
    accepted = sum(one.decided is not None for one in done) - merged
    return Batch(accepted=accepted, merged=merged, broken=found.broken)


def reject_all(desk: Desk, filters: Filters, *, limit: int | None = None, vault: Vault | None = None) -> Batch:
    """Reject everything under the filters, or the best `limit` of it, each as its own commit."""
    settle(desk.queue, _lookup(desk))
    found = _waiting(desk, filters)
    done = []
    for group in _by_document(found.items[:limit]):
        done += [promote.commit(desk, one, Move.REJECT) for one in group]
        promote.drop(desk.queue, group)
    if vault is not None:
        vault.sync()
    return Batch(rejected=sum(one.decided is not None for one in done), broken=found.broken)


def undo(desk: Desk, *, vault: Vault | None = None) -> Done | None:
    """Take back the last decision; None if there is none. Its note leaves the vault with it."""
    done = promote.undo(desk)
    if done is None or done.decided is None:
        return None
    if vault is not None:
        if done.decided.before.created is not None:
            vault.remove(done.decided.before.created)
        vault.drop_verdicts(done.decided.before.anchors)
        vault.sync()
    return done


def rejected(desk: Desk) -> list[Rejected]:
    """Every rejection, newest first."""
    with desk.database.transaction() as tx:
        rows = verdicts.rejected(tx)
        log = decisions.newest(tx)
    words = {d.at: promote.logged(d, desk.queue.redact).item.summary for d in log if d.action == Move.REJECT}
    by_time: dict[int, list[str]] = {}
    for one in rows:
        by_time.setdefault(one.at, []).append(one.anchor)
    return [Rejected(tuple(anchors), at, words.get(at)) for at, anchors in by_time.items()]


def take_back(desk: Desk, what: str, *, vault: Vault | None = None) -> int:
    """Forget a rejection, so that its text may be mined and reviewed again. How many anchors that freed.

    `what` is the beginning of one of its anchors, or the rejected sentence itself.
    """
    whole = anchor(what)
    found = [
        one
        for one in rejected(desk)
        if any(a == whole or (len(what) >= SHORTEST_PREFIX and a.startswith(what)) for a in one.anchors)
    ]
    if not found:
        raise WwtError("review.no_verdict", what=what, exit_code=USAGE)
    anchors = [a for one in found for a in one.anchors]
    with desk.database.transaction() as tx:
        freed = verdicts.take_back(tx, anchors)
    if vault is not None:
        vault.drop_verdicts(anchors)
    return freed


def expire(queue: Queue, days: int, *, now: int) -> int:
    """Drop what waited longer than `days` and nobody edited; 0 days keeps everything. How many went.

    Their records stay, as if they had been deleted by hand: they come back only when said anew.
    """
    if days <= 0:
        return 0
    limit = now - days * DAY_MS
    old = [s.name for s in queue.read().staged if (parse_time(s.document.archived_at) or now) < limit]
    return sum(_expire(queue, name) for name in old)


def _expire(queue: Queue, name: str) -> int:
    dropped = 0

    def edit(document: Document | None) -> Document | None:
        nonlocal dropped
        if document is None:
            return None
        kept = tuple(item for item in document.entries if item.edited)
        dropped = len(document.entries) - len(kept)
        return document.model_copy(update={"entries": kept})

    queue.change(name, edit)
    return dropped


def _accept(desk: Desk, one: Waiting, entries: dict[str, str]) -> Done:
    """Accept an item; `entries` says which entry each item became, in this batch or before, since others may repeat it."""
    repeats = one.item.repeats
    known = None
    if repeats is not None and not repeats.supersedes:
        known = repeats.entry or entries.get(repeats.waiting or "")
    try:
        done = promote.commit(desk, one, Move.MERGE if known else Move.ACCEPT, known)
    except WwtError as error:
        if error.key != "review.no_entry":
            raise
        done = promote.commit(desk, one, Move.ACCEPT)  # the entry it repeated is gone
    if done.entry is not None:
        entries[one.item.id] = done.entry
    return done


def _repeated_first(items: Sequence[Waiting]) -> list[Waiting]:
    """The items in their order, but none before the one that it repeats: there would be no entry yet for it to join."""
    by_id = {one.item.id: one for one in items}
    placed: dict[int, Waiting] = {}
    for one in items:
        chain: dict[int, Waiting] = {}
        step: Waiting | None = one
        while step is not None and id(step) not in placed and id(step) not in chain:
            chain[id(step)] = step
            repeats = step.item.repeats
            step = by_id.get(repeats.waiting or "") if repeats is not None and not repeats.supersedes else None
        placed |= dict(reversed(chain.items()))
    return list(placed.values())


def _by_document(items: Sequence[Waiting]) -> Sequence[list[Waiting]]:
    """The items by document, so that each is rewritten once; a crash before that is healed by the next read."""
    found: dict[str, list[Waiting]] = {}
    for one in items:
        found.setdefault(one.name, []).append(one)
    return list(found.values())


def _waiting(desk: Desk, filters: Filters) -> Waitlist:
    return waiting(desk.queue, _lookup(desk), filters, now=desk.now())


def _lookup(desk: Desk) -> verdicts.Lookup:
    return verdicts.lookup_in(desk.database.path)

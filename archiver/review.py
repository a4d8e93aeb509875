"""Review as the command line and the worker need it: listing, batches, sittings, and taking decisions back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from archiver.render import one_line
from archiver.vault import Vault
from staging import promote, review
from staging.documents import Broken, Document, Queue
from staging.promote import Desk, Done, Move, Undone
from staging.waiting import DAY_MS, Filters, Waiting, Waitlist, settle, waiting
from store import decisions, knowledge, sessions, verdicts
from store.decisions import Decided
from store.errors import WwtError
from store.records import anchor, parse_time

SHORTEST_PREFIX = 4
EVERYTHING = Filters()
SHOWN = 20
SHOWN_ID = 12
"""Characters of an anchor by which a list names a rejection."""


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
    """One rejection. What was rejected is kept only while `undo` may need it; `decided` is None once it is gone."""

    anchors: tuple[str, ...]
    at: int
    waiting: Waiting | None = None
    decided: Decided | None = None

    @property
    def id(self) -> str:
        return self.anchors[0][:SHOWN_ID]

    @property
    def summary(self) -> str | None:
        return None if self.waiting is None else self.waiting.item.summary


@dataclass(frozen=True, slots=True)
class TakenBack:
    """waiting: rejections whose finding waits for review again; mined: those that the next archive run mines anew,
    from `sessions` sessions."""

    waiting: int = 0
    mined: int = 0
    sessions: int = 0


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


def undo(desk: Desk, *, vault: Vault | None = None) -> Undone | None:
    """Take back the last decision or change; None if there is none. Its note leaves the vault with it.

    What a person wrote into a note counts as done before this, and stays.
    """
    if vault is not None:
        vault.sync()
    done = promote.undo(desk)
    if done is not None and vault is not None:
        _follow(desk, vault, done.decided)
    return done


def _follow(desk: Desk, vault: Vault, taken_back: Decided) -> None:
    """Let the vault follow a decision that was taken back."""
    created = taken_back.before.created
    if created is not None:
        with desk.database.transaction() as tx:
            gone = knowledge.entry_id(tx, created) is None
        if gone:
            vault.remove(created)
    vault.drop_verdicts(taken_back.before.anchors)
    vault.sync()


def rejected(desk: Desk, filters: Filters = EVERYTHING) -> list[Rejected]:
    """The rejections under the filters, newest first; `since` is when they were rejected.

    One whose words are gone belongs to no project, type or session, and is always among them.
    """
    with desk.database.transaction() as tx:
        rows = verdicts.rejected(tx)
        log = {d.at: d for d in decisions.newest(tx) if d.action == Move.REJECT}
    by_time: dict[int, list[str]] = {}
    for one in rows:
        if filters.since is None or one.at >= filters.since:
            by_time.setdefault(one.at, []).append(one.anchor)
    found = [_rejected(desk, at, tuple(anchors), log.get(at)) for at, anchors in by_time.items()]
    said = replace(filters, since=None)
    return [one for one in found if one.waiting is None or said.match(one.waiting)]


def _rejected(desk: Desk, at: int, anchors: tuple[str, ...], decided: Decided | None) -> Rejected:
    # An anchor that was judged again since is no part of the rejection any more, which then can't be undone whole.
    if decided is None or set(anchors) != set(decided.before.anchors):
        return Rejected(anchors, at)
    return Rejected(anchors, at, promote.logged(decided, desk.queue.redact), decided)


def take_back(desk: Desk, names: Sequence[str], *, vault: Vault | None = None) -> TakenBack:
    """Forget rejections, each named by the beginning of one of its anchors or by the rejected sentence itself.

    What is still known goes back to the queue at once; for the others every session is mined again.
    """
    known = rejected(desk)
    chosen = {one.at: one for one in [_named(known, name) for name in names]}
    if vault is not None:
        # First: killed after this, the verdicts stand, and the mirror has them again when it is brought into step.
        vault.drop_verdicts([a for one in chosen.values() for a in one.anchors])
    back = [promote.undo(desk, one.decided) for one in chosen.values() if one.decided is not None]
    unknown = [one for one in chosen.values() if one.decided is None]
    again = 0
    if unknown:
        with desk.database.transaction() as tx:
            verdicts.take_back(tx, [a for one in unknown for a in one.anchors])
            again = sessions.mine_again(tx)
    return TakenBack(len(back), len(unknown), again)


def _named(known: Sequence[Rejected], name: str) -> Rejected:
    sentence, start = anchor(name), name.casefold()
    found = [one for one in known if sentence in one.anchors]
    if not found and len(start) >= SHORTEST_PREFIX:
        found = [one for one in known if any(a.startswith(start) for a in one.anchors)]
    if not found:
        raise WwtError("review.no_verdict", what=name)
    if len(found) > 1:
        listed = "\n  ".join(f"{one.id}  {one_line(one.summary or '', 70)}" for one in found[:SHOWN])
        raise WwtError("review.ambiguous", what=name, known=listed)
    return found[0]


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

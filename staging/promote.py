"""What a reviewer decided, carried out: one transaction in the database, then the document. The only way in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection

from staging.dedup import NEAR, differs, similarity
from staging.documents import Document, Item, Queue, Redact, document_of
from staging.intake import Source, Support
from staging.waiting import Waiting
from store import decisions, knowledge, verdicts
from store.database import Database
from store.decisions import Before, Decided
from store.errors import WwtError
from store.records import Action, Entry, Quote, SafeText, anchor, now_ms

SHORTEST = 6
"""Letters and digits below which a line of an edited entry is too common to stand for it."""


class Move(StrEnum):
    ACCEPT = "accept"
    REJECT = "reject"
    MERGE = "merge"
    SUPERSEDE = "supersede"


@dataclass(frozen=True, slots=True)
class Desk:
    """What deciding needs. `keep_deleted`: quotes of sessions that a user deleted may be kept (a setting)."""

    database: Database
    queue: Queue
    keep_deleted: bool = False
    normalise: knowledge.Normalise = knowledge.fold_tag
    now: Callable[[], int] = now_ms


@dataclass(frozen=True, slots=True)
class Done:
    """`entry` is the uid that holds the finding now. `decided` is None when somebody had decided before us."""

    waiting: Waiting
    entry: str | None
    decided: Decided | None


@dataclass(frozen=True, slots=True)
class Undone:
    """A decision that was taken back. `summaries` are of what it was about.

    `whole`: nothing of it had been changed again meanwhile; what had been stays.
    """

    decided: Decided
    summaries: tuple[str, ...]
    whole: bool = True

    @property
    def reworded(self) -> bool:
        """Whether entries have other words now than before."""
        before = self.decided.before
        left = {one.uid: (one.summary, one.detail) for one in before.after}
        return any(left.get(one.uid) != (one.summary, one.detail) for one in before.entries)


def decide(desk: Desk, waiting: Waiting, move: Move, target: str | None = None) -> Done:
    """Carry out a decision. MERGE and SUPERSEDE name the entry they are about by its uid.

    Killed in between, the database stands and the document catches up when it is read next.
    """
    done = commit(desk, waiting, move, target)
    drop(desk.queue, [waiting])
    return done


def commit(desk: Desk, waiting: Waiting, move: Move, target: str | None = None) -> Done:
    """The database's half of `decide`; `drop` is the other. Twice is the same as once."""
    with desk.database.transaction() as tx:
        if _is_forgotten(tx, waiting.header):  # while it was looked at
            return Done(waiting, None, None)
        earlier = verdicts.lookup(tx, waiting.item.anchors)
        if earlier:
            entry = next((v.entry for v in earlier.values() if v.entry), None)
            if entry is not None and move is not Move.REJECT:
                _add_quotes(tx, desk, entry, waiting)
            return Done(waiting, entry, None)
        return _commit(tx, desk, waiting, move, target)


def drop(queue: Queue, decided: Iterable[Waiting]) -> None:
    """Take decided items, and the same finding in other documents, out of their documents."""
    by_name: dict[str, set[str]] = {}
    for waiting in decided:
        for one in waiting.all:
            by_name.setdefault(one.name, set()).add(one.item.id)
    for name, ids in by_name.items():
        queue.change(name, _dropping(ids))


def save(desk: Desk, waiting: Waiting, item: Item) -> Waiting:
    """Write an edited item back to its document, so that quitting now loses nothing."""
    desk.queue.change(waiting.name, lambda old: old.replaced(item) if old else None)
    return Waiting(waiting.name, waiting.header, item, waiting.also)


def undo(desk: Desk, decided: Decided | None = None, waiting: Waiting | None = None) -> Undone | None:
    """Take back a decision, by default the last one: its verdicts, its entry, and the item is back in its document.

    None if nothing can be taken back. `waiting` is the item as it was on screen; without it the log's copy is used.
    """
    with desk.database.transaction() as tx:
        found = decided or next(iter(decisions.newest(tx)), None)
    if found is None:
        return None
    lead = waiting or logged(found, desk.queue.redact)
    if lead is None:
        with desk.database.transaction() as tx:
            whole = _take_back(tx, found)
        return Undone(found, tuple(one.summary for one in found.before.entries or found.before.after), whole)
    names = {one.name: desk.queue.writable(one.name) for one in lead.all}
    # The document first: a crash in between leaves an item with a verdict, which the next read drops again.
    # The locks are held until the verdict is gone, or a reader could drop the item just before.
    with desk.queue.holding(sorted(names.values())):
        with desk.database.transaction() as tx:
            remembered = [one for one in lead.all if not _is_forgotten(tx, one.header)]
        for one in remembered:
            desk.queue.change(names[one.name], _putting_back(one))
        with desk.database.transaction() as tx:
            whole = _take_back(tx, found)
    return Undone(found, (lead.item.summary,), whole)


def support(tx: Connection, source: Source, supports: Iterable[Support], *, keep_deleted: bool = False) -> int:
    """Add the quotes of a session that said known things again to their entries. How many were new."""
    if knowledge.is_forgotten(tx, source.agent, [source.session]):
        return 0
    kept = keep_deleted or not knowledge.words_are_gone(tx, source.agent, [source.session])
    added = 0
    for one in supports:
        entry_id = knowledge.entry_id(tx, one.entry)
        if entry_id is not None:
            added += knowledge.add_evidence(tx, entry_id, one.evidence, agent=source.agent, keep_quotes=kept)
    return added


def logged(decided: Decided, redact: Redact) -> Waiting | None:
    """The item a decision was about, as the log has it; None for a change of an entry."""
    members = []
    for part in json.loads(decided.waiting):
        document = document_of({**part["header"], "entries": [part["item"]]}, redact)
        header = document.model_copy(update={"entries": ()})
        members.append(Waiting(part["document"], header, document.entries[0]))
    if not members:
        return None
    lead, *also = members
    return Waiting(lead.name, lead.header, lead.item, tuple(also))


def worded_anchors(summary: str, detail: str) -> set[str]:
    """Anchors of what a person words: a summary, a detail, and each line of it."""
    texts = (summary, detail, *detail.splitlines())
    return {anchor(text) for text in texts if sum(c.isalnum() for c in text) >= SHORTEST}


def taken_in(entry: Entry, summary: SafeText, detail: SafeText) -> SafeText:
    """The entry's detail with those of these lines below it that say something it does not say yet."""
    known = [line for line in (entry.summary, *entry.detail.splitlines()) if line.strip()]
    lines = [SafeText(line) for line in (summary, *detail.splitlines()) if line.strip()]
    new = [line for line in lines if not any(_says_it(line, old) for old in known)]
    return SafeText.joined("\n", [part for part in (entry.detail, *new) if part])


def _commit(tx: Connection, desk: Desk, waiting: Waiting, move: Move, target: str | None) -> Done:
    at, item = decisions.moment(tx, desk.now()), waiting.item
    anchors = set(item.anchors)
    # Which entry an edit is, its summary tells; a line of its detail may be said of many things.
    telling = set(anchors)
    if item.edited and move is not Move.REJECT:
        anchors |= worded_anchors(item.summary, item.detail)
        telling |= anchors & {anchor(item.summary)}
    prior = tuple(verdicts.lookup(tx, anchors).values())
    snapshots: tuple[knowledge.Snapshot, ...] = ()
    created: str | None = None
    entry: str | None = None
    action = Action.ACCEPTED
    if move is Move.REJECT:
        action = Action.REJECTED
    elif move is Move.MERGE:
        action, entry = Action.MERGED, _required(target)
        snapshots = (_snapshot(tx, entry),)
        _merge(tx, desk, entry, item, anchors, at)
    else:
        if move is Move.SUPERSEDE:
            snapshots = (_snapshot(tx, _required(target)),)
        held = knowledge.holder(tx, telling)
        if held is not None:
            snapshots = (*snapshots, _snapshot(tx, knowledge.uid_of(tx, held)))
        made = _entry(tx, waiting, at)
        entry_id = knowledge.add_entry(tx, made, telling, normalise=desk.normalise)
        knowledge.hold(tx, entry_id, anchors)
        entry = knowledge.uid_of(tx, entry_id)
        created = made.uid if held is None else None
        if held is not None:
            if item.edited:
                _merge(tx, desk, entry, item, anchors, at)
            _make_current(tx, entry, at)
        if move is Move.SUPERSEDE and entry != target:
            knowledge.supersede(tx, _required(target), entry_id, at=at)
    if entry is not None:
        _add_quotes(tx, desk, entry, waiting)
    held_by = knowledge.entry_id(tx, entry) if entry else None
    verdicts.record(tx, anchors, action, held_by, at)
    left = {uid: _snapshot(tx, uid) for uid in (*(one.uid for one in snapshots), *([created] if created else ()))}
    before = Before(tuple(sorted(anchors)), prior, snapshots, created, tuple(left.values()))
    logged = decisions.log(
        tx,
        at=at,
        action=move.value,
        document=waiting.name,
        waiting=_as_json(tx, desk, waiting),
        before=before,
        entry=entry,
    )
    return Done(waiting, entry, logged)


def _entry(tx: Connection, waiting: Waiting, at: int) -> Entry:
    """The entry an item becomes. Its evidence is added apart, since some quotes may not be kept."""
    item, header = waiting.item, waiting.header
    return Entry(
        uid=knowledge.free_uid(tx),
        type=item.type,
        summary=item.summary,
        detail=item.detail,
        tags=item.tags,
        project=header.project or None,
        scope=item.scope,
        agent=header.agent,
        session=header.source_session or None,
        rule=item.rule,
        confidence=item.confidence,
        decided_by=item.decided_by,
        created_at=waiting.time or at,
        reviewed_at=at,
    )


def _make_current(tx: Connection, uid: str, at: int) -> None:
    """What a person accepts is current, even if the same words were retired or replaced before."""
    entry = knowledge.get(tx, uid)
    if entry is not None and entry.status != "active":
        knowledge.revive(tx, uid, at=at)


def _merge(tx: Connection, desk: Desk, uid: str, item: Item, anchors: set[str], at: int) -> None:
    """The entry keeps its words and takes on the lines of the item that say something it does not say yet."""
    entry = knowledge.get(tx, uid)
    if entry is None:
        raise WwtError("review.no_entry", uid=uid)
    detail = taken_in(entry, item.summary, item.detail)
    knowledge.merge_into(tx, uid, detail=detail, tags=item.tags, anchors=anchors, at=at, normalise=desk.normalise)


def _says_it(line: str, old: str) -> bool:
    return similarity(line, old) >= NEAR and not differs(line, old)


def _add_quotes(tx: Connection, desk: Desk, uid: str, waiting: Waiting) -> None:
    entry_id = knowledge.entry_id(tx, uid)
    if entry_id is None:
        return
    for one in waiting.all:
        quotes: Sequence[Quote] = [e.as_quote() for e in one.item.evidence]
        kept = _may_keep(tx, desk, one)
        knowledge.add_evidence(tx, entry_id, quotes, agent=one.header.agent, keep_quotes=kept)


def _may_keep(tx: Connection, desk: Desk, waiting: Waiting) -> bool:
    """Whether a session's words may stand in the database: not when its user deleted it or had it forgotten."""
    header = waiting.header
    if desk.keep_deleted:
        return not _is_forgotten(tx, header)
    return header.source_status != "deleted" and not knowledge.words_are_gone(tx, header.agent, _sessions(header))


def _is_forgotten(tx: Connection, header: Document) -> bool:
    return knowledge.is_forgotten(tx, header.agent, _sessions(header))


def _sessions(header: Document) -> list[str]:
    return [session for session in (header.source_session, *header.sources) if session]


def _as_json(tx: Connection, desk: Desk, waiting: Waiting) -> SafeText:
    """The item and its documents for the log; all text in it is safe, so the whole is."""
    parts = []
    for one in waiting.all:
        item = one.item if _may_keep(tx, desk, one) else one.item.model_copy(update={"evidence": ()})
        header = one.header.model_dump(mode="json", by_alias=True)
        parts.append({"document": one.name, "header": header, "item": item.model_dump(mode="json")})
    return SafeText(json.dumps(parts, ensure_ascii=False))


def _take_back(tx: Connection, decided: Decided) -> bool:
    """Whether nothing that the decision changed had been changed again since; what had been stays."""
    before = decided.before
    verdicts.take_back(tx, before.anchors)
    for old in before.verdicts:
        held_by = knowledge.entry_id(tx, old.entry) if old.entry else None
        verdicts.record(tx, [old.anchor], old.outcome, held_by, old.at)
    after = {one.uid: one for one in before.after}
    whole = [knowledge.restore(tx, snapshot, after.get(snapshot.uid)) for snapshot in before.entries]
    if before.created is not None:
        whole.append(_unmake(tx, before.created, after.get(before.created)))
    decisions.drop(tx, decided.id)
    return all(whole)


def _unmake(tx: Connection, uid: str, left: knowledge.Snapshot | None) -> bool:
    """Remove the entry that a decision made. One that was worked on since is retired instead, and the answer is False."""
    now = knowledge.snapshot(tx, uid)
    if now is None:
        return True
    if left is not None and _stated(now) != _stated(left):
        knowledge.retire(tx, uid, at=now.reviewed_at)
        return False
    return knowledge.delete_entry(tx, uid)


def _stated(one: knowledge.Snapshot) -> tuple[object, ...]:
    return one.summary, one.detail, one.type, one.tags, one.scope, one.status


def _dropping(ids: set[str]) -> Callable[[Document | None], Document | None]:
    return lambda old: old.without(lambda item: item.id in ids) if old else None


def _putting_back(waiting: Waiting) -> Callable[[Document | None], Document]:
    return lambda old: (old or waiting.header).with_items([waiting.item])


def _snapshot(tx: Connection, uid: str) -> knowledge.Snapshot:
    found = knowledge.snapshot(tx, uid)
    if found is None:
        raise WwtError("review.no_entry", uid=uid)
    return found


def _required(target: str | None) -> str:
    if target is None:
        raise WwtError("review.no_entry", uid="")
    return target

"""What waits for a person: the undecided items of all documents, filtered, ranked, and each said once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from staging.documents import Broken, Document, Item, Queue
from store.records import EntryType, parse_time
from store.verdicts import Lookup

DAY_MS = 86_400_000
HALF_LIFE_DAYS = 30


@dataclass(frozen=True, slots=True)
class Filters:
    """Which items to look at. None means any. `session` matches the id or its beginning; `since` is UTC ms."""

    project: str | None = None
    type: EntryType | None = None
    agent: str | None = None
    session: str | None = None
    since: int | None = None
    min_confidence: float = 0.0

    def match(self, waiting: Waiting) -> bool:
        header, item = waiting.header, waiting.item
        return (
            (self.project is None or header.project == self.project)
            and (self.type is None or item.type is self.type)
            and (self.agent is None or header.agent == self.agent)
            and (self.session is None or _of_session(header, self.session))
            and (self.since is None or waiting.time >= self.since)
            and item.confidence >= self.min_confidence
        )


@dataclass(frozen=True, slots=True)
class Waiting:
    """An item with the document it waits in. `also` holds the same finding from other documents, decided with it."""

    name: str
    header: Document
    item: Item
    also: tuple[Waiting, ...] = ()

    @property
    def time(self) -> int:
        """When it was said last, else when its session was archived; UTC ms, 0 if nothing tells."""
        said = [parse_time(e.time) or 0 for e in self.item.evidence]
        return max(said, default=0) or parse_time(self.header.archived_at) or 0

    @property
    def all(self) -> tuple[Waiting, ...]:
        return (self, *self.also)


@dataclass(frozen=True, slots=True)
class Waitlist:
    items: tuple[Waiting, ...]
    broken: tuple[Broken, ...]


def waiting(queue: Queue, verdicts: Lookup, filters: Filters = Filters(), *, now: int) -> Waitlist:
    """Undecided items under the filters, the most promising first. Writes nothing."""
    reading = queue.read()
    found = [
        Waiting(staged.name, _header(staged.document), item)
        for staged in reading.staged
        for item in staged.document.entries
    ]
    decided = verdicts([a for w in found for a in w.item.anchors])
    open_ones = [w for w in found if not any(a in decided for a in w.item.anchors)]
    groups = _grouped(sorted(open_ones, key=lambda w: (-w.item.confidence, w.name, w.item.id)))
    chosen = [w for w in (_led_by_match(group, filters) for group in groups) if w is not None]
    return Waitlist(tuple(sorted(chosen, key=lambda w: -score(w, now))), reading.broken)


def settle(queue: Queue, verdicts: Lookup) -> int:
    """Drop from the documents what carries a verdict: a crash came between a decision and its document. How many."""
    reading = queue.read()
    decided = verdicts([a for s in reading.staged for item in s.document.entries for a in item.anchors])
    stale = [s for s in reading.staged if any(a in decided for item in s.document.entries for a in item.anchors)]
    return sum(_settle(queue, s.name, verdicts) for s in stale)


def score(waiting: Waiting, now: int) -> float:
    """Confidence, plus up to 0.2 for how lately it was said and 0.1 for every doubling of the sessions that say it."""
    age_days = max(0, now - waiting.time) / DAY_MS
    return waiting.item.confidence + 0.2 * float(0.5 ** (age_days / HALF_LIFE_DAYS)) + 0.1 * math.log2(len(waiting.all))


def _settle(queue: Queue, name: str, verdicts: Lookup) -> int:
    dropped = 0

    def edit(old: Document | None) -> Document | None:
        nonlocal dropped
        if old is None:
            return None
        # Asked again under the lock: `undo` holds it while it puts an item back and takes its verdict away.
        decided = verdicts([a for item in old.entries for a in item.anchors])
        new = old.without(lambda item: any(a in decided for a in item.anchors))
        dropped = len(old.entries) - len(new.entries)
        return new

    queue.change(name, edit)
    return dropped


def _grouped(items: Sequence[Waiting]) -> Iterable[Waiting]:
    """Every finding once: the first that holds an anchor leads, later ones with one of its anchors go along."""
    by_anchor: dict[str, list[Waiting]] = {}
    for one in items:
        for anchor in one.item.anchors:
            by_anchor.setdefault(anchor, []).append(one)
    taken: set[int] = set()
    for lead in items:
        if id(lead) in taken:
            continue
        same = [w for a in lead.item.anchors for w in by_anchor[a] if w is not lead and id(w) not in taken]
        also = tuple({id(w): w for w in same}.values())
        taken.update(id(w) for w in (lead, *also))
        yield replace(lead, also=also)


def _led_by_match(group: Waiting, filters: Filters) -> Waiting | None:
    """The group with a member in front that passes the filters, or None."""
    members = group.all
    lead = next((w for w in members if filters.match(w)), None)
    if lead is None or lead is group:
        return lead
    rest = tuple(replace(w, also=()) for w in members if w is not lead)
    return replace(lead, also=rest)


def _of_session(header: Document, session: str) -> bool:
    return any(known.startswith(session) for known in (header.source_session, *header.sources) if known)


def _header(document: Document) -> Document:
    return document.model_copy(update={"entries": (), "written": ()})

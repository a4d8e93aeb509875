"""Knowledge that comes from another archive, or back into this one after a loss: what reviewing never has to write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, exists, func, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from store import forgetting, knowledge, sessions, verdicts
from store.embeddings import drop_unshared
from store.outbox import enqueue
from store.records import Action, Entry, Quote, SafeText, Status, anchor
from store.tables import entry as entries
from store.tables import entry_anchor, forgotten, project, project_path, session, turn, turn_seen
from store.verdicts import Verdict, in_batches


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A session that its user had forgotten: nothing said in it up to then (UTC ms) is taken in again."""

    agent: str
    session: str
    up_to: int


def put(tx: Connection, entry: Entry, *, normalise: knowledge.Normalise) -> None:
    """Take in an entry that this archive does not have, under its own uid.

    Its session is entered by name, so that entry and session find each other once the transcript is archived. What its
    user had forgotten here stays forgotten, whatever the entry brings.
    """
    entry = _without_what_is_gone(tx, entry)
    if entry.session:
        sessions.ensure(tx, entry.agent, SafeText(entry.session), status=Status.ENDED.value)
    # What replaced it may not be there yet: `link` follows.
    knowledge.add_entry(tx, replace(entry, superseded_by=None), [], normalise=normalise)


def change(tx: Connection, entry: Entry, *, at: int, normalise: knowledge.Normalise) -> Entry:
    """Give the entry of this uid these words, tags, type, scope and standing, as reviewed `at` (UTC ms)."""
    found = tx.execute(select(entries.c.id, entries.c.hash).where(entries.c.uid == entry.uid)).one()
    values: dict[str, object] = {
        "type": entry.type.value,
        "summary": entry.summary,
        "detail": entry.detail,
        "hash": knowledge.text_hash(entry.summary, entry.detail),
        "scope": entry.scope.value,
        "status": entry.status,
        "reviewed_at": at,
    }
    if entry.status != "superseded":
        values["superseded_by"] = None
    elif entry.superseded_by and (newer := knowledge.entry_id(tx, entry.superseded_by)) not in (None, found.id):
        values["superseded_by"] = newer
    tx.execute(update(entries).where(entries.c.id == found.id).values(**values))
    knowledge.set_tags(tx, found.id, entry.tags, normalise=normalise)
    drop_unshared(tx, [found.hash])
    enqueue(tx, "entry", [found.id], "put")
    return knowledge.get(tx, entry.uid) or entry


def support(tx: Connection, entry: Entry, brought: Entry) -> int:
    """Add the evidence that only the other archive has. How much that was. No quote comes back that was dropped here."""
    known = {(quote.turn, words) for quote in entry.evidence for words in (_squeezed(quote), "")}
    fresh = tuple(quote for quote in brought.evidence if (quote.turn, _squeezed(quote)) not in known)
    found = knowledge.entry_id(tx, entry.uid) if fresh else None
    if found is None:
        return 0
    theirs = _without_what_is_gone(tx, replace(brought, evidence=fresh)).evidence
    return knowledge.add_evidence(tx, found, theirs, agent=entry.agent)


def move(tx: Connection, uid: str, key: str) -> bool:
    """Let the entry belong to the project of this key, if there is one."""
    place = tx.execute(select(project.c.id).where(project.c.key == SafeText(key))).scalar()
    found = knowledge.entry_id(tx, uid)
    if place is None or found is None:
        return False
    tx.execute(update(entries).where(entries.c.id == found).values(project_id=place))
    enqueue(tx, "entry", [found], "put")
    return True


def link(tx: Connection, uid: str, newer: str) -> bool:
    """Say what replaced a superseded entry, where that is known by now and was not said. Whether it was said now."""
    newer_id = knowledge.entry_id(tx, newer)
    c = entries.c
    same = (c.uid == uid, c.status == "superseded", c.superseded_by.is_(None), c.id != newer_id)
    return newer_id is not None and bool(
        tx.execute(update(entries).where(*same).values(superseded_by=newer_id)).rowcount
    )


def twin(tx: Connection, entry: Entry) -> str | None:
    """Another entry of this archive that says the same in the same project and has the same standing."""
    c = entries.c
    query = select(c.uid).join(project, project.c.id == c.project_id, isouter=True)
    query = query.where(
        c.hash == knowledge.text_hash(entry.summary, entry.detail),
        c.uid != entry.uid,
        c.status == entry.status,
        func.coalesce(project.c.key, "") == SafeText(entry.project or ""),
    )
    return tx.execute(query.order_by(c.id)).scalars().first()


def is_project(tx: Connection, key: str) -> str | None:
    """The key of the project that is known by this folder."""
    path = SafeText(key)
    by_path = select(project.c.key).join(project_path, project_path.c.project_id == project.c.id)
    found = tx.execute(by_path.where(project_path.c.path == path)).scalar()
    return found or tx.execute(select(project.c.key).where(project.c.key == path)).scalar()


def lived_in(tx: Connection, *, key: str | None = None, name: str | None = None) -> list[str]:
    """Keys of the projects of this key or name (in any case) in which a session was archived."""
    archived = exists().where(session.c.project_id == project.c.id, session.c.changed_at > 0)
    query = select(project.c.key, project.c.name).where(archived)
    rows = tx.execute(query if key is None else query.where(project.c.key == SafeText(key))).all()
    return [row.key for row in rows if name is None or row.name.casefold() == name.casefold()]


def bring_verdicts(tx: Connection, brought: Sequence[Verdict]) -> int:
    """Take in the verdicts that this archive lacks. How many that were.

    What was decided here stays, but for a rejection that another archive took back by accepting the finding later. A
    verdict whose entry was missing is tied to it when it is there.
    """
    uids = _ids(tx, {v.entry for v in brought if v.entry})
    present = verdicts.lookup(tx, [v.anchor for v in brought])
    fresh: dict[tuple[Action, int | None, int], list[str]] = defaultdict(list)
    held: dict[int, list[str]] = defaultdict(list)
    for one in brought:
        entry_id, known = uids.get(one.entry or ""), present.get(one.anchor)
        if known is None or _outdone(known, one, there=entry_id is not None):
            fresh[one.outcome, entry_id, one.at].append(one.anchor)
        elif known.entry != one.entry:
            continue
        if entry_id is not None and one.outcome is not Action.REJECTED:
            held[entry_id].append(one.anchor)
    for (outcome, entry_id, at), anchors in fresh.items():
        verdicts.record(tx, anchors, outcome, entry_id, at)
    for holder, anchors in held.items():
        knowledge.hold(tx, holder, anchors)
    return sum(map(len, fresh.values()))


def vouch(tx: Connection, uids: Sequence[str]) -> None:
    """Entries that came without verdicts stand for their own sentence, unless something was decided about that."""
    lone = ~exists().where(entry_anchor.c.entry_id == entries.c.id)
    for part in in_batches(uids):
        columns = (entries.c.id, entries.c.summary, entries.c.reviewed_at)
        for row in tx.execute(select(*columns).where(entries.c.uid.in_(part), lone)).all():
            name = anchor(row.summary)
            if not verdicts.lookup(tx, [name]):
                knowledge.hold(tx, row.id, [name])
                verdicts.record(tx, [name], Action.ACCEPTED, row.id, row.reviewed_at)


def every_forgotten(tx: Connection) -> list[Forgotten]:
    return [Forgotten(row.agent, row.external_id, row.up_to) for row in tx.execute(select(forgotten))]


def bring_forgotten(tx: Connection, brought: Iterable[Forgotten]) -> int:
    """Let what was forgotten stay so, where nothing that was said in the session is here.

    How many sessions only entries knew: these keep none of its words, and no file may.
    """
    emptied = 0
    for one in brought:
        found = sessions.find(tx, one.agent, one.session)
        if found is None:
            values = {"agent": one.agent, "external_id": SafeText(one.session), "up_to": one.up_to}
            taken = upsert(forgotten).values(**values)
            earlier = forgotten.c.up_to < one.up_to
            tx.execute(taken.on_conflict_do_update(["agent", "external_id"], set_={"up_to": one.up_to}, where=earlier))
        elif not _was_archived(tx, found):
            forgetting.drop(tx, [forgetting.Named(one.agent, SafeText(one.session))], one.up_to)
            emptied += 1
    return emptied


def _was_archived(tx: Connection, session_id: int) -> bool:
    said = exists().where(turn.c.session_id == session_id) | exists().where(turn_seen.c.session_id == session_id)
    return bool(tx.execute(select(said)).scalar())


def _without_what_is_gone(tx: Connection, entry: Entry) -> Entry:
    if entry.session is None:
        return entry
    up_to = sessions.forgotten_up_to(tx, entry.agent, entry.session)
    deleted = knowledge.words_are_gone(tx, entry.agent, [entry.session])
    if up_to is None and not deleted:
        return entry
    said_since = [up_to is not None and (quote.time or 0) > up_to for quote in entry.evidence]
    quotes = tuple(
        quote if since and not deleted else replace(quote, quote=SafeText(""))
        for quote, since in zip(entry.evidence, said_since, strict=True)
    )
    if up_to is None or any(said_since):
        return replace(entry, evidence=quotes)
    return replace(entry, evidence=quotes, session=None, source_forgotten=True)


def _outdone(known: Verdict, brought: Verdict, *, there: bool) -> bool:
    if not there or brought.outcome is Action.REJECTED:
        return False
    return known.entry is None and (known.outcome is not Action.REJECTED or brought.at > known.at)


def _squeezed(quote: Quote) -> str:
    return "".join(quote.quote.split())


def _ids(tx: Connection, uids: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in in_batches(sorted(uids)):
        rows = tx.execute(select(entries.c.uid, entries.c.id).where(entries.c.uid.in_(part)))
        found |= {row.uid: row.id for row in rows}
    return found

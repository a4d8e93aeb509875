"""Reviewed knowledge: entries with their tags, anchors and evidence."""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, delete, exists, func, insert, or_, select, update

from store import projects
from store.embeddings import drop_unshared
from store.outbox import enqueue
from store.records import Action, DecidedBy, Entry, EntryType, Quote, Role, SafeText, Scope
from store.tables import entry as entries
from store.tables import entry_anchor, entry_tag, evidence, forgotten, project, session, tag, turn, verdict
from store.verdicts import in_batches

_LETTERS = "abcdefghjkmnpqrstvwxyz"
_UID_LENGTH = 8

Normalise = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Filters:
    """Which entries to list. None means any; `project` (its key) takes global entries in as well."""

    project: str | None = None
    type: EntryType | None = None
    tag: str | None = None
    agent: str | None = None
    status: str | None = "active"
    since: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An entry as it stood before a decision changed it: what `restore` needs, quotes left out."""

    uid: str
    summary: str
    detail: str
    type: str
    scope: str
    status: str
    superseded_by: str | None
    reviewed_at: int
    tags: tuple[str, ...]
    anchors: tuple[str, ...]
    evidence: tuple[int, ...]


def new_uid() -> str:
    """Eight random characters that begin with a letter, so that no YAML or spreadsheet takes them for a number."""
    rest = "".join(secrets.choice(_LETTERS + "0123456789") for _ in range(_UID_LENGTH - 1))
    return secrets.choice(_LETTERS) + rest


def free_uid(tx: Connection) -> str:
    uid = new_uid()
    while entry_id(tx, uid) is not None:
        uid = new_uid()
    return uid


def text_hash(summary: str, detail: str) -> str:
    """Hash of the text that is embedded for an entry."""
    return hashlib.sha256(f"{summary}\n{detail}".encode("utf-8", "replace")).hexdigest()


def fold_tag(name: str) -> str:
    """`DB`, ` db ` and `ＤＢ` are one tag."""
    folded = unicodedata.normalize("NFKC", name).casefold().strip().lstrip("#")
    return "-".join(folded.split())


def add_entry(tx: Connection, entry: Entry, anchors: Iterable[str], *, normalise: Normalise = fold_tag) -> int:
    """The id of the row that holds this knowledge: a new one, or the entry that was accepted for one of these anchors.

    So promoting twice, by whichever way and after whichever crash, leaves one row.
    """
    wanted = sorted(set(anchors))
    held = holder(tx, wanted)
    if held is None:
        held = _insert(tx, entry)
        set_tags(tx, held, entry.tags, normalise=normalise)
    hold(tx, held, wanted)
    add_evidence(tx, held, entry.evidence, agent=entry.agent)
    enqueue(tx, "entry", [held], "put")
    return held


def holder(tx: Connection, anchors: Iterable[str]) -> int | None:
    """The oldest entry that one of these anchors was accepted or merged into."""
    found: list[int] = []
    for part in in_batches(sorted(set(anchors))):
        query = select(verdict.c.entry_id).where(
            verdict.c.anchor.in_(part),
            verdict.c.entry_id.is_not(None),
            verdict.c.outcome.in_((Action.ACCEPTED.value, Action.MERGED.value)),
        )
        found += tx.execute(query).scalars()
    return min(found, default=None)


def hold(tx: Connection, entry_id: int, anchors: Iterable[str]) -> None:
    """Let the entry stand for these anchors too."""
    present = set(tx.execute(select(entry_anchor.c.anchor).where(entry_anchor.c.entry_id == entry_id)).scalars())
    rows = [{"entry_id": entry_id, "anchor": anchor} for anchor in sorted(set(anchors) - present)]
    if rows:
        tx.execute(insert(entry_anchor), rows)


def add_evidence(
    tx: Connection, entry_id: int, quotes: Iterable[Quote], *, agent: str, keep_quotes: bool = True
) -> int:
    """Add what the entry does not have yet; how many that was. Without `keep_quotes` only turn, role and time are kept."""
    query = select(evidence.c.turn_key, evidence.c.quote).where(evidence.c.entry_id == entry_id)
    present = {(row.turn_key, row.quote) for row in tx.execute(query)}
    rows = []
    for quote in quotes:
        kept = quote.quote if keep_quotes and quote.quote else None
        if (quote.turn, kept) in present or (quote.turn, None) in present:
            continue
        present.add((quote.turn, kept))
        found = _turn_id(tx, agent, quote.turn)
        rows.append(
            {
                "entry_id": entry_id,
                "turn_id": found,
                "turn_key": quote.turn,
                "role": quote.role.value,
                "quote": kept,
                "time": quote.time,
            }
        )
    if rows:
        tx.execute(insert(evidence), rows)
        enqueue(tx, "entry", [entry_id], "put")
    return len(rows)


def update_entry(
    tx: Connection,
    uid: str,
    *,
    at: int,
    summary: SafeText | None = None,
    detail: SafeText | None = None,
    type: EntryType | None = None,
) -> bool:
    """Change the words or the type of an entry; False if there is no such entry."""
    current = get(tx, uid)
    if current is None:
        return False
    new_summary = current.summary if summary is None else summary
    new_detail = current.detail if detail is None else detail
    return _change(
        tx,
        uid,
        summary=new_summary,
        detail=new_detail,
        hash=text_hash(new_summary, new_detail),
        type=(type or current.type).value,
        reviewed_at=at,
    )


def merge_into(
    tx: Connection,
    uid: str,
    *,
    detail: SafeText,
    tags: Sequence[str],
    anchors: Iterable[str],
    at: int,
    normalise: Normalise = fold_tag,
) -> int | None:
    """Let an entry take a finding in: its detail becomes `detail`, tags and anchors are added. The entry's id, or None."""
    current = get(tx, uid)
    found = entry_id(tx, uid)
    if current is None or found is None:
        return None
    update_entry(tx, uid, detail=detail, at=at)
    set_tags(tx, found, (*current.tags, *tags), normalise=normalise)
    hold(tx, found, anchors)
    return found


def supersede(tx: Connection, old_uid: str, new_id: int, *, at: int) -> bool:
    """Mark the old entry as replaced; it stays findable, below its replacement, and is no longer recalled."""
    return _change(tx, old_uid, status="superseded", superseded_by=new_id, reviewed_at=at)


def retire(tx: Connection, uid: str, *, at: int) -> bool:
    return _change(tx, uid, status="retired", reviewed_at=at)


def revive(tx: Connection, uid: str, *, at: int) -> bool:
    """Make a retired or superseded entry current again."""
    return _change(tx, uid, status="active", superseded_by=None, reviewed_at=at)


def set_scope(tx: Connection, uid: str, scope: Scope, *, at: int) -> bool:
    return _change(tx, uid, scope=scope.value, reviewed_at=at)


def retag(tx: Connection, uid: str, tags: Iterable[str], *, at: int, normalise: Normalise = fold_tag) -> bool:
    """Replace the tags of an entry."""
    found = entry_id(tx, uid)
    if found is None:
        return False
    set_tags(tx, found, tags, normalise=normalise)
    return _change(tx, uid, reviewed_at=at)


def set_tags(tx: Connection, entry_id: int, tags: Iterable[str], *, normalise: Normalise = fold_tag) -> None:
    """The tags of the entry, in this order, each once. Tag names that nothing uses any more are removed."""
    # Folding case and width of text that was redacted can't bring a secret back.
    names = list(dict.fromkeys(SafeText(name) for name in map(normalise, tags) if name))
    tx.execute(delete(entry_tag).where(entry_tag.c.entry_id == entry_id))
    rows = [{"entry_id": entry_id, "tag_id": _tag_id(tx, name), "place": place} for place, name in enumerate(names)]
    if rows:
        tx.execute(insert(entry_tag), rows)
    tx.execute(delete(tag).where(tag.c.id.not_in(select(entry_tag.c.tag_id))))


def reindex(tx: Connection, entry_id: int) -> None:
    """Bring the hash and the indexes to an entry's words after they were changed in place."""
    row = tx.execute(select(entries.c.summary, entries.c.detail, entries.c.hash).where(entries.c.id == entry_id)).one()
    tx.execute(update(entries).where(entries.c.id == entry_id).values(hash=text_hash(row.summary, row.detail)))
    drop_unshared(tx, [row.hash])
    enqueue(tx, "entry", [entry_id], "put")


def delete_entry(tx: Connection, uid: str) -> bool:
    """Remove an entry altogether. Only undoing its acceptance does that; knowledge that went stale is retired."""
    found = entry_id(tx, uid)
    if found is None:
        return False
    embedded = tx.execute(select(entries.c.hash).where(entries.c.id == found)).scalars().all()
    tx.execute(delete(entries).where(entries.c.id == found))
    drop_unshared(tx, embedded)
    tx.execute(delete(tag).where(tag.c.id.not_in(select(entry_tag.c.tag_id))))
    enqueue(tx, "entry", [found], "delete")
    return True


def entry_id(tx: Connection, uid: str) -> int | None:
    return tx.execute(select(entries.c.id).where(entries.c.uid == uid)).scalar_one_or_none()


def uid_of(tx: Connection, entry_id: int) -> str:
    return str(tx.execute(select(entries.c.uid).where(entries.c.id == entry_id)).scalar_one())


def anchors_of(tx: Connection, uid: str) -> tuple[str, ...]:
    query = (
        select(entry_anchor.c.anchor).join(entries, entries.c.id == entry_anchor.c.entry_id).where(entries.c.uid == uid)
    )
    return tuple(tx.execute(query.order_by(entry_anchor.c.anchor)).scalars())


def words_are_gone(tx: Connection, agent: str, sessions: Iterable[str]) -> bool:
    """Whether the user deleted one of these sessions or had it forgotten, so that none of its words may be kept."""
    ids = [SafeText(external_id) for external_id in sessions]
    deleted = select(session.c.id).where(
        session.c.agent == agent, session.c.external_id.in_(ids), session.c.status == "deleted"
    )
    return tx.execute(deleted).first() is not None or is_forgotten(tx, agent, ids)


def is_forgotten(tx: Connection, agent: str, sessions: Iterable[str]) -> bool:
    """Whether the user had one of these sessions forgotten, and nothing was said in it since."""
    same = and_(session.c.agent == forgotten.c.agent, session.c.external_id == forgotten.c.external_id)
    ids = [SafeText(external_id) for external_id in sessions]
    gone = select(forgotten.c.agent).where(
        forgotten.c.agent == agent, forgotten.c.external_id.in_(ids), ~exists().where(same)
    )
    return tx.execute(gone).first() is not None


def get(tx: Connection, uid: str) -> Entry | None:
    return next(iter(_load(tx, _select().where(entries.c.uid == uid))), None)


def get_all(tx: Connection, uids: Sequence[str]) -> dict[str, Entry]:
    """The entries of these uids, as far as there are any."""
    parts = in_batches(uids)
    return {one.uid: one for part in parts for one in _load(tx, _select().where(entries.c.uid.in_(part)))}


def named(tx: Connection, start: str) -> list[Entry]:
    """The entry of this uid; without one, those whose uid begins so."""
    exact = _load(tx, _select().where(entries.c.uid == start))
    if exact or not start:
        return exact
    return _load(tx, _select().where(func.substr(entries.c.uid, 1, len(start)) == start).order_by(entries.c.uid))


def successors(tx: Connection, uid: str) -> list[Entry]:
    """What replaced an entry, what replaced that, and so on. A note edited by hand may have closed a ring: each once."""
    found: dict[str, Entry] = {}
    current = get(tx, uid)
    while current is not None and current.superseded_by and current.superseded_by not in {uid, *found}:
        current = get(tx, current.superseded_by)
        if current is not None:
            found[current.uid] = current
    return list(found.values())


def tagged(tx: Connection, name: str) -> list[str]:
    """Uids of the entries with this tag, whatever their standing."""
    query = select(entries.c.uid).join(entry_tag, entry_tag.c.entry_id == entries.c.id)
    query = query.join(tag, tag.c.id == entry_tag.c.tag_id).where(tag.c.name == SafeText(name))
    return list(tx.execute(query.order_by(entries.c.id)).scalars())


def list_entries(tx: Connection, filters: Filters = Filters(), *, normalise: Normalise = fold_tag) -> list[Entry]:
    """Entries under the filters, the last reviewed first."""
    query = _select()
    if filters.project is not None:
        query = query.where(or_(project.c.key == SafeText(filters.project), entries.c.scope == Scope.GLOBAL.value))
    if filters.type is not None:
        query = query.where(entries.c.type == filters.type.value)
    if filters.agent is not None:
        query = query.where(entries.c.agent == filters.agent)
    if filters.status is not None:
        query = query.where(entries.c.status == filters.status)
    if filters.since is not None:
        query = query.where(entries.c.reviewed_at >= filters.since)
    if filters.tag is not None:
        tagged = select(entry_tag.c.entry_id).join(tag, tag.c.id == entry_tag.c.tag_id)
        query = query.where(entries.c.id.in_(tagged.where(tag.c.name == SafeText(normalise(filters.tag)))))
    return _load(tx, query.order_by(entries.c.reviewed_at.desc(), entries.c.id.desc()))


def snapshot(tx: Connection, uid: str) -> Snapshot | None:
    found, current = entry_id(tx, uid), get(tx, uid)
    if found is None or current is None:
        return None
    kept = tx.execute(select(evidence.c.id).where(evidence.c.entry_id == found).order_by(evidence.c.id)).scalars()
    return Snapshot(
        uid=uid,
        summary=current.summary,
        detail=current.detail,
        type=current.type.value,
        scope=current.scope.value,
        status=current.status,
        superseded_by=current.superseded_by,
        reviewed_at=current.reviewed_at,
        tags=current.tags,
        anchors=anchors_of(tx, uid),
        evidence=tuple(kept),
    )


_TOGETHER: tuple[tuple[str, ...], ...] = (
    *(("summary",), ("detail",), ("type",), ("scope",), ("tags",), ("reviewed_at",)),
    ("status", "superseded_by"),
)
"""Parts of a snapshot that are put back, or left, as one."""


def restore(tx: Connection, before: Snapshot, after: Snapshot | None = None) -> bool:
    """Put an entry back as the snapshot has it: words, tags, standing, and no anchor or evidence that the change brought.

    `after` is the entry as the change left it; what was changed again since then stays as it is, and the answer is False.
    """
    found, now = entry_id(tx, before.uid), snapshot(tx, before.uid)
    if found is None or now is None:
        return False
    left = after or now
    back: dict[str, Any] = {}
    changed_since = False
    for names in _TOGETHER:
        was, became, stands = ([getattr(one, name) for name in names] for one in (before, left, now))
        if stands == became:
            back.update(zip(names, was, strict=True))
        elif stands != was:
            changed_since = True
    _drop_added(tx, found, before, left)
    if "tags" in back:
        set_tags(tx, found, back.pop("tags"), normalise=str)
    if "status" in back:
        newer = back["superseded_by"]
        back["superseded_by"] = entry_id(tx, newer) if newer else None
    # A snapshot is made of text that came out of the database.
    words = {name: SafeText(back.get(name, getattr(now, name))) for name in ("summary", "detail")}
    _change(tx, before.uid, **{**back, **words, "hash": text_hash(words["summary"], words["detail"])})
    return not changed_since


def _drop_added(tx: Connection, found: int, before: Snapshot, left: Snapshot) -> None:
    for column, added in (
        (entry_anchor.c.anchor, sorted(set(left.anchors) - set(before.anchors))),
        (evidence.c.id, sorted(set(left.evidence) - set(before.evidence))),
    ):
        for part in in_batches(added):
            tx.execute(delete(column.table).where(column.table.c.entry_id == found, column.in_(part)))


def _change(tx: Connection, uid: str, **values: object) -> bool:
    found = entry_id(tx, uid)
    if found is None:
        return False
    embedded = tx.execute(select(entries.c.hash).where(entries.c.id == found)).scalars().all()
    tx.execute(update(entries).where(entries.c.id == found).values(**values))
    drop_unshared(tx, embedded)
    enqueue(tx, "entry", [found], "put")
    return True


def _insert(tx: Connection, entry: Entry) -> int:
    row = {
        "uid": entry.uid,
        "type": entry.type.value,
        "summary": entry.summary,
        "detail": entry.detail,
        "hash": text_hash(entry.summary, entry.detail),
        "project_id": _project_id(tx, entry.project),
        "scope": entry.scope.value,
        "agent": entry.agent,
        "rule": entry.rule,
        "confidence": entry.confidence,
        "decided_by": entry.decided_by.value,
        "status": entry.status,
        "superseded_by": entry_id(tx, entry.superseded_by) if entry.superseded_by else None,
        "session_id": _session_id(tx, entry.agent, entry.session),
        "created_at": entry.created_at,
        "reviewed_at": entry.reviewed_at,
        "source_forgotten": int(entry.source_forgotten),
    }
    return int(tx.execute(insert(entries).returning(entries.c.id), row).scalar_one())


def _project_id(tx: Connection, key: str | None) -> int | None:
    """Id of the project with this key, entered under its folder's name when an entry is the first to name it."""
    if not key:
        return None
    safe = SafeText(key)  # keys pass through redaction where they are made
    found = tx.execute(select(project.c.id).where(project.c.key == safe)).scalar_one_or_none()
    if found is not None:
        return int(found)
    return projects.ensure(tx, safe, SafeText(PurePath(key).name or key), safe)


def _session_id(tx: Connection, agent: str, external_id: str | None) -> int | None:
    if not external_id:
        return None
    query = select(session.c.id).where(session.c.agent == agent, session.c.external_id == SafeText(external_id))
    return tx.execute(query).scalar_one_or_none()


def _turn_id(tx: Connection, agent: str, key: str) -> int | None:
    found = tx.execute(select(turn.c.id).where(turn.c.agent == agent, turn.c.key == key)).scalar_one_or_none()
    return None if found is None else int(found)


def _tag_id(tx: Connection, name: SafeText) -> int:
    found = tx.execute(select(tag.c.id).where(tag.c.name == name)).scalar_one_or_none()
    if found is not None:
        return int(found)
    return int(tx.execute(insert(tag).returning(tag.c.id), {"name": name}).scalar_one())


def _select() -> Select[Any]:
    newer = entries.alias("newer")
    return (
        select(entries, project.c.key.label("project_key"), session.c.external_id, newer.c.uid.label("newer_uid"))
        .join_from(entries, project, entries.c.project_id == project.c.id, isouter=True)
        .join(session, entries.c.session_id == session.c.id, isouter=True)
        .join(newer, entries.c.superseded_by == newer.c.id, isouter=True)
    )


def _load(tx: Connection, query: Select[Any]) -> list[Entry]:
    rows = tx.execute(query).all()
    ids = [row.id for row in rows]
    tags, quotes = _tags_by_entry(tx, ids), _quotes_by_entry(tx, ids)
    return [_entry(row, tags.get(row.id, []), quotes.get(row.id, [])) for row in rows]


def _tags_by_entry(tx: Connection, ids: Sequence[int]) -> dict[int, list[SafeText]]:
    found: dict[int, list[SafeText]] = {}
    for part in in_batches(ids):
        query = select(entry_tag.c.entry_id, tag.c.name).join(tag, tag.c.id == entry_tag.c.tag_id)
        for row in tx.execute(query.where(entry_tag.c.entry_id.in_(part)).order_by(entry_tag.c.place)):
            found.setdefault(row.entry_id, []).append(row.name)
    return found


def _quotes_by_entry(tx: Connection, ids: Sequence[int]) -> dict[int, list[Quote]]:
    found: dict[int, list[Quote]] = {}
    for part in in_batches(ids):
        for row in tx.execute(select(evidence).where(evidence.c.entry_id.in_(part)).order_by(evidence.c.id)):
            quote = Quote(row.turn_key, Role(row.role), row.quote or SafeText(""), row.time)
            found.setdefault(row.entry_id, []).append(quote)
    return found


def _entry(row: Row[Any], tags: Sequence[SafeText], quotes: Sequence[Quote]) -> Entry:
    return Entry(
        uid=row.uid,
        type=EntryType(row.type),
        summary=row.summary,
        detail=row.detail,
        tags=tuple(tags),
        project=row.project_key,
        scope=Scope(row.scope),
        agent=row.agent,
        session=row.external_id,
        rule=row.rule,
        confidence=row.confidence,
        decided_by=DecidedBy(row.decided_by),
        status=row.status,
        superseded_by=row.newer_uid,
        created_at=row.created_at,
        reviewed_at=row.reviewed_at,
        source_forgotten=bool(row.source_forgotten),
        evidence=tuple(quotes),
    )

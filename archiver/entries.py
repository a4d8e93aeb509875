"""The upkeep of reviewed knowledge: every change of an entry by a person, each of which `undo` takes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sqlalchemy import Connection

from archiver.note import Broken
from archiver.render import one_line
from archiver.vault import Vault
from staging.form import Form, form_of, whole
from staging.promote import Desk, taken_in, worded_anchors
from store import decisions, knowledge, verdicts
from store.errors import USAGE, WwtError
from store.knowledge import Snapshot
from store.records import Action, Entry, SafeText, Scope, anchor
from store.verdicts import Verdict

LISTED = 20
"""Entries named when a beginning of a uid fits several."""


class Change(StrEnum):
    """The `action` of a change in the log of decisions."""

    ADD = "add"
    EDIT = "edit"
    RETAG = "retag"
    RETIRE = "retire"
    REVIVE = "revive"
    SUPERSEDE = "supersede"
    MERGE = "merge"
    SCOPE = "scope"
    RENAME = "rename"


@dataclass(frozen=True, slots=True)
class Changed:
    """The entries that a change was about, as they stand now. `changed` is how many of them stood otherwise before.

    `broken`: notes of the vault that cannot be read, and so do not follow.
    """

    entries: tuple[Entry, ...]
    changed: int
    broken: tuple[Broken, ...] = ()


@dataclass(slots=True)
class _Work:
    """A change under way: what it is about, and what it found before it changed anything."""

    tx: Connection
    at: int
    named: list[str] = field(default_factory=list)
    before: dict[str, Snapshot] = field(default_factory=dict)
    created: str | None = None
    verdicts: dict[str, Verdict | None] = field(default_factory=dict)
    result: Changed = Changed((), 0)

    def entry(self, name: str) -> Entry:
        """The entry of this uid or beginning of one; it belongs to the answer."""
        found = find(self.tx, name)
        if found.uid not in self.named:
            self.named.append(found.uid)
        return found

    def touch(self, uid: str) -> None:
        """Say that the entry is about to be changed."""
        if uid not in self.before and (found := knowledge.snapshot(self.tx, uid)) is not None:
            self.before[uid] = found

    def judge(self, anchors: Iterable[str], uid: str, action: Action, *, taking: Iterable[str] = ()) -> None:
        """Give the anchors to the entry. What stands for another entry stays there, except for those of `taking`."""
        known = verdicts.lookup(self.tx, anchors)
        ours = {uid, *taking}
        free = {a for a in anchors if (v := known.get(a)) is None or v.entry is None or v.entry in ours}
        entry_id = knowledge.entry_id(self.tx, uid)
        if entry_id is None:
            return
        knowledge.hold(self.tx, entry_id, free)
        for one in sorted(free):
            held = known.get(one)
            if held is None or held.entry != uid:
                self.verdicts.setdefault(one, held)
                # Anchors that were judged together keep their common time.
                verdicts.record(self.tx, [one], action, entry_id, held.at if held and held.entry else self.at)

    def finish(self, change: Change) -> None:
        """Log what was changed, if anything was, and say how the entries stand now."""
        made = [] if self.created is None else [self.created]
        if self.before or made:
            left = [knowledge.snapshot(self.tx, uid) for uid in (*self.before, *made)]
            before = decisions.Before(
                anchors=tuple(sorted(self.verdicts)),
                verdicts=tuple(v for v in self.verdicts.values() if v is not None),
                entries=tuple(self.before.values()),
                created=self.created,
                after=tuple(one for one in left if one is not None),
            )
            about = self.named[0] if self.named else None
            decisions.log(
                self.tx,
                at=self.at,
                action=change.value,
                document="",
                waiting=decisions.NO_CANDIDATE,
                before=before,
                entry=about,
            )
        now = (knowledge.get(self.tx, uid) for uid in self.named)
        self.result = Changed(tuple(one for one in now if one is not None), len(self.before) + len(made))


def find(tx: Connection, name: str) -> Entry:
    """The entry with this uid, or the only one whose uid begins so."""
    found = knowledge.named(tx, whole(name))
    if not found:
        raise WwtError("entries.unknown", uid=name)
    if len(found) > 1:
        listed = "\n  ".join(f"{one.uid}  {one_line(one.summary, 70)}" for one in found[:LISTED])
        raise WwtError("entries.ambiguous", uid=name, known=listed)
    return found[0]


@dataclass(frozen=True, slots=True)
class Keeper:
    """Whoever looks after the knowledge. The vault is brought into step before each change and after it."""

    desk: Desk
    vault: Vault

    def find(self, name: str) -> Entry:
        """As `entries.find`; what a person wrote into a note counts."""
        self.vault.sync()
        with self.desk.database.transaction() as tx:
            return find(tx, name)

    def add(self, words: Form, *, project: str | None, scope: Scope) -> Changed:
        """Take in what a person knows, without a session that said it."""
        with self._changing(Change.ADD) as work:
            telling = {anchor(words.summary)}
            held = knowledge.holder(work.tx, telling)
            if held is not None:
                raise WwtError("entries.known_already", uid=knowledge.uid_of(work.tx, held))
            uid = work.created = knowledge.free_uid(work.tx)
            made = Entry(uid, words.type, words.summary, words.detail, words.tags, project, scope)
            made = replace(made, created_at=work.at, reviewed_at=work.at)
            knowledge.add_entry(work.tx, made, telling, normalise=self.desk.normalise)
            work.judge(worded_anchors(words.summary, words.detail) | telling, uid, Action.ACCEPTED)
            work.entry(uid)
        return work.result

    def edit(self, seen: Entry, words: Form) -> Changed:
        """Give the entry these words, if it still says what the person saw.

        The old wording's anchors go with the new ones, so that neither is offered for review again.
        """
        with self._changing(Change.EDIT) as work:
            entry = work.entry(seen.uid)
            if form_of(entry) != form_of(seen):
                raise WwtError("entries.changed_meanwhile", uid=seen.uid)
            wanted = replace(words, tags=self._tags(words.tags))
            if wanted != form_of(entry):
                self._reword(work, entry, wanted)
        return work.result

    def retag(self, name: str, *, put: Sequence[str] | None, add: Sequence[str], drop: Sequence[str]) -> Changed:
        """Set the tags to `put` if it is given, then add and drop."""
        with self._changing(Change.RETAG) as work:
            entry = work.entry(name)
            gone = set(self._tags(drop))
            kept = self._tags((*(entry.tags if put is None else put), *add))
            self._retag(work, entry, tuple(tag for tag in kept if tag not in gone))
        return work.result

    def retire(self, names: Sequence[str], reason: SafeText | None = None) -> Changed:
        """Take entries out of search and recall. Their anchors stay accepted: they are not offered for review again.

        The reason is kept as the last line of the detail, where every reader of the entry meets it.
        """
        with self._changing(Change.RETIRE) as work:
            for entry in [work.entry(name) for name in names]:
                if entry.status == "retired":
                    continue
                work.touch(entry.uid)
                if reason:
                    detail = SafeText.joined("\n", [part for part in (entry.detail, reason) if part])
                    knowledge.update_entry(work.tx, entry.uid, detail=detail, at=work.at)
                knowledge.retire(work.tx, entry.uid, at=work.at)
        return work.result

    def revive(self, names: Sequence[str]) -> Changed:
        """Make retired or superseded entries current again."""
        with self._changing(Change.REVIVE) as work:
            for entry in [work.entry(name) for name in names]:
                if entry.status != "active":
                    work.touch(entry.uid)
                    knowledge.revive(work.tx, entry.uid, at=work.at)
        return work.result

    def supersede(self, old: str, new: str) -> Changed:
        """Mark an entry as replaced by another, which must be current: so no ring can come about."""
        with self._changing(Change.SUPERSEDE) as work:
            one, other = _two(work, old, new)
            if one.superseded_by != other.uid:
                self._supersede(work, one, other)
        return work.result

    def merge(self, name: str, into: str) -> Changed:
        """Let one entry take another in: its lines, tags, evidence and anchors. The other is then superseded by it."""
        with self._changing(Change.MERGE) as work:
            one, other = _two(work, name, into)
            detail = taken_in(other, one.summary, one.detail)
            known = detail == other.detail and set(one.tags) <= set(other.tags)
            if not known or one.superseded_by != other.uid:
                self._take_in(work, one, other, detail)
                self._supersede(work, one, other)
        return work.result

    def spread(self, names: Sequence[str], scope: Scope) -> Changed:
        """Let entries be known in every project, or in their own only."""
        with self._changing(Change.SCOPE) as work:
            for entry in [work.entry(name) for name in names]:
                if scope is Scope.PROJECT and entry.project is None:
                    raise WwtError("entries.no_project", uid=entry.uid)
                if entry.scope is not scope:
                    work.touch(entry.uid)
                    knowledge.set_scope(work.tx, entry.uid, scope, at=work.at)
        return work.result

    def rename_tag(self, old: str, new: str) -> Changed:
        """Write a tag otherwise in every entry that has it, in every project. An entry that has both keeps one."""
        was, becomes = self.desk.normalise(whole(old)), self.desk.normalise(whole(new))
        if not becomes or "," in becomes:
            raise WwtError("tags.bad_name", tag=new, exit_code=USAGE)
        with self._changing(Change.RENAME) as work:
            carriers = knowledge.tagged(work.tx, was)
            if not carriers:
                raise WwtError("tags.unknown", tag=old)
            for entry in [work.entry(uid) for uid in carriers]:
                self._retag(work, entry, tuple(becomes if tag == was else tag for tag in entry.tags))
        return work.result

    def _reword(self, work: _Work, entry: Entry, wanted: Form) -> None:
        work.touch(entry.uid)
        knowledge.update_entry(
            work.tx, entry.uid, summary=wanted.summary, detail=wanted.detail, type=wanted.type, at=work.at
        )
        self._retag(work, entry, wanted.tags)
        worded = worded_anchors(entry.summary, entry.detail) | worded_anchors(wanted.summary, wanted.detail)
        work.judge(worded, entry.uid, Action.ACCEPTED)

    def _take_in(self, work: _Work, one: Entry, other: Entry, detail: SafeText) -> None:
        work.touch(other.uid)
        # The anchors are handed over by `judge`, which remembers whose they were.
        taker = knowledge.merge_into(
            work.tx, other.uid, detail=detail, tags=one.tags, anchors=(), at=work.at, normalise=self.desk.normalise
        )
        if taker is not None:
            knowledge.add_evidence(work.tx, taker, one.evidence, agent=one.agent)
        work.judge(knowledge.anchors_of(work.tx, one.uid), other.uid, Action.MERGED, taking=[one.uid])

    def _retag(self, work: _Work, entry: Entry, tags: tuple[str, ...]) -> None:
        wanted = tuple(dict.fromkeys(tags))
        if wanted != entry.tags:
            work.touch(entry.uid)
            knowledge.retag(work.tx, entry.uid, wanted, at=work.at, normalise=str)

    def _supersede(self, work: _Work, old: Entry, new: Entry) -> None:
        newer = knowledge.entry_id(work.tx, new.uid)
        if newer is not None:
            work.touch(old.uid)
            knowledge.supersede(work.tx, old.uid, newer, at=work.at)

    def _tags(self, tags: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tag for tag in map(self.desk.normalise, tags) if tag))

    @contextmanager
    def _changing(self, change: Change) -> Iterator[_Work]:
        """One transaction: what the block does to the entries, and the log by which it is taken back."""
        self.vault.sync()
        with self.desk.database.transaction() as tx:
            work = _Work(tx, decisions.moment(tx, self.desk.now()))
            yield work
            work.finish(change)
        work.result = replace(work.result, broken=self.vault.sync().broken)


def _two(work: _Work, one: str, other: str) -> tuple[Entry, Entry]:
    """Two entries, of which the second is to stand for the first."""
    first, second = work.entry(one), work.entry(other)
    if first.uid == second.uid:
        raise WwtError("entries.itself", uid=first.uid)
    if second.status == "retired":
        raise WwtError("entries.is_retired", uid=second.uid)
    if second.status == "superseded":
        raise WwtError("entries.is_superseded", uid=second.uid, newer=second.superseded_by or "-")
    return first, second

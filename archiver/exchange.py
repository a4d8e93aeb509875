"""Knowledge out into a folder of the user's choice, and back in."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection

from archiver import adopt, erase, mirror
from archiver.adopt import Brought, Fate
from archiver.archive import embed
from archiver.home import Home
from archiver.ledger import Ledger, locked
from archiver.note import Broken, extra, render
from archiver.notes import beside
from archiver.vault import Synced, Vault
from staging import atomic
from store import exchange, knowledge
from store.errors import USAGE, WwtError
from store.messages import text
from store.records import Entry, now_ms

T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""Called as (stage, done, total); the stages are notes, index, embed."""

BATCH = 100
"""Notes in one transaction: others may write in between."""
LINES = 500
"""Lines of the mirror in one transaction."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import came to. `added` and `updated` are uids; `older`: notes that say less than the archive does by now;
    `twins`: notes whose words another entry has, with its uid; `conflicts`: files with our version, beside notes that were
    changed on both sides; `unwritten`: such notes where nothing could be written; `projects`: those that are another one here."""

    notes: int = 0
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: int = 0
    older: tuple[Path, ...] = ()
    twins: tuple[tuple[Path, str], ...] = ()
    verdicts: int = 0
    conflicts: tuple[Path, ...] = ()
    unwritten: tuple[Path, ...] = ()
    broken: tuple[Broken, ...] = ()
    projects: tuple[tuple[str, str], ...] = ()
    notices: tuple[str, ...] = ()


def export(
    home: Home,
    folder: Path,
    project: str | None = None,
    progress: Progress = lambda stage, done, total: None,
) -> Synced:
    """Write knowledge into the folder as notes, with the verdicts beside them: all of it, or a project's and what is global.

    What people wrote there stays as it is. The vault itself is brought up as it always is.
    """
    folder = _checked(home, folder)
    own = home.vault.sync()
    if _same(folder, home.vault.folder):
        return own
    vault = Vault(folder, home.database, home.redact, normalise=home.vault.normalise)
    done = vault.export(
        _wanted(home, project), home.vault.extras(), lambda count, total: progress("notes", count, total)
    )
    # What a person has to settle in the vault is not in the export either.
    return replace(
        done,
        adopted=own.adopted,
        unsettled=own.conflicts + own.unsettled + done.unsettled,
        broken=own.broken + done.broken,
    )


def bring(home: Home, folder: Path, progress: Progress = lambda stage, done, total: None) -> Imported:
    """Take the notes and verdicts of a vault or an export in. Killed at any instant, a rerun completes it; twice is as once.

    The notes are only read; `.wwt` in their folder remembers what was read, where that can be written.
    """
    if not folder.is_dir():
        raise WwtError("exchange.no_folder", path=folder, exit_code=USAGE)
    folder = _checked(home, folder)
    if not _same(folder, home.vault.folder):
        home.vault.sync()  # what a person wrote into the vault counts as ours
    with home.database.transaction() as tx:
        emptied = exchange.bring_forgotten(tx, mirror.read_forgotten(folder))
    with _remembered(folder) as ledger:
        reading = adopt.read(folder, ledger, home.redact)
        run = _Import(home, ledger, reading)
        run.take(progress)
    verdicts = _bring_verdicts(home, folder)
    run.vouch()
    home.vault.sync(lambda uid: run.extras.get(uid, {}))
    if emptied:
        erase.finish(home)  # if another process is in the way, the next run of wwt does it
    return replace(run.result(), verdicts=verdicts, notices=tuple(_indexed(home, progress)))


class _Import:
    """One import under way. `projects`: what each project of the notes is here; `known`: the entries as they stood."""

    def __init__(self, home: Home, ledger: Ledger, reading: adopt.Reading) -> None:
        self.home, self.ledger, self.reading = home, ledger, reading
        self.normalise = home.vault.normalise
        self.now = now_ms()
        self.extras: dict[str, dict[str, Any]] = {}
        self.uids: list[str] = []
        self.told = _Told()
        with home.database.transaction() as tx:
            self.known = {one.uid: one for one in knowledge.list_entries(tx, knowledge.Filters(status=None))}
            named = {one.note.project for one in reading.brought if one.note.project}
            self.projects = {key: project_here(tx, key) for key in sorted(named)}

    def take(self, progress: Progress) -> None:
        total, done = len(self.reading.brought), 0
        for batch in _batches(self.reading.brought, BATCH):
            with self.home.database.transaction() as tx:
                placed = [self._placed(one) for one in batch]
                now = self._standing(tx, placed)
                agreed = dict(same for one in placed if (same := self._note(tx, one, now.get(one.note.uid))))
                for uid, entry in knowledge.get_all(tx, list(agreed)).items():
                    self._remember(agreed[uid], entry)
            done += len(batch)
            progress("notes", done, total)
        replaced = [n for n in (one.note for one in self.reading.brought) if n.uid and n.superseded_by]
        for part in _batches(replaced, LINES):
            with self.home.database.transaction() as tx:
                for note in part:
                    exchange.link(tx, note.uid, note.superseded_by or "")

    def vouch(self) -> None:
        """No finding that says what these entries say is to be offered for review."""
        for part in _batches(self.uids, LINES):
            with self.home.database.transaction() as tx:
                exchange.vouch(tx, part)

    def result(self) -> Imported:
        moved = tuple((key, here) for key, here in self.projects.items() if key != here)
        return Imported(
            notes=len(self.reading.brought),
            added=tuple(self.told.added),
            updated=tuple(self.told.updated),
            unchanged=self.told.unchanged,
            older=tuple(self.told.older),
            twins=tuple(self.told.twins),
            conflicts=tuple(self.told.conflicts),
            unwritten=tuple(self.told.unwritten),
            broken=self.reading.broken,
            projects=moved,
        )

    def _placed(self, one: Brought) -> Brought:
        """The note with its tags and its project as they are called here."""
        note = one.note.normalised(self.normalise)
        return replace(one, note=replace(note, project=self.projects.get(note.project or "") or note.project))

    def _standing(self, tx: Connection, batch: Sequence[Brought]) -> dict[str, Entry]:
        """The entries of these notes. One that says what its note says need not be read again."""
        same = {
            uid: entry for one in batch if (entry := self.known.get(uid := one.note.uid)) and one.note.same_as(entry)
        }
        return same | knowledge.get_all(tx, [uid for one in batch if (uid := one.note.uid) and uid not in same])

    def _note(self, tx: Connection, one: Brought, entry: Entry | None) -> tuple[str, Brought] | None:
        """Take a note in, given its entry as it stands. The uid, if note and entry say the same now."""
        if entry is None:
            return self._new(tx, one)
        self.uids.append(entry.uid)
        match adopt.judge(one, entry, self.ledger.notes.get(entry.uid)):
            case Fate.SAME:
                self.told.unchanged += 1
                if beside(one.path).exists():
                    self.told.conflicts.append(beside(one.path))
                return self._settle(tx, one, entry)
            case Fate.TAKEN:
                return self._take(tx, one, entry)
            case Fate.NEWER:
                if self._keep_beside(one, entry):
                    return self._take(tx, one, entry)
            case Fate.CONFLICT:
                if self._keep_beside(one, entry):
                    self.ledger.conflict(entry, one.path)
            case Fate.UNSETTLED:
                self.told.conflicts.append(beside(one.path))
            case Fate.OLDER:
                self.told.older.append(one.path)
        return None

    def _new(self, tx: Connection, one: Brought) -> tuple[str, Brought] | None:
        note = one.note
        reviewed = min(note.reviewed_at or self.now, self.now)
        made = replace(
            note.as_entry(),
            uid=note.uid or knowledge.free_uid(tx),
            created_at=note.created_at or reviewed,
            reviewed_at=reviewed,
        )
        twin = exchange.twin(tx, made)
        if twin in self.known:
            self.told.twins.append((one.path, twin))
            return None
        exchange.put(tx, made, normalise=self.normalise)
        self.told.added.append(made.uid)
        self.uids.append(made.uid)
        return made.uid, one

    def _take(self, tx: Connection, one: Brought, entry: Entry) -> tuple[str, Brought]:
        kept = self.ledger.notes.get(entry.uid)
        by_hand = kept is not None and not kept.wrote(one.data)
        later = one.note.reviewed_at > entry.reviewed_at and not by_hand
        at = min(one.note.reviewed_at, self.now) if later else self.now
        exchange.change(tx, one.note.as_entry(), at=at, normalise=self.normalise)
        self.told.updated.append(entry.uid)
        return self._settle(tx, one, entry)

    def _settle(self, tx: Connection, one: Brought, entry: Entry) -> tuple[str, Brought]:
        """The entry says what the note says; what else the note brings is added."""
        exchange.support(tx, entry, one.note.as_entry())
        if one.note.project and entry.project != one.note.project and entry.project in self.projects:
            exchange.move(tx, entry.uid, one.note.project)
        return entry.uid, one

    def _remember(self, one: Brought, entry: Entry) -> None:
        if own := extra(one.data, self.home.redact):
            self.extras[entry.uid] = own
        with suppress(OSError):  # it was there a moment ago
            self.ledger.put(entry, one.path, one.data)
            if one.note.masked:
                self.ledger.outdated(entry.uid)

    def _keep_beside(self, one: Brought, entry: Entry) -> bool:
        """Write the entry beside the note. False where that cannot be done; nothing may replace it then."""
        try:
            atomic.write(beside(one.path), render(entry, {}))
        except (OSError, WwtError):
            self.told.unwritten.append(one.path)
            return False
        self.told.conflicts.append(beside(one.path))
        return True


@dataclass(slots=True)
class _Told:
    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: int = 0
    older: list[Path] = field(default_factory=list)
    twins: list[tuple[Path, str]] = field(default_factory=list)
    conflicts: list[Path] = field(default_factory=list)
    unwritten: list[Path] = field(default_factory=list)


def project_here(tx: Connection, key: str) -> str:
    """The key that this archive has for a project of elsewhere.

    The same folder is the same project. A folder that this machine lacks is the project of that name, if sessions of just
    one were archived here.
    """
    known = exchange.is_project(tx, key)
    if (known and exchange.lived_in(tx, key=known)) or _is_folder(key):
        return known or key
    named = exchange.lived_in(tx, name=key.rstrip("/").rpartition("/")[2] or key)
    return named[0] if len(named) == 1 else known or key


def _is_folder(key: str) -> bool:
    try:
        return Path(key).is_absolute() and Path(key).is_dir()
    except (OSError, ValueError):  # no path of any file system
        return False


def _bring_verdicts(home: Home, folder: Path) -> int:
    taken = 0
    for part in _batches(mirror.read_verdicts(folder), LINES):
        with home.database.transaction() as tx:
            taken += exchange.bring_verdicts(tx, part)
    return taken


def _indexed(home: Home, progress: Progress) -> list[str]:
    notices = [text(key) for key in home.index.ensure()]
    home.index.apply(lambda done, total: progress("index", done, total))
    return notices + embed(home, lambda done, total: progress("embed", done, total))[1]


def _wanted(home: Home, project: str | None) -> Collection[str] | None:
    if project is None:
        return None
    with home.database.transaction() as tx:
        return {entry.uid for entry in knowledge.list_entries(tx, knowledge.Filters(project=project, status=None))}


def _checked(home: Home, folder: Path) -> Path:
    """The folder, if notes may be there: not among wwt's own files, but for the vault, and not around them."""
    folder = folder.absolute()
    if folder.exists() and not folder.is_dir():
        raise WwtError("exchange.no_folder", path=folder, exit_code=USAGE)
    if _same(folder, home.vault.folder):
        return home.vault.folder
    real, root = folder.resolve(), home.root.resolve()
    if real.is_relative_to(root):
        raise WwtError("exchange.inside_home", path=folder, vault=home.vault.folder, exit_code=USAGE)
    if root.is_relative_to(real):
        raise WwtError("exchange.around_home", path=folder, home=home.root, exit_code=USAGE)
    return folder


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


@contextmanager
def _remembered(folder: Path) -> Iterator[Ledger]:
    """The folder's ledger, under its lock. A folder that cannot be written, such as a backup's, is read without either."""
    own = folder / ".wwt"
    if not os.access(own if own.exists() else folder, os.W_OK):
        yield Ledger.read(folder)
        return
    with locked(folder):
        ledger = Ledger.read(folder)
        yield ledger
        ledger.save()


def _batches(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]

"""The vault: knowledge as Markdown notes that a person may read and edit, kept in step with the database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from archiver import mirror
from archiver.ledger import Kept, Ledger, entry_digest, locked
from archiver.mirror import read_verdicts
from archiver.note import Broken, Note, extra, parse, render, renewed, uid_of
from archiver.notes import beside, files
from rules.scrub import scrub
from staging import atomic
from staging.documents import Redact
from staging.names import slug
from store import exchange, knowledge, verdicts
from store.database import Database
from store.messages import text
from store.records import Entry, now_ms

SAME_NAME = 100
"""Names tried where another file has the one that a note should get."""

AT_ONCE = 256
"""Notes written between two calls of a progress."""

Extras = Callable[[str], dict[str, Any]]
"""Front matter keys of a person's own, for the note of this uid."""
Progress = Callable[[int, int], None]
"""Called as (done, total) while notes are written."""


@dataclass(frozen=True, slots=True)
class Synced:
    """written: notes brought up to date; unchanged: those that needed nothing; adopted: uids whose hand-made edits the
    database took over; edited: notes whose edits it did not take over; conflicts: files kept beside notes that were changed
    on both sides, unsettled: those from before; strangers: notes once written here whose entries the database lacks."""

    written: int = 0
    unchanged: int = 0
    adopted: tuple[str, ...] = ()
    edited: tuple[Path, ...] = ()
    conflicts: tuple[Path, ...] = ()
    unsettled: tuple[Path, ...] = ()
    broken: tuple[Broken, ...] = ()
    strangers: int = 0


@dataclass(slots=True)
class _Run:
    """One pass over the folder. `moved`: where notes are that a person moved, by uid; looked for when one is missed."""

    ledger: Ledger
    adopt: bool
    extras: Extras
    progress: Progress = lambda done, total: None
    moved: dict[str, Path] | None = None
    unchanged: int = 0
    writes: list[tuple[Entry, Path]] = field(default_factory=list)
    adopted: list[str] = field(default_factory=list)
    edited: list[Path] = field(default_factory=list)
    conflicts: list[Path] = field(default_factory=list)
    unsettled: list[Path] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)


class Vault:
    """A folder of notes. Unchanged notes are not touched, edited ones are adopted, nothing here is ever deleted unasked."""

    def __init__(
        self, folder: Path, database: Database, redact: Redact, *, normalise: knowledge.Normalise = knowledge.fold_tag
    ) -> None:
        self.normalise = normalise
        self.folder = folder
        self.database = database
        self.redact = redact

    def sync(self, extras: Extras = lambda uid: {}) -> Synced:
        """Adopt what people edited, then write what the database changed. Running it again changes nothing."""
        return self._bring_up(adopt=True, wanted=None, extras=extras)

    def export(
        self,
        wanted: Collection[str] | None = None,
        extras: Extras = lambda uid: {},
        progress: Progress = lambda done, total: None,
    ) -> Synced:
        """Write what the database changed and adopt nothing: an edited note stays as it is. `wanted` are uids, None is every entry."""
        return self._bring_up(adopt=False, wanted=wanted, extras=extras, progress=progress)

    def extras(self) -> Extras:
        """Tells the front matter keys that a person added to the note of an entry."""
        ledger = Ledger.read(self.folder)

        def of(uid: str) -> dict[str, Any]:
            kept = ledger.notes.get(uid)
            path = ledger.inside(kept.file) if kept else None
            return extra(atomic.read(path) or b"", self.redact) if path and not path.is_dir() else {}

        return of

    def mask_again(self) -> int:
        """Take out of every note, and of its name, what the secret rules mask by now; the entries are masked already. How many."""
        self.sync()
        with locked(self.folder):
            ledger = Ledger.read(self.folder)
            notes = (path for path in sorted(self.folder.rglob("*.md")) if path.is_file() and not path.is_symlink())
            changed = sum(self._mask_again(path) for path in notes)
            renamed = {uid: self._renamed(ledger, kept) for uid, kept in ledger.notes.items()}
            changed += sum(renamed[uid] != kept for uid, kept in ledger.notes.items())
            ledger.notes = renamed
            ledger.save()
        return changed

    def _mask_again(self, path: Path) -> bool:
        """What a person wrote stays but for the secret; the next `sync` takes it for the edit that it is."""
        words = path.read_bytes().decode("utf-8", "replace")
        masked = self.redact(words)
        return masked != scrub(words) and atomic.write(path, masked.encode())

    def _renamed(self, ledger: Ledger, kept: Kept) -> Kept:
        """A note whose name holds a secret moves to a name without it."""
        path = ledger.inside(kept.file)
        name = self.redact(path.stem) if path else ""
        if path is None or name == scrub(path.stem):
            return kept
        new = path.with_name(f"{slug(name, characters=120, size=200)}.md")
        if path.is_file():  # or it was moved by a run that was killed before it noted that
            path.rename(new)
        return replace(kept, file=ledger.relative(new))

    def remove(self, uid: str) -> None:
        """Take the note of an entry away whose acceptance was undone; an edited one stays."""
        with locked(self.folder):
            ledger = Ledger.read(self.folder)
            kept = ledger.notes.pop(uid, None)
            if kept is None:
                return
            path = ledger.inside(kept.file)
            data = atomic.read(path) if path else None
            if path and data is not None and kept.wrote(data):
                path.unlink()
            ledger.save()

    def drop_verdicts(self, anchors: Iterable[str]) -> None:
        """Take verdicts out of the mirror that were taken back; otherwise what stands there stays."""
        gone = set(anchors)
        with locked(self.folder):
            kept = [v for v in read_verdicts(self.folder) if v.anchor not in gone]
            mirror.write_verdicts(self.folder, kept, union=False)

    def _bring_up(
        self,
        *,
        adopt: bool,
        wanted: Collection[str] | None,
        extras: Extras,
        progress: Progress = lambda done, total: None,
    ) -> Synced:
        with locked(self.folder):
            run = _Run(Ledger.read(self.folder), adopt, extras, progress)
            entries = self._entries()
            for entry in entries:
                if wanted is None or entry.uid in wanted:
                    self._look_at(run, entry)
            self._write(run)
            self._mirror(wanted)
        strangers = len(set(run.ledger.notes) - {entry.uid for entry in entries})
        return Synced(
            written=len(run.writes),
            unchanged=run.unchanged,
            adopted=tuple(run.adopted),
            edited=tuple(run.edited),
            conflicts=tuple(run.conflicts),
            unsettled=tuple(run.unsettled),
            broken=tuple(run.broken),
            strangers=strangers,
        )

    def _entries(self) -> list[Entry]:
        with self.database.transaction() as tx:
            return knowledge.list_entries(tx, knowledge.Filters(status=None))

    def _mirror(self, wanted: Collection[str] | None) -> None:
        with self.database.transaction() as tx:
            decided, gone = verdicts.everything(tx), exchange.every_forgotten(tx)
        if wanted is not None:  # a part of the knowledge takes with it what was decided about that part
            decided, gone = [v for v in decided if v.entry in wanted], []
        mirror.write_verdicts(self.folder, decided)
        mirror.write_forgotten(self.folder, gone)

    def _look_at(self, run: _Run, entry: Entry) -> None:
        """As `_compare`; a note that the disk won't give costs itself only."""
        kept = run.ledger.notes.get(entry.uid)
        path = self._path(run, entry, kept)
        if not run.ledger.holds(path):
            run.broken.append(Broken(path, 0, text("vault.leads_out_of", path=self.folder)))
            return
        try:
            self._compare(run, entry, kept, path)
        except OSError as error:
            run.broken.append(Broken(path, 0, error.strerror or str(error)))

    def _compare(self, run: _Run, entry: Entry, kept: Kept | None, path: Path) -> None:
        """Decide what is to be done about one entry and its note."""
        stat = path.stat() if path.is_file() else None
        untouched = kept and stat and (stat.st_mtime_ns, stat.st_size) == (kept.mtime_ns, kept.size)
        if kept and untouched and kept.entry == entry_digest(entry):
            run.unchanged += 1
            return
        data = atomic.read(path)
        if data is None:
            run.writes.append((entry, path))
        elif (kept is not None and kept.wrote(data)) or data == self._rendered(entry, data):
            self._ours(run, entry, path, data, kept)
        else:
            self._edited(run, entry, path, data, kept)

    def _ours(self, run: _Run, entry: Entry, path: Path, data: bytes, kept: Kept | None) -> None:
        """Nobody edited the note: write it if the entry changed, else only remember how it lies there."""
        if kept is not None and kept.entry != entry_digest(entry) and data != self._rendered(entry, data):
            run.writes.append((entry, path))
            return
        run.ledger.put(entry, path, data)
        run.unchanged += 1

    def _edited(self, run: _Run, entry: Entry, path: Path, data: bytes, kept: Kept | None) -> None:
        note = parse(path, data, self.redact)
        if isinstance(note, Note) and note.uid not in ("", entry.uid):
            note = Broken(path, 1, text("vault.other_uid", uid=entry.uid))
        if isinstance(note, Broken):
            run.broken.append(note)
            return
        if run.adopt:
            data = self._renewed(entry, path, data, kept)
        note = note.normalised(self.normalise)
        if note.same_as(entry):
            run.ledger.put(entry, path, data)
            run.unchanged += 1
        elif kept is not None and not kept.note and beside(path).exists():
            run.unsettled.append(beside(path))  # a person has not yet settled it
        elif not (kept.knows(entry) if kept else note.reviewed_with(entry)):
            atomic.write(beside(path), render(entry, {}))
            run.conflicts.append(beside(path))
            run.ledger.conflict(entry, path)
        elif run.adopt:
            self._adopt(run, entry, path, data, note)
        else:
            run.edited.append(path)

    def _renewed(self, entry: Entry, path: Path, data: bytes, kept: Kept | None) -> bytes:
        """Evidence that was dropped must not stay in a note, whoever edited what stands above it."""
        fresh = data if kept and kept.entry == entry_digest(entry) else renewed(data, entry)
        if fresh != data:
            atomic.write(path, fresh)
        return fresh

    def _adopt(self, run: _Run, entry: Entry, path: Path, data: bytes, note: Note) -> None:
        with self.database.transaction() as tx:
            entry = exchange.change(tx, note.as_entry(), at=now_ms(), normalise=self.normalise)
        run.adopted.append(entry.uid)
        if note.masked:
            run.writes.append((entry, path))  # a secret was typed in: it must not stay on disk
            return
        run.ledger.put(entry, path, data)

    def _write(self, run: _Run) -> None:
        rendered = [(entry, path, self._fresh(run, entry, path)) for entry, path in run.writes]
        for entry, path, data in rendered:
            run.ledger.intend(entry, path, data)
        if rendered:
            run.ledger.save()
        refused: dict[Path, OSError] = {}
        for start in range(0, len(rendered), AT_ONCE):
            part = rendered[start : start + AT_ONCE]
            refused |= atomic.write_all([(path, data) for _, path, data in part])
            run.progress(start + len(part), len(rendered))
        run.broken += [Broken(path, 0, error.strerror or str(error)) for path, error in refused.items()]
        run.writes = [(entry, path) for entry, path in run.writes if path not in refused]
        for entry, path, data in rendered:
            if path not in refused:
                run.ledger.put(entry, path, data)
        run.ledger.save()

    def _fresh(self, run: _Run, entry: Entry, path: Path) -> bytes:
        held = atomic.read(path)
        kept = extra(held, self.redact) if held is not None else {}
        return render(entry, {**run.extras(entry.uid), **kept})

    def _rendered(self, entry: Entry, data: bytes) -> bytes:
        """The note of the entry, with a person's own keys of this one."""
        return render(entry, extra(data, self.redact))

    def _path(self, run: _Run, entry: Entry, kept: Kept | None) -> Path:
        """Where the entry's note is: where it was, where a person moved it to, or a new place."""
        known = run.ledger.inside(kept.file) if kept else None
        if known is not None and known.exists():
            return known
        if run.moved is None:
            run.moved = self._moved(run.ledger)
        return run.moved.get(entry.uid) or known or self._place(entry)

    def _moved(self, ledger: Ledger) -> dict[str, Path]:
        """Notes at places we don't know, by uid."""
        known = {kept.file for kept in ledger.notes.values()}
        found: dict[str, Path] = {}
        for path in files(self.folder).notes:
            if ledger.relative(path) not in known and (uid := uid_of(path)):
                found.setdefault(uid, path)
        return found

    def _place(self, entry: Entry) -> Path:
        """A path of its own for a new note: a file that is not this entry's keeps its name."""
        first = self.folder / folder_name(entry) / file_name(entry)
        others = (first.with_name(f"{first.stem}-{number}.md") for number in range(2, SAME_NAME))
        return next((path for path in (first, *others) if not (path.exists() or path.is_symlink())), first)


def folder_name(entry: Entry) -> str:
    return slug(PurePath(entry.project).name) if entry.project else "general"


def file_name(entry: Entry) -> str:
    """Under 255 bytes, valid on Windows too, and unique by its uid."""
    return f"{slug(entry.summary, characters=80, size=160)}-{slug(entry.uid, characters=40, size=40)}.md"

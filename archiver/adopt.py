"""Whose words count when a note from elsewhere meets an entry of this archive. Decides; writes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path

from archiver.ledger import Kept, Ledger, digest
from archiver.note import Broken, Note, parse
from archiver.notes import beside, files
from staging.documents import Redact
from store.messages import text
from store.records import Entry

LARGEST_NOTE = 1_000_000
"""Bytes; what is larger was not written for people to read."""


class Fate(Enum):
    SAME = auto()
    TAKEN = auto()
    """The note goes back to what the entry says: its words count, and nothing is lost."""
    NEWER = auto()
    """The note was reviewed later, but may not know the entry as it stands: its words count, the entry's are kept beside it."""
    OLDER = auto()
    """The note says what the entry said once, or what another archive said before: the entry stays."""
    CONFLICT = auto()
    """Both were changed: the entry stays, and is kept beside the note until a person settles it."""
    UNSETTLED = auto()
    """A conflict of an earlier run that nobody has settled."""


@dataclass(frozen=True, slots=True)
class Brought:
    """A note that was read, and its file's bytes. `note.uid` is empty where nobody knows the note."""

    path: Path
    data: bytes
    note: Note


@dataclass(frozen=True, slots=True)
class Reading:
    brought: tuple[Brought, ...]
    broken: tuple[Broken, ...]


def judge(brought: Brought, entry: Entry, kept: Kept | None) -> Fate:
    """`kept` is what the folder knows of the note. The entry and the note carry the same uid, and tags in the same spelling."""
    note = brought.note
    if note.same_as(entry):
        return Fate.SAME
    if kept is not None and not kept.note and beside(brought.path).exists():
        return Fate.UNSETTLED
    if kept is not None and kept.knows(entry):
        return Fate.TAKEN
    if kept is not None and not kept.wrote(brought.data):
        return Fate.CONFLICT
    if note.reviewed_with(entry):
        return Fate.TAKEN
    return Fate.OLDER if note.reviewed_at < entry.reviewed_at else Fate.NEWER


def read(folder: Path, ledger: Ledger, redact: Redact) -> Reading:
    """Every note of the folder, each uid once. What cannot be read is told by file and line."""
    found = files(folder)
    broken = [Broken(path, 0, text("vault.a_link")) for path in found.links]
    brought: list[Brought] = []
    for path in found.notes:
        one = _read(path, redact)
        broken.append(one) if isinstance(one, Broken) else brought.append(one)
    names = {kept.note: uid for uid, kept in ledger.notes.items()}
    names |= {kept.file: uid for uid, kept in ledger.notes.items()}
    return _each_once([_recognised(one, ledger, names) for one in brought], ledger, broken)


def _read(path: Path, redact: Redact) -> Brought | Broken:
    try:
        if path.stat().st_size > LARGEST_NOTE:
            return Broken(path, 0, text("vault.too_large"))
        data = path.read_bytes()
    except OSError as error:
        return Broken(path, 0, error.strerror or str(error))
    note = parse(path, data, redact)
    return note if isinstance(note, Broken) else Brought(path, data, note)


def _recognised(one: Brought, ledger: Ledger, names: dict[str, str]) -> Brought:
    """A note without a uid that was taken in before, by its place or its bytes."""
    if one.note.uid:
        return one
    uid = names.get(ledger.relative(one.path)) or names.get(digest(one.data), "")
    return replace(one, note=replace(one.note, uid=uid))


def _each_once(brought: list[Brought], ledger: Ledger, broken: list[Broken]) -> Reading:
    """Of two notes with one uid the one counts that the folder knows, else the first by name."""
    first: dict[str, Brought] = {}
    for one in brought:
        kept = ledger.notes.get(one.note.uid)
        if one.note.uid and (one.note.uid not in first or (kept and kept.file == ledger.relative(one.path))):
            first[one.note.uid] = one
    taken = []
    for one in brought:
        if not one.note.uid or first[one.note.uid] is one:
            taken.append(one)
        else:
            other = ledger.relative(first[one.note.uid].path)
            broken.append(Broken(one.path, _line_of_uid(one.data), text("vault.twice", path=other)))
    return Reading(tuple(taken), tuple(sorted(broken, key=lambda bad: (bad.path, bad.line))))


def _line_of_uid(data: bytes) -> int:
    return next((number for number, line in enumerate(data.split(b"\n"), 1) if line.startswith(b"uid:")), 1)

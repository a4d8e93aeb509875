"""What was last written into a folder of notes, so that a person's edit is told from our own writing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePath

from filelock import FileLock, Timeout

from archiver.note import version
from staging import atomic
from store.errors import WwtError
from store.records import Entry

LOCK_SECONDS = 60.0
_NAMES = "surrogateescape"
"""A file's name need not be text: it is written as the bytes that it is."""
REMEMBERED = 50
"""Versions of an entry that are remembered by name."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What was last written for an entry.

    file: path inside the folder; entry: hash of the entry then; note: hash of the file's bytes, empty while a conflict is
    unsettled; next: hash of bytes that were about to be written (a crash may have come before or after); mtime_ns, size:
    to see that nobody touched it; past: the versions that went through this note, the oldest first.
    """

    file: str
    entry: str
    note: str
    next: str = ""
    mtime_ns: int = 0
    size: int = 0
    past: tuple[str, ...] = ()

    def wrote(self, data: bytes) -> bool:
        return digest(data) in (self.note, self.next)

    def knows(self, entry: Entry) -> bool:
        """Whether the note goes back to what this entry says, so that nothing is lost when it takes the note's words."""
        return version(entry) in self.past or self.entry == entry_digest(entry)

    def after(self, *entries: Entry) -> tuple[str, ...]:
        """`past`, with what these entries say now."""
        fresh = [name for name in map(version, entries) if name not in self.past]
        return (*self.past, *fresh)[-REMEMBERED:]


@dataclass(slots=True)
class Ledger:
    """The `.wwt/state.json` of a folder. A lost or broken one costs a comparison of every note, nothing else."""

    folder: Path
    notes: dict[str, Kept] = field(default_factory=dict)
    _inside: dict[Path, bool] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Ledger:
        try:
            raw = json.loads((folder / ".wwt" / "state.json").read_text("utf-8", _NAMES))
            return cls(folder, {uid: _kept(fields) for uid, fields in raw["notes"].items()})
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return cls(folder)

    def save(self) -> None:
        stored = {"schema": 1, "notes": {uid: asdict(kept) for uid, kept in sorted(self.notes.items())}}
        data = json.dumps(stored, ensure_ascii=False, indent=1).encode("utf-8", _NAMES)
        atomic.write_if_changed(self.folder / ".wwt" / "state.json", data)

    def put(self, entry: Entry, path: Path, data: bytes) -> None:
        """Note that `data` is what the file says, and that the entry says the same."""
        stat = path.stat()
        past = self._before(entry, path).after(entry)
        self.notes[entry.uid] = Kept(
            self.relative(path), entry_digest(entry), digest(data), "", stat.st_mtime_ns, stat.st_size, past
        )

    def intend(self, entry: Entry, path: Path, data: bytes) -> None:
        """Note what is about to be written, so that a crash is never taken for an edit."""
        self.notes[entry.uid] = replace(self._before(entry, path), file=self.relative(path), next=digest(data))

    def conflict(self, entry: Entry, path: Path) -> None:
        """Note that the entry was kept beside the note. Once that file is gone, the note as it then stands is an ordinary edit."""
        past = self._before(entry, path).after(entry)
        self.notes[entry.uid] = Kept(self.relative(path), entry_digest(entry), note="", size=-1, past=past)

    def outdated(self, uid: str) -> None:
        """Note that the file is to be written anew: it holds what must not stay."""
        self.notes[uid] = replace(self.notes[uid], entry="")

    def _before(self, entry: Entry, path: Path) -> Kept:
        return self.notes.get(entry.uid) or Kept(self.relative(path), "", "")

    def relative(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def inside(self, file: str) -> Path | None:
        """The path of a remembered note; None where someone made it lead out of the folder."""
        path = self.folder / PurePath(file)
        return path if path.suffix == ".md" and self.holds(path) else None

    def holds(self, path: Path) -> bool:
        """Whether a file written to this path would be in the folder, whatever links are on the way."""
        if path.parent not in self._inside:
            self._inside[path.parent] = _leads_inside(path.parent, self.folder)
        return self._inside[path.parent]


def _leads_inside(where: Path, folder: Path) -> bool:
    try:
        return ".." not in where.relative_to(folder).parts and where.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # a ring of links; a path that is elsewhere
        return False


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def entry_digest(entry: Entry) -> str:
    return digest(json.dumps(asdict(entry), default=str).encode())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time writes into the folder, which is made if it is not there."""
    own = folder / ".wwt"
    if own.is_symlink():
        raise WwtError("vault.leads_out", path=own)
    atomic.make_folder(own)
    lock = FileLock(own / "lock", timeout=LOCK_SECONDS)
    try:
        lock.acquire()
    except Timeout as error:
        raise WwtError("vault.locked", path=folder) from error
    try:
        yield
    finally:
        lock.release()


def _kept(fields: dict[str, object]) -> Kept:
    past = fields.pop("past", ())
    if not isinstance(past, list | tuple) or not all(isinstance(value, str | int) for value in fields.values()):
        raise TypeError(fields)
    return Kept(**fields, past=tuple(map(str, past)))  # type: ignore[arg-type]

"""Removing all that wwt keeps under its home, but for the settings and the user's own rules."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from archiver.derived import Derived
from archiver.ledger import Ledger
from archiver.note import uid_of
from store.database import Database
from store.errors import WwtError
from store.reader import Reader

STAYS = frozenset({"config.toml", "rules"})
KNOWN = {
    "staging": (".*.json.tmp", ".locks/*", ".skipped/*"),
    "vault": (".wwt/*",),
    "index": (
        *("words/*", "vectors/*", "embedder/*", "rules/*", "lexicon.*", ".lock", ".*.lock"),
        *(".words-*/*", ".vectors-*/*", ".next-words/*"),
    ),
    "inbox": ("*.json", ".*.json.tmp", "quarantine/*"),
    "backups": ("archive*",),
    "log": ("*.log", "*.log.*"),
}
"""The files of each folder that are ours by their names; of documents and notes `_is_document` and `_is_note` know more."""
BESIDE = ("archive.migrating.lock", ".config.toml.lock")
DATABASE = ("archive.db-wal", "archive.db-shm", "archive.db-journal", "archive.db")
MARKS = ("staging/.locks", "vault/.wwt", "index/words/wwt.json", "index/vectors/manifest.json")
"""What tells a home where its database cannot: removed last, so that a run that was cut short can be repeated."""

_DOCUMENT = re.compile(r"(.+-[0-9a-f]{8}|patterns-.+?)(\.new)*\.json")


@dataclass(frozen=True, slots=True)
class Holding:
    """How much is there; sessions and entries are None where the database cannot be read. `left` would stay, as in `Cleared`."""

    sessions: int | None
    entries: int | None
    waiting: int
    files: int
    left: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Cleared:
    """`removed` counts files. `left` is what wwt does not know, and where links led that were removed."""

    removed: int
    left: tuple[Path, ...] = ()


def holding(root: Path) -> Holding | None:
    """What resetting would remove; None if there is nothing. A folder that is no home of wwt is refused."""
    if not any(_files(root / name) for name in KNOWN) and not any((root / name).exists() for name in DATABASE):
        if any(path.name not in (*STAYS, *KNOWN) for path in _inside(root)):
            raise WwtError("reset.not_ours", path=root)
        return None
    counts = _counts(root)
    if counts is None and not _looks_like_ours(root):
        raise WwtError("reset.not_ours", path=root)
    waiting = sum(_waiting(path) for path in _files(root / "staging") if path.parent.name == "staging")
    ours = _all(root)
    left = (*_led(ours), *_strange(root, set(ours)))
    if counts is None:
        return Holding(None, None, waiting, len(ours), left)
    return Holding(counts["sessions"], counts["entries"], waiting, len(ours), left)


def reset(root: Path) -> Cleared:
    """Remove it. Killed at any instant it can be run again. Links are removed and never followed."""
    if holding(root) is None:
        return Cleared(0)
    with _alone(root):
        ours = _all(root)
        led = _led(ours)
        marks = [path for path in ours if any(path.is_relative_to(root / mark) for mark in MARKS)]
        database = [root / name for name in DATABASE]
        removed = sum(_remove(path) for path in ours if path not in (*marks, *database))
    removed += sum(_remove(path) for path in [*database, *marks])
    for name in KNOWN:
        _drop_empty(root / name)
    return Cleared(removed, (*led, *_strange(root, ())))


# --- what is ours ---


def _all(root: Path) -> list[Path]:
    beside = (root / name for name in (*BESIDE, *DATABASE))
    return [*_ours(root), *(path for path in beside if path.is_symlink() or path.exists())]


def _led(ours: Iterable[Path]) -> list[Path]:
    """Where links among these lead."""
    return [path.parent / path.readlink() for path in ours if path.is_symlink()]


def _strange(root: Path, ours: Collection[Path]) -> list[Path]:
    """What wwt does not know."""
    found = [path for name in KNOWN for path in _files(root / name)]
    found += [path for path in _inside(root) if path.name not in (*STAYS, *KNOWN)]
    return [path for path in found if path not in ours]


def _ours(root: Path) -> list[Path]:
    notes = {root / "vault" / one.file for one in Ledger.read(root / "vault").notes.values()}
    found = []
    for name, patterns in KNOWN.items():
        for path in _files(root / name):
            by_content = (name == "staging" and _is_document(path)) or (name == "vault" and _is_note(path))
            if path == root / name or path in notes or by_content or _fits(path, root / name, patterns):
                found.append(path)
    return found


def _fits(path: Path, folder: Path, patterns: tuple[str, ...]) -> bool:
    """Whether the path is one of these: `name`, or anything below `name/*`, or a link in its place."""
    first, *below = path.relative_to(folder).parts
    for pattern in patterns:
        name, slash, _ = pattern.partition("/")
        if fnmatchcase(first, name) and (bool(below) == bool(slash) or (slash and path.is_symlink())):
            return True
    return False


def _is_document(path: Path) -> bool:
    """By the name it was given, or by what it holds."""
    if path.parent.name != "staging" or path.suffix != ".json":
        return False
    return _DOCUMENT.fullmatch(path.name) is not None or _waiting(path) > 0


def _is_note(path: Path) -> bool:
    """A note with a uid, also one that was kept beside a conflict. What a person began without one stays theirs."""
    if path.name.startswith(".") and path.name.endswith(".md.tmp"):
        return True
    if path.suffix != ".md" or path.is_symlink():
        return False
    try:
        return uid_of(path) is not None
    except OSError:
        return False


def _waiting(path: Path) -> int:
    """Findings in a staging document; 0 in anything else."""
    try:
        raw = json.loads(path.read_bytes())
        return len(raw["entries"]) if path.suffix == ".json" and "source_session" in raw else 0
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return 0


def _counts(root: Path) -> dict[str, int] | None:
    """What the database holds; None where that cannot be read, or lies elsewhere: SQLite writes beside what it opens."""
    if (root / "archive.db").is_symlink():
        return None
    try:
        with closing(Reader(root / "archive.db")) as reader:
            return reader.counts()
    except (WwtError, sqlite3.Error):
        return None


def _looks_like_ours(root: Path) -> bool:
    """Where the database cannot tell. Another program may have a folder `staging` too."""
    if any((root / mark).exists() for mark in MARKS):
        return True
    staged, ours = _files(root / "staging"), set(_ours(root))
    return bool(staged) and all(path in ours for path in staged)


# --- removing ---


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """While nobody else writes the indexes, nor the database where it can be read. What lies behind a link is not touched."""
    index, path = root / "index", root / "archive.db"
    with ExitStack() as stack:
        if index.is_dir() and not index.is_symlink() and not stack.enter_context(Derived(index).lock()):
            raise WwtError("reset.busy", path=index)
        if _counts(root) is not None:
            stack.enter_context(stack.enter_context(closing(Database(path))).transaction())
        yield


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _files(folder: Path) -> list[Path]:
    """Every file under a folder, and every link, which is not followed; the folder itself where it is one."""
    if folder.is_symlink():
        return [folder]
    found = []
    for where, folders, names in os.walk(folder):
        links = [name for name in folders if Path(where, name).is_symlink()]
        found += [Path(where, name) for name in (*links, *names)]
    return sorted(found)


def _remove(path: Path) -> int:
    try:
        path.unlink()
    except FileNotFoundError:
        return 0
    return 1


def _drop_empty(folder: Path) -> None:
    if folder.is_symlink():
        return
    for where, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):  # something is left in it
            Path(where).rmdir()

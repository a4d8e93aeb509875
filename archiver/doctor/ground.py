"""Checks of what everything stands on: Python's SQLite, the folder, its permissions and its disk, settings and rules."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

from archiver import config
from archiver.doctor.finding import DAY, Finding, Progress, Subject, fault, listed, note, ok
from archiver.home import Home
from store import health
from store.errors import WwtError
from store.messages import text

SCARCE, LITTLE = 1 << 30, 100 << 20
"""Bytes free on the disk below which there is something to say, and below which archiving may fail any day."""
OTHERS = 0o077


def sqlite(subject: Subject) -> Finding:
    version = sqlite3.sqlite_version
    if not health.capable():
        return fault("sqlite", text("doctor.sqlite_old", version=version), text("doctor.fix_sqlite"))
    return ok("sqlite", text("doctor.sqlite_ok", version=version))


def home(subject: Subject) -> Finding:
    path = subject.root
    if path.is_symlink() and not path.exists():
        words = text("doctor.home_gone", path=path, target=path.readlink())
        return fault("home", words, text("doctor.fix_home_gone"))
    if not path.exists():
        return note("home", text("doctor.home_missing", path=path), text("doctor.fix_archive"))
    if not path.is_dir():
        return fault("home", text("doctor.home_no_folder", path=path), text("doctor.fix_home"))
    return ok("home", text("doctor.home_ok", path=path))


def disk(subject: Subject) -> Finding:
    path = next(folder for folder in (subject.root, *subject.root.parents) if folder.exists())
    free = shutil.disk_usage(path).free
    size = f"{free / 1e9:,.1f} GB"
    if free < LITTLE:
        return fault("disk", text("doctor.disk_low", free=size, path=path), text("doctor.fix_disk"))
    if free < SCARCE:
        return note("disk", text("doctor.disk_low", free=size, path=path), text("doctor.fix_disk"))
    return ok("disk", text("doctor.disk_ok", free=size))


def settings(subject: Subject) -> Finding:
    path = subject.root / "config.toml"
    try:
        config.load(path)
    except WwtError as error:
        return fault("settings", text(error.key, **error.fields), text("doctor.fix_settings"))
    return ok("settings", text("doctor.settings_ok" if path.exists() else "doctor.settings_none"))


def rules(subject: Subject) -> Finding:
    faults = subject.rule_faults
    if faults:
        words = text("doctor.rules_faults", count=len(faults), faults=listed(faults))
        return fault("rules", words, text("doctor.fix_rules"))
    return ok("rules", text("doctor.rules_ok"))


# --- permissions ---


def access(subject: Subject) -> Finding:
    """Whether this user may read and write all of it; a run as another one (`sudo`) leaves files that others cannot use."""
    if _read_only(subject.root):
        return note("access", text("doctor.access_read_only", path=subject.root), text("doctor.fix_partial"))
    barred = [path for path in (subject.root, *_held(subject.root)) if not _usable(path)]
    if barred:
        words = text("doctor.access_barred", count=len(barred), names=listed(barred))
        return fault("access", words, text("doctor.fix_access", path=subject.root))
    return ok("access", text("doctor.access_ok"))


def _read_only(root: Path) -> bool:
    return hasattr(os, "statvfs") and bool(os.statvfs(root).f_flag & os.ST_RDONLY)


def _usable(path: Path) -> bool:
    """What is replaced by renaming need not be writable itself, so that a person may have write-protected it."""
    wanted = os.R_OK
    if path.is_dir():
        wanted |= os.W_OK | os.X_OK
    elif path.name.startswith("archive.db") or path.suffix == ".lock":
        wanted |= os.W_OK
    return os.access(path, wanted) or not os.path.lexists(path) or (path.is_symlink() and not path.exists())


def permissions(subject: Subject) -> Finding:
    """Folders, and the database, must be closed to others. An editor may have left another file open; nobody gets to it."""
    if os.name == "nt":
        return ok("permissions", text("doctor.permissions_ok"))
    loose = list(_loose(subject.root))
    if not loose:
        return ok("permissions", text("doctor.permissions_ok"))
    names = listed(path.relative_to(subject.root.parent) for path in loose)
    words = text("doctor.permissions_open", count=len(loose), names=names)
    serious = any(path.is_dir() or path.name.startswith("archive.db") for path in loose)
    return (fault if serious else note)("permissions", words, mend=_close)


def _loose(root: Path) -> Iterator[Path]:
    """What others may read or write."""
    yield from (path for path in (root, *_held(root)) if _open(path))


def _held(root: Path) -> Iterator[Path]:
    """All that is kept. A person's own version control inside the vault is theirs to judge."""
    for folder, names, files in os.walk(root):
        names[:] = [
            name for name in names if not (Path(folder) == root / "vault" and name[0] == "." and name != ".wwt")
        ]
        yield from (Path(folder, name) for name in (*names, *files))


def _open(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:  # gone meanwhile
        return False
    return (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and bool(mode & OTHERS)


def _close(home: Home, progress: Progress) -> str:
    loose = list(_loose(home.root))
    for path in loose:
        path.chmod(path.stat().st_mode & ~OTHERS & 0o7777)
    return text("doctor.did_permissions", count=len(loose))


# --- what was left lying about ---


def leftovers(subject: Subject) -> Finding:
    left = list(_left(subject.root, subject.now))
    if left:
        names = listed(path.relative_to(subject.root) for path in left)
        return note("leftovers", text("doctor.leftovers", count=len(left), names=names), mend=_sweep)
    return ok("leftovers", text("doctor.leftovers_none"))


def _left(root: Path, now: int) -> Iterator[Path]:
    """Our own half-written files and half-built indexes that nobody has touched for a day."""
    patterns = (
        ".*.tmp", "inbox/.*.tmp", "staging/.*.tmp", "staging/.skipped/.*.tmp", "vault/**/.*.tmp",
        "index/*.tmp", "index/rules/*.tmp", "index/*/manifest.json.tmp", "index/embedder/.*",
        "index/.words-*", "index/.vectors-*",
    )  # fmt: skip
    for path in sorted({path for pattern in patterns for path in root.glob(pattern)}):
        if _age(path, now) > DAY:
            yield path


def _age(path: Path, now: int) -> float:
    """Milliseconds since the path, or anything in it, was written."""
    try:
        times = [inner.lstat().st_mtime for inner in (path, *(path.iterdir() if path.is_dir() else ()))]
    except OSError:
        return 0.0
    return float(now - 1000 * max(times))


def _sweep(home: Home, progress: Progress) -> str:
    from store.records import now_ms  # noqa: PLC0415

    left = list(_left(home.root, now_ms()))
    for path in left:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return text("doctor.did_leftovers", count=len(left))


def locks(subject: Subject) -> Finding:
    """Never a fault: the lock is the operating system's and went with its holder; the file means nothing."""
    patterns = ("*.lock", ".*.lock", "index/.*lock", "index/words/.*.lock", "staging/.locks/*", "vault/.wwt/lock")
    found = {path for pattern in patterns for path in subject.root.glob(pattern)}
    return ok("locks", text("doctor.locks", count=len(found)))

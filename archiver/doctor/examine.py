"""All checks, in the order in which their repairs have to come; the repairs; and what is left then."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from archiver.config import Config
from archiver.doctor import database, ground, hooks, indexes, sources, waiting, wiring
from archiver.doctor.finding import Finding, Progress, State, Subject, fault
from archiver.home import Home
from store.errors import WwtError
from store.messages import text
from store.records import now_ms

Check = Callable[[Subject], Finding]

FIRST: tuple[Check, ...] = (ground.sqlite, ground.home, ground.disk)
"""These need no home."""
AT_HOME: tuple[Check, ...] = (ground.access, ground.permissions, ground.settings, ground.rules, database.database)
BEFORE_USE: tuple[Check, ...] = (database.schema, database.keys, database.texts)
"""Each needs those before it to be well, and a database that opens; the ones after them rely on what it says."""
OF_ROWS: tuple[Check, ...] = (
    database.links,
    sources.unheard,
    database.chunks,
    database.orphans,
    database.twice,
    database.clock,
    database.secrets,
    database.erasing,
    indexes.words,
    indexes.vectors,
    indexes.outbox,
    indexes.unfinished,
    sources.vanished,
    waiting.decided,
)
OF_FILES: tuple[Check, ...] = (
    waiting.staging,
    waiting.stand_ins,
    waiting.vault,
    waiting.conflicts,
    indexes.caches,
    ground.leftovers,
    ground.locks,
    hooks.inbox,
    hooks.quarantine,
    hooks.hooks,
)
LAST: tuple[Check, ...] = (indexes.model, sources.transcripts, sources.unreadable, sources.retention, wiring.wired)
EVERY = (*FIRST, *AT_HOME, *BEFORE_USE, *OF_ROWS, *OF_FILES, *LAST)


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a repair, in words."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Examination:
    findings: tuple[Finding, ...]
    fixed: tuple[Done, ...] = ()
    not_fixed: tuple[Done, ...] = ()

    @property
    def faults(self) -> int:
        return sum(found.state is State.FAULT for found in self.findings)

    @property
    def mendable(self) -> int:
        return sum(found.mend is not None for found in self.findings)


def examine(root: Path, progress: Progress = lambda stage, done, total: None) -> Examination:
    """Every check that the state of the home allows. Nothing is written, whatever the home looks like."""
    subject = Subject(root, now_ms())
    looked: dict[Check, Finding] = {}
    try:
        for check in _checks(subject, looked):
            progress("check", len(looked), len(EVERY))
            looked[check] = _looked(check, subject)
    finally:
        if subject.condition.patient is not None:
            subject.condition.patient.close()
    return Examination(tuple(looked.values()))


def _checks(subject: Subject, looked: dict[Check, Finding]) -> Iterator[Check]:
    """Each check that can be made after what was found by those before it."""
    yield from FIRST
    if not subject.root.is_dir():
        yield from LAST
        return
    if not os.access(subject.root, os.R_OK | os.X_OK):
        yield from (ground.access, *LAST)
        return
    yield from AT_HOME
    if subject.condition.patient is not None:
        for check in BEFORE_USE:
            yield check
            if looked[check].state is not State.OK:
                break
        else:
            if subject.usable:
                yield from OF_ROWS
    yield from OF_FILES
    yield from LAST


def _looked(check: Check, subject: Subject) -> Finding:
    """A check that cannot even be made is a fault, and no reason to leave the others out."""
    try:
        return check(subject)
    except WwtError as error:
        return fault(check.__name__, text(error.key, **error.fields))
    except (OSError, sqlite3.Error, ImportError) as error:
        return fault(check.__name__, text("doctor.not_looked", reason=f"{type(error).__name__}: {error}"))


def mend(root: Path, progress: Progress = lambda stage, done, total: None) -> Examination:
    """Examine, repair what can be repaired safely, and examine again. A damaged database is left alone, and all around it."""
    fixed: list[Done] = []
    failed: list[Done] = []
    tried: set[str] = set()
    # One repair may bring up the next: what is archived anew has to be embedded.
    while True:
        now = examine(root, progress)
        todo = [found for found in now.findings if found.mend is not None and found.id not in tried]
        if not todo or any(found.id in KEEP_OFF and found.state is State.FAULT for found in now.findings):
            return Examination(now.findings, tuple(fixed), tuple(failed))
        for found in todo:
            tried.add(found.id)
            _mend(root, found, progress, fixed, failed)


KEEP_OFF = ("home", "access", "database", "schema")
"""With a fault in one of these nothing is repaired."""


def _mend(root: Path, found: Finding, progress: Progress, fixed: list[Done], failed: list[Done]) -> None:
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415  costs 0.25 s; only repairing pays it

    assert found.mend is not None
    try:
        fixed.append(Done(found.id, found.mend(_opened(root), progress)))
    except WwtError as error:
        failed.append(Done(found.id, text(error.key, **error.fields)))
    except OSError as error:
        failed.append(Done(found.id, f"{error.filename or root}: {error.strerror or error}"))
    except (sqlite3.Error, SQLAlchemyError) as error:  # such as two rows that a repair would make the same
        failed.append(Done(found.id, f"{root}: {getattr(error, 'orig', None) or error}"))


def _opened(root: Path) -> Home:
    """With the default settings where a person has to correct them first; nothing is embedded then."""
    try:
        return Home.open(root)
    except WwtError:
        return Home(root, Config())

"""What a check came to, and what all checks look at."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import config
from archiver.home import Home
from store import health
from store.errors import WwtError
from store.health import Patient
from store.messages import text
from store.revision import REVISION

if TYPE_CHECKING:
    from archiver.transcript import Found
    from rules.load import Fault
    from rules.redact import Redactor
    from staging.documents import Queue, Reading

Progress = Callable[[str, int, int], None]
"""Called as (stage, done, total)."""
Mend = Callable[[Home, Progress], str]
"""Does the repair and says in words what it did. Raises WwtError or OSError where it cannot."""

LISTED = 5
DAY = 86_400_000


class State(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing is broken."""
    FAULT = "fault"
    """Wrong until it is repaired, by `mend` or by a person."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`fix` is the next step for a person, in words; `mend` is what `wwt doctor --fix` does about it."""

    id: str
    state: State
    text: str
    fix: str = ""
    mend: Mend | None = field(default=None, compare=False)


def ok(name: str, words: str) -> Finding:
    return Finding(name, State.OK, words)


def note(name: str, words: str, fix: str = "", mend: Mend | None = None) -> Finding:
    return Finding(name, State.NOTE, words, fix or _by_command(mend), mend)


def fault(name: str, words: str, fix: str = "", mend: Mend | None = None) -> Finding:
    return Finding(name, State.FAULT, words, fix or _by_command(mend), mend)


def _by_command(mend: Mend | None) -> str:
    return text("doctor.fix_by_command") if mend else ""


def listed(items: Iterable[object]) -> str:
    """The first few of them, and how many more there are."""
    every = [str(item) for item in items]
    more = len(every) - LISTED
    return ", ".join(every[:LISTED]) + (text("doctor.and_more", count=more) if more > 0 else "")


@dataclass(frozen=True)
class Subject:
    """A home as it lies there. Whatever is opened here is opened for reading, and makes nothing."""

    root: Path
    now: int
    """UTC ms."""

    @property
    def database(self) -> Path:
        return self.root / "archive.db"

    @cached_property
    def condition(self) -> Condition:
        return _condition(self.database)

    @property
    def patient(self) -> Patient:
        """The database; only checks that need one that is sound may ask."""
        assert self.condition.patient is not None
        return self.condition.patient

    @property
    def usable(self) -> bool:
        """Whether there is a database that is whole, of our schema, and can be seen as it is now."""
        patient = self.condition.patient
        seen = patient is not None and not patient.partial and not self.condition.keys
        return seen and self.condition.revision == REVISION

    @cached_property
    def settings(self) -> config.Config:
        """Defaults where the file cannot be read: the check of it tells."""
        try:
            return config.load(self.root / "config.toml")
        except WwtError:
            return config.Config()

    @cached_property
    def _secrets(self) -> tuple[Redactor, list[Fault]]:
        from rules.load import load  # noqa: PLC0415  YAML and the rule models cost 0.15 s
        from rules.redact import Redactor  # noqa: PLC0415
        from rules.schema import Secret  # noqa: PLC0415

        secrets, faults = load(Secret, self.root / "rules")  # without the cache, which would be written
        return Redactor(secrets), faults

    @property
    def redact(self) -> Redactor:
        return self._secrets[0]

    @cached_property
    def rule_faults(self) -> list[Fault]:
        if not any((self.root / "rules").glob("*.y*ml")):
            return []
        from rules.mine import load_rules  # noqa: PLC0415  0.2 s without the cache

        return list(dict.fromkeys(self._secrets[1] + load_rules(self.root / "rules")[1]))

    @cached_property
    def queue(self) -> Queue:
        from staging.documents import Queue  # noqa: PLC0415  pydantic costs 0.1 s

        return Queue(self.root / "staging", self.redact)

    @cached_property
    def staged(self) -> Reading:
        return self.queue.read()

    @cached_property
    def known_files(self) -> dict[tuple[str, str], sqlite3.Row]:
        """What the archive knows of transcript files, by agent and path; nothing where it cannot be asked."""
        return self.patient.files() if self.usable else {}

    @cached_property
    def transcripts(self) -> list[Found]:
        """In the agents' own folders."""
        from archiver import discover  # noqa: PLC0415

        return list(discover.discover())


@dataclass(frozen=True, slots=True)
class Condition:
    """Of the database file: `patient` if it can be examined. `damage` in SQLite's words, `keys` too: of its own indexes alone.

    `foreign`: it is none of ours. `closed`: we may not read it.
    """

    patient: Patient | None = None
    damage: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    foreign: bool = False
    closed: bool = False
    revision: str | None = None


def _condition(path: Path) -> Condition:
    if not os.path.exists(path) or (path.is_file() and path.stat().st_size == 0):  # noqa: PTH110  raises nothing
        return Condition()
    if not path.is_file():
        return Condition(foreign=True)
    if not os.access(path, os.R_OK):
        return Condition(closed=True)
    try:
        patient = Patient(path)
    except sqlite3.DatabaseError as error:
        return Condition(damage=(str(error),))
    condition = _examined(patient)
    if condition.patient is None:
        patient.close()
    return condition


def _examined(patient: Patient) -> Condition:
    found = health.damage(patient)
    if found is not None and not found.of_keys:
        return Condition(damage=found.reasons)
    try:
        return Condition(patient, keys=found.reasons if found else (), revision=health.revision(patient))
    except sqlite3.DatabaseError as error:
        return Condition(damage=(str(error),))
    except LookupError:
        return Condition(foreign=True)

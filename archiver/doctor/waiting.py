"""Checks of what a person decides about: the review queue and the vault."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from archiver.doctor.finding import Finding, Progress, Subject, fault, listed, note, ok
from archiver.home import Home
from store import health, verdicts
from store.messages import text

if TYPE_CHECKING:
    from archiver.note import Broken

# --- the queue -------------------------------------------------------------------------------------------------------


def staging(subject: Subject) -> Finding:
    """A broken document is left as it is: what waits in it is a person's."""
    reading = subject.staged
    if reading.broken:
        names = listed(f"{bad.path}:{bad.line}: {bad.reason}" for bad in reading.broken)
        words = text("doctor.staging_broken", count=len(reading.broken), names=names)
        return fault("staging", words, text("doctor.fix_staging"))
    waiting = sum(len(staged.document.entries) for staged in reading.staged)
    return ok("staging", text("doctor.staging_ok", documents=len(reading.staged), count=waiting))


def stand_ins(subject: Subject) -> Finding:
    """Documents that were written because their own was broken. They are reviewed like any other."""
    names = [staged.name for staged in subject.staged.staged if staged.name.endswith(".new.json")]
    if names:
        return note(
            "stand_ins", text("doctor.stand_ins", count=len(names), names=listed(names)), text("doctor.fix_review")
        )
    return ok("stand_ins", text("doctor.stand_ins_none"))


def decided(subject: Subject) -> Finding:
    """Findings that were decided, and whose document a crash kept from hearing of it."""
    items = [item for staged in subject.staged.staged for item in staged.document.entries]
    known = verdicts.lookup(subject.patient, [anchor for item in items for anchor in item.anchors])
    if count := sum(any(anchor in known for anchor in item.anchors) for item in items):
        return note("decided", text("doctor.decided", count=count), mend=_settle)
    return ok("decided", text("doctor.decided_none"))


def _settle(home: Home, progress: Progress) -> str:
    from staging.waiting import settle  # noqa: PLC0415  pydantic costs 0.1 s

    return text("doctor.did_decided", count=settle(home.queue, verdicts.lookup_in(home.database_path)))


# --- the vault -------------------------------------------------------------------------------------------------------


def vault(subject: Subject) -> Finding:
    folder = subject.root / "vault"
    brought, broken = _notes(subject, folder)
    if broken:
        names = listed(f"{bad.path}:{bad.line}: {bad.reason}" for bad in broken)
        return fault("vault", text("doctor.vault_broken", count=len(broken), names=names), text("doctor.fix_vault"))
    damaged = _damaged_lines(folder)
    missing = _missing(subject, brought) if subject.usable else []
    if missing or damaged:
        return note("vault", text("doctor.vault_behind", count=len(missing), lines=damaged), mend=_mirror)
    return ok("vault", text("doctor.vault_ok", count=len(brought)))


def _notes(subject: Subject, folder: Path) -> tuple[set[str], tuple[Broken, ...]]:
    if not folder.is_dir():
        return set(), ()
    from archiver.adopt import read  # noqa: PLC0415  YAML and SQLAlchemy
    from archiver.ledger import Ledger  # noqa: PLC0415

    reading = read(folder, Ledger.read(folder), subject.redact)
    return {one.note.uid for one in reading.brought}, reading.broken


def _missing(subject: Subject, brought: set[str]) -> list[str]:
    return [row["uid"] for row in health.active_entries(subject.patient) if row["uid"] not in brought]


def _damaged_lines(folder: Path) -> int:
    """Lines of the mirrored verdicts that say nothing."""
    from archiver.mirror import VERDICTS, read_verdicts  # noqa: PLC0415

    try:
        lines = (folder / ".wwt" / VERDICTS).read_bytes().split(b"\n")
    except FileNotFoundError:
        return 0
    return sum(bool(line.strip()) for line in lines) - len(read_verdicts(folder))


def _mirror(home: Home, progress: Progress) -> str:
    return text("doctor.did_vault", count=home.vault.sync().written)


def conflicts(subject: Subject) -> Finding:
    """Notes that were changed on both sides."""
    from archiver.notes import CONFLICT  # noqa: PLC0415

    found = sorted((subject.root / "vault").rglob(f"*{CONFLICT}"))
    if found:
        words = text("doctor.conflicts", count=len(found), names=listed(found))
        return fault("conflicts", words, text("doctor.fix_conflicts"))
    return ok("conflicts", text("doctor.conflicts_none"))

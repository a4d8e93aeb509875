"""Taking quotes that the archive dropped out of the notes that `Vault.sync` leaves alone: broken, doubled, and conflicting ones."""

from __future__ import annotations

from pathlib import Path

from archiver.ledger import Ledger, locked
from archiver.note import renewed, uid_of
from staging import atomic
from store import knowledge
from store.database import Database
from store.records import Entry


def withdraw(folder: Path, database: Database) -> int:
    """How many notes that were. What a person may edit stays as it is; drafts that a crash left behind go."""
    with database.transaction() as tx:
        every = knowledge.list_entries(tx, knowledge.Filters(status=None))
    lacking = {entry.uid: entry for entry in every if not all(quote.quote for quote in entry.evidence)}
    if not lacking:
        return 0
    with locked(folder):
        for draft in folder.rglob(".*.md.tmp"):
            draft.unlink(missing_ok=True)
        ledger = Ledger.read(folder)
        known = {ledger.inside(kept.file): uid for uid, kept in ledger.notes.items()}
        notes = [path for path in folder.rglob("*.md") if path.is_file() and not path.is_symlink()]
        return sum(_withdraw(path, lacking, known.get(path)) for path in notes)


def _withdraw(path: Path, lacking: dict[str, Entry], known: str | None) -> bool:
    before = path.read_bytes()
    entry = lacking.get(uid_of(path) or known or "")
    after = before if entry is None else renewed(before, entry)
    return after != before and atomic.write(path, after)

"""Masking everything that is kept again after the secret rules changed. Safe to stop: what is masked stays, the rest is done next time."""

from __future__ import annotations

from archiver import erase, fingerprint
from archiver.home import Home
from archiver.ingest import rechunk
from store import knowledge, masking, sessions
from store.tables import entry, turn

VERSION = "redaction_version"


def remask(home: Home) -> int:
    """Bring every stored text to the current secret rules: database, queue, vault, indexes. Returns how many texts changed."""
    # Taken before the rules are read: a file that changes meanwhile is noticed next time.
    seen = fingerprint.secret_rules(home.rules_folder)
    version = home.redact.version
    with home.database.transaction() as tx:
        known = masking.get_meta(tx, VERSION) == version
    total = 0 if known else _everything(home)
    with home.database.transaction() as tx:
        masking.set_meta(tx, VERSION, version)
        masking.set_meta(tx, fingerprint.KEY, seen)
    return total


def _everything(home: Home) -> int:
    total = home.queue.mask_again()
    for table in masking.tables():
        after: int | None = 0
        while after is not None:
            with home.database.transaction() as tx:
                changed, after = masking.remask(tx, table, home.redact, after)
                if changed:
                    erase.note(tx)
                if table is turn:
                    for session_id in {row.session_id for row in changed}:
                        altered = {row.id for row in changed if row.session_id == session_id}
                        rechunk(tx, session_id, sessions.Change(altered=altered))
                elif table is entry:
                    for row in changed:
                        knowledge.reindex(tx, row.id)
            total += len(changed)
    total += home.vault.mask_again()
    erase.finish(home)
    return total

"""Masking the whole archive again after its secret rules changed. Safe to stop: what is masked stays, the rest is done next time."""

from __future__ import annotations

from archiver.home import Home
from archiver.ingest import rechunk
from store import knowledge, masking, sessions
from store.tables import entry, turn

VERSION = "redaction_version"


def remask(home: Home) -> int:
    """Bring every stored text to the current secret rules, derived indexes included; returns how many texts changed."""
    total = 0
    for table in masking.tables():
        after: int | None = 0
        while after is not None:
            with home.database.transaction() as tx:
                changed, after = masking.remask(tx, table, home.redact, after)
                if table is turn:
                    for session_id in {row.session_id for row in changed}:
                        altered = {row.id for row in changed if row.session_id == session_id}
                        rechunk(tx, session_id, sessions.Change(altered=altered))
                elif table is entry:
                    for row in changed:
                        knowledge.reindex(tx, row.id)
            total += len(changed)
    if total:
        home.database.checkpoint()
        home.index.purge()
    with home.database.transaction() as tx:
        masking.set_meta(tx, VERSION, home.redact.version)
    return total

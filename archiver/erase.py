"""Leaving nothing behind of words that were dropped or masked: not in the write-ahead log, the indexes, or the vault.

What is due is noted in the transaction that drops the words, so that no crash can skip it.
"""

from __future__ import annotations

import uuid

from sqlalchemy import Connection

from archiver.home import Home
from store import masking

DUE = "erase_due"


def note(tx: Connection) -> None:
    """Say that this transaction drops words that must be in no file afterwards."""
    masking.set_meta(tx, DUE, uuid.uuid4().hex)


def finish(home: Home) -> bool:
    """Do what is due. False if a part must wait for another process; the next run goes on."""
    with home.database.transaction() as tx:
        due = masking.get_meta(tx, DUE)
    if due is None:
        return True
    home.vault.sync()
    if not (home.database.checkpoint() and home.index.purge()):
        return False
    with home.database.transaction() as tx:
        # Only what was due when this began is done: another process may have dropped more meanwhile.
        masking.drop_meta(tx, DUE, due)
    return True

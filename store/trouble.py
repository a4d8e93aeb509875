"""What SQLite reports, as trouble that a person can do something about. Standard library only."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from store.errors import REPAIR, WwtError


def explained(error: sqlite3.Error, path: Path) -> WwtError | None:
    """None where it is a fault of the program, not of the disk or the file."""
    reason = str(error)
    if "malformed" in reason or reason.startswith("Could not decode"):  # whose end is what was stored
        return WwtError("store.damaged", path=path, exit_code=REPAIR)
    if "full" in reason:
        return WwtError("store.disk_full", path=path)
    if "readonly" in reason or "unable to open" in reason:
        return WwtError("store.read_only", path=path)
    if "locked" in reason:
        return WwtError("store.locked", path=path)
    if "not a database" in reason:
        return WwtError("store.not_a_database", path=path, exit_code=REPAIR)
    if "disk I/O" in reason:
        return WwtError("store.disk_trouble", path=path, reason=reason)
    return None

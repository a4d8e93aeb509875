"""Leaving nothing behind of words that were dropped or masked: in no file under the home.

What is due is noted in the transaction that drops the words, so that no crash can skip it.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from sqlalchemy import Connection

from archiver import inbox
from archiver.derived import Derived
from archiver.home import Home
from archiver.ingest import safe_id
from archiver.withdraw import withdraw
from store import forgetting, masking
from store.forgetting import Named

DUE = "erase_due"
LOCK = ".erase.lock"
"""Of whoever cleans up; in the folder of the indexes."""

Progress = Callable[[int, int], None]
"""Called as (done, total) while the word index is made anew, which takes longest."""

_UPGRADED = re.compile(r"archive-\d+\.db")
"""Copies from before an upgrade. Whatever else is kept there only goes when its user has something forgotten."""


def note(tx: Connection) -> None:
    """Say that this transaction drops words that must be in no file afterwards."""
    masking.set_meta(tx, DUE, uuid.uuid4().hex)


def finish(home: Home, progress: Progress | None = None) -> bool:
    """Do what is due. False if a part must wait for another process; the next run goes on."""
    with home.database.transaction() as tx:
        due, forgotten = masking.get_meta(tx, DUE), forgetting.due(tx)
    if due is None and not forgotten:
        return True
    with Derived(home.root / "index").lock(0, LOCK) as held:
        if not held or not _clean(home, forgotten, progress):
            return False
    with home.database.transaction() as tx:
        forgetting.done(tx, forgotten)
        # Only what was due when this began is done: another process may have dropped more meanwhile.
        if due is not None:
            masking.drop_meta(tx, DUE, due)
    return True


def _clean(home: Home, forgotten: Mapping[Named, int], progress: Progress | None) -> bool:
    _drop_documents(home, forgotten)
    _drop_events(home, forgotten)
    for copy in backups(home.root):
        if forgotten or _UPGRADED.fullmatch(copy.name):
            copy.unlink(missing_ok=True)
    home.vault.sync()
    withdraw(home.vault.folder, home.database)
    # Whatever can be done is done, also where a part has to wait.
    return all([home.database.compact(), home.index.purge(progress), home.database.checkpoint()])


def backups(root: Path) -> list[Path]:
    """Copies of the database: what was said stands in them as it was when they were made."""
    return sorted(path for path in (root / "backups").glob("archive*") if path.is_file())


def _drop_documents(home: Home, forgotten: Iterable[Named]) -> None:
    gone = {(named.agent, str(named.external_id)) for named in forgotten}
    for agent, session in gone:
        home.queue.forget(agent, session)
    for staged in home.queue.read().staged if gone else ():
        document = staged.document
        if any((document.agent, source) in gone for source in (document.source_session, *document.sources)):
            home.queue.change(staged.name, lambda old: None)  # under another name than it was given


def _drop_events(home: Home, forgotten: Mapping[Named, int]) -> None:
    """What hooks told of the sessions before they were forgotten."""
    folder = home.root / "inbox"
    for path, event in inbox.waiting(folder) if forgotten else ():
        if event and event.at <= forgotten.get(Named(event.agent, safe_id(event.session, home.redact)), 0):
            path.unlink(missing_ok=True)
    # What holds no event, or only half of one, may still name the session.
    for path in (*folder.glob("quarantine/*"), *folder.glob(".*.tmp")):
        if path.is_file() and any(_names(path, named, up_to) for named, up_to in forgotten.items()):
            path.unlink(missing_ok=True)


def _names(path: Path, named: Named, up_to: int) -> bool:
    try:
        written, content = path.stat().st_mtime_ns // 1_000_000, path.read_bytes()
    except FileNotFoundError:  # it was a hook's draft, and is an event now
        return False
    return written <= up_to and json.dumps(named.external_id)[1:-1].encode() in content

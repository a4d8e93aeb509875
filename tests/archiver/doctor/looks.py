"""What the tests of the doctor ask of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from archiver.doctor.examine import Examination, examine, mend
from archiver.doctor.finding import Finding, State

OK, NOTE, FAULT = State.OK, State.NOTE, State.FAULT


def found(root: Path, name: str) -> Finding:
    return next(one for one in examine(root).findings if one.id == name)


def unwell(root: Path) -> dict[str, State]:
    """What is not as it should be."""
    return {one.id: one.state for one in examine(root).findings if one.state is not OK}


def mended(root: Path, name: str) -> Examination:
    """Repair, and see that this was repaired by name, that nothing is wrong now, and that a second time there is nothing to do."""
    first = mend(root)
    assert name in {done.id for done in first.fixed}, first
    assert first.not_fixed == ()
    assert {one.id for one in first.findings if one.state is not OK} == set()
    assert mend(root).fixed == ()
    return first


def program(folder: Path) -> Path:
    """A wwt-hook that can be called."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "wwt-hook"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def calling(*commands: str, event: str = "SessionStart") -> dict[str, object]:
    """What an agent's settings say to have these commands called."""
    return {"hooks": {event: [{"hooks": [{"type": "command", "command": command}]} for command in commands]}}


@contextmanager
def database(root: Path) -> Iterator[sqlite3.Connection]:
    """The database without its foreign keys being looked after, as a fault of wwt or of a disk would write it."""
    with closing(sqlite3.connect(root / "archive.db")) as db, db:
        yield db


def contents(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its clock, but for the memory that SQLite's processes share."""
    return {
        str(path.relative_to(root)): (path.stat().st_mtime_ns, b"" if path.is_dir() else path.read_bytes())
        for path in [root, *root.rglob("*")]
        if not path.name.endswith(("-shm", ".arrays"))
    }

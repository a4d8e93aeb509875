"""Transcripts put where their agents keep them, and what the real archive makes of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from archiver import review
from archiver.archive import Report, Wish, archive
from archiver.cli.search import find
from archiver.home import Home
from archiver.recall import Recall, recall
from staging.waiting import Filters
from store.records import Hit
from tests.archiver.sources.transcripts import Row, write

SHOP = "-srv-shop"


def claude(*rows: Row, session: str = "S1", folder: str = SHOP, **how: Any) -> Path:
    """A Claude Code transcript in the agent's own folder."""
    return write(Path.home() / ".claude" / "projects" / folder / f"{session}.jsonl", *rows, **how)


def openclaw(*rows: Row, name: str = "S1.jsonl", **how: Any) -> Path:
    """An OpenClaw transcript in the agent's own folder; `name` carries what a reset or a deletion put behind it."""
    return write(Path.home() / ".openclaw" / "agents" / "main" / "sessions" / name, *rows, **how)


def run(*paths: Path, finished: bool = True, **wish: Any) -> Report:
    """Archive the agents' folders, or these paths; by default as if every session were over."""
    return archive(Home.open(), Wish(tuple(paths), finished=finished, **wish))


def read(*paths: Path, finished: bool = True) -> Report:
    """Archive without mining, where only what was said matters."""
    return run(*paths, finished=finished, distil=False)


def said(session: str = "S1", *, every: bool = False) -> list[tuple[str, str]]:
    """(role, text) of a session's own live turns, in order; with `every`, the abandoned and the shared ones too."""
    reader = Home.open().reader
    rows = [turn for row in reader.sessions("WHERE s.external_id = ?", (session,)) for turn in reader.turns(row.id)]
    return [(row["role"], row["text"]) for row in rows if every or (row["own"] and row["state"] == "live")]


def sessions() -> dict[str, Any]:
    return {row.external_id: row for row in Home.open().reader.sessions("")}


def titles() -> dict[str, str | None]:
    return {name: row.title for name, row in sessions().items()}


def projects() -> dict[str, str]:
    """Key of each project, by session."""
    rows = Home.open().reader.rows("SELECT s.external_id, p.key FROM session s JOIN project p ON p.id = s.project_id")
    return {row["external_id"]: row["key"] for row in rows}


def search(words: str, **wanted: Any) -> list[Hit]:
    return list(find(Home.open(), words, project=None, everything=True, **wanted).hits)


def found(words: str, **wanted: Any) -> bool:
    """Whether some result holds these very words."""
    return any(words.casefold() in hit.text.casefold() for hit in search(words, **wanted))


def waiting() -> list[dict[str, Any]]:
    return list(review.list_waiting(Home.open().desk, Filters()).rows)


def staged() -> list[str]:
    """Summary and detail of everything that waits."""
    return [f"{row['summary']}\n{row['detail']}" for row in waiting()]


def accept_all() -> review.Batch:
    return review.accept_all(Home.open().desk, Filters())


def reject_all() -> review.Batch:
    return review.reject_all(Home.open().desk, Filters())


def recalled(cwd: str = "/srv/shop", *, budget: int = 1500, asked: tuple[str, ...] = ()) -> Recall:
    home = Home.open()
    return recall(home.reader, Path(cwd), budget=budget, aliases=home.aliases(), asked=asked)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def still(path: Path, when: int) -> Path:
    """Set the file's clock to this second."""
    os.utime(path, (when, when))
    return path

"""Which project a command is about: the one at hand, one that is named, or all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from archiver.home import Home
from archiver.recall import project_at
from store import messages
from store.errors import USAGE, WwtError


@dataclass(frozen=True, slots=True)
class Scope:
    """`projects` are ids, or None for every project; `label` is what a person calls it, `key` the folder that names it."""

    projects: tuple[int, ...] | None
    label: str
    key: str | None = None

    @property
    def project(self) -> int | None:
        return self.projects[0] if self.projects else None


def scope_of(home: Home, project: str | None, *, everything: bool, cwd: Path | None = None) -> Scope:
    """`--all`, else `--project`, else the project of the current folder; in a folder that is none, everything."""
    if everything and project:
        raise WwtError("scope.both", exit_code=USAGE)
    if everything:
        return Scope(None, messages.text("scope.all"))
    if project:
        return _named(home, project)
    here = project_at(home.reader, cwd or Path.cwd())
    if here is None:
        return Scope(None, messages.text("scope.no_project"))
    row = next(row for row in home.reader.projects() if row["id"] == here)
    return Scope((here,), row["name"], row["key"])


def _named(home: Home, wanted: str) -> Scope:
    """By exact name or path, else by a part of either. Several matches are listed rather than guessed at."""
    rows = home.reader.projects()
    low = wanted.rstrip("/").casefold()
    exact = [row for row in rows if low in (row["name"].casefold(), row["key"].casefold())]
    found = exact or [row for row in rows if low in row["name"].casefold() or low in row["key"].casefold()]
    if not found:
        known = ", ".join(row["name"] for row in rows[:20]) or messages.text("scope.none_known")
        raise WwtError("scope.unknown", name=wanted, known=known, exit_code=USAGE)
    if len(found) > 1:
        listed = "\n  ".join(f"{row['name']}  {row['key']}" for row in found[:20])
        raise WwtError("scope.ambiguous", name=wanted, known=listed, exit_code=USAGE)
    return Scope((found[0]["id"],), found[0]["name"], found[0]["key"])

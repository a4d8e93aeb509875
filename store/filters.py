"""What a search is limited to, as both indexes and the rows beside them apply it."""

from __future__ import annotations

from dataclasses import dataclass

EVERYWHERE = 0
"""Project number of an entry of global scope. Rows without a project have -1."""
NO_PROJECT = -1


@dataclass(frozen=True, slots=True)
class Filter:
    """None means no limit; an empty set matches nothing. Times are UTC ms, both ends included.

    `sessions` limits chunks, `entry_ids` limits entries; `projects` limits both, but an entry of global
    scope belongs to every project.
    """

    projects: frozenset[int] | None = None
    sessions: frozenset[int] | None = None
    entry_ids: frozenset[int] | None = None
    since: int | None = None
    until: int | None = None
    chunks: bool = True
    entries: bool = True
    roles: frozenset[str] = frozenset({"speech", "tool"})

    def admits(self, *, ref: int, project: int, session: int, time: int, role: str) -> bool:
        """Whether a single row passes; the indexes apply the same rule to all of theirs at once."""
        if (self.since is not None and time < self.since) or (self.until is not None and time > self.until):
            return False
        if ref < 0:
            in_project = self.projects is None or project == EVERYWHERE or project in self.projects
            return self.entries and in_project and (self.entry_ids is None or -ref in self.entry_ids)
        return (
            self.chunks
            and role in self.roles
            and (self.projects is None or project in self.projects)
            and (self.sessions is None or session in self.sessions)
        )

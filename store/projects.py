"""Projects: which folder a session belongs to, and how a person names one."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from store.records import SafeText
from store.tables import project, project_path


def ensure(tx: Connection, key: SafeText, name: SafeText, path: SafeText) -> int:
    """Id of the project at `key`, made if new. `path` is remembered as one of its folders (a worktree, a subfolder)."""
    known = tx.execute(select(project_path.c.project_id).where(project_path.c.path == path)).scalar()
    if known is not None:
        return int(known)
    found = tx.execute(select(project.c.id).where(project.c.key == key)).scalar()
    made = int(found) if found is not None else _insert(tx, key, name)
    tx.execute(insert(project_path).values(project_id=made, path=path))
    return made


def _insert(tx: Connection, key: SafeText, name: SafeText) -> int:
    return int(tx.execute(insert(project).values(key=key, name=name).returning(project.c.id)).scalar_one())

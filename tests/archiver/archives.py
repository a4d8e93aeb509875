"""A small archive and an embedder of ten lines, for tests of the index and search flows."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from sqlalchemy import delete, func, insert, select

import migrations
from archiver.index import Index
from archiver.search import Query, Results, search
from store.database import Database
from store.embeddings import drop_unshared
from store.outbox import enqueue
from store.reader import Reader
from store.records import SafeText
from store.tables import chunk, entry, project, session


class Letters:
    """An embedder of ten lines: texts with the same letters are near each other."""

    dimensions = 64

    def __init__(self, model: str = "letters-1") -> None:
        self.model = model
        self.seen = 0

    def passages(self, texts: list[str]) -> np.ndarray:
        self.seen += len(texts)
        return np.stack([self.query(text) for text in texts]) if texts else np.zeros((0, 64), np.float32)

    def query(self, text: str) -> np.ndarray:
        vector = np.zeros(64, np.float32)
        for c in text:
            if not c.isspace():
                vector[hash_of(c + self.model) % 64] += 1
        length = float(np.linalg.norm(vector))
        return vector / length if length else vector


def hash_of(text: str) -> int:
    return int(hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8], 16)


class Archive:
    """A migrated database with one project, and an index over it."""

    def __init__(self, root: Path, embedder: Letters | None = None) -> None:
        self.root, self.embedder = root, embedder
        root.mkdir(exist_ok=True)
        migrations.upgrade(root / "archive.db", root / "backups")
        self.database = Database(root / "archive.db")
        self.reader = Reader(root / "archive.db")
        self.index = self.opened()
        with self.database.transaction() as tx:
            tx.execute(insert(project).values(id=1, key=SafeText("/p"), name=SafeText("p")))

    def opened(self) -> Index:
        return Index(self.root / "index", self.root / "archive.db", lambda: self.database, lambda: self.embedder)

    def say(
        self, *texts: str, session_id: int = 1, role: str = "speech", announce: bool = True, **values: object
    ) -> list[int]:
        """Chunks of a session, which is made when it is new; returns their ids."""
        with self.database.transaction() as tx:
            if not tx.execute(select(session.c.id).where(session.c.id == session_id)).first():
                name = SafeText(f"{session_id:08d}-session")
                tx.execute(
                    insert(session).values(
                        id=session_id, agent="claude", external_id=name, project_id=1, started_at=1_000
                    )
                )
            count = tx.execute(select(func.count()).where(chunk.c.session_id == session_id)).scalar_one()
            rows = [
                {
                    "session_id": session_id, "first_ord": count + i * 1 + 1, "last_ord": count + i + 1, "role": role,
                    "heading": SafeText(""), "text": SafeText(text), "hash": hashlib.sha256(text.encode()).hexdigest(), **values,
                }
                for i, text in enumerate(texts)
            ]  # fmt: skip
            ids = list(tx.execute(insert(chunk).returning(chunk.c.id), rows).scalars())
            if announce:
                enqueue(tx, "chunk", ids, "put")
        return ids

    def forget(self, *ids: int) -> None:
        with self.database.transaction() as tx:
            hashes = list(tx.execute(select(chunk.c.hash).where(chunk.c.id.in_(ids))).scalars())
            tx.execute(delete(chunk).where(chunk.c.id.in_(ids)))
            drop_unshared(tx, hashes)
            enqueue(tx, "chunk", ids, "delete")

    def know(self, summary: str, detail: str = "", **values: object) -> int:
        with self.database.transaction() as tx:
            uid = f"e{tx.execute(select(func.count()).select_from(entry)).scalar_one() + 1}"
            row = {
                "uid": uid, "type": "solution", "summary": SafeText(summary), "detail": SafeText(detail), "hash": f"h-{uid}",
                "project_id": 1, "decided_by": "user", "created_at": 1_000, "reviewed_at": 1_000, **values,
            }  # fmt: skip
            id_ = int(tx.execute(insert(entry).returning(entry.c.id), row).scalar_one())
            enqueue(tx, "entry", [id_], "put")
        return id_

    def bring_up(self) -> None:
        self.index.ensure()
        self.index.apply()
        self.index.embed_missing()

    def search(self, text: str, **wanted: object) -> Results:
        return search(self.reader, self.index, self.embedder, Query(text, **wanted))  # type: ignore[arg-type]

    def found(self, text: str, **wanted: object) -> list[str]:
        return [hit.id for hit in self.search(text, **wanted).hits]

    def count(self, table: object) -> int:
        with self.database.transaction() as tx:
            return int(tx.execute(select(func.count()).select_from(table)).scalar_one())  # type: ignore[arg-type]

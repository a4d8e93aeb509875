"""The derived indexes: opened, brought up to the database, made where they are missing or damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from archiver.derived import Derived
from store import lookup
from store.lookup import Found, Waiting
from store.reader import Reader
from store.vectors import VectorRow, Vectors, VectorsDamaged
from store.words import MARKER, Row, Words, WordsBusy, WordsDamaged

if TYPE_CHECKING:
    from archiver.embed.protocol import Embedder
    from store.database import Database

Progress = Callable[[int, int], None]
"""Called as (done, total)."""

BATCH = 2_000
"""Outbox rows applied at once: a commit of the word index costs 50 ms, whatever is in it."""
STRAIGHT = 2_000
"""Un-applied rows that a search scores from the tables; with more of them it applies them first."""


class Index:
    """The word index and the vector index of one archive.

    Everything here can be run again at any time and interrupted at any time. One process writes; another one that
    comes meanwhile leaves its rows in the outbox, where searches see them.
    """

    def __init__(
        self, root: Path, database_path: Path, database: Callable[[], Database], embedder: Callable[[], Embedder | None]
    ) -> None:
        self.derived = Derived(root)
        self.database = database
        self._database_path = database_path
        self._embedder = embedder
        self._words: Words | None = None
        self._place = 0
        self._vectors: Vectors | None = None
        self._seen: tuple[int, int] | None = None

    @cached_property
    def reader(self) -> Reader:
        return Reader(self._database_path)

    # --- reading ---

    def words(self) -> Words | None:
        """The word index as last committed, or None where it is missing or damaged; `ensure` makes it."""
        try:
            place = (self.derived.words / MARKER).stat().st_ino
            if self._words is None or self._place != place:  # another one may stand there now
                self._words, self._place = Words(self.derived.words), place
            else:
                self._words.reload()
        except (WordsDamaged, OSError):
            self._words = None
        return self._words

    def vectors(self) -> Vectors | None:
        """The vector index as last written, or None where there is none that can be read."""
        try:
            stat = (self.derived.vectors / "manifest.json").stat()
            if self._vectors is None or self._seen != (stat.st_ino, stat.st_mtime_ns):
                self._vectors = Vectors(self.derived.vectors)
                self._seen = (stat.st_ino, stat.st_mtime_ns)
        except (VectorsDamaged, OSError):
            self._vectors = None
        return self._vectors

    # --- bringing up ---

    def ensure(self, progress: Progress | None = None) -> list[str]:
        """Make what is missing or damaged from the database. Returns message keys of what a person should hear.

        A search calls it: it costs two opened files when all is well, and needs no SQLAlchemy.
        """
        if not self._database_path.exists():
            return []
        words, vectors = self.words(), self.vectors()
        if words is None or (vectors is None and lookup.has_vectors(self.reader)):
            with self.derived.lock() as held:
                if not held:
                    return ["search.rebuilding"]
                return self._mend(progress)
        if lookup.waiting_count(self.reader, STRAIGHT + 1) > STRAIGHT and not self.apply(progress):
            return ["search.rebuilding"]
        return []

    def _mend(self, progress: Progress | None) -> list[str]:
        """Under the lock; another process may have done it meanwhile."""
        damaged = False
        if self.words() is None:
            damaged = self.derived.words.exists()
            # Where everything still waits in the outbox, applying it is the whole work.
            if lookup.waiting_count(self.reader, None) >= lookup.count(self.reader):
                self.derived.swap(Words.create(self.derived.fresh(self.derived.words)).folder, self.derived.words)
            else:
                self._make_words(progress)
        if self.vectors() is None and (model := self.best_model()):
            damaged = damaged or self.derived.vectors.exists()
            self.make_vectors(model)
        return ["search.rebuilt"] if damaged else []

    def best_model(self) -> str | None:
        """The model whose vectors the vector index should be made of; None where none are kept."""
        kept = lookup.models(self.reader)
        in_use = lookup.model_in_use(self.reader)
        return in_use if in_use in kept else next(iter(kept), None)

    def apply(self, progress: Progress | None = None) -> int:
        """Bring both indexes up to the outbox. Returns how many rows of it were applied; 0 when another process is at it."""
        total = lookup.waiting_count(self.reader, None)
        if not total:
            return 0
        done = 0
        with self.derived.lock() as held:
            if not held:
                return 0
            self._mend(progress)
            while batch := lookup.waiting(self.reader, BATCH):
                if not self._apply_batch(batch):
                    break
                done += len(batch)
                if progress:
                    progress(min(done, total), total)
        return done

    def _apply_batch(self, batch: list[Waiting]) -> bool:
        """One batch into both indexes, then off the outbox. What the rows hold now counts, not what they held then."""
        from store import outbox  # noqa: PLC0415  # SQLAlchemy costs 0.25 s; a search that writes nothing goes without

        rows = {
            ref: row
            for ref, row in lookup.found(self.reader, {w.ref for w in batch}).items()
            if row.status != "retired"
        }
        words_done = self._apply_words({w.ref for w in batch if not w.applied_words}, rows)
        self._apply_vectors({w.ref for w in batch if not w.applied_vectors}, rows)
        with self.database().transaction() as tx:
            outbox.applied(tx, [w.id for w in batch], words=words_done, vectors=True)
        return words_done

    def _apply_words(self, refs: set[int], rows: dict[int, Found]) -> bool:
        words = self.words()
        if words is None:
            return False
        if not refs:
            return True
        try:
            with words.writing() as writer:
                for ref in sorted(refs):
                    if row := rows.get(ref):
                        writer.put(word_row(row))
                    else:
                        writer.delete(ref)
        except WordsBusy:
            return False
        return True

    def _apply_vectors(self, refs: set[int], rows: dict[int, Found]) -> None:
        """Rows without a vector of the index's model are taken out: their text is new, their vector follows."""
        vectors = self.vectors()
        if vectors is None or not refs:
            return
        made = vector_rows(self.reader, [rows[ref] for ref in sorted(refs) if ref in rows], vectors.model)
        put = [row for row in made if len(row.vector) == 2 * vectors.dimensions]
        vectors.apply(put, refs - {row.ref for row in put})
        self._seen = None

    def embed_missing(self, progress: Progress | None = None) -> int:
        """See `archiver.embedding`; 0 where the setting names no model."""
        # The model that the vectors are of first, then the setting: a move to another model changes them the other way round.
        began, embedder = lookup.model_in_use(self.reader), self._embedder()
        if embedder is None:
            return 0
        from archiver.embedding import embed_missing  # noqa: PLC0415  # a search has no use for it

        return embed_missing(self, embedder, began, progress)

    # --- making anew ---

    def purge(self, progress: Progress | None = None) -> bool:
        """Apply what waits, and leave nothing in the files of the indexes but what the tables hold. False when another is at it.

        Tantivy keeps the words of a deleted row until a merge happens to come by, so its folder is made anew.
        """
        from store import masking, outbox  # noqa: PLC0415  # SQLAlchemy costs 0.25 s

        self.apply()
        with self.derived.lock() as held:
            if not held:
                return False
            with self.database().transaction() as tx:  # an index in the making holds the words too: it begins again
                masking.drop_meta(tx, outbox.KEPT)
                outbox.settle(tx)
            shutil.rmtree(self.derived.next_words, ignore_errors=True)
            self._make_words(progress)
            if (vectors := self.vectors()) is not None:
                vectors.compact()
                self._seen = None
        return True

    def _make_words(self, progress: Progress | None) -> None:
        """Under the lock. `archiver.rebuild` does the same without holding it, for a word index that can still be used."""
        total, done = lookup.count(self.reader), 0
        fresh = Words.create(self.derived.fresh(self.derived.words))
        with fresh.writing() as writer:
            for rows in lookup.everything(self.reader):
                for row in rows:
                    writer.put(word_row(row))
                done += len(rows)
                if progress:
                    progress(min(done, total), total)
        self._words = None
        self.derived.swap(fresh.folder, self.derived.words)

    def make_vectors(self, model: str, progress: Progress | None = None) -> None:
        """The vector index anew, of this model's vectors in the database; the old one serves until it is complete. Under the lock."""
        total, done = lookup.count(self.reader), 0
        fresh: Vectors | None = None
        for rows in lookup.everything(self.reader):
            made = vector_rows(self.reader, rows, model)
            if made and fresh is None:
                place = self.derived.fresh(self.derived.vectors)
                fresh = Vectors.create(place, model, len(made[0].vector) // 2)
            if made and fresh is not None:
                fresh.apply([row for row in made if len(row.vector) == 2 * fresh.dimensions])
            done += len(rows)
            if progress:
                progress(min(done, total), total)
        if fresh is None:
            return
        fresh.compact()
        self._vectors = None
        self.derived.swap(fresh.folder, self.derived.vectors)

    # --- standing ---


def word_row(row: Found) -> Row:
    return Row(row.ref, row.text, row.title, row.project_id, row.session_id, row.time, row.kind, row.role)


def vector_rows(reader: Reader, rows: Sequence[Found], model: str) -> list[VectorRow]:
    """What of the rows belongs into the vector index: speech and current entries that have a vector other than zero."""
    able = [row for row in rows if (row.kind == "entry" and row.status == "active") or row.role == "speech"]
    stored = lookup.vectors(reader, [row.hash for row in able], model)
    return [
        VectorRow(row.ref, row.project_id, row.session_id, row.time, row.role, stored[row.hash].whole)
        for row in able
        if row.hash in stored and any(stored[row.hash].whole)
    ]

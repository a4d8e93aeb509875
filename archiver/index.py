"""The derived indexes: brought up to the database, embedded, rebuilt."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from store import lookup
from store.lookup import Found, Waiting
from store.reader import Reader
from store.vectors import VectorRow, Vectors, VectorsDamaged
from store.words import Row, Words, WordsBusy, WordsDamaged

if TYPE_CHECKING:
    from archiver.embed.protocol import Embedder, Floats
    from store.database import Database
    from store.embeddings import Embedded

Progress = Callable[[int, int], None]
"""Called as (done, total)."""

BATCH = 2_000
"""Outbox rows applied at once: a commit of the word index costs 50 ms, whatever is in it."""
EMBED_BATCH = 64
APPLY_EVERY = 4_096
"""Texts embedded before the vector index hears of them."""
STRAIGHT = 2_000
"""Un-applied rows that a search scores from the tables; with more of them it applies them first."""
LOCK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the indexes agree with the database, for `wwt doctor`. `words` and `vectors` are None when they cannot be read."""

    rows: int
    words: int | None
    vectors: int | None
    waiting: int
    unembedded: int
    """Texts without a vector of the model in use; 0 where there is no model."""
    intact: bool
    """Whether every byte of the vector index is as it was written."""


class Index:
    """The word index and the vector index of one archive.

    Everything here can be run again at any time and interrupted at any time. One process writes; another one that
    comes meanwhile leaves its rows in the outbox, where searches see them.
    """

    def __init__(
        self, root: Path, database_path: Path, database: Callable[[], Database], embedder: Callable[[], Embedder | None]
    ) -> None:
        self.root = root
        self._database_path = database_path
        self._database = database
        self._embedder = embedder
        self._words: Words | None = None
        self._vectors: Vectors | None = None
        self._seen: tuple[int, int] | None = None

    @cached_property
    def _reader(self) -> Reader:
        return Reader(self._database_path)

    # --- reading ---

    def words(self) -> Words | None:
        """The word index as last committed, or None where it is missing or damaged; `ensure` makes it."""
        try:
            if self._words is None:
                self._words = Words(self._words_folder)
            else:
                self._words.reload()
        except WordsDamaged:
            self._words = None
        return self._words

    def vectors(self) -> Vectors | None:
        """The vector index as last written, or None where there is none that can be read."""
        try:
            stat = (self._vectors_folder / "manifest.json").stat()
            if self._vectors is None or self._seen != (stat.st_ino, stat.st_mtime_ns):
                self._vectors = Vectors(self._vectors_folder)
                self._seen = (stat.st_ino, stat.st_mtime_ns)
        except (VectorsDamaged, OSError):
            self._vectors = None
        return self._vectors

    @property
    def _words_folder(self) -> Path:
        return self.root / "words"

    @property
    def _vectors_folder(self) -> Path:
        return self.root / "vectors"

    # --- bringing up ---

    def ensure(self, progress: Progress | None = None) -> list[str]:
        """Make what is missing or damaged from the database. Returns message keys of what a person should hear.

        A search calls it: it costs two opened files when all is well, and needs no SQLAlchemy.
        """
        if not self._database_path.exists():
            return []
        words, vectors = self.words(), self.vectors()
        if words is None or (vectors is None and lookup.has_vectors(self._reader)):
            with self._lock() as held:
                if not held:
                    return ["search.rebuilding"]
                return self._mend(progress)
        if lookup.waiting_count(self._reader, STRAIGHT + 1) > STRAIGHT:
            self.apply(progress)
        return []

    def _mend(self, progress: Progress | None) -> list[str]:
        """Under the lock; another process may have done it meanwhile."""
        damaged = False
        if self.words() is None:
            damaged = self._words_folder.exists()
            # Where everything still waits in the outbox, applying it is the whole work.
            if lookup.waiting_count(self._reader, None) >= lookup.count(self._reader):
                self._swap(Words.create(self._fresh("words")).folder, self._words_folder)
            else:
                self._rebuild_words(progress)
        if self.vectors() is None and (model := next(iter(lookup.models(self._reader)), None)):
            damaged = damaged or self._vectors_folder.exists()
            self._rebuild_vectors(model)
        return ["search.rebuilt"] if damaged else []

    def apply(self, progress: Progress | None = None) -> int:
        """Bring both indexes up to the outbox. Returns how many rows of it were applied; 0 when another process is at it."""
        total = lookup.waiting_count(self._reader, None)
        if not total:
            return 0
        done = 0
        with self._lock() as held:
            if not held:
                return 0
            self._mend(progress)
            while batch := lookup.waiting(self._reader, BATCH):
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
            for ref, row in lookup.found(self._reader, {w.ref for w in batch}).items()
            if row.status != "retired"
        }
        words_done = self._apply_words({w.ref for w in batch if not w.applied_words}, rows)
        self._apply_vectors({w.ref for w in batch if not w.applied_vectors}, rows)
        with self._database().transaction() as tx:
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
                        writer.put(_word_row(row))
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
        put = _vector_rows(self._reader, [rows[ref] for ref in sorted(refs) if ref in rows], vectors.model)
        vectors.apply(put, refs - {row.ref for row in put})
        self._seen = None

    # --- embedding ---

    def embed_missing(self, progress: Progress | None = None) -> int:
        """Embed every speech chunk and active entry that the model in use has not embedded. Returns how many chunks.

        Each batch is committed, so an interrupted run goes on where it stopped. Vectors of another model stay, and
        stay in use by nobody, until the last text has its new one.
        """
        embedder = self._embedder()
        if embedder is None:
            return 0
        if self.vectors() is None:
            with self._lock() as held:
                if held and self.vectors() is None and not lookup.has_vectors(self._reader):
                    self._swap(
                        Vectors.create(self._fresh("vectors"), embedder.model, embedder.dimensions).folder,
                        self._vectors_folder,
                    )
        total = lookup.unembedded_count(self._reader, embedder.model)
        chunks = self._embed_all(embedder, total, progress) if total else 0
        self.apply()
        self._move_to(embedder.model)
        return chunks

    def _embed_all(self, embedder: Embedder, total: int, progress: Progress | None) -> int:
        from store import embeddings  # noqa: PLC0415  # SQLAlchemy costs 0.25 s

        done = chunks = since = 0
        rows = self._unembedded(embedder.model)
        while batch := list(islice(rows, EMBED_BATCH)):
            made = _embedded(embedder, batch)
            with self._database().transaction() as tx:
                embeddings.keep(tx, embedder.model, made)
            done, since = done + len(batch), since + len(batch)
            chunks += sum(row.kind == "chunk" for row in batch)
            if progress:
                progress(min(done, total), total)
            if since >= APPLY_EVERY:
                self.apply()
                since = 0
        return chunks

    def _unembedded(self, model: str) -> Iterator[Found]:
        """Each text once, by a cursor: a text that cannot be embedded is not asked for again and again."""
        chunks = entries = 0
        while rows := lookup.unembedded(
            self._reader, model, chunks_after=chunks, entries_after=entries, limit=EMBED_BATCH * 8
        ):
            for row in rows:
                chunks, entries = max(chunks, row.ref), max(entries, -row.ref)
            yield from {row.hash: row for row in rows}.values()

    def _move_to(self, model: str) -> None:
        """Once every text has a vector of the model: make the index its own, and forget the vectors of others."""
        vectors = self.vectors()
        if lookup.unembedded_count(self._reader, model):
            return
        with self._lock() as held:
            if not held:
                return
            if vectors is None or vectors.model != model:
                if not lookup.has_vectors(self._reader):
                    return
                self._rebuild_vectors(model)
        if set(lookup.models(self._reader)) - {model}:
            from store import embeddings  # noqa: PLC0415  # SQLAlchemy costs 0.25 s

            while True:
                with self._database().transaction() as tx:
                    if not embeddings.drop_other_models(tx, model, 1_000):
                        return

    # --- rebuilding ---

    def rebuild(self, progress: Progress | None = None) -> bool:
        """Both indexes anew from the database; the old ones serve until the new ones are complete. False when another is at it."""
        with self._lock() as held:
            if not held:
                return False
            self._rebuild_words(progress)
            if model := next(iter(lookup.models(self._reader)), None):
                self._rebuild_vectors(self._vectors.model if self.vectors() and self._vectors else model)
        return True

    def purge(self) -> bool:
        """Apply what waits, and leave nothing in the files of the indexes but what the tables hold. False when another is at it.

        Tantivy keeps the words of a deleted row until a merge happens to come by, so its folder is made anew.
        """
        self.apply()
        with self._lock() as held:
            if not held:
                return False
            self._rebuild_words(None)
            if (vectors := self.vectors()) is not None:
                vectors.compact()
                self._seen = None
        return True

    def _rebuild_words(self, progress: Progress | None) -> None:
        total, done = lookup.count(self._reader), 0
        fresh = Words.create(self._fresh("words"))
        with fresh.writing() as writer:
            for rows in lookup.everything(self._reader):
                for row in rows:
                    writer.put(_word_row(row))
                done += len(rows)
                if progress:
                    progress(min(done, total), total)
        self._words = None
        self._swap(fresh.folder, self._words_folder)

    def _rebuild_vectors(self, model: str) -> None:
        fresh: Vectors | None = None
        for rows in lookup.everything(self._reader):
            made = _vector_rows(self._reader, rows, model)
            if made:
                if fresh is None:
                    fresh = Vectors.create(self._fresh("vectors"), model, len(made[0].vector) // 2)
                fresh.apply(made)
        if fresh is None:
            return
        fresh.compact()
        self._vectors = None
        self._swap(fresh.folder, self._vectors_folder)

    def _fresh(self, name: str) -> Path:
        """A folder to build in, beside the one in use. What an interrupted build left is removed first."""
        for left in self.root.glob(f".{name}-*"):
            shutil.rmtree(left, ignore_errors=True)
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self.root / f".{name}-new"

    def _swap(self, fresh: Path, place: Path) -> None:
        old = place.with_name(f".{place.name}-old")
        with suppress(FileNotFoundError):
            place.rename(old)
        fresh.rename(place)
        shutil.rmtree(old, ignore_errors=True)

    @contextmanager
    def _lock(self) -> Iterator[bool]:
        """Whether this process may write. The lock is the operating system's and goes with its holder."""
        from filelock import FileLock, Timeout  # noqa: PLC0415  # 15 ms; a search with nothing to mend goes without

        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = FileLock(self.root / ".lock", timeout=LOCK_SECONDS)
        try:
            lock.acquire()
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    # --- standing ---

    def standing(self) -> Standing:
        """Counts on both sides, and a check of the vector index's every byte; reads much, so only `wwt doctor` asks."""
        words, vectors, embedder = self.words(), self.vectors(), self._embedder()
        return Standing(
            rows=lookup.count(self._reader),
            words=None if words is None else len(words),
            vectors=None if vectors is None else len(vectors),
            waiting=lookup.waiting_count(self._reader, None),
            unembedded=0 if embedder is None else lookup.unembedded_count(self._reader, embedder.model),
            intact=vectors is None or vectors.verify(),
        )


def _word_row(row: Found) -> Row:
    return Row(row.ref, row.text, row.title, row.project_id, row.session_id, row.time, row.kind, row.role)


def _vector_rows(reader: Reader, rows: Sequence[Found], model: str) -> list[VectorRow]:
    """What of the rows belongs into the vector index: speech and current entries that have a vector other than zero."""
    able = [row for row in rows if (row.kind == "entry" and row.status == "active") or row.role == "speech"]
    stored = lookup.vectors(reader, [row.hash for row in able], model)
    return [
        VectorRow(row.ref, row.project_id, row.session_id, row.time, row.role, stored[row.hash].whole)
        for row in able
        if row.hash in stored and any(stored[row.hash].whole)
    ]


def _embedded(embedder: Embedder, rows: Sequence[Found]) -> list[Embedded]:
    """The vectors of the rows' texts and of their sentences. A text with nothing to read in it gets zeros: it is done."""
    from archiver.embed.quantise import to_half, to_int8  # noqa: PLC0415  # numpy: 75 ms
    from archiver.embed.sentences import split_sentences  # noqa: PLC0415
    from store.embeddings import Embedded  # noqa: PLC0415  # SQLAlchemy costs 0.25 s

    wholes = embedder.passages([row.passage for row in rows])
    sentences = [split_sentences(row.passage) for row in rows]
    flat: Floats = embedder.passages([sentence for some in sentences for sentence in some])
    made, at = [], 0
    for row, whole, some in zip(rows, wholes, sentences, strict=True):
        numbers, scales = to_int8(flat[at : at + len(some)])
        at += len(some)
        made.append(Embedded(row.hash, to_half(whole), numbers.tobytes(), scales.astype("<f4").tobytes(), len(some)))
    return made

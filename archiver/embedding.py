"""Giving every text its vector: what is missing is embedded, and once nothing is, the vector index is of that model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from store import lookup
from store.lookup import Found
from store.vectors import Vectors

if TYPE_CHECKING:
    from archiver.embed.protocol import Embedder, Floats
    from archiver.index import Index
    from store.embeddings import Embedded

Progress = Callable[[int, int], None]

EMBED_BATCH = 64
APPLY_EVERY = 4_096
"""Texts embedded before the vector index hears of them."""


def embed_missing(
    index: Index,
    embedder: Embedder,
    began: str | None,
    progress: Progress | None = None,
    *,
    moving: Callable[[], None] | None = None,
) -> int:
    """Embed every speech chunk and active entry that the model has not embedded. Returns how many chunks.

    Each batch is committed, so an interrupted run goes on where it stopped. Vectors of another model stay, and stay in
    use, until the last text has its new one. `began` is the model they were of when the embedder was chosen; `moving` is
    called before they give way, and what it raises leaves them in use.
    """
    _first_index(index, embedder)
    total = lookup.unembedded_count(index.reader, embedder.model)
    chunks = _embed_all(index, embedder, began, total, progress) if total else 0
    index.apply()
    _move(index, embedder.model, began, moving)
    return chunks


def _first_index(index: Index, embedder: Embedder) -> None:
    """An archive without a vector gets an empty index, which grows with what is embedded."""
    if index.vectors() is not None:
        return
    from store import embeddings  # noqa: PLC0415  # SQLAlchemy costs 0.25 s

    with index.derived.lock() as held:
        if held and index.vectors() is None and not lookup.has_vectors(index.reader):
            with index.database().transaction() as tx:
                embeddings.use(tx, embedder.model)
            place = index.derived.vectors
            made = Vectors.create(index.derived.fresh(place), embedder.model, embedder.dimensions)
            index.derived.swap(made.folder, place)


def _embed_all(index: Index, embedder: Embedder, began: str | None, total: int, progress: Progress | None) -> int:
    from store import embeddings  # noqa: PLC0415  # SQLAlchemy costs 0.25 s

    done = chunks = since = 0
    rows = _unembedded(index, embedder.model)
    while batch := list(islice(rows, EMBED_BATCH)):
        made = _embedded(embedder, batch)
        with index.database().transaction() as tx:
            if _outrun(embeddings.in_use(tx), began, embedder.model):
                return chunks
            embeddings.keep(tx, embedder.model, made)
        done, since = done + len(batch), since + len(batch)
        chunks += sum(row.kind == "chunk" for row in batch)
        if progress:
            progress(min(done, total), total)
        if since >= APPLY_EVERY:
            index.apply()
            since = 0
    return chunks


def _outrun(now: str | None, began: str | None, model: str) -> bool:
    """Whether another process moved the archive to a third model meanwhile: this one's setting is out of date."""
    return now not in (began, model)


def _unembedded(index: Index, model: str) -> Iterator[Found]:
    """Each text once, by a cursor: a text that cannot be embedded is not asked for again and again."""
    chunks = entries = 0
    while rows := lookup.unembedded(
        index.reader, model, chunks_after=chunks, entries_after=entries, limit=EMBED_BATCH * 8
    ):
        for row in rows:
            chunks, entries = max(chunks, row.ref), max(entries, -row.ref)
        yield from {row.hash: row for row in rows}.values()


def _move(index: Index, model: str, began: str | None, moving: Callable[[], None] | None) -> None:
    """Once every text has a vector of the model: make the index its own, and forget the vectors of others."""
    if lookup.unembedded_count(index.reader, model):
        return
    if not _settled(index, model) or moving:
        with index.derived.lock() as held:
            if not held or not _moved(index, model, began, moving):
                return
    if set(lookup.models(index.reader)) - {model, index.reader.meta(lookup.NEXT_MODEL)}:
        from store import embeddings  # noqa: PLC0415  # SQLAlchemy costs 0.25 s

        while True:
            with index.database().transaction() as tx:
                if not embeddings.drop_other_models(tx, model, 1_000):
                    return


def _settled(index: Index, model: str) -> bool:
    vectors = index.vectors()
    return vectors is not None and vectors.model == model == lookup.model_in_use(index.reader)


def _moved(index: Index, model: str, began: str | None, moving: Callable[[], None] | None) -> bool:
    from store import embeddings  # noqa: PLC0415  # SQLAlchemy costs 0.25 s

    with index.database().transaction() as tx:
        if _outrun(embeddings.in_use(tx), began, model):
            return False
    if moving:
        moving()
    with index.database().transaction() as tx:
        # Before the table is read: a vector that is kept from now on is told to the index.
        embeddings.use(tx, model)
    vectors = index.vectors()
    if vectors is None or vectors.model != model:
        index.make_vectors(model)
    return True


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

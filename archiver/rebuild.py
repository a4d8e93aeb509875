"""Making the derived indexes anew from the database while the old ones are in use. What was interrupted goes on where it stopped."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archiver.archive import embed
from archiver.derived import Derived
from archiver.embedding import embed_missing
from archiver.home import Home
from archiver.index import BATCH, Index, word_row
from archiver.settings_file import set_value
from store import embeddings, lookup, masking, outbox
from store.errors import WwtError
from store.words import Words, WordsDamaged

if TYPE_CHECKING:
    from archiver.embed.protocol import Embedder

Progress = Callable[[str, int, int], None]
"""Called as (stage, done, total); the stages are words, vectors, embed."""

PAGES = 4
"""Of 500 rows each: what is written at once, and lost where the process is killed; a few seconds' work."""
PATIENCE = 600.0
"""Seconds to wait for whoever writes to an index just now."""
PLACE = "progress.json"


@dataclass(frozen=True, slots=True)
class Wish:
    """What to make anew. `embedding` is the model to embed with from now on; None leaves the setting as it is."""

    words: bool = True
    vectors: bool = True
    caches: bool = True
    embedding: str | None = None


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Rows in what was made anew, None where that was not asked for; `embedded` counts chunks that got a vector."""

    words: int | None
    vectors: int | None
    embedded: int
    model: str
    notices: tuple[str, ...] = ()


def rebuild(home: Home, wish: Wish, progress: Progress = lambda stage, done, total: None) -> Rebuilt:
    """Make anew what is wished for. Searches use the old indexes until the new ones are complete."""
    # A model that cannot be had is found out before anything is begun.
    embedder = _opened(home, wish.embedding) if wish.embedding is not None else None
    index = home.index
    _ = home.masked_again
    with _alone(index.derived):
        if wish.caches:
            make_caches(home)
        words = make_words(index, lambda done, total: progress("words", done, total)) if wish.words else None
        embedded, notices = 0, list[str]()
        if wish.embedding is not None:
            embedded = _move_to(home, wish.embedding, embedder, lambda done, total: progress("embed", done, total))
        elif wish.vectors:
            make_vectors(index, lambda done, total: progress("vectors", done, total))
            embedded, notices = embed(home, lambda done, total: progress("embed", done, total))
        vectors = index.vectors() if wish.vectors else None
    model = wish.embedding or home.settings.embedding.model
    return Rebuilt(words, None if vectors is None else len(vectors), embedded, model, tuple(notices))


@contextmanager
def _alone(derived: Derived) -> Iterator[None]:
    with derived.lock(0, ".rebuild.lock") as held:
        if not held:
            raise WwtError("rebuild.busy", path=derived.root)
        yield


@contextmanager
def _writing(derived: Derived) -> Iterator[None]:
    with derived.lock(PATIENCE) as held:
        if not held:
            raise WwtError("rebuild.index_busy", path=derived.root)
        yield


def make_caches(home: Home) -> None:
    """The parsed rules, the tag lexicon, and the embedder's unpacked weights, which it writes anew when it is opened next."""
    from archiver.distil import compile_lexicon  # noqa: PLC0415  # the mining rules

    for name in ("rules", "embedder"):
        shutil.rmtree(home.root / "index" / name, ignore_errors=True)
    compile_lexicon(home)


# --- words -----------------------------------------------------------------------------------------------------------


def make_words(index: Index, progress: Callable[[int, int], None]) -> int:
    """The word index anew, beside the one in use, which goes on being written. Returns its rows.

    What is written meanwhile is kept in the outbox (`outbox.KEPT`) and applied before the new one takes its place.
    Whoever erases words drops the unfinished one, as it may hold them too; then it is begun again.
    """
    if (rows := _landed(index)) is not None:
        return rows
    while True:
        making = _Making.resumed(index) or _Making.begun(index)
        try:
            making.fill(progress)
            if (rows := making.finish()) is not None:
                break
        except (WordsDamaged, OSError):
            if making.stands():
                raise
    index.apply()
    return rows


def _landed(index: Index) -> int | None:
    """The rows of a word index that took its place when the process was killed; only that it has remains to be noted."""
    kept = index.reader.meta(outbox.KEPT)
    words = index.words()
    if kept is None or words is None or _noted(words.folder).get("token") != kept:
        return None
    with _writing(index.derived):
        _settle(index, kept)
    index.apply()
    return len(words)


def _settle(index: Index, token: str) -> None:
    with index.database().transaction() as tx:
        if masking.drop_meta(tx, outbox.KEPT, token):
            outbox.settle(tx)
    (index.derived.words / PLACE).unlink(missing_ok=True)


def _noted(folder: Path) -> dict[str, Any]:
    try:
        noted = json.loads((folder / PLACE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


class _Making:
    """A word index in the making: a folder with its token, how far it has come, and the outbox row it began at."""

    def __init__(self, index: Index, words: Words, token: str, since: int, after: int) -> None:
        self.index, self.words, self.token, self.since, self.after = index, words, token, since, after

    @classmethod
    def begun(cls, index: Index) -> _Making:
        token = uuid.uuid4().hex
        with _writing(index.derived):
            with index.database().transaction() as tx:
                masking.set_meta(tx, outbox.KEPT, token)
                since = outbox.last(tx)
            shutil.rmtree(index.derived.next_words, ignore_errors=True)
            made = cls(index, Words.create(index.derived.next_words), token, since, 0)
            made._note()
        return made

    @classmethod
    def resumed(cls, index: Index) -> _Making | None:
        """The one that was begun before, if it is whole and nothing was erased since."""
        folder = index.derived.next_words
        try:
            made = cls(index, Words(folder), **_noted(folder))
        except (TypeError, WordsDamaged):
            return None
        return made if made.stands() else None

    def stands(self) -> bool:
        return self.index.reader.meta(outbox.KEPT) == self.token

    def fill(self, progress: Callable[[int, int], None]) -> None:
        """Every row there is. Interrupted, it has lost the last batch at most."""
        done = len(self.words)
        pages = lookup.everything(self.index.reader, after=self.after)
        while batch := list(islice(pages, PAGES)):
            total = lookup.count(self.index.reader)
            with self.words.writing() as writer:
                for rows in batch:
                    for row in rows:
                        writer.put(word_row(row))
                    done += len(rows)
                    progress(min(done, total), total)
            self.after = batch[-1][-1].ref
            self._note()

    def finish(self) -> int | None:
        """Apply what was written meanwhile and take the old one's place; None if words were erased, so that it must not."""
        with _writing(self.index.derived):
            if not self.stands():
                return None
            self._catch_up()
            rows = len(self.words)
            self.index.derived.swap(self.words.folder, self.index.derived.words)
            _settle(self.index, self.token)
        return rows

    def _catch_up(self) -> None:
        reader, after = self.index.reader, self.since
        while batch := lookup.heard_since(reader, after, BATCH):
            refs = {one.ref for one in batch}
            rows = {ref: row for ref, row in lookup.found(reader, refs).items() if row.status != "retired"}
            with self.words.writing() as writer:
                for ref in sorted(refs):
                    if row := rows.get(ref):
                        writer.put(word_row(row))
                    else:
                        writer.delete(ref)
            after = batch[-1].id

    def _note(self) -> None:
        path = self.words.folder / PLACE
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps({"token": self.token, "since": self.since, "after": self.after}), encoding="utf-8")
        draft.replace(path)


# --- vectors ---------------------------------------------------------------------------------------------------------


def make_vectors(index: Index, progress: Callable[[int, int], None]) -> None:
    """The vector index anew from the vectors that are kept. Those whose bytes do not add up are dropped, to be embedded anew."""
    with _writing(index.derived):
        model = index.best_model()
        if model is None:
            return
        with index.database().transaction() as tx:
            embeddings.drop_misshapen(tx, model, lookup.dimensions(index.reader, model))
        index.make_vectors(model, progress)


def _opened(home: Home, model: str) -> Embedder | None:
    from archiver.embed.choose import open_embedder  # noqa: PLC0415  # numpy costs 75 ms, a model more

    return open_embedder(model, cache=home.root / "index" / "embedder")


def _move_to(home: Home, model: str, embedder: Embedder | None, progress: Callable[[int, int], None]) -> int:
    """Embed everything with another model, then make it the setting. Until then the old vectors are in use.

    The model is announced, so that an archiver with the old setting leaves its vectors alone: a rerun goes on.
    """
    index, done = home.index, False

    def moving() -> None:
        nonlocal done
        set_value(home.root / "config.toml", "embedding.model", model)
        done = True

    embedded = 0
    if embedder is None:
        moving()
    else:
        with index.database().transaction() as tx:
            embeddings.announce(tx, embedder.model)
            embeddings.drop_misshapen(tx, embedder.model, embedder.dimensions)
        began = lookup.model_in_use(index.reader)
        while not done:  # others archive meanwhile, or hold the index
            embedded += embed_missing(index, embedder, began, progress, moving=moving)
            if lookup.model_in_use(index.reader) not in (began, embedder.model):
                raise WwtError("rebuild.outrun", model=model)
    with index.database().transaction() as tx:
        embeddings.withdraw(tx)
    return embedded

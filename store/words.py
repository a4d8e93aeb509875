"""The word index: BM25 over our own tokens, in a Tantivy folder that can be deleted and rebuilt."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from store.filters import Filter
from store.tokens import Term, index_tokens

VERSION = 1
"""Of the fields and of what `store.tokens` makes of a text. A folder of another version is rebuilt."""
MARKER = "wwt.json"
SEGMENT_FILES = (".idx", ".pos", ".term", ".store", ".fast", ".fieldnorm")
WRITER_BYTES = 15_000_000
"""The least that Tantivy accepts; more does not make batches of a thousand rows faster."""
BUSY_TRIES, BUSY_SECONDS = 10, 0.1


class WordsDamaged(Exception):  # noqa: N818  # a state of the folder, answered by a rebuild
    """The folder is missing, of another version, or cannot be read: build a new one from the database."""


class WordsBusy(Exception):  # noqa: N818
    """Another process holds the writer. What was to be written waits in the outbox."""


@dataclass(frozen=True, slots=True)
class Row:
    """A chunk (its id) or an entry (its id, negative) to be indexed. `time` is UTC ms; `project` 0 means everywhere."""

    ref: int
    text: str
    title: str
    project: int
    session: int
    time: int
    kind: str
    role: str


@dataclass(frozen=True, slots=True)
class WordHit:
    """`share` is the part of the query's information (idf) that the row matches, 0 to 1.

    `exact` says that it holds a whole, rare identifier of the query.
    """

    ref: int
    score: float
    share: float
    exact: bool = False


class Words:
    """An opened word index. Reads see the last commit at the time of opening or of `reload`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with _damage(folder):
            marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
            if not isinstance(marker, dict) or marker.get("version") != VERSION:
                raise WordsDamaged(f"{folder}: version {marker!r}, this is {VERSION}")
            if not _complete(folder):
                raise WordsDamaged(f"{folder}: lacks files that its meta.json names")
            self._index = _tantivy().Index(_schema(), path=str(folder))  # raises where the schema on disk differs
            self._index.reload()
            self._searcher = self._index.searcher()
        self.known = lru_cache(maxsize=20_000)(self._known)

    @classmethod
    def create(cls, folder: Path) -> Words:
        """A new, empty index. The marker is written last: without it a folder is not opened."""
        folder.mkdir(parents=True, mode=0o700)
        _tantivy().Index(_schema(), path=str(folder))
        (folder / MARKER).write_text(json.dumps({"version": VERSION}), encoding="utf-8")
        return cls(folder)

    def __len__(self) -> int:
        return int(self._searcher.num_docs)

    def reload(self) -> None:
        with _damage(self.folder):
            self._index.reload()
            self._searcher = self._index.searcher()
        self.known.cache_clear()

    @contextmanager
    def writing(self) -> Iterator[WordsWriter]:
        """Changes that land together at the end, or not at all. WordsBusy when another process does not finish."""
        writer = WordsWriter(self._writer())
        try:
            with _damage(self.folder):
                yield writer
        except BaseException:
            writer.close(commit=False)
            raise
        with _damage(self.folder):
            writer.close(commit=True)
        self.reload()

    def _writer(self) -> Any:
        """The lock is the operating system's, so a lock file that a crash left behind is no obstacle."""
        for attempt in range(BUSY_TRIES):
            try:
                with _damage(self.folder):
                    return self._index.writer(WRITER_BYTES, 1)
            except WordsDamaged as error:
                if "LockBusy" not in str(error):
                    raise
            time.sleep(BUSY_SECONDS * (attempt + 1) / 2)
        raise WordsBusy(str(self.folder))

    def _known(self, word: str) -> bool:
        return self.frequency(word) > 0

    def frequency(self, word: str, field: str = "words") -> int:
        with _damage(self.folder):
            return int(self._searcher.doc_freq(field, word))

    def holds(self, ref: int) -> bool:
        with _damage(self.folder):
            return bool(self._run(_tantivy().Query.term_query(_schema(), "ref", ref), 1))

    def refs(self) -> set[int]:
        """Every row there is; `wwt doctor` compares them with the database."""
        with _damage(self.folder):
            return {ref for ref, _ in self._run(_tantivy().Query.all_query(), max(1, len(self)))}

    def search(self, terms: Sequence[Term], wanted: Filter, limit: int) -> list[WordHit]:
        """The best rows for any of the terms, best first. No text of a user ever reaches a query parser."""
        if not terms or not len(self):
            return []
        with _damage(self.folder):
            weighed = [(term, Weight.of(term, self.frequency, len(self))) for term in terms]
            within = _within(wanted)
            scored = self._run(_both(_bm25(terms), within), limit)
            if not scored:
                return []
            shares = dict(self._among(scored, _shares(weighed)))
            exact = self._exact(scored, [weight.exact for _, weight in weighed if weight.exact])
        total = sum(weight.mass for _, weight in weighed) or 1.0
        return [WordHit(ref, score, min(1.0, shares.get(ref, 0.0) / total), ref in exact) for ref, score in scored]

    def _exact(self, scored: list[tuple[int, float]], wholes: list[str]) -> set[int]:
        return {ref for whole in wholes for ref, _ in self._among(scored, _term("words", whole))}

    def _among(self, scored: list[tuple[int, float]], query: Any) -> list[tuple[int, float]]:
        refs = _unscored(_tantivy().Query.term_set_query(_schema(), "ref", [ref for ref, _ in scored]))
        return self._run(_both(query, refs), len(scored))

    def _run(self, query: Any, limit: int) -> list[tuple[int, float]]:
        hits = self._searcher.search(query, limit, count=False).hits
        refs = self._searcher.fast_field_values("ref", [address for _, address in hits])
        return [(int(ref), float(score)) for (score, _), ref in zip(hits, refs, strict=True)]


class WordsWriter:
    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def put(self, row: Row) -> None:
        """Index the row in the place of what was known by its ref."""
        self.delete(row.ref)
        tokens, title = index_tokens(row.text), index_tokens(row.title)
        document = _tantivy().Document()
        document.add_integer("ref", row.ref)
        document.add_text("words", " ".join(tokens.words))
        document.add_text("grams", " ".join(tokens.grams))
        document.add_text("title", " ".join(dict.fromkeys(title.words + title.grams)))
        document.add_integer("project", row.project)
        document.add_integer("session", row.session)
        document.add_integer("time", row.time)
        document.add_text("kind", row.kind)
        document.add_text("role", row.role)
        self._writer.add_document(document)

    def delete(self, ref: int) -> None:
        self._writer.delete_documents_by_term("ref", ref)

    def close(self, *, commit: bool) -> None:
        """Merges are waited for: the lock goes with the writer, not at some later collection of garbage."""
        if commit:
            self._writer.commit()
        else:
            self._writer.rollback()
        self._writer.wait_merging_threads()


def _tantivy() -> Any:
    import tantivy  # noqa: PLC0415  # a native library of 20 MB: recall and hooks never touch it

    return tantivy


@lru_cache(maxsize=1)
def _schema() -> Any:
    # "whitespace": our tokens are joined by spaces; the default tokenizer drops every token of 40 bytes or more.
    builder = _tantivy().SchemaBuilder()
    builder.add_integer_field("ref", indexed=True, fast=True)
    for name in ("words", "grams", "title"):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
    for name in ("project", "session", "time"):
        builder.add_integer_field(name, indexed=True, fast=True)
    for name in ("kind", "role"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    return builder.build()


def _complete(folder: Path) -> bool:
    """Whether every file of every segment is there. Tantivy makes an empty index where meta.json is missing, and opens

    a segment without its positions, to answer a little wrong.
    """
    meta = folder / "meta.json"
    if not meta.exists():
        return False
    for _ in range(5):
        content = meta.read_bytes()
        try:
            names = [segment["segment_id"].replace("-", "") for segment in json.loads(content)["segments"]]
        except (KeyError, TypeError, AttributeError):
            return False
        if all((folder / f"{name}{end}").exists() for name in names for end in SEGMENT_FILES):
            return True
        # A writer may have merged segments meanwhile and removed the old ones.
        if meta.read_bytes() == content:
            return False
    return True


@contextmanager
def _damage(folder: Path) -> Iterator[None]:
    """Whatever Tantivy makes of a broken file, as one exception.

    It raises ValueError for most of them; a panic inside it reaches Python as a BaseException of its own.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        raise WordsDamaged(f"{folder}: {error}") from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise WordsDamaged(f"{folder}: {error}") from error
        raise


# --- queries ---------------------------------------------------------------------------------------------------------

GRAM_BOOST = 0.3
PART_BOOST = 0.5
TITLE_BOOST = 0.2
PART_SHARE = 0.7
"""What a word's parts or syllable pairs, all of them found, say of the word itself."""
RARE = 0.01
"""An identifier in more rows than this part of them does not single out any."""


@dataclass(frozen=True, slots=True)
class Weight:
    """What a term is worth (`mass`, its idf), and its value by each of the ways to find it.

    A term that stands nowhere keeps the mass of the rarest: the words of a question that the archive never
    uses are what tells that word search knows little about it.
    """

    mass: float
    parts: dict[str, float]
    grams: dict[str, float]
    exact: str = ""

    @classmethod
    def of(cls, term: Term, frequency: Callable[..., int], rows: int) -> Weight:
        found = frequency(term.whole)
        parts = {word: idf(frequency(word), rows) for word in term.parts}
        mass = idf(found, rows)
        if not found and parts and all(frequency(word) for word in term.parts):
            mass = max(parts.values())
        exact = term.whole if term.identifier and 0 < found <= max(10, rows * RARE) else ""
        every = sum(parts.values()) or 1.0
        grams = {gram: mass * PART_SHARE / len(term.grams) for gram in term.grams}
        return cls(mass, {word: mass * PART_SHARE * value / every for word, value in parts.items()}, grams, exact)


def idf(found: int, rows: int) -> float:
    """BM25's inverse document frequency, as Tantivy computes it."""
    found = min(found, rows)
    return math.log(1 + (rows - found + 0.5) / (found + 0.5))


def _term(field: str, word: str, boost: float = 1.0) -> Any:
    query = _tantivy().Query
    return query.boost_query(query.term_query(_schema(), field, word), boost)


def _constant(field: str, word: str, value: float) -> Any:
    query = _tantivy().Query
    return query.const_score_query(query.term_query(_schema(), field, word), value)


def _unscored(query: Any) -> Any:
    return _tantivy().Query.const_score_query(query, 0.0)


def _any(queries: Iterable[Any]) -> Any:
    tantivy = _tantivy()
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])


def _both(query: Any, *filters: Any) -> Any:
    tantivy = _tantivy()
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, part) for part in (query, *filters)])


def _bm25(terms: Sequence[Term]) -> Any:
    boosts: dict[tuple[str, str], float] = {}
    for term in terms:
        for word in term.parts:
            boosts.setdefault(("words", word), PART_BOOST)
        for gram in term.grams:
            boosts.setdefault(("grams", gram), GRAM_BOOST)
        for word in (term.whole, *term.parts):
            boosts.setdefault(("title", word), TITLE_BOOST)
    for term in terms:
        boosts["words", term.whole] = 1.0
    return _any(_term(field, word, boost) for (field, word), boost in boosts.items())


def _shares(weighed: Iterable[tuple[Term, Weight]]) -> Any:
    """A query whose score is the mass of the terms a row matches, each by the best of its ways."""
    return _any(_share(term, weight) for term, weight in weighed)


def _share(term: Term, weight: Weight) -> Any:
    ways = [_constant("words", term.whole, weight.mass)]
    if weight.parts:
        ways.append(_any(_constant("words", word, value) for word, value in weight.parts.items()))
    if weight.grams:
        ways.append(_any(_constant("grams", gram, value) for gram, value in weight.grams.items()))
    return _tantivy().Query.disjunction_max_query(ways)


def _within(wanted: Filter) -> Any:
    tantivy = _tantivy()
    query, schema, integer = tantivy.Query, _schema(), tantivy.FieldType.Integer
    times = []
    if wanted.since is not None or wanted.until is not None:
        times = [query.range_query(schema, "time", integer, wanted.since, wanted.until)]
    ways = []
    if wanted.chunks:
        parts = [query.term_query(schema, "kind", "chunk"), query.term_set_query(schema, "role", sorted(wanted.roles))]
        if wanted.projects is not None:
            parts.append(query.term_set_query(schema, "project", sorted(wanted.projects)))
        if wanted.sessions is not None:
            parts.append(query.term_set_query(schema, "session", sorted(wanted.sessions)))
        ways.append(_both(*parts, *times))
    if wanted.entries:
        parts = [query.term_query(schema, "kind", "entry")]
        if wanted.projects is not None:
            parts.append(query.term_set_query(schema, "project", sorted({*wanted.projects, 0})))
        if wanted.entry_ids is not None:
            parts.append(query.term_set_query(schema, "ref", sorted(-ref for ref in wanted.entry_ids)))
        ways.append(_both(*parts, *times))
    return _unscored(_any(ways)) if ways else query.empty_query()

"""Rows that no index has applied yet, scored straight from the tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from store import lookup
from store.filters import Filter
from store.lookup import Found, StoredVector
from store.reader import Reader
from store.tokens import Term, surface_tokens
from store.words import GRAM_BOOST, PART_BOOST, Weight, WordHit, Words, idf

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HANGUL_WORD = re.compile("[가-힣]{2,}")
LONGEST = 12


@dataclass(frozen=True)
class WaitingRows:
    """`refs` is all that waits: what an index says of them is out of date. `rows` are those that pass the filter.

    There are few of them, so their Korean is matched by the beginnings of words; no Kiwi is loaded for a search.
    """

    refs: frozenset[int]
    rows: dict[int, Found] = field(default_factory=dict)

    @classmethod
    def read(cls, reader: Reader, wanted: Filter, most: int) -> WaitingRows:
        refs = frozenset(one.ref for one in lookup.waiting(reader, most, newest=True) if not one.applied_words)
        rows = {
            ref: row
            for ref, row in lookup.found(reader, refs).items()
            if row.status != "retired"
            and wanted.admits(ref=ref, project=row.project_id, session=row.session_id, time=row.time, role=row.role)
        }
        return cls(refs, rows)

    @cached_property
    def _counts(self) -> dict[int, tuple[Counter[str], Counter[str]]]:
        """Words and grams of each row; a Hangul word counts as each of its beginnings."""
        counts = {}
        for ref, row in self.rows.items():
            tokens = surface_tokens(f"{row.text}\n{row.title}")
            words = Counter(form for word in tokens.words for form in _beginnings(word))
            counts[ref] = (words, Counter(tokens.grams))
        return counts

    @cached_property
    def _vocabulary(self) -> set[str]:
        return {word for words, _ in self._counts.values() for word in words}

    def known(self, word: str) -> bool:
        return word in self._vocabulary

    def judge(self, terms: Sequence[Term], words: Words | None) -> list[WordHit]:
        """The rows that match, scored as the word index would: BM25 with its document frequencies (ours where it has none)."""
        if not self.rows or not terms:
            return []
        total = len(self.rows) + (len(words) if words is not None else 0)

        def frequency(word: str, name: str = "words") -> int:
            here = sum(word in counts[name == "grams"] for counts in self._counts.values())
            return here + (words.frequency(word, name) if words is not None else 0)

        weighed = [(term, Weight.of(term, frequency, total)) for term in terms]
        mass = sum(weight.mass for _, weight in weighed) or 1.0
        idfs = {("words", word): idf(frequency(word), total) for term in terms for word in (term.whole, *term.parts)}
        idfs |= {("grams", gram): idf(frequency(gram, "grams"), total) for term in terms for gram in term.grams}
        hits = (_judged(ref, counts, weighed, mass, idfs) for ref, counts in self._counts.items())
        return [hit for hit in hits if hit.score > 0]

    def similarities(self, query: NDArray[np.float32], stored: Mapping[str, StoredVector]) -> dict[int, float]:
        """How near each waiting row is that has a vector already."""
        import numpy as np  # noqa: PLC0415  # 75 ms, paid by the embedder already

        near = {}
        for ref, row in self.rows.items():
            if (vector := stored.get(row.hash)) and (ref < 0 or row.role == "speech") and row.status == "active":
                near[ref] = float(np.frombuffer(vector.whole, "<f2").astype(np.float32) @ query)
        return near


def _judged(
    ref: int,
    counts: tuple[Counter[str], Counter[str]],
    weighed: Sequence[tuple[Term, Weight]],
    mass: float,
    idfs: Mapping[tuple[str, str], float],
) -> WordHit:
    words, grams = counts
    score = share = 0.0
    exact = False
    for term, weight in weighed:
        score += _bm25(words[term.whole], idfs["words", term.whole])
        score += PART_BOOST * sum(_bm25(words[word], idfs["words", word]) for word in term.parts)
        score += GRAM_BOOST * sum(_bm25(grams[gram], idfs["grams", gram]) for gram in term.grams)
        share += max(
            weight.mass if words[term.whole] else 0.0,
            sum(value for word, value in weight.parts.items() if words[word]),
            sum(value for gram, value in weight.grams.items() if grams[gram]),
        )
        exact = exact or bool(weight.exact and words[weight.exact])
    return WordHit(ref, score, min(1.0, share / mass), exact)


def _bm25(count: int, value: float) -> float:
    """Of a row of average length, with the usual k1 = 1.2."""
    return value * count * 2.2 / (count + 1.2)


def _beginnings(word: str) -> Iterator[str]:
    yield word
    if _HANGUL_WORD.fullmatch(word):
        for end in range(2, min(len(word), LONGEST)):
            yield word[:end]

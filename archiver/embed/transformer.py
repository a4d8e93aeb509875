"""Any Sentence Transformers model as an embedder: the choice for quality, an extra of several hundred megabytes.

Offline discipline: a model is looked up among the local files and loaded from its folder, which opens no connection.
Only a caller that passes `allow_download=True`, for a command a person typed for that purpose, reaches the hub.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import archiver.embed.threads  # noqa: F401  # before numpy: it decides on the threads

# isort: split
import numpy as np

from archiver.embed.protocol import Floats
from archiver.embed.readable import embed_readable
from store.errors import WwtError

RECIPE = 1
"""Raised when the way a text becomes a vector changes here, so that old and new vectors are never compared."""
DEFAULT_OWNER = "sentence-transformers"
"""Whose a hub name without an owner is, by the library's own rule."""
CHARACTERS_PER_TOKEN = 16
UNLIMITED_TOKENS = 8_192
BATCH = 32
CONFIGURATION = {".json", ".txt", ".model"}
WEIGHTS = {".safetensors", ".bin"}
SAMPLES, SAMPLE_BYTES = 32, 1 << 14
PROGRESS_VARIABLE = "HF_HUB_DISABLE_PROGRESS_BARS"
QUIET = ("transformers", "sentence_transformers", "huggingface_hub")


@dataclass(frozen=True, slots=True)
class Prompts:
    """What is put before a text. None leaves the choice to the model's own configuration."""

    query: str | None = None
    passage: str | None = None


E5 = Prompts("query: ", "passage: ")
FAMILIES = (
    (r"e5-.*instruct", Prompts("Instruct: Given a search query, retrieve passages that answer it\nQuery: ", "")),
    (r"(^|[/_-])(ko)?e5([-_]|$)", E5),
    (r"bge-(small|base|large)-en", Prompts("Represent this sentence for searching relevant passages: ", "")),
    (r"bge-(small|base|large)-zh", Prompts("为这个句子生成表示以用于检索相关文章：", "")),
    (r"bge-m3|kure", Prompts("", "")),
)
"""By model card, for models whose configuration names no prompts. The first that fits the model's name counts."""


class Transformer:
    """An `Embedder` over a model given by hub name or folder.

    A text counts up to the model's own limit of tokens, and no further than 16 characters for each of them. Runs on a
    GPU where there is one; on the CPU with one thread unless OMP_NUM_THREADS says otherwise.
    Raises WwtError when the extra is missing, or the model is not on this machine or cannot be loaded.
    """

    def __init__(self, name: str, *, allow_download: bool = False) -> None:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise WwtError("embed.extra_missing", model=name)
        with _quiet(progress=allow_download):
            folder, label, revision = _locate(name, allow_download=allow_download)
            self._engine = _load(name, folder)
        self._prompts = _prompts(self._engine.prompts, label, folder)
        self.model = f"{label}@{revision[:16]}.{_usage(self._engine, self._prompts)}"
        self.dimensions = int(self._engine.encode("a", show_progress_bar=False).shape[-1])
        self._characters = (self._engine.max_seq_length or UNLIMITED_TOKENS) * CHARACTERS_PER_TOKEN

    def passages(self, texts: list[str]) -> Floats:
        return self._embed(texts, self._engine.encode_document, self._prompts.passage)

    def query(self, text: str) -> Floats:
        vector: Floats = self._embed([text], self._engine.encode_query, self._prompts.query)[0]
        return vector

    def _embed(self, texts: list[str], encode: Any, prompt: str | None) -> Floats:
        def vectors(readable: list[str]) -> Floats:
            found = encode(
                readable, prompt=prompt, batch_size=BATCH, show_progress_bar=False, normalize_embeddings=True
            )
            return np.asarray(found, np.float32)

        return embed_readable([text[: self._characters] for text in texts], self.dimensions, vectors)


def _locate(name: str, *, allow_download: bool) -> tuple[Path, str, str]:
    """The model's folder, the name it is called by, and its revision: the hub's commit, or a folder's fingerprint."""
    folder = Path(name).expanduser()
    if any((folder / file).is_file() for file in ("modules.json", "config.json")):
        return folder.absolute(), folder.absolute().name, fingerprint(folder)
    if _is_path(name):
        raise WwtError("embed.no_model_in_folder", path=folder)
    snapshot = _snapshot(name)
    if snapshot is None and allow_download:
        _download(name)
        snapshot = _snapshot(name)
    if snapshot is None:
        raise WwtError("embed.not_downloaded", model=name, repository=_repository(name))
    return snapshot, _repository(name), snapshot.name


def _is_path(name: str) -> bool:
    return name.startswith((".", "~", os.sep)) or "\\" in name or name.count("/") > 1 or Path(name).is_absolute()


def _repository(name: str) -> str:
    return name if "/" in name else f"{DEFAULT_OWNER}/{name}"


def _snapshot(name: str) -> Path | None:
    """The hub cache's folder of the model, by local files alone. None when it is absent or was only begun."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415  # comes with the extra, 0.3 s

    try:
        folder = Path(
            snapshot_download(
                _repository(name), local_files_only=True, cache_dir=os.environ.get("SENTENCE_TRANSFORMERS_HOME")
            )
        )
    except (OSError, ValueError):  # not there; not a name the hub could have
        return None
    return folder if any(path.suffix in WEIGHTS for path in folder.rglob("*")) else None


def _download(name: str) -> None:
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415  # torch: 5.5 s

    try:
        SentenceTransformer(name)
    except Exception as error:  # the hub, the network and the model's loader raise what they like
        raise WwtError("embed.download_failed", model=name, reason=_first_line(error)) from error


def _load(name: str, folder: Path) -> Any:
    import torch  # noqa: PLC0415  # 3 s, and only with the extra
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415  # 5.5 s with torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    try:
        return SentenceTransformer(str(folder), local_files_only=True)
    except Exception as error:  # the model's loader raises what it likes
        raise WwtError("embed.cannot_load", model=name, path=folder, reason=_first_line(error)) from error


def _prompts(configured: dict[str, str], label: str, folder: Path) -> Prompts:
    if any(configured.values()):
        return Prompts()
    name = label.lower()
    if (folder / "config.json").is_file():
        # A folder may have any name; the configuration often tells what the model was.
        found = re.search(r'"_name_or_path":\s*"([^"]*)"', (folder / "config.json").read_text("utf-8", "replace"))
        name += f" {found[1].lower()}" if found else ""
    return next((prompts for pattern, prompts in FAMILIES if re.search(pattern, name)), Prompts())


def _usage(engine: Any, prompts: Prompts) -> str:
    """A short mark for how texts are put to the model."""
    ways = repr((RECIPE, sorted(engine.prompts.items()), engine.default_prompt_name, prompts, engine.max_seq_length))
    return hashlib.sha256(ways.encode()).hexdigest()[:8]


def fingerprint(folder: Path) -> str:
    """Tells two models apart by configuration, size of the weights and samples from all over them.

    A fine-tuned model has its base's configuration and size to the byte, so these alone would not do.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.suffix not in CONFIGURATION | WEIGHTS or any(part.startswith(".") for part in relative.parts):
            continue
        digest.update(f"{relative.as_posix()} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes() if path.suffix in CONFIGURATION else _samples(path))
    return digest.hexdigest()


def _samples(path: Path) -> bytes:
    size = path.stat().st_size
    with path.open("rb") as file:
        samples = []
        for number in range(SAMPLES):
            file.seek(size * number // SAMPLES)
            samples.append(file.read(SAMPLE_BYTES))
    return b"".join(samples)


@contextlib.contextmanager
def _quiet(*, progress: bool) -> Iterator[None]:
    """Standard output belongs to answers and to protocols, so what loading says goes to standard error, and little."""
    levels = {name: logging.getLogger(name).level for name in QUIET}
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)
    hide = not progress and PROGRESS_VARIABLE not in os.environ
    if hide:
        os.environ[PROGRESS_VARIABLE] = "1"
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
        if hide:
            os.environ.pop(PROGRESS_VARIABLE, None)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

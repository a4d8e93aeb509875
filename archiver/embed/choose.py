"""Which embedder the setting `embedding.model` means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archiver.embed.protocol import Embedder

UNIVERSAL = "use-multilingual"
NONE = "none"


def open_embedder(model: str, *, cache: Path, allow_download: bool = False) -> Embedder | None:
    """The embedder of that name; None for `none`: words alone.

    `cache` is a folder that only the embedder uses. Nothing is downloaded without `allow_download`, which is for a
    command a person typed to fetch the model. Raises WwtError, saying what to do, when the model cannot be had.
    """
    if model == NONE:
        return None
    if model == UNIVERSAL:
        from archiver.embed.universal import Universal  # noqa: PLC0415  # numpy: 60 ms

        return Universal(cache)
    from archiver.embed.transformer import Transformer  # noqa: PLC0415  # the one branch that needs the extra

    return Transformer(model, allow_download=allow_download)


def model_key(model: str) -> str | None:
    """The `Embedder.model` of that name, with nothing written for it; None for `none`. Raises WwtError as `open_embedder` does."""
    if model == NONE:
        return None
    if model == UNIVERSAL:
        from archiver.embed import universal  # noqa: PLC0415  # numpy: 60 ms

        return universal.model_key()
    from archiver.embed.transformer import Transformer  # noqa: PLC0415  # the one branch that needs the extra

    return Transformer(model).model


def is_light(model: str) -> bool:
    """Whether a command that starts cold may load it. A Sentence Transformers model takes seconds."""
    return model in (UNIVERSAL, NONE)

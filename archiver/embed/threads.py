"""How many threads numpy's linear algebra starts with: one, when we are the ones who load it.

Linear-algebra libraries read their thread count once, while they are loaded. Two threads on a busy two-core
machine made embedding six times slower, and an agent's machine is busy. A process that imported numpy before us
keeps what it chose, and so does a person who set one of the variables.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@contextmanager
def one_thread() -> Iterator[None]:
    """The variables unset so far say 1 inside, and are unset again afterwards: child processes choose for themselves."""
    ours = [name for name in THREAD_VARIABLES if name not in os.environ]
    os.environ.update(dict.fromkeys(ours, "1"))
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


if "numpy" not in sys.modules:
    with one_thread():
        import numpy as np  # noqa: F401

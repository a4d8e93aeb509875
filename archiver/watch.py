"""`wwt archive --watch`: look now and then whether there is anything to do, and let another process do it.

The process that looks stays small. Kiwi and the embedder take hundreds of megabytes, which the one that works gives back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

Outlook = frozenset[tuple[object, ...]]
"""What there is to do. What stands in two outlooks did not change between them."""

SECONDS = 5.0
"""Between two looks, at least."""

SHARE = 0.02
"""Of the time, at most, is spent on looking: over a long history a look takes longer, so it comes less often."""

PATIENCE = 60.0
"""Seconds that work waits at most for the agents to pause: every run pays for starting up."""


class Clock(Protocol):
    def monotonic(self) -> float: ...
    def sleep(self, seconds: float, /) -> None: ...


def watch(look: Callable[[], Outlook], work: Callable[[], None], clock: Clock = time) -> None:
    """Calls `work` when something new is to be done, and ends only by an exception.

    What a run could not do (a file that cannot be read) is tried again when it changes.
    """
    tried: Outlook = frozenset()
    before: Outlook = frozenset()
    since: float | None = None
    first = True
    while True:
        began = clock.monotonic()
        now = look()
        cost = clock.monotonic() - began
        if now - tried:
            since = began if since is None else since
            if first or now == before or began - since >= PATIENCE:
                work()
                # Only what was there before the run: it may not have seen what came meanwhile.
                tried, since = now, None
        first, before = False, now
        clock.sleep(max(SECONDS, cost / SHARE))

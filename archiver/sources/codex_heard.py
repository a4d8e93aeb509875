"""Which messages of a thread were heard, and under which keys: Codex writes most of them twice, and copies them into forks."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

SHORTEST_UNIQUE = 16
"""Characters of a turn's id that is unique over all threads; shorter ones count up, and begin anew when a thread is resumed."""

_TURNS_KEPT = 4


class Heard:
    """Counts every text by the stream it came in, within its turn.

    A stream (`r` response items, `e` events, `i` completed items) gives each message once. So the n-th time a text comes
    in one stream is the n-th time in the others, and the key names the text and n. The same holds for a copy in a fork.
    """

    def __init__(self, saved: dict[str, Any] | None) -> None:
        saved = deepcopy(saved) if saved else {}
        self.thread: str = saved.get("thread", "")
        self.turn: str = saved.get("turn", "")
        self._counts: dict[str, dict[str, dict[str, int]]] = saved.get("counts", {})
        self._last: dict[str, list[str]] = saved.get("last", {})

    def saved(self) -> dict[str, Any]:
        return {"thread": self.thread, "turn": self.turn, "counts": self._counts, "last": self._last}

    @property
    def scope(self) -> str:
        return self.turn if len(self.turn) >= SHORTEST_UNIQUE else self.thread

    def enter(self, turn: str) -> None:
        """A record says that it belongs to this turn: so do those after it."""
        self.turn = turn
        turns = [scope for scope in self._counts if scope not in (self.scope, self.thread)]
        for scope in turns[: -_TURNS_KEPT + 1]:
            del self._counts[scope]

    def again(self, stream: str, text: str, stamp: str) -> bool:
        """Whether this is the record before it once more; `text` is a digest, `stamp` tells records apart."""
        told = [text, stamp]
        repeated = bool(stamp) and self._last.get(stream) == told
        self._last[stream] = told
        return repeated

    def hear(self, stream: str, text: str, among: str) -> tuple[str, bool]:
        """Key of the message, and whether none of the streams `among` gave it before."""
        counts = self._counts.setdefault(self.scope, {}).setdefault(text, {})
        before = max((counts.get(known, 0) for known in among), default=0)
        counts[stream] = counts.get(stream, 0) + 1
        return f"{self.scope}:{text}.{counts[stream]}", counts[stream] > before


def created(native: str) -> int | None:
    """UTC ms at which an id was made that holds its time (a UUID of version 7); None of others."""
    digits = native.replace("-", "")
    if len(digits) != 32 or digits[12] != "7":
        return None
    try:
        return int(digits[:12], 16) or None
    except ValueError:
        return None

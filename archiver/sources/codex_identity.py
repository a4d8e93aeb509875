"""Whose transcript a Codex file is: its thread, what it was forked from, and which of its records another thread's file holds too."""

from __future__ import annotations

from typing import Any

from archiver.sources import speech
from archiver.sources.codex_files import NAME, Rollout
from archiver.sources.codex_heard import created
from archiver.sources.codex_speech import field, plain_type, text_of
from store.records import parse_time

_DAY = 86_400_000
_HELPERS = ("compact", "memoryconsolidation")
"""Threads in which the client has its own summaries written. Newer versions call all that are its own internal."""


class Identity:
    """What the records tell of the thread. The first `session_meta` is the file's own."""

    def __init__(self, found: Rollout, saved: dict[str, Any] | None) -> None:
        saved = saved or {}
        self._found = found
        self.thread: str = saved.get("thread", "")
        self.parent: str | None = saved.get("parent")
        self.is_subagent: bool = saved.get("subagent", False)
        self.is_private: bool = saved.get("private", False)
        self.is_helper = False
        self.cwd: str | None = None
        self.branch: str | None = None
        self.source: str = saved.get("source", "")
        """Which thread the records are of: another one's are copied behind its own `session_meta`."""
        self._made: int | None = saved.get("made")
        self._own_start: int | None = saved.get("start")

    def saved(self) -> dict[str, Any]:
        return {
            "thread": self.thread,
            "parent": self.parent,
            "subagent": self.is_subagent,
            "private": self.is_private,
            "source": self.source,
            "made": self._made,
            "start": self._own_start,
        }

    @property
    def is_copied(self) -> bool:
        """Whether records of another thread have begun. Where they end, old forks don't say."""
        return bool(self.thread) and self.source not in (self.thread, self._segment())

    def settle(self) -> None:
        """A file that says something before it says whose it is belongs to the thread that it is named for."""
        if not self.thread:
            match = NAME.fullmatch(self._found.path.name)
            self._own(speech.plain_id(match["thread"] if match else self._found.path.name.partition(".json")[0]))

    def _own(self, thread: str) -> None:
        self.thread = thread
        self.source = self._segment()

    def _segment(self) -> str:
        """The thread, and which of its files: what is counted is counted in each of them anew."""
        match = NAME.fullmatch(self._found.path.name)
        return f"{self.thread}_{match['rollout']}" if match and match["rollout"] else self.thread

    def read(self, meta: dict[str, Any]) -> None:
        """Take in a `session_meta`."""
        native = speech.plain_id(text_of(meta.get("id")) or text_of(field(meta, "session_id")))
        if self.thread and native not in (self.thread, ""):
            self.source = native
            self.parent = self.parent or native
            return
        if native == self.thread:
            # Written once more, to change a setting: what stands behind it is no copy.
            self.source = self._segment()
        if not self.thread:
            if native:
                self._own(native)
            self.settle()
            self._describe(meta)
        mode = field(meta, "memory_mode")
        if isinstance(mode, str):
            self.is_private = mode == "disabled"

    def _describe(self, meta: dict[str, Any]) -> None:
        source = meta.get("source")
        subagent = source.get("subagent") if isinstance(source, dict) else None
        above, forked = _above(meta, subagent), text_of(field(meta, "forked_from_id"))
        base = meta.get("history_base")
        if not (above or forked) and isinstance(base, dict) and self._segment() == self.thread:
            forked = text_of(base.get("thread_id"))
        parent = speech.plain_id(above or forked)
        self.parent = parent if parent not in ("", self.thread) else None
        named = subagent is not None or "subagent" in (source, field(meta, "thread_source"))
        self.is_subagent = named or bool(above and not forked)
        internal = isinstance(source, dict) and "internal" in source
        self.is_helper = internal or not {plain_type(subagent), plain_type(field(meta, "thread_source"))}.isdisjoint(
            _HELPERS
        )
        start = field(meta, "subagent_history_start_ordinal")
        self._own_start = start if isinstance(start, int) and not isinstance(start, bool) else None
        self._made = parse_time(meta.get("timestamp"))
        self.cwd = text_of(meta.get("cwd")) or None
        git = meta.get("git")
        branch = text_of(git.get("branch")) if isinstance(git, dict) else ""
        self.branch = branch if branch not in ("", "HEAD") else None

    def is_inherited(self, record: dict[str, Any], turn: str) -> bool:
        """Whether the record is another thread's and left to that one's file, which is there."""
        ordinal = record.get("ordinal")
        if self._own_start is not None and isinstance(ordinal, int) and ordinal < self._own_start:
            return True
        if not self._is_parent_here():
            return False
        marks = record.get("metadata")
        if isinstance(marks, dict) and marks.get("inherited_user_message") is True:
            return True
        if not self.is_copied or self._made is None:
            return False
        time = parse_time(record.get("timestamp"))
        return (time is not None and time < self._made) or self._is_older(turn, self._made)

    def _is_older(self, turn: str, made: int) -> bool:
        """Whether the turn was begun before the thread. Ids tell it only where they are real: the thread's must fit its clock."""
        own, began = created(self.thread), created(turn)
        return own is not None and began is not None and abs(own - made) < _DAY and began < own

    def _is_parent_here(self) -> bool:
        folder = self._found.folder
        return self.is_subagent or (folder is not None and self.parent is not None and self.parent in folder)


def _above(meta: dict[str, Any], subagent: object) -> str:
    """The thread that began this one as its subagent."""
    spawn = subagent.get("thread_spawn") if isinstance(subagent, dict) else None
    inner = text_of(field(spawn, "parent_thread_id")) if isinstance(spawn, dict) else ""
    return text_of(field(meta, "parent_thread_id")) or inner

"""A parse that reads every new record before it tells anything: what sources share whose records form a tree, or refer back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from archiver.sources import jsonl
from archiver.transcript import Event, Progress, Reread, Unreadable


class Records(Protocol):
    """Where records come from, after a progress: `jsonl.Reader`, or the rows of a database that hold the same objects."""

    offset: int
    line: int
    bytes_read: int

    def __iter__(self) -> Iterator[jsonl.Record | Unreadable]: ...


class RecordParse(ABC):
    """Feeds the records to `_take`, then asks `_told` for the state to keep and the events."""

    def __init__(self, records: Records, progress: Progress) -> None:
        self.progress = progress
        self.bytes_read = 0
        self._records = records
        self._old = progress.state
        self._resumed = progress.offset > 0
        self._faults: list[Unreadable] = []

    def __iter__(self) -> Iterator[Event]:
        if self._resumed and not self._old:
            raise Reread
        try:
            for item in self._records:
                if isinstance(item, Unreadable):
                    self._faults.append(item)
                else:
                    self._take(item)
        finally:
            self.bytes_read = self._records.bytes_read
        state, events = self._told()
        # Where nothing was said yet, the next parse begins anew: what the first records say of the session would be lost.
        self.progress = Progress(self._records.offset, self._records.line, state) if state else Progress()
        yield from events
        yield from self._faults

    @abstractmethod
    def _take(self, record: jsonl.Record) -> None: ...

    @abstractmethod
    def _told(self) -> tuple[dict[str, Any], Iterable[Event]]:
        """The state that the next parse needs (ids, digests, numbers; never words), and the events of this one."""

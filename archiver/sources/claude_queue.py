"""Prompts typed while Claude Code was busy: they are told several times, and some were taken back before they were sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from archiver.sources import claude_speech, jsonl, speech
from archiver.sources.claude_speech import text_of
from archiver.sources.claude_turns import Draft
from archiver.transcript import Reread
from store.records import Role, parse_time

_ABSORBED_WITHIN = 1000
"""A queued prompt is taken from the queue within a few ms of the tool result it is handed over with."""

_RESULTS_KEPT = 8


@dataclass(slots=True)
class _Queued:
    """`waits`: still in the agent's queue, as far as the records say."""

    digest: str
    key: str
    waits: bool = True
    attached: bool = False
    removed: int | None = None

    def saved(self) -> list[Any]:
        return [self.digest, self.key, self.waits, self.attached]


class Queue:
    """Adds queued prompts to the drafts, and takes them out again when it turns out that they were none.

    `retracted`: keys of those that an earlier parse yielded.
    """

    def __init__(self, old: dict[str, Any], drafts: dict[str, Draft]) -> None:
        self.retracted: list[str] = []
        self._drafts = drafts
        self._said: set[str] = set(old.get("said", ()))
        self._queue: list[_Queued] = [_Queued(*item) for item in old.get("queue", ())]
        self._old_keys = {queued.key for queued in self._queue}
        self._removed: list[_Queued] = []
        self._old_removed: list[int] = list(old.get("removed", ()))
        self._results: list[int] = list(old.get("results", ()))

    def heard(self, text: str) -> None:
        """The person said this in a record of their own: a queued copy of it is none of its own."""
        told = speech.digest(text)
        self._said.add(told)
        for queued in [queued for queued in self._queue if queued.digest == told]:
            self._drop(queued)

    def operate(self, record: jsonl.Record) -> None:
        """A `queue-operation`."""
        value = record.value
        pieces = claude_speech.queued_pieces(value.get("content"))
        text = "\n\n".join(text for _, text in pieces)
        match value.get("operation"):
            case "enqueue" if text:
                key = "queued:" + speech.digest(text_of(value.get("sessionId")), text)
                self.enqueue(record, text, pieces[0][0], key)
            case "dequeue":
                waiting = [queued for queued in self._queue if queued.waits]
                if waiting:
                    waiting[0].waits = False
            case "remove" | "popAll" as operation:
                self._take_back(operation, speech.digest(text) if text else None, parse_time(value.get("timestamp")))

    def enqueue(self, record: jsonl.Record, text: str, kind: str, key: str, *, attached: bool = False) -> None:
        told = speech.digest(text)
        held = next((queued for queued in self._queue if queued.digest == told), None)
        if held is not None and held in self._removed:
            self._drop(held)
            held = None
        if told in self._said or (held is not None and (held.attached or not attached)):
            return
        if held is not None:
            self._drop(held)
        self._queue.append(_Queued(told, key, waits=not attached, attached=attached))
        time = parse_time(record.value.get("timestamp"))
        uuid = text_of(record.value.get("uuid"))
        kind = "command" if kind == "command" else "steering"
        self._drafts[key] = Draft(key, record.pos, Role.USER, kind, time, [text], [uuid])

    def _take_back(self, operation: str, told: str | None, time: int | None) -> None:
        """`remove` hands a prompt over with a tool result of the same moment, else it and `popAll` take it back."""
        waiting = [queued for queued in self._queue if queued.waits and told in (None, queued.digest)]
        for queued in waiting if operation == "popAll" else waiting[:1]:
            queued.waits = False
            if operation == "remove" and time is not None and self._handed_over(time):
                continue
            queued.removed = time if operation == "remove" else None
            if queued.removed is None:
                self._drop(queued)
            else:
                self._removed.append(queued)

    def _handed_over(self, time: int) -> bool:
        return any(abs(time - result) <= _ABSORBED_WITHIN for result in self._results[-_RESULTS_KEPT:])

    def _drop(self, queued: _Queued) -> None:
        self._queue.remove(queued)
        if queued in self._removed:
            self._removed.remove(queued)
        if self._drafts.pop(queued.key, None) is None:
            self.retracted.append(queued.key)

    def result_at(self, time: int) -> None:
        """A tool result: prompts that were removed at that moment were handed over with it."""
        self._results.append(time)
        if any(abs(time - moment) <= _ABSORBED_WITHIN for moment in self._old_removed):
            raise Reread
        self._removed = [queued for queued in self._removed if abs(time - (queued.removed or 0)) > _ABSORBED_WITHIN]

    def settle(self) -> None:
        """All records are read: what was removed and not handed over was taken back."""
        for queued in self._removed:
            queued.waits = False
            self._drafts.pop(queued.key, None)
            if queued.key in self._old_keys:
                self.retracted.append(queued.key)

    def state(self) -> dict[str, Any]:
        return {
            "said": sorted(self._said),
            "queue": [queued.saved() for queued in self._queue if queued not in self._removed],
            "removed": [queued.removed for queued in self._removed if queued.removed is not None],
            "results": self._results[-_RESULTS_KEPT:],
        }

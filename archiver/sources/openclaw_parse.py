"""One OpenClaw session, from the lines of a file or the rows of a database."""

from __future__ import annotations

from typing import Any

from archiver.sources import openclaw_speech, speech
from archiver.sources.branches import Kind, Tree
from archiver.sources.entry_records import HeaderOf
from archiver.sources.entry_tree import Draft, EntryParse
from archiver.sources.openclaw_store import Rows
from archiver.sources.records import Records
from archiver.transcript import Found, Progress, Reread


class Gateway:
    """Branches as a gateway writes them: several roots, entries put beside the branch, results hung from calls.

    Only a prompt that a later prompt replaced was left.
    """

    def __init__(self, state: dict[str, Any], *, resumed: bool) -> None:
        self._tree = Tree()
        self._resumed = resumed
        self._open: set[str] = set(state.get("open", ()))

    def link(self, entry: str, parent: str | None, kind: Kind) -> bool:
        anchored = parent is None or speech.digest(parent) in self._open
        if kind is Kind.PROMPT:
            if self._resumed and not anchored:
                raise Reread
            self._open = set()
        if entry:
            root = parent is None or anchored or (not self._resumed and parent not in self._tree)
            self._add(entry, parent, kind, is_open=root or kind is Kind.PROMPT)
        return anchored

    def header(self, native: str) -> None:
        self._add(native, None, Kind.STEP)

    def call(self, call_id: str, entry: str | None) -> None:
        """Some writers hang the result from the call instead of the entry that holds it."""
        self._add(call_id, entry, Kind.STEP)

    def is_abandoned(self, entry: str) -> bool:
        return entry in self._tree and self._tree.is_abandoned(entry)

    def state(self) -> dict[str, Any]:
        return {"open": sorted(self._open)}

    def _add(self, entry: str, parent: str | None, kind: Kind, *, is_open: bool = True) -> None:
        self._tree.add(entry, parent, kind)
        if is_open:
            self._open.add(speech.digest(entry))


class OpenClawParse(EntryParse):
    cut = openclaw_speech.CUT

    def __init__(
        self,
        found: Found,
        records: Records,
        progress: Progress,
        *,
        stem: str,
        header_of: HeaderOf,
        is_thread: bool = False,
        is_subagent: bool = False,
        parent: str | None = None,
        repeats: bool = False,
    ) -> None:
        """`is_thread`: one of several conversations whose headers name the same session.

        `repeats`: it begins with the end of the session above it, where that is told.
        """
        super().__init__(
            found,
            records,
            progress,
            stem=stem,
            branches=Gateway(progress.state, resumed=progress.offset > 0),
            header_of=header_of,
            is_subagent=is_subagent,
            parent=parent,
        )
        self._is_thread, self._repeats = is_thread, repeats
        self._heard: bool = self._old.get("heard", False)
        self._in_heartbeat: bool = self._old.get("heartbeat", False)
        self._last_answer: str = self._old.get("answer", "")

    def _named(self, native: str) -> str:
        return self._stem if self._is_thread or not native else native

    def _is_told(self, draft: Draft) -> bool:
        return not self._repeats or draft.turn.key.startswith(f"{self._session}/")

    def _spoken(self, raw: str, message: dict[str, Any]) -> str:
        text = "" if openclaw_speech.is_from_machine(message) else openclaw_speech.spoken(raw)
        self._in_heartbeat = not text and "HEARTBEAT" in raw
        task = None if self._heard else openclaw_speech.task(raw)
        self._heard = True
        if task is None:
            return text
        if self._resumed and not self._is_subagent:
            raise Reread  # what was told as a person's session is none
        self._is_subagent = True
        return task

    def _answered(self, raw: str, message: dict[str, Any]) -> str:
        text = "" if openclaw_speech.is_copy(message) else openclaw_speech.answered(raw)
        told = speech.digest(text)
        # After a heartbeat the gateway may commit its last answer once more.
        if not text or speech.is_failure_notice(text) or (self._in_heartbeat and told == self._last_answer):
            return ""
        self._last_answer = told
        return text

    def _state(self, external_id: str) -> dict[str, Any]:
        state = super()._state(external_id)
        state |= {"heard": self._heard, "heartbeat": self._in_heartbeat, "answer": self._last_answer}
        return state | {"rows": self._records.mark} if isinstance(self._records, Rows) else state

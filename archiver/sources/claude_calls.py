"""Tool calls of Claude Code: what a call was, kept until its result says what it came to."""

from __future__ import annotations

from typing import Any

from archiver.sources import claude_speech, jsonl, speech, tools
from archiver.sources.claude_speech import text_of
from archiver.transcript import Outcome, Reread
from store.records import parse_time

_EDITORS = ("Edit", "Write", "MultiEdit", "NotebookEdit")


class Calls:
    """`outcomes` are what results proved, each with the id of the record that holds the result."""

    def __init__(self, old: dict[str, Any]) -> None:
        self.outcomes: list[tuple[str, Outcome]] = []
        self._calls: dict[str, tools.Call | None] = {}
        self._old: dict[str, str] = dict(old.get("calls", {}))
        self._own: set[str] = set()

    def forget_old(self) -> None:
        """The person speaks again: results of calls before come no more."""
        self._old = {}

    def use(self, block: dict[str, Any]) -> None:
        call_id, name = block["id"], text_of(block.get("name"))
        if name.startswith("mcp__wwt"):
            self._own.add(call_id)
            return
        given = block.get("input")
        given = given if isinstance(given, dict) else {}
        call = None
        if name in _EDITORS:
            call = tools.edited([text_of(given.get("file_path")) or text_of(given.get("notebook_path"))])
        elif isinstance(given.get("command"), str):
            call = tools.command(given["command"])
        self._calls[call_id] = call

    def finish(self, record: jsonl.Record, result: dict[str, Any], output: str, after: str) -> bool:
        """Note what the result proves, behind the turn `after`. True if it is an error to keep."""
        call_id = text_of(result.get("tool_use_id"))
        details = record.value.get("toolUseResult")
        earlier = self._old.pop(speech.digest(call_id), None)
        if call_id in self._own or earlier == "own":
            self._own.discard(call_id)
            return False
        if earlier is not None and call_id not in self._calls:
            # What the call was stands in bytes read before; for an edit, the result repeats the path.
            if earlier != "files" or not isinstance(details, dict) or not text_of(details.get("filePath")):
                raise Reread
            self._calls[call_id] = tools.edited([details["filePath"]])
        failed = result.get("is_error") is True
        call = self._calls.pop(call_id, None)
        if call is not None and not _is_unsettled(details):
            ok = tools.verdict(call, failed=failed, output=output)
            if ok is not None:
                self._prove(record, call_id, call, after, ok=ok)
        return failed and not claude_speech.NOT_AN_ERROR.match(output)

    def _prove(self, record: jsonl.Record, call_id: str, call: tools.Call, after: str, *, ok: bool) -> None:
        time = parse_time(record.value.get("timestamp"))
        uuid = text_of(record.value.get("uuid"))
        for kind in call.kinds:
            key = speech.plain_id(call_id) + ("" if kind == call.kinds[0] else f":{kind}")
            self.outcomes.append((uuid, Outcome(key, after, kind, ok, jsonl.scrub(call.label), time)))

    def state(self) -> dict[str, str]:
        """Calls without a result, by the digest of their ids."""
        calls = self._old | {speech.digest(call_id): "own" for call_id in self._own}
        return calls | {speech.digest(call_id): call.kinds[0] for call_id, call in self._calls.items() if call}


def _is_unsettled(details: object) -> bool:
    """Whether the command was still running, or was stopped, when the record was written."""
    return isinstance(details, dict) and (details.get("interrupted") is True or bool(details.get("backgroundTaskId")))

"""The tool calls of a Codex thread: each is followed until a record says how it ended, which most are said to twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from archiver.sources import codex_tools, jsonl, speech, tools
from archiver.sources.codex_speech import field, plain_type, text_of
from archiver.transcript import Outcome, Reread

_SETTLED_KEPT = 64


@dataclass(frozen=True, slots=True)
class Moment:
    """Where and when a record stands, and behind which turn."""

    pos: int
    time: int | None
    after: str


@dataclass(frozen=True, slots=True)
class Failure:
    call_id: str
    at: Moment
    text: str


@dataclass(frozen=True, slots=True)
class _Pending:
    """A call whose result is awaited. `call_id` is that of the call that began it: other calls may ask after its process."""

    call_id: str
    call: tools.Call | None


class Calls:
    """Feed it calls and results; then read `outcomes` (with their positions) and `failures`."""

    def __init__(self, saved: dict[str, Any] | None) -> None:
        saved = saved or {}
        self.outcomes: dict[str, tuple[int, Outcome]] = {}
        self.failures: list[Failure] = []
        self._pending: dict[str, _Pending] = {}
        self._running: dict[str, _Pending] = {}
        self._own: set[str] = set()
        self._old: dict[str, str] = dict(saved.get("pending", {}))
        self._settled: list[str] = list(saved.get("settled", ()))

    def saved(self) -> dict[str, Any]:
        """Which calls an earlier parse began, and which it saw end."""
        waiting = {speech.digest(call_id): pending for call_id, pending in self._pending.items()}
        waiting |= {_process(name): pending for name, pending in self._running.items()}
        pending = self._old | {speech.digest(call_id): "own" for call_id in self._own}
        pending |= {name: held.call.kinds[0] for name, held in waiting.items() if held.call is not None}
        return {"pending": pending, "settled": self._settled}

    def begin(self, item: dict[str, Any], arguments: object) -> None:
        call_id, name = _id_of(item), text_of(item.get("name"))
        given = codex_tools.given(arguments)
        if codex_tools.is_own(name, item.get("namespace")):
            self._own.add(call_id)
            return
        process = given.get("session_id")
        if process is not None and self._old.get(_process(process)):
            raise Reread  # what it runs stands in bytes read before
        asked_after = self._running.get(str(process)) if process is not None else None
        self._pending[call_id] = asked_after or _Pending(call_id, codex_tools.called(name, given))

    def end(self, item: dict[str, Any], at: Moment) -> None:
        """A call's output, as it was sent to the model."""
        call_id = _id_of(item)
        told = speech.digest(call_id)
        earlier = self._old.pop(told, None)
        if call_id in self._own or earlier == "own":
            self._own.discard(call_id)
            return
        if earlier is not None and call_id not in self._pending and told not in self._settled:
            raise Reread  # what the call was stands in bytes read before
        pending = self._pending.pop(call_id, _Pending(call_id, None))
        result = codex_tools.output(item.get("output"))
        if result.running:
            self._running[result.running] = pending
        else:
            self._settle(pending, result, at)

    def ended(self, item: dict[str, Any], call_id: str, at: Moment) -> None:
        """The client's own record of how a call ended, which names what was called."""
        kind = plain_type(item.get("type"))
        call: tools.Call | None = None
        if kind.startswith("mcp"):
            invocation = item.get("invocation")
            if codex_tools.is_own((invocation if isinstance(invocation, dict) else item).get("server")):
                return
            result = codex_tools.answered(item)
        elif kind in ("execcommandend", "commandexecution"):
            call, result = codex_tools.ran(item.get("command")), codex_tools.executed(item)
        else:
            call, result = codex_tools.changed(item.get("changes")), codex_tools.applied(item)
        known = self._pending.get(call_id)
        self._settle(_Pending(call_id, call or (known.call if known else None)), result, at)

    def _settle(self, pending: _Pending, result: codex_tools.Result, at: Moment) -> None:
        told, call = speech.digest(pending.call_id), pending.call
        ok = codex_tools.judged(call, result) if call else None
        error = jsonl.scrub(speech.cut_recall(codex_tools.error(call, result))).strip()
        if told in self._settled or (ok is None and not error):
            return
        self._settled = [*self._settled[1 - _SETTLED_KEPT :], told]
        if call and ok is not None:
            self._prove(pending.call_id, call, at, ok=ok)
        if error:
            self.failures.append(Failure(pending.call_id, at, error))

    def _prove(self, call_id: str, call: tools.Call, at: Moment, *, ok: bool) -> None:
        for kind in call.kinds:
            key = speech.plain_id(call_id) + ("" if kind == call.kinds[0] else f":{kind}")
            outcome = Outcome(key, at.after, kind, ok, jsonl.scrub(call.label), at.time)
            self.outcomes.setdefault(key, (at.pos, outcome))


def _id_of(item: dict[str, Any]) -> str:
    return text_of(field(item, "call_id")) or text_of(item.get("id"))


def _process(name: object) -> str:
    return speech.digest("process", str(name))

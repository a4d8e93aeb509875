"""One run over a Codex transcript: records that say most things twice become turns, outcomes and titles."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from archiver.sources import codex_speech, jsonl, speech
from archiver.sources.codex_calls import Calls, Failure, Moment
from archiver.sources.codex_document import Document
from archiver.sources.codex_files import Rollout
from archiver.sources.codex_heard import SHORTEST_UNIQUE, Heard
from archiver.sources.codex_identity import Identity
from archiver.sources.codex_speech import field, plain_type, text_of
from archiver.sources.records import RecordParse
from archiver.transcript import (
    About,
    Event,
    Found,
    Progress,
    RawTurn,
    Reread,
    Retract,
    Title,
    Unreadable,
    Upsert,
)
from store.records import Role, State, parse_time

NO_MEMORY = "its user wants no memory of this session (memory_mode: disabled), so it is not archived"
UNKNOWN_SHAPE = "holds messages, but in no shape that is known here"

_NAME_RANK = 2
_SHOWN, _SENT = "shown", "sent"
"""What the person was shown to have said, and what the model was sent in their name."""
_INJECTED_KINDS = ("environment_context", "user_instructions")
_TURN_BEGINS = ("taskstarted", "turnstarted")
_FOLDER = re.compile(r"<cwd>([^<\n]+)</cwd>|^Current working directory: (.+)$", re.M)


@dataclass(slots=True)
class _Draft:
    key: str
    pos: int
    role: Role
    kind: str
    text: str
    time: int | None


class CodexParse(RecordParse):
    """One parse: everything new is read, then told, for only the end shows which messages count and what was taken back."""

    def __init__(self, found: Found, progress: Progress, *, final: bool) -> None:
        document = found.path.suffix == ".json"
        super().__init__(
            Document(found.path) if document else jsonl.Reader(found.path, progress, final=final), progress
        )
        self._found = found if isinstance(found, Rollout) else Rollout(found.agent, found.path, found.segment)
        old = self._old
        self._about = Identity(self._found, old.get("about"))
        self._heard = Heard(old.get("heard"))
        self._calls = Calls(old.get("calls"))
        self._drafts: dict[str, _Draft] = {}
        self._sent: dict[str, _Draft] = {}
        self._prompts: dict[str, list[int]] = {_SHOWN: [], _SENT: []}
        self._rollbacks: list[tuple[int, int, str]] = []
        self._titles: list[Title] = []
        self._is_shown: bool = old.get("shown", False)
        self._asked_last: dict[str, str] = dict(old.get("asked", {}))
        self._is_aborted: bool = old.get("aborted", False)
        self._in_task: bool = old.get("task", False)
        self._prompted: set[str] = set(old.get("prompted", ()))
        self._last_key: str = old.get("last", "")
        self._cwd_of_turn: str | None = None
        self._first: int | None = old.get("first")
        self._latest: int | None = old.get("latest")
        self._mute = 0
        self._cut: int | None = 0 if old.get("cut") else None

    # --- reading ---

    def _take(self, record: jsonl.Record) -> None:
        value, payload = record.value, record.value.get("payload")
        kind = text_of(value.get("type"))
        self._look_for_cut(record)
        if kind == "session_meta":
            self._meta(record, payload if isinstance(payload, dict) else value)
        elif isinstance(payload, dict):
            self._enter(kind, payload)
            if not self._about.is_private and not self._about.is_inherited(value, self._heard.turn):
                self._clock(value)
                self._wrapped(record, kind, payload)
        elif "payload" not in value and not self._about.is_private:
            self._bare(record, kind)

    def _look_for_cut(self, record: jsonl.Record) -> None:
        base = self._found.reverted
        if base is not None and self._cut is None and base.begins_at(record.pos, record.value.get("ordinal")):
            self._cut = record.pos

    def _meta(self, record: jsonl.Record, meta: dict[str, Any]) -> None:
        was_private = self._about.is_private
        if not self._about.thread:
            self._clock(record.value if "timestamp" in record.value else meta)
        self._about.read(meta)
        if self._about.is_private and not was_private:
            self._faults.append(Unreadable(record.line, NO_MEMORY))

    def _wrapped(self, record: jsonl.Record, kind: str, payload: dict[str, Any]) -> None:
        if kind == "response_item":
            self._item(record, payload, "r")
        elif kind == "event_msg":
            self._event(record, payload)
        elif kind == "turn_context" and not self._cwd_of_turn:
            self._cwd_of_turn = text_of(payload.get("cwd")) or None

    def _bare(self, record: jsonl.Record, kind: str) -> None:
        """Records of the first versions stand alone: a line about the session, then its items."""
        value = record.value
        if kind:
            self._clock(value)
            # They have no events beside them: what the person said is there once.
            self._item(record, value, "e")
        elif "role" in value:
            self._mute += 1
        elif isinstance(value.get("id"), str) and not self._about.thread:
            self._meta(record, value)

    def _enter(self, kind: str, payload: dict[str, Any]) -> None:
        """Which turn the record belongs to, where it says so."""
        turn: object = None
        if kind == "response_item":
            for name in ("internal_chat_message_metadata_passthrough", "metadata"):
                held = payload.get(name)
                turn = turn or (held.get("turn_id") if isinstance(held, dict) else None)
        elif kind == "turn_context" or plain_type(payload.get("type")) in _TURN_BEGINS or _is_message(payload):
            turn = field(payload, "turn_id")
        if isinstance(turn, str) and turn:
            self._heard.enter(speech.plain_id(turn))

    def _clock(self, value: dict[str, Any]) -> None:
        time = parse_time(value.get("timestamp"))
        if time is not None:
            self._first = time if self._first is None else min(self._first, time)
            self._latest = time if self._latest is None else max(self._latest, time)

    def _moment(self, record: jsonl.Record) -> Moment:
        time = parse_time(record.value.get("timestamp"))
        # Bare items carry no time: the session's is the nearest.
        return Moment(record.pos, self._latest if time is None else time, self._last_key)

    # --- which record says what ---

    def _item(self, record: jsonl.Record, item: dict[str, Any], stream: str) -> None:
        """What was sent to the model, or came from it."""
        match plain_type(item.get("type")):
            case "message" if item.get("role") == "user":
                self._asked(record, codex_speech.typed(item), stream)
            case "message" if item.get("role") == "assistant":
                self._answered(record, item.get("content"), "r")
            case "agentmessage" if self._about.is_subagent:
                self._say(record, "t", "prompt", codex_speech.task(item.get("content")), Role.USER)
            case "functioncall" | "customtoolcall" | "localshellcall":
                self._is_aborted = False
                self._calls.begin(item, item.get("arguments", item.get("input", item.get("action"))))
            case "functioncalloutput" | "customtoolcalloutput" | "localshellcalloutput":
                self._calls.end(item, self._moment(record))

    def _event(self, record: jsonl.Record, event: dict[str, Any]) -> None:
        """What the person was shown."""
        match plain_type(event.get("type")):
            case "usermessage" if event.get("kind") not in _INJECTED_KINDS:
                self._asked(record, event.get("message"), "e")
            case "agentmessage":
                self._answered(record, event.get("message"), "e")
            case "itemcompleted" if isinstance(event.get("item"), dict):
                self._completed(record, event["item"])
            case "execcommandend" | "patchapplyend" | "mcptoolcallend":
                self._calls.ended(event, text_of(field(event, "call_id")), self._moment(record))
            case "taskstarted" | "turnstarted":
                self._in_task = True
                self._prompted.clear()
            case "taskcomplete" | "turncomplete" | "turnaborted" as kind:
                self._in_task, self._is_aborted = False, kind == "turnaborted"
                self._prompted.clear()
            case "threadrolledback":
                turns = field(event, "num_turns")
                if isinstance(turns, int) and turns > 0:
                    self._rollbacks.append((record.pos, turns, _SHOWN if self._is_shown else _SENT))
            case "threadnameupdated":
                self._name(text_of(field(event, "thread_name")))

    def _completed(self, record: jsonl.Record, item: dict[str, Any]) -> None:
        match plain_type(item.get("type")):
            case "usermessage":
                self._asked(record, item.get("content", item.get("text")), "i")
            case "agentmessage":
                self._answered(record, item.get("content", item.get("text")), "i")
            case "commandexecution" | "filechange" | "mcptoolcall":
                self._calls.ended(item, text_of(item.get("id")), self._moment(record))

    # --- what was said ---

    def _asked(self, record: jsonl.Record, content: object, stream: str) -> None:
        self._mute += codex_speech.is_mute(content)
        self._is_shown = self._is_shown or stream != "r"
        kind, text = codex_speech.asked(content)
        if text:
            self._say(record, stream, kind, text, Role.USER)
            return
        for injected in codex_speech.texts(content):
            self._is_aborted = self._is_aborted or codex_speech.ABORTED.match(injected) is not None
            if self._about.cwd is None and (folder := _FOLDER.search(injected)):
                self._about.cwd = (folder[1] or folder[2]).strip()

    def _answered(self, record: jsonl.Record, content: object, stream: str) -> None:
        self._mute += codex_speech.is_mute(content)
        text, shown = codex_speech.answered(content)
        if text:
            self._say(record, stream, "reply", text, Role.ASSISTANT, shown)

    def _say(self, record: jsonl.Record, stream: str, kind: str, text: str, role: Role, shown: str = "") -> None:
        """`shown`: what other records hold of the text, if not all of it."""
        self._about.settle()
        self._heard.thread = self._about.source
        told = codex_speech.sameness(role, shown or text)
        if not text or self._heard.again(stream, told, _stamp(record)):
            return
        group = _SENT if stream == "r" and role is Role.USER else _SHOWN
        if role is Role.ASSISTANT:
            self._is_aborted = False
        elif kind == "prompt" and self._is_sent_again(record, group, told):
            return
        among = "rei" if role is Role.ASSISTANT else stream if stream in "rt" else "ei"
        key, is_new = self._heard.hear(stream, told, among)
        self._last_key = key
        is_fuller = bool(shown) and shown != text
        if not is_new and not is_fuller:
            return
        if kind == "prompt":
            kind = self._prompt(record, group)
        # A command that the person typed is shown otherwise, and only here in words.
        held = self._sent if group == _SENT and kind != "command" else self._drafts
        draft = _Draft(key, record.pos, role, kind, text, self._moment(record).time)
        if is_fuller:
            held[key] = draft
        else:
            held.setdefault(key, draft)

    def _is_sent_again(self, record: jsonl.Record, group: str, told: str) -> bool:
        """Whether it is the prompt before it, once more after the turn was stopped."""
        again = self._is_aborted and self._asked_last.get(group) == told
        self._is_aborted = again
        self._asked_last[group] = told
        if again:
            self._prompts[group].append(record.pos)
        return again

    def _prompt(self, record: jsonl.Record, group: str) -> str:
        """Note where the prompt stands, and tell its kind: one while the agent is at work steers it."""
        self._prompts[group].append(record.pos)
        steers = self._in_task and group in self._prompted
        self._prompted.add(group)
        return "steering" if steers else "prompt"

    def _name(self, name: str) -> None:
        text = speech.title_of(jsonl.scrub(name))
        if text:
            self._titles.append(Title(text, _NAME_RANK))

    # --- telling ---

    def _told(self) -> tuple[dict[str, Any], list[Event]]:
        base = self._found.reverted.saved() if self._found.reverted else None
        if self._resumed and self._old.get("base") != base:
            raise Reread
        cwd = None if self._old.get("cwd") else self._cwd()
        if self._old.get("own") or self._about.is_helper or (cwd is not None and speech.is_own(cwd)):
            return {"own": True, "base": base}, []
        drafts, gone = self._counted(), self._taken_back()
        events: list[Event] = [Retract(key) for key in self._unsaid()]
        events += [Upsert(self._turn(draft, abandoned=gone(draft.pos))) for draft in drafts]
        events += [outcome for pos, outcome in self._calls.outcomes.values() if not gone(pos)]
        if not events and not self._resumed:
            if self._about.is_private:
                return self._state(base, drafts, cwd), []
            return {}, [Unreadable(0, UNKNOWN_SHAPE)] if self._mute else []
        return self._state(base, drafts, cwd), [self._whose(cwd), *self._own_titles(drafts), *events]

    def _cwd(self) -> str | None:
        """The folder of the first turn; among copied records stand other threads' folders."""
        turn = None if self._about.is_copied and self._about.cwd else self._cwd_of_turn
        return turn or self._about.cwd

    def _whose(self, cwd: str | None) -> About:
        about = self._about
        folder, branch = (jsonl.scrub(text) if text else None for text in (cwd, about.branch))
        return About(about.thread, folder, branch, about.parent, about.is_subagent, False, self._first, self._latest)

    def _counted(self) -> list[_Draft]:
        """The turns of this parse, in order. In a file that shows what the person said, nothing else is theirs."""
        drafts = self._drafts if self._is_shown else self._drafts | self._sent
        failed = [] if self._about.is_subagent else map(self._failure, self._calls.failures)
        return sorted([*drafts.values(), *failed], key=lambda draft: draft.pos)

    def _failure(self, failure: Failure) -> _Draft:
        self._about.settle()
        native, text, at = speech.plain_id(failure.call_id), failure.text, failure.at
        if len(native) < SHORTEST_UNIQUE:
            native = f"{self._about.source}/{native or speech.digest(str(at.time))}:{speech.digest(text)}"
        return _Draft(f"{native}:error", at.pos, Role.TOOL, "error", text, at.time)

    def _unsaid(self) -> list[str]:
        """Turns that an earlier parse may have told before anything showed what the person said."""
        told = self._old.get("sent", ()) if self._resumed else self._sent
        return [key for key in told if self._is_shown and key not in self._drafts]

    def _taken_back(self) -> Callable[[int], bool]:
        """Whether what stands at a position was rolled back, or reverted."""
        spans: list[tuple[int, int]] = []
        for pos, turns, group in self._rollbacks:
            # A prompt that was rolled back before stands in a span.
            live = [at for at in self._prompts[group] if at < pos and not _is_within(at, spans)]
            if turns > len(live) and self._resumed:
                raise Reread  # it reaches into what was read before
            if live:
                spans.append((live[-min(turns, len(live))], pos))
        return lambda at: _is_within(at, spans) or (self._cut is not None and at >= self._cut)

    def _turn(self, draft: _Draft, *, abandoned: bool) -> RawTurn:
        role, kind = draft.role, draft.kind
        if self._about.is_subagent:
            role, kind = Role.SUBAGENT, "answer" if role is Role.ASSISTANT else "task"
        state = State.ABANDONED if abandoned else State.LIVE
        return RawTurn(draft.key, draft.pos, role, kind, draft.text, draft.time, state)

    def _own_titles(self, drafts: list[_Draft]) -> list[Event]:
        if self._about.is_subagent:
            return []
        titles = list(self._titles)
        if self._found.folder is not None and (name := self._found.folder.title(self._about.thread)):
            titles.insert(0, Title(speech.title_of(jsonl.scrub(name)), _NAME_RANK))
        first = next((draft for draft in drafts if draft.kind == "prompt"), None)
        if first is not None and not self._old.get("titled") and not self._found.follows:
            titles.insert(0, Title(speech.title_of(first.text), 0))
        return list(titles)

    def _state(self, base: list[int | None] | None, drafts: list[_Draft], cwd: str | None) -> dict[str, Any]:
        """What the next parse needs: ids, digests, numbers and flags."""
        return {
            "about": self._about.saved(),
            "heard": self._heard.saved(),
            "calls": self._calls.saved(),
            "base": base,
            "cut": self._cut is not None,
            "shown": self._is_shown,
            "sent": [] if self._is_shown else [*self._old.get("sent", ()), *self._sent],
            "asked": self._asked_last,
            "aborted": self._is_aborted,
            "task": self._in_task,
            "prompted": sorted(self._prompted),
            "last": self._last_key,
            "first": self._first,
            "latest": self._latest,
            "titled": bool(self._old.get("titled")) or any(draft.kind == "prompt" for draft in drafts),
            "cwd": bool(self._old.get("cwd")) or cwd is not None,
        }


def _is_message(event: dict[str, Any]) -> bool:
    """Whether it completes a message. A command may be completed when the turn that began it is long over."""
    item = event.get("item")
    return isinstance(item, dict) and plain_type(item.get("type")) in ("usermessage", "agentmessage")


def _is_within(at: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= at < end for start, end in spans)


def _stamp(record: jsonl.Record) -> str:
    """What tells a record from the same one written twice; empty where nothing does."""
    time = record.value.get("timestamp")
    return speech.digest(str(time), str(record.value.get("ordinal"))) if isinstance(time, str | int | float) else ""

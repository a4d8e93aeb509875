"""Transcripts that are trees of entries: pi's format, which OpenClaw writes too. One parse of one session."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Protocol

from archiver.sources import jsonl, speech, tools
from archiver.sources.branches import Kind
from archiver.sources.entry_records import (
    HeaderOf,
    ancestors,
    id_in,
    is_call,
    is_nameless,
    moment,
    named_parent,
    text_of,
    texts_of,
)
from archiver.sources.records import RecordParse, Records
from archiver.transcript import About, Event, Found, Outcome, Progress, RawTurn, Reread, Title, Upsert
from store.records import Role, State, Status, parse_time

_EDITORS = ("edit", "write", "edit_file", "write_file", "multi_edit", "apply_patch")
_PATCHED = re.compile(r"(?m)^\*\*\* (?:Add|Update|Delete) File: (.+)$")
_OWN_TOOL = re.compile(r"(?:mcp_+)?wwt(?:_|\.|\Z)")
_SLASH = re.compile(r"\A/[\w:-]+(?:\s+|\Z)")


class Branches(Protocol):
    """Which entries are on a branch that was left. `is_abandoned` is only asked when every entry was linked."""

    def link(self, entry: str, parent: str | None, kind: Kind) -> bool:
        """Note an entry. False if it hangs from an entry of an earlier exchange, or from nothing known; may raise Reread."""

    def header(self, native: str) -> None: ...

    def call(self, call_id: str, entry: str | None) -> None: ...

    def is_abandoned(self, entry: str) -> bool: ...

    def state(self) -> dict[str, Any]: ...


@dataclass(slots=True)
class Draft:
    """A turn that waits for the last entry, which shows its state."""

    turn: RawTurn
    entry: str


class EntryParse(RecordParse):
    """Everything new is read, then told, for only the last entry shows which branch is live."""

    cut: tuple[str, ...] = ()
    """Elements that programs put into what is said."""

    def __init__(
        self,
        found: Found,
        records: Records,
        progress: Progress,
        *,
        stem: str,
        branches: Branches,
        header_of: HeaderOf,
        is_subagent: bool = False,
        parent: str | None = None,
    ) -> None:
        """`stem`: what the file's name, or the database, calls the session."""
        super().__init__(records, progress)
        self._found, self._stem = found, stem
        self._branches, self._header_of = branches, header_of
        self._drafts: dict[str, Draft] = {}
        self._outcomes: list[tuple[str, Outcome]] = []
        self._times_said: Counter[str] = Counter(self._old.get("times", {}))
        self._calls: dict[str, tools.Call | None] = {}
        self._old_calls: dict[str, str] = dict(self._old.get("calls", {}))
        self._own_calls: set[str] = set()
        self._last_key: str = self._old.get("last", "")
        self._session: str = self._old.get("id", "")
        self._born: int | None = self._old.get("born")
        self._above: list[list[Any]] = list(self._old.get("above", ()))
        self._nameless: bool = self._old.get("nameless", False)
        self._is_subagent: bool = self._old.get("sub", is_subagent)
        self._cwd: str | None = None
        self._parent = parent
        self._first: int | None = self._old.get("first")
        self._latest: int | None = self._old.get("latest")
        self._titles: list[Title] = []
        self._first_prompt: str | None = None

    # --- what each program does in its own way ---

    @abstractmethod
    def _spoken(self, raw: str, message: dict[str, Any]) -> str:
        """What a person said in a user's message; empty if none did."""

    @abstractmethod
    def _answered(self, raw: str, message: dict[str, Any]) -> str:
        """What the agent said to the person."""

    def _is_told(self, draft: Draft) -> bool:
        """Whether a turn is told here, also if another session holds it."""
        return True

    def _named(self, native: str) -> str:
        """The session's id: what its header says."""
        return native or self._stem

    # --- reading ---

    def _take(self, record: jsonl.Record) -> None:
        value = record.value
        match value.get("type"):
            case "session":
                self._header(value)
            case "message" if isinstance(value.get("message"), dict):
                self._message(record)
            case "session_info":
                self._link(value, Kind.HARNESS)
                self._title(value.get("name"))
            case "title":
                self._title(value.get("title"))
            case "compaction" | "compact":
                self._link(value, Kind.STEP)
            case _:
                self._link(value, Kind.HARNESS)

    def _title(self, name: object) -> None:
        if title := speech.title_of(jsonl.scrub(text_of(name))):
            self._titles.append(Title(title, 3))

    def _header(self, value: dict[str, Any]) -> None:
        native = text_of(value.get("id"))
        if not self._session:
            self._session = speech.plain_id(self._named(native))
            self._born = parse_time(value.get("timestamp"))
            self._above = [list(above) for above in ancestors(value, self._header_of) if above[0] != self._session]
            self._nameless = is_nameless(value)
        self._cwd = self._cwd or jsonl.scrub(text_of(value.get("cwd"))) or None
        self._parent = id_in(named_parent(value)) or self._parent
        self._title(value.get("title"))
        if native:
            self._branches.header(native)

    def _link(self, value: dict[str, Any], kind: Kind) -> bool:
        return self._branches.link(text_of(value.get("id")), text_of(value.get("parentId")) or None, kind)

    def _require(self, anchored: bool) -> None:
        if self._resumed and not anchored:
            raise Reread

    def _message(self, record: jsonl.Record) -> None:
        message = record.value["message"]
        self._clock(moment(record.value))
        role = message.get("role")
        if role == "user":
            self._user(record, message)
        elif role == "assistant":
            self._assistant(record, message)
        elif role == "toolResult":
            self._tool_result(record, message)
        elif role == "bashExecution":
            self._typed_command(record, message)
        else:
            self._link(record.value, Kind.STEP)

    def _clock(self, time: int | None) -> None:
        if time is not None:
            self._first = time if self._first is None else min(self._first, time)
            self._latest = time if self._latest is None else max(self._latest, time)

    def _user(self, record: jsonl.Record, message: dict[str, Any]) -> None:
        text = self._spoken("\n\n".join(texts_of(message.get("content"))), message)
        anchored = self._link(record.value, Kind.PROMPT if text else Kind.STEP)
        if not text:
            return
        self._require(anchored)
        kind = "command" if _SLASH.match(text) else "prompt"
        self._say(record, text, Role.USER, kind)
        if self._first_prompt is None and kind == "prompt":
            self._first_prompt = text

    def _typed_command(self, record: jsonl.Record, message: dict[str, Any]) -> None:
        text = tools.plain(jsonl.scrub(text_of(message.get("command")))).strip()
        anchored = self._link(record.value, Kind.PROMPT if text else Kind.HARNESS)
        if text:
            self._require(anchored)
            self._say(record, text, Role.USER, "command")

    def _assistant(self, record: jsonl.Record, message: dict[str, Any]) -> None:
        anchored = self._link(record.value, Kind.STEP)
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if is_call(block):
                self._tool_call(block, text_of(record.value.get("id")) or None)
        text = self._answered("\n\n".join(filter(None, (part.strip() for part in texts_of(content)))), message)
        if text and not speech.is_failure_notice(text):
            self._require(anchored)
            self._say(record, text, Role.ASSISTANT, "reply")

    def _say(self, record: jsonl.Record, text: str, role: Role, kind: str) -> None:
        entry, time = text_of(record.value.get("id")), moment(record.value)
        key = self._key("" if self._nameless else entry, role, text, time)
        if entry and key in self._drafts:
            return
        self._drafts[key] = Draft(RawTurn(key, record.pos, role, kind, text, time), entry)
        self._last_key = key

    def _key(self, native: str, role: str, text: str, time: int | None) -> str:
        """Ids of entries are unique within a session only, and shorter ones not over its segments."""
        session = self._owner(time)
        if not native:
            told = speech.digest(session, role, text)
            self._times_said[told] += 1
            return f"{session}/{told}.{self._times_said[told]}"
        suffix = "" if len(native) >= 8 else ":" + speech.digest(text)[:8]
        return f"{session}/{speech.plain_id(native)}{suffix}"

    def _owner(self, time: int | None) -> str:
        """The session in which it was said: what a fork took over is older than the fork itself."""
        owner, born = self._session or speech.plain_id(self._named("")), self._born
        for above, above_born in self._above:
            if time is None or born is None or time >= born:
                break
            owner, born = above, above_born
        return owner

    # --- tools ---

    def _tool_call(self, block: dict[str, Any], entry: str | None) -> None:
        call_id, name = block["id"], text_of(block.get("name"))
        self._branches.call(call_id, entry)
        if _OWN_TOOL.match(name):
            self._own_calls.add(call_id)
            return
        given = block.get("arguments", block.get("input"))
        given = given if isinstance(given, dict) else {}
        call = None
        if name.lower() in _EDITORS:
            patched = _PATCHED.findall(text_of(given.get("input")) or text_of(given.get("patch")))
            call = tools.edited(patched or [text_of(given.get("path")) or text_of(given.get("file_path"))])
        elif isinstance(given.get("command"), str):
            call = tools.command(given["command"])
        self._calls[call_id] = call

    def _tool_result(self, record: jsonl.Record, message: dict[str, Any]) -> None:
        anchored = self._link(record.value, Kind.STEP)
        call_id = text_of(message.get("toolCallId"))
        earlier = self._old_calls.pop(speech.digest(call_id), None)
        if call_id in self._own_calls or earlier == "own" or _OWN_TOOL.match(text_of(message.get("toolName"))):
            self._own_calls.discard(call_id)
            return
        if earlier is not None and call_id not in self._calls:
            raise Reread  # what the call was stands in bytes read before
        output = "\n".join(texts_of(message.get("content")))
        self._prove(record, message, call_id, output)
        if message.get("isError") is not True:
            return
        text = tools.error_text(speech.cut_tags(speech.cut_recall(output), self.cut))
        if text:
            self._require(anchored)
            entry, time = text_of(record.value.get("id")), moment(record.value)
            key = self._key(call_id or entry, "tool", text, time) + ":error"
            self._drafts.setdefault(key, Draft(RawTurn(key, record.pos, Role.TOOL, "error", text, time), entry))

    def _prove(self, record: jsonl.Record, message: dict[str, Any], call_id: str, output: str) -> None:
        call = self._calls.pop(call_id, None)
        details = message.get("details")
        details = details if isinstance(details, dict) else {}
        if call is None or details.get("status") == "running":
            return
        exit_code = details.get("exitCode")
        failed = message.get("isError") is True or (isinstance(exit_code, int) and exit_code != 0)
        ok = tools.verdict(call, failed=failed, output=output)
        if ok is None:
            return
        entry, label = text_of(record.value.get("id")), jsonl.scrub(call.label)
        for kind in call.kinds:
            key = speech.plain_id(call_id) + ("" if kind == call.kinds[0] else f":{kind}")
            self._outcomes.append((entry, Outcome(key, self._last_key, kind, ok, label, moment(record.value))))

    # --- telling ---

    def _told(self) -> tuple[dict[str, Any], list[Event]]:
        if self._old.get("own") or (self._cwd is not None and speech.is_own(self._cwd)):
            return {"own": True}, []
        drafts = sorted(filter(self._is_told, self._drafts.values()), key=lambda draft: draft.turn.pos)
        if self._is_subagent:
            drafts = [draft for draft in drafts if draft.turn.role is not Role.TOOL]
        events: list[Event] = [Upsert(self._turn(draft)) for draft in drafts]
        events += [outcome for entry, outcome in self._outcomes if not self._is_abandoned(entry)]
        external_id = self._session or speech.plain_id(self._named(""))
        if not events and not self._resumed:
            # That a session was deleted is worth telling even if nothing of it is left to read.
            return {}, [About(external_id, self._cwd)] if self._found.session_status is Status.DELETED else []
        parent = speech.plain_id(self._parent) if self._parent and self._parent != external_id else None
        about = About(
            external_id,
            self._cwd,
            parent=parent,
            is_subagent=self._is_subagent,
            first_time=self._first,
            last_time=self._latest,
        )
        return self._state(external_id), [about, *self._own_titles(), *events]

    def _own_titles(self) -> list[Title]:
        if self._is_subagent:
            return []
        is_first = self._first_prompt and not self._old.get("titled")
        first = [Title(speech.title_of(self._first_prompt), 0)] if self._first_prompt and is_first else []
        return first + self._titles

    def _turn(self, draft: Draft) -> RawTurn:
        state = State.ABANDONED if self._is_abandoned(draft.entry) else State.LIVE
        turn = replace(draft.turn, state=state)
        if not self._is_subagent:
            return turn
        return replace(turn, role=Role.SUBAGENT, kind="answer" if turn.role is Role.ASSISTANT else "task")

    def _is_abandoned(self, entry: str) -> bool:
        return not self._resumed and bool(entry) and self._branches.is_abandoned(entry)

    def _state(self, external_id: str) -> dict[str, Any]:
        """What the next parse needs: ids, digests, numbers and flags."""
        calls = self._old_calls | {speech.digest(call_id): "own" for call_id in self._own_calls}
        calls |= {speech.digest(call_id): call.kinds[0] for call_id, call in self._calls.items() if call is not None}
        return self._branches.state() | {
            "id": external_id,
            "times": dict(self._times_said),
            "calls": calls,
            "last": self._last_key,
            "born": self._born,
            "above": self._above,
            "nameless": self._nameless,
            "sub": self._is_subagent,
            "first": self._first,
            "latest": self._latest,
            "titled": bool(self._old.get("titled")) or self._first_prompt is not None,
        }

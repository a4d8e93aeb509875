"""What Hermes' messages say, from whichever place they come."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from archiver import transcript
from archiver.sources import jsonl, speech, tools
from archiver.transcript import Event, Outcome, Progress, RawTurn, Title, Unreadable, Upsert
from store.records import Role, State

_COMPACTED = re.compile(r"\A\s*\[CONTEXT COMPACTION\b")
_SKILL = re.compile(r"\A\s*\[SYSTEM: The user has invoked the \"")
_ALONGSIDE = "The user has provided the following instruction alongside the skill invocation:"
_REVIEW = re.compile(r"\A\s*Review the conversation above and\b")
_SYSTEM = re.compile(r"\A\s*\[(?:SYSTEM|System)\b[^\]]*\]")
_OWN_TOOL = re.compile(r"(?:mcp_+)?wwt(?:_|\.|\Z)")
_SHELLS = ("terminal", "shell", "bash", "execute_command", "run_command", "exec")
_EDITORS = ("write_file", "patch", "edit_file", "str_replace", "apply_patch")
_LONGEST_JSON = 16 << 20


@dataclass(frozen=True, slots=True)
class About:
    """A session as its row or its file's head tells of it. `times` are UTC ms."""

    session: str
    cwd: str | None = None
    branch: str | None = None
    title: str | None = None
    parent: str | None = None
    ended: bool = False
    times: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True, slots=True)
class Message:
    """As stored: `content` is text, JSON text of parts, or parts. `undone`: taken back by the user."""

    role: str
    content: object
    time: int | None
    tool_calls: object = None
    call_id: str = ""
    tool: str = ""
    undone: bool = False
    failed: bool = False


class HermesParse:
    """Messages have no ids that all places agree on, so a turn is known by its words and how often they were said before."""

    def __init__(self, items: Iterable[About | Message | Unreadable]) -> None:
        self.progress = Progress()
        self.bytes_read = 0
        self._items = items
        self._about = About("")
        self._session = ""
        self._told = False
        self._pos = 0
        self._last_key = ""
        self._times_said: Counter[str] = Counter()
        self._calls: dict[str, tools.Call | None] = {}
        self._own: set[str] = set()

    def __iter__(self) -> Iterator[Event]:
        for item in self._items:
            if isinstance(item, Unreadable):
                yield item
            elif isinstance(item, About):
                self._about, self._session = item, speech.plain_id(item.session)
                if item.cwd is not None and speech.is_own(item.cwd):
                    return
            else:
                self._pos += 1
                yield from self._take(item)

    def _take(self, message: Message) -> Iterator[Event]:
        if isinstance(message.content, str | bytes):
            self.bytes_read += len(message.content)
        if message.role == "user":
            text = _asked(_text_of(message.content))
            yield from self._say(message, Role.USER, "command" if text.startswith("/") else "prompt", text)
        elif message.role == "assistant":
            yield from self._say(message, Role.ASSISTANT, "reply", _answered(_text_of(message.content)))
            self._remember_calls(message.tool_calls)
        elif message.role == "tool":
            yield from self._result(message)

    def _say(self, message: Message, role: Role, kind: str, text: str) -> Iterator[Event]:
        if not text:
            return
        yield from self._head()
        self._last_key = self._key(role, text)
        state = State.ABANDONED if message.undone else State.LIVE
        yield Upsert(RawTurn(self._last_key, self._pos, role, kind, text, message.time, state))
        if message.time is not None:
            yield transcript.About(self._session, first_time=message.time, last_time=message.time)
        if kind == "prompt":
            yield Title(speech.title_of(text), 0)

    def _head(self) -> Iterator[Event]:
        """Once, before the first words."""
        if self._told:
            return
        self._told = True
        about = self._about
        parent = speech.plain_id(about.parent) if about.parent and about.parent != about.session else None
        first, last = about.times
        yield transcript.About(
            self._session, about.cwd, about.branch, parent, ended=about.ended, first_time=first, last_time=last
        )
        if about.title:
            yield Title(speech.title_of(jsonl.scrub(about.title)), 3)

    def _key(self, role: str, text: str) -> str:
        told = speech.digest(self._session, role, text)
        self._times_said[told] += 1
        return f"{self._session}/{told}.{self._times_said[told]}"

    # --- tools ---

    def _remember_calls(self, calls: object) -> None:
        calls = _json(calls)
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            native = call.get("id") or call.get("call_id") if isinstance(call, dict) else None
            if isinstance(function, dict) and isinstance(native, str):
                name = function.get("name")
                name = name if isinstance(name, str) else ""
                given = _json(function.get("arguments"))
                self._calls[native] = _proving(name, given if isinstance(given, dict) else {})
                if _OWN_TOOL.match(name):
                    self._own.add(native)

    def _result(self, message: Message) -> Iterator[Event]:
        call = self._calls.pop(message.call_id, None)
        if message.undone or message.call_id in self._own or _OWN_TOOL.match(message.tool):
            return
        output, failed = _output(message)
        ok = tools.verdict(call, failed=failed, output=output) if call else None
        if call is not None and ok is not None and self._told:
            for kind in call.kinds:
                key = f"{self._session}/{speech.plain_id(message.call_id)}:{kind}"
                yield Outcome(key, self._last_key, kind, ok, jsonl.scrub(call.label), message.time)
        text = tools.error_text(speech.cut_recall(output)) if failed else ""
        if text and self._told:
            key = self._key("tool", text)
            yield Upsert(RawTurn(key, self._pos, Role.TOOL, "error", text, message.time))


def _proving(name: str, given: dict[str, Any]) -> tools.Call | None:
    if name in _EDITORS:
        path = given.get("path") or given.get("file_path")
        return tools.edited([path if isinstance(path, str) else ""])
    command = given.get("command")
    return tools.command(command) if name in _SHELLS and isinstance(command, str) else None


def _output(message: Message) -> tuple[str, bool]:
    """The text of a tool's answer, and whether it failed. Most tools answer with a JSON object in the text."""
    text = _text_of(message.content)
    value = _json(text) if text.startswith("{") else None
    if not isinstance(value, dict):
        return text, message.failed
    error, exit_code = value.get("error"), value.get("exit_code")
    failed = (
        message.failed
        or bool(error)
        or value.get("success") is False
        or (isinstance(exit_code, int) and exit_code != 0)
    )
    shown = [part for part in (value.get("output"), value.get("stderr"), error) if isinstance(part, str) and part]
    return jsonl.scrub("\n".join(shown) or text), failed


def _json(value: object) -> object:
    if not isinstance(value, str | bytes) or len(value) > _LONGEST_JSON:
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None


def _text_of(content: object) -> str:
    if isinstance(content, bytes):
        content = content.decode("utf-8", "replace")
    if isinstance(content, str) and content.lstrip().startswith(("[{", "{")):
        parts = _json(content)
        # Text that only looks like parts is text.
        content = parts if isinstance(parts, list) and all(map(_is_part, parts)) and parts else content
    if isinstance(content, str):
        return jsonl.scrub(content).strip()
    found = [
        part["text"] for part in (content if isinstance(content, list) else []) if _is_part(part) and "text" in part
    ]
    return jsonl.scrub("\n\n".join(text for text in found if isinstance(text, str))).strip()


def _is_part(part: object) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str)


def _asked(text: str) -> str:
    """What a person wrote; empty for what Hermes wrote in their name."""
    text = speech.cut_recall(text).strip()
    if _SKILL.match(text):
        return text.partition(_ALONGSIDE)[2].strip()
    machine = _COMPACTED.match(text) or _REVIEW.match(text) or _SYSTEM.match(text) or speech.is_observer_prompt(text)
    return "" if machine else text


def _answered(text: str) -> str:
    text = speech.cut_recall(text).strip()
    return "" if _COMPACTED.match(text) or speech.is_failure_notice(text) else text

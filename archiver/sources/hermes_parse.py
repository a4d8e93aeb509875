"""What Hermes' messages say, from whichever place they come."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from archiver import transcript
from archiver.sources import hermes_speech, jsonl, speech, tools
from archiver.transcript import Event, Outcome, Progress, RawTurn, Reread, Title, Unreadable, Upsert
from store.records import Role, State

_OWN_TOOL = re.compile(r"(?:mcp_+)?wwt(?:_|\.|\Z)")
_SHELLS = ("terminal", "shell", "bash", "execute_command", "run_command", "exec")
_EDITORS = ("write_file", "patch", "edit_file", "str_replace", "apply_patch")
_STRUCTURED = "\x00json:"
"""Stands before content that is no text, in the database."""
_LONGEST_JSON = 16 << 20


@dataclass(frozen=True, slots=True)
class About:
    """A session as its row or its file's head tells of it. `times` are UTC ms.

    is_branch: a person took its parent's talk another way, so it holds all that was said until then.
    """

    session: str
    cwd: str | None = None
    branch: str | None = None
    title: str | None = None
    parent: str | None = None
    is_subagent: bool = False
    is_branch: bool = False
    times: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True, slots=True)
class Message:
    """As stored: `content` is text, JSON text of parts, or parts.

    undone: taken back by the user.
    shown_as: how Hermes shows it, where that is not as its role says.
    above: the session it was said in, if this one began with what that one said.
    """

    role: str
    content: object
    time: int | None
    tool_calls: object = None
    call_id: str = ""
    tool: str = ""
    undone: bool = False
    failed: bool = False
    shown_as: str = ""
    above: str = ""


class HermesParse:
    """Messages have no ids that all places agree on, so a turn is known by its words and how often they were said before.

    A message of the same words and the same moment is a copy. Compressing a session writes its last messages once more, in it or
    in the one that goes on from it, where they are not told again; a branch shares what it took over.
    """

    def __init__(self, items: Iterable[About | Message | Unreadable], progress: Progress | None = None) -> None:
        """`progress`: how many messages were told before, where that is to be gone on from. They are read, and not told again."""
        self.progress = Progress()
        self.bytes_read = 0
        self._items = items
        self._old = progress
        self._about = About("")
        self._session = ""
        self._told = self._headed = False
        self._pos = 0
        self._last_key = ""
        self._reviewing = False
        self._times_said: Counter[str] = Counter()
        self._keys: dict[tuple[str, str, int], str] = {}
        self._said: dict[str, int] = {}
        self._seen = hashlib.sha256()
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
            elif item.above:
                self._replay(item)
            else:
                yield from self._next(item)
        if self._pos < self._known:
            raise Reread
        if self._old is not None:
            self.progress = Progress(self._pos, 0, {"seen": self._seen.hexdigest()[:16]})

    @property
    def _known(self) -> int:
        return self._old.offset if self._old is not None else 0

    def _next(self, message: Message) -> Iterator[Event]:
        self._pos += 1
        self._seen.update(
            repr((message.role, message.content, message.tool_calls, message.undone)).encode("utf-8", "replace")
        )
        if self._pos > self._known:
            yield from self._take(message)
            return
        self._replay(message)
        if self._old is not None and self._pos == self._known:
            self._headed = False
            if self._old.state.get("seen") != self._seen.hexdigest()[:16]:
                raise Reread  # what was told is there no more as it was

    def _replay(self, message: Message) -> None:
        for _ in self._take(message):
            pass

    def _take(self, message: Message) -> Iterator[Event]:
        if isinstance(message.content, str | bytes):
            self.bytes_read += len(message.content)
        if message.role == "user":
            yield from self._asked(message)
        elif message.role == "assistant":
            is_said = not self._reviewing and message.shown_as not in ("hidden", "failed_turn")
            text = hermes_speech.answered(_text_of(message.content)) if is_said else ""
            yield from self._say(message, Role.ASSISTANT, "reply", text)
            self._remember_calls(message.tool_calls)
        elif message.role == "tool":
            yield from self._result(message)

    def _asked(self, message: Message) -> Iterator[Event]:
        text, steering = hermes_speech.steered(_text_of(message.content))
        for one in steering:
            yield from self._say(message, Role.USER, "steering", one)
        self._reviewing = hermes_speech.is_review(text)
        if message.shown_as not in ("", "steer"):
            return
        text = hermes_speech.asked(text)
        kind = "steering" if message.shown_as else "command" if text.startswith("/") else "prompt"
        yield from self._say(message, Role.USER, kind, text)

    def _say(self, message: Message, role: Role, kind: str, text: str) -> Iterator[Event]:
        key = self._key(message, role, text) if text else ""
        # Of copies the first says where it was said, and the last whether it was taken back.
        if not key or not self._is_of_here(message, key) or (key in self._said and not message.undone):
            return
        yield from self._head()
        pos = self._said.setdefault(key, self._pos)
        self._last_key = key
        if self._about.is_subagent:
            role, kind = Role.SUBAGENT, "answer" if role is Role.ASSISTANT else "task"
        state = State.ABANDONED if message.undone else State.LIVE
        yield Upsert(RawTurn(key, pos, role, kind, text, message.time, state))
        if message.time is not None:
            yield transcript.About(self._session, first_time=message.time, last_time=message.time)
        if kind == "prompt":
            yield Title(speech.title_of(text), 0)

    def _is_of_here(self, message: Message, key: str) -> bool:
        return not message.above and (self._about.is_branch or key.startswith(f"{self._session}/"))

    def _head(self) -> Iterator[Event]:
        """Once, before the first words."""
        if self._headed:
            return
        self._told = self._headed = True
        about = self._about
        parent = speech.plain_id(about.parent) if about.parent and about.parent != about.session else None
        first, last = about.times
        yield transcript.About(
            self._session,
            about.cwd,
            about.branch,
            parent,
            is_subagent=about.is_subagent,
            first_time=first,
            last_time=last,
        )
        if about.title and not about.is_subagent:
            yield Title(speech.title_of(jsonl.scrub(about.title)), 3)

    def _key(self, message: Message, role: str, text: str) -> str:
        """That of the first message of these words and this moment, in whichever session it was."""
        session = speech.plain_id(message.above) or self._session
        told = speech.digest(session, role, text)
        said = (role, speech.digest(text), message.time) if message.time is not None else None
        if said is not None and said in self._keys:
            return self._keys[said]
        self._times_said[told] += 1
        key = f"{session}/{told}.{self._times_said[told]}"
        if said is not None:
            self._keys[said] = key
        return key

    # --- tools ---

    def _remember_calls(self, calls: object) -> None:
        calls = json_of(calls)
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            native = call.get("id") or call.get("call_id") if isinstance(call, dict) else None
            if isinstance(function, dict) and isinstance(native, str):
                name = function.get("name")
                name = name if isinstance(name, str) else ""
                given = json_of(function.get("arguments"))
                self._calls[native] = _proving(name, given if isinstance(given, dict) else {})
                if _OWN_TOOL.match(name):
                    self._own.add(native)

    def _result(self, message: Message) -> Iterator[Event]:
        text, steering = hermes_speech.steered(_text_of(message.content))
        yield from self._proved(message, text)
        for one in steering:
            yield from self._say(message, Role.USER, "steering", one)

    def _proved(self, message: Message, text: str) -> Iterator[Event]:
        call = self._calls.pop(message.call_id, None)
        is_own = message.call_id in self._own or _OWN_TOOL.match(message.tool)
        key = self._key(message, "tool", text)
        if is_own or key in self._said or not self._is_of_here(message, key):
            return
        if message.undone or self._reviewing or not self._told:
            return
        yield from self._head()
        self._said[key] = self._pos
        output, failed = _output(text, failed=message.failed)
        ok = tools.verdict(call, failed=failed, output=output) if call else None
        if call is not None and ok is not None:
            for kind in call.kinds:
                proof = f"{self._session}/{speech.plain_id(message.call_id)}:{kind}"
                yield Outcome(proof, self._last_key, kind, ok, jsonl.scrub(call.label), message.time)
        error = tools.error_text(speech.cut_recall(output)) if failed and not self._about.is_subagent else ""
        if error:
            yield Upsert(RawTurn(key, self._pos, Role.TOOL, "error", error, message.time))


def _proving(name: str, given: dict[str, Any]) -> tools.Call | None:
    if name in _EDITORS:
        path = given.get("path") or given.get("file_path")
        return tools.edited([path if isinstance(path, str) else ""])
    command = given.get("command")
    return tools.command(command) if name in _SHELLS and isinstance(command, str) else None


def _output(text: str, *, failed: bool) -> tuple[str, bool]:
    """The text of a tool's answer, and whether it failed. Most tools answer with a JSON object in the text."""
    value = json_of(text) if text.startswith("{") else None
    if not isinstance(value, dict):
        return text, failed
    error, exit_code = value.get("error"), value.get("exit_code")
    failed = failed or bool(error) or value.get("success") is False or (isinstance(exit_code, int) and exit_code != 0)
    shown = [part for part in (value.get("output"), value.get("stderr"), error) if isinstance(part, str) and part]
    return jsonl.scrub("\n".join(shown) or text), failed


def json_of(value: object) -> object:
    """What a text stands for as JSON, None if for nothing; what is no text as it is."""
    if not isinstance(value, str | bytes) or len(value) > _LONGEST_JSON:
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None


def _text_of(content: object) -> str:
    if isinstance(content, bytes):
        content = content.decode("utf-8", "replace")
    if isinstance(content, str) and content.startswith(_STRUCTURED):
        plain = content.removeprefix(_STRUCTURED)
        content = json_of(plain) or plain
    if isinstance(content, str) and content.lstrip().startswith("[{"):
        parts = json_of(content)
        # Text that only looks like parts is text.
        content = parts if isinstance(parts, list) and all(map(_is_part, parts)) else content
    if isinstance(content, str):
        return jsonl.scrub(content).strip()
    found = [
        part["text"] for part in (content if isinstance(content, list) else []) if _is_part(part) and "text" in part
    ]
    return jsonl.scrub("\n\n".join(text for text in found if isinstance(text, str))).strip()


def _is_part(part: object) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str)

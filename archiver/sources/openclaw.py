"""OpenClaw's transcripts, and those of pi, whose records are the same: one JSONL file a session, a tree of entries."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from archiver.sources import jsonl, speech, tools
from archiver.sources.branches import Kind, Tree
from archiver.sources.records import RecordParse
from archiver.transcript import (
    About,
    Event,
    Found,
    Outcome,
    Parse,
    Progress,
    RawTurn,
    Reread,
    Source,
    Title,
    Upsert,
)
from store.records import Role, State, Status, parse_time

AGENT = "openclaw"

_ARCHIVE = re.compile(
    r"(?P<id>.+?)\.jsonl\.(?P<why>deleted|reset|bak)\.(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d{3})?Z)(?:\.zst)?",
    re.S,
)
_LIVE = re.compile(r"(?P<id>[a-z0-9][a-z0-9._-]{0,127}?(?:-topic-[^/]+)?)\.jsonl(?:\.zst)?", re.I)
_BESIDE = re.compile(
    r"\.checkpoint\.|\.trajectory\.jsonl|\.trajectory-path\.json|\.lock\Z|^sessions\.json|\.full\.bak|\.archival-.*\.tmp|\.jsonl\.bak\b"
)
_TOPIC = re.compile(r"-topic-[^/]+\Z")

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_ENVELOPE = re.compile(rf"\A\s*\[(?:{_DAY}\s+|[^\W\d_][^\[\]\n]{{0,200}}?\s)\d{{4}}-\d\d-\d\d[^\[\]\n]{{0,60}}\][ \t]*")
_MESSAGE_ID = re.compile(r"(?m)^[ \t]*\[message_id: [^\]\n]*\][ \t]*$\n?|[ \t]*\[message_id: [^\]\n]*\][ \t]*\Z")
_MEDIA = re.compile(r"(?m)^[ \t]*\[media attached[^\]\n]*\][ \t]*$\n?")
_SYSTEM_LINE = re.compile(r"(?m)^System: \[\d{4}-\d\d-\d\d[^\]\n]*\].*$\n?")
_METADATA = re.compile(r"(?ms)^[A-Z][\w ,'-]{2,60} \(untrusted[^)\n]*\):\n```json\n.*?\n```[ \t]*\n*")
_MACHINE = re.compile(
    r"\A\s*(?:Read HEARTBEAT\.md\b|\[cron:|A new session was started via /new or /reset\b|Pre-compaction memory flush\b"
    r"|\[Subagent Context\]|\[Inter-session message\])"
)
_HEARTBEAT = re.compile(r"\A\s*Read HEARTBEAT\.md\b|\breply (?:with )?HEARTBEAT_OK\b", re.I)
_SILENT = re.compile(r"[\s*_`.]*(?:NO_REPLY|HEARTBEAT_OK)[\s*_`.]*")
_SILENT_EDGE = re.compile(r"\A(?:NO_REPLY|HEARTBEAT_OK)\b\s*|\s*\b(?:NO_REPLY|HEARTBEAT_OK)\s*\Z")
_SLASH = re.compile(r"\A/[\w:-]+(?:\s+|\Z)")
_BARE_SLASH = re.compile(r"/[\w:-]+")
_SYNTHETIC_MODELS = ("delivery-mirror", "gateway-injected")
_CUT = ("system-reminder", "relevant-memories")

_EDITORS = ("edit", "write", "edit_file", "write_file", "multi_edit", "apply_patch")
_PATCHED = re.compile(r"(?m)^\*\*\* (?:Add|Update|Delete) File: (.+)$")
_OWN_TOOL = re.compile(r"(?:mcp_+)?wwt(?:_|\.|\Z)")
_UUID_AT_END = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.jsonl.*)?\Z", re.I)


class OpenClaw(Source):
    agent = AGENT
    parser_version = 1

    def roots(self) -> list[Path]:
        """The state folder's `agents`. Without `$OPENCLAW_STATE_DIR`, also those of the names it had before."""
        given = os.environ.get("OPENCLAW_STATE_DIR")
        if given:
            return [Path(given).expanduser().absolute() / "agents"]
        usual = [Path.home() / name / "agents" for name in (".openclaw", ".clawdbot", ".moltbot")]
        return [root for root in usual if root.is_dir()] or usual[:1]

    def discover(self, root: Path) -> Iterable[Found]:
        try:
            paths = [path for path in root.glob("*/sessions/*") if path.is_file()]
        except OSError:
            return
        for path in paths:
            found = _named(path)
            if found is not None:
                yield found

    def sniff(self, path: Path, head: bytes) -> Found | None:
        for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            verdict = _looks_like(line.strip(b"\x00 \t\r"))
            if verdict is not None:
                return (_named(path) or _other_name(path)) if verdict else None
        return None

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        return _OpenClawParse(found, progress, final=final)


SOURCE = OpenClaw()


def _named(path: Path) -> Found | None:
    """A transcript by its file name; None for what OpenClaw keeps beside them."""
    archive = _ARCHIVE.fullmatch(path.name)
    if archive and archive["why"] != "bak":
        status = Status.RESET if archive["why"] == "reset" else Status.DELETED
        return Found(AGENT, path, archive["why"], status)
    if _BESIDE.search(path.name) or not _LIVE.fullmatch(path.name):
        return None
    return Found(AGENT, path)


def _other_name(path: Path) -> Found | None:
    return None if _BESIDE.search(path.name) else Found(AGENT, path)


def _session_of(path: Path) -> str:
    match = _ARCHIVE.fullmatch(path.name) or _LIVE.fullmatch(path.name)
    return match["id"] if match else path.name.partition(".jsonl")[0]


def _looks_like(line: bytes) -> bool | None:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    kind = _text(value.get("type"))
    if kind == "session" and isinstance(value.get("id"), str):
        return True
    if any(key in value for key in ("sessionId", "parentUuid", "payload", "projectHash")):
        return False
    message = value.get("message")
    if kind == "message" and isinstance(message, dict):
        return _text(message.get("role")) != "" and ("id" in value or "timestamp" in value)
    return None


@dataclass(slots=True)
class _Draft:
    key: str
    pos: int
    role: Role
    kind: str
    text: str
    time: int | None
    entry: str


class _OpenClawParse(RecordParse):
    """One parse: everything new is read, then told, for only the last entry shows which branch is live."""

    def __init__(self, found: Found, progress: Progress, *, final: bool) -> None:
        super().__init__(jsonl.Reader(found.path, progress, final=final), progress)
        self._found = found
        self._drafts: dict[str, _Draft] = {}
        self._outcomes: list[tuple[str, Outcome]] = []
        self._tree = Tree()
        self._open: set[str] = set(self._old.get("open", ()))
        self._times_said: Counter[str] = Counter(self._old.get("times", {}))
        self._calls: dict[str, tools.Call | None] = {}
        self._old_calls: dict[str, str] = dict(self._old.get("calls", {}))
        self._own_calls: set[str] = set()
        self._last_key: str = self._old.get("last", "")
        self._last_answer: str = self._old.get("answer", "")
        self._in_heartbeat: bool = self._old.get("heartbeat", False)
        self._session: str = self._old.get("id", "")
        self._cwd: str | None = None
        self._parent: str | None = None
        self._first: int | None = self._old.get("first")
        self._latest: int | None = self._old.get("latest")
        self._titles: list[Title] = []
        self._first_prompt: str | None = None

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
                name = speech.title_of(jsonl.scrub(_text(value.get("name"))))
                if name:
                    self._titles.append(Title(name, 3))
            case "compaction" | "compact":
                self._link(value, Kind.STEP)
            case _:
                self._link(value, Kind.HARNESS)

    def _header(self, value: dict[str, Any]) -> None:
        native = _text(value.get("id"))
        if not self._session:
            stem = _session_of(self._found.path)
            # Threads of one channel share the header's id, but each is a conversation of its own.
            self._session = speech.plain_id(stem if _TOPIC.search(stem) or not native else native)
        self._cwd = self._cwd or jsonl.scrub(_text(value.get("cwd"))) or None
        parent = _text(value.get("parentSession"))
        if parent:
            named = _UUID_AT_END.search(parent)
            self._parent = named[1] if named else parent.rpartition("/")[2].partition(".jsonl")[0]
        if native:
            self._add(native, None, Kind.STEP)

    def _link(self, value: dict[str, Any], kind: Kind) -> bool:
        """Put an entry into the tree. False if it hangs from an entry of an earlier exchange, or from nothing known."""
        entry, parent = _text(value.get("id")), _text(value.get("parentId")) or None
        anchored = parent is None or speech.digest(parent) in self._open
        if kind is Kind.PROMPT:
            if self._resumed and not anchored:
                raise Reread
            self._open, self._old_calls = set(), {}
        if entry:
            root = parent is None or anchored or (not self._resumed and parent not in self._tree)
            self._add(entry, parent, kind, is_open=root or kind is Kind.PROMPT)
        return anchored

    def _add(self, entry: str, parent: str | None, kind: Kind, *, is_open: bool = True) -> None:
        self._tree.add(entry, parent, kind)
        if is_open:
            self._open.add(speech.digest(entry))

    def _require(self, anchored: bool) -> None:
        if self._resumed and not anchored:
            raise Reread

    def _message(self, record: jsonl.Record) -> None:
        message = record.value["message"]
        self._clock(_moment(record.value))
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
        raw = "\n\n".join(_texts(message.get("content")))
        text = _spoken(raw)
        anchored = self._link(record.value, Kind.PROMPT if text else Kind.STEP)
        self._in_heartbeat = not text and "HEARTBEAT" in raw
        if not text:
            return
        self._require(anchored)
        kind = "command" if _SLASH.match(text) else "prompt"
        self._say(record, text, Role.USER, kind)
        if self._first_prompt is None and kind == "prompt":
            self._first_prompt = text

    def _typed_command(self, record: jsonl.Record, message: dict[str, Any]) -> None:
        text = tools.plain(jsonl.scrub(_text(message.get("command")))).strip()
        anchored = self._link(record.value, Kind.PROMPT if text else Kind.HARNESS)
        if text:
            self._require(anchored)
            self._say(record, text, Role.USER, "command")

    def _assistant(self, record: jsonl.Record, message: dict[str, Any]) -> None:
        anchored = self._link(record.value, Kind.STEP)
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if (
                isinstance(block, dict)
                and block.get("type") in ("toolCall", "tool_use")
                and isinstance(block.get("id"), str)
            ):
                self._tool_call(block, _text(record.value.get("id")) or None)
        if message.get("provider") == AGENT and message.get("model") in _SYNTHETIC_MODELS:
            return
        text = _answered("\n\n".join(filter(None, (part.strip() for part in _texts(content)))))
        told = speech.digest(text)
        # After a heartbeat the gateway may commit its last answer once more.
        if not text or speech.is_failure_notice(text) or (self._in_heartbeat and told == self._last_answer):
            return
        self._require(anchored)
        self._last_answer = told
        self._say(record, text, Role.ASSISTANT, "reply")

    def _say(self, record: jsonl.Record, text: str, role: Role, kind: str) -> None:
        entry = _text(record.value.get("id"))
        key = self._key(entry, role, text, unique_from=8)
        if entry and key in self._drafts:
            return
        self._drafts[key] = _Draft(key, record.pos, role, kind, text, _moment(record.value), entry)
        self._last_key = key

    def _key(self, native: str, role: str, text: str, *, unique_from: int) -> str:
        """Ids of entries are unique within a session only, and shorter ones not over its segments."""
        session = self._session or _session_of(self._found.path)
        if not native:
            told = speech.digest(session, role, text)
            self._times_said[told] += 1
            return f"{session}/{told}.{self._times_said[told]}"
        suffix = "" if len(native) >= unique_from else ":" + speech.digest(text)[:8]
        return f"{session}/{speech.plain_id(native)}{suffix}"

    # --- tools ---

    def _tool_call(self, block: dict[str, Any], entry: str | None) -> None:
        call_id, name = block["id"], _text(block.get("name"))
        # Some writers hang the result from the call instead of the entry that holds it.
        self._add(call_id, entry, Kind.STEP)
        if _OWN_TOOL.match(name):
            self._own_calls.add(call_id)
            return
        given = block.get("arguments", block.get("input"))
        given = given if isinstance(given, dict) else {}
        call = None
        if name.lower() in _EDITORS:
            patched = _PATCHED.findall(_text(given.get("input")) or _text(given.get("patch")))
            call = tools.edited(patched or [_text(given.get("path")) or _text(given.get("file_path"))])
        elif isinstance(given.get("command"), str):
            call = tools.command(given["command"])
        self._calls[call_id] = call

    def _tool_result(self, record: jsonl.Record, message: dict[str, Any]) -> None:
        anchored = self._link(record.value, Kind.STEP)
        call_id = _text(message.get("toolCallId"))
        earlier = self._old_calls.pop(speech.digest(call_id), None)
        if call_id in self._own_calls or earlier == "own" or _OWN_TOOL.match(_text(message.get("toolName"))):
            self._own_calls.discard(call_id)
            return
        if earlier is not None and call_id not in self._calls:
            raise Reread  # what the call was stands in bytes read before
        details = message.get("details")
        details = details if isinstance(details, dict) else {}
        exit_code = details.get("exitCode")
        failed = message.get("isError") is True or (isinstance(exit_code, int) and exit_code != 0)
        output = "\n".join(_texts(message.get("content")))
        call = self._calls.pop(call_id, None)
        if call is not None and details.get("status") != "running":
            ok = tools.verdict(call, failed=failed, output=output)
            if ok is not None:
                self._prove(record, call_id, call, ok=ok)
        text = (
            tools.error_text(speech.cut_tags(speech.cut_recall(output), _CUT)) if message.get("isError") is True else ""
        )
        if text:
            self._require(anchored)
            key = self._key(call_id or _text(record.value.get("id")), "tool", text, unique_from=8) + ":error"
            entry = _text(record.value.get("id"))
            self._drafts.setdefault(
                key, _Draft(key, record.pos, Role.TOOL, "error", text, _moment(record.value), entry)
            )

    def _prove(self, record: jsonl.Record, call_id: str, call: tools.Call, *, ok: bool) -> None:
        entry = _text(record.value.get("id"))
        for kind in call.kinds:
            key = speech.plain_id(call_id) + ("" if kind == call.kinds[0] else f":{kind}")
            self._outcomes.append(
                (entry, Outcome(key, self._last_key, kind, ok, jsonl.scrub(call.label), _moment(record.value)))
            )

    # --- telling ---

    def _told(self) -> tuple[dict[str, Any], list[Event]]:
        if self._old.get("own") or (self._cwd is not None and speech.is_own(self._cwd)):
            return {"own": True}, []
        drafts = sorted(self._drafts.values(), key=lambda draft: draft.pos)
        events: list[Event] = [Upsert(self._turn(draft)) for draft in drafts]
        events += [outcome for entry, outcome in self._outcomes if not self._is_abandoned(entry)]
        external_id = self._session or speech.plain_id(_session_of(self._found.path))
        if not events and not self._resumed:
            # That a session was deleted is worth telling even if nothing of it is left to read.
            return {}, [About(external_id, self._cwd)] if self._found.session_status is Status.DELETED else []
        parent = speech.plain_id(self._parent) if self._parent and self._parent != external_id else None
        about = About(external_id, self._cwd, parent=parent, first_time=self._first, last_time=self._latest)
        titles: list[Event] = list(self._titles)
        if self._first_prompt and not self._old.get("titled"):
            titles.insert(0, Title(speech.title_of(self._first_prompt), 0))
        return self._state(external_id), [about, *titles, *events]

    def _turn(self, draft: _Draft) -> RawTurn:
        state = State.ABANDONED if self._is_abandoned(draft.entry) else State.LIVE
        return RawTurn(draft.key, draft.pos, draft.role, draft.kind, draft.text, draft.time, state)

    def _is_abandoned(self, entry: str) -> bool:
        return not self._resumed and entry in self._tree and self._tree.is_abandoned(entry)

    def _state(self, external_id: str) -> dict[str, Any]:
        """What the next parse needs: ids, digests, numbers and flags."""
        calls = self._old_calls | {speech.digest(call_id): "own" for call_id in self._own_calls}
        calls |= {speech.digest(call_id): call.kinds[0] for call_id, call in self._calls.items() if call is not None}
        return {
            "id": external_id,
            "open": sorted(self._open),
            "times": dict(self._times_said),
            "calls": calls,
            "last": self._last_key,
            "answer": self._last_answer,
            "heartbeat": self._in_heartbeat,
            "first": self._first,
            "latest": self._latest,
            "titled": bool(self._old.get("titled")) or self._first_prompt is not None,
        }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(content: object) -> Iterator[str]:
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            yield jsonl.scrub(block)
        elif isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            yield jsonl.scrub(block["text"])


def _moment(value: dict[str, Any]) -> int | None:
    time = parse_time(value.get("timestamp"))
    return parse_time(value["message"].get("timestamp")) if time is None else time


def _spoken(text: str) -> str:
    """What the person wrote, without the gateway's and the channel's envelopes; empty for machine prompts."""
    text = speech.cut_tags(speech.cut_recall(text), _CUT)
    if speech.is_observer_prompt(text):
        return ""
    text = _SYSTEM_LINE.sub("", _METADATA.sub("", text))
    for _ in range(3):
        text = _ENVELOPE.sub("", text, count=1)
    text = _MEDIA.sub("", _MESSAGE_ID.sub("", text)).strip()
    return (
        ""
        if _MACHINE.match(text) or _HEARTBEAT.search(text) or _SILENT.fullmatch(text) or _BARE_SLASH.fullmatch(text)
        else text
    )


def _answered(text: str) -> str:
    text = _MEDIA.sub("", speech.cut_tags(speech.cut_recall(text), _CUT)).strip()
    return "" if _SILENT.fullmatch(text) else _SILENT_EDGE.sub("", text).strip()

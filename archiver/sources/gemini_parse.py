"""One run over a Gemini CLI transcript: a log of messages that grow, are rewound and are copied becomes turns and outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from archiver.sources import gemini_speech, jsonl, speech, tools
from archiver.sources.gemini_document import Document, is_document
from archiver.sources.gemini_speech import text_of
from archiver.sources.records import RecordParse
from archiver.transcript import (
    About,
    Event,
    Found,
    Outcome,
    Progress,
    RawTurn,
    Reread,
    Retract,
    Title,
    Unreadable,
    Upsert,
)
from store.records import Role, State, parse_time

Locate = Callable[[str, list[str]], str | None]
"""The folder of a session, from its project's hash and the folders it names itself."""

_SUMMARY_RANK = 2
_UNIQUE_FROM = 16
_LONGEST_KIND = 20
_STEP = 16
"""No message of a list is shorter than this in bytes: its place in the list, times this, stays below the next record's offset."""


@dataclass(slots=True)
class _Proof:
    key: str
    kind: str
    ok: bool
    label: str


@dataclass(slots=True)
class _Message:
    """A message as it last stood. One of which nothing is kept still has its place in the conversation.

    copies: ids of the messages that this one only repeats under a new id.
    """

    native: str
    pos: int
    is_user: bool
    kind: str
    parts: list[str]
    time: int | None
    proofs: list[_Proof] = field(default_factory=list)
    errors: list[tuple[str, str]] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    """Fingerprints of the parts, and behind them of what was sent in their place."""
    is_abandoned: bool = False
    copies: list[str] = field(default_factory=list)


class GeminiParse(RecordParse):
    """One parse: everything new is read, then told, for only the end shows which messages were rewound or copied."""

    def __init__(self, found: Found, progress: Progress, locate: Locate, *, final: bool) -> None:
        super().__init__(jsonl.Reader(found.path, progress, final=final), progress)
        self._path = found.path
        self._locate = locate
        self._is_document = False
        self._nothing_read = True
        self._messages: dict[str, _Message] = {}
        self._listed: dict[str, None] = {}
        self._synced: set[str] = set()
        self._old_places: dict[str, int] = self._old.get("places", {})
        self._session: str = self._old.get("id", "")
        self._hash: str = self._old.get("hash", "")
        self._kind: str = self._old.get("kind", "")
        self._shown: str = self._old.get("shown", "")
        self._summary = ""
        self._folders: list[str] = []
        self._directories: list[str] = []

    def __iter__(self) -> Iterator[Event]:
        if not self._resumed and is_document(self._path):
            self._is_document = True
            self._records = Document(self._path)
        yield from super().__iter__()

    # --- reading ---

    def _take(self, record: jsonl.Record) -> None:
        self._nothing_read = False
        value = record.value
        match value:
            case {"$rewindTo": str(target)}:
                self._rewind(target)
            case {"$patch": dict(patch)}:
                self._patch(patch)
            case {"$set": dict(changes)}:
                self._about(changes)
                if isinstance(changes.get("messages"), list):
                    self._replace(record.pos, _objects(changes["messages"]))
            case {"id": str(), "type": str()}:
                self._message(value, record.pos)
            case _:
                self._about(value)
                for at, message in enumerate(_objects(value.get("messages"))):
                    self._message(message, record.pos + at * _STEP)

    def _about(self, value: dict[str, Any]) -> None:
        """What a record says of the session: its first line, a later change, or the whole of an old transcript."""
        self._session = self._session or speech.plain_id(text_of(value.get("sessionId")))
        self._hash = self._hash or jsonl.scrub(text_of(value.get("projectHash")))[: speech.LONGEST_ID]
        self._kind = self._kind or text_of(value.get("kind"))[:_LONGEST_KIND]
        self._summary = text_of(value.get("summary")) or self._summary
        directories = value.get("directories")
        named = directories if isinstance(directories, list) else []
        self._directories += [jsonl.scrub(folder) for folder in named if isinstance(folder, str) and folder]

    def _message(self, value: dict[str, Any], pos: int) -> str:
        """Put in a message, or the newer version of a known one, which keeps its place."""
        message = self._read(value, pos)
        native = message.native
        known = self._messages.get(native)
        if known is not None:
            message.pos, message.copies = known.pos, known.copies
        else:
            message.pos = self._old_places.get(speech.digest(native), pos)
        self._messages[native] = message
        self._listed.setdefault(native)
        return native

    def _read(self, value: dict[str, Any], pos: int) -> _Message:
        kind, said = value.get("type"), "reply"
        parts: list[str] = []
        sent: list[str] = []
        if kind == "user":
            said, parts = gemini_speech.prompt(value)
            shown, is_held = gemini_speech.shown_with(value)
            if shown and shown == self._shown and not is_held:
                parts = []
            self._shown = shown or self._shown
            sent = gemini_speech.sent(value) if "displayContent" in value else []
            if not parts:
                self._folders += gemini_speech.folders(value)
        elif kind in ("gemini", "model"):
            parts = gemini_speech.answer(value)
        native = text_of(value.get("id")) or speech.digest(str(kind), text_of(value.get("timestamp")), *parts)
        message = _Message(native, pos, kind == "user", said, parts, parse_time(value.get("timestamp")))
        message.marks = [gemini_speech.fingerprint(part) for part in [*parts, *sent] if part]
        if kind in ("gemini", "model"):
            for call in _objects(value.get("toolCalls")):
                self._tool_call(message, call)
        return message

    # --- rewinding and copies ---

    def _rewind(self, target: str) -> None:
        """The message and all behind it were taken back; all, if it is not in the conversation."""
        if self._resumed:
            raise Reread
        listed = list(self._listed)
        for native in listed[listed.index(target) if target in self._listed else 0 :]:
            self._abandon(native, is_abandoned=True)
            del self._listed[native]

    def _patch(self, patch: dict[str, Any]) -> None:
        """Messages left what the model is sent, or were put in another order. New words in place of old are masked ones."""
        removed, order = _strings(patch.get("removeIds")), _strings(patch.get("orderIds"))
        if not removed and not order:
            return
        if self._resumed:
            raise Reread
        stay = self._listed.keys() - set(removed)
        placed = [native for native in order if native in stay]
        before = stay - set(placed)
        self._sync([native for native in self._listed if native in before] + placed)

    def _replace(self, pos: int, values: list[dict[str, Any]]) -> None:
        """What the model is sent was replaced by this list, as happens at compression. What was said before stays said."""
        if self._resumed:
            raise Reread
        had_words = any(message.parts for message in self._messages.values())
        natives, new = [], []
        for at, value in enumerate(values):
            native = text_of(value.get("id"))
            if native not in self._messages:
                native = self._message(value, pos + at * _STEP)
                new.append(native)
            natives.append(native)
        self._sync(natives)
        if had_words:
            self._silence_summary(natives, set(new))

    def _silence_summary(self, natives: list[str], new: set[str]) -> None:
        """A new message at the head of a list stands for what the list leaves out, and one behind it acknowledges it.

        What a person and the model said has records of its own before.
        """
        roles = set()
        for message in (self._messages[native] for native in natives):
            if not message.parts:
                continue
            if message.native not in new or message.copies or message.is_user in roles:
                return
            roles.add(message.is_user)
            message.parts = []

    def _sync(self, natives: list[str]) -> None:
        """The conversation consists of these messages now.

        One that came in while another with the same words left is its copy: the program records the whole conversation
        anew, under new ids, where it masks tool outputs, compresses, or loads a saved one.
        """
        kept = dict.fromkeys(native for native in natives if native in self._messages)
        spoke = [native for native in self._synced if self._messages[native].parts]
        # Where nothing stays under its id, what left at an earlier time may have been brought back.
        earlier = self._messages if spoke and not any(native in kept for native in spoke) else self._listed
        gone = [self._messages[native] for native in earlier if native not in kept]
        told = {mark: message for message in gone for mark in message.marks if message.parts}
        for message in (self._messages[native] for native in kept):
            originals = [told.get(mark) for mark in message.marks[: len(message.parts)]]
            found = [original for original in originals if original is not None and original.pos < message.pos]
            if found and len(found) == len(originals):
                message.copies = [original.native for original in found]
                self._abandon(message.native, is_abandoned=False)
        self._listed, self._synced = kept, set(kept)

    def _abandon(self, native: str, *, is_abandoned: bool) -> None:
        """Mark a message and what it is a copy of, or take the mark back."""
        waiting = [native]
        while waiting:
            message = self._messages[waiting.pop()]
            message.is_abandoned = is_abandoned
            waiting += message.copies

    # --- tools ---

    def _tool_call(self, message: _Message, call: dict[str, Any]) -> None:
        name, given, call_id = text_of(call.get("name")), call.get("args"), text_of(call.get("id"))
        status = call.get("status")
        if gemini_speech.OWN_TOOL.match(name) or status not in ("success", "error"):
            return
        proof = gemini_speech.call_of(name, given if isinstance(given, dict) else {})
        failed, is_shell = status == "error", name == gemini_speech.SHELL
        if proof is None and not failed and not is_shell:
            return
        output = gemini_speech.output_of(call)
        if is_shell:
            ended = gemini_speech.shell_output(output)
            if ended is None:
                return
            output, failed = ended[0], failed or ended[1]
        call_id = call_id or f"{message.native}:{len(message.proofs)}"
        if proof is not None and (ok := tools.verdict(proof, failed=failed, output=output)) is not None:
            for kind in proof.kinds:
                key = speech.plain_id(call_id) + ("" if kind == proof.kinds[0] else f":{kind}")
                message.proofs.append(_Proof(key, kind, ok, jsonl.scrub(proof.label)))
        if failed and (text := tools.error_text(speech.cut_recall(output))):
            message.errors.append((call_id, text))

    # --- telling ---

    def _told(self) -> tuple[dict[str, Any], list[Event]]:
        if self._nothing_read and not self._resumed and not self._faults:
            if self._records.offset == self._records.bytes_read:
                self._faults.append(Unreadable(0, "empty"))
            return {}, []
        messages = sorted(self._messages.values(), key=lambda message: message.pos)
        cwd = self._locate(self._hash, [*self._directories, *self._folders])
        cwd = cwd or next(iter(self._directories), None)
        if self._old.get("own") or (cwd is not None and speech.is_own(cwd)):
            return {"own": True}, []
        session = self._session or speech.plain_id(self._path.name.partition(".json")[0])
        events = list(self._turns(session, messages))
        if not self._resumed and not any(isinstance(event, Upsert | Outcome) for event in events):
            return {}, []
        parent = self._parent
        told = [message for message in messages if message.parts or message.proofs or message.errors]
        times = [message.time for message in told if message.time is not None]
        about = About(
            session,
            cwd,
            parent=speech.plain_id(parent) if parent and parent != session else None,
            is_subagent=self._is_subagent,
            first_time=min(times, default=None),
            last_time=max(times, default=None),
        )
        state = {} if self._is_document else self._state(session, events)
        return state, [about, *self._titles(messages), *events]

    @property
    def _is_subagent(self) -> bool:
        return self._kind == "subagent" if self._kind else self._parent is not None

    @property
    def _parent(self) -> str | None:
        """The session whose subagent this is: its folder under `chats`."""
        folder = self._path.parent
        return folder.name if folder.name != "chats" and folder.parent.name == "chats" else None

    def _turns(self, session: str, messages: list[_Message]) -> Iterator[Event]:
        last = self._old.get("last", "")
        for message in messages:
            key = _key(session, message.native)
            if message.copies:
                # It passes for a turn until the records that show it to be a copy are read.
                yield Retract(key)
                continue
            if message.parts:
                yield Upsert(self._turn(message, key))
                last = key
            if not message.is_abandoned:
                for proof in message.proofs:
                    yield Outcome(proof.key, last, proof.kind, proof.ok, proof.label, message.time)
            for at, (call_id, text) in enumerate(message.errors):
                state = State.ABANDONED if message.is_abandoned else State.LIVE
                pos = message.pos + min(at + 1, _STEP - 1)
                key = _key(session, call_id) + ":error"
                yield Upsert(RawTurn(key, pos, Role.TOOL, "error", text, message.time, state))

    def _turn(self, message: _Message, key: str) -> RawTurn:
        role, kind = (Role.USER, message.kind) if message.is_user else (Role.ASSISTANT, "reply")
        if self._is_subagent:
            role, kind = Role.SUBAGENT, "task" if message.is_user else "answer"
        state = State.ABANDONED if message.is_abandoned else State.LIVE
        return RawTurn(key, message.pos, role, kind, "\n\n".join(message.parts), message.time, state)

    def _titles(self, messages: Iterable[_Message]) -> Iterator[Title]:
        if not self._old.get("titled"):
            spoken = [message for message in messages if message.is_user and message.parts and not message.copies]
            first = next((message for message in spoken if not message.is_abandoned), None) or next(iter(spoken), None)
            if first is not None:
                yield Title(speech.title_of(first.parts[0]), 0)
        if summary := speech.title_of(jsonl.scrub(self._summary)):
            yield Title(summary, _SUMMARY_RANK)

    def _state(self, session: str, events: list[Event]) -> dict[str, Any]:
        """What the next parse needs: ids, digests and places."""
        said = [event.turn for event in events if isinstance(event, Upsert) and event.turn.role is not Role.TOOL]
        places = {speech.digest(message.native): message.pos for message in self._messages.values()}
        return {
            "id": session,
            "hash": self._hash,
            "kind": self._kind,
            "places": self._old_places | places,
            "last": said[-1].key if said else self._old.get("last", ""),
            "shown": self._shown,
            "titled": bool(self._old.get("titled")) or any(turn.role is Role.USER for turn in said),
        }


def _key(session: str, native: str) -> str:
    """The agent's ids are unique over all sessions, but for short ones."""
    return speech.plain_id(native) if len(native) >= _UNIQUE_FROM else f"{session}/{speech.plain_id(native)}"


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

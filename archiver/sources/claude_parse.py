"""One run over a Claude Code transcript: a tree of records becomes turns, outcomes and titles."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from archiver.sources import claude_speech, jsonl, speech, tools
from archiver.sources.branches import Kind, Tree
from archiver.sources.claude_calls import Calls
from archiver.sources.claude_queue import Queue
from archiver.sources.claude_speech import text_of
from archiver.sources.claude_turns import Draft, Message
from archiver.sources.records import RecordParse
from archiver.transcript import (
    About,
    Event,
    Extend,
    Found,
    Progress,
    RawTurn,
    Reread,
    Retract,
    Title,
    Upsert,
)
from store.records import Role, State, parse_time

_TITLES = {"custom-title": ("customTitle", 3), "ai-title": ("aiTitle", 2), "agent-name": ("agentName", 2)}
_SUMMARY_RANK = 1

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.I)


class ClaudeParse(RecordParse):
    """One parse: everything new is read, then told, for only the last record shows which branch is live."""

    def __init__(self, found: Found, progress: Progress, *, final: bool) -> None:
        super().__init__(jsonl.Reader(found.path, progress, final=final), progress)
        self._path = found.path
        self._drafts: dict[str, Draft] = {}
        self._queue = Queue(self._old, self._drafts)
        self._calls = Calls(self._old)
        self._messages: dict[str, Message] = {
            mid: Message(held["key"], -held["age"], old=held["blocks"])
            for mid, held in self._old.get("messages", {}).items()
        }
        self._tree = Tree()
        self._exchange = 0
        self._open: set[str] = set()
        self._old_open: set[str] = set(self._old.get("open", ()))
        self._prompts: set[str] = set(self._old.get("prompts", ()))
        self._last_key: str = self._old.get("last", "")
        self._ids: Counter[str] = Counter()
        self._all_ids: set[str] = set()
        self._agent_ids: Counter[str] = Counter()
        self._forked_from: str | None = None
        self._sidechain_only = True
        self._cwd: str | None = None
        self._branch: str | None = None
        self._first: int | None = self._old.get("first")
        self._latest: int | None = self._old.get("latest")
        self._titles: list[tuple[str | None, Title]] = []
        self._first_prompt: str | None = None
        self._exited = False

    # --- reading ---

    def _take(self, record: jsonl.Record) -> None:
        value = record.value
        session = value.get("sessionId")
        if isinstance(session, str):
            self._all_ids.add(session)
        match value.get("type"):
            case "user" | "assistant" as role if isinstance(value.get("message"), dict):
                self._envelope(value)
                self._user(record) if role == "user" else self._assistant(record)
            case "attachment":
                self._attachment(record)
            case "queue-operation":
                self._queue.operate(record)
            case "summary":
                self._summary(value)
            case "custom-title" | "ai-title" | "agent-name" as kind:
                name, rank = _TITLES[kind]
                self._title(value.get(name), rank, session=session)
            case "fork-context-ref" if isinstance(value.get("parentSessionId"), str):
                self._forked_from = value["parentSessionId"]
            case _:
                self._bystander(value)

    def _envelope(self, value: dict[str, Any]) -> None:
        self._ids[text_of(value.get("sessionId"))] += 1
        self._agent_ids[text_of(value.get("agentId"))] += 1
        self._sidechain_only = self._sidechain_only and value.get("isSidechain") is True
        self._cwd = self._cwd or text_of(value.get("cwd")) or None
        branch = text_of(value.get("gitBranch"))
        self._branch = branch if branch not in ("", "HEAD") else self._branch
        fork = value.get("forkedFrom")
        if isinstance(fork, dict) and isinstance(fork.get("sessionId"), str):
            self._forked_from = fork["sessionId"]
        time = parse_time(value.get("timestamp"))
        if time is not None:
            self._first = time if self._first is None else min(self._first, time)
            self._latest = time if self._latest is None else max(self._latest, time)

    def _link(self, value: dict[str, Any], kind: Kind) -> bool:
        """Put a record into the tree. False if it hangs from a record of an earlier exchange, or from nothing known."""
        uuid, parent = text_of(value.get("uuid")), text_of(value.get("parentUuid")) or None
        anchored = parent is None or self._is_open(parent)
        if kind is Kind.PROMPT and self._resumed and not anchored:
            raise Reread
        above = parent or (text_of(value.get("logicalParentUuid")) or None)
        if kind is Kind.PROMPT:
            self._exchange += 1
            self._open, self._old_open = {uuid} - {""}, set()
            self._calls.forget_old()
        elif uuid and (parent is None or anchored or (not self._resumed and parent not in self._tree)):
            self._open.add(uuid)
        if uuid:
            self._tree.add(uuid, above, kind)
        return anchored

    def _is_open(self, uuid: str) -> bool:
        return uuid in self._open or (bool(self._old_open) and speech.digest(uuid) in self._old_open)

    def _bystander(self, value: dict[str, Any]) -> None:
        """A record that says nothing but may stand between two that do."""
        if isinstance(value.get("uuid"), str):
            local = value.get("subtype") == "local_command"
            self._link(value, Kind.HARNESS if local else Kind.STEP)
        retracted = value.get("retractedMessageUuids")
        for uuid in retracted if isinstance(retracted, list) else ():
            self._withdraw(uuid)

    def _withdraw(self, uuid: object) -> None:
        """Forget what the record `uuid` said: the agent says that it was superseded or retracted."""
        if not isinstance(uuid, str):
            return
        if self._resumed:
            raise Reread
        for draft in [draft for draft in self._drafts.values() if uuid in draft.uuids]:
            draft.withdraw(uuid)

    # --- people ---

    def _user(self, record: jsonl.Record) -> None:
        value = record.value
        uuid = text_of(value.get("uuid"))
        if uuid and (
            uuid in self._tree or speech.digest(uuid) in self._prompts or speech.digest(uuid) in self._old_open
        ):
            return
        content = value["message"].get("content")
        blocks = content if isinstance(content, list) else [content]
        results = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_result"]
        pieces = [] if claude_speech.is_injected(value) else claude_speech.pieces(blocks)
        for kind, text in pieces:
            self._exited = kind == "exit" or (self._exited and not text)
        pieces = [(kind, text) for kind, text in pieces if text]
        if results:
            self._tool_results(record, results, pieces)
            return
        sidechain = value.get("isSidechain") is True
        prompt = bool(pieces) and not sidechain
        compact = value.get("isCompactSummary") is True
        anchored = self._link(value, Kind.PROMPT if prompt else Kind.STEP if sidechain or compact else Kind.HARNESS)
        if not pieces:
            return
        self._require(anchored)
        kind = "task" if sidechain else "command" if all(kind == "command" for kind, _ in pieces) else "prompt"
        self._say(record, "\n\n".join(text for _, text in pieces), Role.SUBAGENT if sidechain else Role.USER, kind)

    def _require(self, anchored: bool) -> None:
        """A turn that hangs from an older exchange can only be placed by reading the file from its start."""
        if self._resumed and not anchored:
            raise Reread

    def _say(self, record: jsonl.Record, text: str, role: Role, kind: str) -> None:
        """A whole turn of one record."""
        uuid = text_of(record.value.get("uuid"))
        if uuid:
            key = speech.turn_key(uuid, text)
        else:
            key = speech.digest(
                text_of(record.value.get("sessionId")), role, text, text_of(record.value.get("timestamp"))
            )
        time = parse_time(record.value.get("timestamp"))
        if key in self._drafts:
            return
        self._drafts[key] = Draft(key, record.pos, role, kind, time, [text], [uuid])
        self._last_key = key
        if role is not Role.USER:
            return
        self._exited = False
        if uuid:
            self._prompts.add(speech.digest(uuid))
        self._queue.heard(text)
        if self._first_prompt is None and kind == "prompt":
            self._first_prompt = text

    def _attachment(self, record: jsonl.Record) -> None:
        value = record.value
        anchored = self._link(value, Kind.HARNESS) if isinstance(value.get("uuid"), str) else True
        attachment = value.get("attachment")
        if not isinstance(attachment, dict) or attachment.get("type") != "queued_command":
            return
        if (
            attachment.get("isMeta")
            or claude_speech.is_machine(attachment.get("origin"))
            or attachment.get("commandMode") == "task-notification"
        ):
            return
        if value.get("isSidechain") is True:
            return
        pieces = claude_speech.queued_pieces(attachment.get("prompt"))
        if pieces:
            self._require(anchored)
            text = "\n\n".join(text for _, text in pieces)
            key = speech.turn_key(text_of(value.get("uuid")) or speech.digest(text), text)
            kind = "command" if attachment.get("commandMode") == "bash" else pieces[0][0]
            self._queue.enqueue(record, text, kind, key, attached=True)

    # --- the assistant ---

    def _assistant(self, record: jsonl.Record) -> None:
        value, message = record.value, record.value["message"]
        anchored = self._link(value, Kind.STEP)
        superseded = value.get("supersedesUuids")
        for uuid in superseded if isinstance(superseded, list) else ():
            self._withdraw(uuid)
        content = message.get("content")
        blocks = content if isinstance(content, list) else [content]
        for block in blocks:
            if isinstance(block, dict) and block.get("type") == "tool_use" and isinstance(block.get("id"), str):
                self._calls.use(block)
        if message.get("model") == "<synthetic>" or value.get("isApiErrorMessage") is True:
            return
        mid = text_of(message.get("id")) or text_of(value.get("uuid"))
        for text in map(claude_speech.answer, claude_speech.texts(blocks)):
            if text and not speech.is_failure_notice(text):
                self._answer_block(record, mid, text, anchored=anchored and text_of(value.get("parentUuid")) != "")

    def _answer_block(self, record: jsonl.Record, mid: str, text: str, *, anchored: bool) -> None:
        uuid = text_of(record.value.get("uuid"))
        message = self._messages.get(speech.digest(mid)) if mid else None
        if message is None:
            self._require(anchored)
            self._first_block(record, mid, text)
            return
        draft = message.draft
        if message.held(text):
            return
        if draft is None:
            # Its place and time stand in the archive already; only the text goes on.
            draft = Draft(message.key, record.pos, Role.ASSISTANT, "reply", None, [], [], stored=True)
            message.draft = self._drafts[message.key] = draft
        if draft.take(text, uuid):
            message.exchange = self._exchange

    def _first_block(self, record: jsonl.Record, mid: str, text: str) -> None:
        sidechain = record.value.get("isSidechain") is True
        before = len(self._drafts)
        self._say(record, text, Role.SUBAGENT if sidechain else Role.ASSISTANT, "answer" if sidechain else "reply")
        if mid and len(self._drafts) > before:
            self._exited = False
            self._messages[speech.digest(mid)] = Message(self._last_key, self._exchange, self._drafts[self._last_key])

    # --- tools ---

    def _tool_results(self, record: jsonl.Record, results: list[dict[str, Any]], pieces: list[tuple[str, str]]) -> None:
        value = record.value
        anchored = self._link(value, Kind.STEP)
        time = parse_time(value.get("timestamp"))
        if time is not None:
            self._queue.result_at(time)
        if value.get("isSidechain") is True:
            return
        steering = [text for _, text in pieces]
        for result in results:
            output = claude_speech.result_text(result)
            rejected = claude_speech.REFUSED.match(output) or claude_speech.is_refusal_record(value)
            if rejected:
                said = claude_speech.USER_SAID.search(output)
                steering += [text for _, text in claude_speech.pieces([said[1]])] if said else []
            elif self._calls.finish(record, result, output, self._last_key):
                self._error(record, text_of(result.get("tool_use_id")), output, anchored=anchored)
        steering = list(dict.fromkeys(text for text in steering if text))
        if steering:
            self._require(anchored)
            self._say(record, "\n\n".join(steering), Role.USER, "steering")

    def _error(self, record: jsonl.Record, call_id: str, output: str, *, anchored: bool) -> None:
        text = tools.error_text(re.sub(r"</?tool_use_error>", "", claude_speech.stripped(output)))
        if not text:
            return
        self._require(anchored)
        uuid = text_of(record.value.get("uuid"))
        key = speech.turn_key(call_id or uuid, text) + ":error"
        time = parse_time(record.value.get("timestamp"))
        self._drafts.setdefault(key, Draft(key, record.pos, Role.TOOL, "error", time, [text], [uuid]))

    # --- titles ---

    def _summary(self, value: dict[str, Any]) -> None:
        leaf = value.get("leafUuid")
        if isinstance(leaf, str):
            self._title(value.get("summary"), _SUMMARY_RANK, leaf=leaf)

    def _title(self, title: object, rank: int, *, session: object = None, leaf: str | None = None) -> None:
        if not isinstance(title, str):
            return
        text = speech.title_of("\n\n".join(text for _, text in claude_speech.pieces([title])))
        if text and not speech.is_failure_notice(text):
            self._titles.append((session if isinstance(session, str) else None, Title(text, rank, leaf)))

    # --- telling ---

    def _told(self) -> tuple[dict[str, Any], list[Event]]:
        if self._is_own():
            return {"own": True}, []
        about = self._about()
        if about is None:
            return {}, self._loose_titles()
        self._queue.settle()
        drafts = sorted((draft for draft in self._drafts.values() if draft.blocks), key=lambda draft: draft.pos)
        if about.is_subagent:
            drafts = [draft for draft in drafts if draft.role is not Role.TOOL]
        if about.is_subagent and not self._resumed and _is_warm_up(drafts):
            return {"own": True}, []
        events: list[Event] = [Retract(key) for key in self._queue.retracted]
        events += [self._turn(draft, about) for draft in drafts]
        events += [outcome for uuid, outcome in self._calls.outcomes if not self._is_abandoned(uuid)]
        if not events and not self._resumed:
            return {}, self._loose_titles()
        return self._state(about), [about, *self._own_titles(about), *events]

    def _is_own(self) -> bool:
        """Whether wwt itself ran this session: its words are ours, not the user's."""
        if self._old.get("own"):
            return True
        return self._cwd is not None and not self._resumed and speech.is_own(self._cwd)

    def _about(self) -> About | None:
        if self._old.get("id"):
            return self._identity(self._old["id"], self._old.get("parent"), bool(self._old.get("sub")))
        stem = self._path.name.partition(".jsonl")[0]
        majority = next((name for name, _ in self._ids.most_common() if name), None)
        if not self._ids:
            return None
        parts = self._path.parts
        nested = "subagents" in parts[:-1]
        agent_id = next((name for name, _ in self._agent_ids.most_common() if name), "")
        if nested or (self._sidechain_only and (agent_id or stem.startswith("agent-"))):
            above = parts[parts.index("subagents") - 1] if nested and parts.index("subagents") else None
            of = self._forked_from or above or majority or stem
            return self._identity(f"{of}/{agent_id or stem.removeprefix('agent-')}", of, True)
        # In the client's own layout the file is named for its session, whatever ids were copied into it.
        named = _UUID.fullmatch(stem) or stem in self._all_ids or parts[-3:-2] == ("projects",)
        own = stem if named else majority or stem
        parent = self._forked_from or next((name for name, _ in self._ids.most_common() if name and name != own), None)
        return self._identity(own, parent if parent != own else None, False)

    def _identity(self, external_id: str, parent: str | None, is_subagent: bool) -> About:
        if is_subagent and self._resumed and not self._sidechain_only and "subagents" not in self._path.parts:
            raise Reread
        cwd = None if self._old.get("cwd") or not self._cwd else jsonl.scrub(self._cwd)
        branch = jsonl.scrub(self._branch) if self._branch else None
        exited = self._exited
        return About(
            speech.plain_id(external_id),
            cwd,
            branch,
            parent and speech.plain_id(parent),
            is_subagent,
            exited,
            self._first,
            self._latest,
        )

    def _turn(self, draft: Draft, about: About) -> Event:
        text = "\n\n".join(draft.blocks)
        if draft.stored:
            return Extend(draft.key, text)
        role, kind = draft.role, draft.kind
        if about.is_subagent and role is not Role.SUBAGENT:
            role, kind = Role.SUBAGENT, "answer" if role is Role.ASSISTANT else "task"
        state = State.ABANDONED if any(map(self._is_abandoned, draft.uuids)) else State.LIVE
        return Upsert(RawTurn(draft.key, draft.pos, role, kind, text, draft.time, state))

    def _is_abandoned(self, uuid: str) -> bool:
        return not self._resumed and uuid in self._tree and self._tree.is_abandoned(uuid)

    def _own_titles(self, about: About) -> list[Event]:
        titles: list[Event] = []
        if not about.is_subagent:
            ours = {about.external_id, next((name for name, _ in self._ids.most_common() if name), about.external_id)}
            if about.parent:
                ours.discard(about.parent)
            if self._first_prompt and not self._old.get("titled"):
                titles.append(Title(claude_speech.topic(self._first_prompt), 0))
            titles += [self._resolved(title) for session, title in self._titles if session is None or session in ours]
        return titles

    def _resolved(self, title: Title) -> Title:
        """A summary's leaf is a record; where it is one of this file, the title is this session's."""
        here = title.leaf is not None and (title.leaf in self._tree or self._is_open(title.leaf))
        return Title(title.text, title.rank) if here else title

    def _loose_titles(self) -> list[Event]:
        return [title for _, title in self._titles if title.leaf is not None]

    def _state(self, about: About) -> dict[str, Any]:
        """What the next parse needs: ids, digests, numbers and flags."""
        return {
            "open": sorted(self._old_open | {speech.digest(uuid) for uuid in self._open}),
            "messages": {
                mid: message.saved(self._exchange)
                for mid, message in self._messages.items()
                if self._exchange - message.exchange < 2
            },
            "prompts": sorted(self._prompts),
            "calls": self._calls.state(),
            "last": self._last_key,
            "first": self._first,
            "latest": self._latest,
            "titled": bool(self._old.get("titled")) or self._first_prompt is not None,
            "cwd": bool(self._old.get("cwd")) or self._cwd is not None,
            "id": about.external_id,
            "parent": about.parent,
            "sub": about.is_subagent,
        } | self._queue.state()


def _is_warm_up(drafts: list[Draft]) -> bool:
    """The client's own warm-up request, which nobody asked for."""
    return bool(drafts) and drafts[0].blocks == ["Warmup"]

"""Records of Codex CLI, small and invented, in each of the shapes it wrote over time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.archiver.sources.transcripts import Row, stamp, write

THREAD = "019a2b3c-4d5e-7f60-8a1b-2c3d4e5f6071"
OTHER = "019a2b3c-4d5e-7f60-8a1b-2c3d4e5f6072"
THIRD = "019a2b3c-4d5e-7f60-8a1b-2c3d4e5f6073"
AGENTS_MD = "# AGENTS.md instructions for /srv/shop\n\n<INSTRUCTIONS>\nAlways prefer pnpm.\n</INSTRUCTIONS>"
ENVIRONMENT = "<environment_context>\n  <cwd>/srv/shop</cwd>\n  <shell>zsh</shell>\n</environment_context>"


def record(kind: str, payload: Any, second: int = 0, **beside: Any) -> dict[str, Any]:
    return {"timestamp": stamp(second), "type": kind, "payload": payload} | beside


def meta(thread: str = THREAD, second: int = 0, *, ordinal: int | None = None, **more: Any) -> dict[str, Any]:
    payload = {"id": thread, "timestamp": stamp(second), "cwd": "/srv/shop", "cli_version": "0.149.1", "source": "cli"}
    return record("session_meta", payload | more, second, **({} if ordinal is None else {"ordinal": ordinal}))


def message(role: str, *texts: str, **more: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]} | more


def sent(role: str, text: str, second: int = 1, **beside: Any) -> dict[str, Any]:
    """A message as it went to the model, or came from it."""
    return record("response_item", message(role, text), second, **beside)


def event(kind: str, second: int = 1, **more: Any) -> dict[str, Any]:
    return record("event_msg", {"type": kind} | more, second)


def shown(text: str, second: int = 1) -> dict[str, Any]:
    return event("user_message", second, message=text, images=[], local_images=[], text_elements=[])


def completed(item: dict[str, Any], second: int = 1, turn: str = "t1") -> dict[str, Any]:
    return event("item_completed", second, thread_id=THREAD, turn_id=turn, item=item)


def spoke(role: str, text: str, second: int = 1, turn: str = "t1") -> dict[str, Any]:
    """A message as newer threads show it."""
    kind, part = ("UserMessage", "text") if role == "user" else ("AgentMessage", "Text")
    return completed({"type": kind, "id": f"i{second}", "content": [{"type": part, "text": text}]}, second, turn)


def call(name: str, arguments: Any, call_id: str = "call_0123456789abcdef", second: int = 1) -> dict[str, Any]:
    given = arguments if isinstance(arguments, str) else json.dumps(arguments)
    payload = {"type": "function_call", "name": name, "arguments": given, "call_id": call_id}
    return record("response_item", payload, second)


def output(value: Any, call_id: str = "call_0123456789abcdef", second: int = 2) -> dict[str, Any]:
    return record("response_item", {"type": "function_call_output", "call_id": call_id, "output": value}, second)


# --- one exchange in each shape ---


def sent_only(question: str, answer: str, second: int = 1) -> list[Row]:
    return [sent("user", question, second), sent("assistant", answer, second + 1)]


def legacy(question: str, answer: str, second: int = 1) -> list[Row]:
    return [
        sent("user", question, second),
        shown(question, second),
        event("agent_message", second + 1, message=answer, phase="final_answer"),
        sent("assistant", answer, second + 1),
    ]


def paginated(question: str, answer: str, second: int = 1, turn: str = "t1") -> list[Row]:
    return [
        event("task_started", second, turn_id=turn),
        sent("user", question, second),
        spoke("user", question, second, turn),
        sent("assistant", answer, second + 1),
        spoke("assistant", answer, second + 1, turn),
        event("task_complete", second + 1, turn_id=turn, last_agent_message=answer),
    ]


def bare(question: str, answer: str, second: int = 1) -> list[Row]:
    return [message("user", question), {"record_type": "state"}, message("assistant", answer)]


def bare_meta(thread: str = THREAD) -> dict[str, Any]:
    return {"id": thread, "timestamp": stamp(0), "instructions": "Always prefer pnpm.", "git": {"branch": "main"}}


def camel(question: str, answer: str, second: int = 1) -> list[Row]:
    return [
        completed({"type": "userMessage", "id": "u", "content": [{"type": "text", "text": question}]}, second),
        completed({"type": "agentMessage", "id": "a", "text": answer}, second + 1),
    ]


SHAPES = {"sent only": sent_only, "legacy": legacy, "paginated": paginated, "bare": bare, "camel case": camel}


# --- files ---


def name(thread: str = THREAD, rollout: str = "", when: str = "2026-03-04T05-06-00") -> str:
    return f"rollout-{when}-{thread}{'_' + rollout if rollout else ''}.jsonl"


def codex(*rows: Row, file: str = "", folder: str = "sessions/2026/03/04", **how: Any) -> Path:
    """A transcript in the agent's own folder."""
    return write(Path.home() / ".codex" / folder / (file or name()), *rows, **how)


def document(path: Path, *items: dict[str, Any], thread: str = THREAD) -> Path:
    """A transcript of the first versions, which wrote it anew each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    session = {"timestamp": stamp(0), "id": thread, "instructions": ""}
    path.write_text(json.dumps({"session": session, "items": items}, ensure_ascii=False, indent=2), encoding="utf-8")
    return path

"""Who says what in Codex's records: a person's words apart from what the client put before the model in their name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from archiver.sources import jsonl, speech, tools

_MACHINE = (
    "environment_context",
    "collaboration_mode",
    "subagent_notification",
    "turn_aborted",
    "codex_internal_context",
    "goal_context",
    "recommended_plugins",
    "hook_prompt",
    "hook_context",
    "app-context",
    "multi_agent_mode",
    "extension_context",
    "agent_message_board_notification",
    "next_prompt_suggestion",
)
"""Elements that the client fills: the first closing tag is theirs."""
_QUOTING = ("user_instructions", "INSTRUCTIONS", "user_action")
"""Elements that hold a person's files or other text, in which a closing tag may be mentioned: the last one is theirs."""

_OPENED = re.compile(
    rf"<(?P<name>{'|'.join(map(re.escape, _MACHINE + _QUOTING))}|skill\w*|external_\w+)(?:\s[^>]*)?>", re.I
)
_PROJECT_FILE = re.compile(r"#\s*AGENTS\.md instructions\b[^\n]*\n\s*(?=<INSTRUCTIONS>)")
_SHELL = re.compile(r"<user_shell_command>\s*<command>\n?(.*?)\n?</command>", re.S)
_EDITOR = re.compile(r"#\s*(?:Context from my IDE setup|Files mentioned by the user)\b", re.I)
_REQUEST = re.compile(r"(?m)^## My request(?: for Codex)?:[ \t]*$\n?|^## My request(?: for Codex)?:[ \t]*")
_IMAGE = re.compile(r"<image name=[^>\n]*>(?:\s*</image>)?|\A\s*</?image>\s*\Z")
_PREAMBLE = re.compile(
    r"(?:Warning: (?:The maximum number of unified exec processes|apply_patch was requested via|Your account was flagged)"
    r"|Another language model started to solve this problem and produced a summary"
    r"|You were originally given instructions from a user over one or more turns"
    r"|You are performing a CONTEXT CHECKPOINT COMPACTION)"
)
_CITATION = ("oai-mem-citation",)
_PLAN = re.compile(r"(?ms)^[ \t]*<proposed_plan>[ \t]*\n(.*?)(?:^[ \t]*</proposed_plan>[ \t]*$\n?|\Z)")
_TYPED = "user.text"
_TASK = re.compile(r"\AMessage Type:.*?^Payload:[ \t]*\n?", re.S | re.M)
_LAYERS = 50
_SPEECH = ("text", "input_text", "output_text")

ABORTED = re.compile(r"\s*<turn_aborted>", re.I)


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def plain_type(value: object) -> str:
    """A type's name without case and joints: some writers say `userMessage`, others `UserMessage` or `user_message`."""
    return text_of(value).replace("_", "").replace("-", "").lower()


def field(value: dict[str, Any], name: str) -> Any:
    """A field by its name, or by the same name in camel case."""
    if name in value:
        return value[name]
    first, *rest = name.split("_")
    return value.get(first + "".join(part.title() for part in rest))


def texts(content: object) -> Iterator[str]:
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield jsonl.scrub(part)
        elif isinstance(part, dict) and text_of(part.get("type") or "text").lower() in _SPEECH:
            yield jsonl.scrub(text_of(part.get("text")))


def is_mute(content: object) -> bool:
    """Whether there is something in a message that is neither text nor image: a shape that is not known here."""
    parts = content if isinstance(content, list) else [content]
    known = [part for part in parts if isinstance(part, str) or _is_known(part)]
    return content is not None and len(known) < len(parts) and not any(texts(content))


def _is_known(part: object) -> bool:
    kind = text_of(part.get("type")).lower() if isinstance(part, dict) else ""
    return kind in _SPEECH or "image" in kind or "audio" in kind or kind == "encrypted_content"


def typed(item: dict[str, Any]) -> object:
    """The content of a message without the parts that newer records themselves call the client's. Commands stay: they are told apart later."""
    content, passed = item.get("content"), item.get("internal_chat_message_metadata_passthrough")
    kinds = passed.get("content_item_kinds") if isinstance(passed, dict) else None
    if not isinstance(content, list) or not isinstance(kinds, list) or len(kinds) != len(content):
        return content
    # A kind is named `<who>.<what>`; one without a dot says nothing.
    named = [(part, text_of(kind)) for part, kind in zip(content, kinds, strict=True)]
    return [part for part, kind in named if "." not in kind or kind == _TYPED or any(map(_SHELL.match, texts(part)))]


def asked(content: object) -> tuple[str, str]:
    """(prompt or command, text) of what the person wrote in these parts; the text is empty where all is the client's."""
    pieces = [_piece(text) for text in texts(content)]
    told = [(kind, text) for kind, text in pieces if text]
    kind = "command" if told and all(kind == "command" for kind, _ in told) else "prompt"
    return kind, "\n\n".join(text for _, text in told)


def _piece(text: str) -> tuple[str, str]:
    text = _peeled(speech.cut_recall(text).replace("\r\n", "\n"))
    if typed := _SHELL.match(text):
        return "command", tools.plain(typed[1]).strip()
    if _PREAMBLE.match(text) or speech.is_observer_prompt(text):
        return "prompt", ""
    return "prompt", _IMAGE.sub("", _requested(text)).strip()


def _peeled(text: str) -> str:
    """Text without the elements that the client put in front of it."""
    for _ in range(_LAYERS):
        text = text.lstrip()
        heading = _PROJECT_FILE.match(text)
        opened = _OPENED.match(text, heading.end() if heading else 0)
        if opened is None:
            return text
        rest = _behind(text, opened)
        if rest is None:
            return text
        text = rest
    return text


def _behind(text: str, opened: re.Match[str]) -> str | None:
    """What follows the element. One that never closes reaches to the end, where its name can't be the person's own."""
    name = opened["name"].lower()
    closing = re.compile(rf"</{re.escape(name)}>", re.I)
    end = 0
    for closed in closing.finditer(text, opened.end()):
        end = closed.end()
        if name in _MACHINE:
            break
    if end:
        return text[end:]
    return "" if name in _MACHINE or name in map(str.lower, _QUOTING) else None


def _requested(text: str) -> str:
    """What an editor's prompt asks for, without what the editor says of open files."""
    request = _REQUEST.search(text)
    if request and text.startswith("#"):
        return text[request.end() :]
    return "" if _EDITOR.match(text) else text


def answered(content: object) -> tuple[str, str]:
    """What the model answered, and what of it is shown as its message: a plan it proposes is shown apart."""
    kept = [speech.cut_tags(speech.cut_recall(text), _CITATION) for text in texts(content)]
    text, shown = (_joined(_PLAN.sub(plan, part) for part in kept) for plan in (r"\1", ""))
    return ("", "") if speech.is_failure_notice(text) else (text, shown or text)


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in map(str.strip, parts) if part)


def task(content: object) -> str:
    """What another agent asks, without the letterhead."""
    return _TASK.sub("", "\n\n".join(texts(content))).strip()


def sameness(role: str, text: str) -> str:
    """The same for a text in both of its records, which may differ in white space, also where parts were joined without any."""
    return speech.digest(role, "".join(text.split()))

"""What a person wrote to OpenClaw, cut free from what its gateway and its channels write around it."""

from __future__ import annotations

import re
from typing import Any

from archiver.sources import speech

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_ENVELOPE = re.compile(rf"\A\s*\[(?:{_DAY}\s+|[^\W\d_][^\[\]\n]{{0,200}}?\s)\d{{4}}-\d\d-\d\d[^\[\]\n]{{0,60}}\][ \t]*")
_MESSAGE_ID = re.compile(r"(?m)^[ \t]*\[message_id: [^\]\n]*\][ \t]*$\n?|[ \t]*\[message_id: [^\]\n]*\][ \t]*\Z")
_MEDIA = re.compile(r"(?m)^[ \t]*\[media attached[^\]\n]*\][ \t]*$\n?")
_SYSTEM_LINE = re.compile(r"(?m)^System: \[\d{4}-\d\d-\d\d[^\]\n]*\].*$\n?")
_MARK = "\u27e6openclaw:ctx\u27e7"
_METADATA = re.compile(
    r"(?m)^(?:[A-Z][\w ,'-]{2,60} \(untrusted[^)\n]*\):|.*\S " + _MARK + r")[ \t]*\n```json\n(?s:.*?)\n```[ \t]*\n*"
    r"|^(?:[A-Z][\w ,'-]{2,60} \(untrusted, chronological[^)\n]*\):|.*\S " + _MARK + r")[ \t]*\n(?:\S.*(?:\n|\Z))*\n*"
)
"""What is known of a conversation and its people: JSON, or lines up to an empty one."""
_CHANNEL = re.compile(
    r"(?m)^(?:Context: "
    + _MARK
    + r"[ \t]*$|Untrusted context \(metadata[^)\n]*\):\s*(?:<<<EXTERNAL_UNTRUSTED|UNTRUSTED |Source:))(?s:.*)\Z"
)
_HISTORY = re.compile(
    r"(?m)\A\s*\[(?:Chat messages since your last reply|Merged earlier messages)\b[^\]\n]*\](?s:.*)^\[(?i:current message)\b[^\]\n]*\][ \t]*\n?"
)
_MEMORY = re.compile(r"(?m)^(?:Untrusted context \([^)\n]*\):|Context:)[ \t]*\n\s*(?=<active_memory_plugin>)")
_HINT = re.compile(
    r"(?m)^(?:Delivery: (?:to send a message, use the|Final assistant text is not|No visible reply is)|requester_profile is the verified"
    r"|To send an image back, prefer the message tool)\b.*$\n?"
)
_CONTEXT = re.compile(r"(?s)<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>.*?(?:<<<END_OPENCLAW_INTERNAL_CONTEXT>>>|\Z)")
_RUNTIME = re.compile(r"(?m)^OpenClaw runtime context\b.*\n(?:This context is runtime-generated\b.*(?:\n|\Z))?\n*")
_DIRECTIVE = re.compile(r"\[\[\s*(?:reply_to_current|reply_to:[^\]\n]*|audio_as_voice)\s*\]\][ \t]*")
_MACHINE = re.compile(
    r"\A\s*(?:Read HEARTBEAT\.md\b|\[cron:|A new session was started via /new or /reset\b|Pre-compaction memory flush\b"
    r"|\[Inter-session message\]|\[Internal task completion event\]|OpenClaw runtime event\.)"
)
_HEARTBEAT = re.compile(r"\A\s*Read HEARTBEAT\.md\b|\breply (?:with )?HEARTBEAT_OK\b", re.I)
_SILENT = re.compile(r"[\s*_`.]*(?:NO_REPLY|HEARTBEAT_OK)[\s*_`.]*")
_SILENT_EDGE = re.compile(r"\A(?:NO_REPLY|HEARTBEAT_OK)\b\s*|\s*\b(?:NO_REPLY|HEARTBEAT_OK)\s*\Z")
_BARE_SLASH = re.compile(r"/[\w:-]+")
_TASK = re.compile(r"(?s)\A\s*(?:\[Subagent Context\].*?(?:\[Subagent Task\]:?|\Z)|\[Subagent Task\]:?)\s*")
_SYNTHETIC_MODELS = ("delivery-mirror", "gateway-injected")
_MACHINES = ("inter_session", "internal_system")
CUT = ("system-reminder", "relevant-memories", "active_memory_plugin")


def spoken(text: str) -> str:
    """What the person wrote, without the gateway's and the channel's envelopes; empty for machine prompts."""
    text = speech.cut_tags(_MEMORY.sub("", speech.cut_recall(text)), CUT)
    if speech.is_observer_prompt(text):
        return ""
    text = _CHANNEL.sub("", _RUNTIME.sub("", _CONTEXT.sub("", text) + "\n"))
    text = _enveloped(_HINT.sub("", _HISTORY.sub("", _enveloped(text))))
    text = _MEDIA.sub("", _MESSAGE_ID.sub("", text)).strip()
    is_machine = _MACHINE.match(text) or _TASK.match(text) or _HEARTBEAT.search(text)
    return "" if is_machine or _SILENT.fullmatch(text) or _BARE_SLASH.fullmatch(text) else text


def task(text: str) -> str | None:
    """The task that another session gave to this one, if this prompt, the first of a subagent, says so."""
    text = _enveloped(text)
    given = _TASK.match(text)
    return text[given.end() :].strip() if given else None


def _enveloped(text: str) -> str:
    text = _SYSTEM_LINE.sub("", _METADATA.sub("", text))
    for _ in range(3):
        text = _ENVELOPE.sub("", text, count=1)
    return text


def answered(text: str) -> str:
    """What the agent said to the person; empty where it said that it has nothing to say."""
    text = _DIRECTIVE.sub("", _MEDIA.sub("", speech.cut_tags(speech.cut_recall(text), CUT))).strip()
    return "" if _SILENT.fullmatch(text) else _SILENT_EDGE.sub("", text).strip()


def is_copy(message: dict[str, Any]) -> bool:
    """An answer as the gateway delivered it: the model's own stands beside it."""
    return message.get("provider") == "openclaw" and message.get("model") in _SYNTHETIC_MODELS


def is_from_machine(message: dict[str, Any]) -> bool:
    """Whether the gateway itself noted that no person wrote this prompt."""
    source = message.get("provenance")
    return isinstance(source, dict) and source.get("kind") in _MACHINES

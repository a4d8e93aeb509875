"""Who says what in Gemini CLI's messages: a person's words apart from what the program wrote in their name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from archiver.sources import jsonl, speech, tools

_CUT = ("session_context", "hook_context", "system_note")
_REFERENCES = re.compile(r"(?m)^--- Content from referenced files ---[ \t]*$")
_REFERENCES_END = "--- End of content ---"
_EDITOR = re.compile(
    r"Here is (?:the user's editor context as a JSON object|a summary of changes in the user's editor context)\b[^\n]*\n"
    r"```json\n"
)
_EDITOR_END = "\n```"
_MACHINE = re.compile(
    r"\A\s*(?:<state_snapshot\b|<scratchpad>.*<state_snapshot\b|(?:System: )?Please continue\.\s*\Z|System: Potential loop detected\.|Background execution update:\s"
    r"|This is the Gemini CLI\. We are setting up the context for our chat)",
    re.S,
)
_STEERED = re.compile(r"\A\s*User (?:steering update|hints):\s*<user_input>\n(.*?)\n</user_input>", re.S)
_COMMAND = re.compile(r"\A(?:/(?![/*])|\?)")
_CLOSER = re.compile(
    r"\s*(?:Got it\. Thanks for the (?:additional )?context!|Binary content received\. Proceeding with analysis\."
    r"|\[The previous response was interrupted before it completed\.\])\s*"
)
_FOLDER = re.compile(
    r"Workspace Directories:\*\*\n\s*- ([^\n]+)|I'm currently working in the directory: ([^\n]+)|working in the following director\w+:\n\s*- ([^\n]+)"
)
_INVISIBLE = re.compile("[\u200b-\u200f\ufeff]")
_COMMENT, _COMMENT_END = re.compile("<!--"), "-->"


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def texts(content: object) -> Iterator[str]:
    """The text parts of a message: a string, a part, or a list of both. Thoughts, calls and results are none."""
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield jsonl.scrub(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str) and part.get("thought") is not True:
            yield jsonl.scrub(part["text"])


def prompt(value: dict[str, Any]) -> tuple[str, list[str]]:
    """What a person said in a user message, part by part, as (prompt or steering, parts)."""
    content = [part for part in texts(_content(value)) if part.strip()]
    if content and all(map(_MACHINE.match, content)):
        return "prompt", []
    # What was typed, where the program keeps it apart from what it made of it.
    shown = list(texts(value.get("displayContent")))
    parts = shown if any(part.strip() for part in shown) else content
    kept: list[str] = []
    steered = False
    for part in _without_references(parts):
        if match := _STEERED.match(part):
            steered = True
            part = match[1].replace("\\n", "\n").replace("\\]", "]").replace("<\\/", "</")
        if text := _typed(part):
            kept.append(text)
    if kept and _COMMAND.match(kept[0]):
        return "prompt", []
    return "steering" if steered else "prompt", kept


def sent(value: dict[str, Any]) -> list[str]:
    """What the program made of a prompt and sent to the model, part by part."""
    return [_typed(part) for part in _without_references(list(texts(_content(value))))]


def _typed(text: str) -> str:
    text = speech.cut_recall(text)
    if _MACHINE.match(text) or speech.is_observer_prompt(text):
        return ""
    return _cut(speech.cut_tags(text, _CUT), _EDITOR, _EDITOR_END).strip()


def _cut(text: str, opening: re.Pattern[str], closing: str) -> str:
    """Text without what stands between these, and without them. One expression for both would be slow where many never close."""
    kept: list[str] = []
    at = 0
    while (opened := opening.search(text, at)) and (end := text.find(closing, opened.end())) >= 0:
        kept.append(text[at : opened.start()])
        at = end + len(closing)
    return "".join(kept) + text[at:]


def _without_references(parts: list[str]) -> list[str]:
    """The parts without the contents of files that an `@` pulled in: from the heading to its last end, or to the end of all."""
    begin = next((at for at, part in enumerate(parts) if _REFERENCES.search(part)), None)
    if begin is None:
        return parts
    head = _REFERENCES.split(parts[begin], maxsplit=1)[0]
    ends = [at for at, part in enumerate(parts) if at >= begin and _REFERENCES_END in part]
    rest = [parts[ends[-1]].rpartition(_REFERENCES_END)[2], *parts[ends[-1] + 1 :]] if ends else []
    return [*parts[:begin], head, *rest]


def answer(value: dict[str, Any]) -> list[str]:
    """What the model said, part by part."""
    parts = [speech.cut_recall(part).strip() for part in texts(_content(value))]
    return [part for part in parts if part and not _CLOSER.fullmatch(part) and not speech.is_failure_notice(part)]


def _content(value: dict[str, Any]) -> object:
    return value["content"] if "content" in value else value.get("parts")


def shown_with(value: dict[str, Any]) -> tuple[str, bool]:
    """Fingerprint of the prompt that is shown with a message ("" if none), and whether the message holds its words.

    Where the program goes on by itself (after a loop, at a hook's word), it shows the prompt before once more.
    """
    shown = _bare("".join(texts(value.get("displayContent"))))
    return speech.digest(shown) if shown else "", shown in _bare("".join(texts(_content(value))))


def fingerprint(text: str) -> str:
    """The same for a part and for its copy, which keeps the white space and comments that the program strips from the first."""
    return speech.digest(_bare(text))


def _bare(text: str) -> str:
    return "".join(_INVISIBLE.sub("", _cut(text, _COMMENT, _COMMENT_END)).split())


def folders(value: dict[str, Any]) -> Iterator[str]:
    """Folders that the program names in the context it sets up, where the session ran."""
    for text in texts(_content(value)):
        for match in _FOLDER.finditer(text):
            yield next(folder for folder in match.groups() if folder).strip()


# --- tools ---

EDITORS = ("replace", "write_file", "edit", "smart_edit")
SHELL = "run_shell_command"
OWN_TOOL = re.compile(r"(?:mcp_+)?wwt(?:_|\.|\Z)")

_UNFINISHED = re.compile(r"\A\s*Command (?:was cancelled by user|moved to background|is running in background)")
_TIMED_OUT = re.compile(r"\A\s*Command was automatically cancelled")
_LEADING = re.compile(r"\A(?:Command: .*?\nDirectory: [^\n]*\n)?(?:Output|Stdout): ", re.S)
_TRAILING = re.compile(
    r"(?:\n(?:Error: \(none\)|Stderr: \(empty\)|Exit Code: [^\n]*|Signal: [^\n]*|Background PIDs: [^\n]*|Process Group PGID: [^\n]*))+\s*\Z"
)
_EXIT = re.compile(r"Exit Code: (\d+)")
_TAIL = 2000


def output_of(call: dict[str, Any]) -> str:
    """What a tool call gave back."""
    result = call.get("result")
    found = [text for part in (result if isinstance(result, list) else [result]) for text in _outputs(part)]
    return jsonl.scrub("\n".join(found) or text_of(call.get("resultDisplay")))


def _outputs(part: object) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    if not isinstance(part, dict):
        return
    response = part.get("functionResponse")
    response = response.get("response") if isinstance(response, dict) else None
    for value in response.values() if isinstance(response, dict) else [part.get("text")]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield text_of(value.get("message"))
        elif isinstance(value, list):
            yield from texts(value)


def shell_output(output: str) -> tuple[str, bool] | None:
    """What a shell command printed, and whether it failed; None if it was not seen to end."""
    if _UNFINISHED.match(output):
        return None
    trailer = _TRAILING.search(output, max(0, len(output) - _TAIL))
    status = _EXIT.search(trailer[0]) if trailer else None
    printed = _LEADING.sub("", output[: trailer.start()] if trailer else output, count=1)
    printed = "" if printed.strip() == "(empty)" else printed
    return printed, _TIMED_OUT.match(output) is not None or (status is not None and status[1] != "0")


def call_of(name: str, given: dict[str, Any]) -> tools.Call | None:
    """The call as one that proves an outcome."""
    if name == SHELL:
        return tools.command(text_of(given.get("command"))) if given.get("is_background") is not True else None
    if name in EDITORS:
        paths = [text_of(given.get(key)) for key in ("file_path", "path", "absolute_path")]
        return tools.edited(paths)
    return None

"""What Codex's tool records say of a call: the command or the files, and how it ended. Its outputs come in many shapes."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any

import orjson

from archiver.sources import jsonl, tools
from archiver.sources.codex_speech import field, plain_type, text_of, texts

_SHELLS = re.compile(r"(?:.*[\\/])?(?:bash|sh|zsh|dash|fish|ksh|pwsh|powershell|cmd)(?:\.exe)?", re.I)
_SCRIPT = re.compile(r"-\w*c|-Command|/c", re.I)
_PATCH = "*** Begin Patch"
_PATCHED = re.compile(r"(?m)^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$")
_HEADER = re.compile(
    r"\A(?:(?:Exit code|Chunk ID|Wall time|Total output lines|Original token count|Process exited with code"
    r"|Process running with session ID|Warning|Duration)\b[^\n]*(?:\n|\Z))+(?:Output:(?:\n|\Z))?"
)
_CODE = re.compile(r"(?m)^(?:Exit code:|Process exited with code:?) (-?\d{1,10})\b")
_RUNNING = re.compile(r"(?m)^Process running with session ID:? (\S+)")
_OWN = re.compile(r"(?:mcp_+)?wwt(?:_|\.|/|\Z)")
_NO_FAULT = re.compile(
    r"\A\s*(?:aborted\b|[^\n]{0,200}\brejected by (?:the )?user\b|user (?:rejected|declined|cancelled)\b)", re.I
)
_PATCH_DONE = re.compile(r"\A\s*Success\b")
_PATCH_FAILED = re.compile(
    r"\A\s*(?:apply_patch verification failed|failed\b|error\b|invalid patch|patch failed)", re.I
)


@dataclass(frozen=True, slots=True)
class Result:
    """How a call ended. `ok` is None where the record doesn't say; `running` names a process that goes on."""

    text: str
    ok: bool | None = None
    running: str = ""


# --- calls ---


def is_own(*names: object) -> bool:
    """Whether the tool is wwt's own: what it answers was archived before."""
    return any(_OWN.match(name) for name in names if isinstance(name, str))


def given(arguments: object) -> dict[str, Any]:
    """The arguments of a call, which most writers give as JSON in a text."""
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            return {"input": arguments}
    return arguments if isinstance(arguments, dict) else {}


def called(name: str, arguments: dict[str, Any]) -> tools.Call | None:
    """What the call may prove: files of a patch, or a command that tests, builds or commits."""
    for argument in ("input", "patch"):
        if _PATCH in text_of(arguments.get(argument)) or name == "apply_patch":
            return patched(text_of(arguments.get("input")) or text_of(arguments.get("patch")))
    return ran(arguments.get("command", arguments.get("cmd")))


def ran(command: object) -> tools.Call | None:
    line = script(command)
    return patched(line) if _PATCH in line else tools.command(line) if line else None


def script(command: object) -> str:
    """The command line that a person would type: `["bash", "-lc", "make"]` is `make`."""
    if isinstance(command, str):
        return command
    words = [word for word in command if isinstance(word, str)] if isinstance(command, list) else []
    if len(words) >= 3 and _SHELLS.fullmatch(words[0]) and _SCRIPT.fullmatch(words[-2]):
        return words[-1]
    return words[-1] if words and _PATCH in words[-1] else shlex.join(words)


def patched(patch: str) -> tools.Call | None:
    return tools.edited(_PATCHED.findall(patch))


def changed(changes: object) -> tools.Call | None:
    """The files of a change record: a mapping by path, or a list of objects with one."""
    if isinstance(changes, dict):
        return tools.edited(list(changes))
    items = changes if isinstance(changes, list) else []
    return tools.edited([text_of(item.get("path")) for item in items if isinstance(item, dict)])


# --- results ---


def output(value: object) -> Result:
    """A call's output as the model saw it: a text with or without a header, JSON in a text, an object, or a list of parts."""
    if isinstance(value, str):
        return _in_text(value)
    if isinstance(value, list):
        return _in_text("\n".join(texts(value)))
    return _in_object(value) if isinstance(value, dict) else Result("")


def _in_text(text: str) -> Result:
    if text.lstrip().startswith("{"):
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            value = None
        if isinstance(value, dict) and ("output" in value or "metadata" in value):
            return _in_object(value)
    text = jsonl.scrub(text)
    header = _HEADER.match(text)
    if header is None:
        return Result(text)
    body, code, running = text[header.end() :], _CODE.search(header[0]), _RUNNING.search(header[0])
    if code is None:
        return Result(body if running else text, running=running[1] if running else "")
    return Result(body, _succeeded(int(code[1])))


def _succeeded(code: object) -> bool | None:
    """What an exit code proves. -1 stands for none: the process was stopped when its turn or thread ended."""
    return code == 0 if isinstance(code, int) and not isinstance(code, bool) and code != -1 else None


def _in_object(value: dict[str, Any]) -> Result:
    inner = next((value[name] for name in ("output", "content", "text") if name in value), "")
    result = _in_text(inner) if isinstance(inner, str) else Result("\n".join(texts(inner)))
    metadata = value.get("metadata")
    code = field(metadata, "exit_code") if isinstance(metadata, dict) else field(value, "exit_code")
    told = value.get("success")
    ok = next((ok for ok in (_succeeded(code), told) if isinstance(ok, bool)), result.ok)
    return Result(result.text, ok, result.running)


def executed(item: dict[str, Any]) -> Result:
    """The end of a command, as the client recorded it for itself."""
    told = (field(item, name) for name in ("aggregated_output", "formatted_output", "stderr", "stdout"))
    text = jsonl.scrub(next((text for text in told if isinstance(text, str) and text), ""))
    declined = plain_type(item.get("status")) == "declined"
    return Result(text, None if declined else _succeeded(field(item, "exit_code")))


def applied(item: dict[str, Any]) -> Result:
    """The end of a patch: a flag in older records, a status in newer ones."""
    text = jsonl.scrub(text_of(item.get("stderr")) or text_of(item.get("stdout")))
    success = item.get("success")
    if isinstance(success, bool):
        return Result(text, success)
    return Result(text, {"completed": True, "failed": False}.get(plain_type(item.get("status"))))


def answered(item: dict[str, Any]) -> Result:
    """The end of a call to an MCP server."""
    result = item.get("result")
    result = result if isinstance(result, dict) else {}
    inner = result.get("Ok", result)
    inner = inner if isinstance(inner, dict) else {}
    error = result.get("Err", item.get("error"))
    text = "\n".join(texts(inner.get("content")))
    if error:
        return Result(jsonl.scrub(text_of(error.get("message") if isinstance(error, dict) else error)), ok=False)
    failed = field(inner, "is_error") is True or plain_type(item.get("status")) == "failed"
    return Result(text, ok=not failed)


def judged(call: tools.Call, result: Result) -> bool | None:
    """Whether the call succeeded; None if the record does not prove it."""
    ok = None if _NO_FAULT.match(result.text) else result.ok
    if ok is None and call.kinds == ("files",):
        ok = True if _PATCH_DONE.match(result.text) else False if _PATCH_FAILED.match(result.text) else None
    return None if ok is None else tools.verdict(call, failed=not ok, output=result.text)


def error(call: tools.Call | None, result: Result) -> str:
    """The lines of a failed call's error; empty if it didn't fail, or was only refused or stopped by the person."""
    failed = result.ok is False or (call is not None and result.ok is None and judged(call, result) is False)
    return "" if not failed or _NO_FAULT.match(result.text) else tools.error_text(result.text)

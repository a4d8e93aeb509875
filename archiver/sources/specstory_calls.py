"""Tool calls as SpecStory writes them down: what was called, and what it came to."""

from __future__ import annotations

import re
from dataclasses import replace

from archiver.sources import claude_speech, tools
from archiver.sources.markdown import FENCE, Ran

_NAMED = re.compile(r"(?:<summary>)?Tool use: \*\*(?P<name>[^*]+)\*\*(?P<about>.*?)(?:</summary>)?\s*")
_SHELLS = ("Bash", "run_terminal_cmd", "exec_command", "shell", "shell_command", "run_shell_command")
_EDITORS = (
    "Edit",
    "MultiEdit",
    "Write",
    "NotebookEdit",
    "edit_file",
    "search_replace",
    "write",
    "write_file",
    "replace",
)
_KIND = re.compile(r'data-tool-type="(\w+)"')
_SCRIPTS = ("bash", "sh", "zsh", "shell", "powershell")
_TYPED = re.compile(r"\A(?:(?!`)[^\n]*\n)*+`(.+?)`[ \t]*$", re.M | re.S)
_EXIT = re.compile(r"^(?:Exit code:?|(?:Process )?exited with code) (-?\d+)\b", re.M | re.I)
_OUTPUT = re.compile(r"\A(?:.*\n){0,8}?Output:(?:\n|\Z)")
_WRITTEN = re.compile(
    r"^(?:The file (?P<edited>\S.*?) has been (?:updated|edited)\b|File created successfully at: (?P<created>.+)"
    r"|Applied \d+ edits? to (?P<many>.+?):?$)",
    re.M,
)
_NAME_LINES, _STATUS_LINES = 4, 8


def read(pos: int, block: list[str]) -> Ran | None:
    """The call that these lines show; None for other blocks, and where nothing is told of a result."""
    names = [(at, found) for at, line in enumerate(block[:_NAME_LINES]) if (found := _NAMED.fullmatch(line.strip()))]
    if not names:
        return None
    at, named = names[0]
    prose, script, output = _parts(block[at + 1 :])
    if output is None or claude_speech.REFUSED.match(output) or "[Request interrupted by user" in output:
        return None
    name, kind = named["name"].strip(), _KIND.search(block[0])
    failed = _failed(name, prose, output)
    call = None
    if name in _SHELLS or (kind and kind[1] == "shell"):
        typed = _TYPED.match(named["about"].strip()) or _TYPED.match(prose)
        call = tools.command(script or (typed[1] if typed else ""))
        call = replace(call, status_hidden=True) if call and failed is None else call
    elif not failed and (name in _EDITORS or (kind and kind[1] == "write")):
        # That a file was written is only told of those that were.
        call = tools.edited([_written(output)])
    return Ran(pos, call, failed is True, _OUTPUT.sub("", output))


def _parts(lines: list[str]) -> tuple[str, str, str | None]:
    """What stands around the fences, a script in one of its own, and the output.

    Output is not escaped: it reaches to the last fence of the block, whatever fences are in it.
    """
    prose: list[str] = []
    script: list[str] = []
    inside: list[str] | None = None
    for at, line in enumerate(lines):
        mark = FENCE.match(line)
        if inside is not None:
            inside = None if mark else inside
            script += [] if mark else [line]
        elif mark and mark[2].strip() in _SCRIPTS:
            inside = script
        elif mark:
            ends = [end for end in range(at + 1, len(lines)) if lines[end].strip() == mark[1]]
            return "\n".join(prose), "\n".join(script), "\n".join(lines[at + 1 : ends[-1] if ends else len(lines)])
        else:
            prose.append(line)
    return "\n".join(prose), "\n".join(script), None


def _failed(name: str, prose: str, output: str) -> bool | None:
    """None where neither the export nor the output tells."""
    told = {line.strip() for line in prose.split("\n")}
    if "Error:" in told:
        return True
    if code := _EXIT.search("\n".join(output.split("\n")[:_STATUS_LINES])):
        return code[1] != "0"
    # Claude Code names the status of a command only when it failed.
    return False if name == "Bash" or "Result:" in told else None


def _written(output: str) -> str:
    written = _WRITTEN.search(output)
    return (written["edited"] or written["created"] or written["many"]).strip() if written else ""

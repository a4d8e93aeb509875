"""Claude Code's screen as text: what `/export` writes, or what was copied from the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from archiver.sources import jsonl, tools, wraps
from archiver.sources.markdown import Line, MarkdownParse, Ran, lines_of
from archiver.transcript import Event, Found, Parse, Progress, Resume, Source
from store.records import Role

AGENT = "terminal-export"

_USER = re.compile(r"[>❯](?: (?P<text>.*))?")
_ASSISTANT = re.compile(r"[⏺●] ?(?P<text>.*)")
_OUTPUT = re.compile(r"\s*⎿")
_TYPED = re.compile(r"! ?(?P<text>\S.*)")
_STATUS = re.compile(
    r"\s*[✻✽✳✢✶] ?\S.*|\s*[·*] ?\S+(?:…|ed for \d.*)|\s*(?:\? for shortcuts|.*\besc to interrupt\b.*)"
    r"|[\s─━═╭╮╰╯│┌┐└┘]*[─━═╭╮╰╯│]{3,}.*"
)
_THOUGHT = re.compile(r"\s*[✻∴] ?Thinking…?.*")
_BANNER = re.compile(r"[ ▐▛█▜▌▝▘▀▄]*[▐▛█▜▌▝▘▀▄]{2,}.*|\s*[╭│╰].*")
_CALL = re.compile(r"(?P<name>[A-Z][\w-]*(?: [A-Z]\w*)?|[\w-]+ - [\w-]+ \(MCP\))\((?P<given>.*)")
_TOOLS = re.compile(
    r"(?:Bash|Read|Write|Update|Edit|MultiEdit|Create|Search|Glob|Grep|List|Fetch|WebFetch|Web ?Search|Task|Agent|Explore|Plan|Skill"
    r"|TodoWrite|NotebookEdit|BashOutput|KillShell)\Z|.*\(MCP\)\Z"
)
_UNSETTLED = re.compile(r"\s*⎿\s*(?:Interrupted|User rejected|Running\b|Waiting\b|No \(tell|\[Request interrupted)")
_FAILED = re.compile(r"\s*⎿\s*(?:Error\b|Exit code [1-9]|.*\bExit code [1-9])")
_EDITED = re.compile(r"(?:Update|Write|Edit|MultiEdit|Create)\Z")
_WIDEST = 1000
"""No line that a screen writes by itself is longer."""

_KEPT_GIVEN, _KEPT_OUTPUT = 50, 200


class TerminalExport(Source):
    agent = AGENT
    parser_version = 1
    resume = Resume.NEVER

    def sniff(self, path: Path, head: bytes) -> Found | None:
        lines = lines_of(head)
        asked = any(line.startswith(("> ", "❯ ")) and line[2:].strip() for line in lines)
        # Only on some systems is the bullet one that people use too.
        bullets = ("⏺ ", "● ") if any(line.startswith("❯ ") or _OUTPUT.match(line) for line in lines) else ("⏺ ",)
        return Found(self.agent, path) if asked and any(line.startswith(bullets) for line in lines) else None

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        return _TerminalParse(found, progress, final=final)


SOURCE = TerminalExport()


class _TerminalParse(MarkdownParse):
    _screen = 0
    _above = ""
    _in_output = False
    _called = 0
    _name = ""
    _given: list[str] | None = None
    """What the call being read was given; None between calls."""

    def __init__(self, found: Found, progress: Progress, *, final: bool) -> None:
        super().__init__(found, progress, final=final)
        self._output: list[str] = []

    def __iter__(self) -> Iterator[Event]:
        with suppress(EOFError), jsonl.open_stream(self._found.path) as stream:
            shown = (tools.plain(data.decode("utf-8", "replace").rstrip("\r")) for _, data, _ in jsonl.lines(stream))
            self._screen = wraps.measure(shown)
        yield from super().__iter__()

    def _take(self, line: Line) -> None:
        text = line.text.rstrip()
        above, self._above = self._above, ""
        if _OUTPUT.match(text):
            self._in_output = True
            self._keep_output(text)
        elif (asked := _USER.fullmatch(text)) and not self._in_quote(line):
            self._end_call()
            if (asked["text"] or "").strip():
                self.say(Role.USER, line.pos, asked["text"])
                self._above = text
        elif _TYPED.fullmatch(text) and _OUTPUT.match(line.next):
            self._end_call()
            self.say(Role.USER, line.pos, text)
        elif answered := _ASSISTANT.fullmatch(text):
            self._answer(line, answered["text"])
        elif len(text) <= _WIDEST and _THOUGHT.fullmatch(text):
            self._close()  # what follows is thought, not said
        elif len(text) <= _WIDEST and (_STATUS.fullmatch(text) or (self.speaker is None and _BANNER.fullmatch(text))):
            self._end_call()
        elif self._in_output or self._given is not None:
            self._keep_output(text)
        else:
            self._go_on(line, above)

    def _in_quote(self, line: Line) -> bool:
        """A quotation in an answer begins with `>` too, but stands within its paragraphs."""
        return line.fenced and self.speaker is Role.USER

    def _go_on(self, line: Line, above: str) -> None:
        text = line.text.rstrip()
        if above and not line.fenced and wraps.goes_on(above, text, self._screen):
            self.join(text.strip())
        else:
            self.add(text.removeprefix("  "))
        self._above = text

    def _answer(self, line: Line, text: str) -> None:
        self._end_call()
        call = _CALL.match(text)
        whole = call is not None and _is_whole(text) and text.endswith(")")
        begun = call is not None and not _is_whole(text) and _TOOLS.match(call["name"]) is not None
        if _OUTPUT.match(line.next) or whole or begun:
            self._close()
            self._called, self._name = line.pos, call["name"] if call else ""
            self._given = [call["given"] if call else ")"]
        elif text.strip():
            self.say(Role.ASSISTANT, line.pos, text)
            self._above = line.text.rstrip()

    def _keep_output(self, text: str) -> None:
        if self._given is not None and not self._in_output and len(self._given) < _KEPT_GIVEN:
            self._given.append(text.strip())
        elif self._given is not None and len(self._output) < _KEPT_OUTPUT:
            self._output.append(text[:_WIDEST])

    def _close(self) -> None:
        super()._close()
        self._end_call()

    def _end_call(self) -> None:
        given, output = self._given, self._output
        self._in_output, self._given, self._output = False, None, []
        # A call without its result may have been interrupted.
        if given is None or not any(map(_OUTPUT.match, output)) or any(map(_UNSETTLED.match, output)):
            return
        failed = any(map(_FAILED.match, output))
        shown = "\n".join(re.sub(r"\A\s*⎿?\s*", "", line) for line in output)
        self.prove(
            Ran(self._called, _proving(self._name, " ".join(filter(None, given)).removesuffix(")")), failed, shown)
        )

    def _spoken(self, role: Role, text: str) -> list[tuple[str, str]]:
        typed = _TYPED.fullmatch(text) if role is Role.USER else None
        return [("command", typed["text"])] if typed else super()._spoken(role, text)


def _is_whole(text: str) -> bool:
    return text.count("(") <= text.count(")")


def _proving(name: str, given: str) -> tools.Call | None:
    if _EDITED.match(name):
        return tools.edited([given])
    call = tools.command(given) if name == "Bash" else None
    # What was left out may be a pipe, whose status is another command's.
    return replace(call, status_hidden=True) if call and given.endswith("…") else call

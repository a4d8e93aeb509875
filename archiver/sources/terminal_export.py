"""Claude Code's screen as text: what `/export` writes, or what was copied from the terminal."""

from __future__ import annotations

import re
from pathlib import Path

from archiver.sources import tools
from archiver.sources.markdown import Line, MarkdownParse, lines_of
from archiver.transcript import Found, Parse, Progress, Resume, Source
from store.records import Role

AGENT = "terminal-export"

_USER = re.compile(r"[>❯](?: (?P<text>.*))?")
_ASSISTANT = re.compile(r"[⏺●] ?(?P<text>.*)")
_OUTPUT = re.compile(r"\s*⎿")
_STATUS = re.compile(
    r"\s*[✻✽✳✢✶·*] ?\S+(?:…|ed for \d.*)|\s*(?:\? for shortcuts|.*\besc to interrupt\b.*|\s*… \+\d+ lines.*)|[\s─━═╭╮╰╯│┌┐└┘]*[─━═╭╮╰╯│]{3,}.*"
)
_BANNER = re.compile(r"[ ▐▛█▜▌▝▘▀▄]*[▐▛█▜▌▝▘▀▄]{2,}.*|\s*[╭│╰].*")
_CALL = re.compile(r"(?P<name>[A-Z][\w-]*(?: [A-Z]\w*)?|[\w-]+ - [\w-]+ \(MCP\))\((?P<given>.*)")
_FAILED = re.compile(r"\s*⎿\s*(?:Error\b|Exit code [1-9]|.*\bExit code [1-9])")
_EDITED = re.compile(r"(?:Update|Write|Edit|MultiEdit|Create)\Z")
_KEPT_OUTPUT = 200


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
    _in_output = False
    _call: tools.Call | None = None
    _output: list[str] | None = None

    def _take(self, line: Line) -> None:
        text = line.text.rstrip()
        if _OUTPUT.match(text):
            self._in_output = True
            self._keep_output(text)
        elif (asked := _USER.fullmatch(text)) and not self._in_quote(line):
            self._end_call()
            if (asked["text"] or "").strip():
                self.say(Role.USER, line.pos, asked["text"])
        elif answered := _ASSISTANT.fullmatch(text):
            self._answer(line, answered["text"])
        elif _STATUS.fullmatch(text) or (self.speaker is None and _BANNER.fullmatch(text)):
            self._end_call()
        elif self._in_output or self._output is not None:
            self._keep_output(text)
        else:
            self.add(text.removeprefix("  "))

    def _in_quote(self, line: Line) -> bool:
        """A quotation in an answer begins with `>` too, but stands within its paragraphs."""
        return line.fenced and self.speaker is Role.USER

    def _answer(self, line: Line, text: str) -> None:
        self._end_call()
        call = _CALL.match(text)
        if _OUTPUT.match(line.next) or (call and text.count("(") <= text.count(")") and text.endswith(")")):
            self._output = []
            self._call = _proving(call["name"], call["given"].removesuffix(")")) if call else None
        elif text.strip():
            self.say(Role.ASSISTANT, line.pos, text)

    def _keep_output(self, text: str) -> None:
        if self._output is not None and len(self._output) < _KEPT_OUTPUT:
            self._output.append(text)

    def _end_call(self) -> None:
        if self._output is not None and self._call is not None:
            failed = any(_FAILED.match(line) for line in self._output)
            shown = "\n".join(re.sub(r"\A\s*⎿?\s*", "", line) for line in self._output)
            self.prove(self._call, failed=failed, output=shown)
        self._in_output, self._output, self._call = False, None, None


def _proving(name: str, given: str) -> tools.Call | None:
    if _EDITED.match(name):
        return tools.edited([given])
    return tools.command(given) if name == "Bash" else None

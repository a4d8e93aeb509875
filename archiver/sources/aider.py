"""aider's chat history, `.aider.chat.history.md` in a project: one file, a session each time aider was started."""

from __future__ import annotations

import re
from pathlib import Path

from archiver.sources import tools
from archiver.sources.markdown import Line, MarkdownParse, Ran, lines_of, local_time
from archiver.transcript import Found, Parse, Progress, Resume, Source
from store.records import Role

AGENT = "aider"

_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_EDITED = re.compile(r"Applied edit to (\S.*)")
_COMMITTED = re.compile(r"Commit [0-9a-f]{7,40} (\S.*)")
_MODE = re.compile(r"/(?:ask|code|architect|context)\s+(?=\S)")
_COMMAND = re.compile(
    r"[/!](?:add|drop|clear|reset|ls|tokens|undo|diff|exit|quit|models?|settings|help|map|run|git|commit|test|lint|voice"
    r"|paste|read-only|load|save|copy|web|report)\b.*"
)


class Aider(Source):
    agent = AGENT
    parser_version = 1
    resume = Resume.NEVER

    def sniff(self, path: Path, head: bytes) -> Found | None:
        begins = next((line for line in lines_of(head) if line.strip()), "")
        return Found(self.agent, path) if _STARTED.fullmatch(begins) else None

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        return _AiderParse(found, progress, final=final)


SOURCE = Aider()


class _AiderParse(MarkdownParse):
    _time: int | None = None
    _in_prompt = False
    _marked = False
    """Whether aider's own lines still end in the two spaces that it writes. Those of an answer do not."""

    def _take(self, line: Line) -> None:
        if started := _STARTED.fullmatch(line.text):
            self._begin_session(started[1])
        elif line.text.startswith("#### ") and self._is_aiders(line):
            self._prompt(line)
        elif line.text.startswith(">") and not line.fenced and self._is_aiders(line):
            self._in_prompt = False  # what aider itself tells; the answer may go on behind it
            self._tells(line)
        elif line.text.strip() or self.speaker is Role.ASSISTANT:
            if self.speaker is not Role.ASSISTANT or self._in_prompt:
                self.say(Role.ASSISTANT, line.pos)
            self._in_prompt = False
            self.add(line.text)

    def _tells(self, line: Line) -> None:
        told = line.text.removeprefix(">").strip()
        if edited := _EDITED.fullmatch(told):
            self.prove(Ran(line.pos, tools.edited([edited[1]]), False, ""))
        elif committed := _COMMITTED.fullmatch(told):
            self.prove(Ran(line.pos, tools.Call(("commit",), committed[1][: tools.LABEL_LENGTH]), False, ""))

    def _is_aiders(self, line: Line) -> bool:
        ends = line.text.endswith("  ")
        self._marked = self._marked or ends
        return ends or not self._marked

    def _begin_session(self, started: str) -> None:
        self._time = local_time(started)
        self.next_session(f"{started.replace(' ', 'T')}-{self._found.path.parent.name}"[:200])
        self._in_prompt = False

    def _prompt(self, line: Line) -> None:
        text = line.text.removeprefix("#### ").rstrip()
        if self._in_prompt:
            self.add(text)
        elif text != "<blank>" and not _COMMAND.fullmatch(text):
            self.say(Role.USER, line.pos, _MODE.sub("", text), self._first_time())
            self._in_prompt = True

    def _first_time(self) -> int | None:
        """Only when a session began is known, so only its first turn has a time."""
        time, self._time = self._time, None
        return time

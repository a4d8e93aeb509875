"""aider's chat history, `.aider.chat.history.md` in a project: one file, a session each time aider was started."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from archiver.sources.markdown import Line, MarkdownParse, lines_of
from archiver.transcript import Found, Parse, Progress, Resume, Source
from store.records import Role

AGENT = "aider"

_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
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

    def _take(self, line: Line) -> None:
        if started := _STARTED.fullmatch(line.text):
            self._begin_session(started[1])
        elif line.text.startswith("#### "):
            self._prompt(line)
        elif line.text.startswith(">") and not line.fenced:
            self._in_prompt = False  # what aider itself tells; the answer may go on behind it
        elif line.text.strip() or self.speaker is Role.ASSISTANT:
            if self.speaker is not Role.ASSISTANT or self._in_prompt:
                self.say(Role.ASSISTANT, line.pos)
            self._in_prompt = False
            self.add(line.text)

    def _begin_session(self, started: str) -> None:
        self._time = None
        with suppress(ValueError, OverflowError):  # no such day
            # The file gives the machine's own time, as people read it.
            self._time = int(datetime.fromisoformat(started).astimezone().timestamp() * 1000)
        self.next_session(f"{started.replace(' ', 'T')}-{self._found.path.parent.name}"[:200])
        self._in_prompt = False

    def _prompt(self, line: Line) -> None:
        text = line.text.removeprefix("#### ").rstrip()
        if self._in_prompt:
            self.add(text)
        elif not _COMMAND.fullmatch(text):
            self.say(Role.USER, line.pos, text, self._first_time())
            self._in_prompt = True

    def _first_time(self) -> int | None:
        """Only when a session began is known, so only its first turn has a time."""
        time, self._time = self._time, None
        return time

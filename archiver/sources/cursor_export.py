"""Chats exported from Cursor as Markdown: `**User**` and `**Cursor**` alone on a line, each behind a rule."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from archiver.sources.markdown import Line, MarkdownParse, lines_of
from archiver.transcript import Found, Parse, Progress, Resume, Source
from store.records import Role

AGENT = "cursor-export"

_SPEAKER = re.compile(r"\*\*(User|Cursor)\*\*\s*")
_HEADING = re.compile(r"#\s+(?P<title>\S.*)")
_EXPORTED = re.compile(r"_Exported on .* from Cursor\b.*_\s*")


class CursorExport(Source):
    agent = AGENT
    parser_version = 1
    resume = Resume.NEVER

    def sniff(self, path: Path, head: bytes) -> Found | None:
        lines = [line for line in lines_of(head) if line.strip()]
        behind_rule = any(above.strip() == "---" and _SPEAKER.fullmatch(line) for above, line in pairwise(lines))
        own = any(_EXPORTED.fullmatch(line) for line in lines[:5]) or any(
            line.strip() == "**Cursor**" for line in lines
        )
        return Found(self.agent, path) if behind_rule and own else None

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        return _CursorParse(found, progress, final=final)


SOURCE = CursorExport()


class _CursorParse(MarkdownParse):
    _behind_rule = False

    def _take(self, line: Line) -> None:
        if line.text.strip() == "---":
            if self._behind_rule:
                self.add("---")
            self._behind_rule = True
            return
        if self._behind_rule and (speaker := _SPEAKER.fullmatch(line.text)):
            self.say(Role.USER if speaker[1] == "User" else Role.ASSISTANT, line.pos)
            self._behind_rule = False
        elif self.speaker is None:
            heading = _HEADING.fullmatch(line.text)
            self._title = self._title or (heading["title"] if heading else None)
        elif line.text.strip() and self._behind_rule:
            self.add("---")
            self._behind_rule = False
            self.add(line.text)
        else:
            self.add(line.text)

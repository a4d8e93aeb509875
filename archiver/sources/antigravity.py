"""Chats exported from Antigravity as Markdown: `### User Input` and `### Planner Response`."""

from __future__ import annotations

import re
from pathlib import Path

from archiver.sources.markdown import Line, MarkdownParse, lines_of
from archiver.transcript import Found, Parse, Progress, Resume, Source
from store.records import Role

AGENT = "antigravity"

_SPEAKER = re.compile(r"###\s+(User Input|Planner Response)\s*")
_TOOL = re.compile(
    r"\*(?:Edited|Viewed|Ran|Listed|Searched|Read|Created|Checked|Analyzed|Grep|Generated|Deleted|Moved|Opened|User|Running|Sent|Wrote)\b"
    r"[^*].*\*\s*"
)
_LINK = re.compile(r"\[(?P<name>[^\]\n]*)\]\((?:cci|file|cascade)\w*:[^)\n]*\)")


class Antigravity(Source):
    agent = AGENT
    parser_version = 1
    resume = Resume.NEVER

    def sniff(self, path: Path, head: bytes) -> Found | None:
        speakers = [found[1] for line in lines_of(head) if (found := _SPEAKER.fullmatch(line))]
        return Found(self.agent, path) if "User Input" in speakers else None

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        return _AntigravityParse(found, progress, final=final)


SOURCE = Antigravity()


class _AntigravityParse(MarkdownParse):
    def _take(self, line: Line) -> None:
        if not line.fenced and (speaker := _SPEAKER.fullmatch(line.text)):
            self.say(Role.USER if speaker[1] == "User Input" else Role.ASSISTANT, line.pos)
        elif line.fenced or not _TOOL.fullmatch(line.text):
            self.add(_LINK.sub(r"\g<name>", line.text))

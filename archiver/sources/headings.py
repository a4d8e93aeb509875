"""Conversations kept as plain Markdown: a heading for each turn, `### User` and `### Assistant` or `### 사용자` and `### 어시스턴트`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from archiver.sources.markdown import Line, MarkdownParse, lines_of
from archiver.transcript import Found, Parse, Progress, Resume, Source
from store.records import Role, parse_time

AGENT = "markdown"

_USERS = "user|human|me|you|prompt|question|사용자|유저|나|질문|사람"
_ASSISTANTS = (
    "assistant|ai|agent|bot|model|response|answer|claude|claude code|chatgpt|gpt|gemini|gemini cli|codex|copilot|cursor"
    "|어시스턴트|도우미|비서|답변|응답|에이전트"
)
_HEADING = re.compile(r"(?P<level>#{1,5})\s+(?P<text>.*?)\s*#*\s*")
_SPEAKER = re.compile(
    rf"[^\w#]{{0,4}}\s*(?:\*\*)?(?:(?P<user>{_USERS})|(?P<assistant>{_ASSISTANTS}))(?:\*\*)?\s*:?(?:\*\*)?"
    r"(?:\s*[(\[—–-]\s*(?P<about>[^)\]]*)[)\]]?)?",
    re.I,
)
_DAY = re.compile(r".*?(?P<day>\d{4}-\d\d-\d\d)(?:[ T](?P<time>\d\d:\d\d(?::\d\d)?))?.*")


class Headings(Source):
    agent = AGENT
    parser_version = 1
    resume = Resume.NEVER

    def sniff(self, path: Path, head: bytes) -> Found | None:
        return Found(self.agent, path) if _level(lines_of(head)) else None

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        return _HeadingsParse(found, progress, final=final)


SOURCE = Headings()


def _level(lines: Iterable[str]) -> int:
    """How many `#` the speakers' headings have; 0 if the text is no conversation: a person asks first and is answered, and
    no other heading stands at that level."""
    order: list[tuple[int, Role | None]] = []
    fenced = False
    for line in lines:
        if line.startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and (heading := _HEADING.fullmatch(line)):
            order.append((len(heading["level"]), _role(heading["text"])))
    first = next(((level, role) for level, role in order if role is not None), None)
    if first is None or first[1] is not Role.USER:
        return 0
    turns = [role for level, role in order if level == first[0]]
    while turns and turns[0] is None and first[0] == 1:
        turns.pop(0)  # the title
    return first[0] if turns[:2] == [Role.USER, Role.ASSISTANT] and None not in turns[:6] else 0


def _role(heading: str) -> Role | None:
    found = _SPEAKER.fullmatch(heading)
    if found is None:
        return None
    return Role.USER if found["user"] else Role.ASSISTANT


class _HeadingsParse(MarkdownParse):
    _level = 0
    _day: int | None = None

    def _take(self, line: Line) -> None:
        heading = None if line.fenced else _HEADING.fullmatch(line.text)
        level = len(heading["level"]) if heading else 0
        role = _role(heading["text"]) if heading else None
        if heading and role and self._level in (0, level):
            self._level = level
            about = _SPEAKER.fullmatch(heading["text"])
            self.say(role, line.pos, time=_moment((about and about["about"]) or "") or self._day)
        elif heading and (day := _DAY.fullmatch(heading["text"])) and (level < self._level or self.speaker is None):
            self._day = _moment(day[0])
        elif heading and self.speaker is None:
            self._title = self._title or heading["text"]
        elif line.text.strip() != "---" or line.fenced:
            self.add(line.text)


def _moment(text: str) -> int | None:
    found = _DAY.fullmatch(text)
    return parse_time(f"{found['day']}T{found['time'] or '00:00'}") if found else None

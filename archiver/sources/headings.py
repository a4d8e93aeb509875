"""Conversations kept as plain Markdown: a heading for each turn, `### User` and `### Assistant` or `### 사용자` and `### 어시스턴트`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from unicodedata import normalize

from archiver.moments import written_moment
from archiver.sources.markdown import Line, MarkdownParse, lines_of
from archiver.transcript import Found, Parse, Progress, Resume, Source
from store.records import Role

AGENT = "markdown"

_USERS = "user|human|me|you|prompt|question|사용자|유저|나|질문|사람"
_ASSISTANTS = (
    "assistant|ai|agent|bot|model|response|answer|claude|claude code|chatgpt|gpt|gemini|gemini cli|codex|copilot|cursor"
    "|어시스턴트|도우미|비서|답변|응답|에이전트"
)
_HEADING = re.compile(r"(?P<level>#{1,5})\s+(?P<text>.*?)\s*#*\s*")
_SPEAKER = re.compile(
    rf"[^\w#]{{0,4}}\s*(?:\*\*)?(?:(?P<user>{_USERS})|(?P<assistant>{_ASSISTANTS}))(?:\*\*)?\s*:?(?:\*\*)?"
    r"(?:\s*[(\[—–-]\s*(?P<about>(?:\([^()]{0,20}\)|[^)\]])*)[)\]]?)?",
    re.I,
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d|\d{4}년 ?\d")


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
    """How many `#` the speakers' headings have; 0 if the text is no conversation.

    A person asks first and is answered. Other headings at that level, which an answer may have, are only borne with where
    the person speaks again.
    """
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
    spoken = [role for role in turns if role is not None]
    plain = turns[:2] == [Role.USER, Role.ASSISTANT] and None not in turns[:6]
    mixed = turns[:1] == [Role.USER] and spoken[:3] == [Role.USER, Role.ASSISTANT, Role.USER]
    return first[0] if plain or mixed else 0


def _role(heading: str) -> Role | None:
    found = _SPEAKER.fullmatch(normalize("NFC", heading))
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
            about = _SPEAKER.fullmatch(normalize("NFC", heading["text"]))
            self.say(role, line.pos, time=written_moment((about and about["about"]) or "") or self._day)
        elif heading and _is_day(heading["text"]) and (level < self._level or self.speaker is None):
            self._day = written_moment(heading["text"])
        elif heading and self.speaker is None:
            self._title = self._title or heading["text"]
        elif line.text.strip() != "---" or line.fenced:
            self.add(line.text)


def _is_day(heading: str) -> bool:
    # Numbers with dots between them may well be a version.
    return _DAY.search(heading) is not None or written_moment(heading, alone=True) is not None

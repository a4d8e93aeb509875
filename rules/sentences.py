"""Turns cut into sentences, each with the context that tells what kind of saying it is.

Code blocks, tool echoes, diffs and stack traces are no sentences. Quoted passages and code spans stay in the text
that is kept and shown, and are blanked in the text that cues read (`said`), so that an identifier called
`is_committed` or a "?" inside code says nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from store.records import Role, SafeText, Turn

FARTHEST = 50_000
"""Characters of a turn that are read. Longer ones are pasted files and logs; the patterns below stay quick on them."""

LONGEST = 600
"""Characters. A longer run without a sentence end is data, not a sentence."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, list item or table row of a turn.

    turn: index into the conversation's turns. place: its number within the turn.
    text: as written, without list mark and outer blanks. said: NFKC, no Markdown, code and quotations blanked.
    heading: the heading in force. lead: the line ending in a colon under which it stands, else "".
    cells: for a table row, (column name, cell) pairs.
    """

    turn: int
    place: int
    role: Role
    kind: str
    text: SafeText
    said: str
    heading: str = ""
    lead: str = ""
    cells: tuple[tuple[str, SafeText], ...] = ()
    number: int = 0


CODE, QUOTED = "CODE", "QUOTED"

_FENCE = re.compile(r"^[ \t]*(```+|~~~+)")
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]+(.{1,200}?)[ \t#]*$")
_BOLD_LINE = re.compile(r"^[ \t]*\*\*([^*]{2,80})\*\*[ \t]*:?[ \t]*$")
_ITEM = re.compile(r"^[ \t]*(?:[-*+•▪◦‣–]|(?P<number>\d{1,2})[.)]|[①-⑳]|[a-zA-Z][.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_STEP = re.compile(r"^[ \t]*(?:[✅❌⚠️✔☑️✓✗→↳⎿●○■□▶►>]+[ \t]*)+")
_TABLE = re.compile(r"^[ \t]*\|.*\|[ \t]*$")
_RULE = re.compile(r"^[ \t|:=_*─━-]{3,}$")
_DEBRIS = re.compile(
    r"""^[ \t]*(?:
        at[ ][\w.$<>]+[ ]?\(|File[ ]"|Traceback[ ]|Caused[ ]by:|\.\.\.[ ]\d+[ ]more
      | (?:[+-]{3}[ ]|@@[ ]|diff[ ]--git|index[ ][0-9a-f]{7})
      | \$[ ]\S|❯|>>>[ ]|npm[ ](?:error|ERR!|warn)|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d
      | (?:\w+Error|\w+Exception|Error|error|ERROR|WARN|INFO|DEBUG|FATAL)(?:\[\w+\])?:[ ]
      | [{}\[\]();]+[ \t]*$ | [\w$.]+\(.*\);?[ \t]*$ | (?:import|from|const|let|var|return|def|class|func|public)[ ][\w{*].*[;:{(=]
      | \S+\.\w{1,5}:\d+(?::\d+)?[: ]
      | //|/\*|<!--|</?\w+[^>]*>[ \t]*$
    )""",
    re.VERBOSE,
)
_INDENTED_CODE = re.compile(r"^(?: {4,}|\t+)(?![-*+•]|\d+[.)])\S.*[;{}=()<>]")
_END = re.compile(r"(?<=[.!?。！？])[\"'”’)\]*_`]*\s+|(?<=[가-힣]\.)(?=[가-힣A-Z\"“])")
_CLOSED = re.compile(r"[?!]$|[가-힣]\W*\.$")
_NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|etc|cf|approx|no|fig|st|mr|ms|dr)\.|^\s*\d{1,2}\.|\s\d{1,2}\.)$", re.IGNORECASE
)
_SPAN = re.compile(r"(?<!`)`{1,3}[^`\n]{1,300}`{1,3}")
_QUOTE = re.compile(
    r"\"[^\"\n]{2,300}\"|“[^”\n]{2,300}”|「[^」\n]{2,300}」|『[^』\n]{2,300}』|(?<![\w가-힣])'[^'\n]{8,300}'(?![\w])|‘[^’\n]{2,300}’(?!\w)"
)
_LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\n]{0,500}\)")
_URL = re.compile(r"https?://\S+")
EMPHASIS = r"\*\*|~~|(?<![\w*])\*(?P<slanted>[^*\s](?:[^*\n]*[^*\s])?)\*(?![\w*])|(?<!\w)(?P<bar>__?)(?P<kept>[^_\s](?:[^_\n]*[^_\s])?)(?P=bar)(?![\w.(])"
"""Bold, struck and slanted marks. `*.md`, `__init__.py` and `snake_case` hold none."""

_MARKS = re.compile(EMPHASIS)
_BLANKS = re.compile(r"\s+")
_CONTROL = re.compile(
    r"\x1b\[[0-9;?]{0,20}[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)


def sentences(turn: Turn, index: int, cut: tuple[re.Pattern[str], ...] = ()) -> list[Sentence]:
    """The sentences of a turn, in order. `cut`: passages that no one said (injected by tools), taken out first."""
    found: list[Sentence] = []
    heading = lead = ""
    header: list[str] = []
    for kind, start, text in _blocks(_without(turn.text[:FARTHEST], cut)):
        if kind == "heading":
            heading, lead, header = said_of(text), "", []
            continue
        if kind == "break":
            lead, header = ("", []) if start else (lead, header)
            continue
        if kind == "table":
            cells = _cells(text)
            if not header:
                header = [said_of(cell) for cell in cells]
                continue
            pairs = tuple(zip(header, cells, strict=False))
            found.append(
                Sentence(
                    index,
                    len(found),
                    turn.role,
                    kind,
                    text.strip().strip("|").strip(),
                    said_of(text),
                    heading,
                    lead,
                    pairs,
                )
            )
            continue
        header = []
        for piece in _split(text):
            said = said_of(piece)
            if not _speaks(said):
                continue
            found.append(Sentence(index, len(found), turn.role, kind, piece, said, heading, lead, (), start))
        if found and found[-1].said.endswith((":", "：")) and kind != "quote":
            lead = found[-1].said
        elif kind == "prose":
            lead = ""
    return found


def said_of(text: str) -> str:
    """A sentence as cues read it: NFKC, no Markdown, code spans and quotations blanked, single blanks."""
    text = unicodedata.normalize("NFKC", _CONTROL.sub(" ", text))
    text = _LINK.sub(r"\1", text)
    text = _URL.sub(CODE, _SPAN.sub(f" {CODE} ", text) if "`" in text else text)
    text = _QUOTE.sub(_quoted, _MARKS.sub(_inner, text))
    # A blanked span leaves a blank before the Korean particle that belongs to it.
    text = re.sub(rf"({CODE}|{QUOTED}) (?=[가-힣])", r"\1", text)
    text = re.sub(rf" (?={CODE}|{QUOTED})", " ", text)
    return _BLANKS.sub(" ", text).strip()


def _inner(match: re.Match[str]) -> str:
    return match["slanted"] or match["kept"] or ""


def _quoted(match: re.Match[str]) -> str:
    # One quoted word is a name ('라이트' 모드); more is somebody else's sentence.
    inner = match[0][1:-1]
    return inner if len(inner) <= 12 and " " not in inner.strip() else QUOTED


def _speaks(said: str) -> bool:
    letters = sum(c.isalpha() for c in said)
    if len(said) <= 12 and said.isascii() and any(c.isdigit() for c in said):
        return True  # a bare number answers a question
    return len(said) <= LONGEST and letters >= 1 and (letters * 3 >= len(said) or letters >= 40 or len(said) <= 30)


def _without(text: SafeText, cut: tuple[re.Pattern[str], ...]) -> SafeText:
    for pattern in cut:
        kept, at = [], 0
        for match in pattern.finditer(text):
            if match[0]:
                kept.append(text[at : match.start()])
                at = match.end()
        text = SafeText.joined("\n", [*kept, text[at:]]) if kept else text
    return text


def _lines(text: SafeText) -> Iterator[SafeText]:
    at = 0
    while at <= len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield text[at:end].rstrip()
        at = end + 1


def _blocks(text: SafeText) -> Iterator[tuple[str, int, SafeText]]:
    """(kind, list number, text) of every block: heading, prose, list, table, quote; "break" is a blank line (0 or 1)."""
    fence = ""
    held: list[SafeText] = []
    held_kind, held_number = "", 0

    def flush() -> Iterator[tuple[str, int, SafeText]]:
        nonlocal held, held_kind
        if held:
            yield held_kind, held_number, SafeText.joined(" ", held)
        held, held_kind = [], ""

    for line in _lines(text):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
            continue
        if mark:
            yield from flush()
            fence = mark[1][:3]
            continue
        if not line.strip() or _RULE.match(line):
            yield from flush()
            yield "break", int(not line.strip() or "|" not in line), line
            continue
        if title := _HEADING.match(line) or _BOLD_LINE.match(line):
            yield from flush()
            yield "heading", 0, line[title.start(1) : title.end(1)]
            continue
        if _TABLE.match(line):
            yield from flush()
            yield "table", 0, line
            continue
        if line.lstrip().startswith(">"):
            yield from flush()
            yield "quote", 0, line.lstrip().lstrip("> ")
            continue
        if _DEBRIS.match(line) or _INDENTED_CODE.match(line):
            yield from flush()
            continue
        item = _ITEM.match(line)
        if item:
            yield from flush()
            held_kind, held_number = "list", int(item["number"] or 0)
            held = [_unmarked(line[item.end() :])]
            continue
        if held and _goes_on(held[-1], line):
            held.append(line.strip())
            continue
        yield from flush()
        held_kind, held_number, held = "prose", 0, [_unmarked(line)]
    yield from flush()


def _unmarked(line: SafeText) -> SafeText:
    mark = _STEP.match(line)
    return line[mark.end() :].strip() if mark else line.strip()


def _goes_on(line: str, following: str) -> bool:
    """A terminal or an editor wrapped the line: it is long, does not end a sentence, and the next one goes on."""
    if len(line) < 60 or line.endswith((".", "!", "?", ":", ";", "다", "요", "。", "：", "|")):
        return False
    first = following.lstrip()[:1]
    return first.islower() or "가" <= first <= "힣" or first in "(`'\""


def _split(text: SafeText) -> Iterator[SafeText]:
    at = marks = counted = 0
    for end in _END.finditer(text):
        marks += text.count("`", counted, end.start())
        counted = end.start()
        tail = text[max(at, end.start() - 12) : end.start()]
        if len(tail) < 2 or marks % 2 or _NO_END.search(tail):
            continue
        if text[end.end() : end.end() + 1].islower() and not _CLOSED.search(tail):
            continue
        yield text[at : end.start()].strip()
        at = end.end()
    if text[at:].strip():
        yield text[at:].strip()


def _cells(row: SafeText) -> list[SafeText]:
    inner = row.strip().strip("|")
    cells, at, in_code = [], 0, False
    for i, char in enumerate(inner):
        if char == "`":
            in_code = not in_code
        elif char == "|" and not in_code:
            cells.append(inner[at:i].strip())
            at = i + 1
    return [*cells, inner[at:].strip()]

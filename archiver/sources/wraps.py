"""Where a terminal broke a line that its writer did not: told by the screen's width, which the lines themselves show."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

_NARROWEST, _WIDEST = 40, 400
_ENOUGH = 2
_FULL = 0.6
"""A line that was broken fills at least this much of the screen."""

_WIDE = re.compile(
    "[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
    "\U0001f300-\U0001faff\U00020000-\U0003fffd]"
)
_NONE = re.compile("[\u0300-\u036f\u200b-\u200d\ufe0e\ufe0f]")
_LEAD = re.compile(r"\s*(?:[⏺●>❯] ?)?(?:(?:[-*•]|\d+[.)]) )?")
_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)])\s")
_GOES_ON = re.compile(r"[ \t]*(?!\d+[.)]\s|\d{4}-\d\d-|\d\d:\d\d:)[\w(\"'`“‘«—~/.]")


def width(text: str) -> int:
    """Columns that a terminal gives to these characters; of a very long line at least more than any screen has."""
    text = text[: _WIDEST + 1]
    return len(text) if text.isascii() else len(text) + len(_WIDE.findall(text)) - len(_NONE.findall(text))


def measure(lines: Iterable[str]) -> int:
    """The width at which lines were broken; 0 if nothing shows that they were."""
    broken = [0] * (_WIDEST + 1)
    wider = [0] * (_WIDEST + 1)
    for above, below in pairwise(map(str.rstrip, lines)):
        low = width(above)
        wider[min(low, _WIDEST)] += 1
        if _NARROWEST <= low < _WIDEST and _may_go_on(above, below):
            # A line that was broken had no room for the next word.
            for columns in range(low, min(_needed(low, below), int(low / _FULL) + 1, _WIDEST)):
                broken[columns] += 1
    longer, best, found = 0, _ENOUGH - 1, 0
    for columns in range(_WIDEST, _NARROWEST - 1, -1):
        if broken[columns] - longer > best:
            best, found = broken[columns] - longer, columns
        longer += wider[columns]
    return found


def goes_on(above: str, below: str, screen: int) -> bool:
    """Whether `below` is the rest of the line `above`, on a screen of this width."""
    low = width(above)
    return screen * _FULL <= low <= screen < _needed(low, below) and _may_go_on(above, below)


def _needed(low: int, below: str) -> int:
    return low + 1 + width(below[: _WIDEST + 1].split(maxsplit=1)[0]) if below[: _WIDEST + 1].strip() else low


def _may_go_on(above: str, below: str) -> bool:
    """Whether the two may be one paragraph: not a list, a table, a log, or code by its indentation or ending."""
    lead = _LEAD.match(above)
    start = lead.end() if lead else 0
    indent = len(below) - len(below.lstrip(" \t"))
    deep = start > 2 and not _ITEM.match(above)
    return not deep and indent <= start and above[-1:] not in "{;\\" and _GOES_ON.match(below) is not None

"""Text made fit for a terminal, a prompt or a JSON document. Transcripts are hostile: nothing they hold may steer the reader's."""

from __future__ import annotations

import json
import re
import unicodedata
from datetime import datetime
from typing import Any

# C0 (but tab and newline), DEL, C1, line and paragraph separators, bidi overrides and isolates, zero-width marks.
_CONTROL = "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ufeff"
_STEERING = re.compile(f"[{_CONTROL}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_COLOUR = re.compile("\x1b\\[[0-9;]*m")


def plain(text: str) -> str:
    """The text without anything that steers a terminal or hides or reorders what is shown."""
    return _SURROGATE.sub("\ufffd", _STEERING.sub("", text))


def one_line(text: str, width: int = 0) -> str:
    """The text on one line, cut to `width` terminal columns (0: not cut)."""
    flat = " ".join(plain(text).split())
    return cut(flat, width) if width else flat


def cut(text: str, width: int) -> str:
    """At most `width` columns, a Hangul or Han character being two, ending in an ellipsis where something is missing."""
    if columns(text) <= width:
        return text
    kept, used = [], 1
    for character in text:
        used += _columns(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"


def columns(text: str) -> int:
    """Terminal columns of a line; our own colours take none."""
    return sum(_columns(character) for character in _COLOUR.sub("", text))


def fold(line: str, width: int, indent: str = "") -> str:
    """The line broken at blanks so that each part fits `width` columns behind `indent`. Width 0 breaks nothing."""
    if not width:
        return indent + line
    parts, used = [indent], len(indent)
    for word in line.split(" "):
        wide = columns(word)
        if used > len(indent) and used + wide + 1 > width:
            parts.append("\n" + indent)
            used = len(indent)
        elif used > len(indent):
            parts.append(" ")
            used += 1
        parts.append(word)
        used += wide
    return "".join(parts)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def as_json(value: Any) -> str:
    """One JSON document. Korean stays readable; every control or direction character is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return _SURROGATE.sub(
        "\\\\ufffd", re.sub("[\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]", _escaped, text)
    )


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def local_day(ms: int | None) -> str:
    """The day in the reader's own time zone, `2026-04-06`; empty for an unknown time."""
    return "" if ms is None else datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d")


def local_minute(ms: int | None) -> str:
    return "" if ms is None else datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M")

"""What a person said, cut free from what programs wrote around it: the part that all agents share."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from archiver.config import home
from archiver.sources.jsonl import scrub
from archiver.transcript import RECALL_CLOSE, RECALL_OPEN

TITLE_LENGTH = 120
_INDENT = 80
LONGEST_ID = 200

_RECALL = re.compile(re.escape(RECALL_OPEN) + r".*?(?:" + re.escape(RECALL_CLOSE) + r"|\Z)", re.S)
_OBSERVER_END = re.compile(r"</observed\w*>\s*\Z")
_FAILURE = re.compile(
    r"\A\s*(?:API Error\b|No response requested\.?\s*\Z|Request timed out|Invalid API key|Credit balance is too low"
    r"|Claude AI usage limit reached|Prompt is too long\s*\Z)"
)


def cut_recall(text: str) -> str:
    """Text without the blocks that wwt's own recall put there; an unclosed one reaches to the end."""
    return _RECALL.sub("", text) if RECALL_OPEN in text else text


def cut_tags(text: str, names: tuple[str, ...]) -> str:
    """Text without these elements, nested ones included.

    One that never closes reaches to the end if it begins a line; elsewhere it is only mentioned, and stays.
    """
    for name in names:
        if f"<{name}" in text:
            text = _cut_tag(text, name)
    return text


def _cut_tag(text: str, name: str) -> str:
    kept: list[str] = []
    at = begin = depth = 0
    mentioned: int | None = None
    for tag in re.finditer(rf"<(/?){re.escape(name)}(?:\s[^>]*)?>", text):
        if not tag[1]:
            begins_line = text[max(0, tag.start() - _INDENT) : tag.start()].rstrip(" \t")[-1:] in ("", "\n")
            if depth and begins_line and mentioned is not None:
                # The open one was a mention in running text; the element begins here.
                begin, depth, mentioned = tag.start(), 0, None
            if depth == 0:
                begin = tag.start()
                mentioned = None if begins_line else begin
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                kept.append(text[at:begin])
                at = tag.end()
    if depth and mentioned is None:
        return "".join(kept) + text[at:begin]
    return "".join(kept) + text[at:]


def is_observer_prompt(text: str) -> bool:
    """A transcript wrapped up for another program to read: `You are ... <observed>...</observed>`."""
    return _OBSERVER_END.search(text) is not None and "<observed" in text


def is_failure_notice(text: str) -> bool:
    """What a client writes in place of an answer when the service failed."""
    return _FAILURE.match(text) is not None


def title_of(text: str) -> str:
    """The first line with words in it, cut at a character."""
    first = next((line.strip() for line in text.split("\n") if line.strip()), "")
    return first if len(first) <= TITLE_LENGTH else first[: TITLE_LENGTH - 1].rstrip() + "…"


def digest(*parts: str) -> str:
    """Twelve hex digits that stand for words where words may not be stored."""
    return hashlib.sha256("\x00".join(parts).encode("utf-8", "replace")).hexdigest()[:12]


def plain_id(native: str) -> str:
    """An id as it may be stored, whatever the file holds in its place."""
    return scrub(native) if len(native) <= LONGEST_ID else digest(native)


def turn_key(native: str, text: str) -> str:
    """The native id. One too short to be unique over all sessions gets the digest of what was first said under it."""
    native = plain_id(native)
    return native if len(native) >= 16 else f"{native}:{digest(text)[:8]}"


def is_own(cwd: str) -> bool:
    """Whether a session ran in wwt's own data folder: wwt started it, and nobody said anything there."""
    own, here = home(), Path(cwd)
    return any(here == base or base in here.parents for base in {own, own.resolve()})

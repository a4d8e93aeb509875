"""File names that every file system takes: short enough, without reserved words or characters."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_RESERVED = re.compile(r"(?i)^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\..*)?$")


def slug(text: str, *, characters: int = 60, size: int = 150) -> str:
    """Letters, digits, `.`, `_` and `-` of the text; everything else becomes `-`. Cut on a character, never empty.

    `characters` and `size` (UTF-8 bytes) bound the result. Different texts may share a slug: add something unique.
    """
    kept = "".join(
        c if c in "._-" or c.isalnum() or unicodedata.category(c).startswith("M") else "-" for c in _nfc(text)
    )
    # A mark can't lead: without its letter it would join whatever the name is glued to.
    trimmed = re.sub(r"-{2,}", "-", kept).lstrip("-. ")
    while trimmed and unicodedata.category(trimmed[0]).startswith("M"):
        trimmed = trimmed[1:]
    name = _cut(trimmed, characters, size).rstrip("-. ")
    if not name:
        return "untitled"
    return f"_{name}" if _RESERVED.match(name) else name


def short_hash(*parts: str) -> str:
    """Eight hex digits that tell these parts from others."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:8]


def _cut(text: str, characters: int, size: int) -> str:
    cut = text[:characters]
    while len(cut.encode("utf-8", "replace")) > size:
        cut = cut[:-1]
    # Not between a letter and its combining marks.
    while len(cut) < len(text) and cut and unicodedata.category(text[len(cut)]).startswith("M"):
        cut = cut[:-1]
    return cut


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)

"""Text without what drives a terminal, breaks a database or hides words: control characters, half surrogates, bidi marks."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_ODD_ASCII = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufdd0-\ufdef\ufeff"
    "\ud800-\udfff\U000e0000-\U000e01ef]"
)

# ECMA-48: control sequences, then strings that end with BEL or ST, then two-character escapes, then a lone ESC.
# A string that never ends loses its introducer only: what follows may be words.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])(?:[^\x07\x1b\x9c\n]*+(?:\x07|\x1b\\|\x9c))?"
    r"|\x1b[ -/]*+[0-~]?"
)
_NEWLINES = re.compile("\r\n?|[\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]+")
_SURROGATES = re.compile("[\ud800-\udfff]")
_NONCHARACTERS = re.compile("[\ufdd0-\ufdef]")
_INVISIBLE = re.compile("[\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]+")

_PICTURE = "\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
_EMOJI_JOINER = re.compile(f"(?<=[{_PICTURE}\ufe0f])\u200d(?=[{_PICTURE}])")
# Persian, Urdu, Syriac, and the scripts of India and its neighbours spell words with joiners.
_JOINING = "\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af"
_LETTER_JOINER = re.compile(f"(?<=[{_JOINING}])[\u200c\u200d](?![\u200c\u200d])")
_JOINERS = re.compile("[\u200c\u200d]")
# Tag letters spell text no one sees, except in flags: a black flag, tag letters, and the end tag.
_TAGS = re.compile(
    "(\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f)|[\U000e0000-\U000e00ff]|[\U000e0100-\U000e01ef]{2,}"
)


def scrub(text: str) -> str:
    """Valid Unicode in NFC, with no control character but newline and tab. Ordinary text comes back as it is."""
    if text.isascii():
        return _without_controls(text) if _ODD_ASCII.search(text) else text
    if _ODD.search(text):
        text = _without_controls(_whole(text))
        text = _TAGS.sub(r"\1", _INVISIBLE.sub("", text))
        text = _without_joiners(text)
    if unicodedata.is_normalized("NFC", text):
        return text
    return unicodedata.normalize("NFC", _stacked().sub(r"\1", text))


@cache
def _stacked() -> re.Pattern[str]:
    """More marks on one letter than the 30 of Unicode's stream-safe format: ordering n of them takes n squared steps."""
    marks = "".join(chr(code) for code in range(0x300, 0x1F000) if unicodedata.combining(chr(code)))
    return re.compile(f"([{marks}]{{30}})[{marks}]+")


def _whole(text: str) -> str:
    """Two halves of a character become that character; a half alone becomes U+FFFD, as do noncharacters."""
    if _SURROGATES.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _NONCHARACTERS.sub("\ufffd", text)


def _without_controls(text: str) -> str:
    return _CONTROLS.sub("", _NEWLINES.sub("\n", _ESCAPES.sub("", text)))


def _without_joiners(text: str) -> str:
    """Zero-width joiners stay where they join: between pictures, and after letters of scripts that need them."""
    if not _JOINERS.search(text):
        return text
    kept = {found.start() for pattern in (_EMOJI_JOINER, _LETTER_JOINER) for found in pattern.finditer(text)}
    return _JOINERS.sub(lambda found: found[0] if found.start() in kept else "", text)

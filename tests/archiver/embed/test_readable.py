from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from archiver.embed.readable import readable


@given(st.text(st.characters(), max_size=30))
def test_result_is_utf8_and_composed(text: str) -> None:
    result = readable(text)
    assert unicodedata.is_normalized("NFC", result)
    assert result.encode("utf-8").decode("utf-8") == result


def test_lone_half_is_replaced_and_a_pair_is_joined() -> None:
    assert readable("파\ud82d일 \ud83d\ude00") == "파\ufffd일 😀"


def test_blanks_and_controls_alone_are_nothing() -> None:
    assert [readable(text) for text in ("", " \n\t\x00", "\u3000\u200b", "\udc00\ud800")] == ["", "", "", ""]

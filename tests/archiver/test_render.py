import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import render


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x07", "\x08", "\r", "\x9b31m", "\u202e", "\u2066", "\x00", "\u2028"])
def test_nothing_that_steers_a_terminal_is_printed(hostile: str) -> None:
    shown = render.plain(f"앞{hostile}뒤")
    assert not set(hostile) - set("[2J31m") & set(shown)
    assert shown.startswith("앞")
    assert shown.endswith("뒤")


@given(st.text())
def test_json_is_valid_and_holds_the_same_text(text: str) -> None:
    shown = render.as_json({"text": text})
    assert json.loads(shown) == {"text": text}
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_json_keeps_korean_readable() -> None:
    assert "점검표" in render.as_json({"text": "점검표"})


@given(st.text(), st.integers(2, 40))
def test_a_cut_line_fits_its_columns(text: str, width: int) -> None:
    assert render.columns(render.one_line(text, width)) <= width


def test_a_hangul_syllable_takes_two_columns() -> None:
    assert render.cut("가나다라", 7) == "가나다…"

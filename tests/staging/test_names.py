import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from staging.names import short_hash, slug


@given(st.text(), st.integers(1, 80), st.integers(4, 200))
def test_a_slug_is_short_whole_and_safe(text: str, characters: int, size: int) -> None:
    name = slug(text, characters=characters, size=size)
    plain = name.removeprefix("_")
    assert name == "untitled" or (len(plain) <= characters and len(plain.encode()) <= size)
    assert name and name[-1] not in ". -" and not set('/\\:*?"<>|\0').intersection(name)
    assert not unicodedata.category(name[0]).startswith(("M", "C", "Z"))


def test_a_cut_never_falls_between_a_letter_and_its_marks() -> None:
    assert slug("x̱y̱", characters=3) == "x̱"
    assert slug("각각", size=4) == "각"


def test_reserved_names_are_dodged() -> None:
    assert [slug(name) for name in ("con", "NUL.txt", "com1", "console")] == ["_con", "_NUL.txt", "_com1", "console"]


def test_hashes_tell_parts_apart() -> None:
    assert short_hash("ab", "c") != short_hash("a", "bc") and len(short_hash("\ud800")) == 8

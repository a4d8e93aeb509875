from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.sources.speech import cut_tags, digest, title_of, turn_key


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a<x>b</x>c", "ac"),
        ("a<x>b<x>c</x>d</x>e", "ae"),
        ('a<x id="1">b</x>c', "ac"),
        ("a\n<x>b", "a\n"),
        ("use <x> here", "use <x> here"),
        ("use <x> here\n<x>\nb\n</x>\nend", "use <x> here\n\nend"),
        ("stray </x> end", "stray </x> end"),
        ("<xy>b</xy>", "<xy>b</xy>"),
    ],
)
def test_elements_are_cut_and_mentions_are_not(text: str, kept: str) -> None:
    assert cut_tags(text, ("x",)) == kept


@given(st.text(alphabet="a<>/x \n"))
def test_cutting_never_adds_or_reorders(text: str) -> None:
    rest = iter(text)
    assert all(char in rest for char in cut_tags(text, ("x",)))


def test_titles_are_one_line() -> None:
    assert title_of("\n\n  첫 줄  \n둘째") == "첫 줄"
    assert len(title_of("가" * 500)) == 120


def test_only_ids_too_short_to_be_unique_carry_a_digest() -> None:
    uuid = "0f4b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"
    assert turn_key(uuid, "말") == uuid
    assert turn_key("1", "말") == f"1:{digest('말')[:8]}"
    turn_key("\ud800", "\ud800").encode()

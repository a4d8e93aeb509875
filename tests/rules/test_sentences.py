from __future__ import annotations

import pytest

from rules.sentences import said_of, sentences
from store.records import Role, SafeText, Turn


def cut(text: str) -> list[str]:
    return [s.text for s in sentences(Turn("k", 1, Role.USER, "prompt", SafeText(text)), 0)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("First. Second! Third?", ["First.", "Second!", "Third?"]),
        ("확정했다. 이유는 간단하다.", ["확정했다.", "이유는 간단하다."]),
        ("See e.g. the docs, v1.2.3 and a.py.", ["See e.g. the docs, v1.2.3 and a.py."]),
        ("1. Keep the lock\n2. Drop the cache", ["Keep the lock", "Drop the cache"]),
        ("- [x] one\n* two", ["one", "two"]),
        ("```\ncode here.\n```\nafter", ["after"]),
        ("```\nnever closed", []),
        ("Traceback (most recent call last):\nValueError: bad\nso fix it", ["so fix it"]),
    ],
)
def test_sentences_are_cut_and_code_is_left_out(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


def test_lines_that_a_terminal_wrapped_are_one_sentence() -> None:
    wrapped = "The worker reads the old schema because the migration runs only after\nit has started."
    assert len(cut(wrapped)) == 1


def test_short_lines_of_a_message_are_sentences_of_their_own() -> None:
    assert cut("포트는 8080으로 하자\n그리고 TLS 켜줘") == ["포트는 8080으로 하자", "그리고 TLS 켜줘"]


def test_code_and_quotations_are_blanked_in_what_cues_read() -> None:
    assert said_of("`is_committed?`는 **그대로** 두자") == "CODE는 그대로 두자"
    assert said_of('문서에 "DB는 Kafka로 결정했다"라고 있다') == "문서에 QUOTED라고 있다"
    assert said_of("모드는 '라이트'로 하자") == "모드는 '라이트'로 하자"


def test_rows_know_their_columns_and_items_their_heading() -> None:
    turn = Turn(
        "k", 1, Role.ASSISTANT, "reply", SafeText("## Fixes\n- a lock\n\n| Cause | Fix |\n|---|---|\n| stale | reset |")
    )
    item, row = sentences(turn, 0)
    assert (item.heading, item.kind) == ("Fixes", "list")
    assert row.cells == (("Cause", "stale"), ("Fix", "reset"))


def test_sentences_stay_safe_text() -> None:
    turn = Turn("k", 1, Role.USER, "prompt", SafeText("- one\n- two. three"))
    assert all(isinstance(s.text, SafeText) for s in sentences(turn, 0))

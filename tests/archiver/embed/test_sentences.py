from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.embed.sentences import LONGEST, MOST, SHORTEST, split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "포트가 이미 쓰이고 있었습니다. 그래서 8081로 바꾸기로 했습니다.",
            ["포트가 이미 쓰이고 있었습니다.", "그래서 8081로 바꾸기로 했습니다."],
        ),
        (
            'The cache was stale! "Delete the old folder." Then it worked again.',
            ["The cache was stale!", '"Delete the old folder."', "Then it worked again."],
        ),
        ("왜 느려졌을까요? Because the index was missing.", ["왜 느려졌을까요? Because the index was missing."]),
        (
            "요청이 왜 이렇게 느려졌을까요? Because the index was missing.",
            ["요청이 왜 이렇게 느려졌을까요?", "Because the index was missing."],
        ),
        ("Version 3.14 of app.config.js stays as it is", ["Version 3.14 of app.config.js stays as it is"]),
        ("Use a real database, e.g. Postgres for the tests.", ["Use a real database, e.g. Postgres for the tests."]),
        (
            "- first item of the list\n- second item of the list",
            ["- first item of the list", "- second item of the list"],
        ),
        (
            "네. 그 방법으로 합시다. 다음 배포 때 함께 올리겠습니다.",
            ["네. 그 방법으로 합시다.", "다음 배포 때 함께 올리겠습니다."],
        ),
        (
            "设置已经保存到文件里了。请重新启动服务器再试一次。",
            ["设置已经保存到文件里了。", "请重新启动服务器再试一次。"],
        ),
        ("", []),
        (" \n\t ", []),
        ("x", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


def test_a_long_sentence_is_cut_at_a_blank() -> None:
    pieces = split_sentences("단어 " * 300)
    assert max(map(len, pieces)) <= LONGEST
    assert " ".join(pieces) == ("단어 " * 300).strip()


@given(
    st.lists(
        st.sampled_from(["가", "ab ", ". ", "!", "\n", "。", '"', " ", "\x00", "\ud800", "긴 문장입니다. ", "x" * 90])
    ).map("".join)
)
def test_sentences_keep_to_their_bounds_and_to_the_text(text: str) -> None:
    sentences = split_sentences(text)
    assert len(sentences) <= MOST
    assert all(SHORTEST <= len(sentence) <= LONGEST for sentence in sentences)
    rest = "".join(text.split())
    for sentence in sentences:
        _, found, rest = rest.partition("".join(sentence.split()))
        assert found


@pytest.mark.parametrize("filler", [" ", "\n", ".", "。", '."', "a", "e.g. "])
def test_a_huge_monotonous_text_ends(filler: str) -> None:
    assert len(split_sentences(filler * 500_000)) <= MOST

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.embed.universal import Universal

TEXTS = [
    "안녕하세요, 설정을 바꿨습니다.",
    "ㅋㅋㅋ 그건 좀 ㅠㅠ",
    "한글\u1112\u1161\u11ab 漢字 かな カナ ｶﾅ",
    "We rolled back to v2.3.1 — see CHANGELOG.md",
    "배포는 `kubectl rollout undo`로 되돌렸어요",
    "👩‍👩‍👧‍👦 🇰🇷 ☕️ \U0001faf8",
    "for (int i = 0; i < n; ++i) { a[i] <<= 2; }  // 비트 이동",
    "https://example.org/길?q=%ED%95%9C&x[]=1#조각",
    "a\x00b\x1b[31mc\x7f\x85\u200b\u2028\ufeff\ufffd",
    "ﷺ ｆｕｌｌ ① ㎏ ½ ﬁ é e\u0301 <\u0338 >\u0338",
    "a" * 5_000,
    "뷁" * 3_000,
    "c0ffee" * 700,
    " \t leading and trailing \n\n",
    "▁underline▁ ▁▁ ▁",
    "",
    " ",
]


@pytest.fixture(scope="module")
def ours(embedder_cache: Path) -> Any:
    return Universal(embedder_cache)._engine.backend.sp._tokenizer


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_are_those_of_the_package(ours: Any, stock: Any, text: str) -> None:
    assert ours.encode(text) == stock._tokenizer.encode(text)


MIXED = st.lists(
    st.one_of(
        st.text("가나다라마바사설정파일오류했습니다 ", max_size=12),
        st.text("abcdefghijklmnopqrstuvwxyzABC012 .,:;/_-=<>(){}[]'\"\n\t", max_size=20),
        st.text(st.characters(blacklist_categories=["Cs"]), max_size=8),
        st.sampled_from(["▁", " ", "\u3000", "\u0338", "\u1161", "\u11ab", "😀", "\x00"]),
    ),
    max_size=12,
).map("".join)


@given(MIXED)
def test_tokens_of_any_text_are_those_of_the_package(ours: Any, stock: Any, text: str) -> None:
    assert ours.encode(text) == stock._tokenizer.encode(text)


def test_words_remembered_give_the_same_tokens_again(ours: Any) -> None:
    text = "같은 말을 같은 말로 the same words in the same order"
    assert ours.encode(text) == ours.encode(text)


def test_every_prefix_of_the_package_is_found_and_no_other(ours: Any, stock: Any) -> None:
    table = stock._tokenizer._prefixes
    some = list(table)[::97]
    assert [ours._prefixes.get(prefix) for prefix in some] == [table[prefix] for prefix in some]
    assert [ours._prefixes.get(prefix + "\x01") for prefix in some] == [None] * len(some)

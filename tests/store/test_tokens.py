"""Words as the index, the query and the duplicate check see them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.tokens import (
    MOST_TOKENS,
    REPEATS,
    TOKEN_BYTES,
    highlights,
    index_tokens,
    morphemes,
    query_terms,
    query_tokens,
    surface_tokens,
)


def unknown(word: str) -> bool:
    return False


@pytest.mark.parametrize(
    ("written", "word"),
    [
        ("ERR_7F3A", "err_7f3a"),
        ("std::vector<int>", "std::vector<int>"),
        ("path/to/file.py:42", "path/to/file.py:42"),
        ('"REQ-0310"', "req-0310"),
        ("(my-pkg),", "my-pkg"),
        ("`package.json`을", "package.json"),
        ("--no-verify", "--no-verify"),
        ("C++", "c++"),
        ("C#으로", "c#"),
        (".env", ".env"),
        ("foo();", "foo()"),
        ("ＤＢ", "db"),
    ],
)
def test_identifier_is_one_word_in_index_and_query(written: str, word: str) -> None:
    assert word in index_tokens(written).words
    assert query_terms(written, unknown)[0].whole == word


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("load_tokens", {"load", "tokens"}),
        ("getUserName", {"get", "user", "name"}),
        ("path/to/file.py:42", {"path", "file.py", "file", "py", "42"}),
        ("utf8", {"utf", "8"}),
        ("REQ-0310", {"req", "0310"}),
        ("--no-verify", {"no-verify", "verify"}),
    ],
)
def test_identifier_is_found_by_its_parts(written: str, parts: set[str]) -> None:
    assert parts <= set(index_tokens(written).words)


def test_noun_with_particle_is_found_by_the_noun() -> None:
    indexed = index_tokens("점검표를 Wiki에 올렸다. 검색은 점검표에서 시작한다")
    assert {"점검표", "wiki", "올리", "검색"} <= set(indexed.words)
    assert {"점검", "검표"} <= set(indexed.grams)


@pytest.mark.parametrize(
    "forms", ["cache caches cached caching", "test tests testing", "query queries", "setting settings", "run running"]
)
def test_forms_of_an_english_word_share_a_token(forms: str) -> None:
    for form in forms.split():
        (term,) = query_terms(form, unknown)
        assert all({term.whole, *term.parts} & set(index_tokens(other).words) for other in forms.split())


def test_negation_and_single_syllables_stay() -> None:
    assert {"안", "못"} <= set(index_tokens("안 되는 이유를 못 찾음").words)
    assert "값" in index_tokens("값을 3 으로").words
    assert "3" in index_tokens("값을 3 으로").words


def test_query_cuts_hangul_by_the_longest_words_of_the_index() -> None:
    known = {"점검표", "점검", "백업", "메일"}
    assert query_terms("점검표를", known.__contains__)[0].parts == ("점검표",)
    assert query_terms("메일백업", known.__contains__)[0].parts == ("메일", "백업")


def test_query_without_known_words_still_has_its_pairs() -> None:
    assert query_tokens("맥세이프", unknown).grams == ["맥세", "세이", "이프"]


def test_han_and_kana_are_found_by_pairs_and_single_characters() -> None:
    assert {"検索", "索の", "検", "の"} <= set(index_tokens("検索の").grams)


@pytest.mark.parametrize("text", ["", "   ", "(", "<<<", "*", '"', "…", "\ud800", "\x00"])
def test_text_without_words_has_none(text: str) -> None:
    assert query_terms(text, unknown) == []
    assert index_tokens(text).words == []


def test_word_too_long_for_a_term_is_found_whole() -> None:
    for long in ("Zm9vYmFy" * 60, "가나다라" * 60):
        word = query_terms(long, unknown)[0].whole
        assert len(word.encode()) <= TOKEN_BYTES
        assert word in index_tokens(f"앞 {long} 뒤").words
        assert word not in index_tokens(f"앞 {long}{long[:4]} 뒤").words


@pytest.mark.parametrize(
    "text", ["다시" * 35_000, "a" * 400_000, "고쳤다. " * 12_000, "aB" * 100_000, "(a,b);" * 20_000]
)
def test_repetitive_text_gives_few_tokens(text: str) -> None:
    tokens = index_tokens(text)
    assert len(tokens.words) <= 10 * REPEATS
    assert len(tokens.grams) <= 10 * REPEATS


def test_tokens_of_one_text_are_bounded() -> None:
    tokens = index_tokens(" ".join(f"w{i}" for i in range(MOST_TOKENS * 2)))
    assert len(tokens.words) == MOST_TOKENS


def test_control_characters_separate_words() -> None:
    assert {"앞", "뒤", "검색어"} <= set(index_tokens("앞\x00뒤 검색어").words)


def test_morphemes_know_their_place() -> None:
    text = "😀 package.json을 고쳤고 배포는 안 된다"
    found = {morph.form: text[morph.start : morph.end] for morph in morphemes(text)}
    assert found["package.json"] == "package.json"
    assert found["배포"] == "배포"
    assert found["고치"] == "고쳤"
    assert found["안"] == "안"


def test_decomposed_hangul_is_the_same_word() -> None:
    text = "점검표를 저장했다"
    assert morphemes(unicodedata.normalize("NFD", text)) == morphemes(text)
    assert index_tokens(unicodedata.normalize("NFD", text)) == index_tokens(text)


def test_lines_without_hangul_are_not_analysed() -> None:
    assert morphemes("only english here\n" + "x" * 100_000) == []


def test_highlight_is_exactly_the_word() -> None:
    text = "😀👨‍👩‍👧 점검표를 저장했다 🚀 끝"
    assert [text[start:end] for start, end in highlights(text, "점검표")] == ["점검표"]


def test_highlight_does_not_reach_into_other_words() -> None:
    text = "a terrible ERR in err_log"
    assert [text[start:end] for start, end in highlights(text, "err")] == ["ERR", "err"]
    assert highlights("see getUser and get_user", "get_user") == [(16, 24)]


def test_highlight_keeps_combining_marks() -> None:
    text = "cafe\u0301x e\u0302\u0323 끝"
    composed = unicodedata.normalize("NFC", text)
    for _, end in highlights(text, "ệ"):
        assert unicodedata.category(composed[end])[0] != "M"


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200))
def test_no_text_breaks_tokens_or_morphemes(text: str) -> None:
    tokens = index_tokens(text)
    assert all(
        token and len(token.encode()) <= TOKEN_BYTES and not token.isspace() for token in tokens.words + tokens.grams
    )
    composed = unicodedata.normalize("NFC", text)
    assert all(0 <= m.start < m.end <= len(composed) for m in morphemes(text))
    assert all(0 <= start < end <= len(composed) for start, end in highlights(text, text))


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_every_word_of_a_query_is_in_the_text_it_came_from(text: str) -> None:
    indexed = surface_tokens(text)
    assert {term.whole for term in query_terms(text, unknown)} <= set(indexed.words)

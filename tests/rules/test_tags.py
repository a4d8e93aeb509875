from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rules.tags import MOST, compile_lexicon, compiled, lexicon, normalise, tags_for
from tests.rules.conversations import built_in, mined, talk


@pytest.mark.parametrize("written", ["DB", "db", "ＤＢ", " Db ", "#db", "db,"])
def test_a_tag_has_one_spelling(written: str) -> None:
    assert normalise(written) == "db"


def test_blanks_inside_a_tag_become_hyphens() -> None:
    assert normalise("File  Lock") == "file-lock"
    assert normalise(unicodedata.normalize("NFD", "파일 잠금")) == "파일-잠금"


@given(st.text(max_size=40))
@example("0\r_")
@example("ͅ㎯")
def test_normalising_again_changes_nothing(written: str) -> None:
    assert normalise(normalise(written)) == normalise(written)


def test_a_candidate_carries_known_words_and_identifiers() -> None:
    (found,) = mined("u 캐시 키는 `build_key` 대신 `cache.py`의 상수로 하자", "a 네")
    assert {"cache", "build_key", "cache.py"} <= set(found.tags)


def test_tags_are_at_most_seven_and_broad_ones_come_last() -> None:
    texts = ["테스트 코드 파일에서 캐시, 락, 인증, 결제, 로그, 세션, 큐, 타임아웃을 바꿨다"]
    tags = tags_for(texts, talk("u x"), lexicon(built_in()))
    assert len(tags) == MOST
    assert not {"test", "code", "file"} & set(tags)


@pytest.mark.parametrize(
    ("said", "tags", "never"),
    [
        ("INSERT ... ON CONFLICT DO NOTHING으로 바꿨다", {"sql"}, {"insert", "on", "do", "nothing"}),
        ("start every write with BEGIN IMMEDIATE", {"sql"}, {"begin", "immediate"}),
        ("SQLite를 쓰기 전에 테스트 파일을 고쳤다", {"sqlite", "database"}, {"test", "file"}),
        ("`ConnectionError` in retry_policy before version 2", {"connectionerror", "retry_policy"}, {"version", "before"}),
        ("see src/jobs/nightly_sync.py, not `key` or ENT-12", {"nightly_sync.py"}, {"key", "ent", "nightly_sync"}),
    ],
)  # fmt: skip
def test_tags_are_technologies_and_names_not_common_words(said: str, tags: set[str], never: set[str]) -> None:
    found = set(tags_for([said], talk("u x"), lexicon(built_in())))
    assert tags <= found and not never & found


def test_a_broad_tag_stands_only_where_no_other_does() -> None:
    assert tags_for(["버튼을 옮겼다"], talk("u x"), lexicon(built_in())) == ("button",)
    assert tags_for(["버튼 색을 tailwind로 바꿨다"], talk("u x"), lexicon(built_in())) == ("tailwind", "css")


def test_what_every_turn_speaks_of_comes_last() -> None:
    session = talk(*(f"u cache {n}" for n in range(9)))
    assert tags_for(["the cache and the webhook"], session, lexicon(built_in())) == ("webhook", "cache")


def test_the_project_is_no_tag_of_its_own() -> None:
    assert "shop" not in tags_for(["`shop` uses a cache"], talk("u x"), lexicon(built_in()))


def test_the_compiled_lexicon_is_json_and_says_the_same() -> None:
    words = lexicon(built_in())
    assert compiled(json.loads(json.dumps(compile_lexicon(words)))) == words

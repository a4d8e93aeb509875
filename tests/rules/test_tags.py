from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.tags import MOST, compile_lexicon, compiled, expand, lexicon, normalise, tags_for
from tests.rules.conversations import built_in, mined, talk


@pytest.mark.parametrize("written", ["DB", "db", "ＤＢ", " Db ", "#db", "db,"])
def test_a_tag_has_one_spelling(written: str) -> None:
    assert normalise(written) == "db"


def test_blanks_inside_a_tag_become_hyphens() -> None:
    assert normalise("File  Lock") == "file-lock"
    assert normalise(unicodedata.normalize("NFD", "파일 잠금")) == "파일-잠금"


@given(st.text(max_size=40))
def test_normalising_again_changes_nothing(written: str) -> None:
    assert normalise(normalise(written)) == normalise(written)


def test_aliases_widen_both_ways() -> None:
    words = lexicon(built_in())
    assert "cache" in expand(["캐시"], words)
    assert "캐시" in expand(["cache"], words)
    assert {"database", "db", "sqlite"} <= expand(["DB"], words)


def test_a_candidate_carries_known_words_and_identifiers() -> None:
    (found,) = mined("u 캐시 키는 `build_key` 대신 `cache.py`의 상수로 하자", "a 네")
    assert {"cache", "build_key", "cache.py"} <= set(found.tags)


def test_tags_are_at_most_seven_and_broad_ones_come_last() -> None:
    texts = ["테스트 코드 파일에서 캐시, 락, 인증, 결제, 로그, 세션, 큐, 타임아웃을 바꿨다"]
    tags = tags_for(texts, talk("u x"), lexicon(built_in()))
    assert len(tags) == MOST
    assert not {"test", "code", "file"} & set(tags)


def test_the_project_is_no_tag_of_its_own() -> None:
    assert "shop" not in tags_for(["`shop` uses a cache"], talk("u x"), lexicon(built_in()))


def test_the_compiled_lexicon_is_json_and_says_the_same() -> None:
    words = lexicon(built_in())
    assert compiled(json.loads(json.dumps(compile_lexicon(words)))) == words

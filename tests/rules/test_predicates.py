from __future__ import annotations

import pytest

from rules.predicates import Predicate, predicates
from store.tokens import morphemes


def last(said: str) -> Predicate:
    return predicates(morphemes(said), asks=said.endswith("?"))[-1]


@pytest.mark.parametrize("said", ["해결했다", "해결됐어요", "해결하였습니다", "해결되었습니다"])
def test_every_past_ending_is_one_predicate(said: str) -> None:
    found = last(said)
    assert (found.lemma, found.mood, found.past, found.negated) == ("해결", "statement", True, False)


@pytest.mark.parametrize(
    ("said", "mood"),
    [
        ("3으로 고정하자", "propose"),
        ("표준 출력을 씁시다", "propose"),
        ("파일로 남기기로 했다", "settled"),
        ("파일로 남기기로 결정했어", "settled"),
        ("SQLite를 빼는 걸로 결정했어요", "settled"),
        ("버튼을 옮겨줘", "request"),
        ("버튼을 옮겨주세요", "request"),
        ("두 개를 합쳐줄래?", "request"),
        ("그대로 유지해", "bare"),
        ("가운데에 위치해야 돼", "must"),
        ("그렇게 하면 안 돼", "forbid"),
        ("재시작하지 마세요", "forbid"),
        ("바꿀까요?", "question"),
        ("고쳤나요?", "question"),
        ("설정하시면 됩니다", "offer"),
        ("할 수 있습니다", "can"),
        ("보여주면 좋겠어", "wish"),
        ("수정하겠습니다", "intend"),
        ("변경할게요", "intend"),
        ("변경할 예정입니다", "intend"),
        ("해결하려고 했지만", "attempt"),
        ("바꾸는 게 좋겠어", "prefer"),
        ("오래된 파일 제거", "nominal"),
        ("설정에서 제거함", "nominal"),
    ],
)
def test_moods_are_read_off_the_ending(said: str, mood: str) -> None:
    assert last(said).mood == mood


@pytest.mark.parametrize("said", ["해결되지 않았다", "해결하지 못했습니다", "안 됩니다", "쓰지 말자", "할 수 없습니다"])
def test_negation_is_seen_before_and_after_the_verb(said: str) -> None:
    assert last(said).negated


def test_no_morphemes_give_no_predicates() -> None:
    assert predicates([]) == ()

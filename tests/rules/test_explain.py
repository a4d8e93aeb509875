from __future__ import annotations

import pytest

from rules.explain import Remark, explain
from rules.mine import mine
from store.tokens import morphemes
from tests.rules.conversations import built_in, talk

SOLVED = (
    "u 로그인이 자꾸 풀려요. 에러가 나요",
    "a 토큰 갱신이 두 번 호출되는 것이 원인이었습니다.",
    "u 고쳐줘",
    "a 갱신 요청을 하나로 합치도록 수정했습니다.",
)


def remarks(*said: str) -> list[Remark]:
    explanation = explain(talk(*said), built_in(), morphemes)
    return [remark for heard in explanation.heard for remark in heard.remarks]


@pytest.mark.parametrize(
    "said", [SOLVED, ("u 캐시는 LRU로 하자", "a 네"), ("u hi",), ("t a tool said", "u 결정: 포트는 8080")]
)
def test_it_explains_what_mining_finds(said: tuple[str, ...]) -> None:
    conversation = talk(*said)
    found = mine(conversation, built_in(), morphemes=morphemes)
    assert explain(conversation, built_in(), morphemes).candidates == tuple(found)


def test_the_rules_that_spoke_are_named_with_the_words_that_fit() -> None:
    (choice,) = remarks("u 캐시는 LRU로 하자")
    (claim,) = [claim for claim in choice.claims if claim.part == ("decision", "choice")]
    assert [(hit.reading.id, hit.fired) for hit in claim.rules] == [("decision.propose.ko", [(2, "로 하자")])]
    assert claim.before == claim.points == 1.1
    assert (choice.candidates, choice.fate) == ((0,), "")


def test_the_guard_that_refuses_is_named_with_the_parts_it_refuses() -> None:
    (remark,) = remarks("u 결정: Redis로 바꿀까?")
    (refusal,) = [each for each in remark.objections if each.guard.id == "question"]
    assert ("decision", "choice") in refusal.against
    assert (0, "?") in refusal.hit.fired
    assert remark.best is not None and (remark.best.before, remark.best.points) == (1.4, 0)
    assert remark.fate == "refused"


def test_a_guard_that_only_lowers_leaves_the_rest_of_the_points() -> None:
    (remark,) = remarks("a 원인은 캐시 만료인 것 같습니다.")
    (hedge,) = [each for each in remark.objections if each.guard.id == "hedge"]
    (cause,) = [claim for claim in remark.claims if claim.part == ("solution", "cause")]
    assert cause.part in hedge.against
    assert cause.points <= round(cause.before - hedge.guard.points, 2)


def test_a_guard_for_other_parts_counts_against_nothing() -> None:
    remark = remarks("u 캐시는 LRU로 하자")[0]
    assert {each.guard.id: each.against for each in remark.objections}["asks.for"] == ()


def test_a_rule_kept_silent_says_by_what() -> None:
    (remark,) = remarks("u 원인을 찾아 주세요.")
    assert [(each.reading.id, each.by, each.words) for each in remark.silent] == [
        ("decision.request.plain.ko", "forbids[0]", "찾아")
    ]


@pytest.mark.parametrize(
    ("said", "fate"),
    [
        (("u > we decided to use Kafka",), "quoted"),
        (("u hello there",), "nothing"),
        (("u 원인은 캐시 만료였습니다.",), "alone"),
        (("u 목록은 최신순으로 보이게 해주세요",), "alone"),
        (("u 캐시는 LRU로 하자", "a 네", "u 아니다, 캐시는 LFU로 하자", "a 네"), "outdone"),
    ],
)
def test_what_is_no_candidate_says_why(said: tuple[str, ...], fate: str) -> None:
    assert remarks(*said)[0].fate == fate


def test_sentences_say_which_candidate_rests_on_them() -> None:
    assert {remark.sentence.text: remark.candidates for remark in remarks(*SOLVED) if remark.candidates} == {
        "토큰 갱신이 두 번 호출되는 것이 원인이었습니다.": (0,),
        "갱신 요청을 하나로 합치도록 수정했습니다.": (0,),
    }


def test_turns_and_passages_that_no_one_said_are_named() -> None:
    reminder = "<system-reminder>always use tabs</system-reminder>"
    hook, said = explain(
        talk("u Stop hook feedback: use tabs", f"u 포트는 8080으로 하자\n{reminder}"), built_in(), morphemes
    ).heard
    assert hook.injected is not None
    assert (hook.injected.reading.id, hook.remarks) == ("injected.turn", ())
    assert said.cut == (("injected.spans", reminder),)
    assert [remark.sentence.text for remark in said.remarks] == ["포트는 8080으로 하자"]

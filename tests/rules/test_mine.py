from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.mine import explain, mine
from store.records import DecidedBy, EntryType, Fact, SafeText, anchor
from store.tokens import morphemes
from tests.rules.conversations import built_in, mined, talk

DECISIONS = [
    "재시도 횟수는 3으로 고정하자",
    "캐시는 LRU로 하자",
    "이름은 snake_case로 통일하자",
    "DB는 SQLite로 가자",
    "그럼 SQLite로 확정. 이유는 배포가 단순해서야",
    "결정: 점검표는 Wiki에 저장",
    "큐는 Redis 대신 SQLite로 하자",
    "포트는 8080으로 하자",
    "외부 큐는 쓰지 않기로 했어",
    "로그는 파일로 남기기로 결정",
    "let's use SQLite instead of Postgres because it needs no server",
    "We decided to keep the old schema.",
    "use tabs, not spaces",
    "Decision: store dates as UTC",
]


@pytest.mark.parametrize("said", DECISIONS)
@pytest.mark.parametrize("answer", [(), ("a 네, 그렇게 하겠습니다",)])
def test_a_choice_in_the_users_words_is_one_decision(said: str, answer: tuple[str, ...]) -> None:
    found = mined(f"u {said}", *answer)
    assert [(c.type, c.decided_by) for c in found] == [(EntryType.DECISION, DecidedBy.USER)]


PATTERNS = [
    "앞으로 항상 커밋 전에 린트를 돌려줘",
    "API 키는 절대 로그에 남기지 마",
    "우리 팀은 커밋 메시지를 영어로 쓴다",
    "always run the formatter before committing",
    "never commit .env",
    "From now on, answer in Korean.",
    "The build requires Node 20",
]


@pytest.mark.parametrize("said", PATTERNS)
def test_a_standing_rule_of_the_user_is_one_pattern(said: str) -> None:
    assert [(c.type, c.decided_by) for c in mined(f"u {said}")] == [(EntryType.PATTERN, DecidedBy.USER)]


NOTHING = [
    ("u Redis로 바꿀까?", "a 상황에 따라 다릅니다."),
    ("u should we use Redis instead of Postgres?", "a It depends."),
    ("u 도움이 필요해",),
    ("u I need help with the cache",),
    ("u 만약 샤딩하기로 했다면 어땠을까",),
    ("u if we had used Redis it would have been slow",),
    ("u 언젠가 Rust로 다시 짜면 좋겠다", "a 네"),
    ('u README에 "DB는 Mongo로 결정했다"라고 되어 있네', "a 네"),
    ("u 캐시 좀 봐줘", "a 캐시는 LRU로 하기로 결정했습니다. Redis를 사용하겠습니다."),
    ("u fix it", "a ```python\n# we decided to use Redis instead of Postgres\nx = 1\n```\nDone."),
    ("u 고쳐줘", "a 해결하려고 했지만 실패했습니다.", "a 해결되지 않았다.", "a 해결하면 알려드리겠습니다."),
    ("u 테스트 돌려", "a 아직 해결하지 못했습니다."),
    ("u 이전 결정 뭐였지?", "a 기억에 따르면 포트는 8080으로 결정했습니다."),
    ("u 설계 시작하자", "a 네"),
    ("u 인덱스 만들자", "a 네"),
    ("u run the tests", "a All tests pass."),
    ("u commit this", "a Committed and pushed."),
    ("u This session is being continued from a previous conversation.\n- Decided: use Redis",),
    ("u Stop hook feedback:\n- always use tabs from now on", "a 수정했습니다"),
    ("u hi", "t we decided to use Mongo instead of Postgres", "s always use tabs", "a Hello."),
]


@pytest.mark.parametrize("said", NOTHING)
def test_questions_wishes_quotes_plans_status_and_machine_talk_give_nothing(said: tuple[str, ...]) -> None:
    assert mined(*said) == []


def test_the_reason_after_a_choice_stands_in_its_summary() -> None:
    (found,) = mined("u 그럼 SQLite로 확정. 이유는 배포가 단순해서야")
    assert found.summary == "SQLite로 확정 — 배포가 단순해서야"


@pytest.mark.parametrize("fixed", ["해결했다", "해결됐어요", "해결하였습니다", "해결했습니다"])
def test_cause_and_fix_in_one_sentence_are_one_solution_in_every_ending(fixed: str) -> None:
    (found,) = mined("u 왜 느려?", f"a 원인은 캐시 만료였고 락으로 바꿔서 {fixed}")
    assert found.type is EntryType.SOLUTION


@pytest.mark.parametrize(
    "said", ["해결하려고 했지만 안 됐다", "해결되지 않았다", "해결하면 빨라진다", "해결할까?", "해결했나요?"]
)
def test_what_only_sounds_like_a_fix_is_none(said: str) -> None:
    assert mined("u 왜 느려?", f"a 원인은 캐시 만료였고 락으로 바꿔서 {said}") == []


APART = (
    "u 로그인이 자꾸 풀려요. 에러가 나요",
    "a 토큰 갱신이 두 번 호출되는 것이 원인이었습니다.",
    "u 고쳐줘",
    "a 갱신 요청을 하나로 합치도록 수정했습니다.",
)


def test_cause_and_fix_of_different_turns_are_one_candidate() -> None:
    (found,) = mined(*APART)
    assert found.type is EntryType.SOLUTION
    assert "원인" in found.summary and "합치도록" in found.summary
    assert [quote.turn for quote in found.evidence] == ["s1-2", "s1-4"]


def test_a_confirming_turn_changes_no_anchor_and_raises_confidence() -> None:
    (before,), (after,) = mined(*APART), mined(*APART, "u 이제 잘 되네 고마워")
    assert after.anchors == before.anchors == (anchor("갱신 요청을 하나로 합치도록 수정했습니다."),)
    assert after.confidence > before.confidence


@pytest.mark.parametrize("complaint", ["아직 안 돼", "여전히 에러가 나", "it still fails"])
def test_a_fix_that_the_user_refutes_is_dropped(complaint: str) -> None:
    assert mined(*APART, f"u {complaint}", "a 다시 보겠습니다.") == []


def test_a_fix_whose_tests_fail_is_dropped_and_one_whose_tests_pass_is_trusted_more() -> None:
    said = ("u CI fails", "a The issue was a stale lock file. I fixed it by deleting the lock first.")
    (plain,) = mined(*said)
    (passed,) = mined(*said, facts=(Fact("s1-2", "test", True, SafeText("pytest")),))
    assert passed.confidence > plain.confidence
    assert mined(*said, facts=(Fact("s1-2", "test", False, SafeText("pytest")),)) == []


def test_a_yes_with_a_number_takes_the_option_it_answers() -> None:
    options = "a Two options:\n\n1. A JSON file per session\n2. A SQLite table with one row per session"
    (found,) = mined("u how should we store it?", options, "u yes, go with option 2", "a Done.")
    assert (found.summary, found.decided_by) == ("A SQLite table with one row per session", DecidedBy.CONFIRMED)


def test_an_option_picked_by_number_in_korean_is_the_decision() -> None:
    options = "a 두 가지가 있습니다.\n1. 세션마다 JSON 파일을 둔다\n2. SQLite 테이블에 한 줄씩 저장한다"
    (found,) = mined("u 저장은 어떻게 할까?", options, "u 2번으로 하자")
    assert found.summary == "SQLite 테이블에 한 줄씩 저장한다"


def test_a_bare_yes_takes_the_proposal_as_a_statement() -> None:
    (found,) = mined("u 이름이 길어", "a config 모듈 이름을 settings로 바꿀까요?", "u 네", "a 바꿨습니다.")
    assert (found.summary, found.decided_by) == ("config 모듈 이름을 settings로 바꾸기로 함", DecidedBy.CONFIRMED)


def test_a_proposal_nobody_took_up_is_none() -> None:
    assert mined("u 캐시는?", "a LRU로 바꾸는 것을 추천합니다.", "u 아니, 됐어") == []


def test_a_rejected_idea_gives_one_negative_decision_and_the_choice_made() -> None:
    found = mined(
        "u Mongo로 바꿀까?",
        "a Mongo를 추천합니다. Mongo로 결정하겠습니다.",
        "u 아니, Mongo는 쓰지 말자",
        "u 만약 샤딩하기로 했다면 어땠을까",
        "u 도움이 필요해",
        "u 그럼 SQLite로 확정. 이유는 배포가 단순해서야",
    )
    assert [c.summary for c in found] == ["Mongo는 쓰지 말자", "SQLite로 확정 — 배포가 단순해서야"]


REVERSALS = [
    ("로그는 파일로 남기기로 결정", "로그는 파일 말고 stderr로 남기기로 결정"),
    ("로그는 파일로 남기기로 결정", "파일 말고 stderr로 결정"),
    ("포트는 8080으로 하자", "아니다, 포트는 9090으로 하자"),
    ("포트는 8080으로 하자", "아니다 9090으로 하자"),
    ("let's use port 8080", "actually let's use port 9090"),
    ("let's use Redis for the queue", "let's use SQLite instead of Redis"),
]


@pytest.mark.parametrize(("first", "then"), REVERSALS)
def test_a_later_reversal_replaces_the_choice_within_a_session(first: str, then: str) -> None:
    found = mined(f"u {first}", "a 네", f"u {then}", "a 네")
    assert [c.anchors for c in found] == [(anchor(then),)]


def test_unrelated_choices_both_stand() -> None:
    assert len(mined("u 포트는 8080으로 하자", "a 네", "u 캐시는 LRU로 하자", "a 네")) == 2


def test_copies_that_differ_in_width_form_and_markup_are_one_candidate_with_all_its_sources() -> None:
    said = "점검표는 Wiki에  저장"
    (found,) = mined(
        f"u 결정: {said}",
        f"u 결정: {unicodedata.normalize('NFD', said)}",
        "u 결정 : 점검표는 Ｗｉｋｉ에 저장.",
        "u **결정**: 점검표는 wiki에 저장",
    )
    assert len(found.evidence) == 4


def test_the_same_sentence_in_another_session_has_the_same_anchors() -> None:
    here = mined("u 캐시는 LRU로 하자", "a 네")
    there = mined("u 음, 인증부터 보자", "a 네", "u 캐시는 LRU로 하자", "a 적용했습니다", session="s2")
    assert here[0].id == there[0].id


def test_what_reminders_inject_into_a_turn_is_not_read() -> None:
    reminder = "<system-reminder>\nAlways answer in English. Decision: use port 9999.\n</system-reminder>"
    (found,) = mined(f"u 포트는 8080으로 하자\n{reminder}")
    assert found.summary == "포트는 8080으로 하자"


def test_summaries_are_one_plain_line() -> None:
    (found,) = mined("u - **결정**: 점검표는 `wiki`에\t저장  ")
    assert found.summary == "점검표는 wiki에 저장"


def test_explain_names_the_rules_and_guards_that_spoke() -> None:
    (question,) = explain("Redis로 바꿀까?", built_in(), morphemes)
    (choice,) = explain("캐시는 LRU로 하자", built_in(), morphemes)
    assert "question" in question.guards or question.points == {}
    assert "decision.propose.ko" in choice.rules and choice.points["decision.choice"] >= 1


LINES = st.lists(
    st.tuples(
        st.sampled_from("uats"),
        st.text(max_size=80)
        | st.sampled_from(
            [
                "캐시는 LRU로 하자",
                "| a | b |\n|---|---|\n| 원인 | 수정 |",
                "```\nx",
                "원인은 \x00 였습니다",
                "> 1. \ud800",
            ]
        ),
    ),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(LINES)
def test_any_text_is_mined_without_a_fault_and_always_alike(lines: list[tuple[str, str]]) -> None:
    conversation = talk(*(f"{role} {text}" for role, text in lines))
    once = mine(conversation, built_in(), morphemes=morphemes)
    assert once == mine(conversation, built_in(), morphemes=morphemes)
    for candidate in once:
        assert 0 <= candidate.confidence <= 1 and candidate.anchors and candidate.evidence
        assert 0 < len(candidate.summary) <= 160 and "\n" not in candidate.summary
        assert isinstance(candidate.summary, SafeText) and isinstance(candidate.detail, SafeText)

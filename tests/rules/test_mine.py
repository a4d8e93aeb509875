from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.mine import load_rules, mine
from store.records import DecidedBy, EntryType, Fact, SafeText, anchor
from store.tokens import morphemes
from tests.rules.conversations import built_in, mined, talk

DECISIONS = [
    "재시도 횟수는 3으로 고정하자",
    "캐시는 LRU로 하자",
    "이름은 snake_case로 통일하자",
    "DB는 SQLite로 가자",
    "그럼 SQLite로 확정. 이유는 배포가 단순해서야",
    "결정: 회의록은 Drive에 저장",
    "큐는 Redis 대신 SQLite로 하자",
    "포트는 8080으로 하자",
    "외부 큐는 쓰지 않기로 했어",
    "로그는 파일로 남기기로 결정",
    "let's use SQLite instead of Postgres because it needs no server",
    "We decided to keep the old schema.",
    "use tabs, not spaces",
    "Decision: store dates as UTC",
    "API 서버 프레임워크는 FastAPI로 결정했습니다",
    "상태 관리는 Zustand로 갈게요",
    "그냥 polling으로 가죠",
    "ORM 안 쓰고 raw SQL로 할 거야",
    "배포는 매주 화요일에 하는 걸로 하자",
    "인증은 JWT 말고 세션으로 하자. 로그아웃 처리가 쉬우니까",
    "일단 SQLite로 시작하고 나중에 옮기자",
    "We'll use Postgres for the main store.",
    "I'd rather use SQLite than Postgres here.",
    "no, let's not use Redis. In-memory is enough",
    "Let's stick with REST, GraphQL is overkill here.",
    "we're going to use Terraform for this",
]

REQUESTS = [
    ("날짜는 YYYY-MM-DD 형식으로 보여줘", "날짜 형식을 YYYY-MM-DD로 변경했습니다."),
    ("에러 메시지는 한국어로 표시되게 해줘", "에러 메시지를 한국어로 표시하도록 수정했습니다."),
    ("관리자만 삭제할 수 있게 해줘", "관리자만 삭제할 수 있도록 권한 검사를 추가했습니다."),
    ("API 버전은 v2로 통일", "v2로 통일했습니다."),
    ("다크모드는 지원 안 해도 돼", "다크모드 코드를 제거했습니다."),
    ("only admins should be able to delete posts", "Added a check so only admins can delete posts."),
    ("rename the table to members", "Renamed the table to members."),
    ("I want errors to be shown in a toast, not an alert", "Errors are shown in a toast now."),
    ("please sort the list by date, newest first", "The list is sorted by date now, newest first."),
    ("no need for a separate package, inline it", "Inlined it."),
]


@pytest.mark.parametrize("said", DECISIONS)
@pytest.mark.parametrize("answer", [(), ("a 네, 그렇게 하겠습니다",)])
def test_a_choice_in_the_users_words_is_one_decision(said: str, answer: tuple[str, ...]) -> None:
    found = mined(f"u {said}", *answer)
    assert [(c.type, c.decided_by) for c in found] == [(EntryType.DECISION, DecidedBy.USER)]


@pytest.mark.parametrize(("request_", "report"), REQUESTS)
def test_a_requirement_that_was_carried_out_is_a_decision_and_an_ignored_one_is_not(request_: str, report: str) -> None:
    (found,) = mined(f"u {request_}", f"a {report}")
    assert (found.type, found.decided_by) == (EntryType.DECISION, DecidedBy.USER)
    assert found.anchors == (anchor(request_),)
    assert mined(f"u {request_}") == []


PATTERNS = [
    "앞으로 항상 커밋 전에 린트를 돌려줘",
    "API 키는 절대 로그에 남기지 마",
    "우리 팀은 커밋 메시지를 영어로 쓴다",
    "always run the formatter before committing",
    "never commit .env",
    "From now on, answer in Korean.",
    "From now on, always seed the database before the suite; an empty table cost us an hour today",
    "The build requires Node 20",
    "절대 main에 바로 push하지 마",
    "마이그레이션 파일은 절대 수정하지 말 것",
    "테스트 없이 머지하면 안 돼",
    "릴리스할 때마다 CHANGELOG를 갱신해야 해",
    "테스트는 실제 DB로 돌리는 게 원칙이야",
    "나는 탭보다 스페이스를 선호해",
    "In this repo we use conventional commits.",
    "make sure to run the linter before every commit",
    "by the way, the staging DB is reset every night",
    "I prefer short functions and no comments that repeat the code",
]

FACTS = [
    "SQLite does not support dropping a column with a foreign key before version 3.35.",
    "GitHub Actions caches are scoped to a branch, so a cache made on a feature branch is not available on main.",
    "`git stash` does not include untracked files unless you pass -u.",
    "Vite는 기본적으로 VITE_ 접두사가 없는 환경 변수를 노출하지 않습니다.",
    "macOS에서는 파일 이름이 NFD로 저장되므로 비교하기 전에 NFC로 정규화해야 합니다.",
    "Postgres에서는 SERIAL 컬럼에 직접 값을 넣어도 시퀀스가 증가하지 않습니다.",
]


@pytest.mark.parametrize("said", FACTS)
def test_how_a_tool_behaves_is_a_pattern_on_the_assistants_word(said: str) -> None:
    (found,) = mined("u why?", f"a {said}")
    assert (found.type, found.decided_by) == (EntryType.PATTERN, DecidedBy.REPORTED)
    assert found.confidence < 0.75


SOLUTIONS = [
    ("빌드가 안 돼", "빌드 실패 원인은 Node 버전 불일치였습니다. .nvmrc에 20을 고정해서 해결했습니다."),
    ("왜 한글이 깨져?", "파일을 cp949로 읽고 있었습니다. utf-8로 읽도록 수정했습니다."),
    (
        "메모리가 계속 늘어",
        "리스너가 해제되지 않아서 메모리가 누수되고 있었습니다. 언마운트할 때 해제하도록 고쳤습니다.",
    ),
    (
        "CORS 에러가 나",
        "CORS 에러는 서버가 OPTIONS 요청에 응답하지 않아서 발생했습니다. OPTIONS 처리를 추가하여 해결하였습니다.",
    ),
    ("the build fails on CI", "The build failed because Node 18 lacks the flag. I pinned Node 20 in the workflow."),
    ("tests are flaky", "The tests shared one temp directory. Fixed by giving each test its own tmp_path."),
    ("pip install fails", "Turns out the wheel isn't published for 3.13. Pinning Python to 3.12 resolved it."),
    (
        "TypeError: x is undefined",
        "`user` is undefined on the first render. Added an optional chain, and the error is gone.",
    ),
    ("why do the dates shift?", "Dates were parsed as UTC and shown in local time. Now we parse them as local dates."),
]


@pytest.mark.parametrize(("problem", "answer"), SOLUTIONS)
def test_what_was_wrong_and_what_removed_it_are_one_solution(problem: str, answer: str) -> None:
    (found,) = mined(f"u {problem}", f"a {answer}")
    assert (found.type, found.decided_by) == (EntryType.SOLUTION, DecidedBy.REPORTED)


def test_the_user_who_tells_of_a_fix_is_believed() -> None:
    (found,) = mined("u 프록시 설정이 빠져 있어서 요청이 실패했고, vite.config에 proxy를 추가하니까 됐어")
    assert (found.type, found.decided_by) == (EntryType.SOLUTION, DecidedBy.USER)


def test_a_second_fix_replaces_the_one_that_was_refuted() -> None:
    (found,) = mined(
        "u fix the flaky test",
        "a The flake was caused by a shared port. I set the port to 0.",
        "u still failing",
        "a The real cause was a leaked thread. I join the thread in teardown now.",
        "u that fixed it",
    )
    assert found.summary.startswith("The real cause was a leaked thread")


def test_of_several_attempts_only_the_one_that_worked_counts() -> None:
    chain = (
        "u 테스트가 가끔 실패해",
        "a 포트가 겹치는 것이 원인입니다. 포트를 0으로 바꿨습니다.",
        "u 아직 실패해",
        "a 타임아웃이 짧은 것이 원인입니다. 타임아웃을 30초로 늘렸습니다.",
        "u 여전히 안 돼",
        "a 진짜 원인은 스레드가 닫히지 않는 것이었습니다. 정리할 때 스레드를 닫도록 고쳤습니다.",
    )
    for ending in ((), ("u 이제 잘 되네",)):
        (found,) = mined(*chain, *ending)
        assert found.summary.endswith("정리할 때 스레드를 닫도록 고쳤습니다")


def test_within_an_exchange_a_fix_whose_test_failed_gives_way_to_the_next() -> None:
    (found,) = mined(
        "u the tests fail",
        "a The cause is a shared port. I set the port to 0.",
        "a The real cause was a leaked thread. I join the thread in teardown now.",
        facts=(Fact("s1-2", "test", False, SafeText("pytest")), Fact("s1-3", "test", True, SafeText("pytest"))),
    )
    assert found.summary.startswith("The real cause was a leaked thread")


def test_a_fix_refuted_some_exchanges_later_is_dropped() -> None:
    (found,) = mined(
        "u the page is slow",
        "a The cause is a missing index. I added an index on created_at.",
        "u thanks",
        "a You are welcome.",
        "u the page is still slow with the index",
        "a The real cause was a query per row. I joined the tables in one query.",
    )
    assert found.summary.startswith("The real cause was a query per row")


def test_a_cause_and_the_fix_that_a_decision_led_to_are_one_solution_beside_it() -> None:
    found = mined(
        "u 첫 화면이 늦게 떠. 왜 그런지 봐 줘.",
        "a 원인은 서버가 뜰 때 색인을 비우고 첫 요청에서 다시 만드는 것이었습니다.",
        "u 그럼 배포 직후에 색인을 미리 만드는 걸로 하자. 이유는 사용자가 기다리면 안 되니까.",
        "a 네, 배포 스크립트 끝에서 색인을 미리 만들도록 바꿔서 첫 화면 지연을 해결했습니다.",
    )
    assert sorted(c.type.value for c in found) == ["decision", "solution"]
    (solution,) = (c for c in found if c.type is EntryType.SOLUTION)
    assert "원인" in solution.summary and "미리 만들도록" in solution.summary


def test_a_bare_answer_to_a_question_is_a_decision_with_the_question() -> None:
    (found,) = mined("u 서버 띄워줘", "a 포트를 몇 번으로 할까요?", "u 9090", "a 포트를 9090으로 설정했습니다.")
    assert found.summary == "포트를 몇 번으로 할까요? → 9090"
    (other,) = mined("u 서버 띄워줘", "a 관리자 포트는요?", "u 9090", "a 관리자 포트를 9090으로 설정했습니다.")
    assert found.anchors != other.anchors


@pytest.mark.parametrize("said", PATTERNS)
def test_a_standing_rule_of_the_user_is_one_pattern(said: str) -> None:
    assert [(c.type, c.decided_by) for c in mined(f"u {said}")] == [(EntryType.PATTERN, DecidedBy.USER)]


NOTHING = [
    ("u Redis로 바꿀까?", "a 상황에 따라 다릅니다."),
    ("u should we use Redis instead of Postgres?", "a It depends."),
    ("u 도움이 필요해",),
    ("u I need help with the cache",),
    ("u 만약 서버를 나눴다면 어땠을까",),
    ("u if we had used Redis it would have been slow",),
    ("u 언젠가 Rust로 다시 짜면 좋겠다", "a 네"),
    ('u README에 "DB는 Kafka로 결정했다"라고 되어 있네', "a 네"),
    ("u 캐시 좀 봐줘", "a 캐시는 LRU로 하기로 결정했습니다. Redis를 사용하겠습니다."),
    ("u fix it", "a ```python\n# we decided to use Redis instead of Postgres\nx = 1\n```\nDone."),
    ("u 고쳐줘", "a 해결하려고 했지만 실패했습니다.", "a 해결되지 않았다.", "a 해결하면 알려드리겠습니다."),
    ("u 테스트 돌려", "a 아직 해결하지 못했습니다."),
    ("u 이전 결정 뭐였지?", "a 기억에 따르면 포트는 8080으로 결정했습니다."),
    ("u 설계 시작하자", "a 네"),
    ("u 인덱스 만들자", "a 네"),
    ("u run the tests", "a All tests pass."),
    ("u commit this", "a Committed and pushed."),
    ("u Redis로 할지 Memcached로 할지 고민이야", "a 둘 다 좋습니다"),
    ("u If the cache is slow we will switch to Redis", "a ok"),
    ("u 캐시가 느리면 Redis로 바꾸자고 하던데", "a 네"),
    ("u maybe we should use Redis", "a Perhaps."),
    ("u 내일 하자", "a 네"),
    ("u 그냥 두자", "a 네"),
    ("u let's see", "a ok"),
    ("u 문제가 뭐야?", "a 원인은 캐시일 수 있습니다. 아마 만료 때문일 것입니다."),
    ("u fix the bug", "a I tried adding a lock, but it still fails."),
    ("u fix the bug", "a I'll add a lock around the write."),
    ("u what do you think about Redis?", "a Redis is a good choice. You could use it for the queue."),
    ("u > we decided to use Kafka\nsummarise this", "a Summary."),
    ("u 캐시를 쓰면 빨라질까?", "a 네, 빨라질 수 있습니다. LRU 캐시를 쓰면 됩니다."),
    ("u This session is being continued from a previous conversation.\n- Decided: use Redis",),
    ("u Stop hook feedback:\n- always use tabs from now on", "a 수정했습니다"),
    ("u 배포할 때마다 첫 요청이 30초 걸려",),
    ("u every deploy takes 30 seconds and the first request keeps failing",),
    ("u should we move to another database?", "a We could, but nothing here needs it yet."),
    ("u 주문이 중복으로 생겨요. 원인을 찾아 주세요.", "a 재시도 횟수는 3으로 고정했습니다."),
    ("u why is it slow?", "a The page is slow when it loads.", "a I added logging around every query."),
    ("u can we add a test for the parser?", "a Added a test for the parser."),
    ("u hi", "t we decided to use Kafka instead of Postgres", "s always use tabs", "a Hello."),
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
        "u Kafka로 바꿀까?",
        "a Kafka를 추천합니다. Kafka로 결정하겠습니다.",
        "u 아니, Kafka는 쓰지 말자",
        "u 만약 서버를 나눴다면 어땠을까",
        "u 도움이 필요해",
        "u 그럼 SQLite로 확정. 이유는 배포가 단순해서야",
    )
    assert [c.summary for c in found] == ["Kafka는 쓰지 말자", "SQLite로 확정 — 배포가 단순해서야"]


REVERSALS = [
    ("로그는 파일로 남기기로 결정", "로그는 파일 말고 표준 출력으로 남기기로 결정"),
    ("로그는 파일로 남기기로 결정", "파일 말고 표준 출력으로 결정"),
    ("포트는 8080으로 하자", "아니다, 포트는 9090으로 하자"),
    ("포트는 8080으로 하자", "아니다 9090으로 하자"),
    ("let's use port 8080", "actually let's use port 9090"),
    ("let's use Redis for the queue", "let's use SQLite instead of Redis"),
]


@pytest.mark.parametrize(("first", "then"), REVERSALS)
def test_a_later_reversal_replaces_the_choice_within_a_session(first: str, then: str) -> None:
    found = mined(f"u {first}", "a 네", f"u {then}", "a 네")
    assert [c.anchors for c in found] == [(anchor(then),)]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("포트는 8080으로 하자", "캐시는 LRU로 하자"),
        ("캐시는 LRU로 하자", "그냥 포트는 8080으로 하자"),
        ("let's use Redis for the queue", "actually let's also use Redis for the cache"),
        ("큐는 Redis로 하자", "캐시도 Redis로 하자"),
    ],
)
def test_choices_about_different_matters_both_stand(first: str, then: str) -> None:
    assert len(mined(f"u {first}", "a 네", f"u {then}", "a 네")) == 2


def test_copies_that_differ_in_width_form_and_markup_are_one_candidate_with_all_its_sources() -> None:
    said = "회의록은 Drive에  저장"
    (found,) = mined(
        f"u 결정: {said}",
        f"u 결정: {unicodedata.normalize('NFD', said)}",
        "u 결정 : 회의록은 Ｄｒｉｖｅ에 저장.",
        "u **결정**: 회의록은 drive에 저장",
    )
    assert len(found.evidence) == 4


def test_the_same_sentence_in_another_session_has_the_same_anchors() -> None:
    here = mined("u 캐시는 LRU로 하자", "a 네")
    there = mined("u 음, 인증부터 보자", "a 네", "u 캐시는 LRU로 하자", "a 적용했습니다", session="s2")
    assert here[0].id == there[0].id


def test_what_reminders_inject_into_a_turn_is_not_read() -> None:
    reminder = "<system-reminder>\nAlways answer in English. Decision: use port 7777.\n</system-reminder>"
    (found,) = mined(f"u 포트는 8080으로 하자\n{reminder}")
    assert found.summary == "포트는 8080으로 하자"


def test_summaries_are_one_plain_line() -> None:
    (found,) = mined("u - **결정**: 회의록은 `drive`에\t저장  ")
    assert found.summary == "회의록은 drive에 저장"


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


def test_users_own_rules_replace_add_and_take_away(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(OWN_RULES, encoding="utf-8")
    ruleset, faults = load_rules(tmp_path)
    said = talk("u 포고: 포트는 8080", "a 네", "u 결정: 캐시는 LRU", "a 네")
    assert faults == []
    assert [c.rule for c in mine(said, ruleset, morphemes=morphemes)] == ["decision.decree"]


OWN_RULES = """
schema: 1
rules:
  - {id: decision.label, enabled: false}
  - id: decision.decree
    type: decision
    part: choice
    role: user
    weight: 1.2
    cues: ['^포고:']
    examples: {match: ['포고: 포트는 8080'], miss: ['포트는 8080']}
"""


def test_a_broken_rule_is_named_with_its_line_and_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("schema: 1\nrules:\n  - id: x\n    cues: ['(']\n", encoding="utf-8")
    ruleset, faults = load_rules(tmp_path)
    assert {fault.line for fault in faults} == {3, 4}
    assert ruleset.rules == built_in().rules


CONFIRMATIONS = [
    ("u 좋아, 잘 된다",),
    ("u thanks, works now",),
    ("a All tests pass.",),
    ("u 커밋해줘", "a 커밋했습니다."),
]


@pytest.mark.parametrize("more", CONFIRMATIONS)
@pytest.mark.parametrize(("problem", "answer"), [*SOLUTIONS, *REQUESTS, *((said, "네") for said in DECISIONS)])
def test_what_was_mined_keeps_its_id_when_a_confirmation_follows(
    problem: str, answer: str, more: tuple[str, ...]
) -> None:
    (before,) = mined(f"u {problem}", f"a {answer}")
    assert [c.id for c in mined(f"u {problem}", f"a {answer}", *more)] == [before.id]


HOSTILE = {
    "stars": "*a " * 16_000,
    "backticks": "`" * 50_000,
    "brackets": "[" * 50_000,
    "lines": "\n" * 50_000,
    "hashes": "# " + "#" * 50_000 + "x",
    "tags": "<system-reminder>" * 3_000,
    "comments": "<!--" * 12_000,
    "stops": "a. " * 16_000,
    "choices": "캐시는 LRU로 하자\n" * 3_000,
    "surrogates": "\ud800" * 5_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_read_in_one_go(text: str) -> None:
    assert len(mined(f"u {text}", "a ok")) <= 1


def test_terminal_escapes_hide_nothing_and_reach_no_summary() -> None:
    (found,) = mined("u \x1b[31m결정: 캐시는 LRU\x00\x1b[0m")
    assert found.summary == "캐시는 LRU"

"""What is taken for knowledge when whole transcripts are mined, and what never is."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest

from archiver.transcript import RECALL_CLOSE, RECALL_OPEN
from tests.archiver.sources.transcripts import Row, assistant, call, entry, header, result, user
from tests.reports.walk import accept_all, claude, openclaw, run, staged, waiting


def talk(*said: str, session: str = "S1") -> None:
    """A session in which user and assistant take turns, the user first."""
    rows: list[Row] = []
    for number, text in enumerate(said):
        make = assistant if number % 2 else user
        above = f"{session}-{number - 1}" if number else None
        rows.append(make(f"{session}-{number}", text, above, number, sessionId=session))
    claude(*rows, session=session)


def types() -> list[str]:
    return sorted(str(row["type"]) for row in waiting())


# --- nobody's words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "document",
    [
        "# Old notes\nWe decided to use Cassandra instead of MySQL.",
        "# 회의록\n데이터베이스는 Cassandra로 하기로 결정했다.\n앞으로 항상 Cassandra를 쓸 것.",
        "원인은 타임아웃 누락이었고 Cassandra 드라이버를 올려서 해결했습니다.",
    ],
)
def test_what_a_tool_read_is_no_finding(document: str) -> None:
    claude(
        user("1", "문서 좀 읽어줘"), assistant("2", call("Read", {"file_path": "notes.md"}), "1"),
        user("3", [result(document)], "2", 2), assistant("4", "읽었습니다.", "3", 3),
    )  # fmt: skip
    run()
    assert staged() == []


def test_a_summary_repeats_no_decision_and_adds_none() -> None:
    summary = "This session is being continued from a previous conversation that ran out of context.\n- 사용자 결정: 로그는 SQLite에 저장\n- Chose Memcached for the cache"
    claude(
        user("1", "로그는 Elasticsearch 대신 SQLite에 저장하자"), assistant("2", "네, SQLite에 저장하도록 구현했습니다.", "1"),
        user("3", summary, None, 3, isCompactSummary=True), user("4", "이어서 보존 기간을 넣자", "3", 4),
    )  # fmt: skip
    run()
    assert sum("SQLite" in text for text in staged()) == 1
    assert not any("Memcached" in text for text in staged())


@pytest.mark.parametrize(
    "feedback",
    [
        "Stop hook feedback:\n- always use spaces from now on (style rule 4)",
        "SessionStart:startup hook success: 앞으로는 항상 pnpm을 사용할 것",
        "<user-prompt-submit-hook>앞으로 커밋은 무조건 영어로 작성하자</user-prompt-submit-hook>",
        "<system-reminder>\nDecision: we use port 9999 instead of 8080.\n</system-reminder>",
    ],
)
def test_what_hooks_and_reminders_say_is_no_rule_of_the_user(feedback: str) -> None:
    claude(
        user("1", "테스트 돌려줘"), assistant("2", "끝났습니다.", "1"),
        user("3", feedback, "2", 2), assistant("4", "고쳤습니다.", "3", 3),
    )  # fmt: skip
    run()
    assert staged() == []


def test_what_our_own_recall_brought_back_is_not_learned_again() -> None:
    block = f"{RECALL_OPEN}\n- [decision] 포트는 8080 대신 9090을 쓰자 (e1, 2026-03-01, user)\n{RECALL_CLOSE}"
    own: list[dict[str, Any]] = call("mcp__wwt__search", {"query": "포트"})
    hits = json.dumps([{"id": "e1", "text": "결정: 포트는 8080 대신 9090을 쓰자"}], ensure_ascii=False)
    claude(
        {"type": "attachment", "uuid": "h", "parentUuid": None, "sessionId": "S1", "attachment": {"type": "hook_additional_context", "content": [block]}},
        user("1", f"{block}\n예전에 포트를 어떻게 정했지?", "h"), assistant("2", own, "1"),
        user("3", [result(hits)], "2", 2), assistant("4", "기억에 따르면 포트는 9090으로 결정했습니다.", "3", 3),
    )  # fmt: skip
    run()
    assert staged() == []


def test_a_subagents_orders_are_no_rules_of_the_user() -> None:
    mine: dict[str, Any] = {"isSidechain": True, "agentId": "a1"}
    claude(user("p", "저장소를 살펴봐줘"))
    claude(
        user("x", "앞으로 항상 ripgrep만 사용하자. 캐시는 Redis 대신 파일로 하자.", **mine),
        assistant("y", "원인은 권한 문제였고 chmod로 해결했습니다.", "x", **mine),
        session="agent-a1", folder="-srv-shop/S1/subagents",
    )  # fmt: skip
    run()
    assert staged() == []


def test_an_abandoned_branch_gives_nothing() -> None:
    claude(
        user("1", "저장소를 고르자"), assistant("2", "네.", "1"),
        user("3", "DB는 MySQL 대신 Mongo로 하자", "2", 3), assistant("4", "네, Mongo로 구현했습니다.", "3", 4),
        user("5", "DB는 MySQL 대신 SQLite로 하자", "2", 6), assistant("6", "네, SQLite로 구현했습니다.", "5", 7),
    )  # fmt: skip
    run()
    assert not any("Mongo" in text for text in staged())
    assert sum("SQLite" in text for text in staged()) == 1


def test_error_placeholders_are_no_solutions() -> None:
    failed = assistant("2", "API Error: 500 the cause was overload, fixed by retrying", "1", isApiErrorMessage=True)
    failed["message"]["model"] = "<synthetic>"
    claude(user("1", "고쳐줘"), failed)
    run()
    assert staged() == []


# --- a person's words that are no knowledge --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        ("Kafka로 바꿀까?", "Kafka를 추천합니다. Kafka로 결정하겠습니다.", "아니, 아직 정하지 말자"),
        ("Should we switch to Kafka?", "I would go with Kafka. Let's use Kafka.", "not yet"),
        ("만약 Kafka를 쓰기로 했다면 어땠을까", "더 복잡했을 것입니다."),
        ("도움이 필요해", "무엇을 도와드릴까요?"),
        ("I need help with Kafka", "Sure, what is wrong?"),
        ("오늘 점심 얘기: 국수 먹었어", "네."),
        ("점심에 국수 먹었어", "네."),
        ("Kafka를 쓰는 방법도 있고 RabbitMQ를 쓰는 방법도 있어", "둘 다 가능합니다."),
        ("다음 주에 Kafka로 옮길 계획이야", "알겠습니다."),
    ],
)
def test_questions_wishes_and_ideas_nobody_took_up_give_nothing(said: tuple[str, ...]) -> None:
    talk(*said)
    run()
    assert staged() == []


def test_a_rejected_idea_leaves_the_choice_that_was_made() -> None:
    talk(
        "큐를 Kafka로 바꿀까?", "Kafka를 추천합니다. Kafka로 결정하겠습니다.",
        "아니, Kafka는 쓰지 말자", "알겠습니다.",
        "그럼 큐는 Postgres로 확정. 이유는 운영할 서버가 하나뿐이라서야", "네, Postgres로 구현했습니다.",
    )  # fmt: skip
    run()
    chosen = [row for row in waiting() if "Postgres" in f"{row['summary']}{row['detail']}"]
    assert [row["type"] for row in chosen] == ["decision"]
    assert "서버가 하나" in f"{chosen[0]['summary']}{chosen[0]['detail']}"
    assert {row["type"] for row in waiting()} <= {"decision", "pattern"}
    assert len(waiting()) <= 2


@pytest.mark.parametrize("last", ["아직 해결하지 못했습니다.", "The build still fails; I have not found the cause."])
def test_an_unsolved_failure_and_a_log_that_says_error_are_no_solutions(last: str) -> None:
    claude(
        user("1", "테스트 돌려줘"), assistant("2", call("Bash", {"command": "pytest"}), "1"),
        user("3", [result("test_error_paths PASSED\n0 errors, 0 failed")], "2", 2),
        assistant("4", call("Bash", {"command": "make"}, "t2"), "3", 3),
        user("5", [result("make: *** [all] Error 2", "t2", failed=True)], "4", 4), assistant("6", last, "5", 5),
    )  # fmt: skip
    run()
    assert staged() == []


# --- sameness --------------------------------------------------------------------------------------------------------


def test_copies_in_other_widths_forms_and_markup_are_one_candidate() -> None:
    sentence = "결정: 보고서는 Notion 대신  Wiki에 저장하자"
    talk(
        sentence, "네.", unicodedata.normalize("NFD", sentence), "네.",
        "결정 : 보고서는 Ｎｏｔｉｏｎ 대신 Ｗｉｋｉ에 저장하자.", "네.", "**결정**: 보고서는 notion 대신 wiki에 저장하자", "네.",
    )  # fmt: skip
    run()
    assert len(waiting()) == 1
    assert len({quote["turn"] for quote in waiting()[0]["evidence"] if quote["role"] == "user"}) == 4


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("로그는 파일에 남기기로 결정", "로그는 파일 말고 stdout에 남기기로 결정"),
        ("재시도 횟수는 3으로 고정하자", "재시도 횟수는 5로 고정하자"),
        ("Let's keep the logs for 7 days.", "Let's keep the logs for 30 days."),
    ],
)
def test_a_changed_mind_in_a_later_session_is_offered_not_swallowed(old: str, new: str) -> None:
    talk(old, "네, 적용했습니다.", session="S1")
    run()
    assert accept_all().accepted == 1
    talk(new, "네, 적용했습니다.", session="S2")
    run()
    assert len(waiting()) == 1
    repeats = waiting()[0]["repeats"]
    assert repeats is None or repeats["supersedes"]


def test_one_mind_changed_within_a_session_leaves_the_last_word() -> None:
    talk("세션은 파일에 저장하자", "네, 구현했습니다.", "세션은 파일 말고 Redis에 저장하자", "네, Redis로 바꿨습니다.")
    run()
    assert any("Redis" in text for text in staged())
    assert len(waiting()) == 1


def test_copied_turns_of_a_resumed_file_give_one_candidate() -> None:
    first = [
        user("aaaaaaaa-0000-4000-8000-000000000001", "캐시는 FIFO 대신 LRU로 하자"),
        assistant(
            "aaaaaaaa-0000-4000-8000-000000000002", "네, LRU로 구현했습니다.", "aaaaaaaa-0000-4000-8000-000000000001"
        ),
    ]
    claude(*first)
    for number in (2, 3):
        session = f"S{number}"
        own = user(
            f"aaaaaaaa-0000-4000-8000-00000000000{number + 3}", "로그도 보여줘", first[1]["uuid"], 5, sessionId=session
        )
        claude(*[{**row, "sessionId": session} for row in first], own, session=session)
    run()
    assert sum("LRU" in text for text in staged()) == 1


def test_a_mirrored_answer_counts_once() -> None:
    fixed = "원인은 시계 오차였고 NTP를 켜서 해결했습니다."
    openclaw(
        header(), entry("aaaaaaa1", "user", "토큰이 자꾸 만료돼"), entry("aaaaaaa2", "assistant", fixed, "aaaaaaa1", 2, provider="p", model="m"),
        entry("aaaaaaa3", "assistant", fixed, "aaaaaaa2", 2, provider="openclaw", model="delivery-mirror"),
    )  # fmt: skip
    run()
    assert types() == ["solution"]
    assert len([quote for quote in waiting()[0]["evidence"] if quote["role"] == "assistant"]) == 1

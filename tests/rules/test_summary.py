from __future__ import annotations

import pytest

from rules.summary import line, settled, stated, told
from store.records import SafeText
from tests.rules.conversations import mined

REQUESTS = [
    ("승인 전에는 열지 못하도록 막아 주세요", "목록을 승인 전에 열지 못하도록 막았습니다", "승인 전에는 열지 못하도록 막기로 함"),
    ("그리고 날짜는 `YYYY-MM-DD` 형식으로 바꿔줘", "날짜 형식을 바꿨습니다", "날짜는 YYYY-MM-DD 형식으로 바꾸기로 함"),
    ("에러 메시지는 한국어로 표시되게 해 주세요", "에러 메시지를 한국어로 표시하도록 수정했습니다", "에러 메시지는 한국어로 표시되게 하기로 함"),
    ("can we just sort the list by `created_at`, newest first?", "Sorted the list by created_at.", "sort the list by created_at, newest first"),
    ("Let's not cache error pages", "Error pages are not cached now.", "do not cache error pages"),
    ("ok, I'd like you to keep the sidebar fixed please", "The sidebar is fixed now.", "keep the sidebar fixed"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "report", "summary"), REQUESTS)
def test_a_request_becomes_a_statement_that_keeps_its_names(asked: str, report: str, summary: str) -> None:
    (found,) = mined(f"u {asked}", f"a {report}")
    assert found.summary == summary


@pytest.mark.parametrize(
    ("proposal", "summary"),
    [
        ("캐시를 Redis로 바꾸는 것을 추천합니다", "캐시를 Redis로 바꾸기로 함"),
        ("표를 서버에서 만드는 게 좋습니다", "표를 서버에서 만들기로 함"),
        ("이름을 settings로 바꿀까요?", "이름을 settings로 바꾸기로 함"),
        ("Should I rename it to settings?", "rename it to settings"),
    ],
)
def test_a_proposal_becomes_what_was_agreed(proposal: str, summary: str) -> None:
    assert stated(line(SafeText(proposal))) == summary


def test_a_report_loses_its_teller_and_its_unfinished_end() -> None:
    assert told(SafeText("Let me raise the limit to 50")) == "raise the limit to 50"
    assert told(SafeText("Fixed the slow start by setting")) == "Fixed the slow start"


def test_a_request_that_only_points_takes_its_title_from_what_was_done() -> None:
    said = ("u can you change it back please?", "a Restored the rounded corners of the search box.")
    (found,) = mined(*said)
    assert found.summary == "Restored the rounded corners of the search box"
    assert mined(said[0], "a Done.") == []


@pytest.mark.parametrize("yes", ["그대로 가자", "응 그렇게 하자"])
def test_an_agreement_is_never_a_summary(yes: str) -> None:
    found = mined(
        "u 캐시가 느려", "a 캐시를 Redis로 바꾸는 것을 추천합니다.", f"u {yes}", "a 캐시를 Redis로 바꿨습니다."
    )
    assert [c.summary for c in found] == ["캐시를 Redis로 바꾸기로 함"]


def test_asking_is_cut_but_never_to_nothing() -> None:
    assert settled(SafeText("let's go")) == "let's go"

from __future__ import annotations

import pytest

from rules.reference import dangles


@pytest.mark.parametrize(
    "said",
    [
        "document it in the handbook",
        "please turn them back",
        "let's not make this change",
        "this is where I got lost",
        "should be red",
        "for 3 keep the old name",
        "We could, but nothing here needs it yet.",
        "이대로 진행해줘",
        "이거 너무 크니까 줄여줘",
        "그렇게 바꿔줘",
    ],
)
def test_a_sentence_that_only_points_dangles(said: str) -> None:
    assert dangles(said)


@pytest.mark.parametrize(
    "said",
    [
        "add a check so it fails fast",
        "let's use SQLite instead of Postgres because it needs no server",
        "this page should only list open orders",
        "make sure that errors are logged",
        "make it possible to skip tests",
        "keep the retry limit for 3 seconds",
        "캐시 설정이 느리니까 이걸 파일로 옮기자",
        "캐시는 그대로 두자",
        "이 화면은 열린 주문만 보여줘",
    ],
)
def test_a_sentence_that_names_its_matter_stands_alone(said: str) -> None:
    assert not dangles(said)

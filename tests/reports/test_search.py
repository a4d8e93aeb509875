"""What a person types is found: Korean with its particles, names and ids, whatever punctuation it is typed with."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.cli.search import find
from archiver.home import Home
from archiver.search import Results
from tests.archiver.sources.transcripts import Row, assistant, user, write
from tests.reports.walk import claude, run, search

LINES = {
    "form": "신청서를 Confluence에 올리도록 바꿨다",
    "form2": "확인은 신청서에서 시작합니다",
    "mail": "결재 연동을 메신저로 보낸다",
    "taste": "취향 설정을 남긴다",
    "ticket": "OPS-0417에 따라 parse_rows 를 tiny-lib 로 옮김",
    "other-ticket": "OPS-0499 는 보류",
    "dark": "다크모드 전환이 끊긴다",
    "mode": "세이프모드 서버 이전",
    "cannot": "안 되는 까닭을 못 찾음",
    "english": "Retries were flaky because the backoff never reset",
    "deploying": "we are deploying the gateway behind nginx",
    "mixed": "Docker컨테이너에서 timeout이 발생합니다",
    "hash": "commit 9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0 를 되돌림",
    "run-on": "가나다라마바사아자차카타파하거너더러머버서어저처커터퍼허 라는 긴 말",
    "error": 'TypeError: cannot read https://c.test/a?b=2 at row 31"',
    "path": "설정은 src/config/app-settings.yaml:42 에 있다",
    "version": "numpy 2.1.3 에서 C++ 와 C# 바인딩이 깨짐",
    "emoji": "😀👨‍👩‍👧 장바구니를 저장했다 🚀 끝",
    "decomposed": "\u1109\u1161\u11bc\u1111\u116e\u11b7 이미지를 줄였다",
    "width": "ＡＰＩ 호출을 줄였다",
    "noise": "오늘은 문서만 조금 고쳤습니다",
}


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One archive for all queries of this module, each line in a session of its own."""
    root = tmp_path_factory.mktemp("searched")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WWT_HOME", str(root / "wwt"))
        patch.setenv("HOME", str(root))
        for number, (name, line) in enumerate(LINES.items()):
            rows: list[Row] = [
                user(f"u{number}", line, sessionId=name),
                assistant(f"a{number}", "네.", f"u{number}", sessionId=name),
            ]
            write(root / "in" / f"{name}.jsonl", *rows)
        run(root / "in")
    return root / "wwt"


@pytest.fixture
def here(archived: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WWT_HOME", str(archived))


def sessions_for(words: str, limit: int = 10) -> list[str]:
    return [hit.session for hit in search(words, limit=limit)]


def by_words(words: str) -> list[str]:
    """Sessions of the hits that share a word with the query, in order."""
    return [hit.session for hit in search(words) if hit.spans]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("신청서", {"form", "form2"}),
        ("Confluence", {"form"}),
        ("결재", {"mail"}),
        ("연동", {"mail"}),
        ("취향", {"taste"}),
        ("메신저 연동 결재", {"mail"}),
        ("OPS-0417", {"ticket"}),
        ('"OPS-0417"', {"ticket"}),
        ("ops 0417", {"ticket"}),
        ("parse_rows", {"ticket"}),
        ("tiny-lib", {"ticket"}),
        ("다크모드", {"dark"}),
        ('"다크모드"', {"dark"}),
        ("안 되는", {"cannot"}),
        ("못 찾음", {"cannot"}),
        ("flaky backoff", {"english"}),
        ("FLAKY", {"english"}),
        ("deploy gateway", {"deploying"}),
        ("Docker 컨테이너", {"mixed"}),
        ("timeout", {"mixed"}),
        ("9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0", {"hash"}),
        ("가나다라마바사아자차카타파하거너더러머버서어저처커터퍼허", {"run-on"}),
        ("TypeError: cannot read https://c.test/a?b=2 at row 31", {"error"}),
        ("app-settings.yaml", {"path"}),
        ("src/config/app-settings.yaml:42", {"path"}),
        ("C++", {"version"}),
        ("2.1.3", {"version"}),
        ("장바구니", {"emoji"}),
        ("상품 이미지", {"decomposed"}),
        ("API", {"width"}),
    ],
)
@pytest.mark.usefixtures("here")
def test_the_line_that_says_it_is_first(query: str, first: set[str]) -> None:
    assert set(sessions_for(query)[: len(first)]) == first


@pytest.mark.parametrize(
    ("query", "never"), [("신청서", "noise"), ("다크모드", "noise"), ("세이프모드", "noise"), ("OPS-0417", "noise")]
)
@pytest.mark.usefixtures("here")
def test_a_line_that_shares_no_word_does_not_match_by_words(query: str, never: str) -> None:
    assert never not in by_words(query)


@pytest.mark.usefixtures("here")
def test_another_ticket_never_stands_above() -> None:
    ranked = sessions_for("OPS-0417", limit=20)
    assert "other-ticket" not in ranked or ranked.index("ticket") < ranked.index("other-ticket")


QUERIES = [
    "대기:", '31"', "https://c.test", "<<<", "-retry", "(", ")", "[", "{}", "AND", "OR NOT", "t:[", "*", "?", "~", "^2", "", "   ", "\t",
    "[ERROR] a:b", '"미완성 인용', "it's", "\\", "a\x00b", "\ud800", "😀", "‮", "x" * 5000, "가" * 5000, "+", "&&", "ㅋㅋㅋ", "field:value",
]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.usefixtures("here")
def test_no_text_is_an_error(query: str) -> None:
    assert isinstance(find(Home.open(), query, project=None, everything=True), Results)


@pytest.mark.parametrize("word", ["장바구니", "저장", "끝"])
@pytest.mark.usefixtures("here")
def test_highlights_are_whole_words_behind_an_emoji(word: str) -> None:
    hit = next(hit for hit in search(word) if hit.session == "emoji")
    assert any(hit.text[start:end].startswith(word) for start, end in hit.spans)
    assert "👨‍👩‍👧" in hit.text


@pytest.mark.parametrize(
    "text",
    ["다시" * 20_000, "a" * 100_000, "ㅋ" * 60_000, "iVBORw0KGgo" * 8_000, "검색을 고쳤다. " * 3_000, "가 " * 30_000, "{\"a\":1}," * 10_000],
    ids=["syllables", "letters", "jamo", "base64", "sentences", "blanks", "json"],
)  # fmt: skip
def test_long_repetitive_text_stalls_nothing(text: str) -> None:
    """A stall shows as minutes: analysing such a text in one piece takes that long."""
    claude(user("1", text), user("2", "정상 문장 hh56", "1", 4))
    run()
    assert "hh56" in search("hh56", limit=1)[0].text

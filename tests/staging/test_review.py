from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from staging.promote import Desk, Move, decide
from staging.review import Tally, as_text, from_text, plain, review
from store import knowledge
from store.records import Entry, EntryType, Scope
from tests.staging.factories import Script, candidate, desk_at, document, redact, stage, summaries, waits

THREE = ("첫째 결정은 이것으로 한다", "둘째 결정은 저것으로 한다", "셋째 결정은 그것으로 한다")


def sit(
    desk: Desk, answers: Iterable[str | None], *, edits: Sequence[str | None] = (), limit: int = 20
) -> tuple[Tally, Script]:
    script = Script(answers, edits=edits)
    return review(desk, waits(desk), ask=script.ask, show=script.show, edit=script.edit, limit=limit), script


def three(home: Path) -> Desk:
    desk = desk_at(home)
    stage(desk, *(candidate(text, confidence=0.9 - n / 10) for n, text in enumerate(THREE)))
    return desk


def entries(desk: Desk) -> list[Entry]:
    with desk.database.transaction() as tx:
        return knowledge.list_entries(tx)


def test_a_sitting_is_a_string_of_answers(wwt_home: Path) -> None:
    desk = three(wwt_home)
    tally, _ = sit(desk, "arq")
    assert tally == Tally(accepted=1, rejected=1, left=1)
    assert summaries(waits(desk)) == [THREE[2]] and [e.summary for e in entries(desk)] == [THREE[0]]


def test_leaving_is_never_an_answer(wwt_home: Path) -> None:
    desk = three(wwt_home)
    tally, script = sit(desk, [None])
    assert tally == Tally(left=3) and len(script.asked) == 1 and len(waits(desk)) == 3


def test_back_undoes_the_last_decision_of_the_sitting(wwt_home: Path) -> None:
    desk = three(wwt_home)
    tally, _ = sit(desk, "abrq")
    assert tally == Tally(rejected=1, left=2) and entries(desk) == []


def test_back_returns_from_a_skip_and_stops_at_the_beginning(wwt_home: Path) -> None:
    desk = three(wwt_home)
    tally, script = sit(desk, "sbbaq")
    assert tally == Tally(accepted=1, left=2)
    assert any("began" in line for line in script.shown)


def test_back_undoes_a_whole_reject_like(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    many = [candidate(f"결정 번호 {n}은 이렇다") for n in range(30)]
    stage(desk, candidate("이것만 다른 규칙이다", rule="other", confidence=0.1), *many)
    tally, _ = sit(desk, ["R", "rule", "b", "q"], limit=40)
    assert tally == Tally(left=31) and len(waits(desk)) == 31


def test_back_after_the_last_item_of_a_rejection_by_session(wwt_home: Path) -> None:
    desk = three(wwt_home)
    stage(desk, candidate("다른 세션에서 정한 것이다", confidence=0.1, rule="other"), session="s2")
    tally, _ = sit(desk, ["R", "session", "b", "s", "q"])
    assert tally.rejected == 0 and tally.skipped == 1 and len(waits(desk)) == 4


def test_reject_like_reaches_beyond_what_is_shown(wwt_home: Path) -> None:
    desk = three(wwt_home)
    tally, _ = sit(desk, ["R", "rule"], limit=1)
    assert tally == Tally(rejected=3) and waits(desk) == ()


def test_an_edit_is_redacted_saved_and_shown_again(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("포트는 8080을 쓰기로 한다"))
    token = "ghp_" + "Z9x" * 12
    edited = f"type: pattern\ntags: port, 서버\nsummary: 포트는 설정에서 읽는다\n\n토큰 {token}\n# 이유\n"
    tally, script = sit(desk, "e", edits=[edited])
    assert "포트는 8080" in script.edited[0] and tally.left == 1
    (item,) = document(desk).entries
    assert (item.type, item.summary, item.tags) == (EntryType.PATTERN, "포트는 설정에서 읽는다", ("port", "서버"))
    assert token not in item.detail and "# 이유" in item.detail and token not in "".join(script.shown)
    sit(desk, "a")
    again = stage(desk, candidate("포트는 8080을 쓰기로 한다"), candidate("포트는 설정에서 읽는다"), session="s2")
    assert again.quiet == 2


@pytest.mark.parametrize("edited", [None, "nonsense", "type: idea\nsummary: x\n", "type: decision\nsummary:\n\nx"])
def test_an_edit_that_says_nothing_changes_nothing(wwt_home: Path, edited: str | None) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    before = document(desk)
    sit(desk, "e", edits=[edited])
    assert document(desk) == before


def test_an_edit_that_could_not_be_read_is_gone_on_with(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    refused = "type: idea\nsummary: 손으로 쓴 요약\n"
    _, script = sit(desk, "ee", edits=[refused, refused.replace("idea", "pattern")])
    assert script.edited[1] == refused and any("line 1" in line for line in script.shown)
    assert document(desk).entries[0].summary == "손으로 쓴 요약"


def test_what_is_put_before_an_editor_reads_back() -> None:
    from staging.documents import item_of

    item = item_of(candidate(detail="# 제목\n\n둘째 문단", tags=("a", "b")))
    assert from_text(as_text(item), item, redact) == item
    assert from_text(as_text(item).replace("\n", "\r\n"), item, redact) == item


def test_merging_offers_the_nearest_entry_first(wwt_home: Path) -> None:
    desk = three(wwt_home)
    sit(desk, "aa")
    stage(desk, candidate("둘째 결정을 저것으로 정한다", turn="t5"), session="s2")
    target = next(one for one in waits(desk) if one.header.source_session == "s2")
    script = Script(["m"])
    review(desk, [target], ask=script.ask, show=script.show, edit=script.edit)
    assert THREE[1] in script.asked[1].choices[0].label
    tally, _ = sit(desk, ["s", "m", script.asked[1].choices[0].value])
    assert tally.merged + tally.skipped == 2


def test_without_entries_nothing_is_offered_to_merge_into(wwt_home: Path) -> None:
    desk = three(wwt_home)
    tally, script = sit(desk, "muaq")
    assert tally.accepted == 1 and all(question.choices for question in script.asked)


def test_superseding_shows_both_and_replaces(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("웹 검색은 A를 사용한다"))
    uid = decide(desk, waits(desk)[0], Move.ACCEPT).entry or ""
    stage(desk, candidate("웹 검색은 B를 사용한다", turn="t2"), session="s2")
    tally, _ = sit(desk, ["u", uid])
    assert tally.superseded == 1 and [e.summary for e in entries(desk)] == ["웹 검색은 B를 사용한다"]


def test_retagging_and_everywhere_are_saved_before_the_decision(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    tally, _ = sit(desk, ["t", " DB, 캐시 ,,", "g"])
    assert tally.left == 1 and document(desk).entries[0].scope is Scope.GLOBAL
    sit(desk, "a")
    assert [(e.tags, e.scope) for e in entries(desk)] == [(("db", "캐시"), Scope.GLOBAL)]


def test_what_an_editor_changed_under_the_question_is_shown_before_it_is_decided(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("로그는 파일로 보낸다"))
    (path,) = desk.queue.folder.glob("*.json")
    script = Script("aq")
    first = script.ask

    def ask(question: object) -> str | None:
        if not script.asked:
            path.write_text(path.read_text(encoding="utf-8").replace("파일로", "화면으로"), encoding="utf-8")
        return first(question)  # type: ignore[arg-type]

    tally = review(desk, waits(desk), ask=ask, show=script.show, edit=script.edit)
    assert tally == Tally(left=1) and "화면으로" in script.shown[-1]


def test_what_another_sitting_decided_is_passed_over(wwt_home: Path) -> None:
    desk = three(wwt_home)
    listed = waits(desk)
    decide(desk, listed[0], Move.REJECT)
    script = Script("a")
    review(desk, listed, ask=script.ask, show=script.show, edit=script.edit)
    assert [e.summary for e in entries(desk)] == [THREE[1]]


def test_nothing_to_review_asks_nothing(wwt_home: Path) -> None:
    tally, script = sit(desk_at(wwt_home), "a")
    assert tally == Tally() and script.asked == [] and script.shown == ["Nothing to review."]


def test_the_best_of_many_are_shown_with_their_number(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, *(candidate(f"결정 번호 {n}은 이렇다") for n in range(1143)))
    _, script = sit(desk, "q")
    assert "1 of 20 (the best 20 of 1,143)" in script.shown[0]


def test_a_candidate_stands_under_the_names_that_the_lists_use(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(
        desk,
        candidate("재시도 횟수는 3으로 고정하자"),
        session="cc4553b7-0000-4000-8000-000000000001",
        project="/home/u/paylink",
    )
    _, script = sit(desk, "q")
    assert script.shown[0].splitlines()[2].endswith(" · paylink · cc4553b7")


def test_nothing_shown_can_drive_a_terminal(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("평범한 결정을 하나 적는다", rule="x\x1b[2J"), session="\x1b]0;evil\x07\u202e")
    _, script = sit(desk, ["R"])
    everything = "".join(script.shown) + "".join(c.label for q in script.asked for c in q.choices)
    assert not set("\x1b\x07\u202e").intersection(everything)
    assert plain("가\x1b[31m\u202e나\n\ud800") == "가[31m나\n"

from pathlib import Path

import pytest

from staging.dedup import Known
from staging.intake import known_text, take_in
from staging.promote import Move, decide, support
from store import knowledge
from store.records import anchor
from store.verdicts import lookup_in
from tests.staging.factories import candidate, desk_at, document, source, stage, summaries, waits


def test_a_rejected_candidate_stays_rejected_after_remining(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("이름은 snake_case로 통일하자"))
    decide(desk, waits(desk)[0], Move.REJECT)
    for session in ("s1", "s2"):
        again = stage(desk, candidate("**이름**은 snake_case로  통일하자.", turn="t7"), session=session)
        assert (again.added, again.quiet) == (0, 1)
    assert waits(desk) == () and not list(desk.queue.folder.glob("*.json"))


def test_any_one_decided_anchor_keeps_a_candidate_quiet(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("첫째 결정을 여기 적는다"))
    decide(desk, waits(desk)[0], Move.REJECT)
    anchors = (anchor("첫째 결정을 여기 적는다"), anchor("아직 모르는 문장이 있다"))
    assert stage(desk, candidate("아직 모르는 문장이 있다", anchors=anchors), session="s2").quiet == 1


def test_a_repeat_of_something_accepted_adds_evidence_to_its_entry(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    uid = decide(desk, waits(desk)[0], Move.ACCEPT).entry
    again = stage(desk, candidate(turn="t8"), session="s2")
    assert [s.entry for s in again.supports] == [uid] and again.quiet == 1
    for expected in (1, 0):
        with desk.database.transaction() as tx:
            assert support(tx, source("s2"), again.supports) == expected
    with desk.database.transaction() as tx:
        entry = knowledge.get(tx, uid or "")
    assert entry is not None and [q.turn for q in entry.evidence] == ["t1", "t8"]


def test_the_same_finding_in_two_sessions_waits_once_and_goes_with_one_decision(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    again = stage(desk, candidate(turn="t8"), session="s2")
    (one,) = waits(desk)
    assert again.repeats == 1 and len(one.all) == 2
    assert document(desk, "s2").entries[0].repeats is not None
    done = decide(desk, one, Move.ACCEPT)
    with desk.database.transaction() as tx:
        entry = knowledge.get(tx, done.entry or "")
    assert entry is not None and {q.turn for q in entry.evidence} == {"t1", "t8"}
    assert waits(desk) == () and not list(desk.queue.folder.glob("*.json"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("서버 포트는 8080을 쓴다", "서버 포트는 9090을 쓴다"),
        ("로그는 파일로 남기기로 결정", "로그는 파일 말고 stderr로 남기기로 결정"),
    ],
)
def test_an_update_is_never_swallowed_and_is_offered_as_a_replacement(wwt_home: Path, old: str, new: str) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate(old))
    uid = decide(desk, waits(desk)[0], Move.ACCEPT).entry or ""
    known = [Known(uid, known_text(old, ""))]
    look = lookup_in(desk.database.path)
    taken = take_in(desk.queue, source("s2"), [candidate(new)], verdicts=look, entries=known)
    (one,) = waits(desk)
    assert taken.added == 1 and one.item.repeats is not None
    assert (one.item.repeats.entry, one.item.repeats.supersedes) == (uid, True)


def test_a_near_repeat_of_what_waits_is_marked_and_still_waits(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("배포 전에 마이그레이션을 먼저 돌린다"))
    stage(desk, candidate("마이그레이션은 배포 전에 먼저 돌립니다"), session="s2")
    marked = document(desk, "s2").entries[0].repeats
    assert len(waits(desk)) == 2 and marked is not None and marked.waiting and not marked.supersedes


def test_other_projects_are_not_compared(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("배포 전에 마이그레이션을 먼저 돌린다"))
    stage(desk, candidate("마이그레이션은 배포 전에 먼저 돌립니다"), session="s2", project="/home/u/other")
    assert document(desk, "s2").entries[0].repeats is None


def test_nothing_mined_writes_nothing(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    assert stage(desk).added == 0 and not desk.queue.folder.exists()


def test_a_hostile_session_id_stays_in_the_folder(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate(), session="../../../evil\x00")
    assert summaries(waits(desk)) and {p.parent for p in wwt_home.rglob("*.json")} == {desk.queue.folder}

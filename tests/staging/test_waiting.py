from pathlib import Path

from staging.waiting import DAY_MS, Filters, score
from store.records import EntryType
from tests.staging.factories import NOW, candidate, desk_at, stage, summaries, waits


def test_the_surest_the_latest_and_the_most_repeated_come_first(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(
        desk, candidate("낮은 신뢰도의 결정이다", confidence=0.5), candidate("높은 신뢰도의 결정이다", confidence=0.9)
    )
    stage(desk, candidate("여러 번 나온 결정이다", confidence=0.85), session="s2")
    stage(desk, candidate("여러 번 나온 결정이다", confidence=0.85, turn="t2"), session="s3")
    found = waits(desk)
    assert summaries(found) == ["여러 번 나온 결정이다", "높은 신뢰도의 결정이다", "낮은 신뢰도의 결정이다"]
    assert score(found[0], NOW) > score(found[0], NOW + 60 * DAY_MS)


def test_filters_narrow_what_waits(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("이 프로젝트의 결정이다", confidence=0.9))
    stage(desk, candidate("다른 프로젝트의 해결이다", kind=EntryType.SOLUTION), session="t2", project="/home/u/other")
    one = ["이 프로젝트의 결정이다"]
    assert summaries(waits(desk, Filters(project="/home/u/shop"))) == one
    assert summaries(waits(desk, Filters(type=EntryType.DECISION))) == one
    assert summaries(waits(desk, Filters(session="s"))) == one
    assert summaries(waits(desk, Filters(min_confidence=0.85))) == one
    assert waits(desk, Filters(agent="openclaw")) == () == waits(desk, Filters(since=NOW + 1))
    assert len(waits(desk, Filters(since=NOW))) == 2


def test_a_shared_finding_is_listed_in_each_of_its_projects(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate(confidence=0.9))
    stage(desk, candidate(confidence=0.7), session="s2", project="/home/u/other")
    (one,) = waits(desk, Filters(project="/home/u/other"))
    assert one.header.source_session == "s2" and len(one.all) == 2

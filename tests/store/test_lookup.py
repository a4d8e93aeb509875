"""What searching and indexing read: every query fits the schema, and gone or foreign rows are simply not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from store import lookup
from store.filters import EVERYWHERE, NO_PROJECT, Filter
from tests.archiver.archives import Archive, Letters


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "home", Letters())


def test_found_reads_both_kinds_and_leaves_out_what_is_gone(archive: Archive) -> None:
    chunk_id = archive.say("말")[0]
    entry_id = archive.know("요약", "자세히", scope="global")
    rows = lookup.found(archive.reader, [chunk_id, -entry_id, 99, -99])
    assert set(rows) == {chunk_id, -entry_id}
    assert (rows[chunk_id].project_id, rows[-entry_id].project_id) == (1, EVERYWHERE)
    assert rows[-entry_id].passage == "요약\n자세히"


def test_entry_without_a_project_has_none(archive: Archive) -> None:
    entry_id = archive.know("어디에도 속하지 않는다", project_id=None)
    assert lookup.found(archive.reader, [-entry_id])[-entry_id].project_id == NO_PROJECT


def test_everything_is_read_in_pages_without_retired_entries(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "AT_ONCE", 2)
    archive.say("하나", "둘", "셋")
    archive.know("남는다")
    archive.know("은퇴했다", status="retired")
    pages = list(lookup.everything(archive.reader))
    assert [row.ref for page in pages for row in page] == [1, 2, 3, -1]
    assert lookup.count(archive.reader) == 4


def test_waiting_rows_are_told_oldest_or_newest_first(archive: Archive) -> None:
    archive.say("하나", "둘", "셋")
    assert [one.ref for one in lookup.waiting(archive.reader, 2)] == [1, 2]
    assert [one.ref for one in lookup.waiting(archive.reader, 2, newest=True)] == [3, 2]
    assert lookup.waiting_count(archive.reader, None) == 3
    assert lookup.waiting_count(archive.reader, 2) == 2


def test_folder_filter_does_not_take_a_longer_name(archive: Archive) -> None:
    archive.say("하나", session_id=1)
    archive.say("둘", session_id=2)
    with archive.database.transaction() as tx:
        tx.exec_driver_sql("UPDATE session SET cwd = CASE id WHEN 1 THEN '/p/app/src' ELSE '/p/app-old' END")
    assert lookup.session_ids(archive.reader, agent=None, branch=None, cwd="/p/app") == {1}


def test_ids_are_cut_where_they_tell_sessions_apart(archive: Archive) -> None:
    archive.say("하나", session_id=1)
    archive.say("둘", session_id=10_000_001)
    names = ["00000001-session", "10000001-session"]
    assert lookup.short_ids(archive.reader, names) == {names[0]: "00000001", names[1]: "10000001"}
    with archive.database.transaction() as tx:
        tx.exec_driver_sql("INSERT INTO session (agent, external_id) VALUES ('codex', '00000001-x')")
        tx.exec_driver_sql("INSERT INTO session (agent, external_id) VALUES ('codex', '10000001-session-2')")
    assert lookup.short_ids(archive.reader, [*names, "10000001-session-2"]) == {
        "00000001-session": "00000001-s",
        "10000001-session": "10000001-session",
        "10000001-session-2": "10000001-session-",
    }


@pytest.mark.parametrize(
    ("row", "passes"),
    [
        ({"ref": 1, "role": "speech"}, True),
        ({"ref": 1, "role": "abandoned"}, False),
        ({"ref": 1, "role": "speech", "project": 2}, False),
        ({"ref": -1, "role": "entry", "project": EVERYWHERE}, True),
        ({"ref": -1, "role": "entry", "project": 2}, False),
        ({"ref": 1, "role": "speech", "time": 5}, False),
    ],
)
def test_filter_admits_single_rows_as_the_indexes_do(row: dict[str, object], passes: bool) -> None:
    values = {"project": 1, "session": 1, "time": 50, **row}
    assert Filter(projects=frozenset({1}), since=10).admits(**values) is passes  # type: ignore[arg-type]

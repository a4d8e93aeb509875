import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import func, select

from staging.promote import Desk, Move, decide, undo
from staging.waiting import settle
from store import decisions, knowledge, sessions, tables, verdicts
from store.errors import WwtError
from store.records import Action, Entry, SafeText, Scope, anchor
from store.verdicts import lookup_in
from tests.staging.factories import NOW, candidate, desk_at, document, stage, summaries, waits


def entries(desk: Desk, status: str | None = "active") -> list[Entry]:
    with desk.database.transaction() as tx:
        return knowledge.list_entries(tx, knowledge.Filters(status=status))


def count(desk: Desk, table: str) -> int:
    with desk.database.transaction() as tx:
        return int(tx.execute(select(func.count()).select_from(tables.metadata.tables[table])).scalar_one())


def edit(desk: Desk, change: str, to: str) -> None:
    (path,) = desk.queue.folder.glob("*.json")
    path.write_text(path.read_text(encoding="utf-8").replace(change, to), encoding="utf-8")


def test_an_accepted_candidate_is_an_entry_and_no_longer_waits(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate(detail="읽기가 많다", tags=("Cache", "ＤＢ")))
    done = decide(desk, waits(desk)[0], Move.ACCEPT)
    (entry,) = entries(desk)
    assert (entry.uid, entry.summary, entry.tags) == (done.entry, "캐시는 Redis 대신 SQLite에 둔다", ("cache", "db"))
    assert entry.evidence[0].quote == entry.summary and entry.session is None
    assert not list(desk.queue.folder.glob("*.json")) and count(desk, "outbox") > 0


def test_deciding_twice_leaves_one_entry(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    (one,) = waits(desk)
    first, second = decide(desk, one, Move.ACCEPT), decide(desk, one, Move.ACCEPT)
    assert first.entry == second.entry and second.decided is None and len(entries(desk)) == 1


def test_a_late_rejection_does_not_unmake_an_acceptance(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    (one,) = waits(desk)
    decide(desk, one, Move.ACCEPT)
    assert decide(desk, one, Move.REJECT).decided is None
    assert len(entries(desk)) == 1


KILLED = """
import os, signal, sys
from pathlib import Path
from staging import promote
from tests.staging.factories import desk_at, waits
desk = desk_at(Path(sys.argv[1]))
promote.drop = lambda *a: os.kill(os.getpid(), signal.SIGKILL)
promote.decide(desk, waits(desk)[0], promote.Move(sys.argv[2]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("move", [Move.ACCEPT, Move.REJECT])
def test_a_kill_between_commit_and_document_heals(wwt_home: Path, move: Move) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate(), candidate("다른 결정도 하나 있다"))
    before = waits(desk)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(wwt_home), move], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(document(desk).entries) == 2 and len(waits(desk)) == 1
    decide(desk, before[0], move)
    assert len(entries(desk)) == (1 if move is Move.ACCEPT else 0) and len(document(desk).entries) == 1


def test_settling_drops_what_a_crash_left_behind(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate(), candidate("다른 결정도 하나 있다"))
    with desk.database.transaction() as tx:
        verdicts.record(tx, [anchor("다른 결정도 하나 있다")], Action.REJECTED, None, NOW)
    assert settle(desk.queue, lookup_in(desk.database.path)) == 1
    assert len(document(desk).entries) == 1 and settle(desk.queue, lookup_in(desk.database.path)) == 0


def test_an_edit_is_accepted_as_edited_and_both_wordings_stay_quiet(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("포트는 8080을 쓰기로 한다"))
    edit(desk, '"summary": "포트는 8080을 쓰기로 한다"', '"summary": "개발 서버 포트는 8080으로 한다"')
    decide(desk, waits(desk)[0], Move.ACCEPT)
    assert [e.summary for e in entries(desk)] == ["개발 서버 포트는 8080으로 한다"]
    again = stage(
        desk, candidate("포트는 8080을 쓰기로 한다"), candidate("개발 서버 포트는 8080으로 한다"), session="s2"
    )
    assert (again.added, again.quiet) == (0, 2)


def accepted(desk: Desk, *args: str, session: str = "s0", **fields: object) -> str:
    stage(desk, candidate(*args, **fields), session=session)  # type: ignore[arg-type]
    return decide(desk, waits(desk)[0], Move.ACCEPT).entry or ""


def test_a_merge_keeps_the_entrys_words_and_adds_what_is_new(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    uid = accepted(desk, "캐시는 SQLite에 둔다", detail="읽기가 많다")
    stage(desk, candidate("캐시를 SQLite에 둔다", detail="만료는 하루로 한다", tags=("ttl",), turn="t2"))
    done = decide(desk, waits(desk)[0], Move.MERGE, uid)
    (entry,) = entries(desk)
    assert (done.entry, entry.summary, entry.tags) == (uid, "캐시는 SQLite에 둔다", ("cache", "ttl"))
    assert entry.detail == "읽기가 많다\n만료는 하루로 한다" and len(entry.evidence) == 2
    assert stage(desk, candidate("캐시를 SQLite에 둔다", turn="t3"), session="s5").supports[0].entry == uid


def test_a_replacement_leaves_the_old_entry_marked(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    old = accepted(desk, "웹 검색은 A를 사용한다")
    stage(desk, candidate("웹 검색은 B를 사용한다"))
    new = decide(desk, waits(desk)[0], Move.SUPERSEDE, old).entry
    assert [e.uid for e in entries(desk)] == [new]
    replaced = next(e for e in entries(desk, None) if e.uid == old)
    assert (replaced.status, replaced.superseded_by) == ("superseded", new)


@pytest.mark.parametrize("move", [Move.MERGE, Move.SUPERSEDE])
def test_a_target_that_is_not_there_is_refused_and_nothing_changes(wwt_home: Path, move: Move) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    with pytest.raises(WwtError) as caught:
        decide(desk, waits(desk)[0], move, "nosuch")
    assert caught.value.key == "review.no_entry" and len(waits(desk)) == 1 and entries(desk, None) == []


def test_quotes_of_a_deleted_session_reach_neither_evidence_nor_log(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("말한 그대로의 문장이다"), status="deleted")
    edit(desk, '"summary": "말한 그대로의 문장이다"', '"summary": "정리한 결론"')
    decide(desk, waits(desk)[0], Move.ACCEPT)
    (entry,) = entries(desk)
    assert [(q.turn, q.quote) for q in entry.evidence] == [("t1", "")]
    with desk.database.transaction() as tx:
        assert "말한 그대로의" not in decisions.newest(tx)[0].waiting


def test_quotes_of_a_session_deleted_after_staging_are_kept_out_too(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    with desk.database.transaction() as tx:
        sessions.ensure(tx, "claude-code", SafeText("s1"), status="deleted")
    decide(desk, waits(desk)[0], Move.ACCEPT)
    assert entries(desk)[0].evidence[0].quote == ""


@pytest.mark.parametrize("move", [Move.ACCEPT, Move.REJECT])
def test_undo_brings_the_candidate_back_and_leaves_no_trace(wwt_home: Path, move: Move) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate(), candidate("다른 결정도 하나 있다"))
    before = document(desk).entries
    decide(desk, waits(desk)[0], move)
    assert undo(desk) is not None
    assert {i.id for i in document(desk).entries} == {i.id for i in before} and len(waits(desk)) == 2
    assert [count(desk, name) for name in ("entry", "verdict", "evidence", "tag", "decision_log")] == [0, 0, 0, 0, 0]
    assert undo(desk) is None


def test_undo_of_the_last_candidate_writes_its_document_anew(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate(confidence=0.83))
    before = document(desk)
    decide(desk, waits(desk)[0], Move.REJECT)
    undo(desk)
    assert document(desk) == before


def test_undo_of_a_merge_restores_the_entry(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    uid = accepted(desk, "캐시는 SQLite에 둔다", detail="읽기가 많다")
    before = entries(desk)
    stage(desk, candidate("만료는 하루로 정한다", tags=("ttl",), turn="t2"))
    decide(desk, waits(desk)[0], Move.MERGE, uid)
    undo(desk)
    assert entries(desk) == before and summaries(waits(desk)) == ["만료는 하루로 정한다"]


def test_undo_of_a_replacement_makes_the_old_entry_current_again(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    old = accepted(desk, "웹 검색은 A를 사용한다")
    before = entries(desk)
    stage(desk, candidate("웹 검색은 B를 사용한다"))
    decide(desk, waits(desk)[0], Move.SUPERSEDE, old)
    undo(desk)
    assert entries(desk, None) == before


def test_undo_goes_back_one_decision_at_a_time(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, *(candidate(f"결정 번호 {n}을 적어 둔다") for n in range(25)))
    for one in waits(desk):
        decide(desk, one, Move.REJECT)
    with desk.database.transaction() as tx:
        assert len(decisions.newest(tx)) == decisions.KEPT
    while undo(desk):
        pass
    assert len(waits(desk)) == decisions.KEPT and count(desk, "verdict") == 25 - decisions.KEPT


def test_global_scope_is_a_reviewers_choice(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    edit(desk, '"type": "decision"', '"scope": "global", "type": "decision"')
    decide(desk, waits(desk)[0], Move.ACCEPT)
    with desk.database.transaction() as tx:
        found = knowledge.list_entries(tx, knowledge.Filters(project="/somewhere/else"))
    assert [e.scope for e in found] == [Scope.GLOBAL]


def test_the_log_forgets_the_quotes_of_a_session(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("말한 그대로의 문장이다"))
    decide(desk, waits(desk)[0], Move.ACCEPT)
    with desk.database.transaction() as tx:
        decisions.withhold_quotes(tx, "claude-code", "s1")
        (logged,) = decisions.newest(tx)
        assert json.loads(logged.waiting)[0]["item"]["evidence"] == []
        decisions.forget(tx, "claude-code", "s1")
        assert decisions.newest(tx) == []


def test_the_log_lets_go_of_what_was_rejected_of_a_deleted_session(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("말한 그대로의 문장이다"))
    decide(desk, waits(desk)[0], Move.REJECT)
    with desk.database.transaction() as tx:
        decisions.withhold_quotes(tx, "claude-code", "another")
        assert len(decisions.newest(tx)) == 1
        decisions.withhold_quotes(tx, "claude-code", "s1")
        assert decisions.newest(tx) == []


ACCEPTS = """
import sys
from pathlib import Path
from archiver.review import accept_all
from tests.staging.factories import desk_at
from staging.waiting import Filters
accept_all(desk_at(Path(sys.argv[1])), Filters())
"""


def test_two_processes_accepting_everything_make_each_entry_once(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, *(candidate(f"결정 번호 {n}은 이렇다") for n in range(40)))
    racing = [subprocess.Popen([sys.executable, "-c", ACCEPTS, str(wwt_home)]) for _ in range(2)]
    assert [one.wait(120) for one in racing] == [0, 0]
    assert len(entries(desk)) == 40 and waits(desk) == () and not list(desk.queue.folder.glob("*.json"))


def test_accepting_the_words_of_a_retired_entry_makes_it_current_again(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    uid = accepted(desk, "웹 검색은 A를 사용한다")
    with desk.database.transaction() as tx:
        knowledge.retire(tx, uid, at=NOW)
    stage(desk, candidate("검색 엔진을 다시 골랐다"))
    edit(desk, '"summary": "검색 엔진을 다시 골랐다"', '"summary": "웹 검색은 A를 사용한다"')
    decide(desk, waits(desk)[0], Move.ACCEPT)
    assert [e.uid for e in entries(desk)] == [uid]
    undo(desk)
    assert [e.status for e in entries(desk, None)] == ["retired"]

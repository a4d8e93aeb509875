import json
from pathlib import Path

import pytest

from archiver.review import accept_all, expire, list_waiting, reject_all, rejected, sit, take_back, undo
from archiver.vault import Vault, read_verdicts
from staging.promote import Desk, Move, decide
from staging.waiting import DAY_MS, Filters
from store import knowledge, sessions
from store.errors import WwtError
from store.reader import Reader
from store.records import Entry, EntryType, SafeText
from tests.staging.factories import NOW, Script, candidate, desk_at, redact, stage, summaries, waits

EVERYTHING = Filters()


def entries(desk: Desk) -> list[Entry]:
    with desk.database.transaction() as tx:
        return knowledge.list_entries(tx)


def vault_of(desk: Desk) -> Vault:
    return Vault(desk.database.path.parent / "vault", desk.database, redact)


def test_listing_gives_plain_json_with_the_promised_keys(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate(), candidate("다른 결정도 하나 있다", confidence=0.5))
    found = list_waiting(desk, EVERYTHING, limit=1)
    (row,) = json.loads(json.dumps(found.rows))
    keys = "id type summary detail tags confidence decided_by session agent project evidence"
    assert found.total == 2 and set(keys.split()) <= set(row)
    assert row["tags"] == ["cache"] and row["evidence"][0]["turn"] == "t1"


def test_listing_writes_nothing_and_reports_the_broken(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    bad = desk.queue.folder / "bad.json"
    bad.write_bytes(b"")
    before = {p: p.stat().st_mtime_ns for p in desk.queue.folder.glob("*.json")}
    found = list_waiting(desk, EVERYTHING)
    assert found.total == 1 and [b.path for b in found.broken] == [bad]
    assert before == {p: p.stat().st_mtime_ns for p in desk.queue.folder.glob("*.json")}


def test_accepting_all_respects_the_filters(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate(confidence=0.95), candidate("자신 없는 결정이 하나 있다", confidence=0.4))
    assert accept_all(desk, Filters(min_confidence=0.9)).accepted == 1
    assert summaries(waits(desk)) == ["자신 없는 결정이 하나 있다"]


def test_accepting_all_makes_one_entry_of_repeats_and_two_of_an_update(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("배포 전에 마이그레이션을 먼저 돌린다", confidence=0.9))
    stage(desk, candidate("마이그레이션은 배포 전에 먼저 돌립니다", turn="t2"), session="s2")
    stage(desk, candidate("서버 포트는 8080을 쓴다"), session="s3")
    stage(desk, candidate("서버 포트는 9090을 쓴다"), session="s4")
    done = accept_all(desk, EVERYTHING)
    assert (done.accepted, done.merged) == (3, 1)
    assert len(entries(desk)) == 3 and waits(desk) == ()


def test_rejecting_all_is_remembered_one_by_one(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, *(candidate(f"결정 번호 {n}은 이렇다") for n in range(30)))
    assert reject_all(desk, EVERYTHING).rejected == 30
    listed = rejected(desk)
    assert len(listed) == 30 and listed[0].summary is not None and listed[-1].summary is None
    assert stage(desk, candidate("결정 번호 3은 이렇다"), session="s2").quiet == 1


def test_a_rejection_is_taken_back_by_its_words_or_its_anchor(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    vault = vault_of(desk)
    stage(desk, candidate("첫째 결정은 이것이다"), candidate("둘째 결정은 저것이다"))
    reject_all(desk, EVERYTHING, vault=vault)
    assert take_back(desk, ["**첫째** 결정은 이것이다."], vault=vault).waiting == 1
    assert summaries(waits(desk)) == ["첫째 결정은 이것이다"]
    (left,) = rejected(desk)
    assert [v.anchor for v in read_verdicts(vault.folder)] == list(left.anchors)
    assert take_back(desk, [left.id, left.anchors[0][:4].upper()], vault=vault).waiting == 1
    assert len(waits(desk)) == 2 and rejected(desk) == [] == read_verdicts(vault.folder)
    assert stage(desk, candidate("첫째 결정은 이것이다"), candidate("둘째 결정은 저것이다")).kept == 2


@pytest.mark.parametrize("what", ["모르는 문장", "", "abc", "%"])
def test_a_rejection_that_is_not_there_is_named(wwt_home: Path, what: str) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    reject_all(desk, EVERYTHING)
    with pytest.raises(WwtError) as caught:
        take_back(desk, [what])
    assert (caught.value.key, caught.value.exit_code) == ("review.no_verdict", 1) and len(rejected(desk)) == 1


def test_a_beginning_that_fits_several_rejections_takes_none_back(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, *(candidate(f"결정 {name}은 이렇다", anchors=[f"abcd{name * 20}"]) for name in "12"))
    reject_all(desk, EVERYTHING)
    with pytest.raises(WwtError) as caught:
        take_back(desk, ["abcd"])
    assert caught.value.exit_code == 1 and "결정 2은" in str(caught.value.fields["known"])
    assert len(rejected(desk)) == 2


def test_rejections_are_listed_by_what_they_were_about(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("첫째 결정은 이것이다"))
    stage(desk, candidate("어떤 방식이 있다", kind=EntryType.PATTERN), session="s2", project="/home/u/other")
    reject_all(desk, EVERYTHING)

    def listed(filters: Filters) -> list[str | None]:
        return [one.summary for one in rejected(desk, filters)]

    assert listed(Filters(type=EntryType.PATTERN)) == ["어떤 방식이 있다"] == listed(Filters(project="/home/u/other"))
    assert listed(Filters(session="s1", agent="claude-code")) == ["첫째 결정은 이것이다"]
    newest = rejected(desk)[0]
    assert listed(Filters(since=newest.at)) == [newest.summary] and listed(Filters(since=newest.at + 1)) == []


def test_a_rejection_whose_words_are_gone_has_its_sessions_mined_again(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    with desk.database.transaction() as tx:
        sessions.ensure(tx, "claude-code", SafeText("s1"), changed_at=5, distilled_at=5)
    stage(desk, *(candidate(f"결정 번호 {n}은 이렇다") for n in range(30)))
    reject_all(desk, EVERYTHING)
    oldest = rejected(desk)[-1]
    assert oldest.waiting is None and oldest in rejected(desk, Filters(type=EntryType.PATTERN))
    done = take_back(desk, [oldest.id])
    assert (done.waiting, done.mined, done.sessions) == (0, 1, 1)
    assert [row.external_id for row in Reader(desk.database.path).due_sessions()] == ["s1"]


def test_undo_takes_the_note_and_the_mirrored_verdict_along(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    vault = vault_of(desk)
    stage(desk, candidate())
    accept_all(desk, EVERYTHING, vault=vault)
    assert len(list(vault.folder.rglob("*.md"))) == 1 and len(read_verdicts(vault.folder)) == 1
    assert undo(desk, vault=vault) is not None
    assert list(vault.folder.rglob("*.md")) == [] and read_verdicts(vault.folder) == []
    assert len(waits(desk)) == 1 and undo(desk, vault=vault) is None


def test_a_sitting_settles_first_and_leaves_the_vault_in_step(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    vault = vault_of(desk)
    stage(desk, candidate(), candidate("다른 결정도 하나 있다"))
    script = Script("a")
    tally, _ = sit(desk, EVERYTHING, ask=script.ask, show=script.show, edit=script.edit, vault=vault)
    assert (tally.accepted, tally.left) == (1, 1) and len(list(vault.folder.rglob("*.md"))) == 1


def test_what_nobody_looked_at_expires_and_stays_away(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate(), candidate("고쳐 둔 결정이 하나 있다"))
    (path,) = desk.queue.folder.glob("*.json")
    path.write_text(
        path.read_text(encoding="utf-8").replace('"고쳐 둔 결정이', '"손으로 고쳐 둔 결정이'), encoding="utf-8"
    )
    assert expire(desk.queue, 0, now=NOW + 99 * DAY_MS) == 0 == expire(desk.queue, 30, now=NOW + 29 * DAY_MS)
    assert expire(desk.queue, 30, now=NOW + 31 * DAY_MS) == 1
    stage(desk, candidate(), candidate("고쳐 둔 결정이 하나 있다"))
    assert summaries(waits(desk)) == ["손으로 고쳐 둔 결정이 하나 있다"]


def test_one_way_or_another_a_finding_becomes_one_entry(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    for session in ("s1", "s2", "s3"):
        stage(desk, candidate(turn=session), session=session)
    (one,) = waits(desk)
    decide(desk, one, Move.ACCEPT)
    accept_all(desk, EVERYTHING)
    decide(desk, one, Move.ACCEPT)
    assert len(entries(desk)) == 1 and len(entries(desk)[0].evidence) == 3

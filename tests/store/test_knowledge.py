from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select

from migrations import upgrade
from store import knowledge, sessions, verdicts
from store.database import Database
from store.records import Action, DecidedBy, Entry, EntryType, Quote, Role, SafeText, Scope
from store.tables import evidence, outbox, tag, turn

A, B = "a" * 24, "b" * 24
QUOTE = Quote("t1", Role.USER, SafeText("큐는 SQLite로 하자"), 7)


@pytest.fixture
def tx(tmp_path: Path) -> Iterator[Connection]:
    upgrade(tmp_path / "archive.db", tmp_path / "backups")
    with Database(tmp_path / "archive.db").transaction() as connection:
        yield connection


def entry(uid: str = "abc", *, tags: tuple[str, ...] = (), project: str | None = "/home/u/shop") -> Entry:
    return Entry(
        uid=uid,
        type=EntryType.DECISION,
        summary=SafeText("큐는 SQLite로 한다"),
        detail=SafeText("한 대에서만 돈다"),
        tags=tags,
        project=project,
        agent="claude-code",
        decided_by=DecidedBy.CONFIRMED,
        confidence=0.8,
        created_at=5,
        reviewed_at=6,
        evidence=(QUOTE,),
    )


def accept(tx: Connection, made: Entry, *anchors: str) -> int:
    held = knowledge.add_entry(tx, made, anchors)
    verdicts.record(tx, anchors, Action.ACCEPTED, held, 1)
    return held


def puts(tx: Connection) -> int:
    return len(tx.execute(select(outbox.c.id)).all())


def test_an_entry_reads_back_as_it_was_added(tx: Connection) -> None:
    accept(tx, entry(tags=("sqlite", "큐")), A)
    assert knowledge.get(tx, "abc") == entry(tags=("sqlite", "큐")) and puts(tx) > 0


def test_an_anchor_that_was_accepted_leads_to_its_entry(tx: Connection) -> None:
    first = accept(tx, entry("one"), A)
    other = replace(entry("two"), evidence=(replace(QUOTE, turn="t2"),))
    assert knowledge.add_entry(tx, other, [A, B]) == first
    (kept,) = knowledge.list_entries(tx)
    assert (kept.uid, len(kept.evidence)) == ("one", 2) and knowledge.anchors_of(tx, "one") == (A, B)


def test_a_rejected_anchor_leads_to_no_entry(tx: Connection) -> None:
    verdicts.record(tx, [A], Action.REJECTED, None, 1)
    assert knowledge.holder(tx, [A]) is None


def test_the_embedded_hash_follows_the_words(tx: Connection) -> None:
    accept(tx, entry(), A)
    before = puts(tx)
    assert knowledge.update_entry(tx, "abc", detail=SafeText("두 대에서 돈다"), at=9)
    snapshot = knowledge.get(tx, "abc")
    assert snapshot is not None and (snapshot.detail, snapshot.reviewed_at) == ("두 대에서 돈다", 9)
    stored = tx.execute(select(knowledge.entries.c.hash)).scalar_one()
    assert stored == knowledge.text_hash(snapshot.summary, snapshot.detail) and puts(tx) > before


@pytest.mark.parametrize("wanted", ["db", "DB", " ＤＢ "])
def test_one_tag_has_one_spelling(tx: Connection, wanted: str) -> None:
    accept(tx, entry("one", tags=(" DB ", "db", "ＤＢ", "file lock")), A)
    accept(tx, entry("two", tags=("배포",)), B)
    assert [e.tags for e in knowledge.list_entries(tx, knowledge.Filters(tag=wanted))] == [("db", "file-lock")]
    assert len(tx.execute(select(tag)).all()) == 3


def test_retagging_drops_names_that_nothing_uses(tx: Connection) -> None:
    accept(tx, entry(tags=("a", "b")), A)
    assert knowledge.retag(tx, "abc", ["c", "", "a"], at=9)
    assert set(tx.execute(select(tag.c.name)).scalars()) == {"a", "c"}


def test_evidence_is_kept_once_and_finds_its_turn(tx: Connection) -> None:
    session_id = sessions.ensure(tx, "claude-code", SafeText("s1"))
    row = {"agent": "claude-code", "session_id": session_id, "key": "t1", "pos": 0, "ord": 1, "role": "user"}
    tx.execute(insert(turn), {**row, "kind": "prompt", "text": SafeText("큐는 SQLite로 하자")})
    held = accept(tx, entry(), A)
    assert knowledge.add_evidence(tx, held, [QUOTE, QUOTE], agent="claude-code") == 0
    assert tx.execute(select(evidence.c.turn_id)).scalars().all() == [1]


def test_withheld_quotes_leave_turn_and_time(tx: Connection) -> None:
    held = accept(tx, replace(entry(), evidence=()), A)
    for added in (1, 0):
        assert knowledge.add_evidence(tx, held, [QUOTE], agent="claude-code", keep_quotes=False) == added
    kept = knowledge.get(tx, "abc")
    assert kept is not None and kept.evidence == (replace(QUOTE, quote=SafeText("")),)


def test_replaced_and_retired_knowledge_is_listed_on_request_only(tx: Connection) -> None:
    accept(tx, entry("old"), A)
    new = accept(tx, entry("new"), B)
    assert knowledge.supersede(tx, "old", new, at=9)
    assert [e.uid for e in knowledge.list_entries(tx)] == ["new"]
    assert knowledge.retire(tx, "new", at=10) and knowledge.list_entries(tx) == []
    found = knowledge.list_entries(tx, knowledge.Filters(status=None))
    assert [(e.uid, e.status, e.superseded_by) for e in found] == [
        ("new", "retired", None),
        ("old", "superseded", "new"),
    ]
    assert knowledge.revive(tx, "old", at=11) and [e.uid for e in knowledge.list_entries(tx)] == ["old"]


def test_a_project_sees_its_own_and_global_knowledge(tx: Connection) -> None:
    accept(tx, entry("here"), A)
    accept(tx, entry("there", project="/home/u/other"), B)
    where = knowledge.Filters(project="/home/u/shop")
    assert [e.uid for e in knowledge.list_entries(tx, where)] == ["here"]
    knowledge.set_scope(tx, "there", Scope.GLOBAL, at=9)
    assert {e.uid for e in knowledge.list_entries(tx, where)} == {"here", "there"}


def test_what_is_not_there_is_not_changed(tx: Connection) -> None:
    assert not knowledge.retire(tx, "none", at=1) and not knowledge.update_entry(tx, "none", at=1)
    assert not knowledge.retag(tx, "none", ["x"], at=1) and not knowledge.delete_entry(tx, "none")
    assert knowledge.get(tx, "none") is None and knowledge.snapshot(tx, "none") is None


def test_a_snapshot_brings_everything_back(tx: Connection) -> None:
    held = accept(tx, entry(tags=("a",)), A)
    before, kept = knowledge.get(tx, "abc"), knowledge.snapshot(tx, "abc")
    assert kept is not None
    knowledge.merge_into(tx, "abc", detail=SafeText("다른 말"), tags=["b"], anchors=[B], at=9)
    knowledge.add_evidence(tx, held, [replace(QUOTE, turn="t9")], agent="claude-code")
    knowledge.retire(tx, "abc", at=10)
    assert knowledge.restore(tx, kept)
    assert knowledge.get(tx, "abc") == before and knowledge.anchors_of(tx, "abc") == (A,)


def test_a_snapshot_leaves_what_was_changed_after_the_change(tx: Connection) -> None:
    accept(tx, entry(tags=("a",)), A)
    before = knowledge.snapshot(tx, "abc")
    knowledge.update_entry(tx, "abc", summary=SafeText("새 요약"), detail=SafeText("새 내용"), at=9)
    knowledge.hold(tx, knowledge.entry_id(tx, "abc") or 0, [B])
    after = knowledge.snapshot(tx, "abc")
    knowledge.update_entry(tx, "abc", detail=SafeText("손으로 쓴 내용"), at=10)
    knowledge.hold(tx, knowledge.entry_id(tx, "abc") or 0, ["c" * 24])
    assert before is not None and not knowledge.restore(tx, before, after)
    now = knowledge.snapshot(tx, "abc")
    assert now is not None and (now.summary, now.detail) == (before.summary, "손으로 쓴 내용")
    assert now.anchors == (A, "c" * 24) and now.reviewed_at == 10


@pytest.mark.parametrize(
    ("start", "found"), [("kq3m", ["kq3m"]), ("kq3", ["kq3m", "kq3mab"]), ("", []), ("%", []), ("KQ", [])]
)
def test_an_entry_is_named_by_its_uid_or_how_it_begins(tx: Connection, start: str, found: list[str]) -> None:
    for uid in ("kq3mab", "kq3m", "b"):
        knowledge.add_entry(tx, entry(uid), [])
    assert [one.uid for one in knowledge.named(tx, start)] == found


def test_uids_are_no_numbers_to_anyone() -> None:
    import yaml

    made = [knowledge.new_uid() for _ in range(500)]
    assert len(set(made)) == 500 and all(yaml.safe_load(uid) == uid for uid in made)


def test_unredacted_words_are_refused(tx: Connection) -> None:
    with pytest.raises(Exception, match="unredacted"):
        knowledge.add_entry(tx, replace(entry(), summary="raw text"), [A])  # type: ignore[arg-type]

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

from archiver.entries import Changed, Keeper
from archiver.home import Home
from archiver.recall import recall
from archiver.review import accept_all, undo
from archiver.search import Query, search
from archiver.vault import Vault, read_verdicts
from rules.tags import normalise
from staging.form import Form, form_of
from staging.promote import Desk, Move, decide
from staging.waiting import Filters
from store import knowledge, verdicts
from store.errors import WwtError
from store.records import Action, Entry, EntryType, SafeText, Scope, anchor
from store.tables import decision_log, outbox
from tests.staging.factories import PROJECT, candidate, desk_at, redact, stage, waits

QUEUE, CACHE, PORT = "큐는 Kafka 대신 SQLite로 한다", "캐시는 Redis 대신 SQLite에 둔다", "서버 포트는 8080을 쓴다"


@pytest.fixture
def desk(wwt_home: Path) -> Desk:
    return replace(desk_at(wwt_home), normalise=normalise)


@pytest.fixture
def keeper(desk: Desk) -> Keeper:
    return Keeper(desk, Vault(desk.database.path.parent / "vault", desk.database, redact, normalise=normalise))


def known(desk: Desk, *summaries: str, detail: str = "", tags: tuple[str, ...] = ("cache",)) -> list[str]:
    """Uids of entries accepted with these summaries."""
    uids = []
    for summary in summaries:
        stage(desk, candidate(summary, detail=detail, tags=tags, turn=anchor(summary)), session=f"s-{summary}")
        uids.append(decide(desk, waits(desk)[0], Move.ACCEPT).entry or "")
    return uids


def get(desk: Desk, uid: str) -> Entry:
    with desk.database.transaction() as tx:
        found = knowledge.get(tx, uid)
    assert found is not None
    return found


def everything(desk: Desk) -> list[Entry]:
    with desk.database.transaction() as tx:
        return knowledge.list_entries(tx, knowledge.Filters(status=None))


def count(desk: Desk, table: object) -> int:
    with desk.database.transaction() as tx:
        return len(tx.execute(select(table)).all())  # type: ignore[call-overload]


def worded(keeper: Keeper, uid: str, **changes: object) -> Changed:
    seen = keeper.find(uid)
    return keeper.edit(seen, replace(form_of(seen), **changes))  # type: ignore[arg-type]


def note(keeper: Keeper, uid: str) -> Path:
    (path,) = keeper.vault.folder.rglob(f"*{uid}.md")
    return path


# --- what a change is ---


def change(keeper: Keeper, name: str, one: str, other: str) -> Changed:
    return {
        "edit": lambda: worded(keeper, one, summary=SafeText("큐는 파일 하나로 한다"), type=EntryType.PATTERN),
        "retag": lambda: keeper.retag(one, put=None, add=["DB"], drop=["cache"]),
        "retire": lambda: keeper.retire([one], SafeText("서비스가 없어졌다")),
        "supersede": lambda: keeper.supersede(one, other),
        "merge": lambda: keeper.merge(one, other),
        "scope": lambda: keeper.spread([one, other], Scope.GLOBAL),
        "rename": lambda: keeper.rename_tag("Cache", "캐시"),
        "add": lambda: keeper.add(
            Form(EntryType.PATTERN, SafeText("항상 ruff를 먼저 돌린다"), SafeText(""), ()), project=PROJECT, scope=Scope.PROJECT
        ),
    }[name]()  # fmt: skip


CHANGES = ["edit", "retag", "retire", "supersede", "merge", "scope", "rename", "add"]


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_is_mirrored_logged_and_taken_back_whole(keeper: Keeper, desk: Desk, name: str) -> None:
    one, other = known(desk, QUEUE, CACHE)
    keeper.vault.sync()
    notes = {path.name: path.read_bytes() for path in keeper.vault.folder.rglob("*.md")}
    mirror = read_verdicts(keeper.vault.folder)
    before, waiting, logged = everything(desk), count(desk, outbox), count(desk, decision_log)
    done = change(keeper, name, one, other)
    assert done.changed
    assert everything(desk) != before
    assert count(desk, outbox) > waiting
    assert count(desk, decision_log) == logged + 1
    assert {path.name: path.read_bytes() for path in keeper.vault.folder.rglob("*.md")} != notes
    taken_back = undo(desk, vault=keeper.vault)
    assert taken_back is not None
    assert taken_back.whole
    assert everything(desk) == before
    assert {path.name: path.read_bytes() for path in keeper.vault.folder.rglob("*.md")} == notes
    assert read_verdicts(keeper.vault.folder) == mirror


@pytest.mark.parametrize("name", [name for name in CHANGES if name != "add"])
def test_a_change_made_already_changes_nothing(keeper: Keeper, desk: Desk, name: str) -> None:
    one, other = known(desk, QUEUE, CACHE)
    change(keeper, name, one, other)
    before, waiting, logged = everything(desk), count(desk, outbox), count(desk, decision_log)
    if name == "rename":
        with pytest.raises(WwtError):
            change(keeper, name, one, other)
    else:
        assert change(keeper, name, one, other).changed == 0
    assert (everything(desk), count(desk, outbox), count(desk, decision_log)) == (before, waiting, logged)


def test_a_revived_entry_is_current_again(keeper: Keeper, desk: Desk) -> None:
    one, other = known(desk, QUEUE, CACHE)
    keeper.supersede(one, other)
    keeper.retire([other])
    assert keeper.revive([one, other]).changed == 2
    assert [(entry.status, entry.superseded_by) for entry in everything(desk)] == [("active", None)] * 2
    undo(desk, vault=keeper.vault)
    assert (get(desk, one).superseded_by, get(desk, other).status) == (other, "retired")


# --- naming an entry ---


def test_a_beginning_that_fits_one_entry_names_it(keeper: Keeper, desk: Desk) -> None:
    (uid,) = known(desk, QUEUE)
    assert keeper.find(uid[:1]).uid == uid == keeper.find(uid).uid


def test_a_beginning_that_fits_several_lists_them(keeper: Keeper, desk: Desk) -> None:
    with desk.database.transaction() as tx:
        for uid in ("kq3mabcd", "kq3mwxyz"):
            made = Entry(uid, EntryType.DECISION, SafeText(uid), SafeText(""), (), PROJECT)
            knowledge.add_entry(tx, made, [])
    with pytest.raises(WwtError) as caught:
        keeper.find("kq3m")
    assert caught.value.exit_code == 1
    assert {"kq3mabcd", "kq3mwxyz"} <= set(str(caught.value.fields["known"]).split())


@pytest.mark.parametrize("name", ["nosuch", "", "%", "\udcff"])
def test_what_names_nothing_is_refused(keeper: Keeper, desk: Desk, name: str) -> None:
    known(desk, QUEUE)
    with pytest.raises(WwtError) as caught:
        keeper.retire([name])
    assert (caught.value.key, caught.value.exit_code) == ("entries.unknown", 1)


def test_one_name_that_is_wrong_leaves_all_as_they_were(keeper: Keeper, desk: Desk) -> None:
    (uid,) = known(desk, QUEUE)
    with pytest.raises(WwtError):
        keeper.retire([uid, "nosuch"])
    assert get(desk, uid).status == "active"


# --- editing ---


def test_neither_wording_of_an_edited_entry_is_offered_again(keeper: Keeper, desk: Desk) -> None:
    (uid,) = known(desk, QUEUE)
    worded(keeper, uid, summary=SafeText("큐는 파일 하나로 한다"), detail=SafeText("한 대에서만 돌기 때문이다"))
    again = [QUEUE, "큐는 파일 하나로 한다", "한 대에서만 돌기 때문이다"]
    intake = stage(desk, *(candidate(text, turn=text) for text in again), session="s9")
    assert (intake.added, intake.quiet) == (0, 3)
    assert {support.entry for support in intake.supports} == {uid}


def test_an_edit_takes_no_sentence_away_from_another_entry(keeper: Keeper, desk: Desk) -> None:
    one, other = known(desk, QUEUE, CACHE)
    worded(keeper, one, detail=SafeText(CACHE))
    with desk.database.transaction() as tx:
        assert verdicts.lookup(tx, [anchor(CACHE)])[anchor(CACHE)].entry == other


def test_words_that_were_rejected_once_may_be_written_by_hand(keeper: Keeper, desk: Desk) -> None:
    (uid,) = known(desk, QUEUE)
    stage(desk, candidate(PORT))
    decide(desk, waits(desk)[0], Move.REJECT)
    worded(keeper, uid, summary=SafeText(PORT))
    with desk.database.transaction() as tx:
        assert verdicts.lookup(tx, [anchor(PORT)])[anchor(PORT)].outcome is Action.ACCEPTED
    undo(desk, vault=keeper.vault)
    with desk.database.transaction() as tx:
        assert verdicts.lookup(tx, [anchor(PORT)])[anchor(PORT)].outcome is Action.REJECTED


def test_an_edit_of_what_was_changed_meanwhile_is_refused(keeper: Keeper, desk: Desk) -> None:
    (uid,) = known(desk, QUEUE)
    seen = keeper.find(uid)
    path = note(keeper, uid)
    path.write_text(path.read_text(encoding="utf-8").replace(f"# {QUEUE}", "# 손으로 고친 요약"), encoding="utf-8")
    with pytest.raises(WwtError) as caught:
        keeper.edit(seen, replace(form_of(seen), detail=SafeText("다른 내용")))
    assert caught.value.key == "entries.changed_meanwhile"
    assert get(desk, uid).summary == "손으로 고친 요약"


# --- standing ---


def test_retired_knowledge_is_gone_at_once_and_not_offered_again(keeper: Keeper, desk: Desk) -> None:
    one, other = known(desk, QUEUE, CACHE, tags=("sqlite",))
    home = Home.open()
    home.index.ensure()
    home.index.apply()
    keeper.retire([one], SafeText("서비스가 없어졌다"))
    assert [hit.id for hit in search(home.reader, home.index, None, Query("SQLite")).hits] == [other]
    block = recall(home.reader, Path(PROJECT), budget=1500, aliases={}, asked=["sqlite"])
    assert block.entries == (other,)
    assert stage(desk, candidate(QUEUE, turn="t9"), session="s9").quiet == 1
    assert get(desk, one).detail == "서비스가 없어졌다"


def test_replaced_knowledge_is_marked_at_once_and_below_what_replaced_it(keeper: Keeper, desk: Desk) -> None:
    one, other = known(desk, QUEUE, CACHE, tags=("sqlite",))
    home = Home.open()
    home.index.ensure()
    home.index.apply()
    keeper.supersede(one, other)
    hits = search(home.reader, home.index, None, Query("Kafka SQLite")).hits
    assert [(hit.id, hit.status, hit.superseded_by) for hit in hits] == [
        (other, "active", None),
        (one, "superseded", other),
    ]
    assert recall(home.reader, Path(PROJECT), budget=1500, aliases={}, asked=["sqlite"]).entries == (other,)


def test_a_chain_of_replacements_is_followed_to_its_end(keeper: Keeper, desk: Desk) -> None:
    first, second, third = known(desk, QUEUE, CACHE, PORT)
    keeper.supersede(first, second)
    keeper.supersede(second, third)
    with desk.database.transaction() as tx:
        assert [entry.uid for entry in knowledge.successors(tx, first)] == [second, third]
        # Notes that were edited by hand can close a ring.
        knowledge.supersede(tx, third, knowledge.entry_id(tx, first) or 0, at=1)
        assert [entry.uid for entry in knowledge.successors(tx, first)] == [second, third]


@pytest.mark.parametrize("way", [Keeper.supersede, Keeper.merge])
def test_nothing_is_replaced_by_what_is_not_current(keeper: Keeper, desk: Desk, way: object) -> None:
    one, other, gone = known(desk, QUEUE, CACHE, PORT)
    keeper.supersede(one, other)
    keeper.retire([gone])
    before = everything(desk)
    for old, new, key in (
        (other, one, "entries.is_superseded"),
        (other, other, "entries.itself"),
        (other, gone, "entries.is_retired"),
    ):
        with pytest.raises(WwtError) as caught:
            way(keeper, old, new)  # type: ignore[operator]
        assert caught.value.key == key
    assert everything(desk) == before


def test_a_merge_hands_over_words_tags_evidence_and_what_is_said_again(keeper: Keeper, desk: Desk) -> None:
    (one,) = known(desk, CACHE, detail="만료는 하루로 한다", tags=("ttl",))
    (other,) = known(desk, QUEUE)
    keeper.merge(one, other)
    into = get(desk, other)
    assert into.detail.splitlines() == [CACHE, "만료는 하루로 한다"]
    assert (into.tags, len(into.evidence)) == (("cache", "ttl"), 2)
    assert (get(desk, one).status, get(desk, one).superseded_by) == ("superseded", other)
    assert stage(desk, candidate(CACHE, turn="t9"), session="s9").supports[0].entry == other


def test_what_belongs_to_no_project_cannot_be_of_its_project_only(keeper: Keeper, desk: Desk) -> None:
    made = keeper.add(
        Form(EntryType.PATTERN, SafeText("항상 먼저 잰다"), SafeText(""), ()), project=None, scope=Scope.GLOBAL
    )
    with pytest.raises(WwtError) as caught:
        keeper.spread([made.entries[0].uid], Scope.PROJECT)
    assert caught.value.key == "entries.no_project"


# --- adding ---


def test_what_is_added_by_hand_is_knowledge_and_is_not_offered(keeper: Keeper, desk: Desk) -> None:
    words = Form(EntryType.DECISION, SafeText(PORT), SafeText("방화벽이 그것만 연다"), ("Ｐort",))
    (made,) = keeper.add(words, project=PROJECT, scope=Scope.PROJECT).entries
    assert (made.summary, made.tags, made.project, made.evidence) == (PORT, ("port",), PROJECT, ())
    assert stage(desk, candidate(PORT)).quiet == 1
    assert note(keeper, made.uid).exists()


def test_what_is_known_is_not_added_again(keeper: Keeper, desk: Desk) -> None:
    (uid,) = known(desk, QUEUE)
    with pytest.raises(WwtError) as caught:
        keeper.add(
            Form(EntryType.DECISION, SafeText(f"**{QUEUE}**."), SafeText(""), ()), project=PROJECT, scope=Scope.PROJECT
        )
    assert caught.value.fields["uid"] == uid
    assert len(everything(desk)) == 1


# --- tags ---


def test_a_renamed_tag_is_renamed_everywhere_and_kept_once(keeper: Keeper, desk: Desk) -> None:
    (both,) = known(desk, QUEUE, tags=("postgresql", "postgres"))
    (one,) = known(desk, CACHE, tags=("sql", "postgresql"))
    keeper.retire([one])
    assert keeper.rename_tag("PostgreSQL", "postgres").changed == 2
    assert (get(desk, both).tags, get(desk, one).tags) == (("postgres",), ("sql", "postgres"))


@pytest.mark.parametrize(("old", "new", "key"), [("none", "x", "tags.unknown"), ("cache", " # ", "tags.bad_name")])
def test_a_tag_that_cannot_be_renamed_is_named(keeper: Keeper, desk: Desk, old: str, new: str, key: str) -> None:
    known(desk, QUEUE)
    with pytest.raises(WwtError) as caught:
        keeper.rename_tag(old, new)
    assert caught.value.key == key


# --- taking back ---


def test_undo_leaves_what_was_changed_again_since(keeper: Keeper, desk: Desk) -> None:
    (uid,) = known(desk, QUEUE)
    keeper.retag(uid, put=["queue"], add=[], drop=[])
    worded(keeper, uid, summary=SafeText("큐는 파일 하나로 한다"), detail=SafeText("한 대에서만 돈다"))
    path = note(keeper, uid)
    path.write_text(path.read_text(encoding="utf-8").replace("한 대에서만 돈다", "손으로 쓴 이유"), encoding="utf-8")
    done = undo(desk, vault=keeper.vault)
    assert done is not None
    assert not done.whole
    now = get(desk, uid)
    assert (now.summary, now.detail, now.tags) == (QUEUE, "손으로 쓴 이유", ("queue",))
    assert "손으로 쓴 이유" in path.read_text(encoding="utf-8")


def test_an_accepted_entry_that_was_worked_on_is_retired_by_undo_not_lost(keeper: Keeper, desk: Desk) -> None:
    stage(desk, candidate(QUEUE))
    accept_all(desk, Filters(), vault=keeper.vault)
    (uid,) = (entry.uid for entry in everything(desk))
    path = note(keeper, uid)
    path.write_text(path.read_text(encoding="utf-8").replace(f"# {QUEUE}", "# 손으로 고친 요약"), encoding="utf-8")
    done = undo(desk, vault=keeper.vault)
    assert done is not None
    assert not done.whole
    assert (get(desk, uid).status, get(desk, uid).summary) == ("retired", "손으로 고친 요약")
    assert "손으로 고친 요약" in path.read_text(encoding="utf-8")
    assert len(waits(desk)) == 1


def test_a_note_that_cannot_be_read_is_named_and_left(keeper: Keeper, desk: Desk) -> None:
    (uid,) = known(desk, QUEUE)
    keeper.vault.sync()
    path = note(keeper, uid)
    path.write_text("nothing of a note", encoding="utf-8")
    done = keeper.retag(uid, put=["queue"], add=[], drop=[])
    assert [broken.path for broken in done.broken] == [path]
    assert path.read_text(encoding="utf-8") == "nothing of a note"
    assert get(desk, uid).tags == ("queue",)

"""Knowledge out into a folder and back: after a loss, by hand, and between two archives."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
import time
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from archiver import exchange
from archiver.exchange import Imported, bring, export
from archiver.home import Home
from archiver.notes import CONFLICT
from archiver.review import accept_all, reject_all
from staging.waiting import Filters
from store import forgetting, knowledge, sessions, tables, verdicts
from store.errors import USAGE, WwtError
from store.records import Action, Entry, EntryType, SafeText, Scope
from tests.archiver.processes import Server
from tests.archiver.standing import standing_of
from tests.staging.factories import candidate, stage

TOKEN = "ghp_" + "Z9x" * 12
EVERYTHING = Filters()


def opened(root: Path) -> Home:
    """An archive that embeds nothing, which tests/archiver/cli does."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "config.toml").write_text('[embedding]\nmodel = "none"\n', encoding="utf-8")
    return Home.open(root)


def learn(home: Home, *summaries: str, project: str = "/home/u/shop", session: str = "s1") -> None:
    with home.database.transaction() as tx:
        sessions.ensure(tx, "claude-code", SafeText(session), ended_at=1)
    found = [candidate(words, detail="이유는 이렇다", turn=f"t-{words}") for words in summaries]
    stage(home.desk, *found, session=session, project=project)
    accept_all(home.desk, EVERYTHING, vault=home.vault)


def entries(home: Home) -> dict[str, Entry]:
    with home.database.transaction() as tx:
        return {one.summary: one for one in knowledge.list_entries(tx, knowledge.Filters(status=None))}


def decided(home: Home) -> set[tuple[str, Action, str | None, int]]:
    with home.database.transaction() as tx:
        return {(v.anchor, v.outcome, v.entry, v.at) for v in verdicts.everything(tx)}


def change(home: Home, summary: str, detail: str) -> None:
    time.sleep(0.002)  # a clock that stands still would make this the same version
    with home.database.transaction() as tx:
        knowledge.update_entry(tx, entries_uid(home, summary), detail=SafeText(detail), at=int(time.time() * 1000))


def entries_uid(home: Home, summary: str) -> str:
    with closing(sqlite3.connect(home.database_path)) as db:
        return str(db.execute("SELECT uid FROM entry WHERE summary = ?", (summary,)).fetchone()[0])


def lost(home: Home) -> Home:
    """The same home after `rm archive.db*`."""
    home.database.close()
    for path in home.root.glob("archive.db*"):
        path.unlink()
    return Home.open(home.root)


def notes(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.md") if not path.name.endswith(CONFLICT))


def note_of(folder: Path, words: str) -> Path:
    (found,) = [path for path in notes(folder) if words in path.read_text("utf-8")]
    return found


def edit(path: Path, old: str, new: str) -> None:
    words = path.read_text("utf-8")
    assert old in words
    path.write_text(words.replace(old, new), encoding="utf-8")


def dump(home: Home) -> list[str]:
    with closing(sqlite3.connect(home.database_path)) as db:
        return list(db.iterdump())


def stamps(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


@pytest.fixture
def home(wwt_home: Path) -> Home:
    return opened(wwt_home)


@pytest.fixture
def other(tmp_path: Path) -> Home:
    """Another machine's archive."""
    return opened(tmp_path / "other")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


# --- after a loss ----------------------------------------------------------------------------------------------------


def test_everything_is_back_after_the_database_was_lost(home: Home, out: Path) -> None:
    learn(home, "큐는 SQLite로 한다", "큐는 Redis로 한다", "이름은 snake_case로 한다")
    with home.database.transaction() as tx:
        old, new = (entries_uid(home, words) for words in ("큐는 Redis로 한다", "큐는 SQLite로 한다"))
        knowledge.supersede(tx, old, knowledge.entry_id(tx, new) or 0, at=1_775_000_000_123)
        knowledge.retag(tx, new, ["queue", "1.0", "yes", "배포"], at=1_775_000_000_456)
        knowledge.retire(tx, entries_uid(home, "이름은 snake_case로 한다"), at=1_775_000_000_789)
        knowledge.set_scope(tx, new, Scope.GLOBAL, at=1_775_000_001_001)
    stage(home.desk, candidate("이 결정은 받지 않는다"), session="s2")
    reject_all(home.desk, EVERYTHING, vault=home.vault)
    export(home, out)
    for folder in (home.vault.folder, out):
        before, judged = entries(home), decided(home)
        home = lost(home)
        done = bring(home, folder)
        assert (len(done.added), done.verdicts, done.broken, done.conflicts) == (3, 4, (), ())
        assert entries(home) == before and decided(home) == judged
        assert entries(home)["큐는 Redis로 한다"].superseded_by == entries(home)["큐는 SQLite로 한다"].uid


def test_what_was_decided_stays_decided_after_a_loss(home: Home) -> None:
    learn(home, "큐는 SQLite로 한다")
    stage(home.desk, candidate("이 결정은 받지 않는다"), session="s2")
    reject_all(home.desk, EVERYTHING, vault=home.vault)
    shutil.rmtree(home.root / "staging")
    home = lost(home)
    bring(home, home.vault.folder)
    mined = stage(home.desk, candidate("이 결정은 받지 않는다"), candidate("큐는 SQLite로 한다"), session="s3")
    assert (mined.added, mined.quiet) == (0, 2)
    assert [one.entry for one in mined.supports] == [entries_uid(home, "큐는 SQLite로 한다")]


def test_an_import_touches_no_note_and_another_one_changes_nothing(home: Home, out: Path) -> None:
    learn(home, "큐는 SQLite로 한다", "이름은 snake_case로 한다")
    export(home, out)
    home = lost(home)
    before = {path: path.read_bytes() for path in notes(home.vault.folder) + notes(out)}, stamps(out)
    bring(home, home.vault.folder)
    bring(home, out)
    held, there, here = dump(home), stamps(out), stamps(home.vault.folder)
    done = [bring(home, folder) for folder in (home.vault.folder, out)]
    assert [(one.unchanged, one.added, one.updated, one.verdicts) for one in done] == [(2, (), (), 0)] * 2
    assert (dump(home), stamps(out), stamps(home.vault.folder)) == (held, there, here)
    assert before[0] == {path: path.read_bytes() for path in before[0]}
    assert before[1].items() >= {(name, at) for name, at in stamps(out).items() if name.endswith(".md")}


def test_the_session_of_an_entry_is_found_again_and_is_no_session_until_then(home: Home) -> None:
    learn(home, "큐는 SQLite로 한다", session="s-of-old")
    home = lost(home)
    bring(home, home.vault.folder)
    assert entries(home)["큐는 SQLite로 한다"].session == "s-of-old"
    assert home.reader.counts()["sessions"] == 0 and home.reader.due_sessions() == []


def test_old_indexes_do_not_crowd_out_what_was_imported(home: Home) -> None:
    learn(home, *(f"큐 번호 {number}은 SQLite로 한다" for number in range(40)))
    bring(home, home.vault.folder)
    words = home.index.words()
    assert words is not None and len(words) == 40
    for path in notes(home.vault.folder)[1:]:
        path.unlink()
    home = lost(home)
    assert len(bring(home, home.vault.folder).added) == 1
    words = home.index.words()
    assert words is not None and len(words) == 1


# --- export ----------------------------------------------------------------------------------------------------------


def test_an_export_writes_only_what_changed(home: Home, out: Path) -> None:
    learn(home, *(f"결정 번호 {number}은 이렇다" for number in range(20)))
    assert export(home, out).written == 20
    before = stamps(out)
    done = export(home, out)
    assert (done.written, done.unchanged, stamps(out)) == (0, 20, before)
    change(home, "결정 번호 7은 이렇다", "다른 이유")
    assert export(home, out).written == 1
    assert {name for name, at in stamps(out).items() if at != before[name] and name.endswith(".md")} == {
        str(note_of(out, "다른 이유").relative_to(out))
    }


def test_every_standing_is_exported_and_a_project_takes_its_own_along(home: Home, out: Path) -> None:
    learn(home, "큐는 SQLite로 한다", "쓰지 않는 결정이다")
    learn(home, "다른 곳의 결정이다", project="/home/u/blog", session="s2")
    with home.database.transaction() as tx:
        knowledge.retire(tx, entries_uid(home, "쓰지 않는 결정이다"), at=1)
    assert export(home, out).written == 3
    part = out / "part"
    assert export(home, part, "/home/u/blog").written == 1
    (line,) = (part / ".wwt" / "verdicts.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["entry"] == entries_uid(home, "다른 곳의 결정이다")


def test_a_file_that_wwt_did_not_write_is_never_overwritten(home: Home, out: Path) -> None:
    learn(home, "큐는 SQLite로 한다", "이름은 snake_case로 한다", "캐시는 두지 않는다")
    export(home, out)
    names = {words: note_of(out, words) for words in ("SQLite", "snake_case", "캐시")}
    shutil.rmtree(out)
    out.joinpath("shop").mkdir(parents=True)
    names["SQLite"].write_text("내 장보기 목록", encoding="utf-8")
    export(home, out)
    edit(names["snake_case"], "이유는 이렇다", "내가 고친 이유")
    edit(names["캐시"], "이유는 이렇다", "내가 고친 이유")
    change(home, "캐시는 두지 않는다", "데이터베이스의 이유")
    held = {path: path.read_bytes() for path in notes(out)}
    done = export(home, out)
    assert (done.edited, done.written) == ((names["snake_case"],), 0)
    assert [path.name for path in done.conflicts] == [names["캐시"].stem + CONFLICT]
    assert "데이터베이스의 이유" in done.conflicts[0].read_text("utf-8")
    assert {path: path.read_bytes() for path in held} == held
    assert export(home, out).unsettled == done.conflicts
    assert len([path for path in notes(out) if "SQLite" in path.read_text("utf-8")]) == 1


def test_an_export_of_a_note_that_a_person_moved_follows_it(home: Home, out: Path) -> None:
    learn(home, "큐는 SQLite로 한다")
    export(home, out)
    (out / "내 것" / "깊이").mkdir(parents=True)
    moved = notes(out)[0].rename(out / "내 것" / "깊이" / "이름.md")
    change(home, "큐는 SQLite로 한다", "다른 이유")
    export(home, out)
    assert notes(out) == [moved] and "다른 이유" in moved.read_text("utf-8")
    shutil.rmtree(out / ".wwt")
    change(home, "큐는 SQLite로 한다", "또 다른 이유")
    done = export(home, out)
    assert notes(out) == [moved] and done.written == 0 and len(done.conflicts) == 1


def test_hand_edits_of_the_vault_are_in_the_export(home: Home, out: Path) -> None:
    learn(home, "큐는 SQLite로 한다")
    edit(notes(home.vault.folder)[0], "이유는 이렇다", "내가 고친 이유")
    edit(notes(home.vault.folder)[0], "type: decision", "type: decision\naliases: [큐]")
    assert len(export(home, out).adopted) == 1
    words = notes(out)[0].read_text("utf-8")
    assert "내가 고친 이유" in words and "aliases:\n- 큐" in words


def test_the_vault_may_be_named_and_is_kept_as_it_always_is(home: Home) -> None:
    learn(home, "큐는 SQLite로 한다")
    edit(notes(home.vault.folder)[0], "이유는 이렇다", "내가 고친 이유")
    done = export(home, home.vault.folder)
    assert len(done.adopted) == 1 and entries(home)["큐는 SQLite로 한다"].detail == "내가 고친 이유"


@pytest.mark.parametrize("where", ["", "staging", "vault/shop", "notes", ".."])
def test_folders_of_wwt_itself_are_refused(home: Home, where: str) -> None:
    learn(home, "큐는 SQLite로 한다")
    before = stamps(home.root.parent)
    for flow in (export, bring):
        with pytest.raises(WwtError) as caught:
            flow(home, home.root / where)
        assert caught.value.exit_code == USAGE and caught.value.key.startswith("exchange.")
    assert stamps(home.root.parent) == before


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_nothing_is_written_outside_of_the_folder(home: Home, out: Path, tmp_path: Path) -> None:
    learn(home, "큐는 SQLite로 한다")
    victims = tmp_path / "victims"
    victims.mkdir()
    (victims / "file").write_text("mine", encoding="utf-8")
    out.mkdir()
    (out / "shop").symlink_to(victims, target_is_directory=True)
    (bad,) = export(home, out).broken
    assert bad.path.parent == out / "shop" and "leads out" in bad.reason
    (out / "shop").unlink()
    (out / "shop").mkdir()
    name = bad.path.name
    (out / "shop" / f".{name}.tmp").symlink_to(victims / "file")
    (out / "shop" / name).symlink_to(victims / "file")
    assert export(home, out).written == 1
    assert [path.name for path in victims.iterdir()] == ["file"] and (victims / "file").read_text("utf-8") == "mine"
    shutil.rmtree(out / ".wwt")
    (out / ".wwt").symlink_to(victims, target_is_directory=True)
    for flow in (export, bring):
        with pytest.raises(WwtError) as caught:
            flow(home, out)
        assert caught.value.key == "vault.leads_out"
    assert [path.name for path in victims.iterdir()] == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_note_that_is_a_link_is_not_followed(home: Home, out: Path, tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere.md"
    secret.write_text("---\nuid: abcdefgh\ntype: decision\n---\n\n# 밖에 있는 것\n", encoding="utf-8")
    out.mkdir()
    (out / "in.md").symlink_to(secret)
    (out / "gone.md").symlink_to(tmp_path / "nowhere")
    done = bring(home, out)
    assert (done.notes, [bad.path.name for bad in done.broken]) == (0, ["gone.md", "in.md"]) and entries(home) == {}


# --- notes of people -------------------------------------------------------------------------------------------------


def test_edits_made_before_the_loss_and_after_it_are_taken_in(home: Home) -> None:
    learn(home, "큐는 SQLite로 한다", "이름은 snake_case로 한다")
    edit(note_of(home.vault.folder, "SQLite"), "이유는 이렇다", f"손으로 고쳤다. 토큰은 {TOKEN} 이다")
    edit(note_of(home.vault.folder, "snake_case"), "# 이름은 snake_case로 한다", "머리말\n\n# 이름은 camelCase로 한다")
    home = lost(home)
    bring(home, home.vault.folder)
    found = entries(home)
    assert found["큐는 SQLite로 한다"].detail.startswith("손으로 고쳤다. 토큰은 [secret:")
    assert found["이름은 camelCase로 한다"].detail == "머리말\n\n이유는 이렇다"
    assert [path for path in home.root.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()] == []


def test_a_secret_in_a_folder_of_a_persons_own_is_masked_here_and_left_there(home: Home, out: Path) -> None:
    learn(home, "큐는 SQLite로 한다")
    export(home, out)
    edit(notes(out)[0], "이유는 이렇다", f"토큰은 {TOKEN} 이다")
    assert len(bring(home, out).updated) == 1
    assert "[secret:" in entries(home)["큐는 SQLite로 한다"].detail and TOKEN in notes(out)[0].read_text("utf-8")
    assert [path for path in home.root.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()] == []
    assert bring(home, out).unchanged == 1


FRONT = "---\nuid: {uid}\ntype: decision\n---\n\n"
GOOD = FRONT.format(uid="goodgood") + "# 좋은 결정이다\n\n이유\n"
BROKEN = [
    (b"---\nuid: [\n---\n# x\n", 3, "is not YAML"),
    (b"---\ntags: [a]\n---\n\n# x\n", 1, "has no `type`"),
    (b"---\nuid: abcdefgh\ntype: idea\n---\n\n# x\n", 3, "'type' cannot be idea"),
    (b"---\nuid: a b\ntype: decision\n---\n\n# x\n", 2, "'uid' cannot be a b"),
    (b"# no front matter\n", 1, "does not begin"),
    (b"---\nuid: abcdefgh\ntype: decision\n---\n\nno heading\n", 5, "no `# ` heading"),
    (b"---\nuid: abcdefgh\ntype: decision\n---\n\n# \xff\n", 6, "not UTF-8"),
    ("---\nuid: abcdefgh\ntype: decision\n---\n\n# 가\n".encode("utf-16"), 1, "not UTF-8"),
    (FRONT.format(uid="goodgood").encode() + b"# twice\n", 2, "has the same uid"),
    (b"---\na: &a [x, x]\nb: &b [*a, *a]\n---\n\n# x\n", 3, "aliases"),
    (b"---\na: " + b"[" * 500 + b"\n---\n\n# x\n", 2, "aliases"),
    (b"---\n" + b"a: b\n" * 20_000 + b"---\n\n# x\n", 2, "too large"),
    (FRONT.format(uid="abcdefgh").encode() + b"# x\n" + b"y" * 1_000_001, 0, "too large"),
    (b"---\nuid: abcdefgh\ntype: decision\ncreated: !!timestamp foo\n---\n\n# x\n", 4, "'created'"),
    (FRONT.format(uid="abcdefgh").encode().replace(b"---\n\n", b"mine: !!bool so\n---\n\n") + b"# x\n", 4, "'mine'"),
    (FRONT.format(uid="abcdefgh\nmine: !!int ''").encode() + b"# x\n", 3, "'mine'"),
    (FRONT.format(uid="abcdefgh\nproject: 0x" + "f" * 9999).encode() + b"# x\n", 3, "'project'"),
    (FRONT.format(uid="abcdefgh\nproject: '\\ud800'").encode().replace(b"'", b'"') + b"# x\n", 3, "Unicode"),
    (FRONT.format(uid="--help").encode() + b"# x\n", 2, "'uid' cannot be --help"),
    (FRONT.format(uid="abcdefgh").encode() + b"# " + b" " * 900_000 + b"\n", 5, "no `# ` heading"),
    (b"", 1, "does not begin"),
]


@pytest.mark.parametrize(("data", "line", "reason"), BROKEN)
def test_a_broken_note_costs_itself_only(home: Home, out: Path, data: bytes, line: int, reason: str) -> None:
    out.mkdir()
    (out / "a-good.md").write_text(GOOD, encoding="utf-8")
    (out / "b-bad.md").write_bytes(data)
    done = bring(home, out)
    (bad,) = done.broken
    assert (bad.path, bad.line, len(done.added)) == (out / "b-bad.md", line, 1) and reason in bad.reason
    assert (out / "b-bad.md").read_bytes() == data and list(entries(home)) == ["좋은 결정이다"]


@pytest.mark.parametrize("start", ["\ufeff", ""])
def test_notes_of_windows_editors_are_read(home: Home, out: Path, start: str) -> None:
    out.mkdir()
    (out / "a.md").write_bytes((start + GOOD).replace("\n", "\r\n").encode())
    assert len(bring(home, out).added) == 1
    assert (entries(home)["좋은 결정이다"].uid, entries(home)["좋은 결정이다"].detail) == ("goodgood", "이유")


def test_a_note_without_a_uid_becomes_an_entry_once(home: Home, out: Path) -> None:
    out.mkdir()
    mine = out / "mine.md"
    mine.write_text(
        "---\ntype: pattern\ntags: 배포, CI\nmood: calm\n---\n# 금요일에는 배포하지 않는다\n", encoding="utf-8"
    )
    written = mine.read_bytes()
    assert len(bring(home, out).added) == 1
    entry = entries(home)["금요일에는 배포하지 않는다"]
    assert (entry.type, entry.tags, entry.scope, entry.project) == (
        EntryType.PATTERN,
        ("배포", "ci"),
        Scope.GLOBAL,
        None,
    )
    assert "mood: calm" in note_of(home.vault.folder, entry.uid).read_text("utf-8") and entry.created_at > 0
    assert bring(home, out).unchanged == 1 and mine.read_bytes() == written
    edit(mine, "금요일에는", "금요일 오후에는")
    assert bring(home, out).updated == (entry.uid,)
    mine.rename(out / "renamed.md")
    assert bring(home, out).unchanged == 1 and list(entries(home)) == ["금요일 오후에는 배포하지 않는다"]
    assert stage(home.desk, candidate("금요일에는 배포하지 않는다")).quiet == 1


def test_what_another_entry_says_already_is_not_added(home: Home, out: Path) -> None:
    """The database was lost, its sessions were archived and reviewed again, and only then the old notes are imported."""
    learn(home, "큐는 SQLite로 한다")
    old = entries_uid(home, "큐는 SQLite로 한다")
    export(home, out)
    shutil.rmtree(home.vault.folder)
    home = lost(home)
    learn(home, "큐는 SQLite로 한다")
    done = bring(home, out)
    now = entries_uid(home, "큐는 SQLite로 한다")
    assert now != old and (done.twins, done.added) == (((notes(out)[0], now),), ())
    assert bring(home, out).twins == done.twins and len(entries(home)) == 1


def test_a_note_that_was_broken_comes_in_with_its_verdict_once_it_is_mended(home: Home) -> None:
    learn(home, "큐는 SQLite로 한다")
    path = notes(home.vault.folder)[0]
    before, judged = entries(home), decided(home)
    edit(path, "type: decision", "type: [")
    home = lost(home)
    assert len(bring(home, home.vault.folder).broken) == 1 and entries(home) == {}
    assert stage(home.desk, candidate("큐는 SQLite로 한다"), session="s9").quiet == 1
    edit(path, "type: [", "type: decision")
    bring(home, home.vault.folder)
    assert entries(home) == before and decided(home) == judged


def test_keys_and_links_of_a_persons_own_survive(home: Home, other: Home, out: Path) -> None:
    learn(home, "큐는 SQLite로 한다")
    export(home, out)
    edit(notes(out)[0], "type: decision", "type: decision\naliases: [큐, queue]\ncssclasses: wide")
    edit(notes(out)[0], "이유는 이렇다", "[[다른 노트|이유]]와 ![[그림.png]]는 이렇다 #tag")
    bring(home, out)
    change(home, "큐는 SQLite로 한다", entries(home)["큐는 SQLite로 한다"].detail + "\n덧붙임")
    export(home, out)
    words = notes(out)[0].read_text("utf-8")
    assert "aliases:\n- 큐\n- queue\ncssclasses: wide" in words
    assert "[[다른 노트|이유]]와 ![[그림.png]]는 이렇다 #tag\n덧붙임" in words
    bring(other, out)
    assert "cssclasses: wide" in notes(other.vault.folder)[0].read_text("utf-8")


# --- between archives ------------------------------------------------------------------------------------------------


def test_two_machines_pass_a_folder_to_and_fro(home: Home, other: Home, out: Path) -> None:
    learn(home, "큐는 SQLite로 한다")
    export(home, out)
    assert len(bring(other, out).added) == 1 and entries(other) == entries(home)
    for round_, (writer, reader) in enumerate([(other, home), (home, other), (other, home)]):
        for step in range(2):  # more than one version at once
            change(writer, "큐는 SQLite로 한다", f"이유 {round_}.{step}")
            export(writer, out)
        done = bring(reader, out)
        assert (len(done.updated), done.conflicts, done.older) == (1, (), ())
        assert entries(reader) == entries(writer)
    assert not list(out.rglob(f"*{CONFLICT}"))


def test_words_changed_on_both_machines_are_both_kept(home: Home, other: Home, out: Path) -> None:
    learn(home, "큐는 SQLite로 한다")
    export(home, out)
    bring(other, out)
    change(home, "큐는 SQLite로 한다", "여기의 이유")
    change(other, "큐는 SQLite로 한다", "저기의 새 이유")
    export(other, out)
    (beside,) = bring(home, out).conflicts
    assert "여기의 이유" in beside.read_text("utf-8") and entries(home)["큐는 SQLite로 한다"].detail == "저기의 새 이유"
    change(other, "큐는 SQLite로 한다", "저기의 이유")
    export(other, out)
    change(home, "큐는 SQLite로 한다", "여기의 더 새 이유")
    done = bring(home, out)
    assert done.older == (notes(out)[0],) and entries(home)["큐는 SQLite로 한다"].detail == "여기의 더 새 이유"
    assert "저기의 이유" in notes(out)[0].read_text("utf-8")


def test_an_edit_of_a_note_whose_entry_changed_waits_for_a_person(home: Home, out: Path) -> None:
    learn(home, "큐는 SQLite로 한다")
    export(home, out)
    edit(notes(out)[0], "이유는 이렇다", "노트의 이유")
    change(home, "큐는 SQLite로 한다", "여기의 이유")
    written = notes(out)[0].read_bytes()
    for _ in range(3):
        done = bring(home, out)
        (beside,) = done.conflicts
        assert "여기의 이유" in beside.read_text("utf-8") and notes(out)[0].read_bytes() == written
        assert entries(home)["큐는 SQLite로 한다"].detail == "여기의 이유" and not done.updated
    beside.unlink()
    assert len(bring(home, out).updated) == 1 and entries(home)["큐는 SQLite로 한다"].detail == "노트의 이유"
    assert bring(home, out) == Imported(notes=1, unchanged=1)


def test_without_a_memory_the_newer_words_count_and_none_are_lost(home: Home, other: Home, out: Path) -> None:
    learn(home, "큐는 SQLite로 한다", "이름은 snake_case로 한다", "캐시는 두지 않는다")
    export(home, out)
    bring(other, out)
    change(home, "큐는 SQLite로 한다", "더 새 이유")
    export(home, out)
    change(other, "이름은 snake_case로 한다", "다른 곳의 이유")
    edit(note_of(out, "캐시"), "이유는 이렇다", "손으로 고친 이유")
    shutil.rmtree(out / ".wwt")
    done = bring(other, out)
    found = entries(other)
    assert [path.name for path in done.older] == [note_of(out, "snake_case").name]
    assert [path.name for path in done.conflicts] == [note_of(out, "SQLite").stem + CONFLICT]
    assert [
        found[words].detail for words in ("큐는 SQLite로 한다", "이름은 snake_case로 한다", "캐시는 두지 않는다")
    ] == [
        "더 새 이유",
        "다른 곳의 이유",
        "손으로 고친 이유",
    ]


def test_a_later_acceptance_outdoes_a_rejection_and_nothing_outdoes_an_acceptance(
    home: Home, other: Home, out: Path
) -> None:
    for one in (home, other):
        stage(one.desk, candidate("큐는 SQLite로 한다"), candidate("이름은 snake_case로 한다"))
    accept_all(home.desk, Filters(), limit=1, vault=home.vault)
    reject_all(home.desk, EVERYTHING, vault=home.vault)
    (accepted,) = entries(home)
    reject_all(other.desk, EVERYTHING, vault=other.vault)
    with other.database.transaction() as tx:
        for v in verdicts.everything(tx):
            verdicts.record(tx, [v.anchor], v.outcome, None, at=1)
    export(home, out)
    bring(other, out)
    assert {(v[1], v[2] is not None) for v in decided(other)} == {(Action.ACCEPTED, True), (Action.REJECTED, False)}
    back = out.with_name("back")
    with other.database.transaction() as tx:
        for v in verdicts.everything(tx):
            verdicts.record(tx, [v.anchor], Action.REJECTED, None, at=9_000_000_000_000)
    export(other, back)
    before = decided(home)
    bring(home, back)
    assert decided(home) == before and list(entries(home)) == [accepted]


def test_projects_of_another_machine_are_told_by_name(home: Home, other: Home, out: Path, tmp_path: Path) -> None:
    learn(other, "큐는 SQLite로 한다", project="/Users/me/shop")
    learn(other, "이름은 snake_case로 한다", project="/Users/me/unknown", session="s2")
    learn(other, "캐시는 두지 않는다", project="/Users/me/twice", session="s3")
    export(other, out)
    assert len(bring(home, out).added) == 3
    assert {one.project for one in entries(home).values()} == {f"/Users/me/{n}" for n in ("shop", "unknown", "twice")}
    for number, key in enumerate(("/home/u/Shop", "/a/twice", "/b/twice")):
        _archived(home, key, f"own-{number}")
    done = bring(home, out)
    assert (done.projects, done.updated) == ((("/Users/me/shop", "/home/u/Shop"),), ())
    assert entries(home)["큐는 SQLite로 한다"].project == "/home/u/Shop"
    assert bring(home, out).unchanged == 3
    export(home, tmp_path / "theirs")
    assert bring(other, tmp_path / "theirs").unchanged == 3
    assert entries(other)["큐는 SQLite로 한다"].project == "/Users/me/shop"


def _archived(home: Home, key: str, session: str) -> None:
    from store import projects

    with home.database.transaction() as tx:
        place = projects.ensure(tx, SafeText(key), SafeText(key.rpartition("/")[2]), SafeText(key))
        made = sessions.ensure(tx, "claude-code", SafeText(session), project_id=place, changed_at=1, ended_at=1)
        assert made


def _said(home: Home, session: str) -> None:
    with home.database.transaction() as tx:
        found = sessions.find(tx, "claude-code", session) or 0
        values = {"session_id": found, "agent": "claude-code", "key": "k1", "role": "user", "kind": "said"}
        tx.execute(tables.turn.insert().values(**values, pos=0, ord=1, text=SafeText("말"), time=1))


def test_what_was_forgotten_stays_forgotten(home: Home, out: Path) -> None:
    learn(home, "큐는 SQLite로 한다", "이름은 snake_case로 한다", session="s-gone")
    export(home, out)
    with home.database.transaction() as tx:
        forgetting.drop(tx, [forgetting.Named("claude-code", SafeText("s-gone"))], at=1_775_000_000_000)
    home.vault.sync()
    assert "> 큐는" not in note_of(home.vault.folder, "큐는").read_text("utf-8")
    bring(home, out)
    assert not any(quote.quote for one in entries(home).values() for quote in one.evidence)
    before = entries(home)
    home = lost(home)
    bring(home, home.vault.folder)
    assert entries(home) == before and all(one.source_forgotten for one in before.values())
    with home.database.transaction() as tx:
        assert knowledge.is_forgotten(tx, "claude-code", ["s-gone"])
    shutil.rmtree(home.vault.folder / "shop")
    home.database.close()
    with home.database.transaction() as tx:
        for one in before.values():
            knowledge.delete_entry(tx, one.uid)
    bring(home, out)
    assert {one.source_forgotten for one in entries(home).values()} == {True}
    assert not any(quote.quote for one in entries(home).values() for quote in one.evidence)


def test_what_was_forgotten_elsewhere_leaves_the_entries_that_came_before(home: Home, other: Home, out: Path) -> None:
    """An export of before is taken in first, and one of after it: the quotes go again, from every file."""
    learn(home, "큐는 SQLite로 한다", session="s-gone")
    learn(home, "이름은 snake_case로 한다", session="s-here")
    export(home, out)
    gone = [forgetting.Named("claude-code", SafeText(name)) for name in ("s-gone", "s-here")]
    with home.database.transaction() as tx:
        forgetting.drop(tx, gone, at=1_775_000_000_000)
    after = out.with_name("after")
    export(home, after)
    bring(other, out)
    _archived(other, "/home/u/shop", "s-here")
    _said(other, "s-here")
    assert "> 큐는" in note_of(other.vault.folder, "큐는").read_text("utf-8")
    bring(other, after)
    told = {one.summary: (one.source_forgotten, one.evidence[0].quote) for one in entries(other).values()}
    assert told == {"큐는 SQLite로 한다": (True, ""), "이름은 snake_case로 한다": (False, "이름은 snake_case로 한다")}
    assert "> 큐는" not in note_of(other.vault.folder, "큐는").read_text("utf-8")
    with other.database.transaction() as tx:
        assert sessions.forgotten_up_to(tx, "claude-code", "s-gone") and not forgetting.due(tx)
        assert sessions.forgotten_up_to(tx, "claude-code", "s-here") is None
    bring(other, out)
    assert {one.summary: (one.source_forgotten, one.evidence[0].quote) for one in entries(other).values()} == told


def test_the_later_of_two_forgettings_counts(home: Home, out: Path) -> None:
    own = out / ".wwt"
    own.mkdir(parents=True)
    for up_to in (5_000, 9_000, 7_000):
        line = {"agent": "codex", "session": "s1", "up_to": up_to}
        (own / "forgotten.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
        bring(home, out)
    with home.database.transaction() as tx:
        assert sessions.forgotten_up_to(tx, "codex", "s1") == 9_000


def test_an_export_takes_nothing_back_that_was_forgotten_later_elsewhere(home: Home, out: Path) -> None:
    mirrored = out / ".wwt" / "forgotten.jsonl"
    mirrored.parent.mkdir(parents=True)
    mirrored.write_text(json.dumps({"agent": "codex", "session": "s1", "up_to": 9_000}) + "\n", encoding="utf-8")
    with home.database.transaction() as tx:
        forgetting.entomb(tx, forgetting.Named("codex", "s1"), 5_000)
    export(home, out)
    assert json.loads(mirrored.read_text(encoding="utf-8"))["up_to"] == 9_000


def test_a_folder_that_cannot_be_written_is_read(
    home: Home, other: Home, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn(home, "큐는 SQLite로 한다", "이름은 snake_case로 한다")
    export(home, out)
    bring(other, out)
    edit(note_of(out, "SQLite"), "이유는 이렇다", "노트의 이유")
    change(other, "큐는 SQLite로 한다", "여기의 이유")
    before = stamps(out)
    monkeypatch.setattr(exchange.os, "access", lambda path, mode: False)  # root may write everywhere

    def refused(path: Path, data: bytes, **more: object) -> bool:
        if path.is_relative_to(out):
            raise WwtError("store.read_only", path=path)
        return written(path, data, **more)  # type: ignore[arg-type]

    written = exchange.atomic.write
    monkeypatch.setattr(exchange.atomic, "write", refused)
    done = bring(other, out)
    assert (done.unwritten, done.unchanged, stamps(out)) == ((note_of(out, "SQLite"),), 1, before)
    assert entries(other)["큐는 SQLite로 한다"].detail == "여기의 이유"


def test_a_damaged_mirror_costs_its_damaged_lines_only(home: Home) -> None:
    learn(home, "큐는 SQLite로 한다")
    mirror = home.vault.folder / ".wwt" / "verdicts.jsonl"
    good = mirror.read_text("utf-8")
    bad = ['{"anchor": ', "[]", "null", '{"anchor": 1, "outcome": "accepted", "entry": null, "at": 1}']
    bad += [json.dumps({"anchor": "a" * 24, "outcome": "accepted", "entry": {}, "at": 1})]
    bad += [json.dumps({"anchor": "b" * 24, "outcome": "rejected", "entry": None, "at": 10**30}), "\x00", "[" * 99_999]
    mirror.write_text("\n".join([*bad[:4], good.strip(), *bad[4:]]), encoding="utf-8")
    judged = decided(home)
    home = lost(home)
    assert bring(home, home.vault.folder).verdicts == 1 and decided(home) == judged


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="file names are text there")
def test_a_file_whose_name_is_no_text_is_a_note_like_any_other(home: Home, out: Path) -> None:
    out.mkdir()
    strange = Path(os.fsdecode(os.fsencode(out / "caf") + b"\xe9.md"))
    strange.write_text(GOOD, encoding="utf-8")
    assert len(bring(home, out).added) == 1 and bring(home, out).unchanged == 1
    change(home, "좋은 결정이다", "데이터베이스의 이유")
    assert export(home, out).written == 1 and "데이터베이스의" in strange.read_text("utf-8")
    edit(strange, "데이터베이스의", "노트의")
    change(home, "좋은 결정이다", "더 새 이유")
    (beside,) = bring(home, out).conflicts
    assert "더 새 이유" in beside.read_text("utf-8") and os.fsencode(beside).endswith(b"caf\xe9" + CONFLICT.encode())


def test_a_note_in_decomposed_letters_stays_as_it_was_typed(home: Home) -> None:
    """As macOS writes them: they are read composed, which is no secret that would have to go from the file."""
    learn(home, "큐는 SQLite로 한다")
    path = notes(home.vault.folder)[0]
    edit(path, "이유는 이렇다", unicodedata.normalize("NFD", "손으로 고친 이유"))
    edit(path, "type: decision", "type:   decision  # mine")
    typed = path.read_bytes()
    moved = path.rename(path.with_name(unicodedata.normalize("NFD", "내 노트.md")))
    home.vault.sync()
    assert entries(home)["큐는 SQLite로 한다"].detail == "손으로 고친 이유" and moved.read_bytes() == typed
    assert home.vault.mask_again() == 0 and moved.read_bytes() == typed


# --- killed ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked from one that is loaded")
def test_an_import_killed_anywhere_is_completed_by_the_next(
    processes: Server, home: Home, out: Path, tmp_path: Path
) -> None:
    learn(home, *(f"결정 번호 {number}은 이렇다" for number in range(5)))
    stage(home.desk, candidate("이 결정은 받지 않는다"), session="s2")
    reject_all(home.desk, EVERYTHING, vault=home.vault)
    edit(note_of(home.vault.folder, "번호 3은"), "이유는 이렇다", "손으로 고친 이유")
    export(home, out)
    note = out / "mine.md"
    note.write_text("---\ntype: pattern\n---\n# 금요일에는 배포하지 않는다\n", encoding="utf-8")
    before, judged = entries(home), decided(home)
    steps = processes.steps("import", str(out), home=opened(tmp_path / "count").root)
    for step in sorted({1, 2, *range(3, steps, max(1, steps // 12)), steps}):
        shutil.rmtree(out / ".wwt" / "state.json", ignore_errors=True)
        fresh = opened(tmp_path / f"killed{step}")
        assert processes.run("import", str(out), home=fresh.root, kill_at=step).code == -signal.SIGKILL
        done = processes.run("import", str(out), home=fresh.root)
        assert (done.code, done.err) == (0, "")
        found = entries(fresh)
        assert found.pop("금요일에는 배포하지 않는다").type is EntryType.PATTERN
        assert found == before and decided(fresh) >= judged and len(decided(fresh)) == len(judged) + 1
        assert len(notes(fresh.vault.folder)) == 6 and not list(out.rglob(f"*{CONFLICT}"))
        assert standing_of(fresh.index).waiting == 0
        shutil.rmtree(fresh.root)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked from one that is loaded")
def test_an_export_killed_anywhere_leaves_whole_notes_and_is_completed_by_the_next(
    processes: Server, home: Home, out: Path, tmp_path: Path
) -> None:
    """Each note is the old one or the new one; what a person wrote is untouched; nothing else is left behind."""
    learn(home, *(f"결정 번호 {number}은 이렇다" for number in range(4)))
    export(home, out)
    edit(note_of(out, "번호 3은"), "이유는 이렇다", "손으로 고친 이유")
    mine = note_of(out, "번호 3은")
    old = {path.relative_to(out): path.read_bytes() for path in notes(out)}
    for number in range(3):
        change(home, f"결정 번호 {number}은 이렇다", "둘째 이유")
    learn(home, "새 결정이다")
    shutil.copytree(out, tmp_path / "whole")
    steps = processes.steps("export", str(tmp_path / "whole"), home=home.root)
    new = {path.relative_to(tmp_path / "whole"): path.read_bytes() for path in notes(tmp_path / "whole")}
    assert sum(old.get(name) != data for name, data in new.items()) == 4
    for step in sorted({1, 2, *range(3, steps, max(1, steps // 15)), steps}):
        cut = shutil.copytree(out, tmp_path / f"cut{step}")
        assert processes.run("export", str(cut), home=home.root, kill_at=step).code == -signal.SIGKILL
        for path in notes(cut):
            name = path.relative_to(cut)
            assert path.read_bytes() in (old.get(name), new[name])
        processes.run("export", str(cut), home=home.root)
        assert {path.relative_to(cut): path.read_bytes() for path in notes(cut)} == new
        assert not list(cut.rglob("*.tmp")) and not list(cut.rglob(f"*{CONFLICT}"))
        assert (cut / mine.relative_to(out)).read_bytes() == mine.read_bytes()


def test_two_exports_of_one_archive_are_the_same_bytes(home: Home, out: Path) -> None:
    learn(home, *(f"결정 번호 {number}은 이렇다" for number in range(9)))
    export(home, out)
    export(home, out.with_name("again"))
    found = [
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (out, out.with_name("again"))
    ]
    for each in found:
        del each[str(Path(".wwt", "state.json"))]  # tells when the files were written
    assert len(found[0]) == 11 and found[0] == found[1]


def test_an_import_asks_the_database_as_often_as_it_has_notes(home: Home, out: Path) -> None:
    out.mkdir()

    def asked(numbers: range) -> tuple[int, int]:
        """Statements of the import that adds these notes, and of the one that finds all of them unchanged."""
        for number in numbers:
            (out / f"{number}.md").write_text(
                f"---\nuid: e{number:07}\ntype: decision\ntags: [a{number}, shared]\nproject: /home/u/shop\n---\n\n# 결정 {number}이다\n",
                encoding="utf-8",
            )
        with statements() as first:
            assert len(bring(home, out).added) == len(numbers)
        with statements() as second:
            assert bring(home, out).unchanged == numbers.stop
        return len(first), len(second)

    (few, few_again), (many, many_again) = asked(range(100)), asked(range(100, 500))
    assert many < 5 * few and many_again < 6 * few_again and few_again < 100
    assert replace(entries(home)["결정 7이다"], created_at=0, reviewed_at=0).tags == ("a7", "shared")


@contextmanager
def statements() -> Iterator[list[str]]:
    found: list[str] = []

    def noted(*arguments: Any) -> None:
        found.append(arguments[2])

    event.listen(Engine, "before_cursor_execute", noted)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", noted)

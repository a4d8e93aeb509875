import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import note
from archiver.review import accept_all, reject_all
from archiver.vault import CONFLICT, Vault, file_name, folder_name, import_notes, read_verdicts
from staging.promote import Desk
from staging.waiting import Filters
from store import knowledge, verdicts
from store.records import Action, DecidedBy, Entry, EntryType, Quote, Role, SafeText, Scope
from tests.staging.factories import NOW, candidate, desk_at, redact, stage


def vault_of(desk: Desk) -> Vault:
    return Vault(desk.database.path.parent / "vault", desk.database, redact)


def filled(home: Path, *summaries: str) -> tuple[Desk, Vault]:
    desk = desk_at(home)
    stage(
        desk,
        *(candidate(text, detail="이유는 이렇다\n\n- 하나\n- 둘") for text in summaries or ("큐는 SQLite로 한다",)),
    )
    accept_all(desk, Filters())
    return desk, vault_of(desk)


def notes(vault: Vault) -> list[Path]:
    return sorted(vault.folder.rglob("*.md"))


def only(vault: Vault) -> Path:
    (path,) = notes(vault)
    return path


def get(desk: Desk) -> Entry:
    with desk.database.transaction() as tx:
        return knowledge.list_entries(tx, knowledge.Filters(status=None))[0]


def edit(path: Path, change: str, to: str) -> None:
    before = path.read_text(encoding="utf-8")
    assert change in before
    path.write_text(before.replace(change, to), encoding="utf-8")


def change_entry(desk: Desk, detail: str) -> None:
    with desk.database.transaction() as tx:
        knowledge.update_entry(tx, get_uid(desk), detail=SafeText(detail), at=NOW)


def get_uid(desk: Desk) -> str:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(desk.database.path)) as db:
        return str(db.execute("SELECT uid FROM entry").fetchone()[0])


def test_a_note_reads_like_a_note(wwt_home: Path) -> None:
    _, vault = filled(wwt_home)
    assert vault.sync().written == 1
    text = only(vault).read_text(encoding="utf-8")
    assert text.startswith("---\nuid: ") and "\n# 큐는 SQLite로 한다\n\n이유는 이렇다\n" in text
    assert "status: active" in text and "> 큐는 SQLite로 한다" in text
    assert only(vault).parent.name == "shop"


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
def test_only_the_owner_may_read_the_vault(wwt_home: Path) -> None:
    _, vault = filled(wwt_home)
    vault.sync()
    for path in vault.folder.rglob("*"):
        assert path.name == "lock" or path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)


def test_unchanged_notes_are_not_touched(wwt_home: Path) -> None:
    desk, vault = filled(wwt_home, *(f"결정 번호 {n}은 이렇다" for n in range(40)))
    vault.sync()
    before = {p: p.stat().st_mtime_ns for p in vault.folder.rglob("*") if p.is_file() and p.name != "lock"}
    stage(desk, candidate("새 결정이 하나 더 있다"), session="s9")
    accept_all(desk, Filters())
    assert vault.sync().written == 1 and vault.sync().written == 0
    changed = {p.name for p, mtime in before.items() if p.stat().st_mtime_ns != mtime}
    assert changed == {"state.json", "verdicts.jsonl"}


def test_an_edited_note_is_adopted_and_left_as_the_person_wrote_it(wwt_home: Path) -> None:
    desk, vault = filled(wwt_home)
    vault.sync()
    edit(only(vault), "이유는 이렇다", "이유를 고쳐 적는다")
    edit(only(vault), "type: decision", "type: pattern\nmood: good")
    edit(only(vault), "tags:\n- cache", "tags: [Queue, DB]")
    written = only(vault).read_bytes()
    assert vault.sync().adopted == (get_uid(desk),)
    entry = get(desk)
    assert entry.detail.startswith("이유를 고쳐") and (entry.type, entry.tags) == (EntryType.PATTERN, ("queue", "db"))
    assert only(vault).read_bytes() == written and vault.sync().adopted == ()


def test_keys_of_a_persons_own_outlive_the_next_writing(wwt_home: Path) -> None:
    desk, vault = filled(wwt_home)
    vault.sync()
    edit(only(vault), "type: decision", "type: decision\naliases: [큐, queue]")
    vault.sync()
    change_entry(desk, "다른 이유")
    vault.sync()
    text = only(vault).read_text(encoding="utf-8")
    assert "aliases:\n- 큐\n- queue" in text and "다른 이유" in text


def test_a_secret_typed_into_a_note_does_not_stay(wwt_home: Path) -> None:
    desk, vault = filled(wwt_home)
    vault.sync()
    token = "ghp_" + "Z9x" * 12
    edit(only(vault), "이유는 이렇다", f"토큰은 {token}")
    vault.sync()
    assert token not in only(vault).read_text(encoding="utf-8") and "[secret:" in get(desk).detail


def test_a_retired_status_is_taken_over(wwt_home: Path) -> None:
    desk, vault = filled(wwt_home)
    vault.sync()
    edit(only(vault), "status: active", "status: retired")
    vault.sync()
    assert get(desk).status == "retired"


def test_changes_on_both_sides_are_kept_apart_until_a_person_settles_them(wwt_home: Path) -> None:
    desk, vault = filled(wwt_home)
    vault.sync()
    edit(only(vault), "이유는 이렇다", "사람이 고친 이유")
    change_entry(desk, "데이터베이스의 이유")
    (beside,) = vault.sync().conflicts
    mine = next(p for p in notes(vault) if p != beside)
    assert beside.name == mine.name.replace(".md", CONFLICT)
    assert "사람이 고친" in mine.read_text("utf-8") and "데이터베이스의" in beside.read_text("utf-8")
    assert vault.sync().conflicts == () and get(desk).detail == "데이터베이스의 이유"
    beside.unlink()
    assert vault.sync().adopted and get(desk).detail.startswith("사람이 고친 이유")


@pytest.mark.parametrize(
    ("change", "to", "line"),
    [
        ("---\nuid", "uid", 1),
        ("type: decision", "type: idea", 3),
        ("type: decision", "type: [", 5),
        ("# 큐는", "큐는", 0),
        ("confidence: 0.8", "confidence: sure", 0),
        ("tags:\n- cache", "tags:\n  a: b", 4),
    ],
)
def test_a_broken_note_is_reported_and_untouched(wwt_home: Path, change: str, to: str, line: int) -> None:
    desk, vault = filled(wwt_home)
    vault.sync()
    edit(only(vault), change, to)
    before, entry = only(vault).read_bytes(), get(desk)
    (broken,) = vault.sync().broken
    assert broken.path == only(vault) and broken.reason and (line in (0, broken.line))
    assert only(vault).read_bytes() == before and get(desk) == entry


TITLES = [
    "가" * 120,
    "가" * 120 + "나",
    "CON",
    'a/b:c*?"<>|',
    "..",
    "  .",
    "끝.",
    "\u202eevil",
    "é" * 200,
    "NUL.txt",
    "\u0301x",
    "-",
]


def entry_named(title: str, uid: str = "uid00001", project: str | None = None) -> Entry:
    return Entry(uid, EntryType.DECISION, SafeText(title), SafeText(""), (), project, created_at=NOW, reviewed_at=NOW)


@pytest.mark.parametrize("title", TITLES)
def test_names_are_valid_everywhere(tmp_path: Path, title: str) -> None:
    for name in (file_name(entry_named(title)), folder_name(entry_named("x", project=f"/home/{title}"))):
        path = tmp_path / name
        path.mkdir()
        assert len(name.encode()) < 255 and path.parent == tmp_path and name[-1] not in ". "
        assert not set('/\\:*?"<>|\u202e').intersection(name)
        assert name.split(".")[0].upper() not in {"CON", "NUL"}
    assert file_name(entry_named(title)) != file_name(entry_named(title, "uid00002"))


def test_a_moved_note_is_followed(wwt_home: Path) -> None:
    desk, vault = filled(wwt_home)
    vault.sync()
    moved = vault.folder / "내 폴더" / "새 이름.md"
    moved.parent.mkdir()
    only(vault).rename(moved)
    change_entry(desk, "다른 이유")
    vault.sync()
    assert notes(vault) == [moved] and "다른 이유" in moved.read_text("utf-8")


def test_a_lost_state_costs_nothing(wwt_home: Path) -> None:
    _, vault = filled(wwt_home)
    vault.sync()
    before = only(vault).stat().st_mtime_ns
    (vault.folder / ".wwt" / "state.json").write_text("{broken", encoding="utf-8")
    done = vault.sync()
    assert (done.written, done.conflicts, only(vault).stat().st_mtime_ns) == (0, (), before)


def test_a_state_that_points_outside_is_not_followed(wwt_home: Path) -> None:
    desk, vault = filled(wwt_home)
    vault.sync()
    victim = wwt_home / "victim.md"
    victim.write_text("mine", encoding="utf-8")
    state = vault.folder / ".wwt" / "state.json"
    raw = json.loads(state.read_text("utf-8"))
    raw["notes"][get_uid(desk)]["file"] = "../victim.md"
    state.write_text(json.dumps(raw), encoding="utf-8")
    change_entry(desk, "다른 이유")
    vault.sync()
    assert victim.read_text("utf-8") == "mine" and "다른 이유" in only(vault).read_text("utf-8")


KILLED = """
import os, signal, sys
from pathlib import Path
from archiver import vault
from staging import atomic
from tests.staging.factories import desk_at, redact
home = Path(sys.argv[1])
real = atomic.write
def write(path, data, **k):
    done = real(path, data, **k)
    if path.suffix == ".md":
        os.kill(os.getpid(), signal.SIGKILL)
    return done
atomic.write = write
vault.Vault(home / "vault", desk_at(home).database, redact).sync()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_kill_between_note_and_state_is_not_taken_for_an_edit(wwt_home: Path) -> None:
    desk, vault = filled(wwt_home)
    vault.sync()
    change_entry(desk, "둘째 이유")
    subprocess.run([sys.executable, "-c", KILLED, str(wwt_home)], check=False)
    assert "둘째 이유" in only(vault).read_text("utf-8")
    change_entry(desk, "셋째 이유")
    done = vault.sync()
    assert (done.written, done.conflicts, done.adopted) == (1, (), ())
    assert "셋째 이유" in only(vault).read_text("utf-8")


def test_knowledge_and_verdicts_survive_the_loss_of_the_database(wwt_home: Path) -> None:
    desk, vault = filled(wwt_home, "큐는 SQLite로 한다", "이름은 snake_case로 한다")
    stage(desk, candidate("이 결정은 받지 않는다"), session="s2")
    reject_all(desk, Filters(), vault=vault)
    with desk.database.transaction() as tx:
        before = {e.uid: e for e in knowledge.list_entries(tx)}
    desk.database.close()
    for path in wwt_home.glob("archive.db*"):
        path.unlink()
    fresh = desk_at(wwt_home)
    vault = vault_of(fresh)
    vault.sync()
    assert len(notes(vault)) == 2 and len(read_verdicts(vault.folder)) == 3
    done = import_notes(vault.folder, fresh.database, redact)
    assert (done.added, done.verdicts, done.broken) == (2, 1, ())
    with fresh.database.transaction() as tx:
        after = {e.uid: e for e in knowledge.list_entries(tx)}
        assert [v.outcome for v in verdicts.everything(tx)].count(Action.REJECTED) == 1
    assert {u: (e.summary, e.detail, e.tags, e.evidence) for u, e in after.items()} == {
        u: (e.summary, e.detail, e.tags, e.evidence) for u, e in before.items()
    }
    assert stage(fresh, candidate("이 결정은 받지 않는다"), candidate("큐는 SQLite로 한다"), session="s3").quiet == 2
    assert import_notes(vault.folder, fresh.database, redact).added == 0
    assert vault.sync().conflicts == ()


def test_the_mirror_of_verdicts_holds_hashes_only(wwt_home: Path) -> None:
    _, vault = filled(wwt_home, "비밀스러운 문장이 하나 있다")
    vault.sync()
    mirror = (vault.folder / ".wwt" / "verdicts.jsonl").read_text("utf-8")
    assert set(json.loads(mirror)) == {"anchor", "outcome", "entry", "at"} and "비밀" not in mirror


text = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=60)


@given(text.filter(lambda t: t.strip()), st.lists(text, max_size=4), st.lists(text, max_size=3))
def test_a_note_reads_back_what_was_written(summary: str, lines: list[str], quotes: list[str]) -> None:
    entry = Entry(
        uid="uid00001",
        type=EntryType.SOLUTION,
        summary=redact(summary),
        detail=redact("\n".join(lines)),
        tags=("a", "배포", "1.0", "yes"),
        project="/home/u/shop: #x",
        scope=Scope.GLOBAL,
        agent="openclaw",
        session="s:1",
        rule="solution.cause",
        confidence=0.83,
        decided_by=DecidedBy.REPORTED,
        status="retired",
        created_at=NOW,
        reviewed_at=NOW + 1000,
        evidence=tuple(Quote(f"t{n}", Role.USER, redact(q), NOW) for n, q in enumerate(quotes)),
    )
    if not entry.summary.strip():
        return
    found = note.parse(Path("x.md"), note.render(entry, {}), redact)
    assert isinstance(found, note.Note) and found.same_as(entry)
    assert [q.turn for q in found.evidence] == [q.turn for q in entry.evidence]
    again = replace(found.as_entry(), evidence=())
    assert note.render(again, {}) == note.render(replace(entry, evidence=()), {})

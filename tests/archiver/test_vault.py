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
from archiver.notes import CONFLICT
from archiver.review import accept_all
from archiver.vault import Vault, file_name, folder_name
from staging.promote import Desk
from staging.waiting import Filters
from store import knowledge, tables
from store.records import LATEST, DecidedBy, Entry, EntryType, Quote, Role, SafeText, Scope
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
real = atomic.write_all
def write(files):
    real(files)
    os.kill(os.getpid(), signal.SIGKILL)
atomic.write_all = write
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


def test_the_mirror_of_verdicts_holds_hashes_only(wwt_home: Path) -> None:
    _, vault = filled(wwt_home, "비밀스러운 문장이 하나 있다")
    vault.sync()
    mirror = (vault.folder / ".wwt" / "verdicts.jsonl").read_text("utf-8")
    assert set(json.loads(mirror)) == {"anchor", "outcome", "entry", "at"} and "비밀" not in mirror


def test_a_note_of_another_uid_is_reported(wwt_home: Path) -> None:
    desk, vault = filled(wwt_home)
    vault.sync()
    edit(only(vault), f"uid: {get_uid(desk)}", "uid: stranger")
    (broken,) = vault.sync().broken
    assert broken.path == only(vault) and get_uid(desk) in broken.reason


def test_evidence_that_was_dropped_leaves_an_edited_note_too(wwt_home: Path) -> None:
    desk, vault = filled(wwt_home)
    vault.sync()
    edit(only(vault), "type: decision", "type:    decision  # mine")
    edit(only(vault), "이유는 이렇다", "고친 이유")
    with desk.database.transaction() as tx:
        tx.execute(tables.evidence.update().values(quote=None))
    vault.sync()
    text = only(vault).read_text("utf-8")
    assert "> 큐는" not in text and "`t1`" in text and "type:    decision  # mine" in text and "고친 이유" in text
    assert get(desk).detail.startswith("고친 이유") and vault.sync().written == 0


def test_an_edit_is_adopted_though_evidence_was_added_meanwhile(wwt_home: Path) -> None:
    desk, vault = filled(wwt_home)
    vault.sync()
    edit(only(vault), "이유는 이렇다", "고친 이유")
    with desk.database.transaction() as tx:
        found = knowledge.entry_id(tx, get_uid(desk)) or 0
        knowledge.add_evidence(tx, found, [Quote("t2", Role.USER, SafeText("또 말했다"), NOW)], agent="claude-code")
    assert vault.sync().adopted and "> 또 말했다" in only(vault).read_text("utf-8")


def test_a_note_that_a_person_marks_as_replaced_says_by_what(wwt_home: Path) -> None:
    desk, vault = filled(wwt_home, "큐는 SQLite로 한다", "큐는 Redis로 한다")
    vault.sync()
    with desk.database.transaction() as tx:
        new, old = sorted(knowledge.list_entries(tx), key=lambda entry: "Redis" in entry.summary)
    (path,) = [path for path in notes(vault) if "Redis" in path.read_text("utf-8")]
    edit(path, "status: active", f"status: superseded\nsuperseded_by: {new.uid}")
    vault.sync()
    with desk.database.transaction() as tx:
        found = knowledge.get(tx, old.uid)
    assert found and (found.status, found.superseded_by) == ("superseded", new.uid)


def test_a_note_that_cannot_be_written_costs_itself_only(wwt_home: Path) -> None:
    desk, vault = filled(wwt_home, "큐는 SQLite로 한다")
    vault.folder.mkdir()
    (vault.folder / "shop").write_text("mine", encoding="utf-8")
    stage(desk, candidate("다른 곳의 결정이다"), session="s9", project="/home/u/blog")
    accept_all(desk, Filters())
    done = vault.sync()
    assert (done.written, len(done.broken), (vault.folder / "shop").read_text("utf-8")) == (1, 1, "mine")
    (vault.folder / "shop").unlink()
    assert vault.sync().written == 1


text = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=60)
lines = st.one_of(
    text, st.sampled_from([note.MARKER, "# heading", "---", "> quote", "## Evidence", "> — user, -, `t`"])
)
safe = text.map(lambda words: str(redact(words)))
moments = st.integers(1, LATEST - 1)


@given(
    text.filter(lambda t: t.strip()),
    st.lists(lines, max_size=5),
    st.lists(st.tuples(text, lines, moments | st.none(), st.sampled_from(Role)), max_size=3),
    st.tuples(moments, moments),
    st.dictionaries(st.sampled_from(["aliases", "큐", "a: b"]), st.lists(safe) | safe | st.integers() | st.none()),
)
def test_a_note_reads_back_what_was_written(
    summary: str,
    lines: list[str],
    quotes: list[tuple[str, str, int | None, Role]],
    times: tuple[int, int],
    own: dict[str, object],
) -> None:
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
        status="superseded",
        superseded_by="uid00002",
        created_at=times[0],
        reviewed_at=times[1],
        evidence=tuple(Quote(str(redact(turn)), role, redact(q), at) for turn, q, at, role in quotes),
    )
    if not entry.summary.strip():
        return
    written = note.render(entry, own)
    found = note.parse(Path("x.md"), written, redact)
    assert isinstance(found, note.Note) and found.same_as(entry) and not found.masked
    again = found.as_entry()
    assert [(q.turn, q.role, q.time) for q in again.evidence] == [(q.turn, q.role, q.time) for q in entry.evidence]
    assert note.render(again, note.extra(written, redact)) == written
    assert replace(again, detail=entry.detail, summary=entry.summary, evidence=()) == replace(entry, evidence=())

"""Rows that do not fit together, and what is done about them without losing a word."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import migrations
from archiver.cli.search import find
from archiver.doctor.examine import mend
from archiver.home import Home
from tests.archiver.cli.test_commands import wwt
from tests.archiver.doctor.looks import FAULT, NOTE, database, found, mended, unwell
from tests.factories import words_in

SECRET = """
schema: 1
secrets:
  - id: error-code
    kind: error-code
    literals: ["err_deploy"]
    pattern: 'ERR_DEPLOY_[0-9]'
    examples: {match: ["ERR_DEPLOY_7"], miss: ["ERR_LOCK_1"]}
"""
LATER = 4_000_000_000_000
"""The year 2096, in UTC ms."""


def count(home: Path, table: str) -> int:
    with database(home) as db:
        return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_session_that_is_gone_from_under_its_turns_is_made_anew(home: Path) -> None:
    turns = count(home, "turn")
    with database(home) as db:
        db.execute("DELETE FROM session WHERE external_id LIKE '00000001%'")
    assert unwell(home)["links"] is FAULT
    mended(home, "links")
    assert count(home, "turn") == turns
    assert find(Home.open(), "ERR_DEPLOY_1", project=None, everything=True).hits[0].session.startswith("recovered-")
    with database(home) as db:
        assert db.execute("SELECT count(*) FROM entry WHERE session_id NOT IN (SELECT id FROM session)").fetchone() == (
            0,
        )


def test_project_that_is_gone_from_under_sessions_and_entries_is_made_anew(home: Path) -> None:
    with database(home) as db:
        held = db.execute("SELECT project_id FROM entry LIMIT 1").fetchone()[0]
        db.execute("DELETE FROM project WHERE id = ?", (held,))
    assert unwell(home)["links"] is FAULT
    mended(home, "links")
    with database(home) as db:
        assert db.execute("SELECT name FROM project WHERE id = ?", (held,)).fetchone()[0].startswith("recovered-")


def test_entry_whose_session_is_gone_stays_without_it(home: Path) -> None:
    with database(home) as db:
        db.execute("UPDATE entry SET session_id = 999")
    entries = count(home, "entry")
    assert unwell(home) == {"links": FAULT}
    mended(home, "links")
    with database(home) as db:
        assert db.execute("SELECT count(*), count(session_id) FROM entry").fetchone() == (entries, 0)


def test_rows_of_an_entry_that_is_gone_go_too(home: Path) -> None:
    with database(home) as db:
        db.execute("INSERT INTO entry_anchor (entry_id, anchor) VALUES (999, 'a')")
        db.execute("INSERT INTO turn_seen (turn_id, session_id) VALUES (999, 1)")
    assert unwell(home) == {"links": FAULT}
    mended(home, "links")
    assert (count(home, "entry_anchor WHERE entry_id = 999"), count(home, "turn_seen WHERE turn_id = 999")) == (0, 0)


def test_session_without_a_chunk_is_cut_anew_and_found(home: Path) -> None:
    before = count(home, "chunk")
    with database(home) as db:
        (held,) = db.execute("SELECT id FROM session WHERE external_id LIKE '00000001%'").fetchone()
        db.execute("DELETE FROM chunk WHERE session_id = ?", (held,))
    one = found(home, "chunks")
    assert one.state is FAULT
    assert "00000001" in one.text
    mended(home, "chunks")
    assert count(home, "chunk") == before
    assert find(Home.open(), "ERR_DEPLOY_1", project=None, everything=True).hits[0].session.startswith("00000001")


def test_turn_in_the_middle_that_no_chunk_holds_is_noticed(home: Path) -> None:
    with database(home) as db:
        assert db.execute("DELETE FROM chunk WHERE role = 'tool'").rowcount > 0
    assert unwell(home)["chunks"] is FAULT
    mended(home, "chunks")


def test_vector_without_its_text_is_removed(home: Path) -> None:
    before = count(home, "vector")
    with database(home) as db:
        db.execute("INSERT INTO vector SELECT 'nobody', model, chunk, sentences, scales, n FROM vector LIMIT 1")
    assert unwell(home) == {"orphans": FAULT}
    mended(home, "orphans")
    assert count(home, "vector") == before


def test_knowledge_that_was_accepted_twice_is_left_to_a_person(home: Path) -> None:
    with database(home) as db:
        held = db.execute("SELECT * FROM entry LIMIT 1")
        names = [column[0] for column in held.description]
        row = dict(zip(names, held.fetchone(), strict=True)) | {"id": 900, "uid": "twin1234"}
        row["summary"] = f"**{row['summary']}**"
        marks = ",".join("?" * len(names))
        db.execute(f"INSERT INTO entry ({','.join(names)}) VALUES ({marks})", tuple(row[name] for name in names))
        db.execute("INSERT INTO outbox (kind, ref, op) VALUES ('entry', 900, 'put')")
    one = found(home, "twice")
    assert one.state is NOTE
    assert "twin1234" in one.text
    assert one.mend is None


def test_time_in_the_future_is_worth_a_note(home: Path) -> None:
    with database(home) as db:
        db.execute("UPDATE session SET ended_at = ? WHERE id = (SELECT max(id) FROM session)", (LATER,))
    assert unwell(home) == {"clock": NOTE}


def test_secret_rules_that_changed_are_noticed_and_applied(home: Path) -> None:
    (home / "rules" / "mine.yaml").write_text(SECRET)
    assert unwell(home) == {"secrets": NOTE}
    mended(home, "secrets")
    assert words_in(home, "ERR_DEPLOY_1") == []


def test_erasure_that_was_stopped_is_a_fault_until_it_is_done(home: Path) -> None:
    with database(home) as db:
        db.execute("INSERT INTO meta (key, value) VALUES ('erase_due', 'x')")
    assert unwell(home) == {"erasing": FAULT}
    mended(home, "erasing")
    assert count(home, "meta WHERE key = 'erase_due'") == 0


def test_forgetting_that_was_stopped_is_a_fault_until_it_is_done(home: Path) -> None:
    with database(home) as db:
        db.execute("INSERT INTO forgotten (agent, external_id, up_to, due) VALUES ('claude-code', 'gone', 1, 1)")
    assert unwell(home) == {"erasing": FAULT}
    mended(home, "erasing")


def test_schema_of_a_newer_release_is_left_alone(home: Path) -> None:
    with database(home) as db:
        db.execute("UPDATE alembic_version SET version_num = '9999'")
    one = found(home, "schema")
    assert one.state is FAULT
    assert "9999" in one.text
    told = json.loads(wwt("doctor", "--fix", "--json", code=1).stdout)
    assert "schema" in {check["id"] for check in told["checks"] if check["state"] == "fault"}
    assert told["fixed"] == []


def test_older_schema_is_brought_up_with_a_copy_kept(wwt_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "REVISION", "0001")
        migrations.upgrade(wwt_home / "archive.db", wwt_home / "backups")
    wwt_home.chmod(0o700)
    assert found(wwt_home, "schema").state is NOTE
    mended(wwt_home, "schema")
    assert (wwt_home / "backups" / "archive-0001.db").exists()


def test_schema_that_lacks_a_part_names_it(home: Path) -> None:
    with database(home) as db:
        db.execute("ALTER TABLE entry DROP COLUMN uses")
    one = found(home, "schema")
    assert one.state is FAULT
    assert "entry.uses" in one.text


def test_database_at_odds_with_its_own_indexes_has_them_made_anew_before_anything_else_is_believed(home: Path) -> None:
    vectors = count(home, "vector")
    with database(home) as db:
        (made,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'ix_chunk_hash'").fetchone()
        db.execute("DROP INDEX ix_chunk_hash")
        db.execute("CREATE INDEX ix_chunk_hash ON chunk (hash) WHERE id > 3")
        db.execute("PRAGMA writable_schema = 1")
        db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'ix_chunk_hash'", (made,))
    assert unwell(home) == {"keys": FAULT}
    mended(home, "keys")
    assert count(home, "vector") == vectors


def test_two_rows_that_claim_one_place_are_left_to_a_person(home: Path) -> None:
    with database(home) as db:
        (made,) = db.execute("SELECT sql FROM sqlite_master WHERE name = 'tag'").fetchone()
        index = db.execute("SELECT * FROM sqlite_master WHERE name LIKE 'sqlite_autoindex_tag%'").fetchone()
        db.execute("PRAGMA writable_schema = 1")
        db.execute("DELETE FROM sqlite_master WHERE name = ?", (index[1],))
        db.execute(
            "UPDATE sqlite_master SET sql = 'CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT)' WHERE name = 'tag'"
        )
    with database(home) as db:
        db.execute("INSERT INTO tag (name) VALUES ('twice'), ('twice')")
        db.execute("PRAGMA writable_schema = 1")
        db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'tag'", (made,))
        db.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", index)
    assert unwell(home) == {"keys": FAULT}
    done = mend(home)
    assert [one.id for one in done.not_fixed] == ["keys"]
    assert "tag.name" in done.not_fixed[0].text
    assert unwell(home) == {"keys": FAULT}


@pytest.mark.parametrize(
    ("table", "column"), [("turn", "text"), ("chunk", "text"), ("session", "title"), ("entry", "summary")]
)
def test_text_that_a_disk_damaged_is_found_and_made_readable(home: Path, table: str, column: str) -> None:
    with database(home) as db:
        db.execute(
            f"UPDATE {table} SET {column} = CAST(CAST('물수리 ' AS BLOB) || x'ff80' || CAST({column} AS BLOB) AS TEXT)"
            f" WHERE id = (SELECT min(id) FROM {table} WHERE {column} IS NOT NULL)"
        )
    one = found(home, "texts")
    assert one.state is FAULT
    assert f"{table}: 1" in one.text
    assert wwt("search", "결제", "--all", code=0 if table == "turn" else 3).stderr.count("\n") <= 1
    mended(home, "texts")
    with database(home) as db:
        (kept,) = db.execute(f"SELECT {column} FROM {table} WHERE {column} LIKE '물수리%'").fetchone()
    assert kept.startswith("물수리 \ufffd\ufffd")
    if table != "turn":
        assert find(Home.open(), "물수리", project=None, everything=True).hits


@pytest.mark.parametrize("left", ["vault", "staging", "backups", "index"])
@pytest.mark.parametrize("how", ["gone", "emptied"])
def test_database_that_was_lost_is_told_from_a_new_home(home: Path, left: str, how: str) -> None:
    (home / "backups" / "archive-0001.db").write_bytes(b"a copy")
    for path in home.glob("archive.db*"):
        path.unlink()
    if how == "emptied":
        (home / "archive.db").touch(mode=0o600)
    for name in {"vault", "staging", "backups", "index"} - {left}:
        shutil.rmtree(home / name)
    one = found(home, "database")
    assert one.state is FAULT
    assert "`wwt import" in one.fix
    assert mend(home).fixed == ()
    shutil.rmtree(home / left)
    assert found(home, "database").state is NOTE


def test_damage_in_the_middle_ends_a_command_with_one_line(home: Path) -> None:
    path = home / "archive.db"
    with database(home) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        roots = [row[0] for row in db.execute("SELECT rootpage FROM sqlite_master WHERE name IN ('turn', 'chunk')")]
    with path.open("r+b") as file:
        for root in roots:
            file.seek((root - 1) * 4096)
            file.write(bytes(200))
    assert found(home, "database").state is FAULT
    done = wwt("status", code=3)
    assert done.stderr.count("\n") == 1
    assert "wwt doctor" in done.stderr


def test_texts_that_would_come_to_the_same_name_are_told_and_left(home: Path) -> None:
    with database(home) as db:
        first, second = (row[0] for row in db.execute("SELECT id FROM session ORDER BY id LIMIT 2"))
        for number, raw in ((first, b"s\xfe"), (second, b"s\xff")):
            db.execute("UPDATE session SET agent = 'codex', external_id = CAST(? AS TEXT) WHERE id = ?", (raw, number))
    done = mend(home)
    assert "UNIQUE" in {one.id: one.text for one in done.not_fixed}["texts"]
    assert done.faults

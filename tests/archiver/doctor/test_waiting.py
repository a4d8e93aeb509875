"""The review queue and the vault: what a person has to settle is named and never touched."""

from __future__ import annotations

from pathlib import Path

from staging.documents import Queue
from tests.archiver.doctor.looks import FAULT, NOTE, contents, database, found, mended, unwell


def document(home: Path) -> Path:
    return next((home / "staging").glob("*.json"))


def test_broken_document_is_named_and_never_touched(home: Path) -> None:
    path = document(home)
    path.write_text(path.read_text()[:100])
    before = contents(home / "staging")
    one = found(home, "staging")
    assert one.state is FAULT
    assert str(path) in one.text
    assert one.mend is None
    from archiver.doctor.examine import mend

    mend(home)
    assert contents(home / "staging") == before


def test_document_that_stands_in_for_a_broken_one_is_told(home: Path) -> None:
    path = document(home)
    path.rename(path.with_name(Queue.stand_in(path.name)))
    assert unwell(home) == {"stand_ins": NOTE}


def test_finding_that_was_decided_leaves_its_document(home: Path) -> None:
    import json

    path = document(home)
    anchor = json.loads(path.read_text())["entries"][0]["anchors"][0]
    with database(home) as db:
        db.execute("INSERT INTO verdict (anchor, outcome, at) VALUES (?, 'rejected', 1)", (anchor,))
    assert unwell(home) == {"decided": NOTE}
    mended(home, "decided")
    assert not path.exists() or anchor not in path.read_text()


def test_note_that_cannot_be_read_is_named_and_never_touched(home: Path) -> None:
    path = next((home / "vault").rglob("*.md"))
    path.write_text("---\nuid: [\n---\n# x\n")
    one = found(home, "vault")
    assert one.state is FAULT
    assert path.name in one.text
    assert one.mend is None


def test_note_that_is_missing_is_written_anew(home: Path) -> None:
    path = next((home / "vault").rglob("*.md"))
    path.unlink()
    assert unwell(home) == {"vault": NOTE}
    mended(home, "vault")
    assert path.exists()


def test_damaged_line_of_the_mirrored_verdicts_is_written_anew(home: Path) -> None:
    path = home / "vault" / ".wwt" / "verdicts.jsonl"
    whole = path.read_text()
    path.write_text(whole[:-20])
    assert unwell(home) == {"vault": NOTE}
    mended(home, "vault")
    assert path.read_text() == whole


def test_note_that_was_changed_on_both_sides_waits_for_a_person(home: Path) -> None:
    path = next((home / "vault").rglob("*.md"))
    path.with_suffix(".conflict.md").write_text(path.read_text())
    path.with_suffix(".conflict.md").chmod(0o600)
    one = found(home, "conflicts")
    assert one.state is FAULT
    assert ".conflict.md" in one.text
    assert unwell(home) == {"conflicts": FAULT}

"""Indexes that disagree with the database, and the model they are searched by."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from archiver.cli.search import find
from archiver.home import Home
from store.embeddings import announce
from store.lookup import models
from store.outbox import KEPT
from store.reader import Reader
from store.vectors import Vectors
from store.wordfiles import rows_in
from store.words import Row, Words, WordsDamaged
from tests.archiver.doctor.looks import FAULT, NOTE, OK, contents, database, found, mended, unwell


def largest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern), key=lambda path: path.stat().st_size)


def flip(path: Path, at: float) -> None:
    """Another bit in the middle of the file, as a disk may have it one day."""
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 1
    path.write_bytes(data)


def answers(query: str = "결제 중복 원인") -> list[str]:
    return [hit.id for hit in find(Home.open(), query, project=None, everything=True).hits]


@pytest.mark.parametrize("name", ["words", "vectors"])
def test_index_that_is_missing_is_made_anew(home: Path, name: str) -> None:
    before = answers()
    shutil.rmtree(home / "index" / name)
    assert unwell(home) == {name: FAULT}
    mended(home, name)
    assert answers() == before


@pytest.mark.parametrize(
    ("name", "pattern", "at"),
    [("words", "*.term", 0.3), ("words", "*.idx", 0.5), ("words", "*.fast", 0.1), ("words", "*.store", 0.01),
     ("vectors", "*.seg", 0.9), ("vectors", "*.seg", 0.1)],
)  # fmt: skip
def test_single_bit_that_changed_is_noticed(home: Path, name: str, pattern: str, at: float) -> None:
    flip(largest(home / "index" / name, pattern), at)
    assert unwell(home) == {name: FAULT}
    mended(home, name)


@pytest.mark.parametrize(
    ("name", "file"), [("words", "meta.json"), ("words", "wwt.json"), ("vectors", "manifest.json")]
)
def test_index_whose_description_is_broken_is_made_anew(home: Path, name: str, file: str) -> None:
    for content in (b"", b"{", b"{}", b"[]", b'{"version": 0}'):
        (home / "index" / name / file).write_bytes(content)
        assert found(home, name).state is FAULT, content
    mended(home, name)


def test_rows_that_are_only_in_the_database_or_only_in_the_index_are_noticed(home: Path) -> None:
    """One of each, so that the counts agree."""
    with Words(home / "index" / "words").writing() as writer:
        writer.delete(1)
        writer.put(Row(9_999, "ghost", "", 1, 1, 1, "chunk", "speech"))
    one = found(home, "words")
    assert one.state is FAULT
    assert "2 differ" in one.text
    mended(home, "words")
    assert {1} <= Words(home / "index" / "words").refs() < {*range(-99, 9_999)}


def test_vectors_that_are_only_in_the_index_are_noticed(home: Path) -> None:
    held = Vectors(home / "index" / "vectors")
    held.apply([], [min(ref for ref in held.refs() if ref > 0)])
    assert unwell(home) == {"vectors": FAULT}
    mended(home, "vectors")


def test_vectors_of_another_length_are_noticed(home: Path) -> None:
    path = home / "index" / "vectors"
    model = Vectors(path).model
    shutil.rmtree(path)
    Vectors.create(path, model, 64)
    assert "64" in found(home, "vectors").text
    mended(home, "vectors")


def test_vector_index_of_a_model_whose_vectors_are_gone_is_made_anew(home: Path) -> None:
    path = home / "index" / "vectors"
    shutil.rmtree(path)
    Vectors.create(path, "another@1", 512)
    assert "another" in found(home, "vectors").text
    mended(home, "vectors")


def test_damaged_vector_is_embedded_anew(home: Path) -> None:
    before = answers()
    with database(home) as db:
        db.execute(
            "UPDATE vector SET chunk = x'0102' WHERE hash = (SELECT hash FROM chunk WHERE role = 'speech' LIMIT 1)"
        )
    assert unwell(home)["vectors"] is FAULT
    mended(home, "vectors")
    assert answers() == before


def test_rows_that_wait_are_a_note_and_are_taken_in(home: Path) -> None:
    with database(home) as db:
        db.execute("INSERT INTO outbox (kind, ref, op) SELECT 'chunk', id, 'put' FROM chunk LIMIT 3")
    assert unwell(home) == {"outbox": NOTE}
    mended(home, "outbox")


def test_text_that_was_not_embedded_is_a_note_and_is_embedded(home: Path) -> None:
    with database(home) as db:
        held = db.execute("SELECT c.id, c.hash FROM chunk c WHERE c.role = 'speech' LIMIT 1").fetchone()
        db.execute("DELETE FROM vector WHERE hash = ?", (held[1],))
    Vectors(home / "index" / "vectors").apply([], [held[0]])
    assert unwell(home) == {"model": NOTE}
    mended(home, "model")


def test_vectors_of_another_model_than_the_settings_are_a_note_and_are_made_anew(home: Path) -> None:
    with database(home) as db:
        db.execute("UPDATE vector SET model = 'older@1'")
        db.execute("UPDATE meta SET value = 'older@1' WHERE key = 'embedding_model'")
    manifest = home / "index" / "vectors" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"model": "older@1"}))
    one = found(home, "model")
    assert one.state is NOTE
    assert "older" in one.text
    assert found(home, "vectors").state is OK
    mended(home, "model")
    assert list(models(Reader(home / "archive.db"))) != ["older@1"]


def test_model_that_cannot_be_had_says_what_to_do(home: Path) -> None:
    (home / "config.toml").write_text('[embedding]\nmodel = "elsewhere/model"\n')
    (home / "config.toml").chmod(0o600)
    assert unwell(home) == {"model": FAULT}
    assert "elsewhere/model" in found(home, "model").text


def test_examining_the_model_makes_no_cache(home: Path) -> None:
    shutil.rmtree(home / "index" / "embedder")
    before = contents(home)
    assert unwell(home) == {}
    assert contents(home) == before


def test_damaged_weights_are_a_fault_and_are_made_anew(home: Path) -> None:
    path = next((home / "index" / "embedder").glob("*.arrays"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()  # it is a link to the one of other tests
    path.write_bytes(data)
    path.chmod(0o600)
    assert unwell(home) == {"caches": FAULT}
    mended(home, "caches")


def test_lexicon_that_recall_cannot_use_is_compiled_anew(home: Path) -> None:
    for content in ("", "{", "[]", '{"names": {}}'):
        (home / "index" / "lexicon.json").write_text(content)
        assert found(home, "caches").state is FAULT, content
    mended(home, "caches")
    assert Home.open().aliases()


def test_rebuild_that_was_stopped_is_told(home: Path) -> None:
    with database(home) as db:
        db.execute("INSERT INTO meta (key, value) VALUES (?, 'token')", (KEPT,))
    assert unwell(home) == {"unfinished": NOTE}
    assert "wwt rebuild --words" in found(home, "unfinished").fix


def test_move_to_another_model_that_was_stopped_is_told(home: Path) -> None:
    with Home.open().database.transaction() as tx:
        announce(tx, "other@1")
    one = found(home, "unfinished")
    assert one.state is NOTE
    assert "other" in one.text


def test_rows_of_a_word_index_are_counted_without_opening_it(home: Path) -> None:
    folder = home / "index" / "words"
    (folder / ".tantivy-meta.lock").unlink()
    before = contents(folder)
    held = rows_in(folder)
    assert contents(folder) == before
    assert held == len(Words(folder))


def test_word_index_that_is_cut_off_is_damaged(home: Path) -> None:
    path = largest(home / "index" / "words", "*.store")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(WordsDamaged):
        rows_in(home / "index" / "words")

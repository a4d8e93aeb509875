"""The index flow: outbox, embedding, rebuilding, and what happens when something goes wrong in between."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

import numpy as np
import pytest

from archiver import derived, embedding
from archiver.index import Index
from archiver.search import Query, search
from store.outbox import enqueue
from store.tables import entry, outbox, vector
from store.vectors import Vectors
from store.words import Words
from tests.archiver.archives import Archive, Letters
from tests.archiver.standing import standing_of


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    made = Archive(tmp_path / "home", Letters())
    yield made
    made.database.close()


def test_applied_rows_leave_the_outbox_and_both_indexes_agree(archive: Archive) -> None:
    archive.say("첫 번째 조각", "second piece")
    archive.bring_up()
    standing = standing_of(archive.index)
    assert (standing.rows, standing.words, standing.vectors, standing.waiting, standing.unembedded) == (2, 2, 2, 0, 0)


def test_second_run_embeds_and_writes_nothing(archive: Archive) -> None:
    archive.say("한 번만 읽는다")
    archive.bring_up()
    before = {
        path: path.stat().st_mtime_ns for path in archive.root.rglob("*") if path.suffix in {".seg", ".json", ".idx"}
    }
    seen = archive.embedder.seen
    archive.bring_up()
    assert archive.embedder.seen == seen
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_same_text_is_embedded_once(archive: Archive) -> None:
    archive.say("같은 말")
    archive.bring_up()
    seen = archive.embedder.seen
    ids = archive.say("같은 말", session_id=2)
    archive.bring_up()
    assert archive.embedder.seen == seen
    assert ids[0] in Vectors(archive.root / "index" / "vectors").refs()


def test_only_speech_and_active_entries_are_embedded(archive: Archive) -> None:
    archive.say("error: tool line", role="tool")
    archive.say("machine talk", role="subagent")
    archive.know("old", status="retired")
    kept = archive.know("kept")
    archive.bring_up()
    assert Vectors(archive.root / "index" / "vectors").refs() == {-kept}


def test_deleted_rows_are_gone_everywhere_and_the_limit_is_filled(archive: Archive) -> None:
    ids = archive.say(*(f"배포 절차 {n}" for n in range(20)))
    archive.bring_up()
    archive.forget(*ids[:19])
    assert archive.found("배포 절차", limit=5) == [str(ids[19])]
    archive.bring_up()
    assert archive.found("배포 절차", limit=5) == [str(ids[19])]
    standing = standing_of(archive.index)
    assert (standing.words, standing.vectors, archive.count(vector)) == (1, 1, 1)


def test_shared_vector_stays_until_its_last_text_goes(archive: Archive) -> None:
    one, two = archive.say("같은 말")[0], archive.say("같은 말", session_id=2)[0]
    archive.bring_up()
    archive.forget(one)
    assert archive.count(vector) == 1
    archive.forget(two)
    assert archive.count(vector) == 0


def test_purge_leaves_no_word_of_a_forgotten_text(archive: Archive) -> None:
    ids = archive.say("zebrafish secretword", "other text stays")
    archive.bring_up()
    archive.forget(ids[0])
    archive.index.purge()
    data = b"".join(path.read_bytes() for path in (archive.root / "index").rglob("*") if path.is_file())
    assert b"zebrafish" not in data
    assert archive.found("other") == [str(ids[1])]


def test_failed_index_step_is_made_up_for_by_the_next_run(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.say("tk-71zx 진행")
    with monkeypatch.context() as patch:
        patch.setattr(Words, "writing", lambda self: (_ for _ in ()).throw(OSError("disk")))
        with pytest.raises(OSError, match="disk"):
            archive.index.apply()
    assert standing_of(archive.index).waiting == 1
    archive.bring_up()
    assert standing_of(archive.index).waiting == 0
    assert len(archive.found("tk-71zx")) == 1


def test_row_that_came_while_the_writer_was_held_is_found_and_applied_later(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.say("먼저 있던 문장")
    archive.bring_up()
    monkeypatch.setattr("store.words.BUSY_TRIES", 1)
    with Words(archive.root / "index" / "words").writing():
        ids = archive.say("잠금중에 들어온 문장 qwxz")
        archive.index.apply()
        assert archive.found("qwxz")[0] == str(ids[0])
        assert standing_of(archive.index).waiting == 1
    archive.index.apply()
    assert standing_of(archive.index).waiting == 0
    assert archive.found("qwxz")[0] == str(ids[0])


def test_other_process_at_work_is_no_error(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    from filelock import FileLock

    archive.say("기다리는 문장")
    monkeypatch.setattr(derived, "LOCK_SECONDS", 0.05)
    (archive.root / "index").mkdir()
    with FileLock(archive.root / "index" / ".lock"):
        assert archive.index.apply() == 0
        assert archive.index.ensure() == ["search.rebuilding"]
        assert archive.found("기다리는") == ["1"]
    assert archive.index.apply() == 1


def test_lost_indexes_are_rebuilt_and_answer_the_same(archive: Archive) -> None:
    archive.say("점검표를 올렸다", "배포는 내일이다", "checklist upload")
    archive.know("점검표는 위키에 둔다")
    archive.bring_up()
    before = archive.found("점검표 upload")
    shutil.rmtree(archive.root / "index")
    assert archive.opened().ensure() == []
    archive.index = archive.opened()
    assert archive.found("점검표 upload") == before


@pytest.mark.parametrize("name", ["words", "vectors"])
def test_damaged_index_is_rebuilt_with_a_notice(archive: Archive, name: str) -> None:
    archive.say("점검표를 올렸다", "배포는 내일이다")
    archive.bring_up()
    before = archive.found("점검표")
    for path in (archive.root / "index" / name).iterdir():
        if path.suffix in {".seg", ".term", ".idx"}:
            path.write_bytes(b"\x00" * 100)
    archive.index = archive.opened()
    results = search(archive.reader, archive.index, archive.embedder, Query("점검표"))
    assert results.notices == ("search.rebuilt",)
    assert [hit.id for hit in results.hits] == before
    assert archive.opened().ensure() == []


def test_interrupted_embedding_goes_on_where_it_stopped(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "EMBED_BATCH", 2)
    archive.say(*(f"문장 번호 {n}" for n in range(6)))

    def stop(done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        archive.index.embed_missing(stop)
    assert archive.count(vector) == 4
    assert archive.index.embed_missing() == 2
    assert standing_of(archive.index).vectors == 6


def test_killed_between_commit_and_apply_completes(archive: Archive) -> None:
    archive.say("하나", "둘")
    archive.bring_up()
    with archive.database.transaction() as tx:  # as if the process died after Tantivy's commit and before ours
        enqueue(tx, "chunk", [1, 2], "put")
    archive.bring_up()
    standing = standing_of(archive.index)
    assert (standing.words, standing.vectors, standing.waiting) == (2, 2, 0)


def test_model_change_searches_words_until_all_is_embedded_anew(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = archive.say("벡터 하나", "벡터 둘")
    archive.bring_up()
    archive.embedder = Letters("letters-2")  # of the same size
    results = search(archive.reader, archive.index, archive.embedder, Query("벡터"))
    assert results.engines == ("words",)
    assert results.notices == ("search.model_changed",)
    assert {hit.id for hit in results.hits} == {str(id_) for id_ in ids}
    assert archive.index.embed_missing() == 2
    assert search(archive.reader, archive.index, archive.embedder, Query("벡터")).engines == ("words", "vectors")
    assert archive.count(vector) == 2


def test_old_vectors_stay_while_the_new_model_is_half_done(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "EMBED_BATCH", 1)
    archive.say("벡터 하나", "벡터 둘")
    archive.bring_up()
    archive.embedder = Letters("letters-2")

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        archive.index.embed_missing(stop)
    assert archive.count(vector) == 3
    archive.index.apply()
    assert Vectors(archive.root / "index" / "vectors").model == "letters-1"
    assert len(Vectors(archive.root / "index" / "vectors")) == 2


def test_model_set_later_embeds_what_came_before(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "home")
    archive.say("모델 없이 온 문장")
    archive.bring_up()
    assert archive.count(outbox) == 0
    archive.embedder = Letters()
    assert archive.index.embed_missing() == 1
    assert standing_of(archive.index).vectors == 1


def test_unreadable_text_is_done_once_and_never_near_anything(archive: Archive) -> None:
    archive.say("\x01\x02", "   .")
    archive.embedder.query = lambda text: np.zeros(64, np.float32)  # type: ignore[method-assign]
    archive.bring_up()
    assert standing_of(archive.index).vectors == 0
    assert archive.index.embed_missing() == 0


def test_superseded_entry_leaves_the_vectors(archive: Archive) -> None:
    id_ = archive.know("포트는 8080이다")
    archive.bring_up()
    with archive.database.transaction() as tx:
        tx.execute(entry.update().where(entry.c.id == id_).values(status="superseded"))
        enqueue(tx, "entry", [id_], "put")
    archive.bring_up()
    assert (standing_of(archive.index).words, standing_of(archive.index).vectors) == (1, 0)


def test_archive_without_a_database_needs_no_index(tmp_path: Path) -> None:
    nothing = Index(tmp_path / "index", tmp_path / "archive.db", lambda: pytest.fail("opened"), lambda: None)
    assert nothing.ensure() == []
    assert not (tmp_path / "index").exists()


def test_search_path_imports_no_sqlalchemy() -> None:
    code = "import sys, archiver.search, archiver.index; sys.exit(any(m in sys.modules for m in ('sqlalchemy', 'kiwipiepy', 'numpy', 'tantivy')))"
    assert run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[2]).returncode == 0

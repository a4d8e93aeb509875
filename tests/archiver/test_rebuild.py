"""Making the indexes anew: the old ones serve meanwhile, nothing said meanwhile is lost, and what was stopped goes on."""

from __future__ import annotations

import os
import signal
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from archiver import embedding
from archiver import rebuild as module
from archiver.embedding import embed_missing
from archiver.home import Home
from archiver.rebuild import Wish, rebuild
from archiver.search import Query, search
from store import chunks, lookup
from store.errors import WwtError
from store.records import SafeText
from store.tables import outbox, session, vector
from store.vectors import Vectors
from tests.archiver.archives import Archive, Letters
from tests.archiver.processes import Server
from tests.archiver.standing import standing_of
from tests.archiver.trees import copied, plant, state

WORDS = Wish(vectors=False, caches=False)
VECTORS = Wish(words=False, caches=False)


@pytest.fixture
def archive(wwt_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    """An archive whose setting is an embedder of ten lines; any `letters-...` can be had, nothing else."""

    def opened(model: str, *, cache: Path, allow_download: bool = False) -> Letters | None:
        if model == "none":
            return None
        if not model.startswith("letters"):
            raise WwtError("embed.not_downloaded", model=model, repository=model)
        return Letters(model)

    monkeypatch.setattr("archiver.embed.choose.open_embedder", opened)
    monkeypatch.setattr(lookup, "AT_ONCE", 2)
    monkeypatch.setattr(module, "PAGES", 1)
    monkeypatch.setattr(embedding, "EMBED_BATCH", 2)
    made = Archive(wwt_home, Letters("letters-1"))
    (wwt_home / "config.toml").write_text('# mine\n[embedding]\nmodel = "letters-1"  # small\n')
    yield made
    made.database.close()


def setting(archive: Archive) -> str:
    return str(tomllib.loads((archive.root / "config.toml").read_text())["embedding"]["model"])


def held(archive: Archive) -> dict[str, int]:
    return lookup.models(archive.reader)


def at(count: int, act: Callable[[], object]) -> Callable[[str, int, int], None]:
    """A progress that acts once, when so many are done."""
    acted = []

    def progress(stage: str, done: int, total: int) -> None:
        if done >= count and not acted:
            acted.append(done)
            act()

    return progress


def stop() -> None:
    raise KeyboardInterrupt


def by_words(archive: Archive, text: str) -> set[str]:
    return {hit.id for hit in search(archive.reader, archive.opened(), None, Query(text)).hits}


# --- words ---


def test_new_word_index_answers_as_the_old_one_did(archive: Archive) -> None:
    archive.say("점검표를 올렸다", "배포는 내일이다", "checklist upload")
    archive.know("점검표는 위키에 둔다")
    archive.bring_up()
    before = archive.found("점검표 upload")
    assert rebuild(Home.open(), WORDS).words == 4
    assert archive.found("점검표 upload") == before
    assert not [path for path in (archive.root / "index").glob(".*") if path.is_dir()]


def test_interrupted_word_index_goes_on_where_it_stopped_and_the_old_one_serves(archive: Archive) -> None:
    ids = archive.say("anise", "basil", "cumin", "dill", "elder", "fennel")
    archive.bring_up()
    with pytest.raises(KeyboardInterrupt):
        rebuild(Home.open(), WORDS, at(5, stop))
    assert by_words(archive, "dill") == {str(ids[3])}
    seen: list[int] = []
    assert rebuild(Home.open(), WORDS, lambda stage, done, total: seen.append(done)).words == 6
    assert seen == [6]


def test_rows_that_others_wrote_and_applied_meanwhile_are_in_the_new_index(archive: Archive) -> None:
    old = archive.say("여우 하나", "여우 둘", "여우 셋", "여우 넷")
    archive.bring_up()
    late: list[int] = []

    def others() -> None:
        late.extend(archive.say("너구리 다섯", session_id=2))
        archive.forget(old[0])
        with archive.database.transaction() as tx:
            tx.execute(session.update().where(session.c.id == 1).values(title=SafeText("about otters")))
            chunks.reindex(tx, 1)
        other = archive.opened()
        assert other.apply() > 0
        assert lookup.waiting_count(archive.reader, None) == 0

    assert rebuild(Home.open(), WORDS, at(4, others)).words == 4
    assert by_words(archive, "너구리") == {str(late[0])}
    assert by_words(archive, "여우") == {str(id_) for id_ in old[1:]}
    words = archive.opened().words()
    assert words is not None
    assert words.frequency("otters", "title") == 3
    assert archive.count(outbox) == 0


def test_rows_that_nobody_has_applied_yet_are_in_the_new_index(archive: Archive) -> None:
    archive.say("여우 하나", "여우 둘")
    archive.bring_up()
    rebuild(Home.open(), WORDS, at(2, lambda: archive.say("너구리 셋", session_id=2)))
    assert len(by_words(archive, "너구리")) == 1
    assert archive.count(outbox) == 0


def test_words_erased_meanwhile_are_in_no_file_of_the_new_index(archive: Archive) -> None:
    ids = archive.say("zebrafish secretword", "other text", "third text", "fourth text")
    archive.bring_up()

    def erase() -> None:
        archive.forget(ids[0])
        assert archive.opened().purge()

    assert rebuild(Home.open(), WORDS, at(4, erase)).words == 3
    data = b"".join(path.read_bytes() for path in (archive.root / "index").rglob("*") if path.is_file())
    assert b"zebrafish" not in data
    assert by_words(archive, "text") == {str(id_) for id_ in ids[1:]}


def test_words_erased_after_an_interruption_are_in_no_unfinished_index(archive: Archive) -> None:
    ids = archive.say("zebrafish secretword", "other text", "third text", "fourth text")
    archive.bring_up()
    with pytest.raises(KeyboardInterrupt):
        rebuild(Home.open(), WORDS, at(3, stop))
    archive.forget(ids[0])
    archive.index.purge()
    data = b"".join(path.read_bytes() for path in (archive.root / "index").rglob("*") if path.is_file())
    assert b"zebrafish" not in data
    assert rebuild(Home.open(), WORDS).words == 3


def test_killed_right_after_the_new_index_took_its_place_it_is_not_made_twice(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.say("여우 하나", "여우 둘")
    archive.bring_up()
    with monkeypatch.context() as patch:
        patch.setattr(module, "_settle", lambda index, token: stop())
        with pytest.raises(KeyboardInterrupt):
            rebuild(Home.open(), WORDS)
    archive.say("너구리 셋", session_id=2)
    assert rebuild(Home.open(), WORDS, lambda *told: pytest.fail("made again")).words is not None
    assert len(by_words(archive, "너구리")) == 1
    assert archive.count(outbox) == 0


def test_damaged_unfinished_index_is_begun_again(archive: Archive) -> None:
    archive.say("anise", "basil", "cumin", "dill", "elder", "fennel")
    archive.bring_up()
    with pytest.raises(KeyboardInterrupt):
        rebuild(Home.open(), WORDS, at(5, stop))
    for path in (archive.root / "index" / ".next-words").glob("*.term"):
        path.write_bytes(b"\0")
    assert rebuild(Home.open(), WORDS).words == 6
    assert len(by_words(archive, "basil")) == 1


def test_second_rebuild_is_told_of_the_first(archive: Archive) -> None:
    (archive.root / "index").mkdir()
    with FileLock(archive.root / "index" / ".rebuild.lock"), pytest.raises(WwtError) as told:
        rebuild(Home.open(), WORDS)
    assert told.value.key == "rebuild.busy"


# --- vectors ---


def test_damaged_vector_is_embedded_anew_and_the_index_is_whole(archive: Archive) -> None:
    archive.say("하나", "둘", "셋")
    archive.bring_up()
    with archive.database.transaction() as tx:
        first = tx.execute(vector.select()).first()
        assert first is not None
        tx.execute(vector.update().where(vector.c.hash == first.hash).values(chunk=b"\1\2\3"))
    done = rebuild(Home.open(), VECTORS)
    assert (done.vectors, done.embedded) == (3, 1)
    assert standing_of(archive.index).intact


def test_model_that_cannot_be_had_costs_the_vectors_nothing_and_is_told(archive: Archive) -> None:
    archive.say("하나")
    archive.bring_up()
    (archive.root / "config.toml").write_text('[embedding]\nmodel = "elsewhere/model"\n')
    done = rebuild(Home.open(), VECTORS)
    assert done.vectors == 1
    assert "elsewhere/model" in done.notices[0]


# --- another model ---


def test_moving_to_another_model_keeps_the_comments_of_the_setting_and_leaves_no_old_vector(archive: Archive) -> None:
    archive.say("벡터 하나", "벡터 둘", "벡터 셋")
    archive.bring_up()
    done = rebuild(Home.open(), Wish(words=False, caches=False, embedding="letters-2"))
    assert (done.vectors, done.embedded, done.model) == (3, 3, "letters-2")
    assert (archive.root / "config.toml").read_text() == '# mine\n[embedding]\nmodel = "letters-2"  # small\n'
    assert held(archive) == {"letters-2": 3}
    archive.embedder, archive.index = Letters("letters-2"), archive.opened()
    assert archive.search("벡터").engines == ("words", "vectors")
    assert archive.count(outbox) == 0


def test_until_all_is_embedded_anew_the_old_vectors_and_the_old_setting_are_in_use(archive: Archive) -> None:
    archive.say(*(f"벡터 {n}" for n in range(6)))
    archive.bring_up()
    with pytest.raises(KeyboardInterrupt):
        rebuild(Home.open(), Wish(words=False, caches=False, embedding="letters-2"), at(4, stop))
    assert setting(archive) == "letters-1"
    assert archive.search("벡터").engines == ("words", "vectors")
    archive.say("그 사이에 온 벡터", session_id=2)
    archive.bring_up()  # an archiver with the old setting
    assert held(archive) == {"letters-1": 7, "letters-2": 4}
    assert rebuild(Home.open(), Wish(words=False, caches=False, embedding="letters-2")).embedded == 3
    assert held(archive) == {"letters-2": 7}
    assert len(Vectors(archive.root / "index" / "vectors")) == 7


def test_texts_that_come_while_the_last_are_embedded_get_their_vector_too(archive: Archive) -> None:
    archive.say("벡터 하나", "벡터 둘")
    archive.bring_up()
    wish = Wish(words=False, caches=False, embedding="letters-2")
    rebuild(Home.open(), wish, at(2, lambda: archive.say("벡터 셋", session_id=2)))
    assert held(archive) == {"letters-2": 3}
    assert len(Vectors(archive.root / "index" / "vectors")) == 3


def test_unavailable_model_changes_nothing(archive: Archive) -> None:
    archive.say("벡터 하나")
    archive.bring_up()
    _ = Home.open().masked_again
    before = {path: path.stat().st_mtime_ns for path in archive.root.rglob("*") if not path.name.endswith("-shm")}
    with pytest.raises(WwtError, match=r"embed\.not_downloaded"):
        rebuild(Home.open(), Wish(embedding="elsewhere/model"))
    after = {path: path.stat().st_mtime_ns for path in archive.root.rglob("*") if not path.name.endswith("-shm")}
    assert after == before


def test_setting_that_cannot_be_written_leaves_the_old_model_in_use(archive: Archive) -> None:
    archive.say("벡터 하나", "벡터 둘")
    archive.bring_up()
    path, wish = archive.root / "config.toml", Wish(words=False, caches=False, embedding="letters-2")
    with pytest.raises(WwtError, match=r"config\."):
        rebuild(Home.open(), wish, at(2, lambda: path.write_text("[embedding\n")))
    assert Vectors(archive.root / "index" / "vectors").model == "letters-1"
    assert held(archive)["letters-1"] == 2
    path.write_text("")
    assert rebuild(Home.open(), wish).embedded == 0
    assert (setting(archive), held(archive)) == ("letters-2", {"letters-2": 2})


def test_archiver_with_the_old_setting_does_not_take_the_archive_back(archive: Archive) -> None:
    archive.say(*(f"벡터 {n}" for n in range(4)))
    archive.bring_up()
    archive.say(*(f"새 벡터 {n}" for n in range(4)), session_id=2)
    late = Letters("letters-1")

    def moved(done: int, total: int) -> None:
        if done == 2:
            rebuild(Home.open(), Wish(words=False, caches=False, embedding="letters-2"))

    embed_missing(archive.opened(), late, "letters-1", moved)
    assert held(archive) == {"letters-2": 8}
    assert Vectors(archive.root / "index" / "vectors").model == "letters-2"


def test_no_model_is_a_setting_too(archive: Archive) -> None:
    archive.say("벡터 하나")
    archive.bring_up()
    rebuild(Home.open(), Wish(words=False, caches=False, embedding="none"))
    assert setting(archive) == "none"
    assert Home.open().embedder is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is forked to be killed")
def test_killed_while_moving_to_another_model_a_rerun_embeds_only_the_rest(archive: Archive) -> None:
    archive.say(*(f"벡터 {n}" for n in range(8)))
    archive.bring_up()
    wish = Wish(words=False, caches=False, embedding="letters-2")
    archive.database.close()
    pid = os.fork()
    if not pid:
        try:
            rebuild(Home.open(), wish, at(4, lambda: os.kill(os.getpid(), signal.SIGKILL)))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert setting(archive) == "letters-1"
    assert rebuild(Home.open(), wish).embedded == 4
    assert held(archive) == {"letters-2": 8}


# --- processes ---

forked = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked from one that is loaded")


@pytest.fixture(scope="module")
def small(processes: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("small") / "wwt"
    assert processes.run("archive", str(plant(home.parent / "in", sessions=6)), home=home).code == 0
    return home


@forked
def test_rebuild_killed_again_and_again_ends_as_if_it_never_was(processes: Server, small: Path, tmp_path: Path) -> None:
    whole, killed = copied(small, tmp_path / "whole"), copied(small, tmp_path / "killed")
    steps = processes.steps("rebuild", home=whole)
    for number in range(1, 9):
        processes.run("rebuild", home=killed, kill_at=steps * number // 9)
        assert processes.run("search", "결제", "--all", home=killed).code == 0
    done = processes.run("rebuild", home=killed)
    assert (done.code, done.err) == (0, "")
    assert state(killed) == state(small)


@forked
def test_archiving_searching_and_accepting_during_a_rebuild_lose_nothing(
    processes: Server, small: Path, tmp_path: Path
) -> None:
    home, alone = copied(small, tmp_path / "crowd"), copied(small, tmp_path / "alone")
    more = str(plant(tmp_path / "more", sessions=12))
    running = [
        processes.start("rebuild", home=home),
        processes.start("archive", more, home=home),
        processes.start("review", "--accept-all", "--all", "--yes", "--session", "00000000", home=home),
        processes.start("search", "결제 중복", "--all", home=home),
    ]
    for one in running:
        done = one.wait()
        assert (done.code, done.err) == (0, ""), done
    processes.run("archive", more, home=alone)
    for one in (home, alone):
        assert processes.run("archive", more, home=one).code == 0
    here, there = state(home), state(alone)
    assert here["entries"]
    for what in ("turns", "chunks", "index", "outbox"):
        assert here[what] == there[what], what

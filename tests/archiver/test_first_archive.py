"""A long history on its first day: what was read is found while the rest is still to come."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver import archive as flow
from archiver.archive import Wish, archive
from archiver.home import Home
from store.reader import Reader
from tests.archiver.sources.test_web_exports import as_file, talk


@pytest.fixture
def home(wwt_home: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    wwt_home.mkdir()
    (wwt_home / "config.toml").write_text('[embedding]\nmodel = "none"\n', encoding="utf-8")
    monkeypatch.setattr(flow, "INDEX_EVERY", 20)
    monkeypatch.setattr("archiver.ingest.COMMIT_EVERY", 20)
    monkeypatch.setattr("archiver.sources.json_array.BLOCK", 2_000)
    return Home.open()


def test_an_export_is_found_piece_by_piece_while_it_is_read(home: Home, tmp_path: Path) -> None:
    path = as_file([talk(f"c{n}") for n in range(60)])(tmp_path)
    seen: list[tuple[int, int, int]] = []

    def progress(stage: str, done: int, total: int) -> None:
        if stage == "read":
            reader = Reader(home.database_path)
            indexed = reader.counts()["chunks"] - reader.rows("SELECT count(*) FROM outbox")[0][0]
            seen.append((done, total, indexed))

    archive(home, Wish((path,), distil=False), progress)
    between = [indexed for done, total, indexed in seen if 0 < done < total]
    assert len(between) >= 3
    assert max(between) > 20
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    assert seen[-1][0] == seen[-1][1] == path.stat().st_size


def test_reading_that_was_interrupted_goes_on_where_it_was_committed(home: Home, tmp_path: Path) -> None:
    path = as_file([talk(f"c{n}") for n in range(60)])(tmp_path)

    def interrupt(stage: str, done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        archive(home, Wish((path,), distil=False), interrupt)
    kept = home.reader.counts()["sessions"]
    assert 10 <= kept < 60
    report = archive(home, Wish((path,), distil=False))
    assert (home.reader.counts()["sessions"], report.turns_added) == (60, 2 * (60 - kept))
    assert archive(home, Wish((path,), distil=False)).files_read == 0

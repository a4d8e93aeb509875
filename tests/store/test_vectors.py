"""The vector index: exact, filtered, and never the one who holds the truth."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store import vectors as module
from store.filters import Filter
from store.vectors import MANIFEST, VectorRow, Vectors, VectorsDamaged, quantised

WIDTH = 16


def unit(seed: int) -> np.ndarray:
    vector = np.random.default_rng(seed).normal(size=WIDTH).astype(np.float32)
    return vector / np.linalg.norm(vector)


def row(ref: int, seed: int | None = None, **changed: object) -> VectorRow:
    values: dict[str, object] = {
        "ref": ref,
        "project": 1,
        "session": 1,
        "time": 1_000,
        "role": "entry" if ref < 0 else "speech",
    }
    vector = unit(ref & 0xFFFF if seed is None else seed).astype("<f2").tobytes()
    return VectorRow(**{**values, **changed}, vector=vector)  # type: ignore[arg-type]


@pytest.fixture
def vectors(tmp_path: Path) -> Vectors:
    return Vectors.create(tmp_path / "vectors", "m", WIDTH)


def refs(vectors: Vectors, seed: int, wanted: Filter | None = None, limit: int = 3) -> list[int]:
    return [ref for ref, _ in vectors.search(unit(seed), wanted or Filter(), limit)]


def test_search_agrees_with_the_unquantised_order(vectors: Vectors) -> None:
    vectors.apply([row(i) for i in range(1, 400)])
    exact = sorted(range(1, 400), key=lambda i: -float(unit(i) @ unit(7)))
    assert refs(vectors, 7, limit=5)[0] == 7
    assert len(set(refs(vectors, 7, limit=10)) & set(exact[:10])) >= 9
    assert vectors.search(unit(7), Filter(), 1)[0][1] == pytest.approx(1.0, abs=0.01)


def test_limit_is_filled_from_live_rows(vectors: Vectors) -> None:
    vectors.apply([row(i, seed=1) for i in range(1, 20)] + [row(20, seed=2)])
    vectors.apply([], gone=range(1, 19))
    assert refs(vectors, 1, limit=5) == [19, 20]
    assert len(vectors) == 2
    assert vectors.refs() == {19, 20}


def test_put_replaces_in_every_segment(vectors: Vectors) -> None:
    vectors.apply([row(1, seed=1), row(2, seed=2)])
    vectors.apply([row(1, seed=3)])
    assert len(vectors) == 2
    assert refs(Vectors(vectors.folder), 3)[0] == 1


def test_filters_are_masks(vectors: Vectors) -> None:
    vectors.apply(
        [
            row(1),
            row(2, project=2, session=5, time=9_000),
            row(3, role="subagent"),
            row(-1, project=2),
            row(-2, project=0),
        ]
    )
    assert set(refs(vectors, 1, Filter(projects=frozenset({2})), limit=9)) == {2, -1, -2}
    assert set(refs(vectors, 1, Filter(sessions=frozenset({5}), entries=False), limit=9)) == {2}
    assert set(refs(vectors, 1, Filter(chunks=False, entry_ids=frozenset({2})), limit=9)) == {-2}
    assert set(refs(vectors, 1, Filter(since=5_000), limit=9)) == {2}
    assert refs(vectors, 1, Filter(projects=frozenset({77}), entries=False)) == []


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=60), st.integers(1, 5))
def test_any_order_of_puts_and_removals_leaves_the_live_rows(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bool]], most: int
) -> None:
    folder = tmp_path_factory.mktemp("v") / "vectors"
    vectors, live = Vectors.create(folder, "m", WIDTH), set()
    for ref, put in steps:
        vectors.apply([row(ref)] if put else [], gone=[] if put else [ref])
        live = live | {ref} if put else live - {ref}
    again = Vectors(folder)
    assert again.refs() == live == vectors.refs()
    assert set(refs(again, 1, limit=100)) == live
    assert len(refs(again, 1, limit=most)) == min(most, len(live))


def test_small_segments_are_merged(vectors: Vectors, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors.apply([row(i) for i in range(1, 501)])
    for i in range(501, 540):
        vectors.apply([row(i)])
    assert len(list(vectors.folder.glob("*.seg"))) <= module.MOST_SEGMENTS + 1
    assert len(vectors) == 539
    vectors.compact()
    assert len(list(vectors.folder.glob("*.seg"))) == 1
    assert vectors.refs() == set(range(1, 540))


def test_open_reader_survives_a_merge(vectors: Vectors) -> None:
    vectors.apply([row(i) for i in range(1, 100)])
    reader = Vectors(vectors.folder)
    vectors.apply([row(i) for i in range(100, 200)])
    assert refs(reader, 7)[0] == 7


def test_nothing_is_left_of_a_compacted_row(vectors: Vectors) -> None:
    vectors.apply([row(1), row(2)])
    numbers = quantised(unit(1)[None].astype("<f2").astype(np.float32))[0].tobytes()
    assert any(numbers in path.read_bytes() for path in vectors.folder.glob("*.seg"))
    vectors.apply([], gone=[1])
    vectors.compact()
    assert not any(numbers in path.read_bytes() for path in vectors.folder.glob("*.seg"))


def test_truncated_missing_or_foreign_files_are_damage(vectors: Vectors) -> None:
    vectors.apply([row(1), row(2)])
    for path in list(vectors.folder.iterdir()):
        data = path.read_bytes()
        for broken in (b"", data[:-1], b"\x00" * len(data), None):
            path.unlink()
            if broken is not None:
                path.write_bytes(broken)
            with pytest.raises(VectorsDamaged):
                Vectors(vectors.folder)
            path.write_bytes(data)


def test_other_dimension_in_the_manifest_is_damage(vectors: Vectors) -> None:
    vectors.apply([row(1)])
    manifest = json.loads((vectors.folder / MANIFEST).read_text())
    (vectors.folder / MANIFEST).write_text(json.dumps({**manifest, "dimensions": WIDTH * 2}))
    with pytest.raises(VectorsDamaged):
        Vectors(vectors.folder)


def test_flipped_byte_is_found_by_verify(vectors: Vectors) -> None:
    vectors.apply([row(1)])
    assert vectors.verify()
    path = next(vectors.folder.glob("*.seg"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 0xFF
    path.write_bytes(bytes(data))
    assert not Vectors(vectors.folder).verify()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5))
def test_quantised_rows_are_within_half_a_step(seed: int, count: int) -> None:
    rows = np.stack([unit(seed + i) for i in range(count)])
    numbers, scales = quantised(rows)
    assert np.abs(numbers * scales[:, None] - rows).max() <= scales.max() / 2 + 1e-6

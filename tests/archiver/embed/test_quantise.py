from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from archiver.embed.protocol import Floats
from archiver.embed.quantise import from_half, from_int8, pack_int8, to_half, to_int8, unpack_int8

NUMBERS = st.floats(-1, 1, width=32, allow_subnormal=False)
VECTORS = st.tuples(st.integers(0, 5), st.integers(1, 8)).flatmap(
    lambda shape: arrays.arrays(np.float32, shape, elements=NUMBERS)
)


@given(VECTORS)
def test_half_is_off_by_its_bound_at_most(vectors: Floats) -> None:
    again = from_half(to_half(vectors), vectors.shape[1])
    assert again.shape == vectors.shape and again.dtype == np.float32
    assert (np.abs(again - vectors) <= np.maximum(np.abs(vectors) / 2048, 2.0**-25)).all()


@given(VECTORS)
def test_int8_is_off_by_half_a_scale_at_most(vectors: Floats) -> None:
    numbers, scales = to_int8(vectors)
    assert numbers.dtype == np.int8 and scales.dtype == np.float32
    assert numbers.shape == vectors.shape and scales.shape == vectors.shape[:1]
    error = np.abs(from_int8(numbers, scales).astype(np.float64) - vectors)
    assert (error <= scales[:, None] * (0.5 + 1e-4) + np.finfo(np.float32).tiny).all()


@given(VECTORS)
def test_int8_blob_holds_the_same_rows(vectors: Floats) -> None:
    blob = pack_int8(vectors)
    numbers, scales = unpack_int8(blob, vectors.shape[1])
    assert len(blob) == vectors.shape[0] * (vectors.shape[1] + 4)
    np.testing.assert_array_equal(numbers, to_int8(vectors)[0])
    np.testing.assert_array_equal(scales, to_int8(vectors)[1])


def test_similarity_of_unit_vectors_survives() -> None:
    vectors = np.random.default_rng(7).normal(size=(50, 512)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    true = vectors @ vectors.T
    assert from_int8(*to_int8(vectors)) @ vectors.T == pytest.approx(true, abs=0.005)
    assert from_half(to_half(vectors), 512) @ vectors.T == pytest.approx(true, abs=0.001)


def test_zero_row_stays_zero() -> None:
    assert not from_int8(*to_int8(np.zeros((1, 4), np.float32))).any()


def test_bytes_that_are_no_whole_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="rows"):
        unpack_int8(bytes(13), 8)
    with pytest.raises(ValueError, match="reshape"):
        from_half(bytes(6), 4)

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from archiver.embed import mapped

ANY_ARRAY = arrays.arrays(
    st.sampled_from([np.float32, np.uint8, np.uint32, np.int64]),
    arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
)


@given(st.dictionaries(st.text(max_size=5), ANY_ARRAY, max_size=4))
def test_arrays_come_back_as_written(
    tmp_path_factory: pytest.TempPathFactory, written: dict[str, mapped.Array]
) -> None:
    path = tmp_path_factory.mktemp("mapped") / "file"
    mapped.write(path, key="k", facts={"말": [1, None]}, arrays=written)
    file = mapped.read(path, key="k")
    assert file is not None and file.facts == {"말": [1, None]} and file.intact(written)
    for name, array in written.items():
        np.testing.assert_array_equal(file.arrays[name], array)
        assert file.arrays[name].dtype == array.dtype and not file.arrays[name].flags.writeable


def test_another_key_or_no_file_reads_as_absent(tmp_path: Path) -> None:
    mapped.write(tmp_path / "file", key="new", facts={}, arrays={})
    assert mapped.read(tmp_path / "file", key="old") is None
    assert mapped.read(tmp_path / "missing", key="new") is None


@given(st.data())
def test_a_changed_or_missing_byte_is_noticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("mapped") / "file"
    mapped.write(path, key="k", facts={}, arrays={"a": np.arange(32, dtype=np.uint32)})
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    path.write_bytes(whole[:at] if data.draw(st.booleans()) else whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    file = mapped.read(path, key="k")
    assert file is None or not file.intact(["a"])


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    mapped.write(folder / "file", key="k", facts={"is": "old"}, arrays={})

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="space"):
        mapped.write(folder / "file", key="k", facts={"is": "new"}, arrays={})
    file = mapped.read(folder / "file", key="k")
    assert file is not None and file.facts == {"is": "old"} and len(list(folder.iterdir())) == 1

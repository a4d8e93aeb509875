import errno
import os
from pathlib import Path

import pytest

from staging import atomic
from store.errors import WwtError


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "x.json"
    assert atomic.write(path, b"one") and atomic.write(path, b"two")
    assert path.read_bytes() == b"two" and [p.name for p in path.parent.iterdir()] == ["x.json"]


def test_nothing_is_replaced_when_the_caller_changes_its_mind(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    atomic.write(path, b"one")
    assert not atomic.write(path, b"two", still=lambda: False)
    assert path.read_bytes() == b"one" and not list(tmp_path.glob(".x*"))


@pytest.mark.parametrize(("number", "key"), [(errno.ENOSPC, "store.disk_full"), (errno.EROFS, "store.read_only")])
def test_a_full_or_locked_disk_is_said_plainly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, key: str
) -> None:
    path = tmp_path / "x.json"
    atomic.write(path, b"one")

    def fails(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(atomic.os, "fsync", fails)
    with pytest.raises(WwtError) as caught:
        atomic.write(path, b"two")
    assert caught.value.key == key and path.read_bytes() == b"one"

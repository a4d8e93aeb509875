"""Writing a file so that a reader, or a crash, finds the old content or the new, never half of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600


def read(path: Path) -> bytes | None:
    """The file's bytes, or None where there is no file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def make_folder(path: Path) -> None:
    """The folder and its missing parents, open to their owner only."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)


def write(path: Path, data: bytes, *, still: Callable[[], bool] = lambda: True) -> bool:
    """Replace the file: temporary beside it, fsync, rename, fsync of the folder.

    `still` is asked just before the rename; when it says no, nothing is replaced and the answer is False.
    Callers hold a lock for `path`: the temporary has a fixed name, so a crash leaves at most one behind.
    """
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if not still():
        temporary.unlink()
        return False
    temporary.replace(path)
    sync_folder(path.parent)
    return True


def sync_folder(path: Path) -> None:
    """Make a rename or removal in the folder outlive a power cut. Windows has no such call and needs none."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

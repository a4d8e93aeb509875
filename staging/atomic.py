"""Writing a file so that a reader, or a crash, finds the old content or the new, never half of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from store.errors import WwtError

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
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        make_folder(path.parent)
        _write_synced(temporary, data)
        if not still():
            temporary.unlink()
            return False
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise _explained(error, path) from error
    return True


def _write_synced(path: Path, data: bytes) -> None:
    binary = getattr(os, "O_BINARY", 0)  # Windows would turn line ends into its own
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | binary, PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _explained(error: OSError, path: Path) -> Exception:
    """The same trouble as a WwtError where a person can do something about it."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return WwtError("store.disk_full", path=path)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return WwtError("store.read_only", path=path)
    return error


def sync_folder(path: Path) -> None:
    """Make a rename or removal in the folder outlive a power cut. Windows has no such call and needs none."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Writing a file so that a reader, or a crash, finds the old content or the new, never half of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from store.errors import WwtError

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
AT_ONCE = 64
"""Files open at once; some systems allow 256."""


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
    temporary = _beside(path)
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


def write_if_changed(path: Path, data: bytes) -> None:
    if read(path) != data:
        write(path, data)


def write_all(files: Sequence[tuple[Path, bytes]]) -> dict[Path, OSError]:
    """As `write`, for many files: what could not be written, and why. A disk syncs many at once in a fifth of the time."""
    refused: dict[Path, OSError] = {}
    for start in range(0, len(files), AT_ONCE):
        with ExitStack() as opened:
            drafts = [_drafted(opened, path, data, refused) for path, data in files[start : start + AT_ONCE]]
            for draft in drafts:
                if draft is not None:
                    os.fsync(draft.fileno())
        moved = [path for path, _ in files[start : start + AT_ONCE] if _moved(path, refused)]
        for folder in dict.fromkeys(path.parent for path in moved):
            sync_folder(folder)
    return refused


def _drafted(opened: ExitStack, path: Path, data: bytes, refused: dict[Path, OSError]) -> BinaryIO | None:
    try:
        make_folder(path.parent)
        file = opened.enter_context(_open(_beside(path)))
        file.write(data)
        file.flush()
    except OSError as error:
        refused[path] = _told(error, path)
        return None
    return file


def _moved(path: Path, refused: dict[Path, OSError]) -> bool:
    if path not in refused:
        try:
            _beside(path).replace(path)
        except OSError as error:  # such as a folder of this name
            refused[path] = _told(error, path)
    return path not in refused


def _told(error: OSError, path: Path) -> OSError:
    """The error, unless it would befall the next file too."""
    explained = _explained(error, path)
    if isinstance(explained, WwtError) and explained.key == "store.disk_full":
        raise explained from error
    return error


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.tmp")


def _write_synced(path: Path, data: bytes) -> None:
    with _open(path) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _open(path: Path) -> BinaryIO:
    if path.is_symlink():  # someone else's; following it would write elsewhere
        path.unlink()
    binary = getattr(os, "O_BINARY", 0)  # Windows would turn line ends into its own
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | binary
    return os.fdopen(os.open(path, flags, PRIVATE_FILE), "wb")


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

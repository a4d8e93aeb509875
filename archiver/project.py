"""Which project a folder belongs to. Standard library only, and git is never run: recall asks at every session start."""

from __future__ import annotations

import ntpath
import os
import posixpath
import re
import unicodedata
from pathlib import Path

_DRIVE = re.compile(r"[A-Za-z]:(?:[\\/]|\Z)")
_EXTENDED = re.compile(r"(?i)\A[\\/]{2}[?.][\\/](UNC[\\/])?")
_LONGEST_POINTER = 4096


def project_key(cwd: str) -> tuple[str, str]:
    """(key, name) of the project that `cwd` lies in.

    The key is the folder of the repository whose git directory serves `cwd`, so that worktrees share one; else `cwd`
    itself. It is NFC and absolute, the same for every spelling of a Windows path on any system.
    """
    if cwd == "~" or cwd.startswith(("~/", "~\\")):
        cwd = str(Path.home()) + cwd[1:]
    if _is_windows(cwd) and os.name != "nt":
        return _named(_windows(cwd))
    try:
        key = str(_repository(cwd) or (os.path.realpath(cwd) if Path(cwd).exists() else os.path.normpath(cwd)))
    except (OSError, ValueError):  # a path no file system takes: too long, or with a zero byte
        key = cwd
    return _named(_windows(key) if _is_windows(key) else key)


def _named(key: str) -> tuple[str, str]:
    key = unicodedata.normalize("NFC", key)
    return key, key.rstrip("/").rpartition("/")[2] or key


def _is_windows(path: str) -> bool:
    return bool(_DRIVE.match(path)) or path.startswith("\\\\") or _EXTENDED.match(path) is not None


def _windows(path: str) -> str:
    """One spelling: no `\\\\?\\` before it, forward slashes, upper-case drive, no slash behind it."""
    path = _EXTENDED.sub(lambda match: "//" if match[1] else "", path)
    drive, rest = ntpath.splitdrive(path)
    rest = posixpath.normpath("/" + rest.replace("\\", "/").strip("/"))
    return (
        drive.replace("\\", "/").upper() + "/" + rest.strip("/")
        if len(drive) == 2
        else drive.replace("\\", "/") + rest.rstrip("/")
    )


def _repository(cwd: str) -> Path | None:
    """The folder of the nearest repository at or above `cwd`. One in the home folder counts only for the home folder itself."""
    if not Path(cwd).is_absolute():
        return None
    here = Path(os.path.realpath(cwd))
    home = Path(os.path.realpath(Path.home()))
    if here == home:
        return None
    for folder in (here, *here.parents):
        if folder == home:
            return None
        marker = folder / ".git"
        if marker.is_dir():
            return folder
        if marker.is_file():
            return _pointed_at(folder, marker) or folder
    return None


def _pointed_at(folder: Path, marker: Path) -> Path | None:
    """Where a worktree's `.git` file leads: the folder of the repository. None for submodules, which are projects of their own."""
    pointer = _first_line(marker).removeprefix("gitdir:").strip()
    if not pointer:
        return None
    git_dir = os.path.normpath(folder / pointer.replace("\\", "/"))
    before, worktrees, _ = git_dir.replace(os.sep, "/").rpartition("/worktrees/")
    if not worktrees:
        return None
    shared = _first_line(Path(git_dir) / "commondir")
    common = Path(os.path.normpath(Path(git_dir) / shared)) if shared else Path(before)
    # A bare repository has no folder around it, and stands for itself.
    return common.parent if common.name == ".git" else common


def _first_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST_POINTER).decode("utf-8", "surrogateescape").partition("\n")[0].strip()
    except OSError:
        return ""

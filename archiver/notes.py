"""Which files of a folder are notes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

CONFLICT = ".conflict.md"
LONGEST_NAME = 255
"""Bytes of a file's name; the temporary that it is written through takes five more."""


@dataclass(frozen=True, slots=True)
class Files:
    """`links` are notes that are links: they may lead anywhere, and are not followed."""

    notes: tuple[Path, ...]
    links: tuple[Path, ...]


def files(folder: Path) -> Files:
    """The notes of a folder and of those below it, by name; not what is hidden, and not what was kept beside a conflict."""
    notes: list[Path] = []
    links: list[Path] = []
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.endswith(".md") and not name.startswith(".") and not name.endswith(CONFLICT):
                path = Path(where, name)
                (links if path.is_symlink() else notes).append(path)
    return Files(tuple(sorted(path for path in notes if path.is_file())), tuple(sorted(links)))


def beside(path: Path) -> Path:
    """Where the other version of a note is kept when both sides changed."""
    stem = path.name.removesuffix(".md")
    room = LONGEST_NAME - 5 - len(CONFLICT)
    if len(os.fsencode(stem)) > room:
        stem = os.fsencode(stem)[:room].decode("utf-8", "ignore")
    return path.with_name(stem + CONFLICT)

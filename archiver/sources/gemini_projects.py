"""Which folder a Gemini CLI session ran in: the transcript holds a hash of its path, and lies in a folder named by a slug."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import orjson

from archiver.sources.jsonl import open_regular, scrub

_HASH = re.compile(r"[0-9a-f]{64}")
_MARKER = ".project_root"
_BASES = ("tmp", "history")
_LONGEST_PATH = 4096


def chats_of(path: Path) -> Path | None:
    """The `chats` folder that a transcript lies in, in its own name or in its parent session's; None outside of the agent's layout."""
    chats = path.parent if path.parent.name == "chats" else path.parent.parent
    return chats if chats.name == "chats" and chats.parent.parent.name == "tmp" else None


def is_hash(name: str) -> bool:
    return _HASH.fullmatch(name) is not None


def hash_of(folder: str) -> str:
    """The `projectHash` of a folder."""
    return hashlib.sha256(folder.encode("utf-8", "replace")).hexdigest()


class Projects:
    """The folders that one home of the agent knows, as they stand on disk now.

    A slug is only ever looked up: nobody can tell from it which folder it was made of.
    """

    def __init__(self, home: Path) -> None:
        self._home = home

    def of_hash(self, project_hash: str) -> str | None:
        if not is_hash(project_hash):
            return None
        return self._hashes.get(project_hash) or self._marked_hashes.get(project_hash)

    def of_name(self, name: str) -> str | None:
        """The folder that `tmp/<name>` was made for."""
        return self.of_hash(name) if is_hash(name) else self._slugs.get(name) or self._marker(name)

    @cached_property
    def _registry(self) -> dict[str, str]:
        """Slugs by folder."""
        try:
            with open_regular(self._home / "projects.json") as file:
                value = orjson.loads(file.read())
        except (OSError, orjson.JSONDecodeError):
            return {}
        projects = value.get("projects") if isinstance(value, dict) else None
        known = projects if isinstance(projects, dict) else {}
        return {scrub(folder): slug for folder, slug in known.items() if folder and isinstance(slug, str)}

    @cached_property
    def _slugs(self) -> dict[str, str]:
        return {slug: folder for folder, slug in self._registry.items()}

    @cached_property
    def _hashes(self) -> dict[str, str]:
        return _by_hash(self._registry)

    @cached_property
    def _marked_hashes(self) -> dict[str, str]:
        names = {path.name for base in _BASES for path in _inside(self._home / base)}
        return _by_hash(folder for name in names if (folder := self._marker(name)))

    def _marker(self, name: str) -> str | None:
        for base in _BASES:
            try:
                with open_regular(self._home / base / name / _MARKER) as file:
                    folder = scrub(file.read(_LONGEST_PATH).decode("utf-8", "replace").strip())
            except OSError:
                continue
            if folder and "\n" not in folder:
                return folder
        return None


def _by_hash(folders: Iterable[str]) -> dict[str, str]:
    return {hash_of(folder): folder for folder in folders}


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []

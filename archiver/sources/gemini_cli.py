"""Gemini CLI's transcripts: where they lie, which of several copies counts, and how one is told by its content."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from archiver.sources import jsonl
from archiver.sources.gemini_parse import GeminiParse
from archiver.sources.gemini_projects import Projects, chats_of, hash_of, is_hash
from archiver.transcript import Found, Parse, Progress, Source

AGENT = "gemini-cli"

_SUFFIXES = (".jsonl", ".json")
_LEFTOVER = re.compile(r"\.jsonl?\.(?:unreadable-\d+|tmp-\d+)\Z")
_SESSION = re.compile(rb'"sessionId"\s*:\s*"((?:[^"\\]|\\.)*)"')
_HASH = re.compile(rb'"projectHash"\s*:\s*"([0-9a-f]{64})"')
_PEEKED = 4096


class GeminiCli(Source):
    agent = AGENT
    parser_version = 1
    """Of a file that is one JSON document, as old versions wrote it, the progress stays at offset 0: it is read whole."""

    def roots(self) -> list[Path]:
        """`tmp` in the agent's home, and in the one it has inside the sandbox of macOS."""
        usual = [home / "tmp" for home in homes()]
        return [root for root in usual if root.is_dir()] or usual[:1]

    def discover(self, root: Path) -> Iterable[Found]:
        """Transcripts, and those of subagents in the folders of their sessions. Of copies of a session only the newest form."""
        projects = Projects(root.parent)
        copies: dict[tuple[str, str], list[Path]] = defaultdict(list)
        for path in _transcripts(root):
            copies[_copy_name(path)].append(path)
        for paths in copies.values():
            for path in paths:
                if _successor(path, paths) is None:
                    yield _found(path, known=_by_place(path, projects) is not None)

    def sniff(self, path: Path, head: bytes) -> Found | None:
        if _LEFTOVER.search(path.name) or not _is_ours(head.removeprefix(b"\xef\xbb\xbf")):
            return None
        newest = _successor(path, list(_elsewhere(path))) or path
        around = _around(newest)
        if chats_of(newest) is not None:
            return _found(newest, known=_by_place(newest, around[0]) is not None)
        named = _HASH.search(head[:_PEEKED])
        return _found(newest, known=named is not None and any(one.of_hash(named[1].decode()) for one in around))

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        return GeminiParse(found, progress, partial(_locate, found.path), final=final)


SOURCE = GeminiCli()


def homes() -> list[Path]:
    """`.gemini` in `$GEMINI_CLI_HOME`, else in the home folder; then where it stands in the sandbox."""
    home = Path(os.environ.get("GEMINI_CLI_HOME") or "~").expanduser().absolute()
    return [home / ".gemini", home / ".cache" / ".gemini"]


def _transcripts(root: Path) -> Iterator[Path]:
    try:
        for pattern in ("*/chats/session-*.json*", "*/chats/*/*.json*"):
            yield from (path for path in root.glob(pattern) if path.suffix in _SUFFIXES and path.is_file())
    except OSError:
        return


# --- copies of a session ---


def _copy_name(path: Path) -> tuple[str, str]:
    """The same for a transcript in its old and new form, and in the old and new folder of its project."""
    return "" if path.parent.name == "chats" else path.parent.name, path.stem


def _elsewhere(path: Path) -> Iterator[Path]:
    """Where newer forms of this transcript would be."""
    chats = chats_of(path)
    if path.suffix == ".json":
        yield path.with_suffix(".jsonl")
    if chats is None or not is_hash(chats.parent.name):
        return
    try:
        projects = [project for project in chats.parent.parent.iterdir() if not is_hash(project.name)]
    except OSError:
        return
    place = path.relative_to(chats)
    for project in projects:
        yield from ((project / "chats" / place).with_suffix(suffix) for suffix in _SUFFIXES)


def _successor(path: Path, others: list[Path]) -> Path | None:
    """The file in which the session of this one goes on.

    Where a session is resumed, a `.json` file is written anew as `.jsonl` beside it; a project's folder named by a hash
    is copied to one named by a slug. The old ones stay.
    """
    rank = _rank(path)
    better = [other for other in others if _rank(other) > rank and _holds_all(other, path)]
    if not better or not (session := _session_of(path)):
        return None
    same = [other for other in better if _session_of(other) == session]
    return max(same, key=_rank, default=None)


def _holds_all(newer: Path, older: Path) -> bool:
    """Whether the newer file is there, and is no copy that an old version of the agent left behind by going on in the older one."""
    try:
        return newer.is_file() and (newer.suffix != older.suffix or newer.stat().st_size >= older.stat().st_size)
    except OSError:
        return False


def _rank(path: Path) -> tuple[bool, bool]:
    chats = chats_of(path)
    return path.suffix == ".jsonl", chats is not None and not is_hash(chats.parent.name)


def _session_of(path: Path) -> bytes:
    try:
        with jsonl.open_regular(path) as file:
            match = _SESSION.search(file.read(_PEEKED))
    except OSError:
        return b""
    return match[1] if match else b""


# --- projects ---


def _around(path: Path) -> list[Projects]:
    """What the home that the transcript lies in knows, then what this machine's does."""
    chats = chats_of(path)
    around = [chats.parent.parent.parent] if chats else []
    return [Projects(home) for home in dict.fromkeys([*around, *homes()])]


def _locate(path: Path, project_hash: str, told: Iterable[str]) -> str | None:
    """The folder whose hash the session holds, of those it names itself and those known; else the one its slug stands for."""
    around = _around(path)
    named = (folder for folder in told if hash_of(folder) == project_hash)
    known = (folder for projects in around if (folder := projects.of_hash(project_hash)))
    return next(named, None) or next(known, None) or _by_place(path, around[0])


def _by_place(path: Path, projects: Projects) -> str | None:
    chats = chats_of(path)
    return projects.of_name(chats.parent.name) if chats else None


def _found(path: Path, *, known: bool) -> Found:
    """The transcript. Its clock's last bit says whether its folder is known: it is looked at once more when that changes."""
    try:
        stat = path.stat()
    except OSError:
        return Found(AGENT, path)
    return Found(AGENT, path, stamp=(stat.st_size, stat.st_mtime_ns & ~1 | known))


# --- content ---


def _is_ours(head: bytes) -> bool:
    for line in head.split(b"\n"):
        verdict = _looks_like(line.strip(b"\x00 \t\r"))
        if verdict is not None:
            return verdict
    return _is_document(head)


def _looks_like(line: bytes) -> bool | None:
    """Whether the line is one of ours; None if it says nothing either way."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("sessionId"), str):
        return isinstance(value.get("projectHash"), str) and "uuid" not in value
    if isinstance(value.get("$rewindTo"), str) or isinstance(value.get("$patch"), dict):
        return True
    if isinstance(value.get("$set"), dict):
        return "lastUpdated" in value["$set"] or "messages" in value["$set"]
    spoken = value.get("type") in ("gemini", "user") and isinstance(value.get("id"), str) and "content" in value
    return True if spoken and value["type"] == "gemini" and "timestamp" in value else None


def _is_document(head: bytes) -> bool:
    """Whether this begins a JSON document with a session's fields around its messages."""
    begun = head.lstrip(b"\x00 \t\r\n")
    if not begun.startswith(b"{"):
        return False
    value = _loaded(begun)
    if value is None and (cut := re.search(rb'"messages"\s*:\s*\[', begun)):
        value = _loaded(begun[: cut.start()] + b'"messages":[]}')
    return (
        isinstance(value, dict)
        and all(isinstance(value.get(key), str) for key in ("sessionId", "projectHash"))
        and isinstance(value.get("messages"), list)
    )


def _loaded(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None

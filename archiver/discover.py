"""Where transcripts are: in the agents' own folders, or in what the user points at."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from archiver.agents import AGENTS
from archiver.sources import SOURCES
from archiver.sources.claude_code import AGENT as CLAUDE_CODE
from archiver.sources.claude_code import config_dir
from archiver.sources.gemini_cli import AGENT as GEMINI_CLI
from archiver.sources.gemini_cli import homes
from archiver.sources.jsonl import is_utf16, open_stream
from archiver.transcript import Found, Source
from store import messages

HEADS = (64 << 10, 1 << 20, 16 << 20)
"""How much of a file is looked at to tell its format: more only if less does not decide it."""

RETENTION_DAYS = 30
DAY = 86_400_000

_SUFFIXES = (".jsonl", ".jsonl.zst")
_PATTERNS = sorted({pattern for agent in AGENTS for pattern in agent.files})
_CREDENTIALS = ("auth.json", "oauth_creds.json", "credentials.json")
"""Agents keep them beside their transcripts. Nobody asked for them: they are not even opened."""
_HIDDEN = (".specstory", ".aider.chat.history.md")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a path gave no transcript. `key` names the message."""

    path: Path
    key: str
    fields: dict[str, object] = field(default_factory=dict)

    def message(self) -> str:
        return messages.text(self.key, path=self.path, **self.fields)

    def reason(self) -> str:
        """The message without the path in front, for where the path stands beside it."""
        return self.message().removeprefix(f"{self.path}: ")


def discover(agents: list[str] | None = None) -> Iterator[Found]:
    """Transcripts in the folders of these agents (all if None), newest first; a file reached by two ways once."""
    found = (
        one for source in _sources(agents) for root in source.roots() if root.is_dir() for one in source.discover(root)
    )
    yield from _newest_first(found)


def missing_roots(agents: list[str] | None = None) -> list[tuple[str, Path]]:
    """(agent, folder) of transcript folders that are not there: the agent is not installed, or keeps them elsewhere."""
    return [(source.agent, root) for source in _sources(agents) for root in source.roots() if not root.is_dir()]


def from_paths(paths: list[Path], known: Mapping[str, str] | None = None) -> tuple[list[Found], list[Problem]]:
    """Transcripts among these files and folders, by content, newest first; and what was none.

    `known` gives the agents of files that were archived before, for those whose content no longer tells.
    """
    found: list[Found] = []
    problems: list[Problem] = []
    for path in paths:
        path = path.expanduser().absolute()
        try:
            if path.is_dir():
                _folder(path, known or {}, found, problems)
            else:
                _file(path, known or {}, found, problems, named=True)
        except OSError as error:
            problems.append(_unreadable(path, error))
    return list(_newest_first(found)), problems


@dataclass(frozen=True, slots=True)
class Retention:
    """How long an agent keeps transcripts, and what is left of it for the oldest. `days_left` is negative when overdue."""

    agent: str
    days: int
    days_left: int
    settings: Path


def retention(found: Iterable[Found], now: int) -> Retention | None:
    """When the first of these files is deleted by its agent; give it the ones not archived yet. None if none ever is."""
    oldest: dict[str, int] = {}
    for one in found:
        if one.agent in (CLAUDE_CODE, GEMINI_CLI) and (time := _clock(one)):
            oldest[one.agent] = min(time, oldest.get(one.agent, time))
    ends = []
    for agent, time in oldest.items():
        days, settings = _cleanup_days() if agent == CLAUDE_CODE else gemini_days()
        if days is not None:
            ends.append(Retention(agent, days, (time // 1_000_000 + days * DAY - now) // DAY, settings))
    return min(ends, key=lambda one: one.days_left, default=None)


def _cleanup_days() -> tuple[int, Path]:
    path = config_dir() / "settings.json"
    days = _settings(path).get("cleanupPeriodDays")
    return days if isinstance(days, int) and not isinstance(days, bool) and days >= 0 else RETENTION_DAYS, path


def gemini_days() -> tuple[int | None, Path]:
    """How long it keeps sessions (None: for ever), and the file that says so.

    As its `maxAge` says (`7d`, `24h`, `2w`, `1m`); how many sessions it keeps (`maxCount`) is no matter of days.
    """
    path = homes()[0] / "settings.json"
    general = _settings(path).get("general")
    kept = general.get("sessionRetention") if isinstance(general, dict) else None
    if not isinstance(kept, dict):
        return RETENTION_DAYS, path
    period = re.fullmatch(r"([1-9][0-9]{0,5})([hdwm])", str(kept.get("maxAge", f"{RETENTION_DAYS}d")))
    if kept.get("enabled") is False or period is None:  # it deletes nothing where it cannot read the setting
        return None, path
    return int(period[1]) * {"h": 1, "d": 24, "w": 24 * 7, "m": 24 * 30}[period[2]] // 24, path


def _settings(path: Path) -> dict[str, Any]:
    try:
        held: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return held if isinstance(held, dict) else {}


def _sources(agents: list[str] | None) -> list[Source]:
    return [source for source in SOURCES if agents is None or source.agent in agents]


def _newest_first(found: Iterable[Found]) -> Iterator[Found]:
    by_file: dict[str, Found] = {}
    for one in found:
        by_file.setdefault(identity(one), one)
    yield from sorted(by_file.values(), key=lambda one: (-_clock(one), one.name))


def identity(found: Found) -> str:
    """The same for every way that leads to a transcript, through links or not."""
    return f"{os.path.realpath(found.path)}#{found.member}"


def _clock(found: Found) -> int:
    try:
        return found.size_and_clock()[1]
    except OSError:
        return 0


def _folder(folder: Path, known: Mapping[str, str], found: list[Found], problems: list[Problem]) -> None:
    before = len(found), len(problems)
    for path in _walk(folder, problems):
        _file(path, known, found, problems, named=False)
    if (len(found), len(problems)) == before:
        problems.append(Problem(folder, "discover.no_transcripts"))


def _walk(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    """Files under a folder, hidden ones left out but for those where agents export to. Links to folders are followed, each folder once."""
    entered: set[str] = set()
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        real = os.path.realpath(here)
        if real in entered:
            continue
        entered.add(real)
        try:
            children = [(child, child.is_dir(), child.is_file()) for child in sorted(here.iterdir())]
        except OSError as error:
            problems.append(_unreadable(here, error))
            continue
        for child, is_folder, is_file in children:
            if child.name.startswith(".") and child.name not in _HIDDEN:
                continue
            if is_folder:
                waiting.append(child)
            elif is_file:
                yield child


def _file(path: Path, known: Mapping[str, str], found: list[Found], problems: list[Problem], *, named: bool) -> None:
    """Add the file to what was found, or say why not. In a folder, files that no agent writes are passed over in silence."""
    if not named and not _may_be_transcript(path):
        return
    # Of other names than the agents' own many are no transcript, and no one asks why.
    expected = named or (path.name.lower().endswith(_SUFFIXES) and not _is_kept_beside(path))
    try:
        one = _sniffed(path, HEADS if expected else HEADS[:1]) or _known(path, known)
        members = list(_members(one)) if one is not None else []
        size = path.stat().st_size
    except FileNotFoundError:
        problems.append(Problem(path, "discover.missing"))
    except OSError as error:
        problems.append(_unreadable(path, error))
    except EOFError as error:
        problems.append(Problem(path, "discover.damaged", {"reason": str(error)}))
    else:
        if one is not None:
            found += members
        elif size == 0 and (expected or ".jsonl" in path.name):
            problems.append(Problem(path, "discover.empty"))
        elif expected:
            problems.append(Problem(path, "discover.not_utf8" if is_utf16(_head(path)) else "discover.unknown_format"))


def _unreadable(path: Path, error: OSError) -> Problem:
    return Problem(path, "discover.unreadable", {"reason": error.strerror or type(error).__name__})


def _may_be_transcript(path: Path) -> bool:
    name = path.name.lower()
    return name not in _CREDENTIALS and any(fnmatch(name, pattern) for pattern in _PATTERNS)


def _members(found: Found) -> Iterable[Found]:
    return next(source for source in SOURCES if source.agent == found.agent).members(found)


def _is_kept_beside(path: Path) -> bool:
    """Copies, indexes and journals that agents keep beside their transcripts: known, and none."""
    beside = (".checkpoint.", ".trajectory.", ".bak", ".lock", ".tmp")
    names = ("journal.jsonl", "history.jsonl", "session_index.jsonl")
    return any(part in path.name for part in beside) or path.name in names


def _sniffed(path: Path, sizes: tuple[int, ...]) -> Found | None:
    for size in sizes:
        with open_stream(path) as stream:
            head = _read(stream, size)
        for source in SOURCES:
            one = source.sniff(path, head)
            if one is not None:
                return one
        if len(head) < size:
            return None
    return None


def _head(path: Path) -> bytes:
    with open_stream(path) as stream:
        return stream.read(4)


def _read(stream: Any, size: int) -> bytes:
    parts = []
    while size > 0 and (block := stream.read(size)):
        parts.append(block)
        size -= len(block)
    return b"".join(parts)


def _known(path: Path, known: Mapping[str, str]) -> Found | None:
    agent = known.get(str(path))
    return Found(agent, path) if agent in {source.agent for source in SOURCES} and agent is not None else None

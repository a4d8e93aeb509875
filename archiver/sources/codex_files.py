"""Where Codex's transcripts lie: their names, the files of one thread, and what was reverted in which."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import orjson

from archiver.sources import jsonl
from archiver.transcript import Found

AGENT = "codex"
FOLDERS = ("sessions", "archived_sessions")
INDEX = "session_index.jsonl"
NAME = re.compile(
    r"rollout-(?:(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)-)?(?P<thread>[^_/]+?)(?:_(?P<rollout>[^_/.]+))?"
    r"\.json(?:l(?:\.zst)?)?"
)
_LONGEST_HEAD = 4 << 20
_BLOCK = 64 << 10


@dataclass(frozen=True, slots=True)
class Base:
    """From where on a file was reverted: another one of its thread goes on there. In bytes, and as the number of a record."""

    offset: int | None
    ordinal: int | None

    def begins_at(self, pos: int, ordinal: object) -> bool:
        """Whether the record there is the first that counts no more. Where both are told, both have to fit."""
        if self.offset is None:
            return ordinal == self.ordinal
        return pos == self.offset and (self.ordinal is None or ordinal is None or ordinal == self.ordinal)

    def saved(self) -> list[int | None]:
        return [self.offset, self.ordinal]


@dataclass(frozen=True, slots=True)
class Rollout(Found):
    """A transcript of Codex with what its folder says of it.

    reverted: from where on it counts no more. follows: an earlier file of its thread is there.
    """

    reverted: Base | None = None
    follows: bool = False
    folder: Folder | None = field(default=None, compare=False, repr=False)


class Folder:
    """A Codex home, or any folder with rollouts in it, as it stands now. `$CODEX_HOME/auth.json` is never opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._by_thread: dict[str, list[Path]] = defaultdict(list)
        for rollout in _rollouts(path):
            if match := NAME.fullmatch(rollout.name):
                self._by_thread[match["thread"]].append(rollout)

    def __contains__(self, thread: str) -> bool:
        return thread in self._by_thread

    def rollouts(self) -> Iterator[Rollout]:
        """Every transcript once: a compressed one is passed over where the plain one is beside it."""
        for paths in self._by_thread.values():
            reverted = _reverted(paths) if len(paths) > 1 else {}
            first = min(map(_order, paths))
            yield from (self._rollout(path, reverted.get(path), first) for path in paths)

    def rollout(self, path: Path) -> Rollout:
        """The transcript as `rollouts` gives it."""
        match = NAME.fullmatch(path.name)
        paths = self._by_thread.get(match["thread"], []) if match else []
        reverted = _reverted(paths) if len(paths) > 1 else {}
        return self._rollout(path, reverted.get(path), min(map(_order, paths), default=None))

    def _rollout(self, path: Path, reverted: Base | None, first: tuple[str, str] | None) -> Rollout:
        segment = "archived" if FOLDERS[1] in path.parts[:-1] else "live"
        follows = first is not None and NAME.fullmatch(path.name) is not None and first < _order(path)
        stamp = _stamp(path, reverted) if reverted else None
        return Rollout(AGENT, path, segment, stamp=stamp, reverted=reverted, follows=follows, folder=self)

    def title(self, thread: str) -> str:
        """The name that the thread was given, if any. The newest counts."""
        return self._names.get(thread, "")

    @cached_property
    def _names(self) -> dict[str, str]:
        names: dict[str, str] = {}
        try:
            lines = (self.path / INDEX).read_bytes().split(b"\n")
        except OSError:
            return names
        for line in lines:
            value = _object(line)
            if isinstance(value.get("id"), str) and isinstance(value.get("thread_name"), str):
                names[value["id"]] = value["thread_name"]
        return names


def around(path: Path) -> Folder:
    """The Codex home that the transcript lies in, or else its own folder. It is looked through again only where it changed."""
    day = path.parents[3] if len(path.parents) > 3 else path.parent
    root = next((folder for folder in (path.parent, day) if folder.name in FOLDERS), None)
    home = root.parent if root else path.parent
    return _folder(home, tuple(_clocks(home)))


@lru_cache(maxsize=1)
def _folder(path: Path, clocks: tuple[int, ...]) -> Folder:
    return Folder(path)


def _clocks(home: Path) -> Iterator[int]:
    """When something was last put into, or taken from, the folders in which rollouts lie."""
    try:
        yield (home / INDEX).stat().st_mtime_ns
    except OSError:
        yield 0
    for folder, depth in ((home, 0), (home / FOLDERS[0], 3), (home / FOLDERS[1], 0)):
        yield from _clocks_below(folder, depth)


def _clocks_below(folder: Path, depth: int) -> Iterator[int]:
    try:
        yield folder.stat().st_mtime_ns
        below = [Path(entry) for entry in os.scandir(folder) if entry.is_dir()] if depth else []
    except OSError:
        return
    for child in below:
        yield from _clocks_below(child, depth - 1)


def _rollouts(folder: Path) -> Iterator[Path]:
    homes = [folder / name for name in FOLDERS if (folder / name).is_dir()]
    for root in homes or [folder]:
        for here, names in _walk(root, deep=bool(homes)):
            known = set(names)
            yield from (here / name for name in names if not (name.endswith(".zst") and name[:-4] in known))


def _walk(root: Path, *, deep: bool) -> Iterator[tuple[Path, list[str]]]:
    """Folders and the names of the rollouts in them. Links are followed, each folder once."""
    entered: set[str] = set()
    for here, folders, names in os.walk(root, followlinks=True):
        real = os.path.realpath(here)
        if real in entered or not deep:
            folders.clear()
        if real not in entered:
            entered.add(real)
            yield Path(here), [name for name in names if NAME.fullmatch(name)]


def _order(path: Path) -> tuple[str, str]:
    """In which order the files of a thread were begun."""
    match = NAME.fullmatch(path.name)
    return (match["time"] or "", match["rollout"] or "") if match else ("", "")


def _stamp(path: Path, reverted: Base) -> tuple[int, int] | None:
    """Size and clock of a file of which only the beginning counts, so that it is read again once that is so."""
    try:
        return reverted.offset or reverted.ordinal or 0, path.stat().st_mtime_ns
    except OSError:
        return None


# --- files of one thread ---


def _reverted(paths: Iterable[Path]) -> dict[Path, Base]:
    """From where on each of these files of one thread counts no more: what the newest doesn't build on was taken back."""
    files = sorted(paths, key=_order)
    heads = {path: _head(path) for path in files}
    named: dict[str, list[Path]] = defaultdict(list)
    for path in files:
        named[_rollout_id(path)].append(path)
    cut: dict[Path, Base] = {}
    used = set(named[_rollout_id(files[-1])])
    base = heads[files[-1]]
    while base is not None:
        rollout, start = base
        before = [path for path in named.get(rollout, []) if path not in used]
        if not before:
            break
        for path in before:
            used.add(path)
            cut[path] = start
        base = heads[before[-1]]
    if cut:
        cut |= {path: Base(0, None) for path in files if path not in used}
    return {path: base for path, base in cut.items() if not _is_whole(path, base)}


def _is_whole(path: Path, base: Base) -> bool:
    try:
        return path.suffix != ".zst" and base.offset is not None and base.offset >= path.stat().st_size
    except OSError:
        return True


def _rollout_id(path: Path) -> str:
    match = NAME.fullmatch(path.name)
    return (match["rollout"] or match["thread"]) if match else ""


def _head(path: Path) -> tuple[str, Base] | None:
    """Which rollout the file goes on from, and where in it."""
    payload = _object(_first_line(path)).get("payload")
    base = payload.get("history_base") if isinstance(payload, dict) else None
    if not isinstance(base, dict) or not isinstance(base.get("thread_id"), str):
        return None
    offset, ordinal = (_number(base.get(name)) for name in ("end_byte_offset", "end_ordinal_exclusive"))
    return None if offset is None and ordinal is None else (base["thread_id"], Base(offset, ordinal))


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _first_line(path: Path) -> bytes:
    head = b""
    try:
        with jsonl.open_stream(path) as stream:
            while b"\n" not in head and len(head) < _LONGEST_HEAD and (block := stream.read(_BLOCK)):
                head += block
    except (OSError, EOFError):
        return b""
    return head.partition(b"\n")[0]


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}

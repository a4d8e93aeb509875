"""What hooks dropped: one small file an event, written by rename, so that no event is lost and none is read half. Standard library only."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

END_EVENTS = frozenset({"session-end", "command:new", "command:reset", "session:end"})
"""Events after which a session is over. Turn events (stop, notify) only say that there is something new."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something an agent told its hook. `transcript` may be empty, late or not there yet."""

    agent: str
    event: str
    session: str
    transcript: str
    cwd: str
    at: int

    @property
    def ends(self) -> bool:
        return self.event in END_EVENTS


def drop(folder: Path, event: Event) -> Path:
    """Write the event for whoever archives next. Returns the file."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = f"{time.time_ns()}-{uuid.uuid4().hex[:8]}.json"
    draft = folder / f".{name}.tmp"
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(event), file, ensure_ascii=True)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(folder / name)
    return folder / name


def waiting(folder: Path) -> Iterator[tuple[Path, Event | None]]:
    """The events in the order they came; None for a file that holds none."""
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("*.json")):
        try:
            content = path.read_bytes()
        except FileNotFoundError:  # another run has dealt with it
            continue
        except OSError:
            content = b""
        yield path, _event(content)


def _event(content: bytes) -> Event | None:
    try:
        raw = json.loads(content)
        words = {name: _whole(raw[name]) for name in ("agent", "event", "session", "transcript", "cwd")}
        return Event(**words, at=int(raw["at"]))
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None


def _whole(value: object) -> str:
    """The text without halves of characters, which no database takes."""
    if not isinstance(value, str):
        raise TypeError(f"no text: {type(value).__name__}")
    return value.encode("utf-8", "replace").decode()

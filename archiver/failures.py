"""What hooks could not do, as their log has it. Standard library only: `wwt status` shows the last one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

READ = 16_384
"""Bytes of the log's end that are looked at."""
_LINE = re.compile(r"(?P<time>\S+) (?:(?P<agent>[\w.-]+) (?P<event>[\w.:-]*\w) )?(?P<reason>.+)")


@dataclass(frozen=True, slots=True)
class Failure:
    """`at` is UTC ms; agent and event are empty where the hook was called without them."""

    at: int
    agent: str
    event: str
    reason: str


def failures(root: Path) -> list[Failure]:
    """The newest failures of hooks, the last one last. A line that cannot be read is passed over."""
    try:
        with (root / "log" / "hook.log").open("rb") as log:
            log.seek(0, 2)
            start = max(0, log.tell() - READ)
            log.seek(start)
            lines = log.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return []
    return [found for line in lines[1 if start else 0 :] if (found := _failure(line))]


def _failure(line: str) -> Failure | None:
    found = _LINE.fullmatch(line.strip())
    if found is None:
        return None
    try:
        at = datetime.strptime(found["time"], "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        return None
    return Failure(int(at.timestamp() * 1000), found["agent"] or "", found["event"] or "", found["reason"])

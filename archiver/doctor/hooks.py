"""Checks of what hooks told, and of what they could not do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from archiver import inbox as events
from archiver.doctor.finding import DAY, Finding, Progress, Subject, fault, listed, note, ok
from archiver.failures import failures
from archiver.home import Home
from archiver.render import local_minute, one_line
from store.messages import text

AGAIN = ".again"
"""In the name of an event that was put back once: a second time would change nothing."""
RECENT = 7 * DAY
REASON = 200
"""Columns."""


def inbox(subject: Subject) -> Finding:
    waiting = [path for path, _ in events.waiting(subject.root / "inbox")]
    if waiting:
        return note("inbox", text("doctor.inbox", count=len(waiting)), text("doctor.fix_archive"))
    return ok("inbox", text("doctor.inbox_empty"))


def quarantine(subject: Subject) -> Finding:
    held = list(_quarantined(subject.root))
    if not held:
        return ok("quarantine", text("doctor.quarantine_empty"))
    names = listed(f"{path.name} ({_wrong(path)})" for path in held)
    if all(AGAIN in path.name for path in held):
        folder = subject.root / "inbox" / "quarantine"
        words = text("doctor.quarantine_again", count=len(held), names=names)
        return note("quarantine", words, text("doctor.fix_quarantine", path=folder))
    return fault("quarantine", text("doctor.quarantine", count=len(held), names=names), mend=_retry)


def _quarantined(root: Path) -> Iterator[Path]:
    yield from sorted(path for path in (root / "inbox" / "quarantine").glob("*.json") if path.is_file())


def _wrong(path: Path) -> str:
    """Why the file holds no event."""
    try:
        raw = json.loads(path.read_bytes())
    except OSError as error:
        return error.strerror or str(error)
    except (ValueError, RecursionError) as error:
        return one_line(str(error), 60)
    wanted = {"agent": str, "event": str, "session": str, "transcript": str, "cwd": str, "at": int}
    if not isinstance(raw, dict):
        return text("doctor.no_object")
    return ", ".join(name for name, kind in wanted.items() if not isinstance(raw.get(name), kind)) or "?"


def _retry(home: Home, progress: Progress) -> str:
    """Back into the inbox, once: another release of wwt may understand it."""
    held = [path for path in _quarantined(home.root) if AGAIN not in path.name]
    for path in held:
        path.rename(home.root / "inbox" / f"{path.stem}{AGAIN}.json")
    return text("doctor.did_quarantine", count=len(held))


def hooks(subject: Subject) -> Finding:
    recent = [one for one in failures(subject.root) if subject.now - one.at < RECENT]
    if not recent:
        return ok("hooks", text("doctor.hooks_ok"))
    last = recent[-1]
    words = text(
        "doctor.hooks_failed",
        count=len(recent),
        time=local_minute(last.at),
        hook=f"{last.agent} {last.event}".strip() or "wwt-hook",
        reason=one_line(last.reason, REASON),
    )
    return note("hooks", words, text("doctor.fix_hooks", path=subject.root / "log" / "hook.log"))

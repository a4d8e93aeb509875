"""`wwt status`, and `wwt` alone: what is kept, what waits, what is wrong."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from archiver.cli.archive import Json
from archiver.cli.output import emit, say, tell, warn
from archiver.failures import failures
from archiver.render import local_minute, one_line
from store.messages import text
from store.records import iso, parse_time

if TYPE_CHECKING:
    from archiver.home import Home


def register(app: typer.Typer) -> None:
    app.command(help=text("help.status"), short_help=text("short.status"), epilog=text("examples.status"))(status)


def status(as_json: Json = False) -> None:
    from archiver.home import Home  # noqa: PLC0415

    home = Home.open()
    found = standing(home)
    if as_json:
        emit(found)
        return
    for fault in home.rule_faults:
        warn(one_line(str(fault)))
    _print(home, found)


def stand() -> None:
    """Where you stand, in three lines."""
    from archiver.home import Home  # noqa: PLC0415

    home = Home.open()
    found = standing(home)
    if not found["sessions"]:
        tell("status.nothing_yet")
        return
    tell("status.kept", sessions=found["sessions"], entries=found["entries"])
    tell("status.waiting" if found["waiting"] else "status.none_waiting", count=found["waiting"])
    tell("status.next")


def standing(home: Home) -> dict[str, Any]:
    """The stable keys of `wwt status --json`."""
    counts = home.reader.counts()
    reading = home.queue.read()
    waiting = sum(len(staged.document.entries) for staged in reading.staged)
    return {
        "sessions": counts["sessions"],
        "turns": counts["turns"],
        "chunks": counts["chunks"],
        "entries": counts["entries"],
        "waiting": waiting,
        "inbox": _files(home, "inbox"),
        "quarantined": _files(home, "inbox/quarantine"),
        "last_failure": _last_failure(home),
        "broken": [
            {"file": str(broken.path), "line": broken.line, "reason": broken.reason} for broken in reading.broken
        ],
        "home": str(home.root),
    }


def _last_failure(home: Home) -> dict[str, Any] | None:
    """The last thing a hook could not do."""
    found = failures(home.root)[-1:]
    return next(({**asdict(one), "at": iso(one.at)} for one in found), None)


def _files(home: Home, folder: str) -> int:
    try:
        return sum(1 for path in (home.root / folder).iterdir() if path.is_file() and not path.name.startswith("."))
    except FileNotFoundError:
        return 0


def _print(home: Home, found: dict[str, Any]) -> None:
    if found["sessions"]:
        _print_kept(home, found)
    else:
        tell("status.nothing_yet")
    _warn_of(found)
    if found["sessions"]:
        say()
        tell("status.next")


def _print_kept(home: Home, found: dict[str, Any]) -> None:
    tell("status.kept", sessions=found["sessions"], entries=found["entries"])
    tell("status.turns", turns=found["turns"], chunks=found["chunks"])
    tell("status.waiting" if found["waiting"] else "status.none_waiting", count=found["waiting"])
    last = home.reader.sessions("WHERE s.is_subagent = 0 ORDER BY s.ended_at DESC LIMIT 1")
    if last:
        tell(
            "status.newest",
            day=local_minute(last[0].ended_at),
            title=one_line(last[0].title or text("sessions.untitled"), 60),
        )
    if found["inbox"]:
        tell("status.inbox", count=found["inbox"])
    tell("status.home", path=home.root)


def _warn_of(found: dict[str, Any]) -> None:
    """What is wrong, as far as it is known without an examination."""
    if found["quarantined"]:
        warn(text("status.quarantined", count=found["quarantined"]))
    if failure := found["last_failure"]:
        hook = f"{failure['agent']} {failure['event']}".strip() or "wwt-hook"
        at = local_minute(parse_time(failure["at"]))
        warn(one_line(text("status.failure", time=at, hook=hook, reason=failure["reason"])))
    for broken in found["broken"]:
        warn(one_line(f"{broken['file']}:{broken['line']}: {broken['reason']}"))

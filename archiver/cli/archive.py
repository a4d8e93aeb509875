"""`wwt archive` and `wwt ingest`: bring in what agents wrote."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archiver import agents
from archiver.cli.output import dim, emit, say, tell, warn, with_meter
from archiver.render import one_line
from store import messages
from store.errors import USAGE, WwtError
from store.messages import text

if TYPE_CHECKING:
    from archiver.archive import Wish

SHOWN_PROBLEMS = 20

Paths = Annotated[list[Path] | None, typer.Argument(help=text("help.archive_paths"), show_default=False)]
Agents = Annotated[
    list[str] | None,
    typer.Option("--agent", metavar="AGENT", help=text("help.agent", known=agents.names()), show_default=False),
]
Since = Annotated[str | None, typer.Option("--since", metavar="WHEN", help=text("help.since"), show_default=False)]
Json = Annotated[bool, typer.Option("--json", help=text("help.json"))]


def register(app: typer.Typer) -> None:
    app.command(help=text("help.archive"), short_help=text("short.archive"), epilog=text("examples.archive"))(archive)
    app.command(help=text("help.ingest"), short_help=text("short.ingest"), epilog=text("examples.ingest"))(ingest)


def archive(
    paths: Paths = None,
    agent: Agents = None,
    since: Since = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=text("help.dry_run"))] = False,
    no_distil: Annotated[bool, typer.Option("--no-distil", help=text("help.no_distil"))] = False,
    finished: Annotated[bool, typer.Option("--finished", help=text("help.finished"))] = False,
    watch: Annotated[bool, typer.Option("--watch", help=text("help.watch"))] = False,
    as_json: Json = False,
) -> None:
    if watch and dry_run:
        raise WwtError("archive.watch_dry_run", exit_code=USAGE)
    if watch:
        _watch(_wish(paths, agent, since, distil=not no_distil, finished=finished, dry_run=False))
        return
    _run(paths, agent, since, distil=not no_distil, finished=finished, dry_run=dry_run, as_json=as_json)


def ingest(
    paths: Annotated[list[Path], typer.Argument(help=text("help.archive_paths"))],
    as_json: Json = False,
) -> None:
    _run(paths, None, None, distil=False, finished=False, dry_run=False, as_json=as_json)


def _run(
    paths: list[Path] | None,
    agents: list[str] | None,
    since: str | None,
    *,
    distil: bool,
    finished: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    from archiver.archive import archive  # noqa: PLC0415  the flow is not needed for --help
    from archiver.home import Home  # noqa: PLC0415

    wish = _wish(paths, agents, since, distil=distil, finished=finished, dry_run=dry_run)
    home = Home.open()
    report = with_meter(lambda meter: archive(home, wish, meter), quiet=as_json)
    if as_json:
        emit(report.contract())
    else:
        _print(report, dry_run=dry_run)
    if report.unreadable and report.files_found == 0 and wish.paths:
        raise typer.Exit(1)


def _wish(
    paths: list[Path] | None,
    agents: list[str] | None,
    since: str | None,
    *,
    distil: bool,
    finished: bool,
    dry_run: bool,
) -> Wish:
    from archiver.archive import Wish  # noqa: PLC0415

    return Wish(
        tuple(paths or ()), known_agents(agents), moment(since), distil=distil, finished=finished, dry_run=dry_run
    )


def _watch(wish: Wish) -> None:
    """Until Ctrl-C, which is how one ends it."""
    from archiver.archive import outlook  # noqa: PLC0415
    from archiver.home import Home  # noqa: PLC0415
    from archiver.watch import watch  # noqa: PLC0415

    home = Home.open()
    rest = [argument for argument in sys.argv[1:] if argument != "--watch"]
    command = [sys.executable, "-c", "from archiver.cli.main import run; run()", *rest]
    warn(text("archive.watching"))
    try:
        watch(lambda: outlook(home, wish), lambda: _run_apart(command))
    except KeyboardInterrupt:
        warn(text("archive.watched"))


LAST_SECONDS = 10
"""That a run may take to end once it was told to."""


def _run_apart(command: list[str]) -> None:
    """A fault of one run is told by that run; the next look tries again."""
    sys.stdout.flush()
    process = subprocess.Popen(command)
    try:
        process.wait()
    except KeyboardInterrupt:
        # The terminal interrupts it too; let it end in order.
        with suppress(subprocess.TimeoutExpired):
            process.wait(LAST_SECONDS)
        process.terminate()
        raise


def moment(value: str | None, *, ending: bool = False) -> int | None:
    """UTC ms of a day (`2026-04-06`, local), a time, or an age such as `7d`, `12h`; None for None.

    `ending`: of a day its last moment.
    """
    if value is None:
        return None
    from archiver.moments import parse_moment  # noqa: PLC0415

    found = parse_moment(value, ending=ending)
    if found is None:
        raise WwtError("cli.bad_time", value=value, exit_code=USAGE)
    return found


def known_agents(wanted: list[str] | None) -> tuple[str, ...]:
    from archiver.sources import SOURCES  # noqa: PLC0415

    names = [source.agent for source in SOURCES]
    for name in wanted or ():
        if name not in names:
            raise WwtError("cli.unknown_agent", name=name, known=", ".join(names), exit_code=USAGE)
    return tuple(wanted or ())


def _print(report, *, dry_run: bool) -> None:  # type: ignore[no-untyped-def]
    if dry_run:
        for path in report.would_read:
            say(one_line(str(path)))
        tell("archive.would_read", count=len(report.would_read), found=report.files_found)
        return
    if report.files_read:
        tell("archive.read", files=report.files_read, turns=report.turns_added, sessions=len(report.sessions))
    else:
        tell("archive.nothing_new", found=report.files_found)
    if report.candidates_added:
        tell("archive.candidates", count=report.candidates_added)
    if report.waiting_idle:
        tell(
            "archive.waiting", count=len(report.waiting_idle), minutes=max(w.minutes_left for w in report.waiting_idle)
        )
    for notice in report.notices:
        warn(notice)
    for bad in report.unreadable[:SHOWN_PROBLEMS]:
        where = f"{bad['file']}:{bad['line']}" if bad["line"] else bad["file"]
        warn(one_line(f"{where}: {bad['reason']}"))
    if len(report.unreadable) > SHOWN_PROBLEMS:
        warn(messages.text("archive.more_unreadable", count=len(report.unreadable) - SHOWN_PROBLEMS))
    if report.days_left is not None:
        say(
            dim(messages.text("archive.days_left", agent=agents.display_name(report.deleted_by), days=report.days_left))
        )

"""`wwt forget` and `wwt reset`: removing what was said, or everything."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.archive import Json, known_agents, moment
from archiver.cli.groups import texts
from archiver.cli.output import emit, say, tell, warn, with_meter
from archiver.cli.search import Agent, Project
from archiver.render import local_minute, one_line, plain
from store.errors import FAILED, USAGE, WwtError
from store.messages import text
from store.records import iso

if TYPE_CHECKING:
    from archiver.forget import Outcome, Plan
    from archiver.reset import Holding
    from store.reader import SessionRow

LISTED = 10
"""Sessions that are named before the question."""
TITLE = 70

Yes = Annotated[bool, typer.Option("--yes", "-y", help=text("help.yes"))]


def register(app: typer.Typer) -> None:
    app.command(**texts("forget"))(forget)
    app.command(**texts("reset"))(reset)


def forget(
    session: Annotated[
        list[str] | None, typer.Argument(metavar="[SESSION]...", help=text("help.forget_session"), show_default=False)
    ] = None,
    project: Project = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="WHEN", help=text("help.forget_before"), show_default=False)
    ] = None,
    agent: Agent = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=text("help.forget_dry_run"))] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    from archiver.cli.scope import scope_of  # noqa: PLC0415
    from archiver.forget import Outcome, Wish, finish, plan  # noqa: PLC0415  SQLAlchemy costs 0.25 s; --help goes without
    from archiver.forget import forget as carry_out  # noqa: PLC0415
    from archiver.home import Home  # noqa: PLC0415

    known_agents([agent] if agent else None)
    if not (session or project or before or agent):
        raise WwtError("forget.which", exit_code=USAGE)
    home = Home.open()
    place = scope_of(home, project, everything=False).project if project else None
    seen = plan(home, Wish(tuple(session or ()), place, agent, moment(before)))
    if dry_run:
        _show(seen, as_json=as_json)
        return
    if seen.chosen and not yes:
        if sys.stdin.isatty():
            for line in _listed(seen, most=LISTED):
                warn(line)
        _ask("forget.ask", "forget.needs_yes", "forget.refused")

    def work(meter: Any) -> Outcome:
        progress = lambda done, total: meter("erase", done, total)  # noqa: E731
        return carry_out(home, seen, progress) if seen.chosen else Outcome(complete=finish(home, progress))

    done = with_meter(work, quiet=as_json)
    if as_json:
        emit(_contract(seen, done, dry_run=False))
    else:
        _print(seen, done)
    if not done.complete:
        raise WwtError("forget.unfinished")


def _ask(question: str, needs_yes: str, refused: str, **fields: object) -> None:
    """Go on only with a person's yes. The question is no answer, so it goes to standard error."""
    if not sys.stdin.isatty():
        raise WwtError(needs_yes, exit_code=USAGE)
    # `typer.confirm` writes a blank to standard output, where the JSON goes.
    typer.echo(plain(text(question, **fields)) + " [y/N]: ", nl=False, err=True)
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        typer.echo(err=True)
        raise typer.Abort from None
    if answer.strip().casefold() not in ("y", "yes"):
        raise WwtError(refused, exit_code=FAILED)


def _contract(seen: Plan, done: Outcome | None, *, dry_run: bool) -> dict[str, Any]:
    """The stable keys of `wwt forget --json`. `entries` stay; the others go."""
    return {
        "dry_run": dry_run,
        "sessions": [_session(row) for row in seen.chosen],
        "subagents": seen.subagents,
        "turns": seen.turns if done is None else done.turns,
        "findings": seen.findings,
        "entries": seen.entries,
        "backups": seen.backups,
        "forgotten_before": list(seen.gone),
        "complete": done.complete if done else False,
    }


def _session(row: SessionRow) -> dict[str, Any]:
    return {
        "session": row.external_id,
        "agent": row.agent,
        "project": row.project,
        "ended_at": iso(row.ended_at),
        "turns": row.turns,
    }


def _show(seen: Plan, *, as_json: bool) -> None:
    if as_json:
        emit(_contract(seen, None, dry_run=True))
        return
    _say_gone(seen)
    for line in _listed(seen):
        say(plain(line))
    if not seen.chosen and not seen.gone:
        tell("forget.nothing")


def _listed(seen: Plan, most: int | None = None) -> Iterator[str]:
    """What would go and what would stay: the sessions, at most so many, then how much of everything."""
    for row in seen.chosen[:most]:
        about = (row.agent, row.project or "", local_minute(row.ended_at), text("sessions.turns", count=row.turns))
        yield row.external_id
        yield f"    {one_line(row.title or text('sessions.untitled'), TITLE)}"
        yield f"    {' · '.join(filter(None, about))}"
    if most is not None and len(seen.chosen) > most:
        yield text("forget.more", count=len(seen.chosen) - most)
    if seen.chosen:
        yield text("forget.would", what=_what(seen, seen.turns))
    if seen.entries:
        yield text("forget.would_stay", count=seen.entries)


def _what(seen: Plan, turns: int) -> str:
    """All that is not nothing."""
    counts = {"sessions": len(seen.chosen), "subagents": seen.subagents, "turns": turns}
    counts |= {"findings": seen.findings, "backups": seen.backups}
    return ", ".join(text(f"forget.{key}", count=count) for key, count in counts.items() if count)


def _print(seen: Plan, done: Outcome) -> None:
    _say_gone(seen)
    if not seen.chosen:
        if not seen.gone:
            tell("forget.nothing")
        return
    tell("forget.done", what=_what(seen, done.turns))
    if seen.entries:
        tell("forget.stay", count=seen.entries)


def _say_gone(seen: Plan) -> None:
    for name in seen.gone:
        tell("forget.before", session=plain(name))


def reset(
    dry_run: Annotated[bool, typer.Option("--dry-run", help=text("help.reset_dry_run"))] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    from archiver import config  # noqa: PLC0415
    from archiver.reset import Cleared, Holding, holding  # noqa: PLC0415  SQLAlchemy costs 0.25 s
    from archiver.reset import reset as carry_out  # noqa: PLC0415

    root = config.home()
    held = holding(root) or Holding(0, 0, 0, 0)
    if held.files and not (yes or dry_run):
        if sys.stdin.isatty():
            warn(text("reset.hint"))
        _ask(_told("reset.ask", held), "reset.needs_yes", "reset.refused", home=root, **_held(held))
    done = Cleared(held.files, held.left) if dry_run else carry_out(root)
    if as_json:
        counts = {"removed": done.removed, **_held(held), "left": [str(path) for path in done.left]}
        emit({"home": str(root), "dry_run": dry_run, **counts})
        return
    if not done.removed:
        tell("reset.nothing", home=plain(str(root)))
    elif dry_run:
        tell(_told("reset.would", held), home=plain(str(root)), count=held.files, **_held(held))
    else:
        tell("reset.done", home=plain(str(root)), count=done.removed)
    for path in done.left:
        warn(text("reset.left", path=path))


def _told(key: str, held: Holding) -> str:
    """The message, or the one for a database that cannot be read."""
    return key if held.sessions is not None else f"{key}_blind"


def _held(held: Holding) -> dict[str, int | None]:
    return {"sessions": held.sessions, "entries": held.entries, "waiting": held.waiting}

"""`wwt forget` and `wwt reset`: removing what was said, or everything."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.archive import Json, known_agents, moment
from archiver.cli.groups import texts
from archiver.cli.output import dim, emit, say, tell, warn, with_meter
from archiver.cli.search import Agent, Project
from archiver.render import local_minute, one_line, plain
from store.errors import FAILED, USAGE, WwtError
from store.messages import text
from store.records import iso

if TYPE_CHECKING:
    from pathlib import Path

    from archiver.forget import Outcome, Plan
    from store.reader import SessionRow

Yes = Annotated[bool, typer.Option("--yes", "-y", help=text("help.yes"))]


def register(app: typer.Typer) -> None:
    app.command(**texts("forget"))(forget)
    app.command(**texts("reset"))(reset)


def forget(
    session: Annotated[
        list[str] | None, typer.Argument(metavar="[SESSION]...", help=text("help.forget_session"), show_default=False)
    ] = None,
    project: Project = None,
    before: Annotated[str | None, typer.Option("--before", help=text("help.forget_before"), show_default=False)] = None,
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
        _ask("forget.ask", "forget.needs_yes", "forget.refused", **_counts(seen))

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
    if not typer.confirm(text(question, **fields), err=True):
        raise WwtError(refused, exit_code=FAILED)


def _counts(seen: Plan) -> dict[str, int]:
    return {
        "sessions": len(seen.chosen),
        "subagents": seen.subagents,
        "turns": seen.turns,
        "findings": seen.findings,
        "entries": seen.entries,
        "backups": seen.backups,
    }


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
    for row in seen.chosen:
        title = one_line(row.title or text("sessions.untitled"))
        say(plain(f"{row.external_id}  {local_minute(row.ended_at):16}  {row.project}  {title}"))
        say(dim(plain(f"          {row.agent} · {text('sessions.turns', count=row.turns)}")))
    _say_gone(seen)
    tell("forget.would" if seen.chosen else "forget.nothing", **_counts(seen))


def _print(seen: Plan, done: Outcome) -> None:
    _say_gone(seen)
    if not seen.chosen:
        if not seen.gone:
            tell("forget.nothing")
        return
    tell("forget.done", sessions=done.sessions, turns=done.turns)
    if seen.entries:
        tell("forget.entries", entries=seen.entries)
    if seen.backups:
        tell("forget.backups", backups=seen.backups)


def _say_gone(seen: Plan) -> None:
    for name in seen.gone:
        tell("forget.before", session=plain(name))


def reset(yes: Yes = False, as_json: Json = False) -> None:
    from archiver import config  # noqa: PLC0415
    from archiver.reset import holding  # noqa: PLC0415  SQLAlchemy
    from archiver.reset import reset as carry_out  # noqa: PLC0415

    root = config.home()
    held = holding(root)
    if held is not None and not yes:
        warn(text("reset.hint"))
        fields = {"home": root, "waiting": held.waiting, "sessions": held.sessions, "entries": held.entries}
        _ask(
            "reset.ask" if held.sessions is not None else "reset.ask_blind",
            "reset.needs_yes",
            "reset.refused",
            **fields,
        )
    done = carry_out(root)
    if as_json:
        emit({"home": str(root), "removed": done.removed, "left": [str(path) for path in done.left]})
        return
    tell("reset.done" if done.removed else "reset.nothing", home=plain(str(root)), count=done.removed)
    _say_left(done.left)


def _say_left(left: tuple[Path, ...]) -> None:
    for path in left:
        warn(text("reset.left", path=path))

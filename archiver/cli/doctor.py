"""`wwt doctor`: what is wrong, and the repairs that are safe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from archiver import config
from archiver.cli.archive import Json
from archiver.cli.output import accent, bold, dim, emit, say, tell, warn, width, with_meter
from archiver.render import columns, fold, one_line
from store.errors import FAILED
from store.messages import text

if TYPE_CHECKING:
    from archiver.doctor.examine import Examination
    from archiver.doctor.finding import Finding

STYLES = {"ok": dim, "note": accent, "fault": bold}
"""From the best to the worst."""


def register(app: typer.Typer) -> None:
    app.command(help=text("help.doctor"), short_help=text("short.doctor"), epilog=text("examples.doctor"))(doctor)


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help=text("help.doctor_fix"))] = False,
    as_json: Json = False,
) -> None:
    from archiver.doctor.examine import examine, mend  # noqa: PLC0415  SQLAlchemy, pydantic

    root = config.home()
    found = with_meter(lambda meter: (mend if fix else examine)(root, meter), quiet=as_json)
    if as_json:
        _emit(found)
    else:
        _print(found, fix=fix)
    if found.faults:
        raise typer.Exit(FAILED)


def _emit(found: Examination) -> None:
    checks = [
        {
            "id": one.id,
            "state": one.state.value,
            "text": one.text,
            "fix": one.fix or None,
            "fixable": one.mend is not None,
        }
        for one in found.findings
    ]
    fixed = [{"id": one.id, "text": one.text} for one in found.fixed]
    not_fixed = [{"id": one.id, "text": one.text} for one in found.not_fixed]
    emit({"checks": checks, "fixed": fixed, "not_fixed": not_fixed})


def _print(found: Examination, *, fix: bool) -> None:
    """What is wrong last, where a terminal still shows it."""
    for one in sorted(found.findings, key=lambda one: list(STYLES).index(one.state)):
        _print_one(one)
    say()
    for done in found.fixed:
        tell("doctor.fixed", what=one_line(done.text))
    for done in found.not_fixed:
        warn(one_line(text("doctor.not_fixed", reason=done.text)))
    if found.faults:
        tell("doctor.faults", count=found.faults)
    else:
        tell("doctor.nothing_wrong")
    if found.mendable and not fix:
        tell("doctor.can_fix", count=found.mendable)


def _print_one(one: Finding) -> None:
    """A line in a pipe; on a terminal as many as it takes, the next step on its own."""
    names = {state: text(f"doctor.{state}") for state in STYLES}
    name, room = names[one.state], max(map(columns, names.values())) + 2
    parts = [one_line(one.text), *([f"→ {one_line(one.fix)}"] if one.fix else [])]
    folded = [fold(part, width(), " " * room)[room:] for part in (parts if width() else ["  ".join(parts)])]
    say(f"{STYLES[one.state](name)}{' ' * (room - columns(name))}" + f"\n{' ' * room}".join(folded))

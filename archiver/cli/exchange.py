"""`wwt export` and `wwt import`: knowledge as Markdown, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.archive import SHOWN_PROBLEMS, Json
from archiver.cli.output import emit, tell, warn, with_meter
from archiver.cli.search import All
from archiver.render import one_line
from store.messages import text

if TYPE_CHECKING:
    from archiver.exchange import Imported
    from archiver.note import Broken
    from archiver.vault import Synced

Folder = Annotated[Path, typer.Argument(metavar="DIR", help=text("help.export_dir"), show_default=False)]
Source = Annotated[Path, typer.Argument(metavar="DIR", help=text("help.import_dir"), show_default=False)]
Project = Annotated[
    str | None, typer.Option("--project", "-p", metavar="PROJECT", help=text("help.export_project"), show_default=False)
]


def register(app: typer.Typer) -> None:
    app.command("export", help=text("help.export"), short_help=text("short.export"), epilog=text("examples.export"))(
        export
    )
    app.command("import", help=text("help.import"), short_help=text("short.import"), epilog=text("examples.import"))(
        import_
    )


def export(folder: Folder, project: Project = None, everything: All = False, as_json: Json = False) -> None:
    from archiver import exchange  # noqa: PLC0415  SQLAlchemy and YAML: 0.3 s
    from archiver.cli.scope import scope_of  # noqa: PLC0415
    from archiver.home import Home  # noqa: PLC0415

    home = Home.open()
    key = scope_of(home, project, everything=everything or project is None).key
    done: Synced = with_meter(lambda meter: exchange.export(home, folder, key, meter), quiet=as_json)
    if as_json:
        emit(_exported(folder, done))
    else:
        _print_exported(folder, done)
    if any(bad.path.is_relative_to(folder.absolute()) for bad in done.broken):
        raise typer.Exit(1)  # the folder lacks these


def _print_exported(folder: Path, done: Synced) -> None:
    tell("exchange.exported", written=done.written, unchanged=done.unchanged, path=one_line(str(folder)))
    if done.adopted:
        tell("exchange.adopted", count=len(done.adopted))
    if done.strangers:
        tell("exchange.strangers", count=done.strangers)
    _each("exchange.edited", done.edited)
    _each("exchange.conflict", done.conflicts + done.unsettled)
    _broken(done.broken)


def import_(folder: Source, as_json: Json = False) -> None:
    from archiver import exchange  # noqa: PLC0415  SQLAlchemy and YAML: 0.3 s
    from archiver.home import Home  # noqa: PLC0415

    home = Home.open()
    done: Imported = with_meter(lambda meter: exchange.bring(home, folder, meter), quiet=as_json)
    if as_json:
        emit(_imported(folder, done))
    else:
        _print(folder, done)
    if done.broken and not done.notes:
        raise typer.Exit(1)


def _exported(folder: Path, done: Synced) -> dict[str, Any]:
    """The stable keys of `wwt export --json`."""
    return {
        "folder": str(folder.absolute()),
        "written": done.written,
        "unchanged": done.unchanged,
        "adopted": list(done.adopted),
        "edited": _paths(done.edited),
        "conflicts": _paths(done.conflicts + done.unsettled),
        "not_in_archive": done.strangers,
        "broken": [_broken_row(bad) for bad in done.broken],
    }


def _imported(folder: Path, done: Imported) -> dict[str, Any]:
    """The stable keys of `wwt import --json`."""
    return {
        "folder": str(folder.absolute()),
        "notes": done.notes,
        "added": list(done.added),
        "updated": list(done.updated),
        "unchanged": done.unchanged,
        "older": _paths(done.older),
        "known_as": [{"file": str(path), "entry": uid} for path, uid in done.twins],
        "verdicts": done.verdicts,
        "conflicts": _paths(done.conflicts),
        "conflicts_unwritten": _paths(done.unwritten),
        "broken": [_broken_row(bad) for bad in done.broken],
        "projects": dict(done.projects),
        "notices": list(done.notices),
    }


def _print(folder: Path, done: Imported) -> None:
    if not (done.notes or done.verdicts or done.broken):
        tell("exchange.nothing", path=one_line(str(folder)))
    else:
        tell("exchange.imported", added=len(done.added), updated=len(done.updated), unchanged=done.unchanged)
    if done.verdicts:
        tell("exchange.verdicts", count=done.verdicts)
    for there, here in done.projects:
        tell("exchange.project", there=one_line(there), here=one_line(here))
    _each("exchange.twin", [path for path, _ in done.twins], [uid for _, uid in done.twins])
    _each("exchange.older", done.older)
    _each("exchange.conflict", done.conflicts)
    _each("exchange.unwritten", done.unwritten)
    _broken(done.broken)
    for notice in done.notices:
        warn(notice)


def _each(key: str, paths: Sequence[Path], uids: Iterable[str] = ()) -> None:
    """A line for each file, and how many more there are."""
    named = dict(zip(paths, uids, strict=False))
    for path in paths[:SHOWN_PROBLEMS]:
        warn(text(key, path=one_line(str(path)), uid=named.get(path, "")))
    _more(len(paths))


def _broken(broken: Sequence[Broken]) -> None:
    for bad in broken[:SHOWN_PROBLEMS]:
        where = f"{bad.path}:{bad.line}" if bad.line else str(bad.path)
        warn(one_line(f"{where}: {bad.reason}"))
    _more(len(broken))


def _more(count: int) -> None:
    if count > SHOWN_PROBLEMS:
        warn(text("archive.more_unreadable", count=count - SHOWN_PROBLEMS))


def _broken_row(bad: Broken) -> dict[str, Any]:
    return {"file": str(bad.path), "line": bad.line, "reason": bad.reason}


def _paths(paths: Iterable[Path]) -> list[str]:
    return [str(path) for path in paths]

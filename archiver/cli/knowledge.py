"""`wwt recall`, `wwt entries` and `wwt tags`: the reviewed knowledge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archiver.cli.archive import Json
from archiver.cli.output import accent, bold, dim, emit, say, tell
from archiver.cli.search import All, Project, Tags, Type, checked_type
from archiver.render import local_day, one_line, plain
from store.messages import text


def register(app: typer.Typer) -> None:
    app.command(help=text("help.recall"), short_help=text("short.recall"), epilog=text("examples.recall"))(recall)
    app.command(help=text("help.entries"), short_help=text("short.entries"), epilog=text("examples.entries"))(entries)
    app.command(help=text("help.tags_command"), short_help=text("short.tags"), epilog=text("examples.tags"))(tags)


def recall(
    tag: Tags = None,
    project: Project = None,
    cwd: Annotated[Path | None, typer.Option("--cwd", help=text("help.cwd"), show_default=False)] = None,
    budget: Annotated[
        int | None, typer.Option("--budget", min=50, max=10_000, help=text("help.budget"), show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    from archiver.cli.scope import scope_of  # noqa: PLC0415
    from archiver.home import Home  # noqa: PLC0415
    from archiver.recall import project_at  # noqa: PLC0415
    from archiver.recall import recall as find  # noqa: PLC0415

    home = Home.open()
    here = (cwd or Path.cwd()).absolute()
    place = scope_of(home, project, everything=False).project if project else project_at(home.reader, here)
    block = find(
        home.reader,
        here,
        budget=budget or home.settings.recall.budget,
        aliases=home.aliases(),
        asked=split_tags(tag),
        project_id=place,
        waiting=home.waiting_here(place),
    )
    if as_json:
        emit(
            {
                "entries": list(block.entries),
                "shown": block.shown,
                "of": block.of,
                "tokens": block.tokens,
                "text": block.text,
            }
        )
    elif block.text:
        say(plain(block.text))


def split_tags(given: list[str] | None) -> list[str]:
    """`--tags a,b --tags c` as a, b, c."""
    return [part.strip() for value in given or [] for part in value.split(",") if part.strip()]


def entries(
    project: Project = None,
    everything: All = False,
    type: Type = None,
    tag: Tags = None,
    retired: Annotated[bool, typer.Option("--retired", help=text("help.retired"))] = False,
    as_json: Json = False,
) -> None:
    from archiver.cli.scope import scope_of  # noqa: PLC0415
    from archiver.cli.sessions import _entry_json  # noqa: PLC0415
    from archiver.home import Home  # noqa: PLC0415
    from rules.tags import normalise  # noqa: PLC0415
    from store import knowledge  # noqa: PLC0415  SQLAlchemy costs 0.25 s; --help goes without
    from store.records import EntryType  # noqa: PLC0415

    home = Home.open()
    scope = scope_of(home, project, everything=everything)
    kind = EntryType(checked) if (checked := checked_type(type)) else None
    filters = knowledge.Filters(project=scope.key, type=kind, status=None if retired else "active")
    with home.database.transaction() as tx:
        found = knowledge.list_entries(tx, filters, normalise=normalise)
    wanted = {normalise(name) for name in split_tags(tag)}
    found = [entry for entry in found if not wanted or wanted.intersection(entry.tags)]
    if as_json:
        emit({"scope": scope.label, "entries": [_entry_json(entry) for entry in found]})
        return
    if not found:
        tell("entries.none", scope=scope.label)
        return
    for entry in found:
        say(f"{entry.uid}  {accent(text('type.' + entry.type.value))}  {bold(one_line(entry.summary))}")
        status = "" if entry.status == "active" else f" · {entry.status}"
        say(
            dim(
                plain(f"          {local_day(entry.reviewed_at)} · {' '.join('#' + tag for tag in entry.tags)}{status}")
            )
        )


def tags(as_json: Json = False) -> None:
    from archiver.home import Home  # noqa: PLC0415

    counts = Home.open().reader.tag_counts()
    if as_json:
        emit({"tags": [{"tag": name, "entries": count} for name, count in counts.items()]})
        return
    if not counts:
        tell("tags.none")
    for name, count in counts.items():
        say(plain(f"{count:5}  {name}"))

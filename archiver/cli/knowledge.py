"""`wwt recall` and `wwt tags`: the reviewed knowledge as an agent gets it, and its labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archiver.cli.archive import Json
from archiver.cli.groups import texts
from archiver.cli.output import dim, emit, say, tell
from archiver.cli.search import All, Project, Tags
from archiver.render import plain
from store.errors import USAGE, WwtError
from store.messages import text

_tags = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


def register(app: typer.Typer) -> None:
    app.command(help=text("help.recall"), short_help=text("short.recall"), epilog=text("examples.recall"))(recall)
    # `help.tags` is the option's.
    app.add_typer(_tags, name="tags", **texts("tags") | {"help": text("help.tags_command")})


def recall(
    tag: Tags = None,
    project: Project = None,
    cwd: Annotated[
        Path | None, typer.Option("--cwd", metavar="FOLDER", help=text("help.cwd"), show_default=False)
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", min=50, max=10_000, metavar="TOKENS", help=text("help.budget"), show_default=False),
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


@_tags.callback()
def tags(context: typer.Context, project: Project = None, everything: All = False, as_json: Json = False) -> None:
    if context.invoked_subcommand is not None:
        if any(context.params.values()):
            raise WwtError("entries.options_last", command=context.invoked_subcommand, exit_code=USAGE)
        return
    from archiver.cli.scope import scope_of  # noqa: PLC0415
    from archiver.home import Home  # noqa: PLC0415

    home = Home.open()
    scope = scope_of(home, project, everything=everything)
    counts = home.reader.tag_counts(scope.project)
    if as_json:
        emit({"scope": scope.label, "tags": [{"tag": name, "entries": count} for name, count in counts.items()]})
        return
    if not counts:
        tell("tags.none" if scope.key else "tags.none_anywhere", scope=scope.label)
        return
    for name, count in counts.items():
        say(plain(f"{count:5}  {name}"))
    say(dim(text("tags.listed", count=len(counts), scope=scope.label)))


@_tags.command("rename", **texts("tags_rename"))
def rename(
    old: Annotated[str, typer.Argument(metavar="OLD", help=text("help.tag_old"), show_default=False)],
    new: Annotated[str, typer.Argument(metavar="NEW", help=text("help.tag_new"), show_default=False)],
    as_json: Json = False,
) -> None:
    from archiver.cli.entries import warn_broken  # noqa: PLC0415
    from archiver.entries import Keeper  # noqa: PLC0415  SQLAlchemy and pydantic
    from archiver.home import Home  # noqa: PLC0415

    home = Home.open()
    done = Keeper(home.desk, home.vault).rename_tag(home.redact(old), home.redact(new))
    if as_json:
        emit({"changed": done.changed, "entries": [entry.uid for entry in done.entries]})
    elif not done.changed:
        tell("entries.unchanged")
    else:
        tell("tags.renamed", old=plain(old), new=plain(new), count=done.changed)
        say(dim(text("entries.undo")))
    warn_broken(done)

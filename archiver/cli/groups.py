"""Commands that have commands of their own: `wwt config get`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import typer

from archiver.cli.output import say
from store.messages import text


def register_group(
    app: typer.Typer, name: str, commands: Mapping[str, Callable[..., Any]], *, hyphens: Collection[str] = ()
) -> None:
    """`wwt NAME COMMAND` for each; their texts are `help.NAME_COMMAND`, `short.…` and `examples.…`.

    `hyphens`: the commands whose arguments may begin with one. An option that they do not know is an argument to them.
    """
    group = typer.Typer(rich_markup_mode=None)
    for verb, command in commands.items():
        settings = {"ignore_unknown_options": verb in hyphens}
        group.command(verb, context_settings=settings, **texts(f"{name}_{verb}"))(command)
    app.add_typer(group, name=name, callback=_help_alone, invoke_without_command=True, **texts(name))


def texts(name: str) -> dict[str, Any]:
    """The texts of a command: `help.NAME`, `short.NAME` and `examples.NAME`."""
    return {"help": text(f"help.{name}"), "short_help": text(f"short.{name}"), "epilog": text(f"examples.{name}")}


def _help_alone(context: typer.Context) -> None:
    """A group by itself asks for nothing yet: it says what it can do, and that is no mistake."""
    if context.invoked_subcommand is None:
        say(context.get_help())

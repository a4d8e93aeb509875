"""The `wwt` command: its subcommands, and what becomes of an error."""

from __future__ import annotations

import errno
import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from archiver import config
from archiver.cli import (
    archive,
    demo,
    doctor,
    entries,
    exchange,
    forget,
    knowledge,
    rebuild,
    review,
    rules,
    search,
    sessions,
    status,
)
from archiver.cli import config as settings
from archiver.cli.output import ReaderGone, say, warn
from store.errors import FAILED, WwtError
from store.messages import text

INTERRUPTED = 130

app = typer.Typer(
    help=text("help.wwt"),
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415  20 ms that only --version pays

        say(f"wwt {version('wwt-archiver')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def wwt(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help=text("help.version"), callback=_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        status.stand()


for module in (
    archive,
    review,
    search,
    sessions,
    entries,
    knowledge,
    exchange,
    status,
    rules,
    settings,
    doctor,
    rebuild,
    forget,
    demo,
):
    module.register(app)


def run() -> None:
    """Entry point. Every failure a person can fix is one line and an exit code; nothing prints a traceback."""
    os.umask(0o077)  # whatever is written under WWT_HOME is its owner's alone
    # A stream that was closed before we began (`>&-`) is None.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  open until the end
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    logging.basicConfig(level=logging.ERROR, format="%(message)s", stream=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        # The answer is UTF-8 under any locale; a character the terminal lacks must not end the command.
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    sys.exit(_run())


def _run() -> int:
    try:
        outcome = app(search.words_last(sys.argv[1:], app), prog_name="wwt", standalone_mode=False)
        sys.stdout.flush()
        if outcome == INTERRUPTED:  # what typer makes of Ctrl-C
            warn(text("cli.interrupted"))
        return outcome if isinstance(outcome, int) else 0
    except WwtError as error:
        warn(text(error.key, **error.fields))
        return error.exit_code
    except typer.Exit as error:
        return error.exit_code
    except typer.TyperException as error:
        warn(text("cli.usage", problem=error.format_message().rstrip(".")))
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        warn(text("cli.interrupted"))
        return INTERRUPTED
    except (ReaderGone, BrokenPipeError):
        # The reader (`| head`) has seen enough. Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        warn(_explained(error))
        return FAILED


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError:  # the folder we stand in was deleted
        return Path()


def _explained(error: OSError) -> str:
    """What a person can do about it, where that is known."""
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else _here()
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return text("store.disk_full", path=path)
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM) and path.is_relative_to(config.home()):
        return text("store.read_only", path=path)
    return text("cli.os_error", path=path, reason=error.strerror or error)

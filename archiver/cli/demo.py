"""`wwt demo`: the whole story on invented sessions, in a home that is thrown away."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

import typer

from archiver.cli.output import accent, say, tell
from store.messages import text

PROJECT = "paylink"
FOLDER = "/home/demo/paylink"
SESSIONS = "demo/sessions"


def register(app: typer.Typer) -> None:
    app.command(help=text("help.demo"), short_help=text("short.demo"), epilog=text("examples.demo"))(demo)


def demo() -> None:
    tell("demo.intro")
    with (
        tempfile.TemporaryDirectory(prefix="wwt-demo-") as folder,
        _home(Path(folder)),
        as_file(files("archiver.demo") / "sessions") as sessions,
    ):
        _step("demo.archive", "archive", "--finished", str(sessions))
        _step("demo.deleted", "sessions", "--project", PROJECT)
        _step("demo.waiting", "review", "--list", "--project", PROJECT)
        _step("demo.accept", "review", "--accept-all", "--project", PROJECT, "--min-confidence", "0.7", "--yes")
        _step("demo.search_korean", "search", text("demo.query_korean"), "--project", PROJECT, "--limit", "3")
        _step("demo.search_identifier", "search", "ERR_DUP_ORDER", "--project", PROJECT, "--limit", "2")
        _step("demo.recall", "recall", "--cwd", FOLDER)
    say()
    tell("demo.end")


@contextmanager
def _home(folder: Path) -> Iterator[None]:
    before = os.environ.get("WWT_HOME")
    os.environ["WWT_HOME"] = str(folder / "wwt")
    try:
        yield
    finally:
        if before is None:
            del os.environ["WWT_HOME"]
        else:
            os.environ["WWT_HOME"] = before


def _step(key: str, *arguments: str) -> None:
    """Say what comes, show the command as one would type it, and run it in this process: Kiwi is loaded once."""
    from archiver.cli.main import app  # noqa: PLC0415  main imports this module to register it

    say()
    tell(key)
    shown = " ".join(
        SESSIONS if Path(word).is_dir() and word != FOLDER else f"'{word}'" if " " in word else word
        for word in arguments
    )
    say(accent(f"$ wwt {shown}"))
    app(list(arguments), standalone_mode=False)

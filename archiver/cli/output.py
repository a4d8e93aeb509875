"""Printing: the only place that writes to a terminal. Every text passes `render.plain` on its way out."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import Any

import typer

from archiver import render
from store import messages


class ReaderGone(Exception):  # noqa: N818  no error: whoever read our output has enough
    """The other end of the pipe is closed. Not a BrokenPipeError, which typer would turn into a failure."""


def say(text: str = "") -> None:
    """One line or more on standard output."""
    try:
        typer.echo(text)
    except BrokenPipeError as error:
        raise ReaderGone from error


def tell(key: str, **fields: object) -> None:
    """The message `key`, on standard output."""
    say(messages.text(key, **fields))


def warn(text: str) -> None:
    """Something the user should know that is not the answer: on standard error, so that pipes stay clean."""
    typer.echo(render.plain(text), err=True)


def emit(value: Any) -> None:
    """One JSON document on standard output."""
    say(render.as_json(value))


def bold(text: str) -> str:
    return _styled(text, "1")


def dim(text: str) -> str:
    return _styled(text, "2")


def accent(text: str) -> str:
    return _styled(text, "36")


def _styled(text: str, code: str) -> str:
    colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return f"\x1b[{code}m{text}\x1b[0m" if colours else text


def width() -> int:
    """Columns to write within; a pipe gets whole lines."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def hang(head: str, rest: str) -> str:
    """`rest` beside `head`, folded for the terminal, every further line of it as far to the right as the first."""
    indent = " " * render.columns(head)
    return head + render.fold(rest, width(), indent)[len(indent) :]


def mark(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with these character spans emphasised, where there is a terminal to show it."""
    parts, at = [], 0
    for start, end in spans:
        parts += [render.plain(text[at:start]), bold(render.plain(text[start:end]))]
        at = end
    return "".join([*parts, render.plain(text[at:])])


class Meter:
    """A progress bar on standard error that shows itself only when the work takes over a second, and only on a terminal.

    Each stage tells how much is done, at what rate, and how long the rest will take. The unit of "read" is bytes.
    """

    PATIENCE = 1.0

    def __init__(self, *, quiet: bool) -> None:
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}
        self._stages: dict[str, tuple[float, int]] = {}
        self._began: float | None = None
        self._off = quiet or not sys.stderr.isatty()

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._off or total == 0:
            return
        now = time.monotonic()
        self._began = self._began or now
        began, first = self._stages.setdefault(stage, (now, done))
        if self._bar is None:
            if now - self._began < self.PATIENCE:
                return
            self._bar = self._start()
        amount = messages.text("progress.amount", done=_counted(stage, done), total=_counted(stage, total))
        rate = f"{_counted(stage, (done - first) / (now - began))}/s" if now - began > self.PATIENCE else ""
        if stage not in self._tasks:
            self._tasks[stage] = self._bar.add_task(
                messages.text(f"progress.{stage}"), total=total, amount=amount, rate=rate
            )
        self._bar.update(self._tasks[stage], completed=done, total=total, amount=amount, rate=rate)

    def _start(self) -> Any:
        from rich.console import Console  # noqa: PLC0415  rich costs 60 ms; only long runs pay it
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[amount]}"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        bar.start()
        return bar

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _counted(stage: str, amount: float) -> str:
    return f"{amount / 1e6:,.1f} MB" if stage == "read" else f"{amount:,.0f}"


def with_meter(work: Callable[[Meter], Any], *, quiet: bool) -> Any:
    """Run `work` under a meter that is taken down whatever happens."""
    meter = Meter(quiet=quiet)
    try:
        return work(meter)
    finally:
        meter.close()

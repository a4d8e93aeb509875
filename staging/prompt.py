"""Questions on a terminal. The only file that talks to a person."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from staging.review import Question
from store.errors import USAGE, WwtError

if TYPE_CHECKING:
    import questionary

KEYS = {"R": "x"}
"""Keys of the answers that questionary can't take as they are: it knows lower case and digits only."""


def require_terminal(key: str = "review.no_terminal") -> None:
    """Refuse at once, before anything is asked, where nobody can answer. The message `key` names the other ways."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise WwtError(key, exit_code=USAGE)


def ask(question: Question, **terminal: Any) -> str | None:
    """The answer; None on Ctrl-C or at the end of the input, which is a wish to leave and never an answer.

    `terminal` passes prompt_toolkit's `input` and `output` through.
    """
    if question.kind != "tags" and not question.choices:
        return None
    try:
        answer = _prompt(question, terminal).unsafe_ask()
    except (KeyboardInterrupt, EOFError):
        return None
    return None if answer is None else str(answer)


def edit(text: str) -> str | None:
    """The text after the person's own editor had it; None if the editor failed or nothing changed."""
    command = _editor()
    descriptor, name = tempfile.mkstemp(prefix="wwt-", suffix=".md")  # made 0600
    path = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if not _run([*command, name]):
            return None
        edited = path.read_text(encoding="utf-8", errors="replace")
    finally:
        path.unlink(missing_ok=True)
    return None if edited == text else edited


def _editor() -> list[str]:
    """The person's editor, with the options they gave it."""
    choices = (os.environ.get("VISUAL", ""), os.environ.get("EDITOR", ""), "notepad" if os.name == "nt" else "vi")
    named = next(choice for choice in choices if choice.strip())
    try:
        return shlex.split(named, posix=os.name != "nt")
    except ValueError as error:  # a quotation that does not end
        raise WwtError("review.no_editor", editor=named, reason=str(error).lower()) from error


def _run(command: list[str]) -> bool:
    # Ctrl-C is for the editor, which shares the terminal with us; taken here, it would end the editor and lose the text.
    # A handler, since a signal that is ignored would be ignored by the editor too.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.run(command, check=False).returncode == 0
    except OSError as error:
        raise WwtError("review.no_editor", editor=command[0], reason=error.strerror or error) from error
    finally:
        signal.signal(signal.SIGINT, before)


def _prompt(question: Question, terminal: dict[str, Any]) -> questionary.Question:
    import questionary  # noqa: PLC0415  130 ms, paid only where a person is asked

    if question.kind == "tags":
        return questionary.text(question.text, default=question.default, **terminal)
    shortcuts = question.kind == "action"
    choices = [
        questionary.Choice(title=c.label, value=c.value, shortcut_key=KEYS.get(c.value, c.value) if shortcuts else None)
        for c in question.choices
    ]
    first = next((c for c in choices if c.value == question.default), None)
    return questionary.select(question.text, choices=choices, default=first, use_shortcuts=shortcuts, **terminal)

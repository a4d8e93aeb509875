"""Checks of the agents' own settings, which are only read: whether their hooks call wwt, and whether what they call is there."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archiver.agents import display_name
from archiver.doctor.finding import Finding, Subject, fault, listed, note, ok
from archiver.sources.claude_code import config_dir
from archiver.sources.codex import codex_home
from archiver.sources.gemini_cli import homes
from store.messages import text

PROGRAM = "wwt-hook"


@dataclass(frozen=True, slots=True)
class Settings:
    """A file in which an agent has its hooks."""

    agent: str
    path: Path
    parse: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Call:
    """Of our program, by an agent. `program` is as it is written there."""

    settings: Settings
    event: str
    program: str

    def __str__(self) -> str:
        return f"{self.settings.path}: {self.event}: {self.program}"


def wired(subject: Subject) -> Finding:
    known = [one for one in _settings() if one.path.parent.is_dir()]
    broken, calls = [], list[Call]()
    for one in known:
        try:
            calls += _calls(one)
        except (OSError, ValueError, RecursionError) as error:
            broken.append(f"{one.path}: {getattr(error, 'strerror', None) or error}")
    if lost := [call for call in calls if not _there(call.program)]:
        words = text("doctor.wiring_lost", count=len(lost), names=listed(lost))
        return fault("wiring", words, text("doctor.fix_wiring_lost", program=shutil.which(PROGRAM) or PROGRAM))
    if broken:
        return note("wiring", text("doctor.wiring_unread", names=listed(broken)), text("doctor.fix_wiring_unread"))
    if twice := [str(call) for call, count in Counter(calls).items() if count > 1]:
        return note("wiring", text("doctor.wiring_twice", names=listed(twice)), text("doctor.fix_wiring_twice"))
    return _absent(known, {call.settings.agent for call in calls})


def _absent(known: list[Settings], wired: set[str]) -> Finding:
    without = {one.agent: one.path for one in known if one.agent not in wired}
    if without:
        names = ", ".join(display_name(agent) for agent in without)
        agent, path = next(iter(without.items()))
        return note(
            "wiring", text("doctor.wiring_none", names=names), text("doctor.fix_wiring", agent=agent, path=path)
        )
    return ok("wiring", text("doctor.wiring_ok" if known else "doctor.wiring_no_agent"))


def _settings() -> Iterator[Settings]:
    codex, gemini = codex_home(), homes()[0]
    yield Settings("claude-code", config_dir() / "settings.json", json.loads)
    yield Settings("codex", codex / "config.toml", tomllib.loads)
    yield Settings("codex", codex / "hooks.json", json.loads)
    yield Settings("gemini-cli", gemini / "settings.json", json.loads)


def _calls(settings: Settings) -> Iterator[Call]:
    try:
        read = settings.parse(settings.path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return
    for event, command in _commands(_dict(read)):
        for word in command:
            if Path(word).name.removesuffix(".exe") == PROGRAM:
                yield Call(settings, event, word)
                break


def _commands(read: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Each command with its event, in words. What has another shape than ours is some other program's."""
    if notify := _list(read.get("notify")):
        yield "notify", [str(word) for word in notify]
    for event, groups in _dict(read.get("hooks")).items():
        for group in _list(groups):
            for handler in _list(_dict(group).get("hooks")):
                command = _dict(handler).get("command")
                if isinstance(command, str):
                    yield event, _words(command)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command, posix=os.name != "nt")
    except ValueError:
        return command.split()


def _there(program: str) -> bool:
    """A bare name is looked for where this command would be; an agent may have another PATH."""
    return shutil.which(os.path.expandvars(Path(program).expanduser())) is not None

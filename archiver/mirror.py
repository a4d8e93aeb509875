"""The mirror beside the notes: what a person need not read and must not lose. One JSON object a line, hashes and ids only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from staging import atomic
from store.exchange import Forgotten
from store.records import LATEST, Action
from store.verdicts import Verdict

VERDICTS = "verdicts.jsonl"
FORGOTTEN = "forgotten.jsonl"
LONGEST = 500
"""Characters of an id."""

T = TypeVar("T")


def read_verdicts(folder: Path) -> list[Verdict]:
    """The mirrored verdicts; a line that is damaged costs itself only."""
    return _read(folder / ".wwt" / VERDICTS, _verdict)


def write_verdicts(folder: Path, current: Sequence[Verdict], *, union: bool = True) -> None:
    """Mirror the verdicts. Lines that the database lacks stay, and so does what ties them to entries that it lacks: it may
    be the database that was lost."""
    lines = {v.anchor: v for v in read_verdicts(folder)} if union else {}
    for v in current:
        held = lines.get(v.anchor)
        if held is None or v.entry or (v.outcome, v.at) != (held.outcome, held.at):
            lines[v.anchor] = v
    _write(folder / ".wwt" / VERDICTS, [_line(lines[anchor]) for anchor in sorted(lines)])


def read_forgotten(folder: Path) -> list[Forgotten]:
    return _read(folder / ".wwt" / FORGOTTEN, _forgotten)


def write_forgotten(folder: Path, current: Iterable[Forgotten]) -> None:
    """Mirror which sessions were forgotten, so that archiving them again after a loss brings nothing back."""
    lines: dict[tuple[str, str], Forgotten] = {}
    for one in sorted((*read_forgotten(folder), *current), key=lambda one: one.up_to):  # the latest counts
        lines[one.agent, one.session] = one
    if lines:
        _write(folder / ".wwt" / FORGOTTEN, [asdict(lines[key]) for key in sorted(lines)])


def _read(path: Path, made: Callable[[Any], T]) -> list[T]:
    found = []
    for line in (atomic.read(path) or b"").decode("utf-8", "replace").split("\n"):
        try:
            found.append(made(json.loads(line)))
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return found


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    atomic.write_if_changed(path, "".join(json.dumps(row) + "\n" for row in rows).encode())


def _line(verdict: Verdict) -> dict[str, Any]:
    return {"anchor": verdict.anchor, "outcome": verdict.outcome.value, "entry": verdict.entry, "at": verdict.at}


def _verdict(raw: Any) -> Verdict:
    entry = None if raw["entry"] is None else _name(raw["entry"])
    return Verdict(_name(raw["anchor"]), Action(raw["outcome"]), entry, _moment(raw["at"]))


def _forgotten(raw: Any) -> Forgotten:
    return Forgotten(_name(raw["agent"]), _name(raw["session"]), _moment(raw["up_to"]))


def _name(value: object) -> str:
    """A hash or an id. Whoever wrote the line need not have been wwt."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST:
        raise ValueError(value)
    return value


def _moment(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < LATEST:
        raise ValueError(value)
    return value

"""`wwt rules`: every rule listed, run against its own examples, or tried on words."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver import config
from archiver.cli import explained
from archiver.cli.archive import Json
from archiver.cli.groups import register_group
from archiver.cli.output import accent, dim, emit, say, warn, width
from archiver.render import cut, one_line, plain
from store import messages
from store.errors import FAILED, USAGE, WwtError
from store.messages import text

if TYPE_CHECKING:
    from archiver.rulebook import Checked
    from rules.load import Fault, Standing
    from rules.schema import Guard, Secret
    from store.records import Conversation, Role
    from store.tokens import Morph

Only = Annotated[
    str | None, typer.Option("--type", "-t", metavar="TYPE", help=text("help.rules_type"), show_default=False)
]
Path_ = Annotated[Path | None, typer.Argument(metavar="PATH", help=text("help.rules_check_path"), show_default=False)]
Words = Annotated[list[str] | None, typer.Argument(metavar="TEXT", help=text("help.rules_text"), show_default=False)]
File = Annotated[Path | None, typer.Option("--file", metavar="FILE", help=text("help.rules_file"), show_default=False)]
Speaker = Annotated[
    str | None, typer.Option("--role", metavar="ROLE", help=text("help.rules_role"), show_default=False)
]
Session = Annotated[
    str | None, typer.Option("--session", metavar="SESSION", help=text("help.rules_session"), show_default=False)
]

STATE, NAME = 4, 27
"""Columns of a listing: whether a rule is off, and its id."""


def register(app: typer.Typer) -> None:
    register_group(app, "rules", {"list": list_, "check": check, "try": try_})


def list_(only: Only = None, as_json: Json = False) -> None:
    from archiver.rulebook import TYPES, listed  # noqa: PLC0415  YAML and the rule models cost 0.15 s

    if only is not None and only not in TYPES:
        raise WwtError("cli.unknown_type", name=only, known=", ".join(TYPES), exit_code=USAGE)
    found, faults = listed(_folder(), _cache())
    rows = [(kind, standing) for kind, standing in found if only in (None, kind)]
    if as_json:
        emit({"rules": [_row(*row) for row in rows], "faults": [_fault(fault) for fault in faults]})
        return
    for kind in dict.fromkeys(kind for kind, _ in rows):
        alike = [standing for other, standing in rows if other == kind]
        say(f"{accent(text(f'rules_cli.kind_{kind}'))}  {dim(str(len(alike)))}")
        for standing in alike:
            _print_row(kind, standing)
    for fault in faults:
        warn(one_line(str(fault)))


def _row(kind: str, standing: Standing[Any]) -> dict[str, Any]:
    record = standing.record
    return {
        "id": record.id,
        "type": kind,
        "section": record.section,
        "on": standing.off is None,
        "built_in": standing.built_in,
        "replaces_built_in": standing.replaces,
        "file": record.origin.file,
        "line": record.origin.line,
        "off_at": f"{standing.off.file}:{standing.off.line}" if standing.off else None,
        "about": _about(kind, record),
    }


def _print_row(kind: str, standing: Standing[Any]) -> None:
    record = standing.record
    off = "" if standing.off is None else text("rules_cli.off")
    line = f"{off:{STATE}} {record.id:{NAME}} {one_line(_about(kind, record))}"
    say(plain(cut(line, width()) if width() else line))
    for where in _whereabouts(standing):
        say(dim(plain(f"{'':{STATE}}   {where}")))


def _whereabouts(standing: Standing[Any]) -> Iterator[str]:
    """Where a rule that is not as it was shipped was written or switched off."""
    origin = standing.record.origin
    if not standing.built_in:
        key = "rules_cli.replaces" if standing.replaces else "rules_cli.yours"
        yield text(key, where=f"{origin.file}:{origin.line}")
    if standing.off and standing.off != origin:
        yield text("rules_cli.off_at", where=f"{standing.off.file}:{standing.off.line}")


def _about(kind: str, record: Any) -> str:
    """What a record does, in one line."""
    if kind == "secret":
        return text("rules_cli.about_secret", kind=record.kind)
    if kind == "family":
        return ", ".join((*record.ko, *record.en))
    if kind == "tag":
        return ", ".join((*record.names, *record.kinds))
    if kind == "loanword":
        return ", ".join(record.ko)
    if kind == "move":
        what = record.move
    else:
        what = _about_guard(record) if kind == "guard" else text(f"rules_cli.part_{record.part}")
    return f'{what}: "{_example(record)}"'


def _about_guard(guard: Guard) -> str:
    parts = ", ".join(guard.parts) or text("rules_cli.any_part")
    return text(f"rules_cli.effect_{guard.effect}", points=guard.points, parts=parts)


def _example(record: Any) -> str:
    """A sentence it fits, in the reader's language if there is one."""
    korean = messages.language() == "ko"
    examples: tuple[str, ...] = record.examples.match
    return next((each for each in examples if any("가" <= c <= "힣" for c in each) == korean), examples[0])


def check(path: Path_ = None, as_json: Json = False) -> None:
    from archiver.rulebook import checked  # noqa: PLC0415  YAML and the rule models cost 0.15 s

    folder, only = _checked_files(path)
    analyser = _Analyser(quiet=as_json)
    found = checked(folder, _cache(), analyser, only)
    if as_json:
        emit({"rules": found.rules, "examples": found.examples, "failures": _failures(found)})
    else:
        _print_checked(found, analyser)
    if found.failures or found.faults:
        raise typer.Exit(FAILED)


def _checked_files(path: Path | None) -> tuple[Path, frozenset[str] | None]:
    """The user's rules to read, and which of the files to run; what lies elsewhere stands in for the user's own rules."""
    from rules.load import rule_files  # noqa: PLC0415  YAML and the rule models cost 0.15 s

    folder = _folder()
    if path is None:
        return folder, None
    if not path.exists():
        raise WwtError("rules_cli.missing", path=path, exit_code=USAGE)
    files = rule_files(path)
    if not files:
        raise WwtError("rules_cli.no_files", path=path, exit_code=USAGE)
    home = {file.resolve(): file for file in rule_files(folder)}
    if all(file.resolve() in home for file in files):
        return folder, frozenset(str(home[file.resolve()]) for file in files)
    return path, frozenset(map(str, files))


def _failures(found: Checked) -> list[dict[str, Any]]:
    """Faults of files and examples that came out wrong, in the order in which they stand."""
    failed = [
        {"file": f.file, "line": f.line, "rule": f.rule, "kind": f.wanted, "text": f.example, "reason": f.reason}
        for f in found.failures
    ]
    return sorted([*map(_fault, found.faults), *failed], key=lambda each: (each["file"], each["line"]))


def _fault(fault: Fault) -> dict[str, Any]:
    where = {"file": str(fault.path), "line": fault.line, "rule": fault.rule}
    return {**where, "kind": "fault", "text": "", "reason": fault.reason}


def _print_checked(found: Checked, analyser: _Analyser) -> None:
    failures = _failures(found)
    for each in failures:
        where = f"{each['file']}:{each['line']}" if each["line"] else each["file"]
        rule = f"{each['rule']}: " if each["rule"] else ""
        say(one_line(f"{where}: {rule}{_wrong(each)}"))
    took = text("rules_cli.took", seconds=f"{analyser.seconds:.1f}") if analyser.seconds else ""
    key = "rules_cli.some_fail" if failures else "rules_cli.all_hold"
    say(text(key, rules=found.rules, examples=found.examples, count=len(failures)) + dim(took))


def _wrong(failure: dict[str, Any]) -> str:
    if failure["kind"] == "fault":
        return str(failure["reason"])
    shown = one_line(failure["text"], 100)
    return text(f"rules_cli.failed_{failure['kind']}", text=shown, reason=failure["reason"])


def try_(
    words: Words = None, file: File = None, role: Speaker = None, session: Session = None, as_json: Json = False
) -> None:
    from archiver.rulebook import in_force  # noqa: PLC0415  YAML and the rule models cost 0.15 s
    from rules.explain import explain  # noqa: PLC0415

    ruleset, secrets, faults = in_force(_folder(), _cache())
    tried = _archived(session, words or file or role) if session else _typed(words, file, _role(role), secrets)
    explanation = explain(tried.talk, ruleset, _Analyser(quiet=as_json))
    if as_json:
        emit(explained.contract(explanation, tried.own, tried.masking))
        return
    for fault in faults:
        warn(one_line(str(fault)))
    explained.show(explanation, tried.own, tried.masking)


@dataclass(frozen=True, slots=True)
class _Tried:
    """What is explained, the keys of the turns that are its own, and the rules that masked something in it."""

    talk: Conversation
    own: frozenset[str]
    masking: list[Secret]


def _archived(session: str, other: object) -> _Tried:
    from archiver.cli.sessions import _find_session  # noqa: PLC0415
    from archiver.home import Home  # noqa: PLC0415  --help and trying words need no archive
    from store.sessions import conversation  # noqa: PLC0415  SQLAlchemy costs 0.25 s

    if other:
        raise WwtError("rules_cli.one_source", exit_code=USAGE)
    home = Home.open()
    row = _find_session(home.reader, session)
    with home.database.transaction() as tx:
        return _Tried(*conversation(tx, row.id), [])


def _typed(words: list[str] | None, file: Path | None, role: Role | None, secrets: list[Secret]) -> _Tried:
    from archiver.rulebook import conversation, spoken  # noqa: PLC0415
    from rules.redact import Redactor  # noqa: PLC0415

    if words and file:
        raise WwtError("rules_cli.one_source", exit_code=USAGE)
    said = spoken(" ".join(words) if words and words != ["-"] else _read(file), role)
    if not any(each.strip() for _, each in said):
        raise WwtError("rules_cli.nothing_to_try", exit_code=USAGE)
    redact = Redactor(secrets)
    talk = conversation(said, redact)
    masking = [secret for _, each in said for secret in redact.masking(each)]
    return _Tried(talk, frozenset(turn.key for turn in talk.turns), masking)


def _read(file: Path | None) -> str:
    """A file, or what is piped in; nothing where a person would have to type it."""
    if file is not None:
        try:
            data = file.read_bytes()
        except OSError as error:
            raise WwtError("cli.os_error", path=file, reason=error.strerror or error, exit_code=USAGE) from error
    else:
        data = b"" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read()
    return data.decode("utf-8-sig", "replace")


def _role(name: str | None) -> Role | None:
    from store.records import Role  # noqa: PLC0415

    if name is None:
        return None
    if name not in ("user", "assistant"):
        raise WwtError("rules_cli.unknown_role", name=name, exit_code=USAGE)
    return Role(name)


def _folder() -> Path:
    return config.home() / "rules"


def _cache() -> Path | None:
    """Where parsed rules are kept; looking at rules makes no home where there is none."""
    home = config.home()
    return home / "index" / "rules" if home.is_dir() else None


class _Analyser:
    """Korean morphemes. The first Korean sentence loads the analyser, which is told while it lasts."""

    def __init__(self, *, quiet: bool) -> None:
        self.seconds = 0.0
        self._quiet = quiet

    def __call__(self, said: str) -> list[Morph]:
        from store.tokens import kiwi_loaded, morphemes  # noqa: PLC0415

        if kiwi_loaded():
            return morphemes(said)
        began = time.monotonic()
        with _notice(text("rules_cli.loading"), quiet=self._quiet):
            found = morphemes(said)
        self.seconds = time.monotonic() - began
        return found


@contextmanager
def _notice(what: str, *, quiet: bool) -> Iterator[None]:
    """A line on standard error that stands there while something is done, if that is a terminal."""
    shown = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    if shown:
        typer.echo(what, err=True, nl=False)
    try:
        yield
    finally:
        if shown:
            typer.echo("\r\x1b[2K", err=True, nl=False)

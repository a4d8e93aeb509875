"""`wwt config`: the settings, read and changed."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from archiver import config
from archiver.cli.archive import Json
from archiver.cli.groups import register_group
from archiver.cli.output import dim, emit, say, tell
from archiver.render import one_line, plain
from store.errors import USAGE, WwtError
from store.messages import text

Key = Annotated[str, typer.Argument(metavar="KEY", help=text("help.config_key"), show_default=False)]
Wanted = Annotated[str | None, typer.Argument(metavar="KEY", help=text("help.config_get_key"), show_default=False)]
Value = Annotated[str | None, typer.Argument(metavar="VALUE", help=text("help.config_value"), show_default=False)]
Unset = Annotated[bool, typer.Option("--unset", help=text("help.config_unset"))]


def register(app: typer.Typer) -> None:
    register_group(app, "config", {"get": read, "set": write, "path": where}, hyphens=("set",))


def where(as_json: Json = False) -> None:
    file = _file()
    if as_json:
        emit({"path": str(file), "exists": file.exists()})
    else:
        say(plain(str(file)))


def read(key: Wanted = None, as_json: Json = False) -> None:
    settings = _settings(_file())
    if key in settings:
        emit(settings[key]) if as_json else say(plain(_bare(settings[key]["value"])))
        return
    chosen = {name: found for name, found in settings.items() if key is None or name.startswith(f"{key}.")}
    if key and not chosen:
        raise _no_such(key)
    if as_json:
        emit({"path": str(_file()), "settings": list(chosen.values())})
        return
    for name, found in chosen.items():
        mark = dim(f"  # {text('config.from_file')}") if found["in_file"] else ""
        say(plain(f"{name} = {_written(found['value'])}") + mark)


def write(key: Key, value: Value = None, unset: Unset = False, as_json: Json = False) -> None:
    for given in (key, value or ""):
        if given.startswith("--"):
            raise WwtError("config.no_option", name=given, exit_code=USAGE)
    if (value is None) is not unset:
        raise WwtError("config.value_or_unset", name=key, exit_code=USAGE)
    if value is None:
        _unset(key, as_json=as_json)
        return
    from archiver.settings_file import set_value  # noqa: PLC0415  filelock and tomlkit; reading settings goes without

    set_value(_file(), key, _accepted(key, value))
    found = _settings(_file())[key]
    emit(found) if as_json else say(plain(text("config.now", name=key, value=_written(found["value"]))))


def _unset(key: str, *, as_json: bool) -> None:
    from archiver.settings_file import unset  # noqa: PLC0415

    there = unset(_file(), key)
    if key not in config.known():
        if not there:
            raise _no_such(key)
        emit({"key": key, "removed": True}) if as_json else tell("config.removed", name=plain(key))
        return
    default = config.known()[key]
    if as_json:
        emit({"key": key, "value": default, "default": default, "in_file": False})
    elif there:
        tell("config.default_again", name=key, value=_written(default))
    else:
        tell("config.was_not_set", name=key)


def _file() -> Path:
    return config.home() / "config.toml"


def _settings(file: Path) -> dict[str, dict[str, Any]]:
    """Every setting with its value in force, its default, and whether the file sets it."""
    settings, in_file = config.load(file), _set_in(file)
    found = {}
    for key, default in config.known().items():
        section, _, name = key.partition(".")
        value = getattr(getattr(settings, section), name)
        found[key] = {"key": key, "value": value, "default": default, "in_file": key in in_file}
    return found


def _set_in(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    return config.settings_in(config.parsed(file, config.decoded(file, file.read_bytes())))


def _accepted(key: str, value: str) -> object:
    """What was typed as the setting takes it; a WwtError says what it takes instead."""
    if key not in config.known():
        raise _no_such(key)
    meant = _scalar(value)
    if isinstance(config.known()[key], str) and not isinstance(meant, str):
        meant = value  # a model may be called 7 or true
    if wanted := config.wanted_of(key, meant):
        raise WwtError(
            "config.wrong_value", name=key, wanted=wanted, value=one_line(_written(meant), 60), exit_code=USAGE
        )
    return meant


def _scalar(value: str) -> object:
    """`true`, `30` and `"text"` as TOML reads them; everything else is text as it stands."""
    try:
        read = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        return value
    return read["value"] if read.keys() == {"value"} else value


def _no_such(key: str) -> WwtError:
    meant, known = config.nearest(key), ", ".join(config.known())
    return WwtError(
        "config.misspelt" if meant else "config.no_such", name=key, meant=meant, known=known, exit_code=USAGE
    )


def _bare(value: object) -> str:
    """For a script: text without quotes."""
    return value if isinstance(value, str) else _written(value)


def _written(value: object) -> str:
    """As it would stand in the file."""
    return json.dumps(value, ensure_ascii=False, default=str)

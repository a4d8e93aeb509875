"""The settings file, read and checked. Standard library only: the hook's hot path reads it too."""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from store.errors import USAGE, WwtError
from store.messages import text

DEFAULT_MODEL = "use-multilingual"
LARGEST = 1_000_000_000
"""No number may be larger: as minutes and days in milliseconds it still fits 64 bits."""


@dataclass(frozen=True, slots=True)
class Archive:
    idle_minutes: int = 30
    keep_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Embedding:
    model: str = DEFAULT_MODEL
    """`use-multilingual`, `none`, or the name or folder of a Sentence Transformers model."""


@dataclass(frozen=True, slots=True)
class Recall:
    budget: int = 1500
    """Tokens, by a CJK-aware estimate."""


@dataclass(frozen=True, slots=True)
class Staging:
    expire_days: int = 0
    """Days after which an entry nobody looked at is dropped; 0 keeps it for ever."""


@dataclass(frozen=True, slots=True)
class Config:
    archive: Archive = Archive()
    embedding: Embedding = Embedding()
    recall: Recall = Recall()
    staging: Staging = Staging()


def home() -> Path:
    """`$WWT_HOME`, else `~/.wwt`."""
    return Path(os.environ.get("WWT_HOME") or Path.home() / ".wwt").absolute()


def load(path: Path) -> Config:
    """Settings of the file at `path`; defaults where it is absent. Unknown or ill-typed settings are a WwtError."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return Config()
    except OSError as error:
        raise WwtError("config.unreadable", path=path, reason=error.strerror or error, exit_code=USAGE) from error
    return checked(path, decoded(path, data))


def decoded(path: Path, data: bytes) -> str:
    """The text of the file, without the byte order mark that some editors put before it."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise WwtError("config.unreadable", path=f"{path}:{line}", reason=error, exit_code=USAGE) from error


def checked(path: Path, content: str, now: str | None = None) -> Config:
    """The settings that `content` holds, which is, or is to become, what the file at `path` says.

    `now`: what it says now, where that is something else; what is wrong is named by its line there.
    """
    raw = parsed(path, content)
    content = content if now is None else now
    for section in _sections():
        if not isinstance(raw.get(section, {}), dict):
            raise _ill_typed(path, content, section, text("config.wants_table"))
    for name, value in settings_in(raw).items():
        if name not in known():
            raise _unknown(path, content, name)
        if wanted := wanted_of(name, value):
            raise _ill_typed(path, content, name, wanted)
    return Config(**{name: type(default)(**raw.get(name, {})) for name, default in _sections().items()})


def parsed(path: Path, content: str) -> dict[str, Any]:
    """The file as TOML has it, whatever its settings are worth."""
    try:
        return tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        # "(at line 3, column 5)"; at the end of the document it is the last line.
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else content.rstrip("\n").count("\n") + 1
        raise WwtError("config.unreadable", path=f"{path}:{line}", reason=error, exit_code=USAGE) from error


def known() -> dict[str, Any]:
    """Every setting, as `section.name`, and its default."""
    return {
        f"{name}.{field.name}": getattr(default, field.name)
        for name, default in _sections().items()
        for field in fields(default)
    }


def _sections() -> dict[str, Any]:
    """Every section by name, with its defaults."""
    return {section.name: section.default for section in fields(Config)}


def settings_in(raw: dict[str, Any]) -> dict[str, Any]:
    """What a parsed file sets, as `section.name`; what stands in no section, or is an unknown empty one, by its own name."""
    found: dict[str, Any] = {}
    for name, held in raw.items():
        if isinstance(held, dict) and (held or name in _sections()):
            found |= {f"{name}.{key}": value for key, value in held.items()}
        else:
            found[name] = held
    return found


def wanted_of(name: str, value: object) -> str:
    """What the setting `name` must be, in words, where `value` is not that; else ""."""
    kind = type(known()[name])
    if type(value) is kind and _in_range(value):
        return ""
    return text(f"config.wants_{kind.__name__}", most=LARGEST)


def _in_range(value: object) -> bool:
    if isinstance(value, int):
        return 0 <= value <= LARGEST
    return not isinstance(value, str) or (bool(value.strip()) and value.isprintable())


def nearest(name: str) -> str | None:
    """The setting that was probably meant, be its section wrong or missing."""
    from difflib import get_close_matches  # noqa: PLC0415  needed only for a slip

    last = {key.rpartition(".")[2]: key for key in known()}
    found = get_close_matches(name, known(), 1) or [
        last[close] for close in get_close_matches(name.rpartition(".")[2], last, 1)
    ]
    return found[0] if found else None


def _unknown(path: Path, content: str, name: str) -> WwtError:
    section, _, _ = name.partition(".")
    here = ", ".join([key for key in known() if key.startswith(f"{section}.")] or known())
    where, meant = _place(path, content, name), nearest(name)
    key = "config.unknown_near" if meant else "config.unknown"
    return WwtError(key, path=where, name=name, meant=meant, known=here, exit_code=USAGE)


def _ill_typed(path: Path, content: str, name: str, wanted: str) -> WwtError:
    return WwtError("config.wrong_type", path=_place(path, content, name), name=name, wanted=wanted, exit_code=USAGE)


def _place(path: Path, content: str, name: str) -> str:
    """`path:line` of a setting; the bare path where it is written in a way that one look along the lines does not see."""
    section = ""
    for number, line in enumerate(content.split("\n"), 1):
        header, key = re.match(r"\s*\[([^\[\]]+)\]", line), re.match(r"\s*([^\s=#]+)\s*=", line)
        if header:
            section = header[1].strip()
        written = f"{section}.{key[1]}" if key and section else key[1] if key else section
        if (header or key) and written.replace('"', "") == name:
            return f"{path}:{number}"
    return str(path)


def lexicon_path(root: Path) -> Path:
    """The tag lexicon that archiving compiles from the rules, for the paths that may not read YAML."""
    return root / "index" / "lexicon.json"


def aliases(root: Path) -> dict[str, str]:
    """Written form to canonical tag; empty before the first archive."""
    try:
        loaded = json.loads(lexicon_path(root).read_text(encoding="utf-8"))
        return {str(key): str(value) for key, value in loaded["names"].items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return {}

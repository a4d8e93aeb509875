"""The settings file, read and checked. Standard library only: the hook's hot path reads it too."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from store.errors import USAGE, WwtError

DEFAULT_MODEL = "use-multilingual"


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
        raw = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return Config()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise WwtError("config.unreadable", path=path, reason=error, exit_code=USAGE) from error
    known = [section.name for section in fields(Config)]
    for name in raw:
        if name not in known:
            raise WwtError("config.unknown", path=path, name=name, known=", ".join(known), exit_code=USAGE)
    return Config(**{section.name: _section(path, section.name, section.default, raw) for section in fields(Config)})


def _section(path: Path, name: str, default: Any, raw: dict[str, Any]) -> Any:
    table = raw.get(name, {})
    if not isinstance(table, dict):
        raise WwtError("config.wrong_type", path=path, name=name, wanted="table", exit_code=USAGE)
    known = {field.name for field in fields(default)}
    for key, value in table.items():
        if key not in known:
            raise WwtError(
                "config.unknown", path=path, name=f"{name}.{key}", known=", ".join(sorted(known)), exit_code=USAGE
            )
        wanted = type(getattr(default, key))
        if type(value) is not wanted:
            raise WwtError(
                "config.wrong_type", path=path, name=f"{name}.{key}", wanted=wanted.__name__, exit_code=USAGE
            )
        if wanted is int and value < 0:
            raise WwtError("config.negative", path=path, name=f"{name}.{key}", exit_code=USAGE)
    return type(default)(**table)


def lexicon_path(root: Path) -> Path:
    """The tag lexicon that archiving compiles from the rules, for the paths that may not read YAML."""
    return root / "index" / "lexicon.json"


def aliases(root: Path) -> dict[str, str]:
    """Written form to canonical tag; empty before the first archive."""
    try:
        loaded = json.loads(lexicon_path(root).read_text(encoding="utf-8"))
        return {str(key): str(value) for key, value in loaded["aliases"].items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return {}

"""User-facing text, by key and language."""

from __future__ import annotations

import os
import tomllib
from functools import cache
from pathlib import Path
from typing import Any


def language() -> str:
    """`WWT_LANG`, else the locale's language; anything that is not Korean reads English."""
    for name in ("WWT_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name, "")
        if value:
            return "ko" if value.lower().startswith("ko") else "en"
    return "en"


@cache
def catalogue(lang: str) -> dict[str, str]:
    """Every message of a language, `section.key` to text."""
    path = Path(__file__).with_name(f"messages.{lang}.toml")
    tables: dict[str, dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))
    return {f"{section}.{key}": str(value) for section, table in tables.items() for key, value in table.items()}


def text(key: str, /, **fields: object) -> str:
    """The message `key`, with its fields filled in. An unknown key is a bug and raises KeyError."""
    return catalogue(language())[key].format(**fields)

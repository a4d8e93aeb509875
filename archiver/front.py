"""A note's front matter, whoever wrote it: read with care, and each field checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from staging.documents import Redact
from store.messages import text
from store.records import LATEST

MOST_MATTER = 64_000
"""Characters of front matter; what is longer was not written for people to read."""
DEEPEST = 20
"""Lists within lists of front matter."""
SHOWN = 60
"""Characters of a value that cannot be."""
UID = re.compile(r"\w[\w-]{0,63}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_VALUE = (ValueError, LookupError, RecursionError, AttributeError, TypeError, OverflowError)
"""What YAML raises for values such as 2026-13-45."""

Front = dict[str, Any]


class BadFieldError(Exception):
    """A field has a value that it cannot have."""

    def __init__(self, name: str, value: object) -> None:
        super().__init__(name)
        self.name = name
        self.value = value

    def reason(self, redact: Redact) -> str:
        if (self.name, self.value) == ("type", ""):
            return text("vault.no_type")
        return text("vault.bad_field", field=self.name, value=redact(str(self.value))[:SHOWN])


def parted(whole: str) -> tuple[str, str] | None:
    """Front matter and body, or None."""
    if not whole.startswith("---\n"):
        return None
    end = re.compile(r"^---[ \t]*$", re.MULTILINE).search(whole, 4)
    return None if end is None else (whole[4 : end.start()], whole[end.end() :])


def loaded(matter: str) -> tuple[Front, tuple[int, str] | None]:
    """The front matter, or the line and the reason why it is none."""
    import yaml  # noqa: PLC0415  20 ms, paid when a note is written or read

    try:
        if (line := _excess(matter)) is not None:
            return {}, (line, text("vault.too_much_matter"))
        found = yaml.load(matter, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        str(found)  # Python refuses to write out a number of thousands of digits, though hexadecimal ones are read
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).split("\n")[0]
        return {}, ((mark.line if mark else 0) + 2, text("vault.no_yaml", problem=problem))
    except _NO_VALUE:
        return {}, _no_value(matter)
    if not isinstance(found, dict):
        return {}, (2, text("vault.no_front_matter"))
    return {str(key): value for key, value in found.items()}, None


def _no_value(matter: str) -> tuple[int, str]:
    """Which field it is that has the right shape, and no value that there is."""
    import yaml  # noqa: PLC0415  20 ms, paid when a note is written or read

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(matter)
    whole: Any = loader.get_single_node()
    for key, value in whole.value:
        try:
            str(loader.construct_object(value, deep=True))
        except _NO_VALUE:
            line = value.start_mark.line + 2
            return line, text("vault.no_value", field=str(key.value)[:SHOWN])
    return 2, text("vault.no_front_matter")


def _excess(matter: str) -> int | None:
    """The line with what is small to write and huge to build: aliases of aliases, and very deep nesting."""
    import yaml  # noqa: PLC0415  20 ms, paid when a note is written or read

    if len(matter) > MOST_MATTER:
        return 2
    depth = 0
    for event in yaml.parse(matter, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) or depth > DEEPEST:
            mark: Any = event.start_mark
            return int(mark.line) + 2
    return None


def uid_in(front: Front, name: str) -> str:
    """A uid; nothing where a person left it out."""
    uid = front.get(name)
    if uid is None:
        return ""
    if not isinstance(uid, str) or not UID.fullmatch(uid):
        raise BadFieldError(name, uid)
    return uid


def one_of(front: Front, name: str, allowed: Sequence[str], default: str) -> str:
    value = front.get(name, default)
    if value not in allowed:
        raise BadFieldError(name, value)
    return str(value)


def tags_in(front: Front, redact: Redact) -> tuple[str, ...]:
    """A list, or one text with commas. Numbers and dates that YAML made of a tag are taken as they were typed."""
    from store.knowledge import fold_tag  # noqa: PLC0415  SQLAlchemy, 245 ms; a note is read beside the database

    value = front.get("tags") or []
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or any(isinstance(part, dict | list) for part in parts):
        raise BadFieldError("tags", value)
    folded = (fold_tag(redact(str(part))) for part in parts if part is not None)
    return tuple(dict.fromkeys(tag for tag in folded if tag))


def share_in(front: Front) -> float:
    value = front.get("confidence", 1.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise BadFieldError("confidence", value)
    return float(value)


def stamp(ms: int | None) -> str | None:
    """`2026-04-06T14:30:00.123Z`, to the millisecond, without `.000`."""
    if ms is None:
        return None
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{ms % 1000:03}Z" if ms % 1000 else "Z")


def moment_of(value: object) -> int | None:
    """UTC ms; None for what is no time. YAML turns an unquoted time into a datetime."""
    if isinstance(value, datetime | date):
        value = value.isoformat()
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if moment is None:
        return None
    # In whole numbers: through floats every 160th time would lose its last millisecond.
    ms = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    found = ms // timedelta(milliseconds=1)
    return found if 0 < found < LATEST else None


def line_of(matter: str, name: str) -> int:
    lines = matter.split("\n")
    return next((number for number, line in enumerate(lines, 2) if line.startswith(f"{name}:")), 1)


def redacted(value: Any, redact: Redact) -> Any:
    """A value of any shape, with every text in it redacted."""
    if isinstance(value, str):
        return str(redact(value))
    if isinstance(value, list):
        return [redacted(part, redact) for part in value]
    if isinstance(value, dict):
        return {str(redact(str(key))): redacted(part, redact) for key, part in value.items()}
    if isinstance(value, set | tuple):  # YAML has these too
        return [redacted(part, redact) for part in value]
    return str(redact(value.decode("utf-8", "replace"))) if isinstance(value, bytes) else value

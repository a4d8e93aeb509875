"""Times as people write them, in English and in Korean: typed for a command, or in an exported conversation."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta

from store.records import LATEST

_AGE = re.compile(r"(\d+)\s*([hdwm]|시간|일|주|개월|달)(?:\s*전)?", re.IGNORECASE)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1), "m": timedelta(days=30)}
_UNITS |= {"시간": _UNITS["h"], "일": _UNITS["d"], "주": _UNITS["w"], "개월": _UNITS["m"], "달": _UNITS["m"]}

_WRITTEN = re.compile(
    r"""(?<!\d) (?P<year>\d{4}) (?:-|/|\.\ ?|년\s?) (?P<month>\d{1,2}) (?:-|/|\.\ ?|월\s?) (?P<day>\d{1,2}) (?!\d) (?:\ ?일|\.)?
    (?:\s?\(?[월화수목금토일](?:요일)?\)?(?=\s|\Z))?
    (?:[\sT,]{0,3} (?P<half>오전|오후|[ap]m)? \s? (?P<hour>\d{1,2}) (?: :(?P<minute>\d\d)(?::(?P<second>\d\d))?
       | \s?시 (?:\s?(?P<minutes>\d{1,2})\s?분 (?:\s?(?P<seconds>\d{1,2})\s?초)?)? ) (?:\s?(?P<after>[ap]m)\b)? )?""",
    re.VERBOSE | re.IGNORECASE,
)
"""Of white space only so much is allowed: any amount in several places would make hostile text slow."""


def parse_moment(value: str, *, now: datetime | None = None, ending: bool = False) -> int | None:
    """UTC ms of `2026-04-06` or `2026년 4월 6일` (that day's start, local time), of a time (local unless it has an offset),
    or of an age before now (`12h`, `7d`, `2w`, `3m`, `3일`); None where it is none of these.

    `ending`: of a day its last moment, for what is to reach up to that day.
    """
    value = value.strip()
    current = (now or datetime.now()).astimezone()
    try:
        if age := _AGE.fullmatch(value):
            return _ms(current - int(age[1]) * _UNITS[age[2].lower()])
        if day := _day(value):
            return _ms(datetime.combine(day + timedelta(days=ending), time.min)) - ending
        written = _WRITTEN.fullmatch(value)
        return _ms(_local(written) if written else datetime.fromisoformat(value))
    except (ValueError, OverflowError, OSError):
        return None


def written_moment(text: str, *, alone: bool = False) -> int | None:
    """UTC ms of the first day or time in a text, in the time of this machine. `alone`: only where nothing else stands there."""
    found = _WRITTEN.fullmatch(text.strip()) if alone else _WRITTEN.search(text)
    try:
        ms = _ms(_local(found)) if found else 0
    except (ValueError, OverflowError, OSError):
        return None
    return ms if 0 < ms < LATEST else None


def _day(value: str) -> date | None:
    """The day, where the value is no more than one."""
    written = _WRITTEN.fullmatch(value)
    if written and written["hour"] is None:
        return _local(written).date()
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def _local(written: re.Match[str]) -> datetime:
    part = written.groupdict(default="0")
    hour = int(part["hour"])
    half = (written["half"] or written["after"] or "").lower()
    if half and hour <= 12:
        hour = hour % 12 + (12 if half in ("오후", "pm") else 0)
    minute, second = int(part["minute"]) or int(part["minutes"]), int(part["second"]) or int(part["seconds"])
    return datetime(int(part["year"]), int(part["month"]), int(part["day"]), hour, minute, second)


def _ms(moment: datetime) -> int:
    return int(moment.astimezone().timestamp() * 1000)

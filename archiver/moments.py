"""Times as people type them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

_AGE = re.compile(r"(\d+)\s*([hdwm])", re.IGNORECASE)
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1), "m": timedelta(days=30)}


def parse_moment(value: str, *, now: datetime | None = None) -> int | None:
    """UTC ms of `2026-04-06` (that day's start, local time), of an ISO time (local unless it has an offset), or of an
    age before now (`12h`, `7d`, `2w`, `3m`); None where it is none of these."""
    current = (now or datetime.now()).astimezone()
    if age := _AGE.fullmatch(value.strip()):
        try:
            return int((current - int(age[1]) * _UNITS[age[2].lower()]).timestamp() * 1000)
        except (OverflowError, ValueError):
            return None
    try:
        return int(datetime.fromisoformat(value.strip()).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError):
        return None

from datetime import datetime, timedelta

import pytest

from archiver.moments import parse_moment

NOW = datetime(2026, 4, 6, 12, 0).astimezone()


@pytest.mark.parametrize(
    ("typed", "age"),
    [("12h", timedelta(hours=12)), ("7d", timedelta(days=7)), ("2w", timedelta(weeks=2)), ("1m", timedelta(days=30))],
)
def test_an_age_counts_back_from_now(typed: str, age: timedelta) -> None:
    assert parse_moment(typed, now=NOW) == int((NOW - age).timestamp() * 1000)


def test_a_day_begins_at_local_midnight(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Seoul")
    time.tzset()
    try:
        assert parse_moment("2026-01-02") == 1767279600000
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("typed", ["", "yesterday", "2026-13-40", "99999999999d", "-3d"])
def test_what_is_no_time_is_none(typed: str) -> None:
    assert parse_moment(typed, now=NOW) is None

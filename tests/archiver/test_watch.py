from __future__ import annotations

from collections.abc import Iterable

import pytest

from archiver.watch import PATIENCE, SECONDS, Outlook, watch


class Ended(Exception):  # noqa: N818
    pass


class Script:
    """Outlooks one after the other on a clock that only sleeping moves; notes when work was called."""

    def __init__(self, outlooks: Iterable[Outlook], look_costs: float = 0.0) -> None:
        self.outlooks = iter(outlooks)
        self.costs = look_costs
        self.now = 0.0
        self.worked: list[float] = []
        self.slept: list[float] = []

    def look(self) -> Outlook:
        self.now += self.costs
        for outlook in self.outlooks:
            return outlook
        raise Ended

    def work(self) -> None:
        self.worked.append(self.now)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float, /) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def run(self) -> list[float]:
        with pytest.raises(Ended):
            watch(self.look, self.work, self)
        return self.worked


def seen(*names: str) -> Outlook:
    return frozenset((name,) for name in names)


def test_what_is_there_at_the_start_is_done_at_once() -> None:
    assert Script([seen("a"), seen(), seen()]).run() == [0.0]


def test_work_waits_until_the_agents_pause() -> None:
    growing = [seen(), seen("a1"), seen("a2"), seen("a2"), seen()]
    assert Script(growing).run() == [3 * SECONDS]


def test_work_does_not_wait_longer_than_a_minute_for_a_pause() -> None:
    worked = Script([seen(), *(seen(f"a{n}") for n in range(40))]).run()
    assert worked[0] == SECONDS + PATIENCE
    assert len(worked) == 3


def test_what_could_not_be_done_is_tried_again_only_when_it_changes() -> None:
    broken = [seen("broken1")] * 5 + [seen("broken2")] * 3
    assert Script(broken).run() == [0.0, 6 * SECONDS]


def test_looking_takes_a_small_share_of_the_time() -> None:
    script = Script([seen()] * 4, look_costs=1.0)
    script.run()
    assert min(script.slept) >= 49

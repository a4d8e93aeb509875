"""One finding, before it is put into words."""

from __future__ import annotations

from dataclasses import dataclass

from rules.sentences import Sentence
from store.records import DecidedBy, EntryType

ENOUGH = 1.0
"""Points. A part with fewer stands only with help: a report that it was done, a cause that goes with it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was said that is worth keeping.

    core: the sentences it rests on (the fix, the choice, the rule). before, after: what led to them and what followed.
    """

    type: EntryType
    rule: str
    core: tuple[Sentence, ...]
    before: tuple[Sentence, ...] = ()
    after: tuple[Sentence, ...] = ()
    points: float = 0.0
    decided_by: DecidedBy = DecidedBy.REPORTED
    cues: tuple[str, ...] = ()
    exchange: int = 0
    corrects: bool = False
    """The user takes back something said before."""
    joint: bool = False
    """Only all the core sentences together say it: one anchor for them all."""
    title: Sentence | None = None
    """The sentence that tells it, where the core only points at it."""

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        return (*self.before, *self.core, *self.after)

"""The examples of the language rules, run: a rule must speak of its matches and leave its misses alone."""

from __future__ import annotations

import re

from rules.check import Failure, Wanted, check
from rules.cues import Morphemes, Reader, RuleSet
from rules.schema import Guard, Reading
from rules.sentences import sentences
from store.records import Role, SafeText, Turn


def check_readings(ruleset: RuleSet, morphemes: Morphemes) -> list[Failure]:
    """Rules, guards and moves against their own examples, each by itself. One sentence of a match is enough."""
    reader = Reader(morphemes)

    def holds(reading: Reading, example: str, wanted: Wanted) -> bool:
        return _speaks(reading, example, ruleset, reader) == (wanted == "match")

    readings: list[Reading] = [*ruleset.rules, *ruleset.guards, *ruleset.moves]
    return check(readings, holds)


def _speaks(reading: Reading, example: str, ruleset: RuleSet, reader: Reader) -> bool:
    if isinstance(reading, Guard) and reading.effect == "cut":
        return any(re.search(cue, example, re.IGNORECASE | re.DOTALL) for cue in reading.cues if isinstance(cue, str))
    role = Role.ASSISTANT if reading.role == "assistant" else Role.USER
    matcher = ruleset.matcher(reading)
    turn = Turn("example", 1, role, "prompt", SafeText(example))
    said = (
        [example] if isinstance(reading, Guard) and reading.effect == "turn" else [s.said for s in sentences(turn, 0)]
    )
    return any(matcher(each, role.value, reader) for each in said)

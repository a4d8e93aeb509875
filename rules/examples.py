"""The examples of the language rules, run: a rule must speak of its matches and leave its misses alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rules.check import Failure, Wanted, check
from rules.cues import Hit, Morphemes, Reader, RuleSet, Silence
from rules.load import Fault
from rules.schema import FAMILY, PARTS, Cue, Guard, Reading, Rule
from rules.sentences import sentences
from store.messages import text
from store.records import Role, SafeText, Turn


def readings(ruleset: RuleSet) -> list[Reading]:
    """All that has cues and examples."""
    return [*ruleset.rules, *ruleset.guards, *ruleset.moves]


def check_readings(ruleset: RuleSet, morphemes: Morphemes, checked: Iterable[Reading] | None = None) -> list[Failure]:
    """Rules, guards and moves against their own examples, each by itself. One sentence of a match is enough.

    `checked`: those whose examples are run, if not all of them.
    """
    reader = Reader(morphemes)

    def wrong(reading: Reading, example: str, wanted: Wanted) -> str:
        found = list(_answers(reading, example, ruleset, reader))
        hits = [answer for answer in found if isinstance(answer, Hit)]
        if wanted == "miss":
            return _spoken(hits[0]) if hits else ""
        return "" if hits else _silent([answer for answer in found if isinstance(answer, Silence)])

    return check(readings(ruleset) if checked is None else checked, wrong)


def _answers(reading: Reading, example: str, ruleset: RuleSet, reader: Reader) -> Iterator[Hit | Silence]:
    """What the reading makes of each sentence of an example, or of the whole of it, where it reads no sentences."""
    if isinstance(reading, Guard) and reading.effect == "cut":
        cues = enumerate(cue for cue in reading.cues if isinstance(cue, str))
        found = ((n, re.search(cue, example, re.IGNORECASE | re.DOTALL)) for n, cue in cues)
        hits: list[Hit | Silence] = [Hit(reading, (f"{reading.id}/{n}/{match[0]}",)) for n, match in found if match]
        yield from hits or [Silence(reading, "cues")]
        return
    role = Role.ASSISTANT if reading.role == "assistant" else Role.USER
    matcher = ruleset.matcher(reading)
    turn = Turn("example", 1, role, "prompt", SafeText(example))
    whole = isinstance(reading, Guard) and reading.effect == "turn"
    for said in [example] if whole else [sentence.said for sentence in sentences(turn, 0)]:
        yield matcher(said, role.value, reader) or matcher.silence(said, role.value, reader) or Silence(reading, "cues")


def _spoken(hit: Hit) -> str:
    number, words = hit.fired[0]
    return text("rules_cli.why_speaks", cue=f"cues[{number}]", words=words)


_STEPS = ("lang", "cues", "needs", "forbids")


def _silent(silences: list[Silence]) -> str:
    """Why none of the sentences is spoken of, by the one that came nearest to it."""
    if not silences:
        return text("rules_cli.why_no_sentence")
    nearest = max(silences, key=lambda silence: _STEPS.index(silence.by.partition("[")[0]))
    return why_silent(nearest)


def why_silent(silence: Silence) -> str:
    """In words, what keeps a reading from speaking of a sentence."""
    step = silence.by.partition("[")[0]
    return text(f"rules_cli.why_{step}", by=silence.by, words=silence.words, lang=silence.reading.lang)


def loose_ends(ruleset: RuleSet) -> list[Fault]:
    """Names in rules that nothing goes by: families of words, guards to ignore, parts of rules. Such a name never fits."""
    families = {family.id for family in ruleset.families}
    guards = {guard.id for guard in ruleset.guards}
    parts = {part for parts in PARTS.values() for part in parts}
    found = []
    for reading in readings(ruleset):
        named = [("no_family", name) for name in _families(reading) if name not in families]
        if isinstance(reading, Rule):
            named += [("no_guard", name) for name in reading.ignores if name not in guards]
        if isinstance(reading, Guard):
            named += [("no_part", name) for name in reading.parts if name not in parts]
        where = reading.origin
        found += [
            Fault(Path(where.file), where.line, reading.id, text(f"rules.{key}", name=name)) for key, name in named
        ]
    return found


def _families(reading: Reading) -> Iterator[str]:
    if isinstance(reading, Guard) and reading.effect == "cut":
        return  # its patterns stand as they are written
    for cue in (*reading.cues, *reading.needs, *reading.forbids):
        yield from _named(cue)


def _named(cue: Cue) -> Iterator[str]:
    for written in [cue] if isinstance(cue, str) else cue.lemma:
        yield from FAMILY.findall(written)

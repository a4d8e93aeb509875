"""What the rules and guards make of one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rules.cues import Hit, Matcher, Reader, RuleSet, languages
from rules.schema import Guard, Rule
from rules.sentences import Sentence

Part = tuple[str, str]
"""(type, part), such as ("solution", "cause")."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a sentence may be, in points, after the guards. `hits` and `guards` say why."""

    sentence: Sentence
    points: dict[Part, float]
    hits: dict[Part, tuple[Hit, ...]]
    guards: tuple[Hit, ...] = ()

    def worth(self, type_: str, part: str) -> float:
        return self.points.get((type_, part), 0.0)

    def rule(self, type_: str, part: str) -> str:
        """The rule that weighs most for this part."""
        hits = self.hits[(type_, part)]
        return max(hits, key=_weight).reading.id

    def cues(self, type_: str, part: str) -> tuple[str, ...]:
        return tuple(cue for hit in self.hits.get((type_, part), ()) for cue in hit.cues)


@dataclass(slots=True)
class Judge:
    """Judges sentences by a rule set, and tells the moves they make; every answer is worked out once."""

    ruleset: RuleSet
    reader: Reader
    _readers: dict[tuple[str, str, bool, bool], tuple[Matcher, ...]] = field(default_factory=dict)
    _moves: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)

    def judge(self, sentence: Sentence) -> Judgement:
        hits: dict[Part, list[Hit]] = {}
        for matcher in self._matchers("rule", sentence):
            hit = matcher.speaks(sentence.said, self.reader)
            if hit and isinstance(hit.reading, Rule):
                hits.setdefault((hit.reading.type, hit.reading.part), []).append(hit)
        if not hits:
            return Judgement(sentence, {}, {})
        guards = self.guards(sentence)
        points = {part: self._points(part, found, guards) for part, found in hits.items()}
        return Judgement(
            sentence,
            {part: worth for part, worth in points.items() if worth > 0},
            {part: tuple(found) for part, found in hits.items()},
            guards,
        )

    def moves(self, sentence: Sentence) -> frozenset[str]:
        """What the sentence does in the dialogue: agree, object, refute, ..."""
        key = (sentence.said, sentence.role.value)
        known = self._moves.get(key)
        if known is None:
            hits = (matcher.speaks(sentence.said, self.reader) for matcher in self._matchers("move", sentence))
            known = self._moves[key] = frozenset(hit.reading.move for hit in hits if hit)  # type: ignore[attr-defined]
        return known

    def _matchers(self, kind: str, sentence: Sentence) -> tuple[Matcher, ...]:
        key = (kind, sentence.role.value, *languages(sentence.said))
        if key not in self._readers:
            self._readers[key] = self.ruleset.for_sentence(*key)
        return self._readers[key]

    def guards(self, sentence: Sentence) -> tuple[Hit, ...]:
        found = (matcher.speaks(sentence.said, self.reader) for matcher in self._matchers("guard", sentence))
        return tuple(hit for hit in found if hit)

    def _points(self, part: Part, hits: Iterable[Hit], guards: tuple[Hit, ...]) -> float:
        weights = sorted((_weight(hit) for hit in hits), reverse=True)
        # Rules of one part often say the same in other words: the second and third count half.
        points = weights[0] + sum(weights[1:3]) * 0.5
        ignored = {name for hit in hits if isinstance(hit.reading, Rule) for name in hit.reading.ignores}
        for hit in guards:
            guard = hit.reading
            if not isinstance(guard, Guard) or guard.id in ignored or (guard.parts and part[1] not in guard.parts):
                continue
            if guard.effect == "veto":
                return 0.0
            points -= guard.points
        return points


def _weight(hit: Hit) -> float:
    return hit.reading.weight if isinstance(hit.reading, Rule) else 0.0

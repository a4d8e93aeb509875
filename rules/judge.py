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
    _moves: dict[tuple[str, str, str], bool] = field(default_factory=dict)

    def judge(self, sentence: Sentence) -> Judgement:
        hits: dict[Part, list[Hit]] = {}
        for matcher in self._matchers("rule", sentence):
            hit = matcher.speaks(sentence.said, self.reader)
            if hit and isinstance(hit.reading, Rule):
                hits.setdefault((hit.reading.type, hit.reading.part), []).append(hit)
        if not hits:
            return Judgement(sentence, {}, {})
        guards = self.guards(sentence)
        points = {part: _points(part, found, guards) for part, found in hits.items()}
        return Judgement(
            sentence,
            {part: worth for part, worth in points.items() if worth > 0},
            {part: tuple(found) for part, found in hits.items()},
            guards,
        )

    def does(self, sentence: Sentence, *moves: str) -> bool:
        """The sentence makes one of these moves in the dialogue: agree, object, refute, ..."""
        return any(self._does(sentence.said, sentence.role.value, move) for move in moves)

    def heads(self, sentence: Sentence, move: str) -> bool:
        """The sentence stands under a heading, or a line ending in a colon, of this kind."""
        return self.names(sentence.heading, move) or self.names(sentence.lead, move)

    def names(self, title: str, move: str) -> bool:
        """A heading or the name of a column is of this kind."""
        return bool(title) and self._does(title, "any", move)

    def moves(self, sentence: Sentence) -> tuple[str, ...]:
        """All that the sentence does, for showing."""
        every = dict.fromkeys(move.move for move in self.ruleset.moves)
        return tuple(move for move in every if self.does(sentence, move))

    def _does(self, said: str, role: str, move: str) -> bool:
        key = (said, role, move)
        if key not in self._moves:
            spoken = languages(said)
            matchers = self.ruleset.move_matchers.get(move, ())
            self._moves[key] = any(m.reads(role, *spoken) and m.speaks(said, self.reader) for m in matchers)
        return self._moves[key]

    def _matchers(self, kind: str, sentence: Sentence) -> tuple[Matcher, ...]:
        key = (kind, sentence.role.value, *languages(sentence.said))
        if key not in self._readers:
            self._readers[key] = self.ruleset.for_sentence(*key)
        return self._readers[key]

    def guards(self, sentence: Sentence) -> tuple[Hit, ...]:
        found = (matcher.speaks(sentence.said, self.reader) for matcher in self._matchers("guard", sentence))
        return tuple(hit for hit in found if hit)


def against(part: Part, hits: Iterable[Hit], guards: Iterable[Hit]) -> list[Guard]:
    """The guards that count against this part of a sentence: meant for such parts, and ignored by no rule that spoke."""
    ignored = {name for hit in hits if isinstance(hit.reading, Rule) for name in hit.reading.ignores}
    found = (hit.reading for hit in guards if isinstance(hit.reading, Guard))
    return [guard for guard in found if guard.id not in ignored and (not guard.parts or part[1] in guard.parts)]


def weighed(hits: Iterable[Hit]) -> float:
    """The points of what speaks for a part, before guards."""
    weights = sorted((_weight(hit) for hit in hits), reverse=True)
    # Rules of one part often say the same in other words: the second and third count half.
    return weights[0] + sum(weights[1:3]) * 0.5


def _points(part: Part, hits: Iterable[Hit], guards: Iterable[Hit]) -> float:
    points = weighed(hits)
    for guard in against(part, hits, guards):
        points = 0.0 if guard.effect == "veto" else points - guard.points
    return max(points, 0.0)


def _weight(hit: Hit) -> float:
    return hit.reading.weight if isinstance(hit.reading, Rule) else 0.0

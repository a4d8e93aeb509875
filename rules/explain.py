"""Why a conversation gives what it gives: sentence by sentence, which rules spoke, and which guards stood against them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rules import tags
from rules.cues import Hit, Morphemes, Reader, RuleSet, Silence
from rules.dialogue import Dialogue, dialogue, injected
from rules.finding import ENOUGH, Finding
from rules.judge import Judge, Judgement, Part, against, weighed
from rules.mine import candidate, found_in
from rules.patterns import FACT
from rules.schema import Guard
from rules.sentences import Sentence, sentences
from store.records import Candidate, Conversation, Role, Turn

NEEDS_MORE = ("cause", "fix", "problem", "request", "plan")
"""Parts that come to nothing by themselves: a fix needs its cause, a request an answer that carried it out."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What rules take a sentence for: their points together, and what the guards left of them."""

    part: Part
    rules: tuple[Hit, ...]
    before: float
    points: float


@dataclass(frozen=True, slots=True)
class Objection:
    """A guard that spoke of a sentence. `against`: the claims it counts against; none where it is not for such parts."""

    guard: Guard
    hit: Hit
    against: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Remark:
    """One sentence, and all that was made of it.

    silent: rules of which a cue fits, kept from speaking by their `needs` or `forbids`.
    candidates: which candidates rest on it, by number from 0.
    fate: why it is in none: "quoted", "nothing" (no rule spoke), "refused" (guards left no points), "alone" (its part
        needs another), "weak" (too few points), or "outdone" by the rest of the conversation. "" where it is in one.
    """

    sentence: Sentence
    claims: tuple[Claim, ...]
    objections: tuple[Objection, ...]
    moves: tuple[str, ...]
    silent: tuple[Silence, ...]
    candidates: tuple[int, ...]
    fate: str

    @property
    def best(self) -> Claim | None:
        return max(self.claims, key=lambda claim: claim.points, default=None)


@dataclass(frozen=True, slots=True)
class Heard:
    """A turn. `injected`: the guard by which no one said it, so that nothing of it was read. `cut`: (guard, passage)."""

    turn: Turn
    injected: Hit | None
    cut: tuple[tuple[str, str], ...]
    remarks: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    heard: tuple[Heard, ...]
    candidates: tuple[Candidate, ...]


def explain(conversation: Conversation, ruleset: RuleSet, morphemes: Morphemes) -> Explanation:
    """What `rules.mine.mine` makes of a conversation, and why. Turns of tools and subagents are left out, as there."""
    reader = Reader(morphemes)
    judge = Judge(ruleset, reader)
    talk = dialogue(conversation, ruleset, judge)
    found = found_in(talk)
    lexicon = tags.lexicon(ruleset)
    explainer = _Explainer(talk, judge, ruleset, _resting(found))
    heard = [
        explainer.heard(turn, index)
        for index, turn in enumerate(conversation.turns)
        if turn.role in (Role.USER, Role.ASSISTANT)
    ]
    return Explanation(tuple(heard), tuple(candidate(finding, conversation, lexicon, reader) for finding in found))


def _resting(found: list[Finding]) -> dict[tuple[int, int], list[int]]:
    """By turn and place of a sentence, the numbers of the findings that rest on it."""
    resting: dict[tuple[int, int], list[int]] = {}
    for number, finding in enumerate(found):
        for sentence in finding.sentences:
            numbers = resting.setdefault((sentence.turn, sentence.place), [])
            if number not in numbers:
                numbers.append(number)
    return resting


@dataclass(frozen=True, slots=True)
class _Explainer:
    talk: Dialogue
    judge: Judge
    ruleset: RuleSet
    resting: dict[tuple[int, int], list[int]]

    def heard(self, turn: Turn, index: int) -> Heard:
        if guard := injected(turn, self.ruleset, self.judge):
            return Heard(turn, guard, (), ())
        remarks = (self.remark(sentence) for sentence in sentences(turn, index, self.ruleset.cut))
        return Heard(turn, None, tuple(_cut(turn, self.ruleset)), tuple(remarks))

    def remark(self, sentence: Sentence) -> Remark:
        if sentence.kind == "quote":
            return Remark(sentence, (), (), (), (), (), "quoted")
        judgement = self.judge.judge(sentence)
        claims = tuple(_claims(judgement))
        candidates = tuple(self.resting.get((sentence.turn, sentence.place), ()))
        return Remark(
            sentence,
            claims,
            tuple(_objections(judgement, self.judge.guards(sentence))),
            tuple(move for move in self.judge.moves(sentence) if not move.endswith("-heading")),
            tuple(self.silent(sentence)),
            candidates,
            "" if candidates else _fate(sentence, claims),
        )

    def silent(self, sentence: Sentence) -> Iterator[Silence]:
        for matcher in self.ruleset.rule_matchers:
            silence = matcher.silence(sentence.said, sentence.role.value, self.judge.reader)
            if silence and silence.by.startswith(("needs", "forbids")):
                yield silence


def _cut(turn: Turn, ruleset: RuleSet) -> Iterator[tuple[str, str]]:
    for guard in ruleset.guards:
        for cue in guard.cues if guard.effect == "cut" else ():
            if isinstance(cue, str):
                for match in re.finditer(cue, turn.text, re.IGNORECASE | re.DOTALL):
                    yield guard.id, match[0]


def _claims(judgement: Judgement) -> Iterator[Claim]:
    for part, hits in judgement.hits.items():
        yield Claim(part, hits, round(weighed(hits), 2), round(judgement.worth(*part), 2))


def _objections(judgement: Judgement, guards: tuple[Hit, ...]) -> Iterator[Objection]:
    for hit in guards:
        parts = [part for part, hits in judgement.hits.items() if hit.reading in against(part, hits, guards)]
        if isinstance(hit.reading, Guard):
            yield Objection(hit.reading, hit, tuple(parts))


def _fate(sentence: Sentence, claims: tuple[Claim, ...]) -> str:
    if not claims:
        return "nothing"
    best = max(claims, key=lambda claim: claim.points)
    if best.points <= 0:
        return "refused"
    if best.part[1] in NEEDS_MORE:
        return "alone"
    return "weak" if best.points < enough(sentence, best) else "outdone"


def enough(sentence: Sentence, claim: Claim) -> float:
    """The points a claim needs to stand by itself."""
    return FACT if claim.part[1] == "fact" and sentence.role == Role.ASSISTANT else ENOUGH

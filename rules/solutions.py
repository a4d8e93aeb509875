"""Solutions: problem, cause, fix and confirmation of different turns made one finding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from rules.cues import languages
from rules.dialogue import SHORT, Dialogue, Exchange, confirmed, refuted
from rules.finding import ENOUGH, Finding
from rules.judge import Judgement
from rules.likeness import containment, words
from rules.sentences import Sentence
from store.records import DecidedBy, EntryType


@dataclass(frozen=True, slots=True)
class _Cause:
    judgement: Judgement
    points: float
    exchange: int


PAIR = 2.0
"""Points a cause and its fix must have together."""
PER_EXCHANGE = 2
WAITING = 6
"""Causes that wait for a fix at a time."""


def solutions(talk: Dialogue) -> Iterator[Finding]:
    """Problem, cause and fix from different turns made one. A fix that the next words refute is dropped, its cause waits."""
    waiting: list[_Cause] = []
    every: list[Finding] = []
    for exchange in talk.exchanges:
        causes = waiting + _causes(talk, exchange)
        if _failed(talk, exchange):
            waiting = causes[-WAITING:]
            continue
        found = [
            f
            for f in _solved(talk, exchange, causes)
            if not (_undone(talk, exchange, f) or _refuted(talk, exchange, f))
        ]
        used = {id(sentence) for finding in found for sentence in finding.before}
        waiting = [c for c in causes if id(c.judgement.sentence) not in used and exchange.number - c.exchange < 2][
            -WAITING:
        ]
        every += found
    yield from (finding for finding in every if not any(_tried_again(talk, finding, later) for later in every))


def _tried_again(talk: Dialogue, earlier: Finding, later: Finding) -> bool:
    """The user complained once more and the same matter was fixed anew: the first fix was none."""
    if not 0 < later.exchange - earlier.exchange <= 4 or not _complained(talk.exchanges[later.exchange]):
        return False
    mine = frozenset().union(*(words(s.text) for s in earlier.sentences))
    theirs = frozenset().union(*(words(s.text) for s in later.sentences))
    return len(mine & theirs) >= 3 and containment(mine, theirs) >= 0.4


def _complained(exchange: Exchange) -> bool:
    return exchange.failure or any(j.worth("solution", "problem") > 0 for j in exchange.user)


def _causes(talk: Dialogue, exchange: Exchange) -> list[_Cause]:
    found = []
    announced = chosen = False
    for judgement in (*exchange.user, *exchange.assistant):
        sentence = judgement.sentence
        if chosen and talk.judge.does(sentence, "reason"):
            continue  # why the user chose so, not why something failed
        chosen = sentence.role == "user" and judgement.worth("decision", "choice") >= ENOUGH
        points = 0.0 if _asks(judgement) else _cause_points(talk, judgement, announced=announced)
        announced = sentence.role == "assistant" and talk.judge.does(sentence, "found")
        if sentence.role == "user":
            points = points - 0.1 if exchange.plan or points >= 0.9 else 0.0
        if points >= 0.5:
            found.append(_Cause(judgement, points, exchange.number))
    return found


def _asks(judgement: Judgement) -> bool:
    """The user wants something done: "find the cause" names none."""
    sentence = judgement.sentence
    asked = max(judgement.worth("decision", "request"), judgement.worth("decision", "choice"))
    return sentence.role == "user" and sentence.kind == "prose" and asked >= 0.6


def _cause_points(talk: Dialogue, judgement: Judgement, *, announced: bool) -> float:
    """Of its own words, and of what it stands under: a heading, a line ending in a colon, "I found it."."""
    sentence, points = judgement.sentence, judgement.worth("solution", "cause")
    if points:
        return points + (0.3 if talk.judge.heads(sentence, "trouble-heading") else 0.0)
    listed = sentence.kind == "list" and talk.judge.heads(sentence, "cause-heading")
    if len(sentence.said) <= 25 or not (listed or announced):
        return 0.0
    if talk.judge.guards(sentence) or talk.judge.does(sentence, "adopt"):
        return 0.0
    return 0.7 if listed else 0.6


def _undone(talk: Dialogue, exchange: Exchange, finding: Finding) -> bool:
    """After the fix, still in the same exchange, a test failed, or the assistant saw that it had not helped."""
    at = finding.core[-1].turn
    failed = {fact.after_turn for fact in exchange.facts if fact.kind in ("test", "build") and not fact.ok}
    if failed and any(turn.key in failed for turn in talk.turns[at:]):
        return True
    return any(
        talk.judge.does(j.sentence, "refute")
        for j in exchange.assistant
        if j.sentence.turn > at and j.sentence.place < 2 and talk.short(j.sentence.turn)
    )


LATER = 3
"""Exchanges in which a user may come back to say that a fix was none."""


def _refuted(talk: Dialogue, exchange: Exchange, finding: Finding) -> bool:
    """The user's next words say that it still fails, and speak of this or of nothing in particular."""
    about = frozenset().union(*(words(s.text) for s in finding.sentences))
    for following in talk.exchanges[exchange.number + 1 : exchange.number + 1 + LATER]:
        if refuted(following, talk.judge):
            said = frozenset().union(*(words(j.sentence.text) for j in following.user[:3]))
            again = any(talk.judge.does(j.sentence, "again") for j in following.user[:2])
            next_ = following.number == exchange.number + 1
            return len(said & about) >= (1 if next_ or again else 2) or (next_ and (len(said) <= 5 or again))
    return False


def _failed(talk: Dialogue, exchange: Exchange) -> bool:
    """The exchange ends without a working change: a test run after it failed, or somebody says so."""
    checks = [fact.ok for fact in exchange.facts if fact.kind in ("test", "build")]
    if checks and not checks[-1] and not any(fact.kind == "commit" and fact.ok for fact in exchange.facts):
        return True
    closing = [j.sentence for j in exchange.assistant if j.sentence.turn == exchange.closing]
    return bool(closing) and len(closing) <= 3 and any(talk.judge.does(sentence, "refute") for sentence in closing)


def _solved(talk: Dialogue, exchange: Exchange, causes: list[_Cause]) -> Iterator[Finding]:
    proof = _proof(talk, exchange)
    causes = causes + _beside(talk, exchange) if _trouble(talk, exchange) else causes
    if not _trouble(talk, exchange):
        causes = [replace(cause, points=cause.points - 0.4) if cause.points < 0.9 else cause for cause in causes]
    report = _report(exchange)
    taken: set[int] = set()
    pairs: list[tuple[float, Finding]] = []
    for judgement in (*exchange.user, *exchange.assistant):
        sentence = judgement.sentence
        if sentence.kind == "table":
            if row := _row(talk, judgement, exchange):
                pairs.append((2.2, row))
            continue
        whole = judgement.worth("solution", "whole")
        if whole >= ENOUGH and (sentence.role == "user" or len(sentence.said) > 20):
            user = sentence.role == "user"
            finding = _solution(judgement, (), whole + proof, exchange, part="whole", by_user=user)
            pairs.append((whole + 1.2 + proof, finding))
            continue
        fix = judgement.worth("solution", "fix")
        if fix < 0.5 or not _tells(sentence):
            continue
        fix += 0.2 if talk.judge.heads(sentence, "fix-heading") else 0.0
        fix += 0.2 if sentence.turn == report else 0.0
        scored = [(_pair(cause, judgement, fix, talk) + proof, cause.judgement) for cause in causes]
        fitting = [(points, cause) for points, cause in scored if points >= PAIR]
        by_user = sentence.role == "user"
        for points, cause in fitting:
            pairs.append((points, _solution(judgement, (cause,), points - 1, exchange, part="fix", by_user=by_user)))
        if by_user and not fitting and (told := _told_before(exchange, judgement)):
            found = _solution(judgement, (told,), fix + proof, exchange, part="fix", by_user=True)
            pairs.append((1.0 + fix, found))
        elif not fitting and (problem := _reported(exchange, judgement, fix, report)):
            found = _solution(judgement, (problem,), fix + proof, exchange, part="fix", by_user=False)
            pairs.append((0.6 + fix, found))
    kept = 0
    for _, finding in sorted(pairs, key=lambda p: -p[0]):
        if kept == PER_EXCHANGE:
            break
        if any(id(sentence) in taken for sentence in (*finding.before, *finding.core)):
            continue
        taken |= {id(sentence) for sentence in (*finding.before, *finding.core)}
        kept += 1
        yield finding


def _row(talk: Dialogue, judgement: Judgement, exchange: Exchange) -> Finding | None:
    """A row of a table that has a column for the cause and one for the fix, both filled in."""
    sentence = judgement.sentence
    filled = [name for name, cell in sentence.cells if len(cell) > 5]
    causes = [name for name in filled if talk.judge.names(name, "trouble-heading")]
    fixes = [name for name in filled if name not in causes and talk.judge.names(name, "fix-heading")]
    if sentence.role != "assistant" or not causes or not fixes:
        return None
    cues, number = ("solution.row",), exchange.number
    return Finding(EntryType.SOLUTION, "solution.row", (sentence,), points=1.4, cues=cues, exchange=number)


def _beside(talk: Dialogue, exchange: Exchange) -> list[_Cause]:
    """In a short report, what stands right before the fix tells what was wrong, whatever its words."""
    found = []
    for first, second in pairwise(exchange.assistant):
        one, two = first.sentence, second.sentence
        explains = one.turn == two.turn and talk.short(one.turn) and one.kind == two.kind == "prose"
        plain = (
            not first.worth("solution", "cause") and not first.worth("solution", "fix") and len(words(one.text)) >= 2
        )
        if not (explains and plain and second.worth("solution", "fix") >= 0.9):
            continue
        if not talk.judge.guards(one) and not talk.judge.does(one, "adopt"):
            found.append(_Cause(first, 0.6, exchange.number))
    return found


def _trouble(talk: Dialogue, exchange: Exchange) -> bool:
    """The user spoke of something that does not work, here or just before. Without it, "missing" and "not" are design talk."""
    before = talk.before(exchange)
    said = (*exchange.user, *(before.user if before else ()))
    failed = exchange.failure or any(not fact.ok for fact in exchange.facts)
    return failed or any(j.worth("solution", "problem") > 0 for j in said)


def _tells(fix: Sentence) -> bool:
    """Whether it tells what was done: a bare "Fixed." or "수정했습니다" does not."""
    return len(words(fix.text)) >= 2 and not fix.text.startswith(('"', "“", "'"))


def _pair(cause: _Cause, fix: Judgement, fix_points: float, talk: Dialogue) -> float:
    """How well a cause and a fix go together: near each other, about the same things."""
    one, two = cause.judgement.sentence, fix.sentence
    if one is two or (one.turn, one.place) > (two.turn, two.place):
        return 0.0
    points = cause.points + fix_points
    distance = _turns_between(talk, one.turn, two.turn)
    shared = len(words(one.text) & words(two.text))
    if not shared and not _next_to(talk, one, two):
        return 0.0
    if one.turn == two.turn:
        points += 0.4 if two.place - one.place <= 3 or one.heading == two.heading else 0.0
        points += 0.4 if two.place - one.place <= 2 and talk.short(two.turn) else 0.0
    else:
        points -= min(0.08 * (distance - 1), 0.4)
    if fix_points < 0.9 and one.turn != two.turn:
        points -= 0.5
    return points + min(0.2 * shared, 0.6) - (0.2 if not shared else 0)


def _next_to(talk: Dialogue, one: Sentence, two: Sentence) -> bool:
    """Near enough to speak of one thing without sharing a word."""
    if one.turn == two.turn:
        return two.place - one.place <= 3
    return _turns_between(talk, one.turn, two.turn) <= 3 and talk.short(two.turn)


def _turns_between(talk: Dialogue, one: int, two: int) -> int:
    return max(0, talk.spoken[two] - talk.spoken[one])


def _report(exchange: Exchange) -> int:
    """The assistant's last turn that tells of a change. A mere "all tests pass" after it does not count."""
    told = [j.sentence.turn for j in exchange.assistant if j.worth("solution", "fix") >= 0.9]
    return told[-1] if told else exchange.closing


def _reported(exchange: Exchange, fix: Judgement, points: float, report: int) -> Judgement | None:
    """The user's own error report that a change in the assistant's report answers."""
    if points < ENOUGH or fix.sentence.turn != report or exchange.user_length > SHORT * 2:
        return None
    about = words(fix.sentence.text)
    reports = [
        j
        for j in exchange.user
        if j.worth("solution", "problem") >= 0.6
        and len(words(j.sentence.text)) >= 2
        and j.worth("decision", "choice") < ENOUGH
        and j.worth("decision", "request") < 0.6
        and (
            exchange.failure
            or about & words(j.sentence.text)
            or languages(j.sentence.said) != languages(fix.sentence.said)
        )
    ]
    return max(reports, key=lambda j: len(about & words(j.sentence.text)), default=None)


def _told_before(exchange: Exchange, fix: Judgement) -> Judgement | None:
    """What the user said right before telling of a fix that worked."""
    place = exchange.user.index(fix)
    before = exchange.user[place - 1] if place else None
    fits = before and before.sentence.turn == fix.sentence.turn and _tells(before.sentence) and not before.guards
    return before if fits else None


def _proof(talk: Dialogue, exchange: Exchange) -> float:
    facts = [fact for fact in exchange.facts if fact.ok and fact.kind in ("test", "build", "commit")]
    works = confirmed(talk.after(exchange), talk.judge)
    closing = [j.sentence for j in exchange.assistant if j.sentence.turn == exchange.closing]
    said = any(talk.judge.does(sentence, "confirm") for sentence in closing)
    return (0.2 if facts else 0.0) + (0.2 if works else 0.0) + (0.1 if said else 0.0)


def _solution(
    fix: Judgement, causes: tuple[Judgement, ...], points: float, exchange: Exchange, *, part: str, by_user: bool
) -> Finding:
    return Finding(
        EntryType.SOLUTION,
        fix.rule("solution", part),
        (fix.sentence,),
        before=tuple(cause.sentence for cause in causes),
        points=points,
        decided_by=DecidedBy.USER if by_user else DecidedBy.REPORTED,
        cues=(*fix.cues("solution", part), *(cue for cause in causes for cue in cause.cues("solution", "cause"))),
        exchange=exchange.number,
    )

"""Sentences that belong together made one finding: decisions, solutions and patterns, each with its evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from rules.dialogue import LONG, SHORT, Dialogue, Exchange, agreed, chosen, confirmed, options, refuted
from rules.judge import Judgement
from rules.likeness import containment, words
from rules.schema import Guard
from rules.sentences import Sentence
from store.records import DecidedBy, EntryType

ENOUGH = 1.0
"""Points. A part with fewer is not taken."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, before it is put into words.

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

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        return (*self.before, *self.core, *self.after)


# Decisions

REQUEST = 0.89
"""Points a request must have, that it was carried out included."""


def decisions(talk: Dialogue) -> Iterator[Finding]:
    """Choices in the user's words, and proposals the user agreed to. What only an assistant decided is none."""
    last_plan = max((exchange.number for exchange in talk.exchanges if exchange.plan), default=-1)
    for exchange in talk.exchanges:
        if exchange.number == last_plan:
            yield from _planned(talk, exchange)
        if not exchange.plan:
            yield from _choices(talk, exchange)
        if agreed(exchange, talk.judge):
            yield from _accepted(talk, exchange)
        else:
            yield from _answered(talk, exchange)


def _choices(talk: Dialogue, exchange: Exchange) -> Iterator[Finding]:
    for judgement in exchange.user:
        sentence = judgement.sentence
        if chosen(sentence.said) and len(sentence.said) < 40 and _points_back(talk, exchange):
            continue  # "go with option 2" says nothing by itself; `_accepted` finds what it picks
        choice, request = judgement.worth("decision", "choice"), judgement.worth("decision", "request")
        if choice < ENOUGH and (judgement.worth("pattern", "rule") >= ENOUGH or not _says_what(sentence)):
            continue
        part = "choice" if choice >= ENOUGH else "request"
        points = choice + request * 0.3 if part == "choice" else choice * 0.5 + request
        points -= _lengthy(exchange)
        adopted = _adoption(talk, exchange, sentence)
        if part == "request":
            points += 0.2 + _echo(sentence, adopted) if adopted and words(adopted.text) else -0.1 if adopted else -0.6
        if points < (ENOUGH if part == "choice" else REQUEST) or (part == "request" and not adopted):
            continue
        moves = talk.judge.moves(sentence)
        yield Finding(
            EntryType.DECISION,
            judgement.rule("decision", part) if ("decision", part) in judgement.hits else "decision",
            (sentence,),
            after=(*_reason(exchange.user, judgement), *((adopted,) if adopted else ())),
            points=points + (0.3 if adopted else 0),
            decided_by=DecidedBy.USER,
            cues=(*judgement.cues("decision", "choice"), *judgement.cues("decision", "request")),
            exchange=exchange.number,
            corrects="correct" in moves or "object" in moves,
        )


PLAN = 1.0
FROM_A_PLAN = 3


def _planned(talk: Dialogue, exchange: Exchange) -> Iterator[Finding]:
    """The lines of a plan that state a choice most clearly, if it was carried out. A later plan replaces an earlier one."""
    found = []
    for judgement in exchange.user:
        sentence = judgement.sentence
        points = judgement.worth("decision", "plan") + 0.3 * judgement.worth("decision", "choice")
        adopted = _adoption(talk, exchange, sentence) if points >= PLAN and sentence.kind != "table" else None
        shared = len(words(sentence.text) & words(adopted.text)) if adopted else 0
        if adopted and shared:
            found.append((points + min(0.1 * shared, 0.4), judgement, adopted))
    best = sorted(found, key=lambda each: -each[0])[:FROM_A_PLAN]
    for points, judgement, adopted in best:
        yield Finding(
            EntryType.DECISION,
            judgement.rule("decision", "plan"),
            (judgement.sentence,),
            after=(adopted,),
            points=points,
            decided_by=DecidedBy.USER,
            cues=judgement.cues("decision", "plan"),
            exchange=exchange.number,
        )


def _says_what(sentence: Sentence) -> bool:
    """Something is asked for: "fix it" and "고쳐줘" leave it open."""
    about = words(sentence.text)
    return len(about) >= 2 or any(not "가" <= word[0] <= "힣" for word in about)


def _echo(request: Sentence, adopted: Sentence) -> float:
    """The report speaks of what was asked for."""
    return min(0.1 * len(words(request.text) & words(adopted.text)), 0.2)


def _lengthy(exchange: Exchange) -> float:
    """Long messages are briefs and pasted text: their sentences must say more to count."""
    if exchange.user_length <= SHORT:
        return 0.0
    return 0.2 if exchange.user_length <= LONG else 0.5


def _points_back(talk: Dialogue, exchange: Exchange) -> bool:
    before = talk.before(exchange)
    return before is not None and bool(before.assistant)


def _adoption(talk: Dialogue, exchange: Exchange, choice: Sentence) -> Sentence | None:
    """The assistant's sentence that carries the choice out: in this exchange's report, else in what it did before it."""
    about = words(choice.text)
    best, best_score = None, 0.0
    for judgement in _answers(talk, exchange):
        sentence = judgement.sentence
        if sentence.kind == "table" or "adopt" not in talk.judge.moves(sentence):
            continue
        shared = len(about & words(sentence.text))
        later = sentence.turn > max(exchange.turns)
        score = (
            0.5 + shared + (0.6 if sentence.turn == exchange.closing else 0) + 0.3 * judgement.worth("solution", "fix")
        )
        if score > best_score and not (later and (shared < 2 or best)):
            best, best_score = sentence, score
    return best


def _answers(talk: Dialogue, exchange: Exchange) -> Iterator[Judgement]:
    """What the assistant said after the choice: in this exchange, and in the next two, since it may ask back first."""
    yield from exchange.assistant
    for following in talk.exchanges[exchange.number + 1 : exchange.number + 3]:
        yield from following.assistant


def _reason(said: list[Judgement], choice: Judgement) -> tuple[Sentence, ...]:
    """The sentence right after the choice, when it says why."""
    place = said.index(choice) + 1
    if place < len(said):
        following = said[place].sentence
        if following.turn == choice.sentence.turn and _says_why(following.said):
            return (following,)
    return ()


_WHY_KO = ("이유는", "왜냐", "그래야", "때문", "니까", "거든", "라서", "해서야", "서야")
_WHY_END = re.compile(r"[가-힣](?:서|니까|거든)(?:요|야|임)?[.!]*$")
_WHY_EN = ("because", "since ", "the reason", "so that", "that way", "otherwise")


def _says_why(said: str) -> bool:
    return any(word in said for word in _WHY_KO) or bool(_WHY_END.search(said)) or said.lower().startswith(_WHY_EN)


def _accepted(talk: Dialogue, exchange: Exchange) -> Iterator[Finding]:
    """What the user's yes was said to: the options picked by number, else the proposal the last reply closes on."""
    before = talk.before(exchange)
    if before is None or before.closing < 0:
        return
    judge = talk.judge
    said = [j.sentence for j in exchange.user[:4]]
    agreeing = [s for s in said if "agree" in judge.moves(s)]
    yes = next((s for s in said if chosen(s.said)), agreeing[0] if agreeing else said[0])
    reply = [j for j in before.assistant if j.sentence.turn == before.closing]
    picked = [pick for j in exchange.user for pick in chosen(j.sentence.said)]
    found = _picked(picked, [j.sentence for j in reply]) if picked else _proposal(talk, reply)
    for sentence, points in found:
        adopted = _adoption(talk, exchange, sentence)
        yield Finding(
            EntryType.DECISION,
            "decision.option" if picked else "decision.agreed",
            (sentence,),
            after=(yes, *((adopted,) if adopted else ())),
            points=points + (0.3 if adopted else 0.0),
            decided_by=DecidedBy.CONFIRMED,
            cues=("decision.agreed",),
            exchange=exchange.number,
        )


def _picked(picked: list[str], reply: list[Sentence]) -> list[tuple[Sentence, float]]:
    listed = list(options(reply))
    names = list(dict.fromkeys(name for name, _ in listed))
    found = []
    for pick in picked:
        name = names[-1] if pick == "-1" and names else pick
        # The last list of the reply is the one that is asked about.
        matches = [sentence for listed_name, sentence in listed if listed_name == name]
        if matches:
            found.append((matches[-1], 1.3))
    return found


def _proposal(talk: Dialogue, reply: list[Judgement]) -> list[tuple[Sentence, float]]:
    """The sentence of a reply that a bare yes agrees to: one that asks or recommends, best near the end."""
    best: tuple[Sentence, float] | None = None
    for place, judgement in enumerate(reply):
        sentence = judgement.sentence
        if sentence.kind == "table" or "offer" not in talk.judge.moves(sentence) or _ANAPHORA.search(sentence.said):
            continue
        if not _says_what(sentence):
            continue
        if any(
            isinstance(hit.reading, Guard) and hit.reading.id == "errand.offered" for hit in talk.judge.guards(sentence)
        ):
            continue
        score = (
            _proposes(sentence.said) + 0.3 * (place / max(1, len(reply) - 1))
            if len(reply) > 1
            else _proposes(sentence.said) + 0.3
        )
        if score >= PROPOSAL and (best is None or score > best[1]):
            best = sentence, score
    return [best] if best else []


_BRIEF = 40
_IDLE = re.compile(
    r"더 |다른 |궁금|필요하|도와|계속|진행|시작|확인|anything|else|help|continue|proceed|ready|questions?\b|look|check", re.IGNORECASE
)
_UNDECIDED = re.compile(
    r"몰라|모르|아무|글쎄|상관|알아서|^왜|^뭐|^no\b|^not\b|any(?:thing)?\b|whatever|don'?t (?:know|care)|up to you|^(?:ok|yes)\b", re.IGNORECASE
)


def _answered(talk: Dialogue, exchange: Exchange) -> Iterator[Finding]:
    """A word or a number in answer to the assistant's question, when it then goes by it."""
    before = talk.before(exchange)
    if before is None or not before.assistant or len(exchange.user) != 1 or exchange.user_length > _BRIEF:
        return
    question, answer = before.assistant[-1].sentence, exchange.user[0].sentence
    if not question.said.endswith("?") or _IDLE.search(question.said) or answer.said.endswith("?"):
        return
    if _UNDECIDED.search(answer.said) or talk.judge.moves(answer) & {"object", "refute", "agree", "confirm"}:
        return
    adopted = _adoption(talk, exchange, answer)
    if adopted is None or not words(answer.text) & words(adopted.text):
        return
    yield Finding(
        EntryType.DECISION,
        "decision.answer",
        (question, answer),
        after=(adopted,),
        points=1.2,
        decided_by=DecidedBy.USER,
        cues=("decision.answer",),
        exchange=exchange.number,
        joint=True,
    )


PROPOSAL = 0.85
_ANAPHORA = re.compile(
    r"\b(?:do|implement|apply|make|fix|add|close|start|try|use|update) (?:implementing )?(?:this|that|it|these|them|those)\b"
    r"|\b(?:this|that|the above) (?:approach|change|fix|plan|way)\b|(?:이|그|위) ?(?:방식|방법|방향|내용|계획|수정|변경)(?:대로|으로|로)? ?(?:진행|적용|수정|할|하)|이렇게|그렇게",
    re.IGNORECASE,
)
"""A proposal that only points at what was said before; a yes to it says nothing by itself."""

_STRONG = ("추천", "권장", "제안", "낫습니다", "좋습니다", "좋겠습니다", "적절", "적합", "할까요", "까요?", "결론", "맞습니다", "recommend", "suggest", "want me to", "should i", "shall i", "i'd ", "best ", "propose", "better to", "let's ", "prefer", "the fix would be", "simplest", "cleanest")  # fmt: skip
_EMPTY = ("적용할까요", "반영할까요", "수정할까요", "진행할까요", "진행해도 될까요", "시작할까요", "계속할까요", "커밋할까요", "확인해", "어떻게 할까요", "어떤", "어느", "proceed", "continue", "go ahead", "which ", "would you like", "sound good", "what do you", "commit")  # fmt: skip


def _proposes(said: str) -> float:
    lowered = said.lower()
    points = 0.0
    if any(word in lowered for word in _STRONG):
        points += 0.9
    if any(word in lowered for word in _EMPTY) and len(said) < 90:
        points -= 0.6
    return points if len(said) >= 10 else 0.0


# Solutions


@dataclass(frozen=True, slots=True)
class _Cause:
    judgement: Judgement
    points: float
    exchange: int


_CAUSES = re.compile(r"원인|이유|문제|증상|버그|cause|reason|why|problem|issue|bug", re.IGNORECASE)
_ROOT = re.compile(r"원인|root cause|^causes?\b|^why\b", re.IGNORECASE)
_FIXES = re.compile(r"수정|해결|조치|변경|대응|fix|solution|resolution|changes?\b|what (?:was|I) ", re.IGNORECASE)
"""Words of a heading, a lead line or a column that tell what stands under it."""

PAIR = 2.0
"""Points a cause and its fix must have together."""
PER_EXCHANGE = 3


def solutions(talk: Dialogue) -> Iterator[Finding]:
    """Problem, cause and fix from different turns made one. A fix that the next words refute is dropped, its cause waits."""
    waiting: list[_Cause] = []
    every: list[Finding] = []
    for exchange in talk.exchanges:
        causes = waiting + _causes(exchange)
        if _failed(exchange):
            waiting = causes[-6:]
            continue
        found = [f for f in _solved(talk, exchange, causes) if not _refuted(talk, exchange, f)]
        used = {id(sentence) for finding in found for sentence in finding.before}
        waiting = [c for c in causes if id(c.judgement.sentence) not in used and exchange.number - c.exchange < 2][-6:]
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


def _causes(exchange: Exchange) -> list[_Cause]:
    found = []
    for judgement in (*exchange.user, *exchange.assistant):
        points = judgement.worth("solution", "cause")
        under = f"{judgement.sentence.heading} {judgement.sentence.lead}"
        if points and _CAUSES.search(under):
            points += 0.3
        elif (
            not points
            and _ROOT.search(under)
            and judgement.sentence.kind == "list"
            and len(judgement.sentence.said) > 25
        ):
            points = 0.7
        if judgement.sentence.role == "user":
            points = points - 0.1 if exchange.plan or points >= 0.9 else 0.0
        if points >= 0.5:
            found.append(_Cause(judgement, points, exchange.number))
    return found


def _refuted(talk: Dialogue, exchange: Exchange, finding: Finding) -> bool:
    """The user's next words say that it still fails, and speak of this or of nothing in particular."""
    following = talk.after(exchange)
    if following is None or not refuted(following, talk.judge):
        return False
    said = frozenset().union(*(words(j.sentence.text) for j in following.user[:3]))
    about = frozenset().union(*(words(s.text) for s in finding.sentences))
    again = any(_AGAIN.search(j.sentence.said) for j in following.user[:2])
    return bool(said & about) or len(said) <= 5 or again


_AGAIN = re.compile(r"아직|여전|그래도|똑같|또 |계속|다시|\b(?:still|same|again)\b", re.IGNORECASE)


def _failed(exchange: Exchange) -> bool:
    """The exchange ends without a working change: a test run after it failed, or somebody says so."""
    checks = [fact.ok for fact in exchange.facts if fact.kind in ("test", "build")]
    if checks and not checks[-1] and not any(fact.kind == "commit" and fact.ok for fact in exchange.facts):
        return True
    closing = [j.sentence for j in exchange.assistant if j.sentence.turn == exchange.closing]
    return bool(closing) and len(closing) <= 3 and any(_gives_up(sentence.said) for sentence in closing)


def _gives_up(said: str) -> bool:
    lowered = said.lower()
    return any(w in said for w in ("해결하지 못", "해결되지 않", "고치지 못", "아직 안", "여전히")) or any(
        w in lowered
        for w in (
            "still fail",
            "could not fix",
            "couldn't fix",
            "not resolved",
            "unresolved",
            "did not work",
            "didn't work",
        )
    )


def _solved(talk: Dialogue, exchange: Exchange, causes: list[_Cause]) -> Iterator[Finding]:
    proof = _proof(talk, exchange)
    causes = causes + _beside(talk, exchange) if _trouble(talk, exchange) else causes
    if not _trouble(talk, exchange):
        causes = [replace(cause, points=cause.points - 0.4) if cause.points < 0.9 else cause for cause in causes]
    taken: set[int] = set()
    pairs: list[tuple[float, Finding]] = []
    for judgement in (*exchange.user, *exchange.assistant):
        sentence = judgement.sentence
        if sentence.kind == "table":
            if row := _row(judgement, exchange):
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
        if _FIXES.search(f"{sentence.heading} {sentence.lead}"):
            fix += 0.2
        if sentence.role == "assistant" and sentence.turn == exchange.closing:
            fix += 0.2
        scored = [(_pair(cause, judgement, fix, talk) + proof, cause.judgement) for cause in causes]
        fitting = [(points, cause) for points, cause in scored if points >= PAIR]
        by_user = sentence.role == "user"
        for points, cause in fitting:
            pairs.append((points, _solution(judgement, (cause,), points - 1, exchange, part="fix", by_user=by_user)))
        if not fitting and (problem := _reported(exchange, judgement, fix)):
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


def _row(judgement: Judgement, exchange: Exchange) -> Finding | None:
    """A row of a table that has a column for the cause and one for the fix, both filled in."""
    sentence = judgement.sentence
    filled = [(name, cell) for name, cell in sentence.cells if len(cell) > 5]
    if sentence.role != "assistant" or not any(_CAUSES.search(name) for name, _ in filled):
        return None
    if not any(_FIXES.search(name) and not _CAUSES.search(name) for name, _ in filled):
        return None
    return Finding(
        EntryType.SOLUTION, "solution.row", (sentence,), points=1.4, cues=("solution.row",), exchange=exchange.number
    )


def _beside(talk: Dialogue, exchange: Exchange) -> list[_Cause]:
    """In a short report, what stands right before the fix tells what was wrong, whatever its words."""
    found = []
    for first, second in pairwise(exchange.assistant):
        one, two = first.sentence, second.sentence
        explains = one.turn == two.turn and talk.short(one.turn) and one.kind == two.kind == "prose"
        plain = not first.worth("solution", "cause") and not first.worth("solution", "fix") and len(words(one.text)) >= 2
        if explains and plain and second.worth("solution", "fix") >= 0.9 and not talk.judge.guards(one):
            found.append(_Cause(first, 0.6, exchange.number))
    return found


def _trouble(talk: Dialogue, exchange: Exchange) -> bool:
    """The user spoke of something that does not work, here or just before. Without it, "missing" and "not" are design talk."""
    before = talk.before(exchange)
    said = (*exchange.user, *(before.user if before else ()))
    failed = exchange.failure or any(not fact.ok for fact in exchange.facts)
    return failed or any(j.worth("solution", "problem") > 0 for j in said)


def _tells(fix: Sentence) -> bool:
    """ "Fixed." and "수정했습니다" do not tell what was done."""
    return len(words(fix.text)) >= 2


def _pair(cause: _Cause, fix: Judgement, fix_points: float, talk: Dialogue) -> float:
    """How well a cause and a fix go together: near each other, about the same things."""
    one, two = cause.judgement.sentence, fix.sentence
    if one is two or (one.turn, one.place) > (two.turn, two.place):
        return 0.0
    points = cause.points + fix_points
    distance = _turns_between(talk, one.turn, two.turn)
    shared = len(words(one.text) & words(two.text))
    if one.turn == two.turn:
        points += 0.4 if two.place - one.place <= 3 or one.heading == two.heading else 0.0
        points += 0.4 if two.place - one.place <= 2 and talk.short(two.turn) else 0.0
    else:
        points -= min(0.08 * (distance - 1), 0.4)
    if fix_points < 0.9 and one.turn != two.turn:
        points -= 0.5
    return points + min(0.2 * shared, 0.6) - (0.2 if not shared else 0)


def _turns_between(talk: Dialogue, one: int, two: int) -> int:
    return sum(1 for turn in talk.turns[one:two] if turn.role in ("user", "assistant"))


def _reported(exchange: Exchange, fix: Judgement, points: float) -> Judgement | None:
    """The user's own error report, when a change in the closing turn answers it and speaks of the same thing."""
    if points < ENOUGH or fix.sentence.turn != exchange.closing or exchange.user_length > SHORT * 2:
        return None
    about = words(fix.sentence.text)
    reports = [
        j
        for j in exchange.user
        if j.worth("solution", "problem") >= 0.6
        and len(words(j.sentence.text)) >= 2
        and j.worth("decision", "choice") < ENOUGH
        and j.worth("decision", "request") < 0.6
    ]
    return max(reports, key=lambda j: len(about & words(j.sentence.text)), default=None)


def _proof(talk: Dialogue, exchange: Exchange) -> float:
    facts = [fact for fact in exchange.facts if fact.ok and fact.kind in ("test", "build", "commit")]
    works = confirmed(talk.after(exchange), talk.judge)
    said = any(
        "confirm" in talk.judge.moves(j.sentence) for j in exchange.assistant if j.sentence.turn == exchange.closing
    )
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


# Patterns

_COMPLETE = re.compile(r"[.!。]\W*$|(?:다|요|음|함|임|됨|필수|금지)\W*$")
"""A sentence of its own, not a heading or a scrap of a list."""

FACT = 1.05
"""Points a fact that an assistant states must have; what a user lays down needs `ENOUGH`."""


def patterns(talk: Dialogue) -> Iterator[Finding]:
    for exchange in talk.exchanges:
        failed = refuted(talk.after(exchange), talk.judge)
        for judgement in (*exchange.user, *exchange.assistant):
            yield from _pattern(exchange, judgement, failed=failed)


def _pattern(exchange: Exchange, judgement: Judgement, *, failed: bool) -> Iterator[Finding]:
    sentence = judgement.sentence
    user = sentence.role == "user"
    rule, fact = judgement.worth("pattern", "rule"), judgement.worth("pattern", "fact")
    part = "rule" if rule >= ENOUGH else "fact"
    points = rule + 0.3 * fact if part == "rule" else fact
    points -= _lengthy(exchange) if user else 0.0
    if not user and exchange.asked:
        points += 0.15
    if (
        points < (ENOUGH if part == "rule" or user else FACT)
        or (failed and not user)
        or not 15 <= len(sentence.said) <= 300
    ):
        return
    if sentence.kind == "table" or (part == "fact" and judgement.worth("decision", "request") >= 0.7):
        return
    if not user and (judgement.worth("solution", "cause") >= ENOUGH or not _COMPLETE.search(sentence.text)):
        return
    yield Finding(
        EntryType.PATTERN,
        judgement.rule("pattern", part),
        (sentence,),
        points=points,
        decided_by=DecidedBy.USER if user else DecidedBy.REPORTED,
        cues=judgement.cues("pattern", part),
        exchange=exchange.number,
        before=(),
        after=(),
    )


def overlap(one: Finding, other: Finding) -> float:
    """How much the cores of two findings say the same, 0 to 1."""
    from rules.likeness import grams  # noqa: PLC0415

    mine = grams(" ".join(s.said for s in one.core))
    theirs = grams(" ".join(s.said for s in other.core))
    return containment(mine, theirs)

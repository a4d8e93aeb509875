"""Decisions: choices in the user's words, what the user asked for and got, proposals the user agreed to."""

from __future__ import annotations

from collections.abc import Iterator

from rules.cues import languages
from rules.dialogue import LONG, SHORT, Dialogue, Exchange, agreed, chosen, options
from rules.finding import ENOUGH, Finding
from rules.judge import Judgement
from rules.likeness import words
from rules.reference import dangles
from rules.sentences import Sentence
from store.records import DecidedBy, EntryType

FIXED = 0.9
"""Points of a plain report of a change."""
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
        points -= lengthy(exchange)
        adopted = _adoption(talk, exchange, sentence)
        if part == "request":
            points += 0.2 + _echo(sentence, adopted) if adopted and words(adopted.text) else -0.1 if adopted else -0.6
        if points < (ENOUGH if part == "choice" else REQUEST) or (part == "request" and not adopted):
            continue
        title = None
        if dangles(sentence.said):
            if adopted is None or not _stands_alone(adopted) or not _tells_of(talk, sentence, adopted):
                continue
            title = adopted
        yield Finding(
            EntryType.DECISION,
            judgement.rule("decision", part) if ("decision", part) in judgement.hits else "decision",
            (sentence,),
            after=(
                *_reason(talk, exchange.user, judgement),
                *((adopted,) if adopted and _answers_to(sentence, adopted) else ()),
            ),
            points=points + (0.3 if adopted else 0),
            decided_by=DecidedBy.USER,
            cues=(*judgement.cues("decision", "choice"), *judgement.cues("decision", "request")),
            exchange=exchange.number,
            corrects=talk.judge.does(sentence, "correct", "object"),
            title=title,
        )


def _answers_to(choice: Sentence, adopted: Sentence) -> bool:
    """The report speaks of the choice, or is no more than "done"; one about other matters proves nothing to a reader."""
    about = words(adopted.text)
    return len(about) < 2 or bool(about & words(choice.text)) or languages(choice.said) != languages(adopted.said)


def _tells_of(talk: Dialogue, request: Sentence, adopted: Sentence) -> bool:
    """The report takes up a word of the request, or is about nothing but a change."""
    if any(hit.reading.id == "prediction" for hit in talk.judge.guards(adopted)):
        return False
    shared = words(request.text) & words(adopted.text)
    return bool(shared) or talk.judge.judge(adopted).worth("solution", "fix") >= FIXED


def _stands_alone(adopted: Sentence) -> bool:
    """What was done is told well enough to be the title of a request that only points: "turn it back"."""
    about = words(adopted.text)
    return len(about) >= 3 and not adopted.said.endswith((":", "：")) and not dangles(adopted.said)


PLAN = 1.0
"""Points a line of a plan must have."""
FROM_A_PLAN = 3
"""Decisions taken from one plan."""


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


def lengthy(exchange: Exchange) -> float:
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
        if sentence.kind == "table" or not talk.judge.does(sentence, "adopt"):
            continue
        shared = len(about & words(sentence.text))
        later = sentence.turn > exchange.turns[-1]
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


def _reason(talk: Dialogue, said: list[Judgement], choice: Judgement) -> tuple[Sentence, ...]:
    """The sentence right after the choice, when it says why."""
    place = said.index(choice) + 1
    if place < len(said):
        following = said[place].sentence
        if following.turn == choice.sentence.turn and talk.judge.does(following, "reason"):
            return (following,)
    return ()


def _accepted(talk: Dialogue, exchange: Exchange) -> Iterator[Finding]:
    """What the user's yes was said to: the options picked by number, else the proposal the last reply closes on."""
    before = talk.before(exchange)
    if before is None or before.closing < 0:
        return
    said = [j.sentence for j in exchange.user[:4]]
    agreeing = [s for s in said if talk.judge.does(s, "agree")]
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
    """The sentence of a reply that a bare yes agrees to: it recommends or asks for leave; of two, the later one."""
    proposals = [j.sentence for j in reply if j.sentence.kind != "table" and _proposes(talk, j.sentence)]
    if not proposals:
        return []
    last = max(range(len(reply)), key=lambda i: reply[i].sentence is proposals[-1])
    return [(proposals[-1], 0.9 + 0.3 * (last / max(1, len(reply) - 1)))]


def _proposes(talk: Dialogue, sentence: Sentence) -> bool:
    does = talk.judge.does
    return (
        does(sentence, "offer")
        and does(sentence, "recommend")
        and not does(sentence, "errand", "back")
        and len(sentence.said) >= 10
        and _says_what(sentence)
        and not dangles(sentence.said)
    )


BRIEF = 40
"""Characters of an answer that is no more than a word or two."""


def _answered(talk: Dialogue, exchange: Exchange) -> Iterator[Finding]:
    """A word or a number in answer to the assistant's question, when it then goes by it."""
    before = talk.before(exchange)
    if before is None or not before.assistant or len(exchange.user) != 1 or exchange.user_length > BRIEF:
        return
    question, answer = before.assistant[-1].sentence, exchange.user[0].sentence
    if not question.said.endswith("?") or talk.judge.does(question, "idle") or answer.said.endswith("?"):
        return
    if dangles(question.said):
        return
    if talk.judge.does(answer, "unsure", "object", "refute", "agree", "confirm"):
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

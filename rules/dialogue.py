"""A conversation as a dialogue: exchanges, and what the user answered to what was proposed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from rules.cues import Hit, RuleSet
from rules.judge import Judge, Judgement
from rules.sentences import FARTHEST, Sentence, sentences
from store.records import Conversation, Fact, Role, Turn

SHORT = 450
"""Characters. People decide in short messages; longer ones are briefs, pasted text or reports."""
LONG = 1500


@dataclass(slots=True)
class Exchange:
    """What the user said, what the assistant did about it, up to the user's next words."""

    number: int
    user: list[Judgement] = field(default_factory=list)
    assistant: list[Judgement] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    user_length: int = 0
    failure: bool = False
    """The user pasted what failed: a stack trace, a compiler's or a tool's error lines."""
    closing: int = -1
    """The assistant's last turn, which reports; -1 if it did not answer."""
    facts: list[Fact] = field(default_factory=list)

    @property
    def asked(self) -> bool:
        """The user asks something: what answers it is more often worth keeping than what reports on work."""
        return any(j.sentence.said.rstrip().endswith("?") for j in self.user)

    @property
    def plan(self) -> bool:
        """The user handed over a written plan: long, with headings."""
        return self.user_length > LONG and len({j.sentence.heading for j in self.user}) > 3


@dataclass(frozen=True, slots=True)
class Dialogue:
    exchanges: tuple[Exchange, ...]
    turns: tuple[Turn, ...]
    judge: Judge
    spoken: tuple[int, ...]
    """How many of the first n turns a person or the assistant said, for n from 0 on."""

    def short(self, turn: int) -> bool:
        """The turn is a remark or two between actions, so what stands in it belongs together."""
        return len(self.turns[turn].text) <= SHORT

    def after(self, exchange: Exchange) -> Exchange | None:
        following = exchange.number + 1
        return self.exchanges[following] if following < len(self.exchanges) else None

    def before(self, exchange: Exchange) -> Exchange | None:
        return self.exchanges[exchange.number - 1] if exchange.number else None


def dialogue(conversation: Conversation, ruleset: RuleSet, judge: Judge) -> Dialogue:
    """The exchanges of a conversation. Turns of tools and subagents, and turns that no one said, are left out."""
    exchanges: list[Exchange] = []
    place: dict[str, Exchange] = {}
    spoken: Exchange | None = None
    for index, turn in enumerate(conversation.turns):
        if turn.role in (Role.USER, Role.ASSISTANT) and not injected(turn, ruleset, judge):
            if spoken is None or (turn.role is Role.USER and spoken.closing >= 0):
                spoken = Exchange(len(exchanges))
                exchanges.append(spoken)
            _take(spoken, turn, index, ruleset, judge)
        if spoken is not None:
            place[turn.key] = spoken
    for fact in conversation.facts:
        if fact.after_turn in place:
            place[fact.after_turn].facts.append(fact)
    said = (turn.role in (Role.USER, Role.ASSISTANT) for turn in conversation.turns)
    return Dialogue(tuple(exchanges), conversation.turns, judge, tuple(accumulate(said, initial=0)))


def injected(turn: Turn, ruleset: RuleSet, judge: Judge) -> Hit | None:
    """The guard by which a turn is one that no one said, if there is one."""
    head = turn.text[:200]
    hits = (matcher(head, turn.role.value, judge.reader) for matcher in ruleset.turn_matchers)
    return next((hit for hit in hits if hit), None)


def _take(exchange: Exchange, turn: Turn, index: int, ruleset: RuleSet, judge: Judge) -> None:
    judged = [judge.judge(s) for s in sentences(turn, index, ruleset.cut) if s.kind != "quote"]
    exchange.turns.append(index)
    if turn.role is Role.USER:
        exchange.user += judged
        exchange.user_length += len(turn.text)
        exchange.failure |= _FAILURE.search(turn.text[:FARTHEST]) is not None
    else:
        exchange.assistant += judged
        exchange.closing = index


_FAILURE = re.compile(
    r"^[ \t]{0,20}(?:Traceback \(|Caused by:|npm (?:ERR!|error)|.{0,120}?\b\w*(?:Error|Exception)(?:\[\w+\])?: |(?:ERROR|FATAL|FAIL|panic)\b"
    r"|\S+\(\d+,\d+\): error|error(?:\[\w+\])?: |.{0,80}\b(?:[45]\d\d \((?:Not|Internal|Bad|Un)|exit code [1-9]))",
    re.MULTILINE,
)


def agreed(exchange: Exchange, judge: Judge) -> bool:
    """The user's message is short and says yes to what was just proposed."""
    if not exchange.user or exchange.user_length > SHORT:
        return False
    said = [j.sentence for j in exchange.user[:4]]
    return any(judge.does(sentence, "agree") for sentence in said) and not judge.does(said[0], "object", "refute")


def refuted(exchange: Exchange | None, judge: Judge) -> bool:
    """The user begins by saying that what was done before does not work."""
    if exchange is None or (exchange.user_length > LONG and not exchange.failure):
        return False
    said = [j.sentence for j in exchange.user[:3]]
    pasted = exchange.failure and exchange.user_length <= LONG * 3
    fails = pasted or any(judge.does(sentence, "refute") for sentence in said)
    return fails and not any(judge.does(sentence, "confirm") for sentence in said)


def confirmed(exchange: Exchange | None, judge: Judge) -> bool:
    """The user begins by saying that it works, or is content."""
    if exchange is None:
        return False
    said = [j.sentence for j in exchange.user[:2]]
    content = any(judge.does(sentence, "confirm", "agree") for sentence in said)
    return content and not any(judge.does(sentence, "refute", "object") for sentence in said)


_CHOSEN = re.compile(
    r"(?:option|옵션|방안|방법|선택지|choice|#|no\.?) ?([1-9]|[a-f](?![a-z]))\b|(?<![\w.])([1-9])(?:번|안)(?![\d])"
    r"|(?<![a-z])([a-f]) ?안(?=으로|이|을|은|도|대로|[\s,.!]|$)|^([1-9a-f])[.!]?$|^([1-9a-f]) ?(?:으로|로|이요|요)\b|\bthe (first|second|third|last) (?:one|option)",
    re.IGNORECASE,
)
_ORDINAL = {"first": "1", "second": "2", "third": "3", "last": "-1"}


def chosen(said: str) -> tuple[str, ...]:
    """The numbers or letters of the options a sentence picks: "yes, go with option 2" gives ("2",)."""
    picks = (next(group for group in match.groups() if group) for match in _CHOSEN.finditer(said))
    return tuple(dict.fromkeys(_ORDINAL.get(pick.lower(), pick.lower()) for pick in picks))


_NAMED = re.compile(
    r"^(?:\W*)(?:(?:option|옵션|방안|방법|선택지|choice|안)\s*)?#?([1-9]|[a-f])\s*(?:안|번)?\s*[.:)\-–—→(]",
    re.IGNORECASE,
)
_OPTION = re.compile(r"^\W*(?:option|옵션|방안|방법|선택지|choice)\s*#?([1-9]|[a-f])\b", re.IGNORECASE)


def options(sentences_: list[Sentence]) -> Iterator[tuple[str, Sentence]]:
    """(number or letter, sentence) of every option that a turn puts up."""
    heading = ""
    for sentence in sentences_:
        named = _OPTION.match(sentence.said) or _NAMED.match(sentence.said)
        if named and len(sentence.said) > 6:
            yield named[1].lower(), sentence
        elif sentence.number:
            yield str(sentence.number), sentence
        elif sentence.heading != heading and (
            named := _OPTION.match(sentence.heading) or _NAMED.match(sentence.heading)
        ):
            yield named[1].lower(), sentence
        heading = sentence.heading

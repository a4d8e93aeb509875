"""Patterns: rules the user laid down, and facts about tools and conventions that somebody stated."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rules.decisions import lengthy
from rules.dialogue import Dialogue, Exchange, refuted
from rules.finding import ENOUGH, Finding
from rules.judge import Judgement
from rules.reference import dangles
from store.records import DecidedBy, EntryType

_COMPLETE = re.compile(r"[.!。]\W*$|(?:다|요|음|함|임|됨|필수|금지)\W*$")
"""A sentence of its own, not a heading or a scrap of a list."""

_HERE = re.compile(
    r"(?:this|these|that|those) (?:function|method|files?|tests?|code|variable|component|change|error|issue|class|line|commit|branch|session)\b|해당 ",
    re.IGNORECASE,
)
"""Begins with a thing of this session: no general statement."""

FACT = 1.09
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
    points -= lengthy(exchange) if user else 0.0
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
    if dangles(sentence.said) or _HERE.match(sentence.said):
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
    )

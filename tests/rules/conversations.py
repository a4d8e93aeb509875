"""Small conversations for tests: lines that begin with `u ` or `a `."""

from __future__ import annotations

from functools import cache

from rules.cues import RuleSet
from rules.mine import load_rules, mine
from store.records import Candidate, Conversation, Fact, Role, SafeText, Turn
from store.tokens import morphemes

ROLES = {"u": Role.USER, "a": Role.ASSISTANT, "t": Role.TOOL, "s": Role.SUBAGENT}


@cache
def built_in() -> RuleSet:
    ruleset, faults = load_rules()
    assert faults == []
    return ruleset


def talk(*said: str, facts: tuple[Fact, ...] = (), session: str = "s1") -> Conversation:
    turns = tuple(
        Turn(f"{session}-{i}", i, ROLES[line[0]], "prompt", SafeText(line[2:]), 1_000 * i)
        for i, line in enumerate(said, 1)
    )
    return Conversation("claude-code", SafeText(session), SafeText("/home/u/shop"), SafeText(""), turns, facts)


def mined(*said: str, facts: tuple[Fact, ...] = (), session: str = "s1") -> list[Candidate]:
    return mine(talk(*said, facts=facts, session=session), built_in(), morphemes=morphemes)

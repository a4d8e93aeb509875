"""Conversations read for what is worth keeping. Pure: the same conversation and rules give the same candidates."""

from __future__ import annotations

import math
from pathlib import Path

from rules import load, tags
from rules.cues import Morphemes, Reader, RuleSet
from rules.decisions import decisions
from rules.dialogue import Dialogue, dialogue
from rules.finding import Finding
from rules.fold import anchors, folded
from rules.judge import Judge
from rules.load import Fault
from rules.patterns import patterns
from rules.schema import Family, Guard, Loanword, Move, Rule, Tag
from rules.sentences import Sentence
from rules.solutions import solutions
from rules.summary import LIMIT, cause_and_fix, granted, line, plain, settled, shortened, stated, told
from store.records import Candidate, Conversation, DecidedBy, EntryType, Quote, Role, SafeText, anchor


def load_rules(user: Path | None = None, cache: Path | None = None) -> tuple[RuleSet, list[Fault]]:
    """The built-in rules with the user's own over them, and every fault of the files. The sound ones always work."""
    rules, faults = load.load(Rule, user, cache=cache)
    guards, more = load.load(Guard, user, cache=cache)
    moves, even_more = load.load(Move, user, cache=cache)
    families, of_families = load.load(Family, user, cache=cache)
    names, of_tags = load.load(Tag, user, cache=cache)
    loanwords, of_loanwords = load.load(Loanword, user, cache=cache)
    # Each model reads every file of the user's, so a file that is broken as a whole is reported by each of them.
    every = dict.fromkeys([*faults, *more, *even_more, *of_families, *of_tags, *of_loanwords])
    ruleset = RuleSet(tuple(rules), tuple(guards), tuple(moves), tuple(families), tuple(names), tuple(loanwords))
    return ruleset, list(every)


def mine(conversation: Conversation, ruleset: RuleSet, *, morphemes: Morphemes) -> list[Candidate]:
    """The findings of a session as candidates, in the order in which they were said. Reads user and assistant turns."""
    lexicon, reader = tags.lexicon(ruleset), Reader(morphemes)
    found = _findings(conversation, ruleset, reader)
    return [candidate(finding, conversation, lexicon, reader) for finding in found]


def findings(conversation: Conversation, ruleset: RuleSet, morphemes: Morphemes) -> list[Finding]:
    """What `mine` puts into words, with the cues it rests on."""
    return _findings(conversation, ruleset, Reader(morphemes))


def _findings(conversation: Conversation, ruleset: RuleSet, reader: Reader) -> list[Finding]:
    return found_in(dialogue(conversation, ruleset, Judge(ruleset, reader)))


def found_in(talk: Dialogue) -> list[Finding]:
    """The findings of a dialogue, in the order in which they were said."""
    return folded([*decisions(talk), *solutions(talk), *patterns(talk)])


def candidate(finding: Finding, conversation: Conversation, lexicon: tags.Lexicon, reader: Reader) -> Candidate:
    """A finding put into words."""
    summary, detail = _summary(finding, reader), _detail(finding)
    return Candidate(
        finding.type,
        summary,
        detail,
        tags.tags_for([s.text for s in finding.sentences], conversation, lexicon),
        _confidence(finding),
        finding.rule,
        finding.decided_by,
        tuple(_quote(sentence, conversation) for sentence in _in_order(finding)),
        anchors(finding),
    )


def _summary(finding: Finding, reader: Reader) -> SafeText:
    if finding.type is EntryType.SOLUTION and finding.before:
        return cause_and_fix(finding.before[0].text, finding.core[0].text)
    core = finding.core[0]
    if finding.joint:
        return cause_and_fix(core.text, finding.core[1].text)
    choice = _choice(finding, reader)
    reason = next((s for s in finding.after if s.turn == core.turn and s.place == core.place + 1), None)
    if finding.type is EntryType.DECISION and reason:
        return SafeText.joined(" — ", [choice, line(reason.text, max(20, LIMIT - 3 - len(choice)))])[:LIMIT]
    return choice


def _choice(finding: Finding, reader: Reader) -> SafeText:
    """The core as a statement; what was done instead, where the core only points at something."""
    core = finding.core[0]
    if finding.title:
        return shortened(told(line(finding.title.text)), LIMIT)
    text = line(core.text, len(core.text) + 1)
    if finding.type is EntryType.DECISION:
        asked = reader.predicates(core.said)
        if core.said.endswith("?") or core.role is Role.ASSISTANT:
            text = stated(text)
        text = granted(settled(text), core.said, asked[-1]) if asked and asked[-1].final else settled(text)
    return shortened(text, LIMIT)


def _detail(finding: Finding) -> SafeText:
    """Cause, fix and reason as prose. A decision's own sentence stands in the summary; it comes back only if cut there."""
    said: dict[str, SafeText] = {}
    core = finding.core if finding.type is EntryType.SOLUTION or len(finding.core[0].text) > LIMIT else ()
    for sentence in (*finding.before, *core, *finding.after):
        if (len(sentence.said) > 12 and sentence.role == "assistant") or sentence.turn == finding.core[0].turn:
            said.setdefault(anchor(sentence.text), plain(sentence.text))
    return SafeText.joined(" ", list(said.values()) or [plain(finding.core[0].text)])[:DETAIL]


def _in_order(finding: Finding) -> list[Sentence]:
    return sorted({(s.turn, s.place): s for s in finding.sentences}.values(), key=lambda s: (s.turn, s.place))


def _quote(sentence: Sentence, conversation: Conversation) -> Quote:
    turn = conversation.turns[sentence.turn]
    return Quote(turn.key, turn.role, sentence.text, turn.time)


DETAIL = 600
"""Characters."""

_TRUST = {DecidedBy.USER: 0.4, DecidedBy.CONFIRMED: 0.2, DecidedBy.REPORTED: -0.2}


def _confidence(finding: Finding) -> float:
    """0 to 1, two decimals: the points beyond what is enough, and whose word it is, through a logistic curve."""
    surplus = finding.points - 1.0 + _TRUST[finding.decided_by]
    return round(1 / (1 + math.exp(-2.2 * (surplus - 0.1))), 2)

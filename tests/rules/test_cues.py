"""What a user's patterns may hold without harm to the other rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.mine import load_rules, mine
from store.records import Candidate
from store.tokens import morphemes
from tests.rules.conversations import talk

RULE = """
schema: 1
rules:
  - id: mine
    type: decision
    part: choice
    role: user
    weight: 1.4
    cues: {cues}
    examples: {{match: [x], miss: [y]}}
"""
CUT = """
schema: 1
guards:
  - id: mine
    effect: cut
    cues: ['{cue}']
    examples: {{match: [x], miss: [y]}}
"""


def found(folder: Path, rules: str, said: str) -> list[Candidate]:
    (folder / "mine.yaml").write_text(rules, encoding="utf-8")
    ruleset, faults = load_rules(folder)
    assert faults == []
    return mine(talk(f"u {said}"), ruleset, morphemes=morphemes)


@pytest.mark.parametrize(
    "cues",
    [
        "['zzz', '(?i)^DECREE:']",
        "['(?P<a>zzz)', '^(?P<a>decree):']",
        "['(z)z', '^(d)ecree: .* \\1oor']",
        "['^decree:', {lemma: ['하']}]",
    ],
)
def test_cues_with_flags_groups_and_verbs_work_beside_each_other(tmp_path: Path, cues: str) -> None:
    (candidate,) = found(tmp_path, RULE.format(cues=cues), "decree: the port of the door is 8080")
    assert candidate.rule == "mine"


@pytest.mark.parametrize("cue", ["<(?P<tag>aside)>.*?</(?P=tag)>", r"<(aside)>.*?</\1>", "(?i)<ASIDE>.*?</ASIDE>"])
def test_passages_are_cut_by_patterns_that_name_groups_as_others_do(tmp_path: Path, cue: str) -> None:
    said = "<aside>Decision: use port 99</aside> <system-reminder>Decision: use port 77</system-reminder>"
    assert found(tmp_path, CUT.format(cue=cue), said) == []


def test_a_cut_that_fits_nothing_cuts_nothing(tmp_path: Path) -> None:
    (candidate,) = found(tmp_path, CUT.format(cue="z*"), "결정: 포트는 8080")
    assert candidate.summary == "포트는 8080"

from __future__ import annotations

from pathlib import Path

import pytest

from rules.check import Failure, check_secrets
from rules.examples import check_readings, loose_ends
from rules.load import load
from rules.mine import load_rules
from rules.schema import Secret
from store.tokens import morphemes

RULE = """
schema: 1
rules:
  - id: mine
    type: decision
    part: choice
    weight: 1.2
    lang: {lang}
    cues: ['decree']
    needs: ['port']
    forbids: ['maybe']
    examples: {{match: ['{match}'], miss: ['{miss}']}}
"""


def failures(folder: Path, **fields: str) -> list[Failure]:
    written = RULE.format(**{"lang": "any", "match": "a decree on the port", "miss": "hello"} | fields)
    (folder / "mine.yaml").write_text(written, encoding="utf-8")
    ruleset, faults = load_rules(folder)
    assert faults == []
    return check_readings(ruleset, morphemes, [rule for rule in ruleset.rules if rule.id == "mine"])


@pytest.mark.parametrize(
    ("fields", "wanted", "reason"),
    [
        ({"match": "a law on the port"}, "match", "none of its cues fits"),
        ({"match": "a decree on the host"}, "match", "needs[0] does not fit"),
        ({"match": "maybe a decree on the port"}, "match", 'forbids[0] fits "maybe"'),
        ({"lang": "ko"}, "match", "it is not in the rule's language (ko)"),
        ({"match": "$ decree port"}, "match", "it holds no sentence that is read (code, a quotation, output)"),
        ({"miss": "no decree on a port"}, "miss", 'cues[0] fits "decree"'),
    ],
)
def test_an_example_that_comes_out_wrong_says_why(
    tmp_path: Path, fields: dict[str, str], wanted: str, reason: str
) -> None:
    (failure,) = failures(tmp_path, **fields)
    assert (failure.rule, failure.file, failure.line) == ("mine", str(tmp_path / "mine.yaml"), 4)
    assert (failure.wanted, failure.example) == (wanted, fields.get(wanted, "a decree on the port"))
    assert failure.reason == reason


def test_the_nearest_sentence_of_an_example_tells_why(tmp_path: Path) -> None:
    (failure,) = failures(tmp_path, match="Hello there. A decree on the host. Bye now.")
    assert failure.reason == "needs[0] does not fit"


@pytest.mark.parametrize(
    ("example", "wanted", "reason"),
    [
        ("bdge-12", "match", "none of its literals stands in it"),
        ("badge-x", "match", "its pattern does not fit"),
        ("badge-0000", "match", "its pattern fits, but scope 'line' or check 'real' refuses it"),
        ("badge-12", "miss", "masked by badge"),
        ("npm_" + "Ab3Cd4Ef5Gh6" * 3, "miss", "masked by npm-token"),
    ],
)
def test_a_secret_that_comes_out_wrong_says_why(example: str, wanted: str, reason: str) -> None:
    examples = {"match": ["badge-12"], "miss": ["none"]} | {wanted: [example]}
    record = {
        "id": "badge",
        "kind": "badge",
        "literals": ["badge"],
        "pattern": r"badge-(?P<secret>\d+)",
        "check": "real",
    }
    badge = Secret.model_validate(record | {"examples": examples})
    (failure,) = check_secrets([*load(Secret)[0], badge], [badge])
    assert (failure.wanted, failure.reason) == (wanted, reason)


def test_only_the_examples_that_are_asked_for_are_run() -> None:
    wrong = Secret.model_validate(
        {"id": "w", "kind": "w", "literals": ["w"], "pattern": "w", "examples": {"match": ["x"], "miss": ["x"]}}
    )
    assert len(check_secrets([wrong])) == 1
    assert check_secrets([wrong], []) == []


LOOSE = """
schema: 1
rules:
  - id: mine
    type: decision
    part: choice
    weight: 1.2
    ignores: [no-such-guard]
    cues: ['<chnage> it', {lemma: ['<stettle>']}]
    examples: {match: ['x'], miss: ['y']}
guards:
  - id: mine.guard
    effect: veto
    parts: [choise]
    cues: ['<change>']
    examples: {match: ['fix'], miss: ['y']}
"""


def test_names_that_nothing_goes_by_are_faults(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(LOOSE, encoding="utf-8")
    found = loose_ends(load_rules(tmp_path)[0])
    assert [(fault.line, fault.rule) for fault in found] == [(4, "mine")] * 3 + [(12, "mine.guard")]
    for fault, name in zip(found, ("chnage", "stettle", "no-such-guard", "choise"), strict=True):
        assert f"'{name}'" in fault.reason


def test_the_built_in_rules_have_no_loose_ends() -> None:
    assert loose_ends(load_rules()[0]) == []

from __future__ import annotations

from rules.examples import check_readings
from store.tokens import morphemes
from tests.rules.conversations import built_in


def test_every_rule_guard_and_move_holds_its_own_examples() -> None:
    assert [f"{f.rule}: {f.wanted} {f.example!r}" for f in check_readings(built_in(), morphemes)] == []


def test_every_rule_has_an_example_in_its_own_language() -> None:
    for rule in built_in().rules:
        korean = [any("가" <= c <= "힣" for c in example) for example in rule.examples.match]
        assert rule.lang == "any" or all(is_korean == (rule.lang == "ko") for is_korean in korean), rule.id


def test_ids_of_rules_guards_and_moves_are_unique() -> None:
    ids = [reading.id for kind in (built_in().rules, built_in().guards, built_in().moves) for reading in kind]
    assert len(ids) == len(set(ids))

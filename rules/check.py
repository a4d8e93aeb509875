"""Every example of every rule, run: what a rule must find is found, what it must leave alone is left alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from rules.redact import Redactor
from rules.schema import Examples, Origin, Secret
from store.messages import text

Wanted = Literal["match", "miss"]


class Exemplified(Protocol):
    """Any record with examples."""

    @property
    def id(self) -> str: ...
    @property
    def examples(self) -> Examples: ...
    @property
    def origin(self) -> Origin: ...


R = TypeVar("R", bound=Exemplified)


@dataclass(frozen=True, slots=True)
class Failure:
    """An example that came out otherwise than its rule says, and why. `line` is where the rule begins."""

    rule: str
    file: str
    line: int
    example: str
    wanted: Wanted
    reason: str


def check(rules: Iterable[R], wrong: Callable[[R, str, Wanted], str]) -> list[Failure]:
    """The examples for which `wrong(rule, example, wanted)` gives a reason."""
    return [
        Failure(rule.id, rule.origin.file, rule.origin.line, example, wanted, reason)
        for rule in rules
        for wanted, examples in _both(rule.examples)
        for example in examples
        if (reason := wrong(rule, example, wanted))
    ]


def check_secrets(rules: Iterable[Secret], checked: Iterable[Secret] | None = None) -> list[Failure]:
    """A match must be masked as that rule's kind, and by that rule alone too; a miss must pass all the rules unchanged.

    `checked`: those whose examples are run, if not all of them.
    """
    rules = list(rules)
    every = Redactor(rules)

    def wrong(rule: Secret, example: str, wanted: Wanted) -> str:
        masking = every.masking(example)
        if wanted == "miss":
            return text("rules_cli.why_masked", rules=", ".join(secret.id for secret in masking)) if masking else ""
        alone = Redactor([rule])(example)
        return "" if masking and f"[secret:{rule.kind}]" in alone else _unmasked(rule, example)

    return check(rules if checked is None else checked, wrong)


def _unmasked(rule: Secret, example: str) -> str:
    if rule.literals and not any(literal.lower() in example.lower() for literal in rule.literals):
        return text("rules_cli.why_no_literal")
    if not re.search(rule.pattern, example):
        return text("rules_cli.why_no_pattern")
    return text("rules_cli.why_refused", scope=rule.scope, check=rule.check or "-")


def _both(examples: Examples) -> tuple[tuple[Wanted, tuple[str, ...]], ...]:
    return ("match", examples.match), ("miss", examples.miss)

"""Every example of every rule, run: what a rule must find is found, what it must leave alone is left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from rules.redact import Redactor
from rules.schema import Examples, Origin, Secret

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
    """An example that came out otherwise than its rule says. `line` is where the rule begins."""

    rule: str
    file: str
    line: int
    example: str
    wanted: Wanted


def check(rules: Iterable[R], holds: Callable[[R, str, Wanted], bool]) -> list[Failure]:
    """The examples for which `holds(rule, example, wanted)` is false."""
    return [
        Failure(rule.id, rule.origin.file, rule.origin.line, example, wanted)
        for rule in rules
        for wanted, examples in _both(rule.examples)
        for example in examples
        if not holds(rule, example, wanted)
    ]


def check_secrets(rules: Iterable[Secret]) -> list[Failure]:
    """A match must be masked as that rule's kind, and by that rule alone too; a miss must pass all the rules unchanged."""
    rules = list(rules)
    every = Redactor(rules)
    alone = {rule.id: Redactor([rule]) for rule in rules}

    def holds(rule: Secret, example: str, wanted: Wanted) -> bool:
        if wanted == "miss":
            return every(example) == example
        return f"[secret:{rule.kind}]" in alone[rule.id](example) and "[secret:" in every(example)

    return check(rules, holds)


def _both(examples: Examples) -> tuple[tuple[Wanted, tuple[str, ...]], ...]:
    return ("match", examples.match), ("miss", examples.miss)

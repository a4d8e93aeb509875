"""Every rule there is, built-in and the user's: listed, run against its own examples, tried on words."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rules.check import Failure, check_secrets
from rules.cues import Morphemes, RuleSet
from rules.examples import check_readings, loose_ends, readings
from rules.load import Fault, Standing, load, survey
from rules.mine import load_rules
from rules.schema import Family, Guard, Loanword, Move, Record, Rule, Secret, Tag
from store.records import Conversation, Role, SafeText, Turn

KINDS: dict[str, type[Record]] = {
    "guard": Guard,
    "move": Move,
    "secret": Secret,
    "family": Family,
    "tag": Tag,
    "loanword": Loanword,
}
"""What stands in rule files beside the rules themselves, which go by their type."""

TYPES = ("solution", "decision", "pattern", *KINDS)


def listed(user: Path, cache: Path | None) -> tuple[list[tuple[str, Standing[Any]]], list[Fault]]:
    """Every record, in force or switched off, with its type, in the order of `TYPES`; and what is wrong in the user's files."""
    found: list[tuple[str, Standing[Any]]] = []
    faults: list[Fault] = []
    models: dict[str, type[Any]] = {"": Rule, **KINDS}
    for kind, model in models.items():
        standing, wrong = survey(model, user, cache=cache)
        found += [(kind or each.record.type, each) for each in standing]
        faults += wrong
    return sorted(found, key=lambda pair: TYPES.index(pair[0])), list(dict.fromkeys(faults))


def in_force(user: Path, cache: Path | None) -> tuple[RuleSet, list[Secret], list[Fault]]:
    """What mining and masking go by, the user's rules over the built-in ones, and every fault of the user's files."""
    ruleset, faults = load_rules(user, cache)
    secrets, more = load(Secret, user, cache=cache)
    return ruleset, secrets, list(dict.fromkeys([*faults, *more]))


@dataclass(frozen=True, slots=True)
class Checked:
    """How many rules and examples were run, and what came out otherwise than it should."""

    rules: int
    examples: int
    failures: tuple[Failure, ...]
    faults: tuple[Fault, ...]


def checked(user: Path, cache: Path | None, morphemes: Morphemes, only: Container[str] | None = None) -> Checked:
    """The rules in force, the user's over the built-in ones, run against their own examples.

    `only`: the files, by path, whose rules are run and whose faults are told; all where it is None.
    """
    ruleset, secrets, faults = in_force(user, cache)

    def asked(file: object) -> bool:
        return only is None or str(file) in only

    read = [reading for reading in readings(ruleset) if asked(reading.origin.file)]
    masking = [secret for secret in secrets if asked(secret.origin.file)]
    examples = [each.examples for each in read] + [each.examples for each in masking]
    failures = [*check_readings(ruleset, morphemes, read), *check_secrets(secrets, masking)]
    wrong = dict.fromkeys(fault for fault in (*faults, *loose_ends(ruleset)) if asked(fault.path))
    return Checked(
        len(examples), sum(len(each.match) + len(each.miss) for each in examples), tuple(failures), tuple(wrong)
    )


_LABEL = re.compile(r"^(user|assistant):[ \t]*", re.IGNORECASE | re.MULTILINE)


def spoken(words: str, role: Role | None) -> list[tuple[Role, str]]:
    """Who says what: all of it by `role`, or, where none is given, the turns that lines with `user:` and `assistant:` begin."""
    words = words.strip("\n")
    labels = list(_LABEL.finditer(words)) if role is None and _LABEL.match(words) else []
    if not labels:
        return [(role or Role.USER, words)]
    ends = [label.start() for label in labels[1:]] + [len(words)]
    return [
        (Role(label[1].lower()), words[label.end() : end].strip("\n")) for label, end in zip(labels, ends, strict=True)
    ]


def conversation(said: Iterable[tuple[Role, str]], redact: Callable[[str], SafeText]) -> Conversation:
    """Turns as a session of their own, masked as archiving would mask them."""
    turns = tuple(
        Turn(str(number), number, role, "prompt", redact(text)) for number, (role, text) in enumerate(said, 1)
    )
    return Conversation("", SafeText(""), SafeText(""), SafeText(""), turns)

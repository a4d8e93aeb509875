"""Text that is safe to keep: `Redactor` scrubs it, masks the secrets in it, and mints SafeText."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property

from rules.load import load
from rules.plausible import CHECKS, Found
from rules.schema import Secret
from rules.scrub import scrub
from store.records import SafeText

SCRUBBER = 1
"""Raise it when `scrub` or a check changes: text stored before is then redacted again."""

PLACEHOLDER = re.compile(r"\[secret:[a-z0-9][a-z0-9._-]{0,79}\]")
MASKED = "\ufdd0"
"""Stands for a placeholder while rules run, so that none reads its words. A noncharacter, which `scrub` lets through never."""

STEMS = ("pass", "auth", "key", "token", "secret", "cred", "pw", "sig")
"""Pieces of many literals: where a text lacks one, those that hold it need not be looked for."""

LONG_WORD = re.compile(r"[a-z0-9_.-]{20,}")
LONG_NUMBER = re.compile(r"[0-9](?:[ –-]{0,3}[0-9]){12}")

Span = tuple[int, int, int, str]
"""Start, end, the rule's rank, the kind."""


class Redactor:
    """Callable: any text in, safe text out. Twice is the same as once; time is linear in the text's length."""

    def __init__(self, secrets: Iterable[Secret]) -> None:
        self._rules = tuple(_Rule(rank, secret) for rank, secret in enumerate(secrets))
        self._numbers = {rule.rank for rule in self._rules if rule.secret.scope == "number"}
        self._words = _Literals(rule for rule in self._rules if rule.secret.scope == "word")
        self._lines = _Literals(rule for rule in self._rules if rule.secret.scope in ("line", "text"))

    @cached_property
    def version(self) -> str:
        """Differs where the same text could come out differently."""
        fields = {"id", "kind", "literals", "pattern", "inner", "scope", "check"}
        rules = [rule.secret.model_dump_json(include=fields) for rule in self._rules]
        return hashlib.sha256("\n".join((str(SCRUBBER), *rules)).encode()).hexdigest()[:16]

    def __call__(self, text: str) -> SafeText:
        return SafeText(self._masked(scrub(text), []))

    def masking(self, text: str) -> list[Secret]:
        """The rule that names each of the secrets in a text, as often as it masks one."""
        ranks: list[int] = []
        self._masked(scrub(text), ranks)
        return [self._rules[rank].secret for rank in ranks]

    def _masked(self, text: str, ranks: list[int]) -> str:
        """The text with its secrets masked; `ranks` takes down by which rules."""
        placeholders = PLACEHOLDER.findall(text) if "[secret:" in text else []
        work = PLACEHOLDER.sub(MASKED, text) if placeholders else text
        # What a value stands beside can change once its neighbour is masked, so go on until nothing more is found.
        # Every round leaves less; the bound is for text that someone made to be slow.
        for _ in range(16):
            spans = _apart(list(self._spans(work)))
            if not spans:
                break
            ranks += [rank for _, _, rank, _ in spans]
            work, placeholders = _replaced(work, spans, placeholders)
        waiting = iter(placeholders)
        return re.sub(MASKED, lambda _: next(waiting), work) if placeholders else work

    def _spans(self, text: str) -> Iterator[Span]:
        low = _lower(text)
        for rank in sorted(self._ranks(low)):
            yield from self._rules[rank].spans(text, low)

    def _ranks(self, low: str) -> set[int]:
        """The rules that may find something."""
        words = "\n".join(LONG_WORD.findall(low))
        ranks = self._lines.ranks(low) | (self._words.ranks(words) if words else set())
        return ranks | self._numbers if self._numbers and LONG_NUMBER.search(low) else ranks


class _Literals:
    """Which rules have a literal in a text. Nearly every text has none, so this is where the time goes."""

    def __init__(self, rules: Iterable[_Rule]) -> None:
        self._ranks: dict[str, set[int]] = {}
        for rule in rules:
            for literal in rule.literals or ("",):
                self._ranks.setdefault(literal, set()).add(rule.rank)
        self._always = self._ranks.pop("", set())
        for stem in STEMS:
            if sum(stem in literal for literal in self._ranks) > 1:
                self._ranks.setdefault(stem, set())
        # A literal that holds another is looked for only where the other one is.
        self._longer: dict[str, list[str]] = {}
        for literal in self._ranks:
            held = min((other for other in self._ranks if other in literal), key=len)
            self._longer.setdefault(held, []).append(literal)
        self._ascii = [literal for literal in self._longer if literal.isascii()]
        self._other = [literal for literal in self._longer if not literal.isascii()]

    def ranks(self, low: str) -> set[int]:
        first = self._ascii if low.isascii() else self._ascii + self._other
        present = [held for held in first if held in low]
        return self._always | {
            rank
            for held in present
            for literal in self._longer[held]
            if literal in low
            for rank in self._ranks[literal]
        }


class _Rule:
    """A secret rule at work. Patterns compile when a text first needs them: all of them cost 0.2 s, most texts need none."""

    def __init__(self, rank: int, secret: Secret) -> None:
        self.rank = rank
        self.secret = secret
        self.literals = tuple(literal.lower() for literal in secret.literals)
        self._check = CHECKS[secret.check]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.secret.pattern)

    @cached_property
    def _inner(self) -> re.Pattern[str]:
        return re.compile(self.secret.inner)

    def spans(self, text: str, low: str) -> Iterator[Span]:
        for start, end in self._zones(low):
            for match in self._pattern.finditer(text, start, end):
                yield from self._secrets(match)

    def _zones(self, low: str) -> Iterable[tuple[int, int]]:
        if self.secret.scope == "text" or not self.literals:
            return [(0, len(low))]
        return sorted({zone for literal in self.literals for zone in _lines_with(literal, low)})

    def _secrets(self, match: re.Match[str]) -> Iterator[Span]:
        if not self.secret.inner:
            return self._values(match)
        return (span for part in self._inner.finditer(match.string, *match.span()) for span in self._values(part))

    def _values(self, match: re.Match[str]) -> Iterator[Span]:
        names = [name for name in match.re.groupindex if name.startswith("secret")]
        for start, end in [match.span(name) for name in names] or [match.span()]:
            found = Found(match.string, match.start(), start, end)
            if start < end and found.value.strip(MASKED) and self._check(found):
                yield start, end, self.rank, self.secret.kind


@cache
def default() -> Redactor:
    """The redactor of the built-in rules."""
    secrets, _ = load(Secret)
    return Redactor(secrets)


def _lower(text: str) -> str:
    """Lower case of the same length, so that places in it are places in the text."""
    low = text.lower()
    # U+0130 is the one character that lower case makes longer.
    return low if len(low) == len(text) else text.replace("\u0130", "i").lower()


def _lines_with(literal: str, low: str) -> Iterator[tuple[int, int]]:
    at = low.find(literal)
    while at >= 0:
        end = low.find("\n", at)
        end = len(low) if end < 0 else end
        yield low.rfind("\n", 0, at) + 1, end
        at = low.find(literal, end)


def _apart(spans: list[Span]) -> list[Span]:
    """Spans that do not overlap; the rule of the lowest rank names the kind of those that did."""
    apart: list[Span] = []
    for start, end, rank, kind in sorted(spans):
        if apart and start < apart[-1][1]:
            first, last, known, named = apart[-1]
            rank, kind = min((known, named), (rank, kind))
            apart[-1] = (first, max(last, end), rank, kind)
        else:
            apart.append((start, end, rank, kind))
    return apart


def _replaced(text: str, spans: list[Span], placeholders: list[str]) -> tuple[str, list[str]]:
    """The text with each span masked, and every mask's placeholder in order. Masks inside a span go with it."""
    pieces: list[str] = []
    named: list[str] = []
    at = used = 0
    for start, end, _, kind in spans:
        before = text[at:start]
        passed = used + before.count(MASKED)
        named += [*placeholders[used:passed], f"[secret:{kind}]"]
        used = passed + text.count(MASKED, start, end)
        pieces += [before, MASKED]
        at = end
    return "".join((*pieces, text[at:])), named + placeholders[used:]

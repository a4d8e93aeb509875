"""Rules made ready to run, and the question they answer: does this one speak of this sentence?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from rules.predicates import Morph, Predicate, predicates
from rules.schema import FAMILY, Cue, Family, Guard, Loanword, Move, Reading, Rule, Tag, Verb
from rules.sentences import CODE, QUOTED

Morphemes = Callable[[str], Sequence[Morph]]

_CLOSING_ASIDE = re.compile(r"(?<=[가-힣.!?])\s*\([^()]{1,120}\)\.?$")
_HANGUL = re.compile("[가-힣]")
_LATIN = re.compile(rf"(?!{CODE}|{QUOTED})[a-zA-Z]+")


@lru_cache(maxsize=2048)
def languages(said: str) -> tuple[bool, bool]:
    """(Korean, English): which cues can speak of a sentence. Names in Latin letters make a Korean one no English one."""
    hangul = len(_HANGUL.findall(said))
    latin = sum(len(word) for word in _LATIN.findall(said))
    return hangul > 0, latin > hangul


class Reader:
    """Sentences with their predicates. A sentence is given to the morpheme analyser once, and only if a rule asks."""

    def __init__(self, morphemes: Morphemes) -> None:
        self._morphemes = morphemes
        self._known: dict[str, tuple[Predicate, ...]] = {}

    def predicates(self, said: str) -> tuple[Predicate, ...]:
        known, whole = self._known.get(said), said
        if known is None:
            # An aside in brackets after the verb does not end the sentence.
            said = _CLOSING_ASIDE.sub("", said) if said.endswith((")", ").")) else said
            asks = said.rstrip(" )\"'").endswith(("?", "？"))
            known = self._known[whole] = predicates(self._morphemes(said), asks=asks) if _HANGUL.search(said) else ()
        return known


@dataclass(frozen=True, slots=True)
class Hit:
    """A reading that spoke of a sentence. `cues` name what made it speak: `rule id/n/word`."""

    reading: Reading
    cues: tuple[str, ...]

    @property
    def fired(self) -> list[tuple[int, str]]:
        """Each cue by its number, with the words it fits."""
        return [(int(number), words) for _, number, words in (cue.split("/", 2) for cue in self.cues)]


@dataclass(frozen=True, slots=True)
class Silence:
    """A reading that does not speak of a sentence. `by`: its field that decides so; `words`: those that fit a `forbids`."""

    reading: Reading
    by: str
    words: str = ""


class Test:
    """A cue made ready."""

    __slots__ = ("_lemmas", "_verb", "name", "pattern")

    def __init__(self, cue: Cue, name: str, families: dict[str, Family]) -> None:
        self.name = name
        self.pattern: re.Pattern[str] | None = None
        self._verb: Verb | None = None
        self._lemmas: frozenset[str] = frozenset()
        if isinstance(cue, Verb):
            self._verb = cue
            self._lemmas = frozenset(_lemmas(cue.lemma, families))
        else:
            self.pattern = re.compile(_spelled(cue, families), re.IGNORECASE)

    def __call__(self, said: str, reader: Reader) -> str:
        """The words that fit, or ""."""
        if self.pattern:
            match = self.pattern.search(said)
            return (match[0] or " ") if match else ""
        for predicate in reader.predicates(said):
            if self._fits(predicate):
                return predicate.lemma
        return ""

    def _fits(self, is_: Predicate) -> bool:
        verb = self._verb
        assert verb is not None
        return (
            (not self._lemmas or is_.lemma in self._lemmas)
            and (not verb.mood or is_.mood in verb.mood)
            and (not verb.voice or is_.voice in verb.voice)
            and (verb.past is None or is_.past == verb.past)
            and (verb.negated is None or is_.negated == verb.negated)
            and (verb.final is None or is_.final == verb.final)
        )


def _lemmas(names: Iterable[str], families: dict[str, Family]) -> Iterator[str]:
    for name in names:
        reference = FAMILY.fullmatch(name)
        if reference:
            family = families.get(reference[1])
            yield from family.ko if family else ()
        else:
            yield name


def _spelled(pattern: str, families: dict[str, Family]) -> str:
    """`<change>` becomes the English words of the family; an unknown family never matches."""

    def words(match: re.Match[str]) -> str:
        family = families.get(match[1])
        return f"(?:{'|'.join(family.en)})" if family and family.en else "(?!)"

    return FAMILY.sub(words, pattern)


class Matcher:
    """A reading made ready: whose sentences, which cues."""

    def __init__(self, reading: Reading, families: dict[str, Family], without: frozenset[str] = frozenset()) -> None:
        self.reading = reading
        self._cues = [Test(cue, f"{reading.id}/{n}", families) for n, cue in enumerate(reading.cues)]
        self._needs = [Test(cue, "", families) for cue in reading.needs]
        self._forbids = [Test(cue, "", families) for cue in reading.forbids]
        self._without = without
        self._any = _side_by_side([test.pattern for test in self._cues])

    def __call__(self, said: str, role: str, reader: Reader) -> Hit | None:
        return self.speaks(said, reader) if self.reads(role, *languages(said)) else None

    def reads(self, role: str, korean: bool, english: bool) -> bool:
        reading = self.reading
        if reading.role not in ("any", role):
            return False
        return reading.lang == "any" or (korean if reading.lang == "ko" else english)

    def speaks(self, said: str, reader: Reader) -> Hit | None:
        """`reads` answered with yes."""
        # Most sentences fit no cue of a reading: one search over all its patterns settles that.
        if self._any is not None and not self._any.search(said):
            return None
        fired = []
        for test in self._cues:
            word = test(said, reader)
            if word and test.name not in self._without:
                fired.append(f"{test.name}/{word.strip().lower()}")
        if not fired or not all(test(said, reader) for test in self._needs):
            return None
        return None if any(test(said, reader) for test in self._forbids) else Hit(self.reading, tuple(fired))

    def silence(self, said: str, role: str, reader: Reader) -> Silence | None:
        """What keeps the reading from speaking of a sentence, for showing; None where it speaks."""
        if not self.reads(role, *languages(said)):
            return Silence(self.reading, "role" if self.reading.role not in ("any", role) else "lang")
        quiet = self._any is not None and not self._any.search(said)
        if quiet or not any(test(said, reader) for test in self._cues if test.name not in self._without):
            return Silence(self.reading, "cues")
        for number, test in enumerate(self._needs):
            if not test(said, reader):
                return Silence(self.reading, f"needs[{number}]")
        for number, test in enumerate(self._forbids):
            if word := test(said, reader):
                return Silence(self.reading, f"forbids[{number}]", word.strip().lower())
        return None


def _side_by_side(cues: Sequence[re.Pattern[str] | None]) -> re.Pattern[str] | None:
    """One pattern for all the cues; None where one is a verb, counts or names groups, or has flags of its own."""
    patterns = [cue.pattern for cue in cues if cue is not None and not cue.groups]
    if len(patterns) < len(cues):
        return None
    try:
        return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)
    except re.error:
        return None


@dataclass(frozen=True)
class RuleSet:
    """Everything mining knows of language: rules, guards, moves, families of words, tags and loanwords."""

    rules: tuple[Rule, ...]
    guards: tuple[Guard, ...] = ()
    moves: tuple[Move, ...] = ()
    families: tuple[Family, ...] = ()
    tags: tuple[Tag, ...] = ()
    loanwords: tuple[Loanword, ...] = ()
    without: frozenset[str] = field(default=frozenset())
    """Cues that are switched off, as `rule id/n`, to measure what rests on them."""

    @cached_property
    def _by_id(self) -> dict[str, Family]:
        return {family.id: family for family in self.families}

    def matcher(self, reading: Reading) -> Matcher:
        return Matcher(reading, self._by_id, self.without)

    def for_sentence(self, kind: str, role: str, korean: bool, english: bool) -> tuple[Matcher, ...]:
        """The matchers of a kind (rule, guard) that read such a sentence."""
        every = self.rule_matchers if kind == "rule" else self.guard_matchers
        return tuple(matcher for matcher in every if matcher.reads(role, korean, english))

    @cached_property
    def rule_matchers(self) -> tuple[Matcher, ...]:
        return tuple(self.matcher(rule) for rule in self.rules)

    @cached_property
    def guard_matchers(self) -> tuple[Matcher, ...]:
        return tuple(self.matcher(guard) for guard in self.guards if guard.effect in ("veto", "lower"))

    @cached_property
    def turn_matchers(self) -> tuple[Matcher, ...]:
        return tuple(self.matcher(guard) for guard in self.guards if guard.effect == "turn")

    @cached_property
    def move_matchers(self) -> dict[str, tuple[Matcher, ...]]:
        """By move."""
        moves = dict.fromkeys(move.move for move in self.moves)
        return {name: tuple(self.matcher(move) for move in self.moves if move.move == name) for name in moves}

    @cached_property
    def cut(self) -> tuple[re.Pattern[str], ...]:
        """Passages that no one said, whatever the turn."""
        # Each by itself: two patterns may name their groups alike.
        return tuple(
            re.compile(cue, re.IGNORECASE | re.DOTALL)
            for guard in self.guards
            if guard.effect == "cut"
            for cue in guard.cues
            if isinstance(cue, str)
        )

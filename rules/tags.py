"""Tags: how a finding is labelled, how a tag is written, and which words mean the same tag.

Hot paths read the lexicon as the JSON that `compile_lexicon` gives; YAML is read when mining.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rules.cues import RuleSet
from store.records import Conversation

MOST = 7
LONGEST = 40


@dataclass(frozen=True)
class Lexicon:
    """names: every other name of a tag, normalised, and the tag. broad: tags that say little."""

    names: Mapping[str, str]
    broad: frozenset[str]

    def others(self) -> dict[str, list[str]]:
        """The names of each tag."""
        found: dict[str, list[str]] = {}
        for name, tag in self.names.items():
            found.setdefault(tag, []).append(name)
        return found


@lru_cache(maxsize=8)
def _lexicon(key: tuple[tuple[str, tuple[str, ...], bool], ...]) -> Lexicon:
    names: dict[str, str] = {}
    for tag, others, _ in key:
        for name in (tag, *others):
            names.setdefault(normalise(name), tag)
    return Lexicon(names, frozenset(tag for tag, _, broad in key if broad))


def lexicon(ruleset: RuleSet) -> Lexicon:
    """The tags of a rule set, and its loanwords as names of their Latin form."""
    tags = tuple((tag.id, tag.names, tag.broad) for tag in ruleset.tags)
    loanwords = tuple((word.id, word.ko, False) for word in ruleset.loanwords)
    return _lexicon((*tags, *loanwords))


def compile_lexicon(source: Lexicon) -> dict[str, Any]:
    """The lexicon as JSON values, for paths that may not read YAML."""
    return {"names": dict(sorted(source.names.items())), "broad": sorted(source.broad)}


def compiled(values: Mapping[str, Any]) -> Lexicon:
    """The lexicon that `compile_lexicon` wrote."""
    return Lexicon(dict(values["names"]), frozenset(values["broad"]))


_EDGES = re.compile(r"^[\s#\"'`.,;:/\\()\[\]{}-]+|[\s\"'`.,;:/\\()\[\]{}-]+$")


def normalise(tag: str) -> str:
    """One spelling of a tag: NFKC, lower case, no blanks at the ends, a hyphen for those inside. `DB` and `ｄｂ` are one."""
    text = unicodedata.normalize("NFKC", tag).casefold()
    return unicodedata.normalize("NFC", re.sub(r"[\s_]*\s[\s_]*", "-", _EDGES.sub("", text)))


def expand(words: Iterable[str], source: Lexicon) -> set[str]:
    """The words as tags, and every other name of each: 캐시 gives cache too, and cache 캐시."""
    found: set[str] = set()
    others = source.others()
    for word in words:
        name = normalise(word)
        if not name:
            continue
        tag = source.names.get(name, name)
        found |= {name, tag, *others.get(tag, ())}
    return found


_CODE_SPAN = re.compile(r"`([^`\n]{2,60})`")
_NAME = re.compile(
    r"(?<![\w./-])(?:[A-Za-z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+|[a-z][a-z0-9]*(?:_[a-z0-9]+)+"
    r"|[\w-]+\.(?:py|ts|tsx|js|jsx|go|rs|java|kt|toml|yaml|yml|json|md|sql|sh|css|html|lock|env|svelte|vue|c|cpp|h)"
    r"|[A-Z]{2,}[0-9]*|[A-Z][a-zA-Z]*(?:Error|Exception))(?![\w/])"
)
_IDENTIFIER = re.compile(r"^[@A-Za-z_.$][\w.$@/-]{1,39}(?:\(\))?$")
_TERM = re.compile(r"[A-Za-z][A-Za-z0-9+#.-]*[A-Za-z0-9+#]|[가-힣]+")


def tags_for(texts: Sequence[str], conversation: Conversation, source: Lexicon) -> tuple[str, ...]:
    """At most seven tags of a finding, those that tell it apart from the rest of its session first.

    Known words by the lexicon (캐시 is `cache`), and the identifiers and file names that its sentences hold.
    """
    said = unicodedata.normalize("NFKC", " \n ".join(texts))
    whole = _counted(conversation)
    ranked: dict[str, float] = {}
    for position, name in enumerate(_identifiers(said)):
        tag = normalise(name)
        if 2 <= len(tag) <= LONGEST:
            ranked.setdefault(source.names.get(tag, tag), 2.0 - 0.01 * position - 0.02 * whole[tag])
    for position, tag in enumerate(_known(said, source)):
        weight = 0.2 if tag in source.broad else 1.6 - 0.01 * position
        ranked[tag] = max(ranked.get(tag, 0.0), weight - 0.02 * whole[tag])
    project = normalise(conversation.project.rstrip("/").rsplit("/", 1)[-1])
    best = sorted((tag for tag in ranked if tag != project), key=lambda tag: (-ranked[tag], tag))
    return tuple(best[:MOST])


def _counted(conversation: Conversation) -> Counter[str]:
    """How often each word stands in the session: what every turn speaks of tells findings apart least."""
    return _count(tuple(str(turn.text) for turn in conversation.turns))


@lru_cache(maxsize=2)
def _count(turns: tuple[str, ...]) -> Counter[str]:
    return Counter(word.lower() for text in turns for word in set(_TERM.findall(text)))


def _identifiers(said: str) -> list[str]:
    spans = [span for span in _CODE_SPAN.findall(said) if _IDENTIFIER.match(span)]
    return list(dict.fromkeys([*(span.removesuffix("()") for span in spans), *_NAME.findall(said)]))


LONGEST_NAME = 8
_PARTICLE = re.compile(r"(?:은|는|이|가|을|를|에|의|로|으로|와|과|도|만|에서|에는|부터|까지)?$")


def _ends(stem: str, word: str) -> bool:
    """The name ends where the word does, save for a particle. A long name may be the first half of a compound."""
    return len(stem) > 1 or _PARTICLE.match(word, len(stem)) is not None


def _known(said: str, source: Lexicon) -> list[str]:
    """Tags whose names stand in the text. A Korean name may have particles after it."""
    found: dict[str, None] = {}
    for word in _TERM.findall(said):
        name = normalise(word)
        if "가" <= name[0] <= "힣":
            stems = (name[:end] for end in range(min(len(name), LONGEST_NAME), 0, -1))
            stem = next((stem for stem in stems if stem in source.names and _ends(stem, name)), None)
            if stem:
                found.setdefault(source.names[stem])
        elif name in source.names:
            found.setdefault(source.names[name])
    return list(found)

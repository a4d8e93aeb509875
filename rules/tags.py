"""Tags: how a finding is labelled, how a tag is written, and which words mean the same tag.

Hot paths read the lexicon as the JSON that `compile_lexicon` gives; YAML is read when mining.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rules.cues import RuleSet
from rules.schema import Loanword, Tag
from store.records import Conversation

MOST = 7
LONGEST = 40


@dataclass(frozen=True)
class Lexicon:
    """names: every other name of a tag, normalised, and the tag. kinds: names that are tags beside the one they are of.

    broad: tags that say little. statements: (tag, pattern) of what shows a tag at work.
    """

    names: Mapping[str, str]
    broad: frozenset[str]
    kinds: frozenset[str] = frozenset()
    statements: tuple[tuple[str, str], ...] = ()


@lru_cache(maxsize=8)
def _lexicon(tags: tuple[Tag, ...], loanwords: tuple[Loanword, ...]) -> Lexicon:
    names: dict[str, str] = {}
    for tag in tags:
        for name in (tag.id, *tag.names, *tag.kinds):
            names.setdefault(normalise(name), tag.id)
    for word in loanwords:
        for name in (word.id, *word.ko):
            names.setdefault(normalise(name), word.id)
    return Lexicon(
        names,
        frozenset([*(tag.id for tag in tags if tag.broad), *(word.id for word in loanwords if word.broad)]),
        frozenset(normalise(kind) for tag in tags for kind in tag.kinds),
        tuple((tag.id, pattern) for tag in tags for pattern in tag.statements),
    )


def lexicon(ruleset: RuleSet) -> Lexicon:
    """The tags of a rule set, and its loanwords as names of their Latin form."""
    return _lexicon(ruleset.tags, ruleset.loanwords)


def compile_lexicon(source: Lexicon) -> dict[str, Any]:
    """The lexicon as JSON values, for paths that may not read YAML."""
    return {
        "names": dict(sorted(source.names.items())),
        "broad": sorted(source.broad),
        "kinds": sorted(source.kinds),
        "statements": [list(pair) for pair in source.statements],
    }


def compiled(values: Mapping[str, Any]) -> Lexicon:
    """The lexicon that `compile_lexicon` wrote."""
    return Lexicon(
        dict(values["names"]),
        frozenset(values["broad"]),
        frozenset(values.get("kinds", ())),
        tuple((tag, pattern) for tag, pattern in values.get("statements", ())),
    )


_EDGES = re.compile(r"^[\s#\"'`.,;:/\\()\[\]{}-]+|[\s\"'`.,;:/\\()\[\]{}-]+$")


def normalise(tag: str) -> str:
    """One spelling of a tag: NFKC, lower case, no blanks at the ends, a hyphen for those inside. `DB` and `ｄｂ` are one.

    What is normalised stays as it is when it is normalised again.
    """
    text = tag
    for _ in range(2):  # Folding undoes NFKC and NFKC brings back what folds; twice is enough (Unicode, D146).
        text = unicodedata.normalize("NFKC", text.casefold())
    return _EDGES.sub("", re.sub(r"[\s_]*\s[\s_]*", "-", text))


_CODE_SPAN = re.compile(r"`([^`\n]{2,60})`")
_FILE = r"(?:[\w.@-]+/)*[\w-][\w.-]*\.(?:py|ts|tsx|js|jsx|mjs|go|rs|java|kt|rb|php|swift|toml|yaml|yml|json|jsonl|md|sql|sh|css|scss|html|lock|env|svelte|vue|c|cpp|h|ini|cfg|tf|proto|ipynb|csv)"
_NAME = re.compile(
    rf"(?<![\w./-])(?:{_FILE}|[A-Za-z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+|_?[a-z][a-z0-9]*(?:_[a-z0-9]+)+"
    r"|[a-z]\w*(?:\.[a-z_]\w+)+(?=\()|[A-Z]{2,}[0-9]*(?!-\d)|[A-Z][a-zA-Z]*(?:Error|Exception)|[A-Z]{1,4}\d{3,5})(?![\w/])"
)
_IDENTIFIER = re.compile(r"^[@A-Za-z_.$][\w.$@/-]{1,39}(?:\(\))?$")
_STRUCTURE = re.compile(r"[a-z0-9][._:$-]\w|[a-z][A-Z]|[A-Z]{2,}_|_[A-Za-z]|\(\)$|^@\w|[A-Z][a-z]+[A-Z]|[A-Za-z]\d")
"""What tells a name in a program from a word: `snake_case`, `camelCase`, `a.b`, `call()`, `utf8`."""
_CAPITALS = re.compile(r"[A-Z]{2,}[0-9]*")
_HASH = re.compile(r"(?=.*\d)[0-9a-f]{7,40}$|[0-9a-f]{7,40}\.+$")
_TERM = re.compile(r"[A-Za-z][A-Za-z0-9+#.-]*[A-Za-z0-9+#]|[가-힣]+")

SHOUTED = frozenset(
    re.findall(
        r"\S+",
        """
        SELECT INSERT UPDATE DELETE FROM WHERE INTO VALUES SET JOIN LEFT RIGHT INNER OUTER ON USING GROUP ORDER BY HAVING LIMIT
        OFFSET UNION ALL DISTINCT AS AND OR NOT NULL IN IS EXISTS BETWEEN CASE WHEN THEN ELSE END CREATE ALTER DROP TABLE
        COLUMN VIEW TRIGGER PRIMARY FOREIGN KEY UNIQUE CHECK DEFAULT REFERENCES CASCADE CONSTRAINT BEGIN COMMIT ROLLBACK
        IMMEDIATE DEFERRED EXCLUSIVE TRANSACTION CONFLICT DO NOTHING RETURNING IF ADD TO WITH FOR LOCK SHARE ONLY ASC DESC
        IGNORE REPLACE COUNT SUM MIN MAX AVG TRUE FALSE TEXT INTEGER ECHO CD LS RM CP MV SUDO EXPORT FI DONE ELIF
        GET POST PUT PATCH HEAD OPTIONS OK YES NO NEVER ALWAYS MUST SHOULD NOTE TODO FIXME WARN WARNING INFO DEBUG ERROR
        FATAL FAIL PASS FYI WIP TBD PR BTW LGTM README NEW OLD BEFORE AFTER NOW ENABLE DISABLE EXPIRED PENDING ACTIVE
        CODE FILE STEP PHASE BUG FIX FIXED UNKNOWN MAIN THE THIS THAT ANY ONE BOTH
        """,
    )
)
"""Words in capitals that are keywords of SQL and shells, states, verbs of HTTP or plain emphasis, and no names."""


def tags_for(texts: Sequence[str], conversation: Conversation, source: Lexicon) -> tuple[str, ...]:
    """At most seven tags of a finding, those that are rarest in its session first.

    Known words by the lexicon (캐시 is `cache`, SQLite `sqlite` and `database`), and the identifiers, error names and
    file names that its sentences hold. A broad tag stands only where no other does.
    """
    said = unicodedata.normalize("NFKC", " \n ".join(texts))
    whole = _counted(conversation)
    project = normalise(conversation.project.rstrip("/").rsplit("/", 1)[-1])
    ranked: dict[str, float] = {}
    for position, name in enumerate(_identifiers(said, source)):
        tag = normalise(name)
        if 2 <= len(tag) <= LONGEST and tag not in source.broad:
            tag = tag if tag in source.kinds else source.names.get(tag, tag)
            ranked.setdefault(tag, 1.2 - 0.01 * position - _common(whole[name.lower()]))
    for position, (tag, word) in enumerate(_known(said, source)):
        ranked.setdefault(tag, 1.3 - 0.01 * position - _common(whole[word.lower()]))
    found = [tag for tag in ranked if tag != project]
    best = sorted((tag for tag in found if tag not in source.broad), key=lambda tag: (-ranked[tag], tag))
    return tuple(best[:MOST]) or tuple(sorted(found, key=lambda tag: (-ranked[tag], tag))[:1])


def _common(times: int) -> float:
    """What a word loses by standing in many turns of its session."""
    return 0.2 * math.log2(1 + times)


def _counted(conversation: Conversation) -> Counter[str]:
    """How often each word stands in the session: what every turn speaks of tells findings apart least."""
    return _count(tuple(str(turn.text) for turn in conversation.turns))


@lru_cache(maxsize=2)
def _count(turns: tuple[str, ...]) -> Counter[str]:
    return Counter(word.lower() for text in turns for word in set(_TERM.findall(text)))


def _identifiers(said: str, source: Lexicon) -> list[str]:
    spans = [span for span in _CODE_SPAN.findall(said) if _IDENTIFIER.match(span) and _STRUCTURE.search(span)]
    bare = _CODE_SPAN.sub(" ", said)
    names = dict.fromkeys(_short(name.removesuffix("()")) for name in (*spans, *_NAME.findall(bare)))
    kept = [name for name in names if name and not _HASH.match(name) and not _shouts(name, source)]
    # `a_test` beside `a_test.go` is the same thing once more.
    return [name for name in kept if not any(other.startswith(f"{name}.") for other in kept)]


def _short(name: str) -> str:
    """A path by its file name; a path to no file tells where something lay, not what it was about."""
    if name.count("/") > 1 or name.startswith((".", "/")):
        name = name.rsplit("/", 1)[-1]
        return name if _STRUCTURE.search(name) else ""
    return name


def _shouts(name: str, source: Lexicon) -> bool:
    return bool(_CAPITALS.fullmatch(name)) and name in SHOUTED and normalise(name) not in source.kinds


LONGEST_NAME = 8
_PARTICLE = re.compile(r"(?:은|는|이|가|을|를|에|의|로|으로|와|과|도|만|에서|에는|부터|까지)?$")


def _ends(stem: str, word: str) -> bool:
    """The name ends where the word does, save for a particle. A long name may be the first half of a compound."""
    return len(stem) > 1 or _PARTICLE.match(word, len(stem)) is not None


def _known(said: str, source: Lexicon) -> list[tuple[str, str]]:
    """(tag, word) of the names that stand in the text. A Korean name may have particles after it."""
    found: dict[str, str] = {}
    for word in _TERM.findall(said):
        if word in SHOUTED:
            continue
        name = normalise(word)
        if "가" <= name[0] <= "힣":
            stems = (name[:end] for end in range(min(len(name), LONGEST_NAME), 0, -1))
            name = next((stem for stem in stems if stem in source.names and _ends(stem, word)), "")
        if name in source.kinds:
            found.setdefault(name, word)
        if name in source.names:
            found.setdefault(source.names[name], word)
    for tag, pattern in source.statements:
        if re.search(pattern, said):
            found.setdefault(tag, "")
    return list(found.items())

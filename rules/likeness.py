"""How much two sentences share: words that name things, and letters."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_WORD = re.compile(r"[A-Za-z_][\w./-]*[\w]|[가-힣]{2,}|\d+")
_PARTICLES = re.compile(
    r"(?:으로부터|에서는|에게서|이라는|이라고|에서|에게|으로|부터|까지|처럼|보다|마다|조차|라는|이나|이란|은|는|이|가|을|를|에|의|로|와|과|도|만|나)$"
)
_COMMON = frozenset(
    re.findall(
        r"\S+",
        """
        the and for that this with from not now use used using when was were are is it its can will all but into has
        have had you your our his her they them then than also only just so to of in on at by be as an or if we no do
        does did me my we us let should would could must need needs want like may might one two three four all both each
        every any some more most other same here there what which how why who when about after before because since
        fix fixed add added change changed update updated make makes made remove removed place places thing things
        issue problem cause root bug error file files code 이제 현재 위해 대한 모든 경우 때문 이미 바로 해당 다시 그냥 이것 그것 저것 하는 있는 없는 같은 수정 변경 추가 적용
        문제 원인 해결 하자 가자 쓰자 두자 해줘 해주세요 합시다 갑시다 바꾸자 결정 확정 그럼 let lets please actually
        """,
    )
)
"""Words that tell nothing about what a sentence is about."""


@lru_cache(maxsize=8192)
def words(text: str) -> frozenset[str]:
    """The words of a text that can tell what it is about, Korean particles taken off."""
    found = set()
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).lower()):
        stem = _PARTICLES.sub("", word) if "가" <= word[0] <= "힣" and len(word) > 2 else word
        if len(stem) > 1 or stem.isdigit():
            found.add(stem)
    return frozenset(found - _COMMON)


def grams(text: str) -> frozenset[str]:
    """Runs of three letters, without blanks, marks and case."""
    kept = "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())
    return frozenset(kept[i : i + 3] for i in range(len(kept) - 2)) or frozenset({kept})


def containment(one: frozenset[str], other: frozenset[str]) -> float:
    """Share of the smaller set that the other holds, 0 to 1."""
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0

"""Whether a sentence says by itself what it is about, or points at something said elsewhere: "document it", 이대로 가자."""

from __future__ import annotations

import re
from functools import lru_cache

from rules.likeness import words
from rules.sentences import CODE

_ENGLISH = re.compile(
    r"\b(?:it(?:'s|'ll)?|them|they(?:'re)?)\b"
    r"|\b(?:this|these|those)\b(?=\s*(?:$|[.,;:!?)]|(?:is|are|was|were|should|would|could|will|can|must|has|have|needs?|does"
    r"|in|on|at|for|to|from|with|by|as|and|or|but|so|now|too|again|instead|first|then|here|there|please|directly|properly"
    r"|also|either|yet|automatically|entirely|everywhere|manually|because|when|before|after)\b))"
    r"|(?<!so )(?<!such )\bthat\b(?=\s*(?:$|[.,;:!?)]|(?:in|on|for|with|and|or|so|now|too|again|instead|first|then|here|there"
    r"|please|directly|properly|either|yet|automatically|entirely|everywhere|manually|as well|up|out)\b))"
    r"|^(?:that|this)\b(?='?s?\s+(?:is|was|would|should|will|makes?|means?|way)\b|'s\b)"
    r"|\b(?:this|that|these|those|the (?:above|same|other|former|latter))\s+(?:change|stuff|thing|things|way|one|ones|part|approach|fix|issue|problem|case|point|idea"
    r"|edge cases?|cases|issues|changes|comment|suggestion|branch|step|task)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"^(?:(?:ok(?:ay)?|yes|yeah|sure|good (?:point|call|catch|idea)|got it|you'?re right|understood|makes sense|done)[\s,.!:—–-]+)+",
    re.IGNORECASE,
)
_SUBJECTLESS = re.compile(
    r"^(?:and |but |also |so |it )*(?:should|must|shouldn't|mustn't|needs? to|has to|ought to) (?:not )?(?:be|have|use|do|go|stay|look|match)\b"
    r"|.*\bfor #?\d{1,2}(?=\s*(?:$|[,.:]|(?:we|you|i|let's|drop|use|keep|go|do|both)\b))",
    re.IGNORECASE,
)
"""A requirement of nothing, "should be red", or of an item by its number alone, "for 3 keep the old name"."""
_EMPTY_IT = re.compile(
    r"\bit(?:'s| is| was| would be)? (?:simple|short|minimal|clean|possible|clear|easy|easier|important|better|fine|best|necessary|ok|hard|harder|makes sense|turns out|seems)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[,;:—]| - |\b(?:and|so|if|when|whenever|because|since|but|as|before|after|then|which|where|while|until|unless|that|to|instead of)\b|\s(?:we|you|i)\s",
    re.IGNORECASE,
)
_KOREAN = re.compile(
    r"(?<![가-힣])(?:(?:이|그|저|요)(?:거|걸|건|게|것)(?:은|이|을|도|만|들|로|으로)?|(?:이|그|저)렇게|이대로|여기|거기|이쪽|그쪽|이런 식|그런 식"
    r"|(?:이|그|위|아래)(?:의)? ?(?:부분|방식|방법|내용|문제|작업|상태|방향|현상|것|사항|경우|계획|제안)|방금|아까|나머지)(?=[\s가-힣.,!?]|$)"
)
_VERBS = re.compile(
    r"\b(?:make|do|add|use|keep|put|set|let|get|have|want|need|like|document|update|change|remove|drop|call|say|said|please|maybe"
    r"|just|also|only|yes|yeah|ok|okay|sure|now|again|here|there|can|could|should|would|will|must|might|may|about|why|how|what|which|who"
    r"|think|know|see|look|try|move|leave|turn|give|take|show|start|stop|merge|close|fix|first|more|some|any|one|actually|really|still|always|never"
    r"|docs?|documentation|comments?|notes?|tests?|section|message)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def dangles(said: str) -> bool:
    """A pronoun stands for something that no earlier clause of the sentence names."""
    said = _ASIDE.sub("", said)
    if _SUBJECTLESS.match(said):
        return True
    for match in _ENGLISH.finditer(said):
        if not _EMPTY_IT.match(said, match.start()) and not _named_before(said[: match.start()]):
            return True
    return any(len(words(said[: match.start()])) < 2 for match in _KOREAN.finditer(said))


def _named_before(before: str) -> bool:
    """An earlier clause holds a word that can be a name. The subject of a verb is not what its own object points at."""
    if CODE in before:
        return True
    ends = [match.start() for match in _CLAUSE.finditer(before)]
    return bool(ends) and any(not word.isdigit() for word in words(_VERBS.sub(" ", before[: ends[-1]])))

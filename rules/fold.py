"""Findings of one session brought together: restatements folded, what was taken back left out, the best kept."""

from __future__ import annotations

import re
from dataclasses import replace

from rules.finding import Finding
from rules.likeness import containment, grams, words
from store.records import DecidedBy, EntryType, anchor

MOST = 10
"""Findings a session may give. Beyond ten or so, what follows is mostly noise."""

COMPARED = 300
"""Findings compared with each other; a pasted page of the same line must not cost minutes."""

ALIKE = {True: 0.7, False: 0.85}
"""Share of three-letter runs that makes two findings one; by whether they are of one type."""

_RANK = {EntryType.SOLUTION: 0, EntryType.DECISION: 1, EntryType.PATTERN: 2}


def folded(found: list[Finding]) -> list[Finding]:
    """In the order in which they were said."""
    found = sorted(found, key=lambda f: (-f.points, _place(f)))[:COMPARED]
    standing = _standing(sorted(found, key=_place))
    kept: list[Finding] = []
    for finding in sorted(standing, key=lambda f: (_RANK[f.type], _place(f))):
        twin = next((i for i, other in enumerate(kept) if _same(other, finding)), None)
        if twin is None:
            kept.append(finding)
        else:
            kept[twin] = _together(kept[twin], finding)
    best = sorted(kept, key=lambda f: (-f.points, _place(f)))[:MOST]
    return sorted(best, key=_place)


def _place(finding: Finding) -> tuple[int, int]:
    return finding.core[0].turn, finding.core[0].place


def anchors(finding: Finding) -> tuple[str, ...]:
    if finding.joint:
        return (anchor(_said(finding)),)
    return tuple(dict.fromkeys(anchor(sentence.text) for sentence in finding.core))


def _same(one: Finding, other: Finding) -> bool:
    if set(anchors(one)) & set(anchors(other)):
        return True
    if {s.text for s in other.core} & {s.text for s in (*one.before, *one.core, *one.after)}:
        return True
    mine, theirs = grams(_said(one)), grams(_said(other))
    if min(len(mine), len(theirs)) < 8:
        return False
    topics = {_topic(one.core[0].said), _topic(other.core[0].said)} - {""}
    if _numbers(one) != _numbers(other) or (one.type is EntryType.DECISION and len(topics) == 2):
        return False
    return containment(mine, theirs) >= ALIKE[one.type is other.type]


def _said(finding: Finding) -> str:
    return " ".join(sentence.text for sentence in finding.core)


def _numbers(finding: Finding) -> frozenset[str]:
    return frozenset(re.findall(r"\d+", _said(finding)))


def _together(first: Finding, again: Finding) -> Finding:
    """The first saying stays the core, so that saying it once more changes no anchor; the evidence grows."""
    known = {(s.turn, s.place) for s in first.sentences}
    more = tuple(s for s in again.sentences if (s.turn, s.place) not in known)
    by = DecidedBy.USER if DecidedBy.USER in (first.decided_by, again.decided_by) else first.decided_by
    return replace(first, after=(*first.after, *more)[:6], points=max(first.points, again.points) + 0.1, decided_by=by)


def _standing(found: list[Finding]) -> list[Finding]:
    """Without decisions that the user replaced later in the same session."""
    return [
        finding
        for finding in found
        if not (finding.type is EntryType.DECISION and any(_replaces(later, finding) for later in found))
    ]


_TOPIC = re.compile(
    r"^(?:\S+[,.!]\s+)*(?:(?:그럼|그러면|그냥|역시|다시|아니다?|일단)[,.]?\s+)*((?:\S+\s){0,2}?\S+?)(?:은|는|도)\s"
)
_TOPIC_EN = re.compile(
    r"\b(?:for|as|to) (?:the |our |a )?([a-z][\w -]{2,24})\b|\b(?:set|make|put|change) (?:the )?([a-z][\w ]{1,24}?) (?:to|at)\b",
    re.IGNORECASE,
)
_SWAP = re.compile(
    r"(\S+?)(?:은|는|을|를|이|가)?\s*(?:말고|대신|(?:이|가)?\s*아니라)\s|\b(?:instead of|rather than|not)\s+(\S+)",
    re.IGNORECASE,
)


def _replaces(later: Finding, earlier: Finding) -> bool:
    """The user decided the same matter anew."""
    if (
        later.type is not EntryType.DECISION
        or later.decided_by is DecidedBy.REPORTED
        or _place(later) <= _place(earlier)
    ):
        return False
    if later.core[0].turn == earlier.core[0].turn:
        return False
    if set(anchors(later)) & set(anchors(earlier)):
        return False
    new, old = later.core[0].said, earlier.core[0].said
    swapped = {word.lower() for match in _SWAP.finditer(new) for word in match.groups() if word}
    shared = words(new) & words(old)
    if swapped and any(word in old.lower() for word in swapped) and (later.corrects or len(shared) >= 1):
        return True
    topic, now = _topic(old), _topic(new)
    if topic and now:
        return topic == now and _differs(new, old)
    near = later.corrects and later.exchange - earlier.exchange <= 2 and len(new) < 60
    if not near or _ADDS.search(new) or not _differs(new, old):
        return False
    # "아니다 9090으로 하자" names a new value and nothing else.
    return bool(shared) or len(words(new)) <= 1


_ADDS = re.compile(r"도 |또한|추가로|그리고|\b(?:also|too|as well|another|and)\b", re.IGNORECASE)


def _topic(said: str) -> str:
    match = _TOPIC.search(said)
    if match:
        return match[1].strip().lower()
    match = _TOPIC_EN.search(said)
    return (match[1] or match[2]).strip().lower() if match else ""


def _differs(one: str, other: str) -> bool:
    return bool(words(one) - words(other)) and bool(words(other) - words(one))

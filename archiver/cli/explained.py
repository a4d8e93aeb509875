"""What the rules make of a conversation, printed: for `wwt rules try`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from archiver.cli.output import accent, bold, dim, say, tell, width
from archiver.render import fold, one_line, plain
from store.messages import text
from store.records import anchor

if TYPE_CHECKING:
    from rules.cues import Hit
    from rules.explain import Claim, Explanation, Heard, Objection, Remark
    from rules.judge import Part
    from rules.schema import Secret
    from store.records import Candidate

MANY = 40
"""With more sentences than this, those of which no rule speaks are only counted."""

LONGEST = 60
"""Columns for the words that a cue fits."""


def contract(explanation: Explanation, own: frozenset[str], secrets: list[Secret]) -> dict[str, Any]:
    """The stable keys of `wwt rules try --json`."""
    return {
        "turns": [_heard(heard) for heard in explanation.heard],
        "candidates": [_candidate(candidate, own) for candidate in explanation.candidates],
        "secrets": [{"kind": kind, "rule": rule, "count": count} for (kind, rule), count in _counted(secrets).items()],
    }


def _heard(heard: Heard) -> dict[str, Any]:
    return {
        "turn": heard.turn.ord,
        "role": heard.turn.role.value,
        "injected": heard.injected.reading.id if heard.injected else None,
        "cut": [{"guard": guard, "text": passage} for guard, passage in heard.cut],
        "sentences": [_remark(remark) for remark in heard.remarks],
    }


def _remark(remark: Remark) -> dict[str, Any]:
    sentence = remark.sentence
    return {
        "text": sentence.text,
        "read_as": sentence.said,
        "kind": sentence.kind,
        "heading": sentence.heading,
        "lead": sentence.lead,
        "claims": [_claim(claim) for claim in remark.claims],
        "guards": [
            {
                "guard": objection.guard.id,
                "effect": objection.guard.effect,
                "points": objection.guard.points,
                "cues": _cues(objection.hit),
                "against": [_name(part) for part in objection.against],
            }
            for objection in remark.objections
        ],
        "moves": list(remark.moves),
        "silent": [{"rule": each.reading.id, "by": each.by, "words": each.words} for each in remark.silent],
        "candidates": [number + 1 for number in remark.candidates],
        "fate": remark.fate or "candidate",
    }


def _claim(claim: Claim) -> dict[str, Any]:
    rules = [{"rule": hit.reading.id, "weight": _weight(hit), "cues": _cues(hit)} for hit in claim.rules]
    return {"part": _name(claim.part), "rules": rules, "before_guards": claim.before, "points": claim.points}


def _cues(hit: Hit) -> list[dict[str, Any]]:
    return [{"cue": number, "words": words} for number, words in hit.fired]


def _name(part: Part) -> str:
    return ".".join(part)


def _candidate(candidate: Candidate, own: frozenset[str]) -> dict[str, Any]:
    return {
        "type": candidate.type.value,
        "summary": candidate.summary,
        "detail": candidate.detail,
        "tags": list(candidate.tags),
        "confidence": candidate.confidence,
        "decided_by": candidate.decided_by.value,
        "rule": candidate.rule,
        "own": _is_own(candidate, own),
        "evidence": [{"role": quote.role.value, "quote": quote.quote} for quote in candidate.evidence],
    }


def _is_own(candidate: Candidate, own: frozenset[str]) -> bool:
    """It rests on a turn of this session, not on turns of another alone, from which the session goes on."""
    return any(quote.turn in own for quote in candidate.evidence)


def _counted(secrets: Iterable[Secret]) -> Counter[tuple[str, str]]:
    return Counter((secret.kind, secret.id) for secret in secrets)


def show(explanation: Explanation, own: frozenset[str], secrets: list[Secret]) -> None:
    """For a person to read."""
    remarks = [remark for heard in explanation.heard for remark in heard.remarks]
    brief = len(remarks) > MANY
    for heard in explanation.heard:
        _print_heard(heard, brief=brief)
    if brief:
        tell("rules_cli.left_out", count=sum(_says_nothing(remark) for remark in remarks))
    say()
    _print_candidates(explanation.candidates, own)
    masked = ", ".join(f"{kind} ({rule}) × {count}" for (kind, rule), count in _counted(secrets).items())
    tell("rules_cli.masked" if masked else "rules_cli.none_masked", masked=masked)


def _says_nothing(remark: Remark) -> bool:
    return remark.fate in ("nothing", "quoted") and not remark.silent


def _print_heard(heard: Heard, *, brief: bool) -> None:
    remarks = [remark for remark in heard.remarks if not (brief and _says_nothing(remark))]
    if not (remarks or heard.injected or heard.cut) and brief:
        return
    say(accent(f"{text('role.' + heard.turn.role.value)} #{heard.turn.ord}"))
    if heard.injected:
        _put(text("rules_cli.injected", guard=heard.injected.reading.id, words=_words(heard.injected)), 2)
    for guard, passage in heard.cut:
        _put(text("rules_cli.cut", guard=guard, words=one_line(passage, LONGEST)), 2)
    for remark in remarks:
        _print_remark(remark)


def _print_remark(remark: Remark) -> None:
    sentence = remark.sentence
    for line in fold(one_line(sentence.text), width(), "  ").split("\n"):
        say(bold(line))
    for place in (sentence.heading, sentence.lead):
        if place:
            _put(text("rules_cli.under", words=one_line(place, LONGEST)), 4, faint=True)
    for mark, line in _lines(remark):
        _put(line, 6, mark=mark, faint=mark in "~·")


def _lines(remark: Remark) -> Iterator[tuple[str, str]]:
    """(mark, line): what speaks for the sentence, against it, is kept silent, what it does, and what comes of it."""
    for claim in remark.claims:
        for hit in claim.rules:
            yield "+", text("rules_cli.speaks", rule=hit.reading.id, words=_words(hit), **_said(claim, _weight(hit)))
    for objection in remark.objections:
        yield _objection(objection)
    for claim in remark.claims:
        if len(claim.rules) > 1 or claim.points != claim.before:
            yield "→", text("rules_cli.comes_to", **_said(claim, claim.points))
    for each in remark.silent:
        key = "rules_cli.silent_needs" if each.by.startswith("needs") else "rules_cli.silent_forbids"
        yield "~", text(key, rule=each.reading.id, by=each.by, words=one_line(each.words, LONGEST))
    if remark.moves:
        yield "·", text("rules_cli.moves", moves=", ".join(remark.moves))
    yield "=", _outcome(remark)


def _said(claim: Claim, points: float) -> dict[str, object]:
    return {"type": text(f"type.{claim.part[0]}"), "part": claim.part[1], "points": f"{points:.2f}"}


def _weight(hit: Hit) -> float:
    return float(getattr(hit.reading, "weight", 0.0))


def _objection(objection: Objection) -> tuple[str, str]:
    guard = objection.guard
    parts = ", ".join(dict.fromkeys(part for _, part in objection.against))
    key = f"rules_cli.objects_{guard.effect}" if parts else "rules_cli.objects_not"
    points = f"{guard.points:.2f}"
    line = text(key, guard=guard.id, words=_words(objection.hit), parts=parts, points=points)
    return ("-" if parts else "·"), line


def _outcome(remark: Remark) -> str:
    if remark.candidates:
        return text("rules_cli.in_candidate", numbers=", ".join(str(number + 1) for number in remark.candidates))
    best = remark.best
    part = best.part[1] if best else ""
    key = f"rules_cli.alone_{part}" if remark.fate == "alone" else f"rules_cli.fate_{remark.fate}"
    return text(key, points=f"{best.points:.2f}" if best else "")


def _words(hit: Hit) -> str:
    return ", ".join(f'"{one_line(words, LONGEST)}"' for _, words in hit.fired)


def _put(line: str, indent: int, *, mark: str = "", faint: bool = False) -> None:
    """A line under its mark, folded where a terminal is too narrow."""
    folded = fold(plain(line), width(), " " * indent)
    if mark:
        folded = f"{mark:>{indent - 1}} {folded[indent:]}"
    for each in folded.split("\n"):
        say(dim(each) if faint else each)


def _print_candidates(candidates: tuple[Candidate, ...], own: frozenset[str]) -> None:
    tell("rules_cli.candidates" if candidates else "rules_cli.no_candidates", count=len(candidates))
    for number, candidate in enumerate(candidates, 1):
        about = text(
            "rules_cli.candidate",
            type=text(f"type.{candidate.type.value}"),
            confidence=f"{candidate.confidence:.2f}",
            decided_by=candidate.decided_by.value,
            rule=candidate.rule,
        )
        say(f"{accent(f'{number:>3}')} {about}")
        _put(one_line(candidate.summary), 4)
        if anchor(candidate.detail) != anchor(candidate.summary):
            _put(one_line(candidate.detail), 4, faint=True)
        if candidate.tags:
            _put(text("rules_cli.tags", tags=", ".join(candidate.tags)), 4, faint=True)
        if not _is_own(candidate, own):
            _put(text("rules_cli.not_own"), 4, faint=True)

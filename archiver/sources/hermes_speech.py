"""What a person said to Hermes, and it to them, cut free from what Hermes writes in their names."""

from __future__ import annotations

import re

from archiver.sources import speech

_PRIOR = re.compile(r"\A\s*\[PRIOR CONTEXT\b[^\]\n]*\]\s*")
_PRIOR_END = re.compile(r"(?m)^\[END OF PRIOR CONTEXT\b[^\]\n]*\]\s*")
_SUMMARY = re.compile(r"\s*\[CONTEXT (?:COMPACTION|SUMMARY)\b")
_SUMMARY_END = re.compile(r"--- END OF CONTEXT SUMMARY\b[^\n]*?---[ \t]*")
_SKILL = re.compile(r"\A\s*\[(?:SYSTEM|IMPORTANT): The user has invoked the \"")
_ALONGSIDE = "The user has provided the following instruction alongside the skill invocation:"
_REVIEW = re.compile(r"\A\s*Review the conversation above and\b")
_ORIGIN = re.compile(r"\A\s*Gateway message origin \(JSON data[^\n]*\n\{[^\n]*\}\n(?:Do not guess a reply[^\n]*\n)?\s*")
_MACHINE = re.compile(
    r"\A\s*(?:\[(?:SYSTEM|System)(?: note)?(?::|\])|\[IMPORTANT: (?:Background|You are running)\b|\[Your active task list was preserved\b"
    r"|\[Planning state preserved\b|\[ASYNC DELEGATION\b|\[STILL IN PROGRESS\b|Cronjob Response:"
    r"|Continue from the compressed conversation context above\b)"
)
_STEERING = re.compile(r"(?s)\s*\[OUT-OF-BAND USER MESSAGE\b[^\]]*\](.*?)(?:\[/OUT-OF-BAND USER MESSAGE\]|\Z)")


def asked(text: str) -> str:
    """What a person wrote; empty for what Hermes wrote in their name."""
    text = _ORIGIN.sub("", _unfolded(speech.cut_recall(text))).strip()
    if _SKILL.match(text):
        text = text.partition(_ALONGSIDE)[2].strip()
    machine = _MACHINE.match(text) or is_review(text) or speech.is_observer_prompt(text)
    return "" if machine else text


def answered(text: str) -> str:
    text = _unfolded(speech.cut_recall(text)).strip()
    return "" if speech.is_failure_notice(text) else text


def is_review(text: str) -> bool:
    """Whether it is the prompt with which Hermes has itself look for what to keep; what follows is said to nobody."""
    return _REVIEW.match(text) is not None


def steered(text: str) -> tuple[str, list[str]]:
    """The text without what a person said while the agent was at work, which is put behind a tool's result, and that."""
    said = [_ORIGIN.sub("", match[1]).strip() for match in _STEERING.finditer(text)]
    return (_STEERING.sub("", text), [one for one in said if one]) if said else (text, [])


def _unfolded(text: str) -> str:
    """Without the summary of earlier talk. It may be folded into a message, which stands before it, behind it, or both."""
    ends = _PRIOR_END.search(text)
    before, summary = (text[: ends.start()], text[ends.end() :]) if ends else ("", text)
    if not _SUMMARY.match(summary):
        return text
    *_, after = _SUMMARY_END.split(summary) if _SUMMARY_END.search(summary) else [""]
    return "\n\n".join(filter(None, (_PRIOR.sub("", before).strip(), after.strip())))

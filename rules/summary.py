"""A finding in one line that stands alone. Works by cutting only, so that safe text stays safe."""

from __future__ import annotations

import re

from rules.predicates import Predicate
from rules.sentences import EMPHASIS
from store.records import SafeText

LIMIT = 160

_MARKUP = re.compile(rf"{EMPHASIS}|`+|!?\[(?P<linked>[^\]\n]{{0,300}})\]\([^)\n]{{0,500}}\)|^\s*#+\s*")
_BLANKS = re.compile(r"[\s\u200b\ufeff]+")
_CONTROL = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_OPENING = re.compile(
    r"^(?:[^\w가-힣`\[(\"'“‘<@$.\-/]+"
    r"|(?:ah|oh|hm+|well)\b[,.!…]*\s+|(?:아|어|그럼|그러면|그래|좋아|좋습니다|응|네|넵|예|알겠습니다|아니다?|그리고|그런데|근데|그냥|일단|자|또한?|이제|음|그래서|따라서)[,.!]?\s+"
    r"|(?:good (?:point|call|catch|idea)|got it|you'?re right|understood|makes sense)\s*[,.!:—–-]+\s*|(?:fyi|note|btw)[,:]? that\s+"
    r"|(?:ok(?:ay)?|yes|yeah|yep|sure|no|also|and|so|now|well|great|good|perfect|actually|hmm|then|right|alright|please)[,.!:]*\s+"
    r"|(?:결정|확정|방침|결론|decision|decided|conclusion|fix|수정|해결|원인|문제|cause|root cause|problem|issue|solution|핵심|요약|summary|이유는|이유)\s*\d*(?:\s*\([^)]{1,20}\))?\s*[:：—–]\s*|이유는\s+|왜냐하면\s+|because\s+"
    r"|\(?\d{1,2}[.)]\s+)",
    re.IGNORECASE,
)
_CLOSING = re.compile(r"[\s.:;,!~…→\-–—]+$")
_BREAKS = re.compile(r"(?<=[,;.])\s|\s[—–(]|(?<=고|며|서|면|데|만)\s")


def plain(text: SafeText) -> SafeText:
    """Text without Markdown, control characters and runs of blanks."""
    return _swapped(_BLANKS, _swapped(_MARKUP, _swapped(_CONTROL, text, " "), ""), " ").strip()


def line(text: SafeText, limit: int = LIMIT) -> SafeText:
    """A sentence as a title: plain, without list mark, greeting, label and full stop, at most `limit` characters."""
    text = plain(text)
    while (opening := _OPENING.match(text)) and len(text) - opening.end() >= 4:
        text = text[opening.end() :]
    closing = _CLOSING.search(text)
    return shortened(text[: closing.start()] if closing and closing.start() else text, limit)


def shortened(text: SafeText, limit: int) -> SafeText:
    """At most `limit` characters, cut where a clause ends if one ends in the second half."""
    if len(text) <= limit:
        return text
    ends = [match.start() for match in _BREAKS.finditer(text, limit // 2, limit - 1)]
    at = ends[-1] if ends else text.rfind(" ", limit // 2, limit - 1)
    return SafeText.joined("", [text[: at if at > 0 else limit - 1].rstrip(" ,;(—–"), SafeText("…")])


_LEAD = re.compile(
    r"^(?:(?:#?\d{1,2}[:,]?\s+(?=(?:yes|yeah|ok)\b))|(?:sorry|but|yes|yeah|ok|okay|sure|yep|yup|oh|fyi|btw|maybe|hmm|cool|nice|thanks|first|next|just|and|also|please"
    r"|혹시|추가로|참고로|우선|일단|아참)\b[,.!:]*\s+"
    r"|let'?s (?!not\b|(?:just )?not\b)(?:(?:just|also|simply|please|actually|now|then|go ahead and) )*"
    r"|(?:read|look at|check out|see|review|learn about) [^,;]{3,80}(?:[,;] (?:and )?(?:then )?|\s+and then )(?=\w)"
    r"|(?:I'd|I would) (?:suggest|recommend|propose|say|go with) (?:(?:that|to|we|just) )*|(?:my )?(?:recommendation|suggestion)(?: is| was|:) (?:to )?"
    r"|here'?s what I(?:'d| would)? (?:propose|suggest|recommend) for |(?:fastest|simplest|easiest|best|recommended)(?: option| fix)?: "
    r"|(?:can|could|would|will) (?:we|you) (?:(?:please|just|also|maybe|instead|then) )*"
    r"|(?:I|we)(?:'d| would) (?:(?:also|really|just) )?(?:like|want|love) (?:(?:you|us) )?to (?:(?:just|also) )?"
    r"|(?:I|we) (?:(?:also|really|just|now|still) )*(?:want|need) (?:(?:you|us) )?to (?:(?:just|also) )?"
    r"|(?:I|we) (?:think|guess|believe) (?:that )?(?=we\b|you\b|the\b|it\b)|(?:we|you) should (?!not\b)(?:(?:just|also|probably) )*)",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"^(?:let'?s (?:just )?not |(?:I|we) (?:don'?t|do not) (?:want|need) (?:(?:you|us) )?to |(?:we|you) (?:should not|shouldn'?t) )",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"[\s,]+(?:please|thanks|thank you|ok|okay|right|부탁해|부탁해요|부탁드려요|부탁드립니다)[.!?]*$", re.IGNORECASE
)
_TELLER = re.compile(
    r"^(?:let me|let's|I'll|I will|I need to|I'm going to|I have|I've|we've|we have|I|we) (?:(?:now|also|just|then|have|already) )*(?=[a-z])",
    re.IGNORECASE,
)


def settled(text: SafeText) -> SafeText:
    """What was asked for, without the asking: "can we just use tabs?" gives "use tabs", "let's not cache it" "do not cache it"."""
    text = text.rstrip("?？ ")
    while (lead := _LEAD.match(text)) and len(text) - lead.end() >= 8:
        text = text[lead.end() :]
    if (tail := _TAIL.search(text)) and tail.start() >= 8:
        text = text[: tail.start()]
    refusal = _REFUSAL.match(text)
    return SafeText.joined("", [SafeText("do not "), text[refusal.end() :]]) if refusal else text


_UNFINISHED = re.compile(
    r"\s+(?:by (?:\w+ing)?|as follows|like this|like so|with|to|아래와 같이|다음과 같이)[:\s]*$", re.IGNORECASE
)


def told(text: SafeText) -> SafeText:
    """A report without its teller: "Let me raise the limit" gives "raise the limit"."""
    if (rest := _UNFINISHED.search(text)) and rest.start() >= 12:
        text = text[: rest.start()]
    teller = _TELLER.match(text)
    return text[teller.end() :] if teller and len(text) - teller.end() >= 12 else text


_MARKS = ".!?~…。 "


def granted(text: SafeText, said: str, ending: Predicate) -> SafeText:
    """A Korean request as what was settled: 막아 주세요 gives 막기로 함, 쓰지 마세요 쓰지 않기로 함. `ending`: its last predicate."""
    asked = said[ending.start :].rstrip(_MARKS)
    shown = text.rstrip(_MARKS)
    if ending.mood not in ("request", "forbid") or not asked or not shown.endswith(asked):
        return text
    before = shown[: len(shown) - len(asked)]
    if causing := re.match(r"(.*(?:게|도록)) ?(?:끔 ?)?(?:해|하)", asked):
        return SafeText.joined("", [before, shown[len(before) : len(before) + causing.end(1)], SafeText(" 하기로 함")])
    if ending.negated:
        kept = re.match(r"(.*지) ?(?:는 |도 )?(?:마|말|않)", asked)
        return (
            text
            if not kept
            else SafeText.joined("", [before, shown[len(before) : len(before) + kept.end(1)], SafeText(" 않기로 함")])
        )
    if ending.mood == "forbid" or not re.fullmatch("[가-힣]+", ending.lemma):
        return text
    return SafeText.joined("", [before, SafeText(ending.lemma + ending.voice + "기로 함")])


_ASKS = re.compile(
    r"^(?:should|shall|could|can) (?:I|we) |^(?:want|do you want|would you like) (?:me|us) to |^how about (?:we )?|^what if we ",
    re.IGNORECASE,
)


_ADVISED = re.compile(
    r"([가-힣])는 (?:것|게|걸|방식|방법|방향|편|쪽)(?:을|를|이|으로|도)? ?(?:추천|권장|제안|권고|좋|낫|적절|적합|맞|바람직)[가-힣]*[.!]*$"
)


def stated(text: SafeText) -> SafeText:
    """A proposal put as a question, as what was agreed: 바꿀까요 gives 바꾸기로 함, "should I rename it" "rename it"."""
    text = text.rstrip("?？ ")
    if asks := _ASKS.match(text):
        return text[asks.end() :]
    if advised := _ADVISED.search(text):
        stem_end = SafeText("들") if advised[1] == "드" else advised[1]
        return SafeText.joined("", [text[: advised.start()], SafeText(stem_end), SafeText("기로 함")])
    stem = re.search(r"([가-힣])까(?:요)?$", text)
    if not stem or (ord(stem[1]) - 0xAC00) % 28 != 8:  # a final ㄹ is what the question ending adds to the stem
        return text
    bare = SafeText(stem[1] if stem[1] in _FINAL_L else chr(ord(stem[1]) - 8))
    return SafeText.joined("", [text[: stem.start()], bare, SafeText("기로 함")])


_FINAL_L = "들걸달풀열돌늘줄길널밀팔알"


def cause_and_fix(cause: SafeText, fix: SafeText) -> SafeText:
    """`cause → fix` within the limit; what one side leaves over the other may use."""
    room = LIMIT - 3
    one, two = line(cause), told(line(fix))
    if len(one) + len(two) > room:
        half = room // 2
        spare = max(0, half - len(one)), max(0, half - len(two))
        one, two = shortened(one, half + spare[1]), shortened(two, half + spare[0])
    return SafeText.joined(" → ", [one, two])


def _swapped(pattern: re.Pattern[str], text: SafeText, blank: str) -> SafeText:
    """Every match replaced by what it keeps of itself, or by a literal of ours."""
    pieces: list[SafeText] = []
    at = 0
    for match in pattern.finditer(text):
        pieces.append(text[at : match.start()])
        kept = next((name for name in ("slanted", "kept", "linked") if match.groupdict().get(name)), "")
        pieces.append(text[match.start(kept) : match.end(kept)] if kept else SafeText(blank))
        at = match.end()
    return SafeText.joined("", [*pieces, text[at:]]) if pieces else text

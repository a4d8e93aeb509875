"""What the verbs of a Korean sentence say: lemma, tense, negation and mood, read off its morphemes.

해결했다, 해결됐어요 and 해결하였습니다 are one predicate (해결, past, statement); 해결하려고 했지만 is an attempt,
해결하면 a condition, 해결할까? a question. Rules name predicates, never conjugated forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Morph(Protocol):
    """A morpheme as `store.tokens.morphemes` gives it: form, tag of the Sejong set, place in the text."""

    @property
    def form(self) -> str: ...
    @property
    def tag(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Predicate:
    """One verb, adjective or closing noun.

    lemma: the stem, or the noun before 하다/되다/이다. voice: 하, 되, 시키, 이 (copula) or "" for a plain verb.
    mood: statement, nominal, bare (해체 어/아), request, propose, settled (기로 하다), prefer (는 게 좋다), must,
    forbid, offer (면 되다), can, wish, attempt, intend, condition, question, clause (goes on), modifier.
    """

    lemma: str
    voice: str
    mood: str
    past: bool
    negated: bool
    final: bool
    start: int
    end: int


_PAST = ("었", "았", "였", "ㅆ")
_QUESTIONS = ("까", "ᆯ까", "을까", "나", "나요", "는가", "ᆫ가", "은가", "니", "냐", "는지", "ᆯ까요", "을까요", "는가요", "ᆫ가요", "은가요", "려나", "ᆸ니까", "습니까", "ᆯ래", "ᆯ래요", "을래")  # fmt: skip
_WHETHER = ("는지", "은지", "ᆫ지", "을지", "ᆯ지", "었는지", "았는지")
_PROPOSALS = ("자", "자고", "ᆸ시다", "읍시다", "자구")
_ORDERS = ("세요", "으세요", "어라", "아라", "라", "으라", "십시오", "으십시오", "시오", "여라", "거라", "셔요", "소서")
_BARE = ("어", "아", "어요", "아요", "여", "지", "죠")
_PROMISES = ("ᆯ게", "ᆯ게요", "을게", "을게요", "ᆯ께", "ᆯ게용")
_FAVOURS = ("ᆯ래", "ᆯ래요", "을래", "을래요", "ᆯ까", "ᆯ까요")
_ATTEMPTS = ("려고", "으려고", "려", "으려", "고자", "려다", "려다가", "려면", "으려면", "려는데")
_CONDITIONS = ("면", "으면", "다면", "라면", "거든", "ᆫ다면", "는다면", "더라면", "어도", "아도")
_DUTY = ("어야", "아야", "여야", "어야지", "어야만", "아야만")
_IGNORED = frozenset({"SF", "SP", "SS", "SSO", "SSC", "SE", "SO", "SW", "EMO", "W_EMOJI", "IC", "Z_CODA"})


def predicates(morphs: Sequence[Morph], *, asks: bool = False) -> tuple[Predicate, ...]:
    """The predicates of one sentence, in order. `asks`: it ends in a question mark."""
    last = len(morphs)
    while last and morphs[last - 1].tag in _IGNORED:
        last -= 1
    found: list[Predicate] = []
    i = 0
    while i < last:
        head = _head(morphs, i)
        if head is None:
            i += 1
            continue
        lemma, voice, start = head
        reader = _Reader(morphs, i + 1, last, lemma)
        reader.read()
        final = reader.at >= last
        negated = reader.negated or _negated_before(morphs, start) or lemma in ("없", "아니", "못하")
        mood = reader.mood(final=final, asks=asks)
        found.append(
            Predicate(lemma, voice, mood, reader.past, negated, final, morphs[start].start, morphs[reader.at - 1].end)
        )
        i = max(reader.at, i + 1)
    closing = _closing_noun(morphs, last, found, asks=asks)
    return (*found, closing) if closing else tuple(found)


def _head(morphs: Sequence[Morph], i: int) -> tuple[str, str, int] | None:
    """(lemma, voice, index of its first morpheme) if a predicate begins at morpheme i."""
    morph = morphs[i]
    tag = morph.tag.split("-")[0]
    if tag in ("XSV", "XSA"):
        return (morphs[i - 1].form, morph.form, i - 1) if i else (morph.form, morph.form, i)
    if tag == "VCP":
        return (morphs[i - 1].form, "이", i - 1) if i else None
    if tag not in ("VV", "VA", "VCN", "VX"):
        return None
    if morph.form in ("하", "되", "시키") and i:
        before = morphs[i - 1]
        if before.tag in ("NNG", "NNP", "SL", "XR", "NNB") and before.end == morph.start:
            return before.form, morph.form, i - 1
        if before.tag == "JKO" and i > 1 and morphs[i - 2].tag in ("NNG", "NNP", "SL"):
            return morphs[i - 2].form, morph.form, i - 2
    return morph.form, "", i


def _negated_before(morphs: Sequence[Morph], start: int) -> bool:
    return any(m.tag == "MAG" and m.form in ("안", "못") for m in morphs[max(0, start - 1) : start + 1])


def _closing_noun(morphs: Sequence[Morph], last: int, found: list[Predicate], *, asks: bool) -> Predicate | None:
    if not last or (found and found[-1].final):
        return None
    morph = morphs[last - 1]
    if morph.tag not in ("NNG", "NNP", "XSN", "XR"):
        return None
    return Predicate(morph.form, "", "question" if asks else "nominal", False, False, True, morph.start, morph.end)


class _Reader:
    """Reads the endings and helping verbs after a stem and remembers what they add."""

    def __init__(self, morphs: Sequence[Morph], at: int, last: int, lemma: str) -> None:
        self.morphs, self.at, self.last = morphs, at, last
        self.past = self.negated = False
        self.marks: set[str] = set()
        self.ending = ""
        self.helper = "주" if len(lemma) > 1 and lemma.endswith("주") else ""

    def _tag(self, ahead: int = 0) -> str:
        i = self.at + ahead
        return self.morphs[i].tag.split("-")[0] if i < self.last else ""

    def _form(self, ahead: int = 0) -> str:
        i = self.at + ahead
        return self.morphs[i].form if i < self.last else ""

    def read(self) -> None:
        while self.at < self.last:
            tag, form = self._tag(), self._form()
            if tag == "EP":
                self.past |= form in _PAST
                if form == "겠":
                    self.marks.add("intend")
                self.at += 1
            elif tag == "EF":
                self.ending = form
                self.at += 1
                if self._tag() == "JX":
                    self.at += 1
                return
            elif tag == "EC":
                self.ending = form
                self.at += 1
                if not self._after_connective(form):
                    return
            elif tag in ("ETM", "ETN"):
                self.ending = tag
                self.at += 1
                if not self._after_noun_form(form):
                    return
            elif tag == "VX":
                self._helper(form)
            elif tag == "JX" and self._tag(1) == "VX":
                self.at += 1
            else:
                return

    def _helper(self, form: str) -> None:
        self.at += 1
        self.ending = ""
        if form in ("않", "못하"):
            self.negated = True
        elif form == "말":
            self.negated = True
            self.marks.add("ban")
        elif form == "싶":
            self.marks.add("wish")
        elif form == "주":
            self.helper = "주"
            if self._form() == "세" and self._tag(1) in ("EF", "ETN"):
                self.marks.add("request")
                self.at += 2
        elif form in ("보이", "듯하", "듯"):
            self.marks.add("seems")

    def _after_connective(self, form: str) -> bool:
        """True to read on. Handles what a connective ending means together with the verb after it."""
        tag, after = self._tag(), self._form()
        if form in _DUTY:
            self.marks.add("must")
            if after in ("하", "되") and tag in ("VX", "VV"):
                self.at += 1
                self.ending = ""
                return True
            return False
        if form in _CONDITIONS and form not in ("어도", "아도"):
            return self._after_condition(tag, after)
        if form in _ATTEMPTS:
            self.marks.add("attempt")
            if after == "하" and tag in ("VX", "VV"):
                self.at += 1
                return True
            return False
        if form == "지" and after == "말":
            self._helper("말")
            return True
        if form in ("게", "도록") and after in ("하", "되") and tag in ("VV", "VX"):
            self.at += 1
            self.ending = ""
            return True
        if form in ("어도", "아도") and after == "되":
            self.marks.add("can")
            self.at += 1
            return True
        return tag == "VX" or (tag == "JX" and self._tag(1) == "VX")

    def _after_condition(self, tag: str, after: str) -> bool:
        if after in ("안", "못") and self._form(1) == "되":
            self.marks.add("forbid")
            self.at += 2
            return True
        if after == "되" and tag in ("VV", "VX"):
            self.marks.add("offer")
            self.at += 1
            return True
        if after in ("좋", "낫", "싶", "하") and tag in ("VA", "VX", "VV"):
            self.marks.add("wish")
            self.at += 1
            return True
        self.marks.add("condition")
        return False

    def _after_noun_form(self, form: str) -> bool:
        """After a modifier (는, ᆯ) or a nominal ending (기, 음)."""
        after = self._form()
        if form == "기" and self._tag() == "JKB" and after == "로":
            self.marks.add("settled")
            self.at += 1
            if self._form() in ("하", "결정", "확정", "합의", "정하", "약속", "결론"):
                self.at += 1
                if self._tag() in ("XSV", "VV"):
                    self.at += 1
                self.ending = ""
                return True
            return False
        if form in ("음", "ᆷ", "기"):
            return False
        if after == "수" and self._tag() == "NNB":
            step = 2 if self._tag(1) in ("JX", "JKS") else 1
            if self._form(step) in ("있", "없"):
                self.marks.add("can")
                self.negated |= self._form(step) == "없"
                self.at += step + 1
                self.ending = ""
                return True
            return False
        if after in ("것", "거", "걸", "게", "쪽", "방향", "편"):
            return self._after_thing(form)
        if after in ("예정", "계획", "생각", "작정", "필요"):
            self.marks.add("intend" if after != "필요" else "need")
            self.at += 1
            if self._tag() == "VCP":
                self.at += 1
                return True
            return False
        if after in ("듯", "듯하", "모양", "지") and form in ("ᆯ", "는", "ᆫ", "은"):
            self.marks.add("seems")
            self.at += after in ("듯", "모양")
            return False
        if after == "때문":
            self.marks.add("because")
            return False
        self.marks.add("modifier")
        return False

    def _after_thing(self, form: str) -> bool:
        step = 2 if self._tag(1) in ("JKS", "JX", "JKO", "JKB", "JKC") else 1
        particle = self._form(1) if step == 2 else ""
        after = self._form(step)
        if after in ("좋", "낫", "맞", "어떻", "적절", "옳"):
            self.marks.add("ask" if after == "어떻" else "prefer")
            self.at += step + 1
            return True
        if after == "같":
            self.marks.add("seems")
            self.at += step + 1
            return True
        if self._tag(1) == "VCP":
            self.marks.add("intend" if form in ("ᆯ", "을") else "modifier")
            self.at += 2
            return True
        decided = after in ("하", "결정", "확정", "정하", "가") or self.at + step >= self.last
        if particle in ("로", "으로") and decided:
            self.marks.add("settled")
            self.at = min(self.at + step + (self.at + step < self.last), self.last)
            if self._tag() == "XSV":
                self.at += 1
            self.ending = ""
            return True
        self.marks.add("modifier")
        return False

    def mood(self, *, final: bool, asks: bool) -> str:
        marks, ending = self.marks, self.ending
        if self.helper == "주" and not self.past and (ending in _FAVOURS or ("can" in marks and asks)):
            return "request"  # 합쳐줄래?, 합쳐줄 수 있어?: a question in form only
        if (final and asks) or "ask" in marks or (final and ending in _QUESTIONS):
            return "question"
        if "must" in marks and "condition" not in marks:
            return "must"  # 해야 할 것 같다 says what should be, however softly
        for mark in ("seems", "wish", "attempt", "condition", "offer", "forbid"):
            if mark in marks:
                return mark
        if "ban" in marks:
            return "propose" if ending in _PROPOSALS else "forbid" if ending != "고" else "clause"
        if "settled" in marks:
            return "question" if ending in _QUESTIONS else "settled"
        if "prefer" in marks:
            return "prefer"
        if ending in _PROPOSALS:
            return "propose"
        if "request" in marks or ending in _ORDERS:
            return "request"
        if (
            self.helper == "주"
            and not self.past
            and "intend" not in marks
            and (ending in _BARE or ending == "" or (ending in ("고", "ᆷ")))
        ):
            return "request"
        if "can" in marks:
            return "can"
        if "intend" in marks or ending in _PROMISES:
            return "intend"
        if "because" in marks:
            return "clause"
        if ending in _WHETHER:
            return "question" if final else "modifier"
        if ending in ("ETN", "음", "ᆷ", "기") and final:
            return "nominal"
        if final and ending in _BARE and not self.past:
            return "bare"
        if "modifier" in marks or ending in ("ETM", "ETN"):
            return "modifier"
        return "statement" if final else "clause"

"""Words as the index, the query and the duplicate check all see them."""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

PIECE = 2_000
"""Characters Kiwi gets in one call: its time grows faster than the text."""
TOKEN_BYTES = 200
REPEATS = 20
"""How often one token counts in one text. A log line repeated ten thousand times says no more than twenty of them."""
MOST_TOKENS = 20_000
MOST_TERMS = 64

_HANGUL = "가-힣ㄱ-ㆎᄀ-ᇿꥠ-ꥼힰ-ퟻ"
_HAN_KANA = "々〆぀-ゟ゠-ヿㇰ-ㇿ㐀-䶿一-鿿豈-﫿ｦ-ﾝ\U00020000-\U0003fffd"
_HANGUL_RUN = re.compile(f"[{_HANGUL}]+")


@dataclass(frozen=True, slots=True)
class Morph:
    """A morpheme. `start` and `end` count characters of the NFC form of the text.

    `tag` is Sejong's, with Kiwi's regularity mark removed (VV-I is VV). Verb and adjective stems come without 다
    (바꿨다 is 바꾸/VV 었/EP 다/EF). A Latin or digit run is one SL or SN with its original text.
    """

    form: str
    tag: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Tokens:
    """`words` are morphemes, runs, identifiers and their parts; `grams` are pairs of Hangul, Han and Kana characters."""

    words: list[str]
    grams: list[str]


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a query and the ways to find it: as it stands, by its parts, by its pairs of syllables.

    `identifier` is set for names such as `ERR_7F3A`, `my-pkg` and `load_tokens`, which mean one thing only.
    """

    whole: str
    parts: tuple[str, ...] = ()
    grams: tuple[str, ...] = ()
    identifier: bool = False


# --- morphemes -------------------------------------------------------------------------------------------------------

_kiwi: Any = None
_kiwi_lock = threading.Lock()


def kiwi_loaded() -> bool:
    """Whether a Korean analysis is cheap in this process."""
    return _kiwi is not None


def _analyser() -> Any:
    global _kiwi
    with _kiwi_lock:
        if _kiwi is None:
            from kiwipiepy import Kiwi  # noqa: PLC0415  # 2.5 s and 540 MB: only indexing, mining and servers pay it

            _kiwi = Kiwi(num_workers=1)
        return _kiwi


def morphemes(text: str) -> list[Morph]:
    """Korean morphemes of the lines that hold Hangul, in order. Never raises; a piece that fails gives none."""
    text = unicodedata.normalize("NFC", text)
    found: list[Morph] = []
    for line in re.finditer(r"[^\n\r]+", text):
        if _HANGUL_RUN.search(line[0]):
            found += _line_morphemes(text, line.start(), line.end())
    return found


# A part of a line as Kiwi may see it. Long Latin runs are quadratic in Kiwi and `package.json` comes out as
# `pa` + `ckage.json`, so an identifier is shown to it as one short word.
_PARTS = re.compile(
    rf"(?P<keep>[{_HANGUL}]+|[A-Za-z]{{1,12}}(?![\w.:/@\\-])|\d{{1,6}}(?![\w.:/@\\-]))"
    rf"|(?P<word>[^\s{_HANGUL}]*[^\W{_HANGUL}][^\s{_HANGUL}]*)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_PUNCTUATION = frozenset(".,!?;:()[]{}\"'`…~-/%“”‘’「」『』<>=+*·")
_EDGES = ".,!?;:()[]{}\"'`…~“”‘’「」『』<>*·"


def _line_morphemes(text: str, start: int, end: int) -> list[Morph]:
    shown: list[str] = []
    origin: list[tuple[int, int]] = []  # for each shown character, the span of the text that it stands for
    for part in _PARTS.finditer(text, start, end):
        _show(part, shown, origin)
    line = "".join(shown)
    found: list[Morph] = []
    for first, last in _pieces(line):
        if _HANGUL_RUN.search(line, first, last):
            for form, tag, a, b in _analysed(line[first:last]):
                begin, stop = origin[first + a][0], origin[first + max(a, b - 1)][1]
                found.append(Morph(text[begin:stop] if tag in ("SL", "SN") else form, tag, begin, stop))
    return found


def _show(part: re.Match[str], shown: list[str], origin: list[tuple[int, int]]) -> None:
    found, at = part[0], part.start()
    if part["keep"]:
        shown.extend(found)
        origin.extend((at + i, at + i + 1) for i in range(len(found)))
    elif part["word"]:
        core = found.strip(_EDGES) or found
        lead = found.find(core)
        for i, c in enumerate(found[:lead]):
            _show_mark(c, at + i, shown, origin)
        shown.append("1" if core.isdecimal() else "A")
        origin.append((at + lead, at + lead + len(core)))
        for i, c in enumerate(found[lead + len(core) :], lead + len(core)):
            _show_mark(c, at + i, shown, origin)
    else:
        _show_mark(found, at, shown, origin)


def _show_mark(c: str, at: int, shown: list[str], origin: list[tuple[int, int]]) -> None:
    """Punctuation as it is, everything else (space, emoji, control characters) as one space; a repeat is left out."""
    mark = c if c in _PUNCTUATION else " "
    if not shown or shown[-1] != mark:
        shown.append(mark)
        origin.append((at, at + 1))


def _pieces(line: str) -> Iterator[tuple[int, int]]:
    first = 0
    while len(line) - first > PIECE:
        window = line[first : first + PIECE]
        cut = max(window.rfind(". "), window.rfind("? "), window.rfind("! ")) + 1 or window.rfind(" ") + 1 or PIECE
        yield first, first + cut
        first += cut
    yield first, len(line)


@lru_cache(maxsize=256)
def _analysed(piece: str) -> tuple[tuple[str, str, int, int], ...]:
    """Cached, so that a text which repeats one phrase for megabytes costs one analysis."""
    try:
        tokens = _analyser().tokenize(piece)
        return tuple((t.form, t.tag.partition("-")[0], t.start, t.start + t.len) for t in tokens)
    except (RuntimeError, ValueError, UnicodeError, MemoryError):
        return ()


# --- index and query -------------------------------------------------------------------------------------------------


def index_tokens(text: str) -> Tokens:
    """Every token of a text to be indexed, repeats included (up to `REPEATS` each)."""
    text = scrubbed(text)
    bag = _Bag()
    for run in _runs(text):
        bag.add(run)
    for word in _content_words(morphemes(text)):
        bag.words.add(word.casefold())
    return Tokens(bag.words.kept, bag.grams.kept)


def surface_tokens(text: str) -> Tokens:
    """As `index_tokens` without the morphemes: what can be had of a text at once, without Kiwi."""
    bag = _Bag()
    for run in _runs(scrubbed(text)):
        bag.add(run)
    return Tokens(bag.words.kept, bag.grams.kept)


def query_terms(text: str, known: Callable[[str], bool], *, kiwi: bool = False) -> list[Term]:
    """The words of a query, each once. Hangul is cut by longest match against the index's own terms (`known`).

    That is as good as morphemes on both sides and does not load Kiwi; with `kiwi` its morphemes are added,
    but only in a process that has it loaded already.
    """
    text = scrubbed(text[:PIECE])
    terms: dict[str, Term] = {}
    for run in _runs(text):
        if (term := _term(run, known)) and term.whole not in terms:
            terms[term.whole] = term
    if kiwi and kiwi_loaded():
        seen = {part for term in terms.values() for part in (term.whole, *term.parts)}
        for word in dict.fromkeys(w.casefold() for w in _content_words(morphemes(text))):
            if word not in seen and len(word) > 1:
                terms[word] = Term(word)
    return list(terms.values())[:MOST_TERMS]


def query_tokens(text: str, known: Callable[[str], bool], *, kiwi: bool = False) -> Tokens:
    """The same as two flat lists, without repeats."""
    terms = query_terms(text, known, kiwi=kiwi)
    words = dict.fromkeys(word for term in terms for word in (term.whole, *term.parts))
    return Tokens(list(words), list(dict.fromkeys(gram for term in terms for gram in term.grams)))


def _term(run: _Run, known: Callable[[str], bool]) -> Term | None:
    if run.hangul:
        parts = tuple(dict.fromkeys(_longest_matches(run.text, known)))
        return Term(stored(run.text), parts, tuple(dict.fromkeys(_pairs(run.text))))
    if run.han_kana:
        return Term(stored(run.text), (), tuple(dict.fromkeys((*_pairs(run.text), *run.text))))
    whole, parts_of_name = identifier(run.text)
    if not whole:
        return None
    parts = tuple(stored(part) for part in parts_of_name if part != whole)
    plain = whole.replace("'", "").replace("’", "").isalpha() and not parts
    if plain and (base := stem(whole)):
        parts = (base,)
    return Term(stored(whole), parts, identifier=not plain and len(whole) > 2)


def scrubbed(text: str) -> str:
    """NFKC without what no index can store: control characters and lone surrogates become spaces."""
    text = (
        "".join(" " if c < " " or "\x7f" <= c < "\xa0" or "\ud800" <= c <= "\udfff" else c for c in text)
        if (_UNSTORABLE.search(text))
        else text
    )
    return unicodedata.normalize("NFKC", text)


_UNSTORABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class _Run:
    text: str
    hangul: bool = False
    han_kana: bool = False


_SCRIPTS = re.compile(rf"(?P<hangul>[{_HANGUL}]+)|(?P<han>[{_HAN_KANA}]+)|(?P<other>[^\s{_HANGUL}{_HAN_KANA}]+)")


def _runs(text: str) -> Iterator[_Run]:
    """Runs without spaces, split where the script changes: `Wiki에` is `Wiki` and `에`."""
    for found in _SCRIPTS.finditer(text):
        yield _Run(found[0], hangul=bool(found["hangul"]), han_kana=bool(found["han"]))


class _Kept:
    """A list that takes a token only so often, and only so many in all."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self._counts: Counter[str] = Counter()

    def add(self, token: str) -> None:
        token = stored(token)
        if self._counts[token] < REPEATS and len(self.kept) < MOST_TOKENS:
            self._counts[token] += 1
            self.kept.append(token)


class _Bag:
    def __init__(self) -> None:
        self.words = _Kept()
        self.grams = _Kept()

    def add(self, run: _Run) -> None:
        if not run.hangul and not run.han_kana:
            whole, parts = identifier(run.text)
            words = dict.fromkeys([whole, *parts]) if whole else {}
            for word in (*words, *(found for word in words if (found := stem(word)) and found not in words)):
                self.words.add(word)
            return
        self.words.add(run.text)
        for pair in _pairs(run.text):
            self.grams.add(pair)
        for c in run.text if run.han_kana and len(run.text) > 1 else ():
            self.grams.add(c)


def _pairs(run: str) -> Iterator[str]:
    """Two-syllable grams, or the one syllable: they reach inside compounds and need no dictionary."""
    for i in range(max(1, len(run) - 1)):
        yield run[i : i + 2]


def stored(word: str) -> str:
    """The word as the index keeps it: one too long for a term is its beginning and a hash, so that it is still found."""
    data = word.encode("utf-8", "replace")
    if len(data) <= TOKEN_BYTES:
        return word
    return f"{word[:32]}#{hashlib.blake2b(data, digest_size=12).hexdigest()}"


_OPENING = "([{<\"'`“‘«‹「『（"
_TRIM_LEFT = _OPENING + ",;:!?)]}>…·•|*~=&^%”’»›」』）"
_TRIM_RIGHT = "([{,;:!?.\"'`“”‘’«»‹›「」『』…·•|*~=&^%/\\-_"
_HARD = re.compile(r"[^\w.\-+#@$]+")
_SOFT = re.compile(r"[\W_]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_LETTERS_DIGITS = re.compile(r"([^\W\d_]+)(\d+)|(\d+)([^\W\d_]+)")
MOST_PARTS = 200


def identifier(run: str) -> tuple[str, list[str]]:
    """A run of non-space characters as one word without its edge punctuation, and the parts people search for.

    `(path/to/file.py:42),` is `path/to/file.py:42` with the parts path, to, file.py, file, py and 42.
    """
    whole = _trimmed(run)
    if not any(c.isalnum() for c in whole):
        return "", []
    parts: dict[str, None] = {}
    _add(parts, whole.lstrip("./\\@#$-"))
    for hard in _HARD.split(whole):
        if len(parts) >= MOST_PARTS:
            break
        _add(parts, hard.strip(".-+@$"))
        for soft in _SOFT.split(hard):
            _add(parts, soft)
            for piece in _CAMEL.findall(soft) if not (soft.islower() or soft.isupper()) else ():
                _add(parts, piece)
            if split := _LETTERS_DIGITS.fullmatch(soft):
                for piece in split.groups(""):
                    _add(parts, piece)
    whole = whole.casefold()
    return whole, [part for part in parts if part != whole][:MOST_PARTS]


_ENDINGS = re.compile(r"(?:ies|(?:(?<=[sxz])|(?<=ch)|(?<=sh))es|(?<![su])s|ing|ed|e|y)$")


def stem(word: str) -> str:
    """What an English word shares with its other forms (cache, caches, cached, caching: `cach`); "" where it has none."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return ""
    base = word
    for _ in range(2):  # the plural, then what is under it: settings, setting, set
        found = _ENDINGS.search(base)
        if found is None or found.start() < 3:
            break
        base = base[: found.start()]
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "ls":
        base = base[:-1]
    return base


def _add(parts: dict[str, None], part: str) -> None:
    """A lone Latin letter out of a longer name says nothing; a lone digit may be a version."""
    if len(part) > 1 or part.isdigit():
        parts[part.casefold()] = None


def _trimmed(run: str) -> str:
    run = run.lstrip(_TRIM_LEFT)
    while run:
        shorter = run.rstrip(_TRIM_RIGHT)
        for opening, closing in ("()", "[]", "{}", "<>"):
            if shorter.endswith(closing) and shorter.count(closing) > shorter.count(opening):
                shorter = shorter[:-1]
        if shorter == run:
            break
        run = shorter
    return run


# --- Hangul ----------------------------------------------------------------------------------------------------------

_NOUNS = frozenset({"NNG", "NNP", "XPN", "XSN", "XR", "SH", "NR"})
_KEPT = frozenset(
    {"NNG", "NNP", "NNB", "NR", "NP", "XR", "VV", "VA", "VX", "VCN", "MAG", "MM", "XSN", "SH", "IC", "UNK", "UN"}
)
# Verbs that carry grammar rather than meaning.
_EMPTY = frozenset({"하", "되", "있", "이", "것", "거", "수", "주", "지", "보", "들"})


def _content_words(morphs: list[Morph]) -> Iterator[str]:
    """Nouns, stems, roots, numerals and adverbs (안 and 못 among them); and nouns that stand together, as one word."""
    joined: list[Morph] = []
    for morph in morphs:
        if morph.tag in _NOUNS and joined and joined[-1].end == morph.start:
            joined.append(morph)
        else:
            yield from _compound(joined)
            joined = [morph] if morph.tag in _NOUNS else []
        if morph.tag in _KEPT and morph.form not in _EMPTY:
            yield morph.form
    yield from _compound(joined)


def _compound(morphs: list[Morph]) -> Iterator[str]:
    if 1 < len(morphs) <= 6:
        yield "".join(m.form for m in morphs)


LONGEST_WORD = 12
_PARTICLES = frozenset("은는이가을를에의로와과도만요")


def _longest_matches(run: str, known: Callable[[str], bool]) -> Iterator[str]:
    """The run cut into the longest known words, from the left; the run itself is not among them."""
    at = 0
    while at < len(run):
        for end in range(min(len(run), at + LONGEST_WORD), at, -1):
            word = run[at:end]
            if word != run and _worth_asking(word, at, end, len(run)) and known(word):
                yield word
                at = end
                break
        else:
            at += 1


def _worth_asking(word: str, at: int, end: int, length: int) -> bool:
    """One syllable is a word at the front of a run (값, 창, 안); further in it is mostly a particle or an ending."""
    return len(word) > 1 or at == 0 or (end == length and word not in _PARTICLES)


# --- highlights ------------------------------------------------------------------------------------------------------


def highlights(text: str, query: str) -> list[tuple[int, int]]:
    """Where the query's words stand, as spans in characters of the NFC form of `text`; in order, not overlapping."""
    text = unicodedata.normalize("NFC", text)
    folded, origin = _folded(text)
    spans: list[tuple[int, int]] = []
    for run in _runs(scrubbed(query[:PIECE])):
        if run.hangul or run.han_kana:
            spans += _syllable_spans(folded, run.text)
        else:
            whole, parts = identifier(run.text)
            exact = _word_spans(folded, whole) if whole else []
            spans += exact or [span for part in parts if len(part) > 1 for span in _word_spans(folded, part)]
    return _merged((origin[a], _whole_end(text, origin[b - 1] + 1)) for a, b in spans)


def _whole_end(text: str, end: int) -> int:
    """Past the marks, joiners and variation selectors that belong to the last character."""
    while end < len(text) and (unicodedata.category(text[end])[0] == "M" or text[end] == "\u200d"):
        end += 1
    return end


def _folded(text: str) -> tuple[str, list[int]]:
    """The text as it is compared, and for each of its positions the one in `text` (one more than its length)."""
    shown: list[str] = []
    origin: list[int] = []
    for i, c in enumerate(text):
        same = unicodedata.normalize("NFKC", c).casefold()
        shown.append(same)
        origin.extend([i] * len(same))
    return "".join(shown), [*origin, len(text)]


def _syllable_spans(folded: str, run: str) -> list[tuple[int, int]]:
    """Places of the run, else of the longest beginning of it that is there; at least two syllables of a longer run."""
    # Where a beginning stands, every shorter one does, so the longest is found by halving.
    shortest = min(len(run), 2)
    length, longest = shortest - 1, len(run)
    while length < longest:
        middle = (length + longest + 1) // 2
        length, longest = (middle, longest) if run[:middle] in folded else (length, middle - 1)
    if length < shortest:
        return []
    return [(m.start(), m.end()) for m in re.finditer(re.escape(run[:length]), folded)]


def _word_spans(folded: str, word: str) -> list[tuple[int, int]]:
    pattern = rf"(?<![^\W_{_HANGUL}]){re.escape(word)}(?![^\W_{_HANGUL}])"
    return [(m.start(), m.end()) for m in re.finditer(pattern, folded)]


def _merged(spans: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged

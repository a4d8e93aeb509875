"""One search over everything: words and meaning, conversation and knowledge, in one ranking."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archiver.index import STRAIGHT, Index
from store import lookup, messages
from store.filters import Filter
from store.lookup import Found
from store.reader import Reader
from store.records import Hit, SafeText
from store.tokens import Term, highlights, kiwi_loaded, query_terms
from store.waiting import WaitingRows
from store.words import WordHit, Words, WordsDamaged

if TYPE_CHECKING:
    from archiver.embed.protocol import Embedder, Floats
    from store.vectors import Vectors

MOST = 200
"""Results a caller can ask for."""
DEPTH = 100
"""Rows taken from each index and rescored by their sentences; twice the limit where that is more."""
SNIPPET = 320


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for and where. None means no limit. Times are UTC ms; `only` is "raw", "knowledge" or None.

    `scope` is the name of where `projects` looks, shown with the answer.
    """

    text: str
    projects: frozenset[int] | None = None
    scope: str = "all"
    agent: str | None = None
    branch: str | None = None
    cwd: str | None = None
    since: int | None = None
    until: int | None = None
    type: str | None = None
    tag: str | None = None
    only: str | None = None
    limit: int = 10
    abandoned: bool = False
    subagents: bool = False


@dataclass(frozen=True, slots=True)
class Results:
    """`engines` names what was searched with; `notices` are keys of messages about it."""

    scope: str
    engines: tuple[str, ...]
    hits: tuple[Hit, ...]
    notices: tuple[str, ...] = ()


def search(reader: Reader, index: Index, embedder: Embedder | None, query: Query) -> Results:
    """The best hits for any text a person can type, best first. Never raises over the text; finds what is not indexed yet."""
    notices = index.ensure()
    words, vectors = index.words(), index.vectors()
    limit = max(1, min(query.limit, MOST))
    depth = max(DEPTH, 2 * limit)
    wanted = _filter(reader, query)
    straight = WaitingRows.read(reader, wanted, STRAIGHT)
    lexical, terms = _lexical(words, straight, query, wanted, depth)
    dense: list[tuple[int, float]] = []
    engines: tuple[str, ...] = ("words",)
    if embedder is not None and vectors is not None and vectors.model != embedder.model:
        notices.append("search.model_changed")
    elif embedder is not None and query.text.strip():
        engines = ("words", "vectors")
        dense = _dense(reader, vectors, straight, embedder, query, wanted, depth)
    rows = lookup.found(reader, {ref for ref, _ in dense} | {hit.ref for hit in lexical})
    rows = {ref: row for ref, row in rows.items() if row.status != "retired"}
    scores = fuse([(ref, score) for ref, score in dense if ref in rows], [hit for hit in lexical if hit.ref in rows])
    ranked = arranged(rows, scores, lookup.evidence_turns(reader, [-ref for ref in rows if ref < 0]))
    hits = _hits(reader, rows, ranked[:limit], query, terms, {hit.ref: hit for hit in lexical})
    return Results(query.scope, engines, tuple(hits), tuple(notices))


def _filter(reader: Reader, query: Query) -> Filter:
    sessions = entries = None
    if query.agent is not None or query.branch is not None or query.cwd is not None:
        sessions = lookup.session_ids(reader, agent=query.agent, branch=query.branch, cwd=query.cwd)
    if sessions is not None or query.type is not None or query.tag is not None:
        only_agent = query.agent if query.branch is None and query.cwd is None else None
        entries = lookup.entry_ids(reader, agent=only_agent, type=query.type, tag=query.tag, sessions=sessions)
    return Filter(
        projects=query.projects,
        sessions=sessions,
        entry_ids=entries,
        since=query.since,
        until=query.until,
        chunks=query.only != "knowledge" and query.type is None and query.tag is None,
        entries=query.only != "raw",
        roles=frozenset(
            {"speech", "tool"}
            | ({"abandoned"} if query.abandoned else set())
            | ({"subagent"} if query.subagents else set())
        ),
    )


# --- the two lists ---------------------------------------------------------------------------------------------------


def _lexical(
    words: Words | None, straight: WaitingRows, query: Query, wanted: Filter, depth: int
) -> tuple[list[WordHit], list[Term]]:
    """Rows by their words, best first, and the terms they were looked up by."""
    try:
        known = straight.known if words is None else lambda word: words.known(word) or straight.known(word)
        terms = query_terms(query.text, known, kiwi=kiwi_loaded())
        hits = [] if words is None else words.search(terms, wanted, depth)
    except WordsDamaged:  # between `ensure` and now
        words, hits, terms = None, [], query_terms(query.text, straight.known)
    hits = [hit for hit in hits if hit.ref not in straight.refs]
    hits += straight.judge(terms, words)
    return sorted(hits, key=lambda hit: (-hit.score, hit.ref))[:depth], terms


def _dense(
    reader: Reader,
    vectors: Vectors | None,
    straight: WaitingRows,
    embedder: Embedder,
    query: Query,
    wanted: Filter,
    depth: int,
) -> list[tuple[int, float]]:
    """Rows by meaning, best first. A row's score is the mean of its own similarity and its best sentence's."""
    near = embedder.query(unicodedata.normalize("NFC", query.text))
    if not near.any():
        return []
    own = {} if vectors is None else dict(vectors.search(near, wanted, depth))
    own = {ref: score for ref, score in own.items() if ref not in straight.refs}
    rows = lookup.found(reader, own)
    hashes = {row.hash: ref for ref, row in rows.items()} | {row.hash: ref for ref, row in straight.rows.items()}
    stored = lookup.vectors(reader, hashes, embedder.model)
    own.update(straight.similarities(near, stored))
    best = _best_sentences(near, {hash_: blob for hash_, blob in stored.items() if blob.n})
    scored = []
    for ref, score in own.items():
        row = rows.get(ref) or straight.rows.get(ref)
        if row is not None:
            scored.append((ref, (score + best.get(row.hash, score)) / 2))
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:depth]


def _best_sentences(query: Floats, stored: Mapping[str, lookup.StoredVector]) -> dict[str, float]:
    """The similarity of each text's nearest sentence, all of them in one product."""
    if not stored:
        return {}
    import numpy as np  # noqa: PLC0415  # 75 ms, paid by the embedder already

    numbers = np.frombuffer(b"".join(one.sentences for one in stored.values()), np.int8).reshape(-1, len(query))
    scales = np.frombuffer(b"".join(one.scales for one in stored.values()), "<f4")
    similar = (numbers.astype(np.float32) @ query) * scales
    starts = np.cumsum([0, *(one.n for one in stored.values())])[:-1]
    return dict(zip(stored, (float(x) for x in np.maximum.reduceat(similar, starts)), strict=True))


# --- one ranking -----------------------------------------------------------------------------------------------------

MEANING, WORDS = 1.0, 1.75
"""Weights of the two lists."""
ENTRY = 1.25
"""Reviewed knowledge says in two lines what a conversation says in twenty."""
SECOND = 0.8
"""Each further hit of a session, so that one long session does not fill the list and a strong second still shows."""
SUPERSEDED = 0.5
WHOLE, ALL_WORDS = 0.95, 0.5
"""A row with all the words of the query (this share of them) is what was typed; what that adds to its score."""
RELATED = 0.6
"""A chunk folds under an entry that it is evidence of, when the entry itself scores at least this part of it."""


def fuse(dense: Sequence[tuple[int, float]], lexical: Sequence[WordHit]) -> dict[int, float]:
    """One score of two ranked lists: the weighted mean of each list's own scores, brought to 0..1.

    Similarities are spread between the first and the last of their list, BM25 is taken relative to the best, and
    counts by the share of the query that the row matches: where a question and its answer have no word in common
    (another language, a paraphrase) the list by meaning speaks alone. Reciprocal ranks, which forget how far apart two
    places are, did worse on every set measured. A row with a whole rare identifier of the query stands above every row
    without one, and a row with all words of the query above what is only near it.
    """
    scores: dict[int, float] = {}
    if dense:
        best, least = dense[0][1], dense[-1][1]
        for ref, similarity in dense:
            near = (similarity - least) / (best - least) if best > least else 1.0
            scores[ref] = MEANING * near / (MEANING + WORDS)
    top = max((hit.score for hit in lexical), default=0.0)
    matched = [hit for hit in lexical if hit.score > 0 and hit.share > 0]
    for hit in matched:
        scores[hit.ref] = scores.get(hit.ref, 0.0) + WORDS * hit.share * hit.score / top / (MEANING + WORDS)
    for ref in scores:
        if ref < 0:
            scores[ref] *= ENTRY
    for hit in matched:
        scores[hit.ref] += (ENTRY if hit.exact else 0.0) + (ALL_WORDS if hit.share >= WHOLE else 0.0)
    return scores


def arranged(
    rows: Mapping[int, Found], scores: Mapping[int, float], said: Mapping[int, set[tuple[int, int]]]
) -> list[tuple[int, float]]:
    """Refs and scores as they are shown: folded, with replaced knowledge below current, sessions mixed; best first.

    `said` is where each entry (by its id) was said, as (session id, turn ord).
    """
    scores = _superseded_below(rows, scores)
    scores = _under_entries(rows, scores, said)
    ordered = sorted(scores, key=lambda ref: (-scores[ref], ref))
    shown: list[int] = []
    for ref in ordered:
        if not any(
            _overlap(rows[ref], rows[other]) for other in shown if rows[other].session_id == rows[ref].session_id
        ):
            shown.append(ref)
    seen: dict[int, int] = {}
    mixed = []
    for ref in shown:
        session = rows[ref].session_id if ref > 0 else 0
        before = seen.get(session, 0) if session else 0
        seen[session] = before + 1
        mixed.append((ref, scores[ref] * SECOND**before))
    return sorted(mixed, key=lambda pair: (-pair[1], pair[0]))


def _superseded_below(rows: Mapping[int, Found], scores: Mapping[int, float]) -> dict[int, float]:
    current = [score for ref, score in scores.items() if ref < 0 and rows[ref].status == "active"]
    floor = min(current, default=float("inf"))
    return {
        ref: min(score * SUPERSEDED, floor * 0.99) if ref < 0 and rows[ref].status == "superseded" else score
        for ref, score in scores.items()
    }


def _under_entries(
    rows: Mapping[int, Found], scores: Mapping[int, float], said: Mapping[int, set[tuple[int, int]]]
) -> dict[int, float]:
    """Without the chunks that listed entries came from; such an entry scores at least what its chunk did."""
    kept = dict(scores)
    for ref in [ref for ref in scores if ref < 0 and rows[ref].status == "active"]:
        turns = said.get(-ref, set())
        for chunk in [other for other in kept if other > 0 and _covers(rows[other], turns)]:
            if scores[ref] >= RELATED * scores[chunk]:
                kept[ref] = max(kept[ref], scores[chunk])
                del kept[chunk]
    return kept


def _covers(chunk: Found, turns: Iterable[tuple[int, int]]) -> bool:
    return any(session == chunk.session_id and chunk.first_ord <= ord_ <= chunk.last_ord for session, ord_ in turns)


def _overlap(one: Found, other: Found) -> bool:
    """Whether two chunks say mostly the same: half of the shorter one's turns, or neighbouring parts of one turn."""
    if one.ref < 0 or other.ref < 0 or one.role != other.role:
        return False
    if one.first_ord == one.last_ord == other.first_ord == other.last_ord:
        return abs(one.part - other.part) <= 1
    common = min(one.last_ord, other.last_ord) - max(one.first_ord, other.first_ord) + 1
    shorter = min(one.last_ord - one.first_ord, other.last_ord - other.first_ord) + 1
    return common * 2 >= shorter


# --- what is shown ---------------------------------------------------------------------------------------------------


def _hits(
    reader: Reader,
    rows: Mapping[int, Found],
    ranked: Sequence[tuple[int, float]],
    query: Query,
    terms: Sequence[Term],
    lexical: Mapping[int, WordHit],
) -> list[Hit]:
    ids = lookup.short_ids(reader, (rows[ref].session for ref, _ in ranked))
    hits = []
    for ref, score in ranked:
        row = rows[ref]
        text, spans = snippet(row.text if ref > 0 else SafeText(row.passage), query.text)
        short = ids[row.session]
        hits.append(
            Hit(
                kind=row.kind,
                id=row.uid or str(ref),
                session=row.session,
                agent=row.agent,
                project=row.project,
                time=row.time,
                score=round(score, 4),
                text=text,
                citation=f"{short}#{row.first_ord}" if row.first_ord else short,
                why=_why(text, spans, lexical.get(ref)),
                role=row.role,
                title=row.title or None,
                type=row.type,
                status=row.status,
                superseded_by=row.superseded_by,
                tags=row.tags,
                first_ord=row.first_ord,
                last_ord=row.last_ord,
                spans=spans,
            )
        )
    return hits


def _why(text: SafeText, spans: Sequence[tuple[int, int]], hit: WordHit | None) -> str:
    if hit is not None and hit.exact:
        return messages.text("search.why_exact")
    if hit is None or hit.share <= 0:
        return messages.text("search.why_meaning")
    matched = list(dict.fromkeys(text[start:end].casefold() for start, end in spans))[:4]
    return (
        messages.text("search.why_words", words=", ".join(matched))
        if matched
        else messages.text("search.why_some_words")
    )


def snippet(text: SafeText, query: str, width: int = SNIPPET) -> tuple[SafeText, tuple[tuple[int, int], ...]]:
    """The `width` characters of the text with the most of the query in them, cut between words, and where it matches."""
    composed = SafeText(unicodedata.normalize("NFC", text).strip())
    spans = highlights(composed, query)
    if len(composed) <= width:
        return composed, tuple(spans)
    start = _densest(spans, width, len(composed))
    start, end = _outward(composed, start, min(len(composed), start + width))
    inside = tuple((a - start, b - start) for a, b in spans if a >= start and b <= end)
    lead = "…" if start else ""
    cut = SafeText(lead + composed[start:end] + ("…" if end < len(composed) else ""))
    return cut, tuple((a + len(lead), b + len(lead)) for a, b in inside)


def _densest(spans: Sequence[tuple[int, int]], width: int, length: int) -> int:
    """Where the window begins that holds the most matched characters, with some room before the first of them."""
    best, most = 0, 0
    for i, (first, _) in enumerate(spans):
        inside = sum(end - start for start, end in spans[i : i + 50] if end <= first + width * 3 // 4)
        if inside > most:
            best, most = first, inside
    return max(0, min(best - width // 4, length - width))


def _outward(text: str, start: int, end: int) -> tuple[int, int]:
    """The same window moved to the nearest blanks, so that no word and no character made of several is cut."""
    if start:
        blank = next((i for i in range(start, min(start + 40, end)) if text[i].isspace()), None)
        start = blank + 1 if blank is not None else _character(text, start)
    if end < len(text):
        blank = next((i for i in range(end, max(end - 40, start), -1) if text[i].isspace()), None)
        end = blank if blank is not None else _character(text, end)
    return start, end


def _character(text: str, at: int) -> int:
    """The place itself, or the next one that is not inside an emoji cluster or before a combining mark."""
    while 0 < at < len(text) and (
        unicodedata.category(text[at])[0] == "M"
        or text[at] == "\u200d"
        or text[at - 1] == "\u200d"
        or _MODIFIERS[0] <= text[at] <= _MODIFIERS[1]
    ):
        at += 1
    return at


_MODIFIERS = ("\U0001f3fb", "\U0001f3ff")


def by_session(hits: Iterable[Hit]) -> list[list[Hit]]:
    """The hits grouped by session, sessions by their best hit; entries without a session stand alone."""
    groups: dict[str, list[Hit]] = {}
    for hit in hits:
        groups.setdefault(f"{hit.agent}/{hit.session}" if hit.session else hit.id, []).append(hit)
    return list(groups.values())

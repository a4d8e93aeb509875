"""What may enter the queue: findings on which nobody decided yet, each marked with what it comes near to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from staging.dedup import Known, Near, Pool, Semantic, near
from staging.documents import Broken, Document, Item, Queue, Repeats, SourceStatus, Staged, item_of, merge
from store.errors import WwtError
from store.records import Action, Candidate, Quote, SafeText, iso
from store.verdicts import Lookup, Verdict


@dataclass(frozen=True, slots=True)
class Source:
    """The session that was distilled. `at` is UTC ms, `project` its key, `status` says what became of its transcript."""

    agent: str
    session: str
    project: SafeText
    status: SourceStatus
    at: int


@dataclass(frozen=True, slots=True)
class Support:
    """A finding whose text is known already: its quotes belong to the entry of this uid."""

    entry: str
    evidence: tuple[Quote, ...]


@dataclass(frozen=True, slots=True)
class Intake:
    """added: new in the queue; kept: were waiting and still do; quiet: decided before; repeats: near to something known.

    `supports` is for the caller to hand to `promote.support` in the transaction that marks the session distilled.
    """

    added: int = 0
    kept: int = 0
    quiet: int = 0
    repeats: int = 0
    supports: tuple[Support, ...] = ()
    document: str | None = None


def take_in(
    queue: Queue,
    source: Source,
    candidates: Sequence[Candidate],
    *,
    verdicts: Lookup,
    entries: Iterable[Known] = (),
    semantic: Semantic | None = None,
    still: Callable[[], bool] = lambda: True,
) -> Intake:
    """Merge a session's candidates into its document. When this returns, the document is on disk, synced.

    `entries` are the entries to compare with (their uid and text); what waits in other documents is added here.
    `still` is asked under the document's lock: when it says no, the session is not what it was, and nothing is written.
    Running it again with the same candidates changes no file.
    """
    name = queue.writable(queue.name_for(source.agent, source.session))
    decided = verdicts([a for candidate in candidates for a in candidate.anchors])
    loud = [candidate for candidate in candidates if not _verdicts_on(candidate, decided)]
    reading = queue.read().staged if loud else ()
    own = {name, queue.stand_in(name)}
    waiting = [staged for staged in reading if staged.name not in own]
    pool = Pool([*entries, *_texts(waiting, source.project)] if loud else ())
    said = _said(waiting)
    items = [_marked(candidate, pool, said, semantic) for candidate in loud]
    mined = Document(
        archived_at=iso(source.at),
        source_session=source.session,
        source_status=source.status,
        agent=source.agent,
        project=source.project,
        entries=tuple(items),
    )
    before, after = _written(queue, name, mined, verdicts, still)
    fresh = {item.id for item in after} - {item.id for item in before}
    return Intake(
        added=len(fresh),
        kept=len(after) - len(fresh),
        quiet=len(candidates) - len(loud),
        repeats=sum(item.repeats is not None for item in after if item.id in fresh),
        supports=tuple(_supports(candidates, decided)),
        document=name if after else None,
    )


def known_text(summary: str, detail: str) -> str:
    """The text by which two findings are compared."""
    return f"{summary}\n{detail[:COMPARED]}"


COMPARED = 300
"""Characters of a detail that count in a comparison; what follows is circumstance."""


def _written(
    queue: Queue, name: str, mined: Document, verdicts: Lookup, still: Callable[[], bool]
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """The document's items before and after the merge."""
    before: tuple[Item, ...] = ()
    stand_in = queue.stand_in(name)
    spare = queue.get(stand_in)
    theirs = [item for item in spare.entries if item.edited] if isinstance(spare, Document) else []

    def edit(old: Document | None) -> Document | None:
        nonlocal before
        if not still():
            before = old.entries if old else ()
            return old
        if theirs:
            old = (old or mined.model_copy(update={"entries": ()})).with_items(theirs)
        before = old.entries if old else ()
        # Asked under the document's lock, so a decision made while we mined is seen.
        decided = verdicts([a for item in (*before, *mined.entries) for a in item.anchors])
        merged = merge(old, mined, lambda item: any(a in decided for a in item.anchors))
        if old is not None and (merged.entries, merged.written) == (old.entries, old.written):
            same_source = (merged.source_status, merged.project) == (old.source_status, old.project)
            return old if same_source else merged
        return merged

    if not mined.entries and queue.get(name) is None and spare is None:
        return (), ()
    after = queue.change(name, edit)
    if isinstance(after, Broken):  # it broke between choosing the name and taking the lock
        raise WwtError("staging.broken", path=after.path, line=after.line, column=after.column, reason=after.reason)
    if isinstance(spare, Document):
        # The document was broken once and is good again: what was written beside it meanwhile is in it now.
        queue.change(stand_in, lambda old: None if old == spare else old)
    return before, after.entries if after else ()


def _marked(candidate: Candidate, pool: Pool, said: Mapping[str, str], semantic: Semantic | None) -> Item:
    same = next((said[a] for a in candidate.anchors if a in said), None)
    if same is not None:
        return item_of(candidate, Repeats(waiting=same))
    text = known_text(candidate.summary, candidate.detail)
    return item_of(candidate, _repeats(near(text, pool, semantic=semantic)))


def _said(waiting: Sequence[Staged]) -> dict[str, str]:
    """Anchors that wait in other documents, in any project, with the id of their item."""
    return {a: item.id for staged in waiting for item in staged.document.entries for a in item.anchors}


def _texts(waiting: Sequence[Staged], project: str) -> list[Known]:
    """What waits in the same project: other projects' findings may be near and yet another matter."""
    return [
        Known(item.id, known_text(item.summary, item.detail), waiting=True)
        for staged in waiting
        if staged.document.project == project
        for item in staged.document.entries
    ]


def _repeats(found: Near | None) -> Repeats | None:
    if found is None:
        return None
    ref, waiting = found.known.ref, found.known.waiting
    return Repeats(
        entry=None if waiting else ref,
        waiting=ref if waiting else None,
        similarity=found.similarity,
        supersedes=found.differs,
    )


def _verdicts_on(candidate: Candidate, decided: Mapping[str, Verdict]) -> list[Verdict]:
    return [decided[a] for a in candidate.anchors if a in decided]


def _supports(candidates: Sequence[Candidate], decided: Mapping[str, Verdict]) -> Iterable[Support]:
    for candidate in candidates:
        held = [v.entry for v in _verdicts_on(candidate, decided) if v.outcome is not Action.REJECTED and v.entry]
        if held:
            yield Support(held[0], candidate.evidence)

"""Checks of what is derived: the two indexes, the vectors that one is made from, the model, the caches."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from archiver import config
from archiver.doctor.finding import Finding, Progress, Subject, fault, note, ok
from archiver.home import Home
from store import health, lookup
from store.errors import WwtError
from store.health import Patient
from store.messages import text
from store.vectors import Vectors, VectorsDamaged
from store.wordfiles import rows_in
from store.words import Words, WordsDamaged

LOOKS = 3
"""Times that an index is read again because somebody wrote it meanwhile."""


# --- words -----------------------------------------------------------------------------------------------------------


def words(subject: Subject) -> Finding:
    folder, patient = subject.root / "index" / "words", subject.patient
    rows = lookup.count(patient)
    if not folder.exists():
        if lookup.waiting_count(patient, None) >= rows:
            return ok("words", text("doctor.words_none"))
        return fault("words", text("doctor.words_missing", rows=rows), mend=_make_words)
    try:
        held = rows_in(folder)
    except WordsDamaged as error:
        return fault("words", text("doctor.words_damaged", reason=error), mend=_make_words)
    if stray := _stray_words(patient, folder, held):
        return fault("words", text("doctor.words_differ", held=held, rows=rows, count=stray), mend=_make_words)
    return ok("words", text("doctor.words_ok", rows=held))


def _stray_words(patient: Patient, folder: Path, held: int) -> int:
    """How many rows are on one side only. Opening the index takes a lock file; on a read-only disk the counts are compared."""
    if os.access(folder / ".tantivy-meta.lock", os.W_OK):
        try:
            return len(_stray(patient, lambda: Words(folder).refs(), lambda: health.refs(patient)))
        except WordsDamaged:  # replaced just now
            return 0
    apart = abs(held - lookup.count(patient))
    return max(0, apart - lookup.waiting_count(patient, None))


def _stray(patient: Patient, held: Callable[[], set[int]], wanted: Callable[[], set[int]]) -> set[int]:
    """Rows on one side only that nobody is about to bring over. Looked at twice, as others write meanwhile."""

    def once() -> set[int]:
        before = health.waiting_refs(patient)
        apart = held() ^ wanted()
        return apart - before - health.waiting_refs(patient)

    return (first := once()) and first & once()


def _make_words(home: Home, progress: Progress) -> str:
    from archiver.rebuild import Wish, rebuild  # noqa: PLC0415  SQLAlchemy costs 0.25 s

    done = rebuild(home, Wish(words=True, vectors=False, caches=False), progress)
    return text("rebuild.words", rows=done.words)


# --- vectors ---------------------------------------------------------------------------------------------------------


def vectors(subject: Subject) -> Finding:
    folder, patient = subject.root / "index" / "vectors", subject.patient
    kept = lookup.models(patient)
    if not folder.exists():
        if not kept:
            return ok("vectors", text("doctor.vectors_none"))
        return fault("vectors", text("doctor.vectors_missing", rows=sum(kept.values())), mend=_make_vectors)
    for left in reversed(range(LOOKS)):
        try:
            return _of_vectors(Vectors(folder), patient, kept)
        except (VectorsDamaged, OSError) as error:  # OSError: a segment was merged into another one meanwhile
            if not left:
                return fault("vectors", text("doctor.vectors_damaged", reason=error), mend=_make_vectors)
    raise AssertionError


def _of_vectors(held: Vectors, patient: Patient, kept: dict[str, int]) -> Finding:
    if not held.verify():
        raise VectorsDamaged(f"{held.folder}: is not as it was written")
    if kept and held.model not in kept:
        words = text("doctor.vectors_other", model=named(held.model), kept=named(next(iter(kept))))
        return fault("vectors", words, mend=_make_vectors)
    if (dimensions := lookup.dimensions(patient, held.model)) not in (0, held.dimensions):
        words = text("doctor.vectors_dimensions", held=held.dimensions, kept=dimensions)
        return fault("vectors", words, mend=_make_vectors)
    if bad := health.misshapen_vectors(patient, held.model, held.dimensions):
        return fault("vectors", text("doctor.vectors_misshapen", count=bad), mend=_make_vectors)

    def refs() -> set[int]:
        return Vectors(held.folder).refs()

    if stray := _stray(patient, refs, lambda: health.embedded_refs(patient, held.model)):
        words = text("doctor.vectors_differ", held=len(held), count=len(stray))
        return fault("vectors", words, mend=_make_vectors)
    return ok("vectors", text("doctor.vectors_ok", rows=len(held), model=named(held.model)))


def named(model: str) -> str:
    """The key of a vector space as a person knows it."""
    return model.partition("@")[0]


def _make_vectors(home: Home, progress: Progress) -> str:
    from archiver.rebuild import Wish, rebuild  # noqa: PLC0415  SQLAlchemy costs 0.25 s

    done = rebuild(home, Wish(words=False, vectors=True, caches=False), progress)
    return text("rebuild.vectors", rows=done.vectors or 0, embedded=done.embedded)


# --- what is not in them yet -----------------------------------------------------------------------------------------


def outbox(subject: Subject) -> Finding:
    if count := lookup.waiting_count(subject.patient, None):
        return note("outbox", text("doctor.outbox", count=count), mend=_apply)
    return ok("outbox", text("doctor.outbox_empty"))


def _apply(home: Home, progress: Progress) -> str:
    return text("doctor.did_outbox", count=home.index.apply(lambda done, total: progress("index", done, total)))


def unfinished(subject: Subject) -> Finding:
    """Work that `wwt rebuild` goes on with."""
    from store.outbox import KEPT  # noqa: PLC0415  SQLAlchemy costs 0.25 s

    patient = subject.patient
    if (model := patient.meta(lookup.NEXT_MODEL)) is not None:
        done, left = lookup.models(patient).get(model, 0), lookup.unembedded_count(patient, model)
        words = text("doctor.unfinished_model", model=named(model), done=done, left=left)
        return note("unfinished", words, text("doctor.fix_unfinished_model"))
    if patient.meta(KEPT) is not None:
        return note("unfinished", text("doctor.unfinished_words"), text("doctor.fix_unfinished_words"))
    return ok("unfinished", text("doctor.unfinished_none"))


def model(subject: Subject) -> Finding:
    """Whether the model of the setting is on this machine, is the vectors' own, and has embedded everything."""
    from archiver.embed.choose import model_key  # noqa: PLC0415  numpy costs 75 ms

    name = subject.settings.embedding.model
    try:
        key = model_key(name)
    except WwtError as error:
        return fault("model", text(error.key, **error.fields), text("doctor.fix_model"))
    if key is None:
        return ok("model", text("doctor.model_none"))
    if not subject.usable:
        return ok("model", text("doctor.model_ok", model=name))
    held, left = lookup.model_in_use(subject.patient), lookup.unembedded_count(subject.patient, key)
    if held is not None and held != key:
        return note("model", text("doctor.model_other", model=name, held=named(held), count=left), mend=_embed)
    if left:
        return note("model", text("doctor.model_behind", model=name, count=left), mend=_embed)
    return ok("model", text("doctor.model_ok", model=name))


def _embed(home: Home, progress: Progress) -> str:
    done = home.index.embed_missing(lambda count, total: progress("embed", count, total))
    return text("doctor.did_embed", count=done)


# --- caches ----------------------------------------------------------------------------------------------------------


def caches(subject: Subject) -> Finding:
    """Damaged weights make searching by meaning go wrong, a damaged lexicon recall by tags."""
    damaged = [path for path in (_lexicon(subject.root), _weights(subject)) if path is not None]
    if damaged:
        names = ", ".join(str(path.relative_to(subject.root)) for path in damaged)
        return fault("caches", text("doctor.caches_damaged", names=names), mend=_make_caches)
    return ok("caches", text("doctor.caches_ok"))


def _lexicon(root: Path) -> Path | None:
    """Recall reads it as the hook does: from a file that says nothing it takes no names, and says nothing either."""
    path = config.lexicon_path(root)
    return path if path.exists() and not config.aliases(root) else None


def _weights(subject: Subject) -> Path | None:
    from archiver.embed.choose import UNIVERSAL  # noqa: PLC0415  numpy costs 75 ms

    if subject.settings.embedding.model != UNIVERSAL:
        return None
    from archiver.embed.universal import damaged_cache  # noqa: PLC0415

    return damaged_cache(subject.root / "index" / "embedder")


def _make_caches(home: Home, progress: Progress) -> str:
    from archiver.rebuild import make_caches  # noqa: PLC0415  SQLAlchemy costs 0.25 s

    make_caches(home)
    return text("doctor.did_caches")

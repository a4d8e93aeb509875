"""Checks of the database: whether it is whole, and whether its rows fit together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from archiver import fingerprint
from archiver.doctor.finding import DAY, Finding, Progress, Subject, fault, listed, note, ok
from archiver.home import Home
from store import health
from store.errors import WwtError
from store.health import Silent
from store.messages import text
from store.records import anchor
from store.revision import REVISION


def database(subject: Subject) -> Finding:
    path, condition = subject.database, subject.condition
    if condition.closed:
        return fault(
            "database", text("doctor.database_closed", path=path), text("doctor.fix_access", path=subject.root)
        )
    if condition.damage:
        words = text("doctor.database_damaged", path=path, reason="; ".join(condition.damage))
        return fault("database", words, _way_back(subject.root))
    if condition.foreign:
        return fault("database", text("doctor.database_foreign", path=path), _way_back(subject.root))
    if condition.patient is None:
        return _none(subject.root)
    if condition.patient.partial:
        return note("database", text("doctor.database_partial", path=path), text("doctor.fix_partial"))
    return ok("database", text("doctor.database_ok", size=f"{path.stat().st_size / 1e6:,.1f} MB"))


def _none(root: Path) -> Finding:
    """A home that has seen a database, and has lost it, is no new one: archiving would bring back what agents still keep."""
    left = ("vault/*/*.md", "staging/*.json", "backups/*.db", "index/words/meta.json")
    if any(path for pattern in left for path in root.glob(pattern)):
        words = text("doctor.database_lost", path=root / "archive.db")
        return fault("database", words, text("doctor.fix_lost", backup=_copy(root), vault=root / "vault"))
    return note("database", text("doctor.database_none"), text("doctor.fix_archive"))


def _way_back(root: Path) -> str:
    """Nothing is moved or deleted for a person here: which copy is the better one is theirs to say."""
    return text("doctor.fix_database", backup=_copy(root), database=root / "archive.db", vault=root / "vault")


def _copy(root: Path) -> str:
    copies = sorted((root / "backups").glob("*.db"), key=lambda path: path.stat().st_mtime)
    if copies:
        return text("doctor.fix_backup", path=copies[-1])
    return text("doctor.fix_no_backup", path=root / "backups")


def schema(subject: Subject) -> Finding:
    found = subject.condition.revision
    if found is None or found < REVISION:
        return note("schema", text("doctor.schema_old", found=found or "-", known=REVISION), mend=_upgrade)
    if found > REVISION:
        return fault("schema", text("doctor.schema_new", found=found, known=REVISION), text("doctor.fix_schema_new"))
    if missing := health.lacking(subject.patient):
        words = text("doctor.schema_lacking", names=listed(missing))
        return fault("schema", words, _way_back(subject.root))
    return ok("schema", text("doctor.schema_ok", found=found))


def _upgrade(home: Home, progress: Progress) -> str:
    home.make()
    return text("doctor.did_schema", known=REVISION)


def keys(subject: Subject) -> Finding:
    """SQLite's own indexes, by which every question to the database is answered."""
    if found := subject.condition.keys:
        return fault("keys", text("doctor.keys_damaged", reason="; ".join(found)), mend=_make_keys)
    return ok("keys", text("doctor.keys_ok"))


def _make_keys(home: Home, progress: Progress) -> str:
    from sqlalchemy.exc import IntegrityError  # noqa: PLC0415  SQLAlchemy costs 0.25 s

    from store.mending import make_keys  # noqa: PLC0415

    try:
        with home.database.transaction() as tx:
            make_keys(tx)
    except IntegrityError as error:
        raise WwtError("doctor.keys_twice", reason=error.orig, way_back=_way_back(home.root)) from error
    return text("doctor.did_keys")


def texts(subject: Subject) -> Finding:
    """What a failing disk wrote into a text: whatever reads the row cannot go on."""
    if found := health.undecodable(subject.patient):
        names = listed(f"{table}: {count}" for table, count in sorted(found.items()))
        return fault("texts", text("doctor.texts_damaged", count=found.total(), names=names), mend=_make_readable)
    return ok("texts", text("doctor.texts_ok"))


def _make_readable(home: Home, progress: Progress) -> str:
    from store.mending import make_readable  # noqa: PLC0415  SQLAlchemy costs 0.25 s

    with home.database.transaction() as tx:
        return text("doctor.did_texts", count=make_readable(tx))


def links(subject: Subject) -> Finding:
    """Rows that point to rows which are gone: turns without their session, entries whose session was dropped."""
    found = health.dangling(subject.patient)
    if found:
        names = listed(f"{table} → {parent}: {count}" for (table, parent), count in sorted(found.items()))
        return fault("links", text("doctor.links_broken", count=found.total(), names=names), mend=_reconnect)
    return ok("links", text("doctor.links_ok"))


def _reconnect(home: Home, progress: Progress) -> str:
    from store.mending import reconnect  # noqa: PLC0415  SQLAlchemy costs 0.25 s

    with home.database.transaction() as tx:
        done = reconnect(tx)
    return text("doctor.did_links", restored=done["restored"], unlinked=done["unlinked"], dropped=done["dropped"])


def chunks(subject: Subject) -> Finding:
    """Sessions that are archived and cannot be found."""
    found = health.silent_sessions(subject.patient)
    if found:
        words = text("doctor.chunks_missing", count=len(found), names=listed(one.external_id for one in found))
        return fault("chunks", words, mend=_cutting(found))
    return ok("chunks", text("doctor.chunks_ok"))


def _cutting(found: list[Silent]) -> Callable[[Home, Progress], str]:
    def cut(home: Home, progress: Progress) -> str:
        from archiver.chunk import chunk_turns  # noqa: PLC0415  SQLAlchemy costs 0.25 s
        from store import chunks, sessions  # noqa: PLC0415

        added = 0
        for one in found:
            with home.database.transaction() as tx:
                sessions.renumber(tx, one.id)
                pieces = chunk_turns(sessions.turns_from(tx, one.id), 1)
                added += chunks.replace(tx, one.id, chunks.of_session(tx, one.id), pieces)
        return text("doctor.did_chunks", sessions=len(found), chunks=added)

    return cut


def orphans(subject: Subject) -> Finding:
    if count := health.orphaned_vectors(subject.patient):
        return fault("orphans", text("doctor.orphans", count=count), mend=_drop_orphans)
    return ok("orphans", text("doctor.orphans_none"))


def _drop_orphans(home: Home, progress: Progress) -> str:
    from store import embeddings  # noqa: PLC0415  SQLAlchemy costs 0.25 s

    with home.database.transaction() as tx:
        return text("doctor.did_orphans", count=embeddings.drop_orphans(tx))


def twice(subject: Subject) -> Finding:
    """The same sentence accepted twice in one project: which of the two is to stay is a person's to say."""
    by_words: dict[tuple[int, str], list[str]] = {}
    for row in health.active_entries(subject.patient):
        by_words.setdefault((row["project"], anchor(row["summary"])), []).append(row["uid"])
    pairs = [" = ".join(uids) for uids in by_words.values() if len(uids) > 1]
    if pairs:
        return note("twice", text("doctor.twice", count=len(pairs), names=listed(pairs)), text("doctor.fix_twice"))
    return ok("twice", text("doctor.twice_none"))


def clock(subject: Subject) -> Finding:
    if count := health.ahead(subject.patient, subject.now + DAY):
        return note("clock", text("doctor.clock_ahead", count=count), text("doctor.fix_clock"))
    return ok("clock", text("doctor.clock_ok"))


def secrets(subject: Subject) -> Finding:
    seen = subject.patient.meta(fingerprint.KEY)
    if seen is not None and seen != fingerprint.secret_rules(subject.root / "rules"):
        return note("secrets", text("doctor.secrets_changed"), mend=_mask)
    return ok("secrets", text("doctor.secrets_ok"))


def _mask(home: Home, progress: Progress) -> str:
    return text("doctor.did_secrets", count=home.masked_again)


def erasing(subject: Subject) -> Finding:
    from archiver.erase import DUE  # noqa: PLC0415  SQLAlchemy costs 0.25 s

    if subject.patient.meta(DUE) is not None or subject.patient.has_forgetting_due():
        return fault("erasing", text("doctor.erasing_due"), mend=_erase)
    return ok("erasing", text("doctor.erasing_ok"))


def _erase(home: Home, progress: Progress) -> str:
    from archiver import erase  # noqa: PLC0415  SQLAlchemy costs 0.25 s

    if not erase.finish(home, lambda count, total: progress("words", count, total)):
        raise WwtError("doctor.not_erasing")
    return text("doctor.did_erasing")

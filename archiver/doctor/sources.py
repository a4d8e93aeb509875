"""Checks of the transcripts: where they are, whether they can be read, whether all of them are in the archive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archiver import discover
from archiver.agents import AGENTS, display_name
from archiver.archive import source_of
from archiver.doctor.finding import Finding, Progress, Subject, fault, listed, note, ok
from archiver.home import Home
from archiver.sources.jsonl import open_stream
from archiver.sources.sqlite import is_busy, open_read_only
from archiver.transcript import Found
from store import health
from store.health import Mute
from store.messages import text

SOON = 7
"""Days before an agent deletes a transcript that is not archived, from which on it is worth saying."""

DATABASES = (".db", ".sqlite")


def transcripts(subject: Subject) -> Finding:
    """Agent by agent: its folder, and how many transcripts are in it that are not, or not as they are now, in the archive."""
    found = Counter(one.agent for one in subject.transcripts)
    waiting = Counter(one.agent for one in unarchived(subject))
    missing = discover.missing_roots()
    parts = [
        text("doctor.agent_found", agent=agent.name, found=found[agent.id], waiting=waiting[agent.id])
        for agent in AGENTS
        if found[agent.id]
    ]
    parts += [
        text("doctor.agent_missing", agent=display_name(agent), path=path)
        for agent, path in missing
        if not found[agent]
    ]
    words = "; ".join(parts) or text("doctor.agents_none")
    gone = any(name.startswith(str(path)) for _, path in missing for _, name in subject.known_files)
    if waiting or gone:
        return note("transcripts", words, text("doctor.fix_archive" if waiting else "doctor.fix_roots"))
    return ok("transcripts", words)


def unarchived(subject: Subject) -> list[Found]:
    """Transcripts that the archive does not know as they are now."""
    held = subject.known_files
    spelled = _spelling(subject)
    return [one for one in subject.transcripts if _differs(one, held.get((one.agent, spelled(one.name))))]


def _differs(found: Found, row: Any) -> bool:
    if row is None:
        return True
    try:
        return (row["size"], row["mtime_ns"]) != found.size_and_clock()
    except OSError:
        return False


def _spelling(subject: Subject) -> Callable[[str], str]:
    """A path as the archive writes it: secrets in it are masked."""
    from archiver.ingest import safe_id  # noqa: PLC0415  SQLAlchemy costs 0.25 s

    return lambda name: safe_id(name, subject.redact)


def unreadable(subject: Subject) -> Finding:
    """Files that cannot be opened, or are not what their name says. A database holds many transcripts, and is one file."""
    files = dict.fromkeys(one.path for one in subject.transcripts)
    bad = [f"{path}: {reason}" for path in files if (reason := _unreadable(path))]
    if bad:
        words = text("doctor.unreadable", count=len(bad), names=listed(bad))
        return fault("unreadable", words, text("doctor.fix_unreadable"))
    return ok("unreadable", text("doctor.unreadable_none"))


def _unreadable(path: Path) -> str:
    try:
        if path.suffix in DATABASES:
            with open_read_only(path):
                return ""
        with open_stream(path) as stream:
            stream.read(1)
    except (OSError, EOFError) as error:
        if isinstance(error, OSError) and is_busy(error):
            return ""
        return getattr(error, "strerror", None) or str(error)
    return ""


# --- read, and nothing came of it ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unheard:
    """A transcript in which something is said that the archive does not have."""

    mute: Mute
    found: Found


def unheard(subject: Subject) -> Finding:
    lost = list(_unheard(subject))
    if lost:
        words = text("doctor.unheard", count=len(lost), names=listed(one.mute.name for one in lost))
        return fault("unheard", words, mend=_reading(lost))
    half = health.half_read_files(subject.patient)
    if half:
        words = text("doctor.half_read", count=len(half), names=listed(half))
        return note("unheard", words, text("doctor.fix_archive"))
    return ok("unheard", text("doctor.unheard_none"))


def _unheard(subject: Subject) -> Iterator[Unheard]:
    """Files without a turn are read again, as many hold none: only titles, only a probe."""
    by_name = {(one.agent, one.name): one for one in subject.transcripts}
    for mute in health.mute_files(subject.patient):
        found = by_name.get((mute.agent, mute.name)) or _found(mute)
        if found is not None and _says_something(subject, found):
            yield Unheard(mute, found)


def _found(mute: Mute) -> Found | None:
    """The transcript by its name, wherever it lies; None if it is gone."""
    path = Path(mute.name.partition("#")[0])
    found, _ = discover.from_paths([path], known={mute.name: mute.agent}) if path.is_file() else ([], [])
    return next((one for one in found if (one.agent, one.name) == (mute.agent, mute.name)), None)


def _says_something(subject: Subject, found: Found) -> bool:
    from archiver.ingest import read_whole, safe_id  # noqa: PLC0415  SQLAlchemy costs 0.25 s

    try:
        conversation, _, about = read_whole(source_of(found.agent), found, subject.redact)
    except (OSError, ValueError):
        return False
    session = safe_id(about.external_id, subject.redact) if about else ""
    forgotten = subject.patient.forgotten_up_to(found.agent, session)
    return any(forgotten is None or (turn.time or 0) > forgotten for turn in conversation.turns)


def _reading(lost: list[Unheard]) -> Callable[[Home, Progress], str]:
    def read(home: Home, progress: Progress) -> str:
        from archiver.ingest import ingest_file  # noqa: PLC0415  SQLAlchemy costs 0.25 s
        from store import sessions  # noqa: PLC0415

        turns = 0
        for one in lost:
            with home.database.transaction() as tx:  # as if nothing of it had been read
                sessions.update_file(tx, one.mute.id, {"size": -1, "offset": 0, "parser_state": "{}"})
            source = source_of(one.found.agent)
            turns += ingest_file(home.database, source, one.found, home.redact, final=True).turns_added
        return text("doctor.did_unheard", files=len(lost), turns=turns)

    return read


# --- what agents do to their files -----------------------------------------------------------------------------------


def vanished(subject: Subject) -> Finding:
    count = health.vanished_files(subject.patient)
    return ok("vanished", text("doctor.vanished" if count else "doctor.vanished_none", count=count))


def retention(subject: Subject) -> Finding:
    """How long agents keep transcripts, and which setting of theirs says so; it is theirs to change."""
    every = discover.retention((one for one in subject.transcripts if one.agent == "claude-code"), subject.now)
    parts = []
    if every is not None:
        parts.append(text("doctor.retention_claude", days=every.days, path=every.settings))
    if (gemini := _gemini()) is not None:
        parts.append(text("doctor.retention_gemini", days=gemini[0], path=gemini[1]))
    words = "; ".join(parts) or text("doctor.retention_none")
    left = discover.retention(unarchived(subject), subject.now)
    if left is not None and left.days_left <= SOON:
        soon = text("doctor.retention_soon", days=max(0, left.days_left))
        return note("retention", f"{words}; {soon}", text("doctor.fix_archive"))
    return ok("retention", words)


def _gemini() -> tuple[str, Path] | None:
    """How long Gemini CLI keeps sessions, where it is installed."""
    days, path = discover.gemini_days()
    if not path.parent.is_dir():
        return None
    return (text("doctor.retention_off") if days is None else f"{days}d"), path

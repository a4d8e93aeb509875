"""The whole way of new transcripts: find, read, index, distil. Running it again on an unchanged tree writes nothing."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archiver import deleted, discover, inbox
from archiver.home import Home
from archiver.sources import SOURCES
from archiver.transcript import Found, Source
from archiver.watch import Outlook
from rules.scrub import scrub
from store import messages
from store.errors import WwtError
from store.reader import DueSession
from store.records import Status, now_ms

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from archiver.ingest import FileReport

Told = tuple[Path, inbox.Event | None]
"""A file in the inbox, and the event in it."""

Known = dict[tuple[str, str], sqlite3.Row]
"""Transcript files read before, by agent and path."""

Progress = Callable[[str, int, int], None]
"""Called as (stage, done, total); the stages are read (bytes of transcripts), index and embed (chunks), distil (sessions)."""

INDEX_EVERY = 1_500
"""New chunks after which the word index is brought up: with those of one more session, still what a search can score
straight from the tables (`index.STRAIGHT`)."""

MINUTE = 60_000
DAY = 24 * 60 * MINUTE


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asked of an archive run. No paths: every agent's own folders."""

    paths: tuple[Path, ...] = ()
    agents: tuple[str, ...] = ()
    since: int | None = None
    distil: bool = True
    finished: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """A session that is archived but not quiet long enough yet to be distilled."""

    agent: str
    session: str
    minutes_left: int


@dataclass(slots=True)
class Report:
    """What a run came to. `unreadable` holds a record (line) or a whole file (line 0) each."""

    files_read: int = 0
    files_found: int = 0
    bytes_read: int = 0
    sessions: set[int] = field(default_factory=set)
    turns_added: int = 0
    chunks_added: int = 0
    chunks_embedded: int = 0
    candidates_added: int = 0
    waiting_idle: list[Waiting] = field(default_factory=list)
    unreadable: list[dict[str, Any]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    days_left: int | None = None
    """Until an agent deletes the oldest transcript that was not archived before this run."""
    deleted_by: str = ""
    would_read: list[str] = field(default_factory=list)

    def contract(self) -> dict[str, Any]:
        """The stable JSON keys of `wwt archive --json`."""
        return {
            "files_read": self.files_read,
            "bytes_read": self.bytes_read,
            "sessions": len(self.sessions),
            "turns_added": self.turns_added,
            "chunks_added": self.chunks_added,
            "chunks_embedded": self.chunks_embedded,
            "candidates_added": self.candidates_added,
            "waiting_idle": [
                {"agent": w.agent, "session": w.session, "minutes_left": w.minutes_left} for w in self.waiting_idle
            ],
            "unreadable": self.unreadable,
            "files_found": self.files_found,
            "notices": self.notices,
        }


def archive(home: Home, wish: Wish, progress: Progress = lambda stage, done, total: None) -> Report:
    """Archive, index and distil what is new. Each file is one transaction, so stopping at any instant loses nothing."""
    report = Report()
    known = home.reader.files()
    events = [] if wish.paths else list(inbox.waiting(home.root / "inbox"))
    found = _find(wish, known, events, report)
    report.files_found = len(found)
    spelled = _spelling(home, known)
    changed = _changed(home, wish, found, known, spelled)
    if not wish.paths and (kept := discover.retention(changed, now_ms())):
        report.days_left, report.deleted_by = kept.days_left, kept.agent
    if wish.dry_run:
        report.would_read = [item.name for item in changed]
        return report
    if home.masked_again:
        report.notices.append(messages.text("archive.remasked", count=home.masked_again))
    report.notices += [str(fault) for fault in home.rule_faults]
    _read(home, wish, changed, report, progress)
    _erase(home)
    if not wish.paths:
        _mark_missing(home, found, known, spelled)
        _settle(home, events)
    _index(home, report, progress)
    if wish.distil:
        _distil(home, wish, report, progress)
    _adopt(home, report)
    return report


def outlook(home: Home, wish: Wish) -> Outlook:
    """What a run would have to do: transcripts that changed, sessions that are over, events of hooks. Nothing is written."""
    known = home.reader.files()
    found = _find(wish, known, [], Report())
    changed = _changed(home, wish, found, known, _spelling(home, known))
    ready, _ = due(home.reader.due_sessions(), home.settings.archive.idle_minutes, finished=wish.finished)
    files = {(item.agent, item.name, *_size_and_clock(item)) for item in changed}
    over = {(row.agent, row.external_id, row.changed_at) for row in ready} if wish.distil else set()
    told = set() if wish.paths else {(str(path),) for path, _ in inbox.waiting(home.root / "inbox")}
    return frozenset(files | over | told)


def _size_and_clock(found: Found) -> tuple[int, int]:
    try:
        return found.size_and_clock()
    except OSError:
        return 0, 0


def _changed(home: Home, wish: Wish, found: list[Found], known: Known, spelled: Callable[[str], str]) -> list[Found]:
    quiet = 0 if wish.finished else home.settings.archive.idle_minutes
    changed = [item for item in found if not _unchanged(item, known, quiet, spelled, buried=_to_bury(home, item))]
    if changed and wish.distil and not home.settings.archive.keep_deleted:
        changed = deleted.settled(changed, found, home.reader.deletions())
    return deleted.in_turn(changed)


def _find(wish: Wish, known: Known, events: list[Told], report: Report) -> list[Found]:
    """Transcripts to look at, what hooks told of first, then newest first. A path that is none is reported and costs nothing else."""
    named = {path: agent for agent, path in known}
    if not wish.paths:
        told = [Path(event.transcript) for _, event in events if event and _is_file(event.transcript)]
        first, _ = discover.from_paths(told, known=named)
        found = _each_once(first, discover.discover(list(wish.agents) or None))
    else:
        found, problems = discover.from_paths(list(wish.paths), known=named)
        report.unreadable += [
            {"file": str(problem.path), "line": 0, "reason": problem.reason()} for problem in problems
        ]
        if not found and len(problems) == len(wish.paths):
            raise WwtError("archive.nothing_readable", reason="; ".join(problem.message() for problem in problems))
    return [item for item in found if _wanted(item, wish)]


def _each_once(told: list[Found], discovered: Iterable[Found]) -> list[Found]:
    """What hooks told of first. A file that they spell differently (through a link) goes by the path in its agent's folder."""
    if not told:
        return list(discovered)
    by_file = {discover.identity(item): item for item in discovered}
    first = [by_file.pop(discover.identity(item), item) for item in told]
    return [*first, *by_file.values()]


def _is_file(path: str) -> bool:
    try:
        return bool(path) and Path(path).is_file()
    except OSError:  # a name that is too long, a folder that is closed to us
        return False


def _wanted(found: Found, wish: Wish) -> bool:
    if wish.agents and found.agent not in wish.agents:
        return False
    try:
        return wish.since is None or found.size_and_clock()[1] // 1_000_000 >= wish.since
    except OSError:
        return True  # the reading reports it


def source_of(agent: str) -> Source:
    return next(source for source in SOURCES if source.agent == agent)


def _spelling(home: Home, known: Known) -> Callable[[str], str]:
    """A path as the archive writes it. Only where one was masked or is odd do the secret rules have to be loaded."""
    any_masked = any("[secret:" in path for _, path in known)

    def spelled(path: str) -> str:
        if not any_masked and scrub(path) == path:
            return path
        from archiver.ingest import safe_id  # noqa: PLC0415  SQLAlchemy costs 0.25 s

        return safe_id(path, home.redact)

    return spelled


def _unchanged(
    found: Found, known: Known, idle_minutes: int, spelled: Callable[[str], str], *, buried: bool = False
) -> bool:
    """Whether it was read as it is. `buried`: only to drop its words, which a newer parser does not do better."""
    row = known.get((found.agent, spelled(found.name)))
    if row is None:
        return False
    try:
        size, clock = found.size_and_clock()
    except OSError:
        return False
    # Never the clock alone: two appends may fall into one tick of it.
    same = (row["size"], row["mtime_ns"]) == (size, clock)
    if not buried:
        same = same and row["parser_version"] == source_of(found.agent).parser_version
    return same and not (row["pending"] and _idle(clock // 1_000_000, idle_minutes))


def _idle(last: int, idle_minutes: int) -> bool:
    """Whether nothing was written for that long since `last` (UTC ms)."""
    return _distance(last) >= idle_minutes * MINUTE


def _distance(last: int) -> int:
    """Milliseconds between now and then. What lies far ahead was written by a wrong clock, and keeps nothing open for ever."""
    return abs(now_ms() - last)


# --- reading ---


def _read(home: Home, wish: Wish, changed: list[Found], report: Report, progress: Progress) -> None:
    if not changed:
        return
    from archiver.ingest import ingest_file, settle_titles  # noqa: PLC0415  SQLAlchemy costs 0.25 s; a run that finds nothing new goes without

    meter = _Meter(home, progress, sum(map(_amount, changed)))
    for found in changed:
        meter.begin()
        try:
            if _to_bury(home, found):
                if wish.distil:
                    _bury(home, found, deleted.said_since(found, changed), report)
                continue
            final = (
                wish.finished
                or found.segment != "live"
                or _idle(found.size_and_clock()[1] // 1_000_000, home.settings.archive.idle_minutes)
            )
            source = source_of(found.agent)
            one = ingest_file(home.database, source, found, home.redact, final=final, committed=meter.between)
        except OSError as error:
            report.unreadable.append({"file": found.name, "line": 0, "reason": error.strerror or str(error)})
            continue
        except WwtError:
            raise
        except (
            Exception
        ) as error:  # a fault of ours in one file must not cost the others; its transaction is rolled back
            log.debug("%s", found.name, exc_info=True)
            reason = messages.text("archive.fault", error=f"{type(error).__name__}: {error}"[:300])
            report.unreadable.append({"file": found.name, "line": 0, "reason": reason})
            continue
        finally:
            meter.done += _amount(found)
        _count(report, one)
        if one.taken_over:
            _move_waiting(home, found.agent, one.taken_over)
        meter.file_ended(one.chunks_added)
    settle_titles(home.database)
    meter.show(0)


MEMBER_BYTES = 16 << 10
"""What a session of a database counts for in the progress: asking for its size would mean reading it."""


def _amount(found: Found) -> int:
    return MEMBER_BYTES if found.member else _size_and_clock(found)[0]


class _Meter:
    """How far reading is, in bytes; and brings the word index up every so many chunks, so that the newest is soon found."""

    def __init__(self, home: Home, progress: Progress, total: int) -> None:
        self._home, self._progress, self._total = home, progress, total
        self.done = 0
        self._unindexed = 0
        self._of_file = 0

    def begin(self) -> None:
        self._of_file = 0
        self.show(0)

    def show(self, read: int) -> None:
        self._progress("read", min(self.done + read, self._total), self._total)

    def between(self, read: int, chunks: int) -> None:
        """Within a file that holds many sessions. Both count from its start."""
        self.show(read)
        self._added(chunks - self._of_file)
        self._of_file = chunks

    def file_ended(self, chunks: int) -> None:
        self._added(chunks - self._of_file)

    def _added(self, chunks: int) -> None:
        self._unindexed += chunks
        if self._unindexed >= INDEX_EVERY:
            self._home.index.apply()
            self._unindexed = 0


def _count(report: Report, one: FileReport) -> None:
    report.files_read += 1
    report.bytes_read += one.bytes_read
    report.turns_added += one.turns_added
    report.chunks_added += one.chunks_added
    report.sessions |= one.session_ids
    report.unreadable += [{"file": one.name, "line": bad.line, "reason": bad.reason} for bad in one.unreadable]


def _move_waiting(home: Home, agent: str, taken_over: list[str]) -> None:
    from archiver.succession import move_waiting  # noqa: PLC0415  pydantic costs 0.1 s

    for session in taken_over:
        move_waiting(home.queue, source_of(agent).formerly, agent, session)


def _to_bury(home: Home, found: Found) -> bool:
    return deleted.is_deleted(found) and not home.settings.archive.keep_deleted


def _bury(home: Home, found: Found, again: list[Found], report: Report) -> None:
    from archiver.distil import bury  # noqa: PLC0415  loads the mining rules

    one, intake = bury(home, source_of(found.agent), found, again)
    _count(report, one)
    report.candidates_added += intake.added


def _erase(home: Home) -> None:
    """Once for all sessions that were deleted, and for what an interrupted run left due."""
    if home.reader.meta("erase_due"):
        from archiver import erase  # noqa: PLC0415  SQLAlchemy costs 0.25 s

        erase.finish(home)


def _mark_missing(home: Home, found: list[Found], known: Known, spelled: Callable[[str], str]) -> None:
    """Note which files an agent has cleaned up. The archive keeps their sessions; a root that is gone says nothing."""
    present = {(item.agent, spelled(item.name)) for item in found}
    # A database that could not be asked for its sessions stands for all of them.
    whole = {spelled(item.name) for item in found if not item.member}
    roots = [root for source in SOURCES for root in source.roots() if root.is_dir()]
    gone = [
        int(row["id"])
        for key, row in known.items()
        if key not in present
        and row["missing_since"] is None
        and any(Path(key[1]).is_relative_to(root) for root in roots)
        and _is_gone(Path(key[1]))
        and not any(key[1][:at] in whole for at, letter in enumerate(key[1]) if letter == "#")
    ]
    if gone:
        from store import sessions  # noqa: PLC0415  SQLAlchemy costs 0.25 s

        with home.database.transaction() as tx:
            sessions.mark_missing(tx, gone, now_ms())


def _is_gone(path: Path) -> bool:
    try:
        return not path.exists()
    except OSError:  # a folder that is closed to us says nothing
        return False


def _settle(home: Home, events: list[Told]) -> None:
    """Sessions whose end a hook told of are over. An event goes when its session is known, or after a day without one."""
    if not events:
        return
    from store import sessions  # noqa: PLC0415  SQLAlchemy costs 0.25 s

    for path, event in events:
        if event is None:
            _quarantine(home, path)
            continue
        with home.database.transaction() as tx:
            held = sessions.find(tx, event.agent, event.session)
            if held is not None and event.ends:
                sessions.end(tx, held)
        if held is not None or now_ms() - event.at > DAY:
            path.unlink(missing_ok=True)


def _quarantine(home: Home, path: Path) -> None:
    """A file in the inbox that holds no event is kept where `wwt status` counts it."""
    folder = home.root / "inbox" / "quarantine"
    folder.mkdir(exist_ok=True, mode=0o700)
    with suppress(FileNotFoundError):  # another run was faster
        path.rename(folder / path.name)


# --- indexing ---


def _index(home: Home, report: Report, progress: Progress) -> None:
    report.notices += [messages.text(key) for key in home.index.ensure()]
    home.index.apply(lambda done, total: progress("index", done, total))
    report.chunks_embedded, notices = embed(home, lambda done, total: progress("embed", done, total))
    report.notices += notices


def embed(home: Home, progress: Callable[[int, int], None] | None = None) -> tuple[int, list[str]]:
    """Embed what has no vector yet: how many chunks, and what a person should hear.

    A model that cannot be had fails nothing: words are found without it, and a later run makes up for it.
    """
    try:
        return home.index.embed_missing(progress), []
    except WwtError as error:
        if not error.key.startswith("embed."):
            raise
        return 0, [messages.text(error.key, **error.fields)]


# --- distilling ---


def _distil(home: Home, wish: Wish, report: Report, progress: Progress) -> None:
    ready, report.waiting_idle = due(
        home.reader.due_sessions(), home.settings.archive.idle_minutes, finished=wish.finished
    )
    if not ready:
        return
    from archiver.distil import compile_lexicon, distil  # noqa: PLC0415  the mining rules, and Kiwi at 2.5 s

    compile_lexicon(home)
    for done, intake in enumerate(distil(home, ready)):
        progress("distil", done + 1, len(ready))
        report.candidates_added += intake.added


def _adopt(home: Home, report: Report) -> None:
    """Take over what a person changed in the vault since it was last written."""
    written = home.root / "vault" / ".wwt" / "state.json"
    if not written.exists():
        return
    since = written.stat().st_mtime_ns
    notes = (note for note in written.parent.parent.glob("*/*.md") if note.is_file())
    if any(note.stat().st_mtime_ns > since for note in notes):
        synced = home.vault.sync()
        report.unreadable += [
            {"file": str(broken.path), "line": broken.line, "reason": broken.reason} for broken in synced.broken
        ]
        report.notices += embed(home)[1]


def due(rows: Iterable[DueSession], idle_minutes: int, *, finished: bool) -> tuple[list[DueSession], list[Waiting]]:
    """Parts the changed sessions into those that are over (an end event, a reset, a deletion, or idle long enough) and those that wait."""
    ready, waiting = [], []
    for row in rows:
        left = 0 if finished else _minutes_left(row, idle_minutes)
        if left <= 0:
            ready.append(row)
        else:
            waiting.append(Waiting(row.agent, row.external_id, left))
    return ready, waiting


def _minutes_left(row: DueSession, idle_minutes: int) -> int:
    if row.status in (Status.ENDED, Status.RESET, Status.DELETED):
        return 0
    idle = min(_distance(row.ended_at or 0), _distance((row.mtime_ns or 0) // 1_000_000))
    return -(-(idle_minutes * MINUTE - idle) // MINUTE)

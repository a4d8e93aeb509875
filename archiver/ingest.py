"""Bringing transcripts into the archive: parse, mask, store, chunk; one transaction a file, O(new bytes) work."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import Connection

from archiver.chunk import chunk_turns
from archiver.project import project_key
from archiver.sources.jsonl import open_regular
from archiver.transcript import (
    About,
    Extend,
    Found,
    Outcome,
    Progress,
    RawTurn,
    Reread,
    Resume,
    Retract,
    Source,
    Title,
    Unreadable,
    Upsert,
)
from store import chunks, forgetting, projects, sessions, succession
from store.database import Database
from store.records import Conversation, Fact, Role, SafeText, State, Status, Turn, now_ms

Redact = Callable[[str], SafeText]

PROBE = 4096
"""Bytes at the head of a file, and before the offset, that must still be the same for a parse to resume."""

BATCH = 256
SUMMARY_RANK = 1


@dataclass(slots=True)
class FileReport:
    """What reading one file, or one session of a database, came to. `session_ids` are the sessions it changed."""

    name: str
    bytes_read: int = 0
    turns_added: int = 0
    chunks_added: int = 0
    session_ids: set[int] = field(default_factory=set)
    unreadable: list[Unreadable] = field(default_factory=list)
    taken_over: list[str] = field(default_factory=list)
    """Sessions that were archived under the name of the agent that the source says was theirs formerly."""


COMMIT_EVERY = 2_000
"""Turns after which an export that holds many sessions commits, at the end of a session: other writers wait no longer."""


def ingest_file(
    database: Database,
    source: Source,
    found: Found,
    redact: Redact,
    *,
    final: bool,
    committed: Callable[[int, int], None] = lambda read, chunks: None,
) -> FileReport:
    """Store what is new in one file. Running it again changes nothing.

    All of it lands or none, but for an export of many sessions, each of which does; it is read again until all have.
    `committed` is called in between, outside any transaction, with the bytes read and the chunks added so far.
    """
    report = FileReport(found.name)
    try:
        with _Commits(database, lambda: committed(report.bytes_read, report.chunks_added)) as commits:
            _file(commits, source, found, redact, report, final=final, anew=False)
    except Reread:
        report = FileReport(found.name, bytes_read=report.bytes_read)
        with _Commits(database) as commits:
            _file(commits, source, found, redact, report, final=final, anew=True)
    return report


class _Commits:
    """One transaction after another."""

    def __init__(self, database: Database, between: Callable[[], None] = lambda: None) -> None:
        self._database = database
        self._between = between
        self._stack = ExitStack()

    def __enter__(self) -> _Commits:
        self.tx = self._stack.enter_context(self._database.transaction())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def renew(self) -> None:
        self._stack.close()
        self._between()
        self.tx = self._stack.enter_context(self._database.transaction())


def _file(
    commits: _Commits, source: Source, found: Found, redact: Redact, report: FileReport, *, final: bool, anew: bool
) -> None:
    row = sessions.file_row(commits.tx, source.agent, safe_id(found.name, redact))
    progress, probed = (Progress(), 0) if anew else _resume(found, row, source)
    report.bytes_read += probed
    filing = _Filing(commits, source, found, redact, report)
    if row is None or progress.offset or anew:
        filing.run(progress, final=final)
        return
    # The file holds other content now, or is read by a newer parser. What it gave stays, unless the same bytes no longer give it.
    loose = sessions.detach_turns(commits.tx, row.id)
    upgraded = row.parser_version != source.parser_version and _same_content(found, row, source)
    filing.run(progress, final=final, gone=loose if upgraded else ())


def _resume(found: Found, row: sessions.FileRow | None, source: Source) -> tuple[Progress, int]:
    """Where to go on reading, and the bytes read to find out: only where the bytes already read are still the same."""
    way = _way(found, source)
    if row is None or row.parser_version != source.parser_version or not row.offset or way is Resume.NEVER:
        return Progress(), 0
    saved = json.loads(row.state)
    progress = Progress(row.offset, saved["line"], saved["state"])
    if way is Resume.STATE:
        return progress, 0
    head, tail = probes(found.path, row.offset)
    if (head, tail) != (row.head_hash, row.tail_hash):
        return Progress(), 2 * PROBE
    return progress, min(row.offset, PROBE) * 2


def _way(found: Found, source: Source) -> Resume:
    """How this one may be resumed: the bytes of a database say nothing of a session in it, those of a .zst file not where it stands."""
    if source.resume is not Resume.BYTES:
        return source.resume
    if found.member:
        return Resume.STATE
    return Resume.NEVER if found.path.suffix == ".zst" else Resume.BYTES


def _same_content(found: Found, row: sessions.FileRow, source: Source) -> bool:
    if _way(found, source) is Resume.BYTES and row.offset:
        return probes(found.path, row.offset) == (row.head_hash, row.tail_hash)
    return (row.size, row.mtime_ns) == found.size_and_clock()


def probes(path: Path, offset: int) -> tuple[str, str]:
    """Hashes of the first bytes of a file, and of those right before `offset`."""
    with open_regular(path) as file:
        head = file.read(min(PROBE, offset))
        file.seek(max(0, offset - PROBE))
        tail = file.read(min(PROBE, offset))
    return hashlib.sha256(head).hexdigest()[:32], hashlib.sha256(tail).hexdigest()[:32]


@dataclass(slots=True)
class _Session:
    """What a parse found of one session so far. `forgotten`: UTC ms up to which the user had its turns forgotten."""

    id: int
    external_id: SafeText
    forgotten: int | None
    change: sessions.Change = field(default_factory=sessions.Change)
    retitled: bool = False
    turns: list[sessions.NewTurn] = field(default_factory=list)
    facts: list[dict[str, Any]] = field(default_factory=list)
    titles: list[Title] = field(default_factory=list)
    times: tuple[int, int] | None = None
    """The earliest and latest of those that were told with nothing else."""


class _Filing:
    """One parse on its way into the archive."""

    def __init__(self, commits: _Commits, source: Source, found: Found, redact: Redact, report: FileReport) -> None:
        self.commits, self.source, self.found, self.redact, self.report = commits, source, found, redact, report
        self.path = safe_id(found.name, redact)
        self.masked_ids = False
        self.session: _Session | None = None
        self.sessions_seen = 0
        self.uncommitted = 0
        self.in_pieces = True
        self.last_session: int | None = None

    @property
    def tx(self) -> Connection:
        return self.commits.tx

    def run(self, progress: Progress, *, final: bool, gone: Sequence[int] = ()) -> None:
        """Parse and store. `gone` are ids of turns that are dropped unless this parse gives them again."""
        self.size, self.clock = self.found.size_and_clock()
        self.in_pieces = not gone
        self.gone = list(gone)
        self.file_id = sessions.save_file(self.tx, self.source.agent, self.path, self._unfinished())
        parse = self.source.parse(self.found, progress, final=final)
        probed = self.report.bytes_read
        try:
            for event in parse:
                self._take(event)
                self.report.bytes_read = probed + parse.bytes_read
        finally:
            self.report.bytes_read = probed + parse.bytes_read
        self._close()
        for session_id, ids in sessions.drop_unclaimed(self.tx, self.gone).items():
            self._changed(session_id, sessions.Change(altered=ids))
        self._finish(parse.progress, final=final)

    def _unfinished(self) -> dict[str, Any]:
        """The file's row until all of it is read: whoever sees it knows that the file has to be read again."""
        return {"segment": self.found.segment, "size": -1, "mtime_ns": self.clock}

    def _take(self, event: object) -> None:
        match event:
            case Unreadable():
                self.report.unreadable.append(event)
            case About():
                self._about(event)
            case Title() if event.leaf is not None:
                self._wait_title(event.leaf, event.text)
            case _ if self.session is not None:
                self._said(self.session, event)

    def _said(self, session: _Session, event: object) -> None:
        match event:
            case Upsert(turn):
                self._turn(session, turn)
            case Extend(key, text):
                self._flush(session)
                if more := self.redact(text).strip():
                    sessions.extend_turn(
                        self.tx,
                        self.source.agent,
                        session.id,
                        session.external_id,
                        self._id(key),
                        more,
                        session.change,
                        own=session.forgotten is not None,
                    )
            case Retract(key):
                self._flush(session)
                sessions.retract_turn(
                    self.tx, self.source.agent, session.id, session.external_id, self._id(key), session.change
                )
            case Outcome():
                names = {
                    "key": self._id(event.key),
                    "after_turn": self._id(event.after),
                    "label": self.redact(event.label),
                }
                session.facts.append({**names, "kind": event.kind, "ok": int(event.ok), "time": event.time})
            case Title():
                session.titles.append(event)

    def _turn(self, session: _Session, raw: RawTurn) -> None:
        if session.forgotten is not None and (raw.time is None or raw.time <= session.forgotten):
            return
        new = masked(raw, self.redact)
        self.masked_ids |= new.key != raw.key
        if new.text:
            session.turns.append(new)
        if len(session.turns) >= BATCH:
            self._flush(session)

    def _flush(self, session: _Session) -> None:
        if session.turns:
            sessions.put_turns(
                self.tx,
                self.source.agent,
                session.id,
                session.external_id,
                self.file_id,
                session.turns,
                session.change,
            )
            self.uncommitted += len(session.turns)
        session.turns = []

    def _about(self, about: About) -> None:
        external_id = self._id(about.external_id)
        if self.session is None or self.session.external_id != external_id:
            self._close()
            if self.in_pieces and self.uncommitted >= COMMIT_EVERY:
                self.commits.renew()
                self.uncommitted = 0
            self.session = self._begin(external_id)
        elif about == About(about.external_id, first_time=(time := about.last_time), last_time=time):
            self._lasted(self.session, time)
            return
        self._refine(self.session, about)

    @staticmethod
    def _lasted(session: _Session, time: int | None) -> None:
        """Some parsers tell the time of every turn: it is written once, when all of the session is told."""
        if time is not None and (session.forgotten is None or time > session.forgotten):
            first, last = session.times or (time, time)
            session.times = min(first, time), max(last, time)

    def _begin(self, external_id: SafeText) -> _Session:
        self.sessions_seen += 1
        if former := self.source.formerly:
            stamp = (self.size, self.clock)
            loose = succession.take_over(self.tx, former, self.source.agent, external_id, self.path, stamp)
            self.gone += loose or []
            self.report.taken_over += [] if loose is None else [external_id]
        return _Session(
            sessions.ensure(self.tx, self.source.agent, external_id),
            external_id,
            sessions.forgotten_up_to(self.tx, self.source.agent, external_id),
        )

    def _refine(self, session: _Session, about: About) -> None:
        known = sessions.get(self.tx, session.id)
        values: dict[str, Any] = {
            "git_branch": self._safe(about.branch),
            "is_subagent": int(about.is_subagent) or None,
            "status": self._status(about, Status(known.status)),
        }
        if known.cwd is None and about.cwd:
            values["cwd"] = self._safe(about.cwd)
            values["project_id"] = project_of(self.tx, about.cwd, self.redact)
            session.retitled = True
        if about.parent and known.parent_id is None:
            parent = self._parent(session, self._id(about.parent), is_subagent=about.is_subagent)
            values["parent_id"] = parent if parent != session.id else None
        sessions.refine(self.tx, session.id, **values)
        sessions.widen(self.tx, session.id, about.first_time, about.last_time)

    def _parent(self, session: _Session, external_id: SafeText, *, is_subagent: bool) -> int | None:
        """Id of the session that began this one, made if new; None if it was forgotten, and then its subagent is too."""
        agent = self.source.agent
        gone = sessions.forgotten_up_to(self.tx, agent, external_id)
        if gone is None:
            return sessions.ensure(self.tx, agent, external_id)
        if is_subagent and (session.forgotten is None or session.forgotten < gone):
            forgetting.entomb(self.tx, forgetting.Named(agent, session.external_id), gone)
            session.forgotten = gone
        return sessions.find(self.tx, agent, external_id)

    def _id(self, native: str) -> SafeText:
        safe = safe_id(native, self.redact)
        self.masked_ids |= safe != native
        return safe

    def _safe(self, text: str | None) -> SafeText | None:
        return self.redact(text) if text else None

    def _status(self, about: About, held: Status) -> str | None:
        if self.found.session_status is not Status.ACTIVE:
            return self.found.session_status.value
        if about.ended:
            return Status.ENDED.value
        # An id that was deleted and is in use again.
        return Status.ACTIVE.value if held is Status.DELETED else None

    def _close(self) -> None:
        """All of a session is told: bring its title, outcomes and chunks up."""
        session, self.session = self.session, None
        if session is None:
            return
        self._flush(session)
        if session.times:
            sessions.widen(self.tx, session.id, *session.times)
        titled = False
        for title in session.titles:
            if title.rank == 0 and titled:
                continue  # every prompt may be one; only the first counts
            if text := self.redact(title.text).strip():
                titled = True
                session.retitled |= sessions.offer_title(self.tx, session.id, text, title.rank)
        sessions.put_outcomes(self.tx, session.id, session.facts)
        if session.change.any or session.facts:
            sessions.refine(self.tx, session.id, changed_at=now_ms())
        self.report.turns_added += session.change.added
        if session.change.added and self.found.segment == "live":
            sessions.reopen(self.tx, session.id)
        # What is chunked now is indexed with the new title; only what was there before has to be indexed again.
        held = chunks.last_id(self.tx, session.id) if session.retitled else 0
        if session.change.any:
            self._changed(session.id, session.change)
        if session.forgotten is not None and not forgetting.revived(self.tx, session.id):
            self.report.session_ids.discard(session.id)
            self.last_session = None
            return
        if held:
            chunks.reindex(self.tx, session.id, held)
        self.last_session = session.id

    def _changed(self, session_id: int, change: sessions.Change) -> None:
        self.report.session_ids.add(session_id)
        self.report.chunks_added += rechunk(self.tx, session_id, change)

    def _finish(self, progress: Progress, *, final: bool) -> None:
        # The parser's state holds ids as they are; with a secret among them it is not kept, and the file is read whole.
        progress = Progress() if self.masked_ids else progress
        offset = progress.offset
        probed = offset and _way(self.found, self.source) is Resume.BYTES
        head, tail = probes(self.found.path, offset) if probed else ("", "")
        state = json.dumps({"line": progress.line, "final": final, "state": progress.state}, separators=(",", ":"))
        columns: dict[str, Any] = {"head_hash": head, "tail_hash": tail, "offset": offset, "parser_state": state}
        columns |= {"parser_version": self.source.parser_version, "size": self.size, "mtime_ns": self.clock}
        # How long a session is quiet is asked of its file, which says nothing where it holds several.
        columns["session_id"] = self.last_session if self.sessions_seen == 1 else None
        sessions.update_file(self.tx, self.file_id, columns)

    def _wait_title(self, leaf: str, title: str) -> None:
        if text := self.redact(title).strip():
            sessions.wait_title(self.tx, self.source.agent, safe_id(leaf, self.redact), text)


def settle_titles(database: Database) -> None:
    """Give the titles that name a turn of another session to it, now that more sessions are known."""
    with database.transaction() as tx:
        for session_id in sessions.settle_titles(tx, SUMMARY_RANK):
            chunks.reindex(tx, session_id)


def project_of(tx: Connection, cwd: str, redact: Redact) -> int:
    """Id of the project that a folder belongs to, made if new."""
    key, name = project_key(cwd)
    return projects.ensure(tx, redact(key), redact(name), redact(cwd))


def safe_id(native: str, redact: Redact) -> SafeText:
    """An agent's id as it may be stored. One with a secret in it gets a digest too, since masked ones look alike."""
    safe = redact(native)
    return (
        safe
        if safe == native
        else SafeText(f"{safe}-{hashlib.sha256(native.encode('utf-8', 'replace')).hexdigest()[:8]}")
    )


def masked(raw: RawTurn, redact: Redact) -> sessions.NewTurn:
    return sessions.NewTurn(
        safe_id(raw.key, redact), raw.pos, raw.role, raw.kind, redact(raw.text).strip(), raw.time, raw.state
    )


def rechunk(tx: Connection, session_id: int, change: sessions.Change) -> int:
    """Bring a session's chunks up to its turns, from the first turn that changed on. Returns how many were added."""
    moved = sessions.renumber(tx, session_id)
    altered = sessions.first_ord(tx, change.altered)
    first = min((number for number in (moved, altered) if number is not None), default=None)
    if first is None and not change.altered:
        return 0
    # A turn that was taken back leaves no number of its own, so where nothing moved up the whole session is done anew.
    start = _restart(tx, session_id, first or 1)
    old = chunks.of_session(tx, session_id, from_ord=start)
    context = sessions.last_prompt_before(tx, session_id, start)
    return chunks.replace(tx, session_id, old, chunk_turns(sessions.turns_from(tx, session_id, context), start))


def _restart(tx: Connection, session_id: int, first: int) -> int:
    """Number of the turn where the first window begins that turn `first` may change: one that holds it, or the last before it."""
    held = [row for row in chunks.of_session(tx, session_id) if row.role == "speech"]
    reaching = [row.first_ord for row in held if row.first_ord <= first <= row.last_ord + 1]
    # Between the last window before it and the turn may stand a tool's error, and the turn may fit into that window now.
    earlier = [row.first_ord for row in held if row.last_ord + 1 < first]
    return min([*reaching, *([max(earlier)] if earlier else [])], default=1)


def read_whole(source: Source, found: Found, redact: Redact) -> tuple[Conversation, FileReport, About | None]:
    """A session read from one file without storing anything: what a deleted session is mined from."""
    report = FileReport(found.name)
    turns: dict[str, sessions.NewTurn] = {}
    facts: list[Fact] = []
    title, about = SafeText(""), None
    parse = source.parse(found, Progress(), final=True)
    for event in parse:
        match event:
            case Upsert(raw):
                turns[raw.key] = masked(raw, redact)
            case Extend(key, text) if key in turns:
                turns[key] = replace(turns[key], text=SafeText.joined("\n\n", (turns[key].text, redact(text))))
            case Retract(key):
                turns.pop(key, None)
            case Outcome():
                facts.append(Fact(safe_id(event.after, redact), event.kind, event.ok, redact(event.label), event.time))
            case Title(text, _, None):
                title = redact(text)
            case About():
                about = event
            case Unreadable():
                report.unreadable.append(event)
            case _:
                pass
    report.bytes_read = parse.bytes_read
    live = sorted(
        (turn for turn in turns.values() if turn.state is State.LIVE and turn.text), key=lambda turn: turn.pos
    )
    numbered = tuple(
        Turn(new.key, number, Role(new.role), new.kind, new.text, new.time) for number, new in enumerate(live, 1)
    )
    project = project_key(about.cwd)[0] if about and about.cwd else ""
    session = safe_id(about.external_id, redact) if about else SafeText("")
    return Conversation(source.agent, session, redact(project), title, numbered, tuple(facts)), report, about

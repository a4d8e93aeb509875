"""Bringing transcripts into the archive: parse, mask, store, chunk; one transaction a file, O(new bytes) work."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
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
    Retract,
    Source,
    Title,
    Unreadable,
    Upsert,
)
from store import chunks, projects, sessions
from store.database import Database
from store.records import Conversation, Fact, Role, SafeText, State, Status, Turn, now_ms

Redact = Callable[[str], SafeText]

PROBE = 4096
"""Bytes at the head of a file, and before the offset, that must still be the same for a parse to resume."""

BATCH = 256
SUMMARY_RANK = 1


@dataclass(slots=True)
class FileReport:
    """What reading one file came to. `session_ids` are the sessions it changed."""

    path: Path
    bytes_read: int = 0
    turns_added: int = 0
    chunks_added: int = 0
    session_ids: set[int] = field(default_factory=set)
    unreadable: list[Unreadable] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file's size, clock and probes at the moment it was opened, and what the probes cost to read."""

    size: int
    mtime_ns: int


def _snapshot(path: Path) -> Snapshot:
    stat = path.stat()
    return Snapshot(stat.st_size, stat.st_mtime_ns)


def ingest_file(database: Database, source: Source, found: Found, redact: Redact, *, final: bool) -> FileReport:
    """Store what is new in one file. All of it lands or none; running it again changes nothing."""
    report = FileReport(found.path)
    try:
        with database.transaction() as tx:
            _file(tx, source, found, redact, report, final=final, anew=False)
    except Reread:
        report = FileReport(found.path, bytes_read=report.bytes_read)
        with database.transaction() as tx:
            _file(tx, source, found, redact, report, final=final, anew=True)
    return report


def _file(
    tx: Connection, source: Source, found: Found, redact: Redact, report: FileReport, *, final: bool, anew: bool
) -> None:
    now = _snapshot(found.path)
    row = sessions.file_row(tx, source.agent, safe_id(str(found.path), redact))
    progress, probed = (Progress(), 0) if anew else _resume(found.path, row, source.parser_version)
    report.bytes_read += probed
    filing = _Filing(tx, source, found, redact, report)
    if row is None or progress.offset or anew:
        filing.run(progress, now, final=final)
        return
    # The file holds other content now, or is read by a newer parser. What it gave stays, unless the same bytes no longer give it.
    loose = sessions.detach_turns(tx, row.id)
    upgraded = row.parser_version != source.parser_version and _same_bytes(found.path, row)
    filing.run(progress, now, final=final, gone=loose if upgraded else ())


def _resume(path: Path, row: sessions.FileRow | None, parser_version: int) -> tuple[Progress, int]:
    """Where to go on reading, and the bytes read to find out: only where the bytes already read are still the same."""
    if row is None or row.parser_version != parser_version or not row.offset or path.suffix == ".zst":
        return Progress(), 0
    head, tail = probes(path, row.offset)
    if (head, tail) != (row.head_hash, row.tail_hash):
        return Progress(), 2 * PROBE
    saved = json.loads(row.state)
    return Progress(row.offset, saved["line"], saved["state"]), min(row.offset, PROBE) * 2


def _same_bytes(path: Path, row: sessions.FileRow) -> bool:
    return bool(row.offset) and path.suffix != ".zst" and probes(path, row.offset) == (row.head_hash, row.tail_hash)


def probes(path: Path, offset: int) -> tuple[str, str]:
    """Hashes of the first bytes of a file, and of those right before `offset`."""
    with open_regular(path) as file:
        head = file.read(min(PROBE, offset))
        file.seek(max(0, offset - PROBE))
        tail = file.read(min(PROBE, offset))
    return hashlib.sha256(head).hexdigest()[:32], hashlib.sha256(tail).hexdigest()[:32]


class _Filing:
    """One parse on its way into one transaction."""

    def __init__(self, tx: Connection, source: Source, found: Found, redact: Redact, report: FileReport) -> None:
        self.tx, self.source, self.found, self.redact, self.report = tx, source, found, redact, report
        self.path = safe_id(str(found.path), redact)
        self.masked_ids = False
        self.session_id: int | None = None
        self.external_id = SafeText("")
        self.change = sessions.Change()
        self.retitled = False
        self.forgotten: int | None = None
        self.waiting: list[sessions.NewTurn] = []
        self.facts: list[dict[str, Any]] = []
        self.titles: list[Title] = []

    def run(self, progress: Progress, now: Snapshot, *, final: bool, gone: Sequence[int] = ()) -> None:
        """Parse and store. `gone` are ids of turns that are dropped unless this parse gives them again."""
        self.file_id = sessions.save_file(self.tx, self.source.agent, self.path, self._columns(now))
        parse = self.source.parse(self.found, progress, final=final)
        try:
            for event in parse:
                self._take(event)
        finally:
            self.report.bytes_read += parse.bytes_read
        self._flush()
        sessions.drop_unclaimed(self.tx, gone, self.change)
        self._finish(parse.progress, final=final)

    def _columns(self, now: Snapshot) -> dict[str, Any]:
        return {"segment": self.found.segment, "size": now.size, "mtime_ns": now.mtime_ns}

    def _take(self, event: object) -> None:
        match event:
            case Upsert(turn):
                self._turn(turn)
            case Extend(key, text):
                self._flush()
                if (more := self.redact(text).strip()) and self.session_id is not None:
                    sessions.extend_turn(
                        self.tx, self.source.agent, self.session_id, self.external_id, self._id(key), more, self.change
                    )
            case Retract(key):
                self._flush()
                if self.session_id is not None:
                    sessions.retract_turn(
                        self.tx, self.source.agent, self.session_id, self.external_id, self._id(key), self.change
                    )
            case Outcome():
                names = {
                    "key": self._id(event.key),
                    "after_turn": self._id(event.after),
                    "label": self.redact(event.label),
                }
                self.facts.append({**names, "kind": event.kind, "ok": int(event.ok), "time": event.time})
            case Title():
                self.titles.append(event)
            case Unreadable():
                self.report.unreadable.append(event)
            case About():
                self._about(event)

    def _turn(self, raw: RawTurn) -> None:
        if self.forgotten is not None and (raw.time is None or raw.time <= self.forgotten):
            return
        new = masked(raw, self.redact)
        self.masked_ids |= new.key != raw.key
        if new.text:
            self.waiting.append(new)
        if len(self.waiting) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        if self.waiting and self.session_id is not None:
            sessions.put_turns(
                self.tx, self.source.agent, self.session_id, self.external_id, self.file_id, self.waiting, self.change
            )
        self.waiting = []

    def _about(self, about: About) -> None:
        if self.session_id is None:
            self.external_id = self._id(about.external_id)
            self.session_id = sessions.ensure(self.tx, self.source.agent, self.external_id)
            self.forgotten = sessions.forgotten_up_to(self.tx, self.source.agent, self.external_id)
        known = sessions.get(self.tx, self.session_id)
        values: dict[str, Any] = {
            "git_branch": self._safe(about.branch),
            "is_subagent": int(about.is_subagent) or None,
            "status": self._status(about, Status(known.status)),
        }
        if known.cwd is None and about.cwd:
            values["cwd"] = self._safe(about.cwd)
            values["project_id"] = project_of(self.tx, about.cwd, self.redact)
            self.retitled = True
        if about.parent and known.parent_id is None:
            parent = sessions.ensure(self.tx, self.source.agent, self._id(about.parent))
            values["parent_id"] = parent if parent != self.session_id else None
        sessions.refine(self.tx, self.session_id, **values)
        sessions.widen(self.tx, self.session_id, about.first_time, about.last_time)

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

    def _finish(self, progress: Progress, *, final: bool) -> None:
        # The parser's state holds ids as they are; with a secret among them it is not kept, and the file is read whole.
        progress = Progress() if self.masked_ids else progress
        offset, path = progress.offset, self.found.path
        head, tail = probes(path, offset) if offset and path.suffix != ".zst" else ("", "")
        state = json.dumps({"line": progress.line, "final": final, "state": progress.state}, separators=(",", ":"))
        columns: dict[str, Any] = {"head_hash": head, "tail_hash": tail, "offset": offset, "parser_state": state}
        columns |= {"parser_version": self.source.parser_version, "session_id": self.session_id}
        sessions.update_file(self.tx, self.file_id, columns)
        self._keep_titles()
        if self.session_id is None:
            return
        sessions.put_outcomes(self.tx, self.session_id, self.facts)
        if self.change.any or self.facts:
            sessions.refine(self.tx, self.session_id, changed_at=now_ms())
        self.report.turns_added += self.change.added
        if self.change.added and self.found.segment == "live":
            sessions.reopen(self.tx, self.session_id)
        if self.change.any:
            self.report.session_ids.add(self.session_id)
            self.report.chunks_added += rechunk(self.tx, self.session_id, self.change)
        if self.retitled:
            chunks.reindex(self.tx, self.session_id)

    def _keep_titles(self) -> None:
        for title in self.titles:
            text = self.redact(title.text).strip()
            if text and title.leaf is not None:
                sessions.wait_title(self.tx, self.source.agent, safe_id(title.leaf, self.redact), text)
            elif text and self.session_id is not None:
                self.retitled |= sessions.offer_title(self.tx, self.session_id, text, title.rank)


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
    report = FileReport(found.path)
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

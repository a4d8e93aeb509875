"""OpenClaw: where its transcripts lie, as files and in databases, and how one is told by its name and its content."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from archiver.sources import entry_records, jsonl, openclaw_store
from archiver.sources.openclaw_parse import OpenClawParse
from archiver.sources.openclaw_store import Holding, Rows
from archiver.sources.records import Records
from archiver.sources.sqlite import is_busy, is_database
from archiver.transcript import Found, Parse, Progress, Source
from store.records import Status, parse_time

AGENT = "openclaw"
DATABASE = "openclaw-agent.sqlite"

_ARCHIVE = re.compile(
    r"(?P<id>.+?)\.jsonl\.(?P<why>deleted|reset|bak)\.(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d{3})?Z)"
    r"(?:\.(?P<generation>[0-9a-f]{32}))?(?:\.zst)?",
    re.S,
)
_LIVE = re.compile(r"(?P<id>[a-z0-9][a-z0-9._-]{0,127}?(?:-topic-[^/]+)?)\.jsonl(?:\.zst)?", re.I)
_IMPORTED = re.compile(r"(?:.*\.)?(?P<id>[^.]+)\.jsonl\.imported-(?P<time>\d{1,13})(?:\.\d+)?", re.S)
_BESIDE = re.compile(
    r"\.checkpoint\.|\.trajectory\.jsonl|\.trajectory-path\.json|\.lock\Z|^sessions\.json|\.full\.bak|\.archival-.*\.tmp|\.jsonl\.bak\b"
    r"|\.pre-doctor-|\.migrated\b"
)
_TOPIC = re.compile(r"-topic-[^/]+\Z")


class OpenClaw(Source):
    agent = AGENT
    parser_version = 3

    def roots(self) -> list[Path]:
        """The state folder's `agents`. Without `$OPENCLAW_STATE_DIR`, also those of the names it had before."""
        given = os.environ.get("OPENCLAW_STATE_DIR")
        if given:
            return [Path(given).expanduser().absolute() / "agents"]
        usual = [Path.home() / name / "agents" for name in (".openclaw", ".clawdbot", ".moltbot")]
        return [root for root in usual if root.is_dir()] or usual[:1]

    def discover(self, root: Path) -> Iterable[Found]:
        """What the database holds, and the files of which it holds nothing newer."""
        for folder in _children(root):
            held = _held(folder / "agent" / DATABASE)
            yield from held.found
            for path in _children(folder / "sessions"):
                one = _named(path) if path.name not in held.published and path.is_file() else None
                if one is not None:
                    yield one
            for path in _children(folder / "session-sqlite-import-archive"):
                imported = _IMPORTED.fullmatch(path.name)
                if imported and not held.may_hold(imported["id"]) and path.is_file():
                    yield _imported(path, imported)

    def sniff(self, path: Path, head: bytes) -> Found | None:
        if is_database(head):
            return Found(AGENT, path) if openclaw_store.holds_transcripts(path) else None
        if not entry_records.is_family(head):
            return None
        imported = _IMPORTED.fullmatch(path.name)
        return _imported(path, imported) if imported else _named(path) or _other_name(path)

    def members(self, found: Found) -> Iterable[Found]:
        with jsonl.open_regular(found.path) as file:
            is_one = is_database(file.read(16))
        return openclaw_store.holding(AGENT, found.path).found if is_one else (found,)

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        if found.member:
            return _stored(found, progress)
        stem = _session_of(found)
        return OpenClawParse(
            found,
            _lines(found, progress, final=final),
            progress,
            stem=stem,
            header_of=lambda named: _header_beside(found, named),
            is_thread=_TOPIC.search(stem) is not None,
        )


SOURCE = OpenClaw()


def _held(database: Path) -> Holding:
    """What the database holds; one that cannot be asked stands for itself, so that reading it tells why."""
    if not database.is_file():
        return Holding()
    try:
        return openclaw_store.holding(AGENT, database)
    except OSError as error:
        return Holding((Found(AGENT, database),), is_known=not is_busy(error))


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _named(path: Path) -> Found | None:
    """A transcript by its file name; None for what OpenClaw keeps beside them."""
    archive = _ARCHIVE.fullmatch(path.name)
    if archive and archive["why"] != "bak":
        status = Status.RESET if archive["why"] == "reset" else Status.DELETED
        stamp = _dated(path, _time_in(archive["time"])) if archive["generation"] else None
        return Found(AGENT, path, archive["why"], status, stamp=stamp)
    if _BESIDE.search(path.name) or not _LIVE.fullmatch(path.name):
        return None
    return Found(AGENT, path)


def _time_in(name: str) -> int | None:
    day, _, clock = name.partition("T")
    return parse_time(f"{day}T{clock.replace('-', ':')}")


def _dated(path: Path, at: int | None) -> tuple[int, int] | None:
    """The stamp of a file that was written out of a database, or for one, maybe long after: it is as old as its name says."""
    try:
        return (path.stat().st_size, at * 1_000_000) if at is not None else None
    except OSError:
        return None


def _imported(path: Path, name: re.Match[str]) -> Found:
    return Found(AGENT, path, "archived", stamp=_dated(path, int(name["time"])), session=name["id"])


def _other_name(path: Path) -> Found | None:
    return None if _BESIDE.search(path.name) else Found(AGENT, path)


def _session_of(found: Found) -> str:
    if found.session:
        return found.session
    match = _ARCHIVE.fullmatch(found.path.name) or _LIVE.fullmatch(found.path.name)
    return match["id"] if match else found.path.name.partition(".jsonl")[0]


def _lines(found: Found, progress: Progress, *, final: bool) -> Records:
    if found.path.name == DATABASE:
        openclaw_store.holding(AGENT, found.path)  # the reason why it could not be asked, if there still is one
        return openclaw_store.Nothing()
    return jsonl.Reader(found.path, progress, final=final)


def _header_beside(found: Found, named: str) -> dict[str, Any] | None:
    return entry_records.header_beside([found.path.parent], named)


def _stored(found: Found, progress: Progress) -> OpenClawParse:
    records = openclaw_store.records(found, progress)
    kin = openclaw_store.kin(found)
    return OpenClawParse(
        found,
        records,
        progress if isinstance(records, Rows) else Progress(),
        stem=found.session,
        header_of=lambda named: openclaw_store.header_of(found.path, entry_records.id_in(named)),
        is_thread=_TOPIC.search(found.session) is not None,
        is_subagent=kin.is_subagent,
        parent=kin.parent,
        repeats=kin.repeats,
    )

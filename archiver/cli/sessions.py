"""`wwt sessions` and `wwt show`: what was archived, whole."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from archiver import agents
from archiver.agents import AGENTS, resume_command
from archiver.cli.archive import Json, Since, known_agents, moment
from archiver.cli.output import accent, bold, dim, emit, say, tell, width
from archiver.cli.search import All, Project
from archiver.render import cut, local_day, local_minute, one_line, plain
from store.errors import FAILED, USAGE, WwtError
from store.lookup import short_ids
from store.messages import text
from store.reader import Reader, SessionRow
from store.records import Entry, Status, anchor, iso

CONTEXT = 3
SHORTEST = 4
"""Characters of an id that are enough to look for what begins so."""

_REFERENCE = re.compile(r"(?P<session>[^#]+)(?:#(?P<turn>\d+))?")


def register(app: typer.Typer) -> None:
    app.command(help=text("help.sessions"), short_help=text("short.sessions"), epilog=text("examples.sessions"))(
        sessions
    )
    app.command(help=text("help.show"), short_help=text("short.show"), epilog=text("examples.show"))(show)


def sessions(
    project: Project = None,
    everything: All = False,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="AGENT", help=text("help.agent", known=agents.names()), show_default=False),
    ] = None,
    since: Since = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help=text("help.limit"))] = 20,
    subagents: Annotated[bool, typer.Option("--subagents", help=text("help.subagents"))] = False,
    as_json: Json = False,
) -> None:
    from archiver.cli.scope import scope_of  # noqa: PLC0415
    from archiver.home import Home  # noqa: PLC0415

    known_agents([agent] if agent else None)
    home = Home.open()
    scope = scope_of(home, project, everything=everything)
    tests, values = ["(s.changed_at > 0 OR s.ended_at IS NOT NULL)"], []
    for test, value in (
        ("s.project_id = ?", scope.project),
        ("s.agent = ?", agent),
        ("s.ended_at >= ?", moment(since)),
        ("s.is_subagent = ?", None if subagents else 0),
    ):
        if value is not None:
            tests.append(test)
            values.append(value)
    rows = home.reader.sessions(
        f"WHERE {' AND '.join(tests)} ORDER BY s.ended_at DESC, s.id DESC LIMIT ?", [*values, limit]
    )
    if as_json:
        emit({"scope": scope.label, "sessions": [_session(row) for row in rows]})
        return
    if not rows:
        tell("sessions.none_anywhere" if scope.projects is None else "sessions.none", scope=scope.label)
        return
    short = short_ids(home.reader, (row.external_id for row in rows))
    for row in rows:
        _print_session_line(row, short[row.external_id])


def _session(row: SessionRow) -> dict[str, Any]:
    return {
        "session": row.external_id,
        "agent": row.agent,
        "project": row.project,
        "title": row.title,
        "status": row.status,
        "started_at": iso(row.started_at),
        "ended_at": iso(row.ended_at),
        "turns": row.turns,
        "branch": row.branch,
        "cwd": row.cwd,
        "resume": None if row.is_subagent else resume_command(row.agent, row.external_id),
    }


def _title(row: SessionRow) -> str:
    if row.title:
        return one_line(row.title)
    return text("sessions.deleted" if row.status == Status.DELETED else "sessions.untitled")


def _print_session_line(row: SessionRow, short: str) -> None:
    title = _title(row)
    line = f"{short}  {local_minute(row.ended_at):16}  {row.project}  {title}"
    say(cut(plain(line), width()) if width() else plain(line))
    say(dim(plain(f"          {row.agent} · {row.status} · {text('sessions.turns', count=row.turns)}")))


def show(
    what: Annotated[str, typer.Argument(help=text("help.show_what"), show_default=False)],
    context: Annotated[
        int, typer.Option("--context", "-C", min=0, max=1000, metavar="N", help=text("help.context"))
    ] = CONTEXT,
    as_json: Json = False,
) -> None:
    from archiver.home import Home  # noqa: PLC0415

    home = Home.open()
    entry = _entry(home, what)
    if entry is not None:
        _show_entry(home, entry, as_json=as_json)
        return
    match = _REFERENCE.fullmatch(what)
    row = _find_session(home.reader, match["session"] if match else what)
    turns = home.reader.turns(row.id)
    if match and match["turn"]:
        turns = _around(turns, int(match["turn"]), context)
        if not turns:
            raise WwtError("show.no_turn", session=row.external_id, turn=match["turn"], exit_code=FAILED)
    if as_json:
        emit({**_session(row), "text": [_turn(turn) for turn in turns]})
        return
    _print_session(row, turns)


def _entry(home: Any, uid: str) -> Entry | None:
    """The entry of this uid, or the only one that begins so where no session does."""
    if not home.reader.has_entry(uid):
        begun = home.reader.entries_from(uid) if len(uid) >= SHORTEST and not _sessions_from(home.reader, uid) else []
        if len(begun) != 1:
            return None
        (uid,) = begun
    from store import knowledge  # noqa: PLC0415  SQLAlchemy costs 0.25 s; showing a session goes without

    with home.database.transaction() as tx:
        return knowledge.get(tx, uid)


def _show_entry(home: Any, entry: Entry, *, as_json: bool) -> None:
    """An entry with what replaced it, what replaced that, and so on."""
    from store import knowledge  # noqa: PLC0415  SQLAlchemy, which reading the entry has paid

    with home.database.transaction() as tx:
        newer = knowledge.successors(tx, entry.uid)
    if as_json:
        emit({**_entry_json(entry), "successors": [one.uid for one in newer]})
        return
    _print_entry(entry, newer)


def _find_session(reader: Reader, wanted: str) -> SessionRow:
    """By whole id, else by a prefix of at least four characters that only one session has; `agent:id` where two agents share one."""
    agent, colon, rest = wanted.partition(":")
    if colon and agent in {known.id for known in AGENTS}:
        found = reader.sessions("WHERE s.agent = ? AND s.external_id = ?", (agent, rest))
    else:
        found = reader.sessions("WHERE s.external_id = ?", (wanted,))
    if not found and len(wanted) >= SHORTEST:
        found = _sessions_from(reader, wanted)
        main = [row for row in found if not row.is_subagent]
        found = main or found
    if not found:
        raise WwtError("show.unknown", what=wanted)
    if len(found) > 1:
        listed = "\n  ".join(f"{row.agent}:{row.external_id}  {one_line(row.title or '', 60)}" for row in found)
        raise WwtError("show.ambiguous", what=wanted, known=listed, exit_code=USAGE)
    return found[0]


def _sessions_from(reader: Reader, start: str) -> list[SessionRow]:
    escaped = re.sub(r"([\\%_])", r"\\\1", start)
    return reader.sessions("WHERE s.external_id LIKE ? ESCAPE '\\' ORDER BY s.ended_at DESC LIMIT 20", (escaped + "%",))


def _around(turns: list[Any], number: int, context: int) -> list[Any]:
    at = next((index for index, turn in enumerate(turns) if turn["ord"] == number and turn["own"]), None)
    return [] if at is None else turns[max(0, at - context) : at + context + 1]


def _turn(turn: Any) -> dict[str, Any]:
    return {
        "turn": turn["ord"],
        "role": turn["role"],
        "state": turn["state"],
        "time": iso(turn["time"]),
        "text": turn["text"],
    }


def _print_session(row: SessionRow, turns: list[Any]) -> None:
    say(bold(_title(row)))
    say(
        dim(
            plain(
                f"{row.external_id} · {row.agent} · {row.project} · {local_minute(row.started_at)} – {local_minute(row.ended_at)} · {row.status}"
            )
        )
    )
    resume = None if row.is_subagent else resume_command(row.agent, row.external_id)
    if resume:
        say(dim(text("show.resume", command=plain(resume))))
    for turn in turns:
        state = f" ({text('show.abandoned')})" if turn["state"] == "abandoned" else ""
        say()
        say(accent(f"#{turn['ord']} {text('role.' + turn['role'])}{state}") + dim(f"  {local_minute(turn['time'])}"))
        say(plain(turn["text"]))


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.uid,
        "type": entry.type.value,
        "summary": entry.summary,
        "detail": entry.detail,
        "tags": list(entry.tags),
        "project": entry.project,
        "scope": entry.scope.value,
        "agent": entry.agent,
        "session": entry.session,
        "source_forgotten": entry.source_forgotten,
        "rule": entry.rule,
        "confidence": entry.confidence,
        "decided_by": entry.decided_by.value,
        "status": entry.status,
        "superseded_by": entry.superseded_by,
        "created_at": iso(entry.created_at),
        "reviewed_at": iso(entry.reviewed_at),
        "evidence": [
            {"turn": q.turn, "role": q.role.value, "quote": q.quote, "time": iso(q.time)} for q in entry.evidence
        ],
    }


def _print_entry(entry: Entry, newer: list[Entry]) -> None:
    say(f"{accent(text('type.' + entry.type.value))}  {bold(one_line(entry.summary))}")
    if anchor(entry.detail) != anchor(entry.summary):
        say(plain(entry.detail))
    say(dim(plain(" ".join(f"#{tag}" for tag in entry.tags))))
    where = entry.project or text("scope.all")
    say(
        dim(
            plain(f"{entry.uid} · {where} · {entry.status} · {entry.decided_by.value} · {local_day(entry.reviewed_at)}")
        )
    )
    for one in newer:
        standing = "" if one.status == "active" else f" · {text('status_of.' + one.status)}"
        say(plain(f"{text('entries.superseded_by', uid=one.uid)}  {one_line(one.summary)}{standing}"))
    if entry.source_forgotten:
        say(dim(text("forget.source")))
    for quote in entry.evidence:
        if quote.quote:
            say(plain(f"  {text('role.' + quote.role.value)}: {one_line(quote.quote)}"))

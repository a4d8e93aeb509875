"""`wwt review` and `wwt undo`: a person decides what is knowledge."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.archive import Json, Since, moment
from archiver.cli.output import accent, bold, dim, emit, hang, say, tell, warn, width
from archiver.cli.search import Agent, All, Project, Type, checked_type
from archiver.render import fold, local_minute, one_line, plain
from store.errors import USAGE, WwtError
from store.messages import text
from store.records import EntryType, anchor

if TYPE_CHECKING:
    from archiver.home import Home
    from archiver.review import Rejected
    from staging.documents import Broken
    from staging.promote import Undone
    from staging.waiting import Filters


MOST_CHOICES = 50
"""Rejections that a person is asked to choose from."""
INDENT = " " * 10
"""Under the summaries of a list, past its ids."""
MOST_UNDONE = 3
"""Entries that are named when a change of several is undone."""


def register(app: typer.Typer) -> None:
    app.command(help=text("help.review"), short_help=text("short.review"), epilog=text("examples.review"))(review)
    app.command(help=text("help.undo"), short_help=text("short.undo"), epilog=text("examples.undo"))(undo)


def review(
    list_them: Annotated[bool, typer.Option("--list", help=text("help.review_list"))] = False,
    accept_all: Annotated[bool, typer.Option("--accept-all", help=text("help.review_accept_all"))] = False,
    reject_all: Annotated[bool, typer.Option("--reject-all", help=text("help.review_reject_all"))] = False,
    rejected: Annotated[bool, typer.Option("--rejected", help=text("help.review_rejected"))] = False,
    take_back: Annotated[
        list[str] | None,
        typer.Option("--take-back", metavar="ID", help=text("help.review_take_back"), show_default=False),
    ] = None,
    project: Project = None,
    everything: All = False,
    type: Type = None,
    agent: Agent = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="SESSION", help=text("help.session"), show_default=False)
    ] = None,
    since: Since = None,
    min_confidence: Annotated[
        float, typer.Option("--min-confidence", min=0.0, max=1.0, metavar="X", help=text("help.min_confidence"))
    ] = 0.0,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, metavar="N", help=text("help.limit"), show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help=text("help.yes"))] = False,
    as_json: Json = False,
) -> None:
    from archiver.cli.scope import scope_of  # noqa: PLC0415
    from archiver.home import Home  # noqa: PLC0415
    from staging.waiting import Filters  # noqa: PLC0415  pydantic and SQLAlchemy

    about_rejected = rejected or bool(take_back)
    if sum((list_them and not about_rejected, accept_all, reject_all, about_rejected)) > 1:
        raise WwtError("review.one_mode", exit_code=USAGE)
    home = Home.open()
    scope = scope_of(home, project, everything=everything)
    kind = EntryType(checked) if (checked := checked_type(type)) else None
    filters = Filters(scope.key, kind, agent, session, moment(since), min_confidence)
    home.expire_staging()
    if take_back:
        _take_back(home, take_back, as_json=as_json)
    elif rejected:
        placed = any((project, type, agent, session, min_confidence))
        _rejected(home, filters, limit, placed=placed, ask=not (list_them or as_json), as_json=as_json)
    elif accept_all or reject_all:
        _batch(home, filters, limit, accept=accept_all, yes=yes, as_json=as_json)
    elif list_them or as_json:
        _list(home, filters, limit, as_json=as_json)
    else:
        _sit(home, filters, limit)


def _list(home: Home, filters: Filters, limit: int | None, *, as_json: bool) -> None:
    from archiver.review import list_waiting  # noqa: PLC0415

    found = list_waiting(home.desk, filters, limit=limit)
    if as_json:
        emit(
            {"total": found.total, "entries": list(found.rows), "broken": [_broken(broken) for broken in found.broken]}
        )
        return
    _warn_broken(found.broken)
    if not found.rows:
        tell("review.nothing")
        return
    for row in found.rows:
        _print_row(row)
    say(dim(text("review.listed", shown=len(found.rows), total=found.total)))


def _print_row(row: dict[str, Any]) -> None:
    kind = accent(text("type." + row["type"]))
    say(hang(f"{dim(row['id'][:8])}  ", f"{row['confidence']:.2f}  {kind}  {bold(one_line(row['summary']))}"))
    if anchor(row["detail"]) != anchor(row["summary"]):
        say(hang(INDENT, one_line(row["detail"])))
    if row["repeats"]:
        near = row["repeats"].get("entry") or row["repeats"].get("waiting") or ""
        say(dim(hang(INDENT, plain(text("review.listed_repeat", what=near)))))
    parts = [row["decided_by"], row["agent"], " ".join(f"#{tag}" for tag in row["tags"])]
    say(dim(hang(INDENT, plain(" · ".join(filter(None, parts))))))


def _broken(broken: Broken) -> dict[str, Any]:
    return {"file": str(broken.path), "line": broken.line, "reason": broken.reason}


def _warn_broken(found: Sequence[Broken]) -> None:
    for broken in found:
        warn(one_line(f"{broken.path}:{broken.line}: {broken.reason}"))


def _batch(home: Home, filters: Filters, limit: int | None, *, accept: bool, yes: bool, as_json: bool) -> None:
    from archiver import review as flow  # noqa: PLC0415

    total = len(flow.list_waiting(home.desk, filters, limit=limit).rows)
    if total and not yes and not _confirmed("review.confirm_accept" if accept else "review.confirm_reject", total):
        return
    done = (flow.accept_all if accept else flow.reject_all)(home.desk, filters, limit=limit, vault=home.vault)
    _embed(home)
    if as_json:
        emit(
            {
                "accepted": done.accepted,
                "merged": done.merged,
                "rejected": done.rejected,
                "broken": [_broken(broken) for broken in done.broken],
            }
        )
        return
    _warn_broken(done.broken)
    tell("review.batch_done", accepted=done.accepted, merged=done.merged, rejected=done.rejected)


def _embed(home: Home) -> None:
    from archiver.archive import embed  # noqa: PLC0415

    for notice in embed(home)[1]:
        warn(notice)


def _confirmed(key: str, count: int) -> bool:
    if not sys.stdin.isatty():
        raise WwtError("review.needs_yes", exit_code=USAGE)
    return typer.confirm(text(key, count=count))


def _sit(home: Home, filters: Filters, limit: int | None) -> None:
    from archiver.review import list_waiting, sit  # noqa: PLC0415
    from staging import prompt  # noqa: PLC0415
    from staging.review import BEST  # noqa: PLC0415

    listing = list_waiting(home.desk, filters, limit=0)
    if not listing.total:
        _warn_broken(listing.broken)
        tell("review.nothing")
        return
    prompt.require_terminal()
    tally, broken = sit(
        home.desk, filters, ask=prompt.ask, show=_show, edit=prompt.edit, vault=home.vault, limit=limit or BEST
    )
    _embed(home)
    _warn_broken(broken)
    tell(
        "review.sat",
        accepted=tally.accepted + tally.superseded,
        merged=tally.merged,
        rejected=tally.rejected,
        skipped=tally.skipped,
        left=tally.left,
    )


def _show(card: str) -> None:
    """Each line folded for the terminal, further parts of it behind the blanks and bars that it begins with."""
    for line in card.split("\n"):
        rest = line.lstrip(" |")
        say(fold(rest, width(), line[: len(line) - len(rest)]))


def _rejected(home: Home, filters: Filters, limit: int | None, *, placed: bool, ask: bool, as_json: bool) -> None:
    """`placed`: only what is known to pass the filters is asked for, not what lost its words."""
    from archiver import review as flow  # noqa: PLC0415

    listed = flow.rejected(home.desk, filters)
    found = [one for one in listed if one.waiting is not None or not placed]
    shown = found[:limit]
    if as_json:
        emit({"total": len(found), "rejected": [_rejection(one) for one in shown]})
        return
    if not found:
        tell("review.none_rejected")
    elif ask and sys.stdin.isatty() and sys.stdout.isatty():
        _choose(home, found, limit or MOST_CHOICES)
    else:
        for one in shown:
            say(hang(f"{one.id}  ", _rejected_line(one)))
        say(dim(text("review.listed", shown=len(shown), total=len(found))))
    if len(listed) > len(found):
        say(dim(text("review.rejected_unplaced", count=len(listed) - len(found))))


def _choose(home: Home, found: Sequence[Rejected], limit: int) -> None:
    """Offer the newest rejections, and take back what is chosen, until the person has enough."""
    from staging import prompt  # noqa: PLC0415
    from staging.review import Choice, Question  # noqa: PLC0415

    left = list(found[:limit])
    while left:
        choices = (
            Choice("", text("review.leave")),
            *(Choice(one.anchors[0], f"{one.id}  {_rejected_line(one)}") for one in left),
        )
        answer = prompt.ask(Question("entry", text("review.ask_take_back"), choices))
        if not answer:
            return
        _take_back(home, [answer], as_json=False)
        left = [one for one in left if one.anchors[0] != answer]


def _take_back(home: Home, names: list[str], *, as_json: bool) -> None:
    from archiver import review as flow  # noqa: PLC0415

    done = flow.take_back(home.desk, names, vault=home.vault)
    if as_json:
        emit({"taken_back": done.waiting + done.mined, "waiting": done.waiting, "sessions": done.sessions})
        return
    if done.waiting:
        tell("review.taken_back", count=done.waiting)
    if done.mined:
        tell("review.mined_again", count=done.mined, sessions=done.sessions)


def _rejected_line(one: Rejected) -> str:
    kind = "" if one.waiting is None else f"{text('type.' + one.waiting.item.type.value)}  "
    return plain(f"{local_minute(one.at)}  {kind}{one_line(one.summary or text('review.words_gone'))}")


def _rejection(one: Rejected) -> dict[str, Any]:
    from store.records import iso  # noqa: PLC0415

    known = one.waiting
    return {
        "id": one.id,
        "anchors": list(one.anchors),
        "at": iso(one.at),
        "summary": one.summary,
        "type": known and known.item.type.value,
        "agent": known and known.header.agent,
        "session": known and known.header.source_session,
        "project": known and str(known.header.project),
    }


def undo(as_json: Json = False) -> None:
    from archiver.home import Home  # noqa: PLC0415
    from archiver.review import undo as take_back  # noqa: PLC0415

    home = Home.open()
    done = take_back(home.desk, vault=home.vault)
    if as_json:
        emit(
            {
                "undone": done is not None,
                "action": done and done.decided.action,
                "summary": one_line(done.summaries[0]) if done and done.summaries else None,
                "entry": done and done.decided.entry,
                "whole": done is None or done.whole,
            }
        )
    elif done is None:
        tell("review.nothing_to_undo")
    else:
        _say_undone(done)
    if done is not None and done.reworded:
        _embed(home)


def _say_undone(done: Undone) -> None:
    what = text(f"undid.{done.decided.action}")
    for summary in done.summaries[:MOST_UNDONE]:
        tell("review.undone", what=what, summary=one_line(summary))
    if len(done.summaries) > MOST_UNDONE:
        tell("review.undone_more", count=len(done.summaries) - MOST_UNDONE)
    if not done.whole:
        tell("review.undone_partly")

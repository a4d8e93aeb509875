"""`wwt review` and `wwt undo`: a person decides what is knowledge."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.archive import Json, Since, moment
from archiver.cli.output import accent, bold, dim, emit, say, tell, warn
from archiver.cli.search import Agent, All, Project, Type, checked_type
from archiver.render import local_minute, one_line, plain
from store.errors import USAGE, WwtError
from store.messages import text
from store.records import EntryType, anchor

if TYPE_CHECKING:
    from archiver.home import Home
    from archiver.review import Rejected
    from staging.documents import Broken
    from staging.waiting import Filters


def register(app: typer.Typer) -> None:
    app.command(help=text("help.review"), short_help=text("short.review"), epilog=text("examples.review"))(review)
    app.command(help=text("help.undo"), short_help=text("short.undo"), epilog=text("examples.undo"))(undo)


def review(
    list_them: Annotated[bool, typer.Option("--list", help=text("help.review_list"))] = False,
    accept_all: Annotated[bool, typer.Option("--accept-all", help=text("help.review_accept_all"))] = False,
    reject_all: Annotated[bool, typer.Option("--reject-all", help=text("help.review_reject_all"))] = False,
    rejected: Annotated[bool, typer.Option("--rejected", help=text("help.review_rejected"))] = False,
    take_back: Annotated[
        str | None, typer.Option("--take-back", help=text("help.review_take_back"), show_default=False)
    ] = None,
    project: Project = None,
    everything: All = False,
    type: Type = None,
    agent: Agent = None,
    session: Annotated[str | None, typer.Option("--session", help=text("help.session"), show_default=False)] = None,
    since: Since = None,
    min_confidence: Annotated[
        float, typer.Option("--min-confidence", min=0.0, max=1.0, help=text("help.min_confidence"))
    ] = 0.0,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help=text("help.limit"), show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help=text("help.yes"))] = False,
    as_json: Json = False,
) -> None:
    from archiver.cli.scope import scope_of  # noqa: PLC0415
    from archiver.home import Home  # noqa: PLC0415
    from staging.waiting import Filters  # noqa: PLC0415  pydantic and SQLAlchemy

    if sum((list_them, accept_all, reject_all, rejected)) > 1:
        raise WwtError("review.one_mode", exit_code=USAGE)
    home = Home.open()
    scope = scope_of(home, project, everything=everything)
    kind = EntryType(checked) if (checked := checked_type(type)) else None
    filters = Filters(scope.key, kind, agent, session, moment(since), min_confidence)
    home.expire_staging()
    if rejected or take_back:
        _rejected(home, take_back, as_json=as_json)
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
        say(
            f"{dim(row['id'][:8])}  {row['confidence']:.2f}  {accent(text('type.' + row['type']))}  {bold(one_line(row['summary']))}"
        )
        if anchor(row["detail"]) != anchor(row["summary"]):
            say(f"          {one_line(row['detail'])}")
        if row["repeats"]:
            say(
                dim(
                    plain(
                        "          "
                        + text(
                            "review.listed_repeat",
                            what=row["repeats"].get("entry") or row["repeats"].get("waiting") or "",
                        )
                    )
                )
            )
        say(
            dim(plain(f"          {row['decided_by']} · {row['agent']} · {' '.join('#' + tag for tag in row['tags'])}"))
        )
    say(dim(text("review.listed", shown=len(found.rows), total=found.total)))


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
        home.desk, filters, ask=prompt.ask, show=say, edit=prompt.edit, vault=home.vault, limit=limit or BEST
    )
    _embed(home)
    _warn_broken(broken)
    tell(
        "review.sat",
        accepted=tally.accepted,
        merged=tally.merged,
        rejected=tally.rejected,
        skipped=tally.skipped,
        left=tally.left,
    )


def _rejected(home: Home, take_back: str | None, *, as_json: bool) -> None:
    from archiver import review as flow  # noqa: PLC0415
    from store import sessions  # noqa: PLC0415

    if take_back:
        freed = flow.take_back(home.desk, take_back, vault=home.vault)
        with home.database.transaction() as tx:
            sessions.mine_again(tx)
        emit({"taken_back": freed}) if as_json else tell("review.taken_back", count=freed)
        return
    found = flow.rejected(home.desk)
    if as_json:
        emit({"rejected": [_rejection(one) for one in found]})
        return
    if not found:
        tell("review.none_rejected")
    for one in found:
        say(
            plain(
                f"{one.anchors[0][:12]}  {local_minute(one.at)}  {one_line(one.summary or text('review.words_gone'))}"
            )
        )


def _rejection(one: Rejected) -> dict[str, Any]:
    from store.records import iso  # noqa: PLC0415

    return {"anchors": list(one.anchors), "at": iso(one.at), "summary": one.summary}


def undo(as_json: Json = False) -> None:
    from archiver.home import Home  # noqa: PLC0415
    from archiver.review import undo as take_back  # noqa: PLC0415

    home = Home.open()
    done = take_back(home.desk, vault=home.vault)
    home.index.apply()
    summary = one_line(done.waiting.item.summary) if done else None
    if as_json:
        emit({"undone": done is not None, "summary": summary})
    elif done is None:
        tell("review.nothing_to_undo")
    else:
        tell("review.undone", summary=summary)

"""`wwt entries`: the reviewed knowledge, and its upkeep by hand."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.archive import Json, Since, known_agents, moment
from archiver.cli.groups import texts
from archiver.cli.output import accent, bold, dim, emit, hang, say, tell, warn
from archiver.cli.search import Agent, All, Project, Tags, Type, checked_type
from archiver.render import local_day, one_line, plain
from store.errors import USAGE, WwtError
from store.messages import text
from store.records import Entry, EntryType, Scope

if TYPE_CHECKING:
    from archiver.entries import Changed, Keeper
    from archiver.home import Home
    from staging.form import Form

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)

Uid = Annotated[str, typer.Argument(metavar="UID", help=text("help.uid"), show_default=False)]
Uids = Annotated[list[str], typer.Argument(metavar="UID", help=text("help.uid"), show_default=False)]
Summary = Annotated[
    str | None, typer.Option("--summary", metavar="TEXT", help=text("help.entry_summary"), show_default=False)
]
Detail = Annotated[
    str | None, typer.Option("--detail", metavar="TEXT", help=text("help.entry_detail"), show_default=False)
]
Kind = Annotated[
    str | None, typer.Option("--type", "-t", metavar="TYPE", help=text("help.entry_type"), show_default=False)
]
NewTags = Annotated[
    list[str] | None, typer.Option("--tags", "--tag", metavar="TAG", help=text("help.entry_tags"), show_default=False)
]
FormFile = Annotated[
    str | None, typer.Option("--file", metavar="FILE", help=text("help.entry_file"), show_default=False)
]


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="entries", **texts("entries"))


def _command(name: str, **settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return app.command(name, context_settings=settings, **texts(f"entries_{name}"))


@app.callback()
def entries(
    context: typer.Context,
    project: Project = None,
    everything: All = False,
    type: Type = None,
    tag: Tags = None,
    agent: Agent = None,
    since: Since = None,
    retired: Annotated[bool, typer.Option("--retired", help=text("help.retired"))] = False,
    as_json: Json = False,
) -> None:
    if context.invoked_subcommand is not None:
        if any(context.params.values()):
            raise WwtError("entries.options_last", command=context.invoked_subcommand, exit_code=USAGE)
        return
    from archiver.cli.scope import scope_of  # noqa: PLC0415
    from archiver.home import Home  # noqa: PLC0415
    from store import knowledge  # noqa: PLC0415  SQLAlchemy costs 0.25 s; --help goes without

    known_agents([agent] if agent else None)
    home = Home.open()
    scope = scope_of(home, project, everything=everything)
    filters = knowledge.Filters(
        project=scope.key,
        type=_type(type),
        agent=agent,
        status=None if retired else "active",
        since=moment(since),
    )
    found, newer = _listed(home, filters, tag or [])
    if as_json:
        emit({"scope": scope.label, "entries": [as_values(entry) for entry in found]})
        return
    if not found:
        key = "entries.none_like_it" if any((type, tag, agent, since)) else "entries.none"
        tell(key if scope.key else f"{key}_anywhere", scope=scope.label)
        return
    for entry in found:
        _print_line(entry, newer.get(entry.superseded_by or ""), with_project=scope.key is None)
    say(dim(text("entries.listed", count=len(found), scope=scope.label)))


def _listed(home: Home, filters: Any, tags: Sequence[str]) -> tuple[list[Entry], dict[str, Entry]]:
    """The entries under the filters with any of the tags, and what replaced those that were."""
    from rules.tags import normalise  # noqa: PLC0415
    from store import knowledge  # noqa: PLC0415

    wanted = {normalise(name) for given in tags for name in given.split(",") if name.strip()}
    with home.database.transaction() as tx:
        found = [e for e in knowledge.list_entries(tx, filters) if not wanted or wanted.intersection(e.tags)]
        replaced = {entry.superseded_by for entry in found if entry.superseded_by}
        newer = {uid: entry for uid in replaced if (entry := knowledge.get(tx, uid)) is not None}
    return found, newer


def as_values(entry: Entry) -> dict[str, Any]:
    """An entry as JSON. The keys are a promise."""
    from archiver.cli.sessions import _entry_json  # noqa: PLC0415

    return _entry_json(entry)


def _print_line(entry: Entry, newer: Entry | None = None, *, with_project: bool = True) -> None:
    say(hang(f"{entry.uid}  ", f"{accent(text('type.' + entry.type.value))}  {bold(one_line(entry.summary))}"))
    parts = [local_day(entry.reviewed_at)]
    if entry.scope is Scope.GLOBAL:
        parts.append(text("scope.all"))
    elif with_project and entry.project:
        parts.append(PurePath(entry.project).name)
    parts += [" ".join(f"#{tag}" for tag in entry.tags)] if entry.tags else []
    if entry.superseded_by:
        summary = f" {one_line(newer.summary, 60)}" if newer else ""
        parts.append(text("entries.superseded_by", uid=entry.superseded_by) + summary)
    elif entry.status != "active":
        parts.append(text("status_of." + entry.status))
    say(dim(hang(" " * 10, plain(" · ".join(parts)))))


# --- words ---


@_command("edit")
def edit(
    uid: Uid,
    summary: Summary = None,
    detail: Detail = None,
    type: Kind = None,
    tags: NewTags = None,
    file: FormFile = None,
    as_json: Json = False,
) -> None:
    from staging.form import form_of  # noqa: PLC0415  store.messages and no more, but --help goes without

    home, keeper = _open()
    kind = _type(type)
    entry = keeper.find(uid)
    old = form_of(entry)
    again = f"wwt entries edit {entry.uid}"
    if any(one is not None for one in (summary, detail, kind, tags)):
        _one_way(file)
        _say_changed(home, keeper.edit(entry, _reworded(home, old, summary, detail, kind, tags)), "edit", as_json)
        return
    with _typed(home, old, file, again) as words:
        done = _nothing(entry) if words is None else keeper.edit(entry, words)
    _say_changed(home, done, "edit", as_json)


@_command("add")
def add(
    summary: Summary = None,
    detail: Detail = None,
    type: Kind = None,
    tags: NewTags = None,
    project: Project = None,
    everywhere: Annotated[bool, typer.Option("--global", help=text("help.entry_global"))] = False,
    file: FormFile = None,
    as_json: Json = False,
) -> None:
    from archiver.cli.scope import scope_of  # noqa: PLC0415
    from staging.form import Form  # noqa: PLC0415
    from store.records import SafeText  # noqa: PLC0415

    home, keeper = _open()
    kind = _type(type)
    where = None if everywhere and not project else scope_of(home, project, everything=False).key
    if where is None and not everywhere:
        raise WwtError("entries.which_project", exit_code=USAGE)
    scope = Scope.GLOBAL if everywhere else Scope.PROJECT
    blank = Form(kind or EntryType.DECISION, SafeText(""), SafeText(""), ())
    if summary is not None:
        _one_way(file)
        if kind is None:
            raise WwtError("entries.type_missing", known=", ".join(EntryType), exit_code=USAGE)
        words = _reworded(home, blank, summary, detail, kind, tags)
        _say_changed(home, keeper.add(words, project=where, scope=scope), "add", as_json)
        return
    if detail is not None or tags is not None:
        raise WwtError("entries.summary_missing", exit_code=USAGE)
    with _typed(home, blank, file, "wwt entries add") as typed:
        done = _nothing() if typed is None else keeper.add(typed, project=where, scope=scope)
    _say_changed(home, done, "add", as_json)


def _reworded(
    home: Home, old: Form, summary: str | None, detail: str | None, kind: EntryType | None, tags: list[str] | None
) -> Form:
    """The form with what was given on the command line in place of the old."""
    from staging import form  # noqa: PLC0415

    new = replace(
        old,
        type=kind or old.type,
        summary=old.summary if summary is None else form.line_of(summary, home.redact),
        detail=old.detail if detail is None else form.detail_of(detail, home.redact),
        tags=old.tags if tags is None else form.tags_of(tags, home.redact),
    )
    if not new.summary:
        raise WwtError("entries.summary_missing", exit_code=USAGE)
    return new


@contextmanager
def _typed(home: Home, old: Form, file: str | None, again: str) -> Iterator[Form | None]:
    """What a person makes of the form, in a file or their editor; None if they left it as it was.

    What was typed into the editor and could not be taken over is kept in a file, whatever the reason.
    """
    from staging import form, prompt  # noqa: PLC0415

    if file is not None:
        typed = _piped() if file == "-" else Path(file).read_bytes()
        words = form.read(typed.decode("utf-8", "replace"), old, home.redact)
        if isinstance(words, form.Fault):
            raise WwtError("entries.bad_file", path=file, line=words.line, reason=words.reason)
        yield words
        return
    prompt.require_terminal("entries.no_terminal")
    edited = prompt.edit(form.write(old))
    if edited is None or not edited.strip():
        yield None
        return
    words = form.read(edited, old, home.redact)
    try:
        if isinstance(words, form.Fault):
            raise WwtError("entries.bad_edit", line=words.line, reason=words.reason)
        yield words
    except BaseException:
        path = _kept(home.redact(edited))
        warn(text("entries.kept", path=path, command=f"{again} --file {path}"))
        raise


def _piped() -> bytes:
    return b"" if sys.stdin is None else sys.stdin.buffer.read()


def _kept(typed: str) -> str:
    """A file of the person's own, outside the archive: what is there is for them to correct or delete."""
    descriptor, path = tempfile.mkstemp(prefix="wwt-entry-", suffix=".md")  # made 0600
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", newline="\n") as kept:
        kept.write(typed)
    return path


def _one_way(file: str | None) -> None:
    if file is not None:
        raise WwtError("entries.one_way", exit_code=USAGE)


# --- standing ---


@_command("retag", ignore_unknown_options=True, help_option_names=["--help"])
def retag(
    context: typer.Context,
    uid: Uid,
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="CHANGE", help=text("help.tag_changes"), show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    from staging.form import tags_of  # noqa: PLC0415

    if uid == "-h":  # elsewhere `-h` may be a tag to remove
        say(context.get_help())
        return
    put: list[str] = []
    more: list[str] = []
    less: list[str] = []
    for change in changes or ():
        if change.startswith("--"):
            raise WwtError("entries.no_option", name=change, exit_code=USAGE)
        {"+": more, "-": less}.get(change[:1], put).append(change.lstrip("+-"))
    if not changes:
        raise WwtError("entries.no_tags", exit_code=USAGE)
    home, keeper = _open()
    sets = tags_of(put, home.redact) if put else None
    done = keeper.retag(uid, put=sets, add=tags_of(more, home.redact), drop=tags_of(less, home.redact))
    _say_changed(home, done, "retag", as_json)


@_command("retire")
def retire(
    uids: Uids,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help=text("help.retire_reason"), show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    from staging.form import line_of  # noqa: PLC0415

    home, keeper = _open()
    why = None if reason is None else line_of(reason, home.redact)
    _say_changed(home, keeper.retire(uids, why), "retire", as_json)


@_command("revive")
def revive(uids: Uids, as_json: Json = False) -> None:
    home, keeper = _open()
    _say_changed(home, keeper.revive(uids), "revive", as_json)


@_command("supersede")
def supersede(
    old: Annotated[str, typer.Argument(metavar="OLD", help=text("help.supersede_old"), show_default=False)],
    new: Annotated[str, typer.Argument(metavar="NEW", help=text("help.supersede_new"), show_default=False)],
    as_json: Json = False,
) -> None:
    home, keeper = _open()
    _say_changed(home, keeper.supersede(old, new), "supersede", as_json)


@_command("merge")
def merge(
    uid: Uid,
    into: Annotated[str, typer.Argument(metavar="INTO", help=text("help.merge_into"), show_default=False)],
    as_json: Json = False,
) -> None:
    home, keeper = _open()
    _say_changed(home, keeper.merge(uid, into), "merge", as_json)


@_command("global")
def everywhere(uids: Uids, as_json: Json = False) -> None:
    home, keeper = _open()
    _say_changed(home, keeper.spread(uids, Scope.GLOBAL), "global", as_json)


@_command("local")
def local(uids: Uids, as_json: Json = False) -> None:
    home, keeper = _open()
    _say_changed(home, keeper.spread(uids, Scope.PROJECT), "local", as_json)


def _open() -> tuple[Home, Keeper]:
    from archiver.entries import Keeper  # noqa: PLC0415  SQLAlchemy and pydantic
    from archiver.home import Home  # noqa: PLC0415

    home = Home.open()
    return home, Keeper(home.desk, home.vault)


def _type(given: str | None) -> EntryType | None:
    return EntryType(checked) if (checked := checked_type(given)) else None


def _nothing(*entries: Entry) -> Changed:
    from archiver.entries import Changed  # noqa: PLC0415

    return Changed(entries, 0)


def _say_changed(home: Home, done: Changed, what: str, as_json: bool) -> None:
    """Say what was changed; search by meaning then learns new words, which takes the model a moment."""
    if as_json:
        emit({"changed": done.changed, "entries": [as_values(entry) for entry in done.entries]})
    elif not done.changed:
        tell("entries.unchanged")
    else:
        tell(f"entries.did_{what}")
        for entry in done.entries:
            _print_line(entry)
        say(dim(text("entries.undo")))
    warn_broken(done)
    if done.changed and what in ("add", "edit", "merge"):
        learn(home)


def warn_broken(done: Changed) -> None:
    for note in done.broken:
        warn(text("vault.broken", path=note.path, line=note.line, reason=note.reason))


def learn(home: Home) -> None:
    from archiver.archive import embed  # noqa: PLC0415

    for notice in embed(home)[1]:
        warn(notice)

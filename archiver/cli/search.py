"""`wwt search` and `wwt why`: raw sessions and reviewed knowledge in one ranking."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver import agents
from archiver.cli.archive import Json, Since, known_agents, moment
from archiver.cli.output import accent, bold, dim, emit, mark, say, tell, warn, width
from archiver.render import fold, local_day, one_line, plain
from store import messages
from store.errors import USAGE, WwtError
from store.messages import text
from store.records import EntryType, Hit, anchor, iso

if TYPE_CHECKING:
    from archiver.home import Home
    from archiver.search import Query, Results

FEW = 3
"""With fewer hits than this in one project, the answer says how to look everywhere."""

Project = Annotated[
    str | None, typer.Option("--project", "-p", metavar="PROJECT", help=text("help.project"), show_default=False)
]
All = Annotated[bool, typer.Option("--all", "-a", help=text("help.all"))]
Type = Annotated[str | None, typer.Option("--type", "-t", metavar="TYPE", help=text("help.type"), show_default=False)]
Tags = Annotated[
    list[str] | None, typer.Option("--tags", "--tag", metavar="TAG", help=text("help.tags"), show_default=False)
]
Agent = Annotated[
    str | None,
    typer.Option("--agent", metavar="AGENT", help=text("help.agent", known=agents.names()), show_default=False),
]
Tag = Annotated[str | None, typer.Option("--tag", metavar="TAG", help=text("help.tag"), show_default=False)]
Folder = Annotated[
    str | None, typer.Option("--cwd", metavar="FOLDER", help=text("help.search_cwd"), show_default=False)
]
Words = Annotated[list[str], typer.Argument(help=text("help.query"), show_default=False)]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=200, metavar="N", help=text("help.limit"))]
Until = Annotated[str | None, typer.Option("--until", metavar="WHEN", help=text("help.until"), show_default=False)]
Branch = Annotated[str | None, typer.Option("--branch", metavar="BRANCH", help=text("help.branch"), show_default=False)]
Only = Annotated[str | None, typer.Option("--only", metavar="KIND", help=text("help.only"), show_default=False)]


def register(app: typer.Typer) -> None:
    app.command(help=text("help.search"), short_help=text("short.search"), epilog=text("examples.search"))(search)
    app.command(help=text("help.why"), short_help=text("short.why"), epilog=text("examples.why"))(why)


WORDY = (("search",), ("why",), ("rules", "try"))
"""The commands that take a person's words."""


def words_last(arguments: list[str], app: typer.Typer) -> list[str]:
    """The arguments with a person's words behind `--`, where one begins with a dash (`wwt search -retry`).

    What is no option of the command is a word. Left to the parser, `-retry` would be `-r -e -t ry`.
    """
    path = next((path for path in WORDY if tuple(arguments[: len(path)]) == path), ())
    if not path or "--" in arguments:
        return arguments
    command: Any = typer.main.get_command(app)
    for name in path:
        command = command.commands[name]
    options = {name: option for option in command.params for name in option.opts if name.startswith("-")}
    options |= dict.fromkeys(("-h", "--help"))
    known: list[str] = []
    words: list[str] = []
    rest = iter(arguments[len(path) :])
    for word in rest:
        name, equals, _ = word.partition("=")
        if name not in options:
            _refuse_misspelling(name, options)
            (known if _short_number(word, options) else words).append(word)
            continue
        known.append(word)
        option = options[name]
        if option is not None and not option.is_flag and not equals:
            known += [value for value in [next(rest, None)] if value is not None]
    return [*path, *known, "--", *words]


def _refuse_misspelling(word: str, options: dict[str, Any]) -> None:
    """`--limt 5` is a slip, not two words to look for."""
    if not word.startswith("--"):
        return
    from difflib import get_close_matches  # noqa: PLC0415  needed only for a word like an option

    close = get_close_matches(word, options, 1, cutoff=0.8)
    if close:
        raise WwtError("cli.misspelt", name=word, meant=close[0], exit_code=USAGE)


def _short_number(word: str, options: dict[str, Any]) -> bool:
    """Whether this is a short option with its number behind it: `-n5`."""
    return word[:1] == "-" and word[:2] in options and word[2:].isdecimal() and word[2:].isascii()


def search(
    query: Words,
    project: Project = None,
    everything: All = False,
    agent: Agent = None,
    branch: Branch = None,
    cwd: Folder = None,
    since: Since = None,
    until: Until = None,
    type: Type = None,
    tag: Tag = None,
    only: Only = None,
    limit: Limit = 10,
    context: Annotated[
        int, typer.Option("--context", "-C", min=0, max=50, metavar="N", help=text("help.search_context"))
    ] = 0,
    abandoned: Annotated[bool, typer.Option("--abandoned", help=text("help.abandoned"))] = False,
    subagents: Annotated[bool, typer.Option("--subagents", help=text("help.subagents"))] = False,
    vectors: Annotated[bool, typer.Option("--vectors", help=text("help.vectors"))] = False,
    as_json: Json = False,
) -> None:
    from archiver.home import Home  # noqa: PLC0415  --help needs no archive

    home = Home.open()
    results = find(
        home,
        " ".join(query),
        project=project,
        everything=everything,
        vectors=vectors,
        agent=agent,
        branch=branch,
        cwd=str(Path(cwd).absolute()) if cwd else None,
        since=moment(since),
        until=moment(until, ending=True),
        type=checked_type(type),
        tag=tag,
        only=_checked_only(only),
        limit=limit,
        abandoned=abandoned,
        subagents=subagents,
    )
    if as_json:
        emit(contract(results))
        return
    _print(home, results, context, narrow=not everything)


def why(
    query: Words, project: Project = None, everything: All = False, limit: Limit = 5, as_json: Json = False
) -> None:
    from archiver.home import Home  # noqa: PLC0415

    home = Home.open()
    question = " ".join(query)
    known: dict[str, Any] = {"project": project, "everything": everything, "limit": limit}
    decided = find(home, question, type=EntryType.DECISION.value, only="knowledge", **known)
    other = find(home, question, **known)
    results = _decisions_first(decided, other, limit)
    if as_json:
        emit(contract(results))
        return
    _print(home, results, 0, narrow=not everything)


def _decisions_first(decided: Results, other: Results, limit: int) -> Results:
    from dataclasses import replace  # noqa: PLC0415

    ids = {hit.id for hit in other.hits}
    # A decision that shares nothing with the question but its type is no answer: it must be among what was found, or match in words.
    first = [hit for hit in decided.hits if hit.id in ids or hit.spans]
    listed = {hit.id for hit in first}
    return replace(other, hits=(*first, *(hit for hit in other.hits if hit.id not in listed))[:limit])


def find(
    home: Home, question: str, *, project: str | None, everything: bool, vectors: bool = False, **wanted: Any
) -> Results:
    """Search under a scope that a person chose; the model is loaded only where that is quick, or asked for."""
    from archiver.cli.scope import scope_of  # noqa: PLC0415
    from archiver.embed.choose import is_light  # noqa: PLC0415
    from archiver.search import Query, search  # noqa: PLC0415  tantivy and numpy

    if wanted.get("agent"):
        known_agents([wanted["agent"]])
    scope = scope_of(home, project, everything=everything)
    projects = None if scope.projects is None else frozenset(scope.projects)
    query: Query = Query(text=question, projects=projects, scope=scope.label, **wanted)
    embedder = home.embedder if vectors or is_light(home.settings.embedding.model) else None
    return search(home.reader, home.index, embedder, query)


def checked_type(value: str | None) -> str | None:
    if value is not None and value not in list(EntryType):
        raise WwtError("cli.unknown_type", name=value, known=", ".join(EntryType), exit_code=USAGE)
    return value


def _checked_only(value: str | None) -> str | None:
    if value not in (None, "raw", "knowledge"):
        raise WwtError("cli.unknown_only", name=value, exit_code=USAGE)
    return value


def contract(results: Results) -> dict[str, Any]:
    """The stable keys of `wwt search --json`."""
    return {"scope": results.scope, "engines": list(results.engines), "hits": [_hit(hit) for hit in results.hits]}


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "kind": hit.kind,
        "id": hit.id,
        "session": hit.session,
        "agent": hit.agent,
        "project": hit.project,
        "time": iso(hit.time),
        "score": round(hit.score, 5),
        "text": hit.text,
        "citation": hit.citation,
        "why": hit.why,
        "type": hit.type or None,
        "tags": list(hit.tags),
        "status": hit.status,
        "title": hit.title,
    }


def _print(home: Home, results: Results, context: int, *, narrow: bool) -> None:
    for notice in results.notices:
        warn(messages.text(notice))
    if not results.hits:
        tell("search.nothing" if narrow else "search.nothing_anywhere", scope=results.scope)
        return
    for hit in results.hits:
        _print_hit(hit)
        if context and hit.kind == "chunk":
            _print_context(home, hit, context)
        say()
    say(dim(messages.text("search.scope", scope=results.scope, engines="+".join(results.engines))))
    if len(results.hits) < FEW and narrow:
        tell("search.try_all")


def _print_hit(hit: Hit) -> None:
    when = local_day(hit.time)
    if hit.kind == "entry":
        status = "" if hit.status == "active" else f" [{messages.text('status_of.' + hit.status)}]"
        say(f"{accent(messages.text('type.' + hit.type))}{status}  {hit.id}  {dim(plain(f'{hit.project} · {when}'))}")
    else:
        title = f" · {one_line(hit.title, 50)}" if hit.title else ""
        say(f"{bold(hit.citation)}  {dim(plain(f'{hit.project} · {when}{title}'))}")
    shown: set[str] = set()
    for line in mark(hit.text, list(hit.spans)).splitlines():
        # An entry's detail often says its summary over again.
        if line.strip() and (words := anchor(line)) not in shown:
            shown.add(words)
            say(fold(line, width(), "  "))


def _print_context(home: Home, hit: Hit, context: int) -> None:
    rows = home.reader.sessions("WHERE s.external_id = ? AND s.agent = ?", (hit.session, hit.agent))
    turns = home.reader.turns(rows[0].id) if rows else []
    for turn in turns:
        if (
            turn["own"]
            and hit.first_ord - context <= turn["ord"] <= hit.last_ord + context
            and not hit.first_ord <= turn["ord"] <= hit.last_ord
        ):
            say(
                dim(plain(f"    #{turn['ord']} {messages.text('role.' + turn['role'])}: {one_line(turn['text'], 160)}"))
            )

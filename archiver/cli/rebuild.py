"""`wwt rebuild`: the derived indexes anew from the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from archiver.cli.archive import Json
from archiver.cli.output import emit, tell, warn, with_meter
from store.errors import USAGE, WwtError
from store.messages import text

if TYPE_CHECKING:
    from archiver.rebuild import Rebuilt


def register(app: typer.Typer) -> None:
    app.command(help=text("help.rebuild"), short_help=text("short.rebuild"), epilog=text("examples.rebuild"))(rebuild)


def rebuild(
    words: Annotated[bool, typer.Option("--words", help=text("help.rebuild_words"))] = False,
    vectors: Annotated[bool, typer.Option("--vectors", help=text("help.rebuild_vectors"))] = False,
    embedding: Annotated[
        str | None,
        typer.Option("--embedding", metavar="MODEL", help=text("help.rebuild_embedding"), show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    from archiver.home import Home  # noqa: PLC0415
    from archiver.rebuild import Wish, rebuild  # noqa: PLC0415  SQLAlchemy

    if embedding is not None and not embedding.strip():
        raise WwtError("rebuild.no_model", exit_code=USAGE)
    everything = not (words or vectors or embedding)
    wish = Wish(
        words=words or everything,
        vectors=vectors or everything or embedding is not None,
        caches=everything,
        embedding=embedding,
    )
    home = Home.open()
    done = with_meter(lambda meter: rebuild(home, wish, meter), quiet=as_json)
    for notice in done.notices:
        warn(notice)
    if as_json:
        emit({"words": done.words, "vectors": done.vectors, "embedded": done.embedded, "model": done.model})
    else:
        _print(done, moved=embedding is not None)


def _print(done: Rebuilt, *, moved: bool) -> None:
    if done.words is not None:
        tell("rebuild.words", rows=done.words)
    if moved and done.model == "none":
        tell("rebuild.without")
    elif moved:
        tell("rebuild.moved", model=done.model, rows=done.vectors or 0, embedded=done.embedded)
    elif done.vectors is not None:
        tell("rebuild.vectors", rows=done.vectors, embedded=done.embedded)

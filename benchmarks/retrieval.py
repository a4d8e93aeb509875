"""Search quality and speed on a folder with `sessions.jsonl` and `queries.jsonl`.

    python benchmarks/retrieval.py FOLDER [--run FILE] [--no-vectors] [--most N] [--misses]

Builds a throw-away archive from the sessions with the real pipeline (chunks, tokens, Tantivy, vectors), asks every
question, and prints any@1, any@5 and the mean reciprocal rank of the right session. A question with a `scope` is
asked within the sessions whose id begins with it.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert

import migrations
from archiver.chunk import chunk_turns
from archiver.embed.choose import UNIVERSAL, open_embedder
from archiver.index import Index
from archiver.search import Query, search
from store import chunks
from store.database import Database
from store.reader import Reader
from store.records import Role, SafeText, Turn
from store.tables import project, session, turn
from store.tokens import index_tokens


def main() -> int:
    options = _options()
    if not (options.folder / "sessions.jsonl").exists():
        print(f"{options.folder}: no evaluation set here, skipped")
        return 0
    sessions = _lines(options.folder / "sessions.jsonl")
    queries = _lines(options.folder / "queries.jsonl")
    with tempfile.TemporaryDirectory(prefix="wwt-retrieval-") as folder:
        root = Path(folder)
        database, index, embedder = _archive(root, sessions, vectors=not options.no_vectors)
        runs = _ask(root, index, embedder, sessions, queries[: options.most])
        database.close()
    if options.run:
        options.run.write_text("".join(json.dumps(run, ensure_ascii=False) + "\n" for run in runs), encoding="utf-8")
    _report(queries, {run["query_id"]: run["ranked"] for run in runs}, options)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--run", type=Path, help="write the ranking of every question, one JSON object a line")
    parser.add_argument("--no-vectors", action="store_true")
    parser.add_argument("--most", type=int, default=None, help="ask only the first questions")
    parser.add_argument(
        "--misses", action="store_true", help="list the questions whose answer is not among the first five"
    )
    return parser.parse_args()


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def _archive(root: Path, sessions: list[dict[str, Any]], *, vectors: bool) -> tuple[Database, Index, Any]:
    path = root / "archive.db"
    migrations.upgrade(path, root)
    database = Database(path)
    embedder = open_embedder(UNIVERSAL, cache=root / "embedder") if vectors else None
    with database.transaction() as tx:
        for number, one in enumerate(sessions, 1):
            _store(tx, number, one)
    index = Index(root / "index", path, lambda: database, lambda: embedder)
    total = Reader(path).counts()["chunks"]
    _timed("words, with Kiwi", total, index.apply)
    if embedder is not None:
        embedder.query("warm")
        _timed("vectors", total, index.embed_missing)
    texts = [row["text"] for row in Reader(path).rows("SELECT text FROM chunk")]
    _timed("tokens, with Kiwi", total, lambda: [index_tokens(text) for text in texts])
    return database, index, embedder


def _timed(what: str, count: int, step: Any) -> None:
    start = time.perf_counter()
    step()
    took = time.perf_counter() - start
    print(f"{what}: {count} chunks in {took:.1f} s, {count / took:.0f} chunks/s")


def _store(tx: Connection, number: int, one: dict[str, Any]) -> None:
    """Every session is a project of its own, so that a question's scope is a set of projects."""
    tx.execute(insert(project).values(id=number, key=SafeText(one["session_id"]), name=SafeText(one["session_id"])))
    row = {
        "id": number,
        "agent": "bench",
        "external_id": SafeText(one["session_id"]),
        "project_id": number,
        "started_at": number,
    }
    tx.execute(insert(session).values(**row, title=SafeText(one.get("title") or "")))
    turns = [
        Turn(
            f"{number}-{ord_}",
            ord_,
            Role.ASSISTANT if said["role"] == "assistant" else Role.USER,
            "text",
            SafeText(said["text"]),
        )
        for ord_, said in enumerate(one["turns"], 1)
        if said["text"].strip()
    ]
    for said in turns:
        values = {
            "agent": "bench",
            "session_id": number,
            "key": said.key,
            "pos": said.ord,
            "ord": said.ord,
            "kind": "text",
        }
        tx.execute(insert(turn).values(**values, role=said.role.value, text=said.text))
    chunks.replace(tx, number, [], chunk_turns(turns))


def _ask(
    root: Path, index: Index, embedder: Any, sessions: list[dict[str, Any]], queries: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    reader = Reader(root / "archive.db")
    numbers = {one["session_id"]: number for number, one in enumerate(sessions, 1)}
    runs, times = [], []
    for one in queries:
        scope = one.get("scope")
        within = None if not scope else frozenset(number for name, number in numbers.items() if name.startswith(scope))
        start = time.perf_counter()
        found = search(reader, index, embedder, Query(one["query"], projects=within, limit=50))
        times.append(time.perf_counter() - start)
        ranked = list(dict.fromkeys(hit.session for hit in found.hits))
        runs.append({"query_id": one["query_id"], "ranked": ranked})
    times.sort()
    print(f"warm search: median {times[len(times) // 2] * 1000:.0f} ms, slowest {times[-1] * 1000:.0f} ms")
    return runs


def _report(queries: list[dict[str, Any]], ranked: dict[str, list[str]], options: argparse.Namespace) -> None:
    groups: dict[str, list[int | None]] = defaultdict(list)
    for one in queries:
        if one["query_id"] not in ranked:
            continue
        right = set(one.get("relevant_sessions") or [name.partition("#")[0] for name in one["relevant"]])
        place = next((rank for rank, name in enumerate(ranked[one["query_id"]], 1) if name in right), None)
        groups["total"].append(place)
        groups[f"category {one.get('category', '-')}"].append(place)
        if options.misses and (place is None or place > 5):
            print(f"  {one['query_id']} at {place}: {one['query']}")
    for name, places in sorted(groups.items(), key=lambda group: (group[0] != "total", group[0])):
        count = len(places)
        first, five = (sum(place is not None and place <= most for place in places) / count for most in (1, 5))
        mean = sum(1 / place for place in places if place) / count
        print(f"{name:24} n={count:5}  any@1 {first:.3f}  any@5 {five:.3f}  MRR {mean:.3f}")


if __name__ == "__main__":
    sys.exit(main())

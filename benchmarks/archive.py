"""Rates of a first `wwt archive` by stage, of one that finds nothing new, and of growth by one turn.

    python -m benchmarks.archive FOLDER [--sessions N] [--kilobytes N] [--large MEGABYTES]

FOLDER gets the invented transcripts and a throw-away WWT_HOME. Loading Kiwi and the model is part of the first run.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from archiver import ingest
from archiver.archive import Wish, archive
from archiver.home import Home
from benchmarks.transcripts import sessions, write

CODE = "from archiver.cli.main import run; run()"


class Watch:
    """Seconds by stage, from the progress that the flow reports."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.last = time.perf_counter()

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.perf_counter()
        self.seconds[stage] += now - self.last
        self.last = now


def timed(watch: Watch, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
    """The function, its seconds added under `name`."""

    def measured(*arguments: Any, **more: Any) -> Any:
        began = time.perf_counter()
        try:
            return work(*arguments, **more)
        finally:
            watch.seconds[name] += time.perf_counter() - began

    return measured


def split(watch: Watch, home: Any) -> None:
    """Have the reading's parts measured: what is neither masking nor storing is parsing."""
    home.__dict__["redact"] = timed(watch, "of it redact", home.redact)
    ingest.sessions.put_turns = timed(watch, "of it store", ingest.sessions.put_turns)
    ingest.rechunk = timed(watch, "of it chunk", ingest.rechunk)


def archived(paths: list[Path], **wish: Any) -> tuple[Any, Watch, float]:
    watch, home = Watch(), Home.open()
    split(watch, home)
    began = watch.last = time.perf_counter()
    report = archive(home, Wish(tuple(paths), **wish), watch)
    return report, watch, time.perf_counter() - began


def first(folder: Path, *, profile: Path | None) -> None:
    profiler = cProfile.Profile() if profile else None
    if profiler:
        profiler.enable()
    report, watch, seconds = archived([folder], finished=True)
    if profiler and profile:
        profiler.disable()
        profiler.dump_stats(profile)
        pstats.Stats(str(profile)).sort_stats("cumulative").print_stats(60)
    size = sum(path.stat().st_size for path in folder.glob("*.jsonl")) / (1 << 20)
    print(
        f"first: {report.files_read} files, {size:.0f} MB, {report.turns_added} turns, {report.chunks_added} chunks, {seconds:.1f} s"
    )
    print(
        f"  {report.turns_added / seconds:.0f} turns/s, {report.chunks_added / seconds:.0f} chunks/s, candidates {report.candidates_added}"
    )
    for stage, spent in watch.seconds.items():
        print(
            f"  {stage:12s} {spent:6.2f} s  {report.turns_added / max(spent, 1e-9):8.0f} turns/s  {report.chunks_added / max(spent, 1e-9):8.0f} chunks/s"
        )


def command(home: Path, *arguments: str) -> float:
    env = {**os.environ, "WWT_HOME": str(home), "WWT_LANG": "en"}
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", CODE, *arguments], env=env, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def append(path: Path, words: str) -> None:
    """Another prompt behind the last record."""
    with path.open("rb") as file:
        file.seek(-1_000_000, os.SEEK_END)
        last = json.loads(file.readlines()[-1])
    message = {"role": "user", "content": words}
    row = {**last, "type": "user", "message": message, "parentUuid": last["uuid"], "uuid": f"late-{last['uuid']}"}
    with path.open("ab") as file:
        file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def growth(folder: Path, megabytes: int) -> None:
    """One more turn in a large session: what it costs must not depend on the session."""
    path = write(folder / "large" / "99999999-0000-4000-8000-000000000001.jsonl", megabytes << 20, seed=7)
    archived([path], distil=False)
    append(path, "그 오류는 왜 다시 났나요?")
    report, watch, seconds = archived([path], distil=False)
    stages = ", ".join(f"{stage} {spent:.2f}" for stage, spent in watch.seconds.items())
    print(
        f"growth by a turn in {megabytes} MB: {seconds:.2f} s ({stages}), {report.turns_added} turns added, {report.bytes_read} bytes read, {report.chunks_embedded} embedded"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--sessions", type=int, default=100)
    arguments.add_argument("--kilobytes", type=int, default=200)
    arguments.add_argument("--large", type=int, default=20)
    arguments.add_argument("--profile", type=Path)
    given = arguments.parse_args()
    home = given.folder / f"home-{os.getpid()}"
    os.environ |= {"WWT_HOME": str(home), "HOME": str(given.folder)}
    folder = sessions(given.folder / f"in-{given.sessions}-{given.kilobytes}", given.sessions, given.kilobytes << 10)
    first(folder, profile=given.profile)
    print(f"nothing new, in a process of its own: {command(home, 'archive', str(folder)):.2f} s")
    growth(given.folder, given.large)


if __name__ == "__main__":
    main()

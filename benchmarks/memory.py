"""Peak memory of `wwt ingest` and `wwt archive --finished` on one large transcript.

    python -m benchmarks.memory FOLDER [MEGABYTES ...]

FOLDER gets the invented transcripts and a throw-away WWT_HOME per run. The peak is that of the process and its children.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.transcripts import write

MEBI = 1 << 20
CODE = "from archiver.cli.main import run; run()"


def peak(home: Path, *arguments: str) -> tuple[float, float]:
    """(MB, seconds) of one command in a process of its own."""
    env = {**os.environ, "WWT_HOME": str(home), "HOME": str(home.parent), "WWT_LANG": "en"}
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", CODE, *arguments], env=env, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{arguments}: exit status {status}")
    scale = 1 if sys.platform == "darwin" else 1024
    return usage.ru_maxrss * scale / MEBI, time.perf_counter() - began


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("megabytes", type=int, nargs="*", default=[10, 100])
    given = arguments.parse_args()
    # A child's peak counts what it shared with us before it became another program.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 100 * MEBI
    for megabytes in given.megabytes:
        path = given.folder / f"m{megabytes:07d}-0000-4000-8000-000000000001.jsonl"
        if not path.exists():
            write(path, megabytes * MEBI, seed=megabytes)
        for name, command in (("ingest", ("ingest",)), ("archive --finished", ("archive", "--finished"))):
            home = given.folder / f"home-{megabytes}-{command[0]}-{os.getpid()}"
            used, seconds = peak(home, *command, str(path))
            print(f"{megabytes:5d} MB  {name:20s} peak {used:7.0f} MB  {seconds:6.1f} s", flush=True)


if __name__ == "__main__":
    main()

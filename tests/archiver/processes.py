"""Real `wwt` processes for the tests that kill them, forked from one that has Kiwi and the model in memory.

A `wwt archive` of its own costs three seconds of loading; a fork of this server costs none, and dies as really.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
STEPS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")


@dataclass(frozen=True)
class Done:
    """How a process ended: its exit code, or minus the signal that killed it."""

    code: int
    out: str
    err: str


class Server:
    """The process that forks. One request at a time; what it started runs side by side."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = 0
        (folder / "user").mkdir(parents=True)
        own = {"HOME": str(folder / "user"), "WWT_HOME": str(folder / "wwt"), "WWT_LANG": "en"}
        env = {**os.environ, **own, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.archiver.processes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            cwd=ROOT,
            text=True,
        )
        self._ask({"op": "hello"})

    def start(
        self,
        *arguments: str,
        home: Path,
        program: str = "wwt",
        kill_at: int = 0,
        file_limit: int = 0,
        text: str = "",
        cwd: Path | None = None,
        **environment: str,
    ) -> Running:
        """Start `program` with these arguments. `kill_at`: SIGKILL before its n-th step; `file_limit`: bytes a file may grow to."""
        self._started += 1
        base = self._folder / str(self._started)
        base.with_suffix(".in").write_text(text, encoding="utf-8")
        env = {**os.environ, "WWT_HOME": str(home), "PYTHONPATH": str(ROOT), **environment}
        request = {"op": "start", "program": program, "arguments": arguments, "base": str(base), "env": env}
        request["cwd"] = str(cwd or ROOT)
        answer = self._ask({**request, "kill_at": kill_at, "file_limit": file_limit})
        return Running(self, answer["pid"], base)

    def run(self, *arguments: str, home: Path, **more: Any) -> Done:
        return self.start(*arguments, home=home, **more).wait()

    def steps(self, *arguments: str, home: Path, **more: Any) -> int:
        """Run to the end, and count the steps at which a `kill_at` may strike."""
        running = self.start(*arguments, home=home, kill_at=1 << 60, **more)
        done = running.wait()
        assert done.code == 0, done.err
        return int(running.base.with_suffix(".steps").read_text())

    def wait_for(self, pid: int) -> int:
        return int(self._ask({"op": "wait", "pid": pid})["code"])

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        answer: dict[str, Any] = json.loads(stdout.readline())
        return answer


@dataclass(frozen=True)
class Running:
    server: Server
    pid: int
    base: Path

    def send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self) -> Done:
        code = self.server.wait_for(self.pid)
        read = [self.base.with_suffix(end).read_text(encoding="utf-8", errors="replace") for end in (".out", ".err")]
        return Done(code, *read)


@cache
def shared() -> Server:
    """The one server of this test process, started when first asked for."""
    folder = Path(tempfile.mkdtemp(prefix="wwt-server-"))
    made = Server(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(made.close)
    return made


def _serve() -> None:
    _load()
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "start":
            answer = {"pid": _fork(request)}
        elif request["op"] == "wait":
            _, status = os.waitpid(request["pid"], 0)
            answer = {"code": os.waitstatus_to_exitcode(status)}
        else:
            answer = {}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _load() -> None:
    """All that takes time to load. Nothing here may start a thread: a fork has only the one that forked."""
    import archiver.archive
    import archiver.cli.main
    import archiver.distil
    import archiver.remask
    import archiver.search
    import archiver.vault  # noqa: F401
    from archiver.config import DEFAULT_MODEL
    from archiver.embed.choose import open_embedder
    from archiver.home import Home
    from store.tokens import morphemes

    morphemes("형태소를 불러온다")
    # Reading the built-in rules once warms their regular expressions.
    _ = open_embedder(DEFAULT_MODEL, cache=Path(os.environ["WWT_HOME"]) / "warm")
    _ = Home
    assert threading.active_count() == 1


def _fork(request: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        code = _child(request)
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:  # a crash must be seen as one, and never return into the server's loop
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)
    raise AssertionError


def _child(request: dict[str, Any]) -> int:
    base = Path(request["base"])
    for number, end, flags in (
        (0, ".in", os.O_RDONLY),
        (1, ".out", os.O_WRONLY | os.O_CREAT),
        (2, ".err", os.O_WRONLY | os.O_CREAT),
    ):
        os.dup2(os.open(base.with_suffix(end), flags, 0o600), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  a process keeps its streams
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  a process keeps its streams
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  a process keeps its streams
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()  # the zone is read at a process's start, which was the server's
    os.chdir(request["cwd"])
    sys.argv = [request["program"], *request["arguments"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["file_limit"]:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_limit"],) * 2)
    steps = _Steps(request["kill_at"]) if request["kill_at"] else None
    try:
        if request["program"] == "wwt-hook":
            from archiver.hook import main

            main()
        else:
            from archiver.cli.main import run

            run()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        if steps:
            base.with_suffix(".steps").write_text(str(steps.count))
    return 0


class _Steps:
    """Counts what changes something on disk (a commit, a rename, a file opened for writing), and kills before the n-th."""

    def __init__(self, last: int) -> None:
        self.count, self._last = 0, last
        sys.addaudithook(self._audit)
        connect = sqlite3.connect

        def traced(*arguments: Any, **more: Any) -> sqlite3.Connection:
            made = connect(*arguments, **more)
            made.set_trace_callback(self._statement)
            return made

        sqlite3.connect = sqlite3.dbapi2.connect = traced  # type: ignore[attr-defined]

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in STEPS or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES):
            self._step()

    def _statement(self, sql: str) -> None:
        if sql.startswith(("BEGIN", "COMMIT", "PRAGMA wal_checkpoint")):
            self._step()

    def _step(self) -> None:
        self.count += 1
        if self.count == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    _serve()

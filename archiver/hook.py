"""What an agent runs at the start and end of a session. It never fails the agent: exit 0, and nothing on standard output but recall.

Standard library, `store.reader` and `archiver.recall` only: an agent waits for this program.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from archiver import config, fingerprint, inbox
from archiver.recall import recall
from store.reader import Reader
from store.revision import REVISION, revision_on_disk

GUARD = "WWT_HOOK_ACTIVE"
"""Set for whatever wwt itself starts: a hook that finds it leaves at once, so that no loop can form."""

SECONDS = 1.5
"""Time limit of its own; an agent's is up to ten minutes, and nobody should wait for a memory."""

LOG_BYTES = 64_000
START = frozenset({"session-start", "pre-prompt"})


def main() -> None:
    if os.environ.get(GUARD):
        return
    os.umask(0o077)  # whatever is written under WWT_HOME is its owner's alone
    # A read that hangs (a dead network disk, a held lock) must not hold the agent: the process ends without a word.
    threading.Timer(SECONDS, _give_up).start()
    try:
        _run(sys.argv[1:])
        if sys.stdout is not None:  # an agent may start us without one
            sys.stdout.flush()
    except Exception as error:  # whatever it is, the agent goes on; the log says what it was
        _log(f"{type(error).__name__}: {error}")
    finally:
        # Daemon or not, a timer thread would keep the process alive.
        os._exit(0)


def _give_up() -> None:
    # The log may be on the disk that hangs.
    threading.Thread(target=_log, args=(f"gave up after {SECONDS} s",), daemon=True).start()
    time.sleep(0.1)
    os._exit(0)


def _run(arguments: list[str]) -> None:
    if len(arguments) < 2:
        raise ValueError("usage: wwt-hook AGENT EVENT [PAYLOAD]")
    agent, event = arguments[0], arguments[1]
    payload = _payload(arguments[2:])
    if event in START:
        _start(agent, payload)
    else:
        _tell(agent, event, payload)


def _payload(rest: list[str]) -> dict[str, Any]:
    """The event as JSON, from the last argument (Codex notify) or standard input; UTF-8 whatever the locale says."""
    raw = (
        rest[-1]
        if rest
        else ("" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace"))
    )
    loaded = json.loads(raw) if raw.strip() else {}
    if not isinstance(loaded, dict):
        raise TypeError("payload is no JSON object")
    return loaded


def _text(payload: dict[str, Any], *names: str) -> str:
    return next((value for name in names if isinstance(value := payload.get(name), str) and value), "")


def _tell(agent: str, event: str, payload: dict[str, Any]) -> None:
    session = _text(payload, "session_id", "thread-id", "sessionId")
    transcript = _text(payload, "transcript_path", "transcriptPath")
    dropped = inbox.Event(agent, event, session, transcript, _text(payload, "cwd"), time.time_ns() // 1_000_000)
    inbox.drop(config.home() / "inbox", dropped)


def _start(agent: str, payload: dict[str, Any]) -> None:
    root = config.home()
    database = root / "archive.db"
    if revision_on_disk(database) != REVISION:
        return
    settings = config.load(root / "config.toml")
    reader = Reader(database, busy_seconds=SECONDS / 3)
    if reader.meta(fingerprint.KEY) != fingerprint.secret_rules(root / "rules"):
        return  # a new rule may mask what is stored; the next `wwt` command sees to it
    cwd = Path(_text(payload, "cwd") or os.getcwd())  # noqa: PTH109  Path.cwd costs nothing less
    block = recall(reader, cwd, budget=settings.recall.budget, aliases=config.aliases(root))
    if block.text:
        sys.stdout.buffer.write(_answer(agent, block.text).encode("utf-8", "replace"))


def _answer(agent: str, text: str) -> str:
    """The block in the form the agent takes: each reads `additionalContext`, Gemini without the event's name."""
    output = {"additionalContext": text}
    if agent != "gemini-cli":
        output = {"hookEventName": "SessionStart", **output}
    return json.dumps({"hookSpecificOutput": output}, ensure_ascii=False) + "\n"


def _log(reason: str) -> None:
    """One line in log/hook.log for `wwt status`; a log that cannot be written is nobody's business but standard error's."""
    line = f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {' '.join(sys.argv[1:3])} {' '.join(reason.split())[:500]}\n"
    try:
        path = config.home() / "log" / "hook.log"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        kept = path.read_bytes()[-LOG_BYTES:] if path.exists() and path.stat().st_size > 2 * LOG_BYTES else None
        if kept is not None:
            path.write_bytes(kept)
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(line)
    except OSError:
        if sys.stderr is not None:
            sys.stderr.write(line)

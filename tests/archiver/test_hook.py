"""The hook as an agent runs it: a real process with a payload on standard input."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from archiver import inbox
from archiver.home import Home
from tests.archiver.test_recall import HERE, know

ROOT = Path(__file__).parents[2]


def hook(*arguments: str, payload: Any = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
    raw = payload if isinstance(payload, bytes) else json.dumps(payload or {}, ensure_ascii=False).encode()
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, "-c", "from archiver.hook import main; main()", *arguments],
        input=raw,
        capture_output=True,
        env=env,
        timeout=30,
    )


def test_the_end_of_a_session_leaves_one_event_and_no_word(wwt_home: Path) -> None:
    done = hook(
        "claude-code",
        "session-end",
        payload={"session_id": "S1", "transcript_path": "/t.jsonl", "cwd": HERE, "reason": "clear"},
    )
    assert (done.returncode, done.stdout) == (0, b"")
    [(_, event)] = list(inbox.waiting(wwt_home / "inbox"))
    assert event is not None
    assert (event.agent, event.event, event.session, event.transcript, event.ends) == (
        "claude-code",
        "session-end",
        "S1",
        "/t.jsonl",
        True,
    )


@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini-cli"])
def test_the_start_of_a_session_gets_the_recall_block(agent: str) -> None:
    uid = know("포트는 8080으로 고정", "port")
    done = hook(agent, "session-start", payload={"session_id": "S1", "cwd": HERE, "source": "startup"})
    output = json.loads(done.stdout)["hookSpecificOutput"]
    assert uid in output["additionalContext"]
    assert output.get("hookEventName") == (None if agent == "gemini-cli" else "SessionStart")


@pytest.mark.parametrize("encoding", ["cp949", "ascii"])
def test_payloads_are_utf8_under_any_locale(wwt_home: Path, encoding: str) -> None:
    hook(
        "codex",
        "stop",
        payload={"session_id": "세션", "cwd": '/집/"업무"'},
        PYTHONIOENCODING=encoding,
        PYTHONUTF8="0",
        LC_ALL="C",
    )
    [(_, event)] = list(inbox.waiting(wwt_home / "inbox"))
    assert event is not None
    assert (event.session, event.cwd) == ("세션", '/집/"업무"')


@pytest.mark.parametrize("payload", [b"not json", b"[1]", b"\xff\xfe", b""])
def test_a_bad_payload_never_fails_the_agent(wwt_home: Path, payload: bytes) -> None:
    done = hook("claude-code", "session-start", payload=payload)
    assert (done.returncode, done.stdout) == (0, b"")


def test_an_unusable_archive_is_silent_and_logged(wwt_home: Path) -> None:
    wwt_home.mkdir()
    (wwt_home / "archive.db").write_bytes(b"not a database" * 1000)
    done = hook("claude-code", "session-start", payload={"cwd": HERE})
    assert (done.returncode, done.stdout) == (0, b"")
    assert "archive.db" in (wwt_home / "log" / "hook.log").read_text(encoding="utf-8")


def test_a_writer_that_holds_the_archive_does_not_hold_the_agent(wwt_home: Path) -> None:
    know("포트는 8080으로 고정", "port")
    holder = sqlite3.connect(Home.open().database_path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    done = hook("claude-code", "session-start", payload={"cwd": HERE})
    holder.close()
    assert done.returncode == 0


def test_inside_a_process_of_ours_the_hook_leaves_at_once(wwt_home: Path) -> None:
    done = hook("claude-code", "session-end", payload={"session_id": "S1"}, WWT_HOOK_ACTIVE="1")
    assert (done.returncode, done.stdout) == (0, b"")
    assert not wwt_home.exists()


def test_the_hook_loads_the_standard_library_only() -> None:
    code = "import sys; import archiver.hook; print(' '.join(sorted({name.partition('.')[0] for name in sys.modules})))"
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    assert set(loaded.stdout.split()).isdisjoint(
        {"typer", "pydantic", "sqlalchemy", "numpy", "tantivy", "yaml", "orjson", "alembic"}
    )


def test_without_standard_output_the_hook_ends_at_once_and_in_peace(wwt_home: Path) -> None:
    script = f"{sys.executable} -c 'from archiver.hook import main; main()' claude-code session-end '{{}}' >&-"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(list((wwt_home / "inbox").iterdir())) == 1
    assert not (wwt_home / "log" / "hook.log").exists()

"""What people, scripts and agents get to see: nothing that steers a terminal, breaks a hook, or shows too much."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from archiver.home import Home
from tests.archiver.cli.test_commands import ROOT, wwt
from tests.archiver.sources.transcripts import assistant, call, entry, header, result, user
from tests.reports.walk import accept_all, claude, openclaw, recalled, run, search

HOSTILE = (
    "완료 \x1b[2J\x1b[H\x1b[35mVIOLET\x1b[0m \x1b]0;제목\x07 real\rFAKE a\x08\x08 \u202egnp.exe\u202c \x9b31m 표식 cc89"
)
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def hook(event: str, payload: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    raw = payload if isinstance(payload, bytes) else json.dumps(payload, ensure_ascii=False).encode()
    command = [sys.executable, "-c", "from archiver.hook import main; main()", "claude-code", event]
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(command, input=raw, capture_output=True, env=env, timeout=60, check=False)


# --- terminals -------------------------------------------------------------------------------------------------------


def test_transcripts_cannot_steer_the_terminal_in_any_command() -> None:
    claude(
        user("1", f"큐는 Kafka 대신 Postgres로 하자 {HOSTILE}", gitBranch=f"b{HOSTILE}"),
        assistant("2", "네, Postgres로 구현했습니다.", "1"), assistant("3", call("Bash", {"command": "make"}), "2"),
        user("4", [result(f"Error: {HOSTILE}", failed=True)], "3", 3),
        {"type": "custom-title", "customTitle": f"제목 {HOSTILE}", "sessionId": "S1"}, ascii_only=True,
    )  # fmt: skip
    run()
    outputs = [wwt("review", "--list", "--all").stdout, wwt("review", "--list", "--all", "--json").stdout]
    accept_all()
    uid = Home.open().reader.rows("SELECT uid FROM entry")[0]["uid"]
    for arguments in (
        ("search", "--all", "cc89"), ("search", "--all", "--json", "cc89"), ("show", "S1"), ("show", "S1", "--json"), ("show", uid),
        ("sessions", "--all"), ("entries", "--all"), ("recall", "--cwd", "/srv/shop"), ("status",), (),
    ):  # fmt: skip
        outputs.append(wwt(*arguments).stdout)
    assert not any(STEERING.search(output) for output in outputs)
    assert "cc89" in outputs[2]
    assert search("VIOLET", limit=1)


# --- locales and encodings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "locale", [{"LC_ALL": "C"}, {"LC_ALL": "ko_KR.EUC-KR"}, {"PYTHONIOENCODING": "cp949"}], ids=str
)
def test_answers_are_the_same_under_every_locale(locale: dict[str, Any]) -> None:
    claude(user("1", "⚙ 환경 “따옴표” — 줄표 é 표식 lc40"), assistant("2", "네 ✓", "1"))
    run()
    found = json.loads(wwt("search", "--all", "--json", "lc40", cold=True, PYTHONUTF8="0", **locale).stdout)
    assert "⚙ 환경 “따옴표” — 줄표 é" in found["hits"][0]["text"]


def test_no_file_is_opened_in_the_encoding_of_the_place() -> None:
    strict: dict[str, Any] = {
        "PYTHONWARNDEFAULTENCODING": "1",
        "PYTHONWARNINGS": "error::EncodingWarning",
        "PYTHONUTF8": "0",
        "LC_ALL": "C",
    }
    claude(user("1", "큐는 Kafka 대신 Postgres로 하자"), assistant("2", "네, 구현했습니다.", "1"))
    wwt("archive", "--finished", cold=True, **strict)
    accept_all()
    assert "Postgres" in wwt("recall", "--cwd", "/srv/shop", cold=True, **strict).stdout


@pytest.mark.parametrize("locale", [{"PYTHONIOENCODING": "cp949"}, {"PYTHONUTF8": "0", "LC_ALL": "C"}], ids=str)
def test_a_hook_reads_utf8_under_every_locale(locale: dict[str, Any], wwt_home: Path) -> None:
    payload = '{"session_id":"S1","transcript_path":"/큐/처리 \\"안녕\\".jsonl","cwd":"C:\\\\작업"}'.encode()
    done = hook("session-end", payload, **locale)
    assert (done.returncode, done.stdout) == (0, b"")
    dropped = [path.read_text(encoding="utf-8") for path in (wwt_home / "inbox").iterdir() if path.is_file()]
    assert [json.loads(text)["transcript"] for text in dropped] == ['/큐/처리 "안녕".jsonl']


# --- hooks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [b"not a database", b"", b"SQLite format 3\x00" + b"\x00" * 500, None])
@pytest.mark.parametrize("event", ["session-start", "session-end"])
def test_a_hook_never_fails_its_agent(event: str, store: bytes | None, wwt_home: Path) -> None:
    if store is not None:
        (wwt_home / "archive.db").write_bytes(store)
    payload = {"session_id": "S1", "source": "startup", "cwd": "/no/such/dir", "transcript_path": "/no/such.jsonl"}
    done = hook(event, payload)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("payload", [b"", b"[]", b"\xff\xfe{", b'{"session_id":', '{"prompt":"안녕"}'.encode("cp949")])
def test_a_hook_that_gets_nonsense_says_why_in_its_log(payload: bytes, wwt_home: Path) -> None:
    done = hook("session-end", payload)
    assert (done.returncode, done.stdout) == (0, b"")
    log = wwt_home / "log" / "hook.log"
    dropped = wwt_home / "inbox"
    assert log.exists() or any(dropped.iterdir())
    assert not log.exists() or re.match(
        r"\d{4}-\d\d-\d\dT\S+ claude-code session-end \S", log.read_text(encoding="utf-8")
    )


def test_a_hook_inside_our_own_process_leaves_at_once(wwt_home: Path) -> None:
    done = hook("session-end", {"session_id": "S2", "reason": "other", "cwd": "/srv/shop"}, WWT_HOOK_ACTIVE="1")
    assert (done.returncode, done.stdout) == (0, b"")
    assert not (wwt_home / "inbox").exists()


@pytest.mark.parametrize("active", [True, False])
def test_a_stop_hook_never_asks_the_agent_to_go_on(active: bool) -> None:
    done = hook("stop", {"session_id": "S1", "stop_hook_active": active, "cwd": "/srv/shop"})
    assert (done.returncode, done.stdout) == (0, b"")


# --- recall ----------------------------------------------------------------------------------------------------------


def test_recall_stays_under_the_agents_limit_and_says_what_it_left_out() -> None:
    claude(user("1", "시작"), assistant("2", "네.", "1"))
    run()
    home = Home.open()
    entries = [
        {"type": "decision", "summary": f"결정 {n}: " + "가나다라" * 40, "detail": f"{n}번 이유 " + "마바사아 " * 60}
        for n in range(50)
    ]
    staged = {
        "schema": 1,
        "agent": "claude-code",
        "source_session": "S1",
        "project": "/srv/shop",
        "source_status": "ended",
        "archived_at": "2026-03-04T05:06:07Z",
        "entries": entries,
    }
    (home.root / "staging" / "by-hand.json").write_text(json.dumps(staged, ensure_ascii=False), encoding="utf-8")
    assert accept_all().accepted == 50
    block = recalled(budget=10_000)
    assert len(block.text) <= 8_000
    assert 0 < block.shown < block.of == 50
    assert str(block.shown) in block.text.splitlines()[-2]
    assert "wwt search" in block.text
    assert all(len(line) > 300 for line in block.text.splitlines() if line.startswith("- ["))


def test_one_projects_knowledge_is_never_shown_in_another() -> None:
    for name, cwd in (("SA", "/srv/회사/app"), ("SB", "/srv/집안/app")):
        rows = [
            user(name, f"{name} 큐는 Kafka 대신 Postgres로 하자", cwd=cwd, sessionId=name),
            assistant(f"{name}a", "네, 구현했습니다.", name, cwd=cwd, sessionId=name),
        ]
        claude(*rows, session=name, folder="-srv-----app")
    run()
    accept_all()
    assert "SA 큐는" in recalled("/srv/회사/app").text
    assert "SA 큐는" not in recalled("/srv/집안/app").text


# --- what a run says -------------------------------------------------------------------------------------------------


def test_a_run_tells_what_it_could_not_read_and_succeeds() -> None:
    path = claude(user("1", "월요일"), b'{"type":"user", torn', user("2", "금요일", "1", 5))
    done = wwt("archive", "--finished")
    assert f"{path}:2" in done.stderr
    assert "2" in done.stdout


def test_a_folder_of_nothing_but_strangers_fails_and_names_them(tmp_path: Path) -> None:
    path = tmp_path / "generic.jsonl"
    path.write_text('{"role":"user","content":"api"}\n', encoding="utf-8")
    assert "generic.jsonl" in wwt("archive", str(path), code=1).stderr


@pytest.mark.parametrize(("settings", "days"), [(None, 30), ({"theme": "dark"}, 30), ({"cleanupPeriodDays": 7}, 7)])
def test_a_run_tells_how_long_the_agent_keeps_its_files_and_changes_nothing(
    settings: dict[str, object] | None, days: int
) -> None:
    path = claude(user("1", "오래된 질문"))
    os.utime(path, (path.stat().st_mtime - 3 * 86_400 - 60,) * 2)
    file = Path.home() / ".claude" / "settings.json"
    if settings is not None:
        file.write_text(json.dumps(settings), encoding="utf-8")
    before = file.read_bytes() if file.exists() else None
    assert run().days_left == days - 4
    assert (file.read_bytes() if file.exists() else None) == before


def test_openclaws_deleted_session_is_listed_without_its_words() -> None:
    openclaw(header(), entry("e1", "user", "지워질 말 dl31"), name="S1.jsonl.deleted.2026-03-04T06-00-00.000Z")
    run()
    listed = wwt("sessions", "--all", "--json").stdout
    assert json.loads(listed)["sessions"][0]["status"] == "deleted"
    assert "dl31" not in listed + wwt("show", "S1").stdout + wwt("search", "--all", "--json", "dl31").stdout

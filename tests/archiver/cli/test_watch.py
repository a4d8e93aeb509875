from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CODE = "from archiver.cli.main import run; run()"


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is sent as a signal")
def test_watch_archives_what_is_there_and_ends_calmly_on_ctrl_c(tmp_path: Path) -> None:
    said = {"type": "user", "uuid": "0f4b2c3d-4e5f-4061-8071-2a3b4c5d6e7f", "sessionId": "S1", "cwd": "/w"}
    row = {**said, "timestamp": "2026-01-02T03:04:05.000Z", "message": {"role": "user", "content": "포트는 8080"}}
    transcript = tmp_path / "S1.jsonl"
    transcript.write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    env = {
        **os.environ,
        "WWT_HOME": str(tmp_path / "wwt"),
        "WWT_LANG": "en",
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }
    command = [sys.executable, "-c", CODE, "archive", str(transcript), "--watch", "--no-distil"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "New turns: 1" in first
    assert "Traceback" not in err

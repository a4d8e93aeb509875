"""Every test has a throw-away WWT_HOME and user home; nothing of this machine's real agents is ever read."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

AGENT_VARIABLES = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "OPENCLAW_STATE_DIR",
    "HERMES_HOME",
    "PI_CODING_AGENT_DIR",
    "PI_CODING_AGENT_SESSION_DIR",
    "WWT_HOOK_ACTIVE",
)

# A shell starts its background jobs deaf to Ctrl-C, and so would every process of the tests be that Ctrl-C is sent to.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def wwt_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("WWT_HOME", str(tmp_path / "wwt"))
    monkeypatch.setenv("WWT_LANG", "en")
    for name in AGENT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "wwt"

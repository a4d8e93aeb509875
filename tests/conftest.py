"""Every test has a throw-away WWT_HOME and user home; nothing of this machine's real agents is ever read."""

from __future__ import annotations

import shutil
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


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with an empty database, the unpacked model and the compiled rules."""
    from archiver.config import load
    from archiver.home import Home

    root = tmp_path_factory.mktemp("template") / "wwt"
    home = Home(root, load(root / "config.toml"))
    assert home.reader.counts()["sessions"] == 0
    assert home.rules
    assert home.embedder is not None
    home.embedder.query("warm")
    home.database.checkpoint()
    return root


def warmed(home: Path, template: Path) -> None:
    """Give a new home the template's database, and links to what takes seconds to make."""
    (home / "index").mkdir(parents=True, mode=0o700)
    shutil.copy(template / "archive.db", home / "archive.db")
    for name in ("embedder", "rules"):
        (home / "index" / name).symlink_to(template / "index" / name, target_is_directory=True)

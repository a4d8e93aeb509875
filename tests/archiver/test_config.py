from __future__ import annotations

from pathlib import Path

import pytest

from archiver import config
from store.errors import WwtError
from store.messages import text


def refusal(path: Path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(WwtError) as caught:
        config.load(path)
    return text(caught.value.key, **caught.value.fields)


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        ("# mine\n[archive\n", 2, "Expected ']'"),
        ("[recall]\nbudget = \n", 2, "Invalid value"),
        ("[recall]\nbudget = 'much'\n", 2, "a whole number"),
        ("[recall]\n\nbudget = -1\n", 3, "a whole number from 0"),
        ("recall.budget = 99999999999\n", 1, "a whole number from 0"),
        ("[archive]\nkeep_deleted = 1\n", 2, "true or false"),
        ("[embedding]\nmodel = ' '\n", 2, "text on one line"),
        ("[archive]\nidle_minutes = 3\nidle = 4\n", 3, "archive.idle_minutes"),
        ("[recall]\nbudget = 5\n[zork]\nx = 1\n", 4, "zork.x"),
        ("[recal]\nbudget = 5\n", 2, "did you mean 'recall.budget'?"),
        ("[archive]\nidle_minute = 5\n", 2, "did you mean 'archive.idle_minutes'?"),
        ("\n[zork]\n", 2, "zork"),
        ("archive = 3\n", 1, "a section"),
        (b"[recall]\n# \xff\n", 2, "utf-8"),
        ('[recall]\nbudget = "' + "x" * 5000 + "\n", 2, "cannot be read"),
        ("[recall]\nbudget = " + "9" * 5000 + "\n", 2, "cannot be read"),
        ("x = " + "[" * 5000, 1, "cannot be read"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, content: str | bytes, line: int, says: str) -> None:
    path = tmp_path / "config.toml"
    message = refusal(path, content)
    assert message.startswith(f"{path}:{line}: ")
    assert says in message


@pytest.mark.parametrize("content", ["", "[archive]\n", "\ufeff[archive]\r\nidle_minutes = 5\r\n", "recall.budget = 0"])
def test_sound_files_are_read(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(content.encode())
    assert config.load(path).embedding.model == config.DEFAULT_MODEL


def test_every_setting_can_be_named(tmp_path: Path) -> None:
    assert config.known()["archive.idle_minutes"] == config.load(tmp_path / "none.toml").archive.idle_minutes
    assert config.known().keys() >= {"recall.budget", "embedding.model", "staging.expire_days"}

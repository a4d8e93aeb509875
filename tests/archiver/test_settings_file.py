from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest

from archiver import config
from archiver.settings_file import set_value, unset
from store.errors import WwtError
from tests.archiver.processes import Server

MINE = """# my settings

[recall]
budget = 1_000   # enough for me

[archive] # how to archive
# quiet for an hour
idle_minutes=60
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "config.toml"


def written(path: Path, content: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content.encode())
    return path


def test_the_first_setting_makes_the_file_and_its_folder_for_their_owner_alone(path: Path) -> None:
    set_value(path, "recall.budget", 2000)
    assert path.read_text() == "[recall]\nbudget = 2000\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_change_leaves_comments_order_and_layout_alone(path: Path) -> None:
    written(path, MINE)
    set_value(path, "recall.budget", 2000)
    assert path.read_text() == MINE.replace("1_000", "2000")
    set_value(path, "archive.keep_deleted", True)
    assert path.read_text() == MINE.replace("1_000", "2000") + "keep_deleted = true\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("archive.idle_minutes = 3\n# c\n", "archive.idle_minutes = 45\n# c\n"),
        ("archive = {idle_minutes = 3} # c\n", "archive = {idle_minutes = 45} # c\n"),
        ("archive.keep_deleted = true\n", "archive.keep_deleted = true\narchive.idle_minutes = 45\n"),
        ('["archive"]\n"idle_minutes" = 0x10\n', '["archive"]\n"idle_minutes" = 45\n'),
        ("[recall]\nbudget = 3", "[recall]\nbudget = 3\n\n[archive]\nidle_minutes = 45\n"),
        ("[archive]\r\nidle_minutes = 3\r\n", "[archive]\r\nidle_minutes = 45\r\n"),
        ("[recall]\r\nbudget = 3\r\n", "[recall]\r\nbudget = 3\r\n\r\n[archive]\r\nidle_minutes = 45\r\n"),
        ("\ufeff[archive]\nidle_minutes = 3\n", "\ufeff[archive]\nidle_minutes = 45\n"),
        ("[archive]\n# none yet\n\n[recall]\n", "[archive]\n# none yet\nidle_minutes = 45\n\n[recall]\n"),
        ('[archive]\nidle_minutes = "x"\n', "[archive]\nidle_minutes = 45\n"),
    ],
)
def test_a_setting_is_changed_in_the_form_it_is_written_in(path: Path, before: str, after: str) -> None:
    set_value(written(path, before), "archive.idle_minutes", 45)
    assert path.read_bytes().decode() == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (MINE, MINE.replace("idle_minutes=60\n", "")),
        ("archive.idle_minutes = 3\n# c\nrecall.budget = 3\n", "# c\nrecall.budget = 3\n"),
        ("archive = {idle_minutes = 3, keep_deleted = true}\n", "archive = { keep_deleted = true}\n"),
    ],
)
def test_a_setting_taken_out_takes_nothing_else_along(path: Path, before: str, after: str) -> None:
    assert unset(written(path, before), "archive.idle_minutes")
    assert path.read_text() == after


def test_taking_out_what_is_not_set_changes_and_makes_nothing(path: Path) -> None:
    assert not unset(path, "recall.budget")
    assert not path.parent.exists()


def test_a_wrong_setting_can_be_taken_out_beside_another(path: Path) -> None:
    written(path, "[recall]\nbudget = 'much'\n\n[archive]\nidle = 3\n")
    assert unset(path, "recall.budget")
    assert path.read_text() == "[recall]\n\n[archive]\nidle = 3\n"
    assert unset(path, "archive.idle")
    assert config.load(path) == config.Config()


@pytest.mark.parametrize(
    ("content", "key"), [("zork = 1\n", "zork"), ("[zork]\nx = 1\n", "zork.x"), ("[recall]\nx = 1\n", "recall.x")]
)
def test_a_setting_that_wwt_does_not_know_can_be_taken_out(path: Path, content: str, key: str) -> None:
    assert unset(written(path, content), key)
    assert config.load(path) == config.Config()


@pytest.mark.parametrize(
    ("content", "key", "value"),
    [
        ("[archive\n", "recall.budget", 5),
        ("[recall]\nzork = 1\n", "recall.budget", 5),
        ("", "recall.budget", -1),
        ("", "recall.budget", "much"),
        ("", "recall.budget", True),
        ("", "recall.budget", [5]),
        ("", "recall.zork", 5),
        ("", "zork", 5),
        ("", "embedding.model", ""),
        ("", "embedding.model", "a\nb"),
        ("", "embedding.model", "\udc80"),
        ("recall = 5\n", "recall.budget", 5),
        ("[[recall]]\nbudget = 5\n", "recall.budget", 5),
    ],
)
def test_what_is_broken_or_would_not_be_sound_is_refused_and_nothing_changes(
    path: Path, content: str, key: str, value: object
) -> None:
    written(path, content)
    with pytest.raises(WwtError):
        set_value(path, key, value)
    assert path.read_text() == content
    assert [each.name for each in path.parent.iterdir() if each.suffix == ".tmp"] == []


def test_a_file_that_is_a_link_stays_one(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.toml"
    target.write_text(MINE)
    path.parent.mkdir()
    path.symlink_to(target)
    set_value(path, "recall.budget", 2000)
    assert path.is_symlink()
    assert "2000" in target.read_text()


def test_settings_written_at_once_are_all_kept(processes: Server, tmp_path: Path) -> None:
    home = tmp_path / "home"
    values = {"archive.idle_minutes": 7, "recall.budget": 8, "staging.expire_days": 9, "embedding.model": "none"}
    for _ in range(3):
        (home / "config.toml").unlink(missing_ok=True)
        running = [processes.start("config", "set", key, str(value), home=home) for key, value in values.items()]
        assert [each.wait().code for each in running] == [0] * len(values)
        assert config.settings_in(tomllib.loads((home / "config.toml").read_text())) == values


def test_killed_at_any_instant_the_file_is_the_old_or_the_new_one(processes: Server, tmp_path: Path) -> None:
    path = written(tmp_path / "home" / "config.toml", MINE)
    steps = processes.steps("config", "set", "recall.budget", "2000", home=path.parent)
    assert steps >= 3
    for step in range(1, steps + 1):
        path.write_text(MINE)
        assert processes.run("config", "set", "recall.budget", "2000", home=path.parent, kill_at=step).code < 0
        assert path.read_text() in (MINE, MINE.replace("1_000", "2000"))
        assert processes.run("config", "set", "recall.budget", "2000", home=path.parent).code == 0
        assert path.read_text() == MINE.replace("1_000", "2000")


def test_a_disk_that_takes_no_more_leaves_the_file_as_it_was(processes: Server, tmp_path: Path) -> None:
    path = written(tmp_path / "home" / "config.toml", MINE + "# " + "x" * 2000)
    before = path.read_text()
    done = processes.run("config", "set", "recall.budget", "2000", home=path.parent, file_limit=1000)
    assert (done.code, done.out) == (1, "")
    assert path.read_text() == before

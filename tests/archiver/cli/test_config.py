from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.archiver.processes import Done, Server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def run(processes: Server, home: Path, *arguments: str, **environment: str) -> Done:
    return processes.run("config", *arguments, home=home, **environment)


def test_path_is_printed_whether_or_not_the_file_is_there(processes: Server, home: Path) -> None:
    assert run(processes, home, "path").out == f"{home / 'config.toml'}\n"
    assert json.loads(run(processes, home, "path", "--json").out) == {
        "path": str(home / "config.toml"),
        "exists": False,
    }
    assert not home.exists()


def test_get_shows_what_is_in_force_and_what_the_file_sets(processes: Server, home: Path) -> None:
    run(processes, home, "set", "recall.budget", "2000")
    lines = run(processes, home, "get").out.splitlines()
    assert "recall.budget = 2000  # set in the file" in lines
    assert 'embedding.model = "use-multilingual"' in lines
    assert run(processes, home, "get", "recall").out.splitlines() == ["recall.budget = 2000  # set in the file"]
    assert run(processes, home, "get", "recall.budget").out == "2000\n"
    assert run(processes, home, "get", "archive.keep_deleted").out == "false\n"
    assert run(processes, home, "get", "embedding.model").out == "use-multilingual\n"


def test_get_as_json_keeps_its_contract(processes: Server, home: Path) -> None:
    run(processes, home, "set", "recall.budget", "2000")
    one = json.loads(run(processes, home, "get", "recall.budget", "--json").out)
    assert one == {"key": "recall.budget", "value": 2000, "default": 1500, "in_file": True}
    every = json.loads(run(processes, home, "get", "--json").out)
    assert every["path"] == str(home / "config.toml")
    assert one in every["settings"]


def test_a_colour_never_reaches_a_pipe(processes: Server, home: Path) -> None:
    run(processes, home, "set", "recall.budget", "2000")
    assert "\x1b" not in run(processes, home, "get").out


@pytest.mark.parametrize(
    ("key", "typed", "value"),
    [
        ("archive.keep_deleted", "true", True),
        ("archive.idle_minutes", "1_000", 1000),
        ("embedding.model", "none", "none"),
        ("embedding.model", '"none"', "none"),
        ("embedding.model", "7", "7"),
        ("embedding.model", "/models/한글 이름", "/models/한글 이름"),
        ("embedding.model", r"C:\models\new", r"C:\models\new"),
        ("embedding.model", 'say "hi"', 'say "hi"'),
        ("embedding.model", "a # b", "a # b"),
    ],
)
def test_what_is_typed_is_what_is_set(processes: Server, home: Path, key: str, typed: str, value: object) -> None:
    done = run(processes, home, "set", key, typed)
    assert done.code == 0, done.err
    assert json.loads(run(processes, home, "get", key, "--json").out)["value"] == value


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("set", "recall.budgt", "5"), "did you mean 'recall.budget'"),
        (("set", "budget", "5"), "did you mean 'recall.budget'"),
        (("set", "zork", "5"), "archive.idle_minutes, archive.keep_deleted"),
        (("get", "zork"), "unknown setting 'zork'"),
        (("set", "recall.budget", "much"), "a whole number from 0"),
        (("set", "recall.budget", "2.5"), "a whole number from 0"),
        (("set", "recall.budget", "--", "-5"), "a whole number from 0"),
        (("set", "recall.budget", "-5"), "a whole number from 0"),
        (("set", "recall.budget", "5\n[archive]\nkeep_deleted = true"), "a whole number from 0"),
        (("set", "archive.keep_deleted", "yes"), "true or false, not \"yes\""),
        (("set", "embedding.model", ""), "text on one line"),
        (("set", "recall.budget"), "--unset"),
        (("set", "recall.budget", "5", "--unset"), "--unset"),
        (("set", "zork", "--unset"), "unknown setting 'zork'"),
        (("set", "recall.budget", "--bogus"), "--bogus"),
        (("frobnicate",), "frobnicate"),
    ],
)  # fmt: skip
def test_a_slip_is_wrong_usage_in_one_line_and_writes_nothing(
    processes: Server, home: Path, arguments: tuple[str, ...], says: str
) -> None:
    done = run(processes, home, *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert says in done.err
    assert not (home / "config.toml").exists()


def test_unset_brings_the_default_back_and_says_when_nothing_was_set(processes: Server, home: Path) -> None:
    run(processes, home, "set", "recall.budget", "2000")
    assert run(processes, home, "set", "recall.budget", "--unset").out == "recall.budget = 1500 (the default again)\n"
    again = run(processes, home, "set", "recall.budget", "--unset")
    assert (again.code, "nothing was changed" in again.out) == (0, True)


@pytest.mark.parametrize("arguments", [("get",), ("set", "recall.budget", "5"), ("set", "recall.budget", "--unset")])
@pytest.mark.parametrize(
    ("content", "line"),
    [("[recall]\nbudget = 3\n[archive\n", 3), ("[recall]\nbudget = 3\n\n[archive]\nidle = 3\n", 5)],
)
def test_a_broken_file_is_refused_with_its_line_and_left_alone(
    processes: Server, home: Path, content: str, line: int, arguments: tuple[str, ...]
) -> None:
    home.mkdir()
    (home / "config.toml").write_text(content)
    done = run(processes, home, *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"{home / 'config.toml'}:{line}: ")
    assert (home / "config.toml").read_text() == content
    assert run(processes, home, "path").code == 0


def test_a_setting_that_breaks_the_file_can_be_mended_by_the_command(processes: Server, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("[recall]\nbudget = 'much'\nzork = 1\n")
    assert run(processes, home, "set", "recall.budget", "5").code == 2  # the other fault would still be there
    assert run(processes, home, "set", "recall.zork", "--unset").code == 0
    assert run(processes, home, "set", "recall.budget", "5").code == 0
    assert run(processes, home, "get", "recall.budget").out == "5\n"


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_group_by_itself_and_each_command_have_help_with_two_examples(
    processes: Server, home: Path, language: str
) -> None:
    alone = run(processes, home, WWT_LANG=language)
    assert (alone.code, alone.err) == (0, "")
    for command in ("get", "set", "path"):
        assert f"  {command} " in alone.out
        assert run(processes, home, command, "--help", WWT_LANG=language).out.count("wwt config") >= 3

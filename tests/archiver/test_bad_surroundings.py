"""What a machine can do to wwt: one clear line that says where and what to do, the right exit code, and nothing else lost."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.archiver.processes import Done, Server
from tests.archiver.trees import QUERIES, copied, plant, state
from tests.factories import Claude

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked from one that is loaded")

COMMANDS = (
    ("archive",),
    ("status",),
    ("search", "SQLite", "--all"),
    ("sessions", "--all"),
    ("review", "--list", "--all"),
    ("recall",),
    ("entries", "--all"),
)


@pytest.fixture(scope="module")
def small(processes: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Six sessions, and the home they were archived in."""
    folder = tmp_path_factory.mktemp("small")
    plant(folder / "in", sessions=6)
    processes.run("archive", str(folder / "in"), home=folder / "wwt")
    processes.run(
        "review", "--accept-all", "--all", "--yes", "--type", "decision", "--session", "00000000", home=folder / "wwt"
    )
    return folder / "in", folder / "wwt"


@pytest.fixture(scope="module")
def undisturbed(processes: Server, small: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same sessions, archived without trouble and not reviewed."""
    home = tmp_path_factory.mktemp("undisturbed") / "wwt"
    processes.run("archive", str(small[0]), home=home)
    return home


@pytest.fixture
def home(small: tuple[Path, Path], tmp_path: Path) -> Path:
    return copied(small[1], tmp_path / "wwt")


def one_line(done: Done, code: int, *says: str) -> None:
    """The command ended with this code and one line on standard error that says this."""
    assert done.code == code, done
    assert done.err.count("\n") == 1, done.err
    for part in says:
        assert part in done.err, done.err


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A small file system of its own; skips the test where nobody may mount one."""
    folder.mkdir()
    if (
        not sys.platform.startswith("linux")
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("mounting a small file system is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


# --- disks ---


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_home_that_cannot_be_written_is_one_line(
    processes: Server, small: tuple[Path, Path], tmp_path: Path, command: tuple[str, ...]
) -> None:
    with mounted(tmp_path / "disk", "size=64m") as disk:
        home = shutil.copytree(small[1], disk / "wwt", ignore=shutil.ignore_patterns("*.arrays"))
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        arguments = (*command, str(plant(tmp_path / "new", sessions=3))) if command == ("archive",) else command
        done = processes.run(*arguments, home=home)
        if done.code == 0:  # reading may well work
            assert command != ("archive",)
            assert done.err == ""
        else:
            one_line(done, 1, str(home), "WWT_HOME")


def test_a_full_disk_is_one_line_and_the_next_run_completes(
    processes: Server, small: tuple[Path, Path], undisturbed: Path, tmp_path: Path
) -> None:
    with mounted(tmp_path / "disk", "size=1m") as disk:
        home = disk / "wwt"
        for size in ("1m", "2m", "4m"):
            subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=True)
            done = processes.run("archive", str(small[0]), home=home)
            if done.code:
                one_line(done, 1, str(disk), "space")
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        done = processes.run("archive", str(small[0]), home=home)
        assert (done.code, done.err) == (0, "")
        assert state(home) == state(undisturbed)


@pytest.mark.parametrize("limit", [4_096, 200_000])
def test_files_that_may_not_grow_are_one_line_and_the_next_run_completes(
    processes: Server, small: tuple[Path, Path], undisturbed: Path, tmp_path: Path, limit: int
) -> None:
    home = tmp_path / "wwt"
    done = processes.run("archive", str(small[0]), home=home, file_limit=limit)
    one_line(done, 1, str(home))
    assert processes.run("archive", str(small[0]), home=home).code == 0
    assert state(home) == state(undisturbed)


@pytest.mark.parametrize("name", ["staging", "vault", "index", "inbox", "rules", "log", "archive.db"])
def test_a_file_where_a_folder_belongs_is_named(processes: Server, tmp_path: Path, name: str) -> None:
    home = tmp_path / "wwt"
    home.mkdir()
    if name == "archive.db":
        (home / name).mkdir()
    else:
        (home / name).touch()
    done = processes.run("status", home=home)
    one_line(done, 3 if name == "archive.db" else 1, str(home / name))


# --- transcripts ---


def misfits(folder: Path) -> dict[str, Path]:
    """Things that are named like a transcript and are none. A pipe must never be waited for."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {name: folder / f"{name}.jsonl" for name in ("folder", "dangling", "pipe", "socket", "loop", "device")}
    made["folder"].mkdir()
    made["dangling"].symlink_to(folder / "nowhere.jsonl")
    os.mkfifo(made["pipe"])
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        os.chdir(folder)  # the name of a socket must be short
        one.bind("socket.jsonl")
        os.chdir(here)
    made["loop"].symlink_to(made["loop"])
    made["device"].symlink_to("/dev/zero")
    return made


def test_what_is_no_file_is_passed_over_in_a_folder_and_costs_nothing(processes: Server, tmp_path: Path) -> None:
    misfits(tmp_path / "in")
    plant(tmp_path / "in", sessions=3)
    done = processes.run("archive", str(tmp_path / "in"), "--json", home=tmp_path / "wwt")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["turns_added"] > 0


@pytest.mark.parametrize("name", ["folder", "dangling", "pipe", "socket", "loop", "device"])
def test_what_is_no_file_is_one_line_when_it_is_named(processes: Server, tmp_path: Path, name: str) -> None:
    path = misfits(tmp_path / "in")[name]
    one_line(processes.run("archive", str(path), home=tmp_path / "wwt"), 1, str(path))


def test_what_is_no_file_in_an_agents_own_folder_is_passed_over(processes: Server, tmp_path: Path) -> None:
    misfits(tmp_path / "claude" / "projects" / "-home-u-shop")
    misfits(tmp_path / "openclaw" / "agents" / "main" / "sessions")
    plant(tmp_path / "claude" / "projects" / "-home-u-shop", sessions=3)
    roots = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude"), "OPENCLAW_STATE_DIR": str(tmp_path / "openclaw")}
    done = processes.run("archive", "--json", home=tmp_path / "wwt", **roots)
    assert done.code == 0, done
    assert json.loads(done.out)["turns_added"] > 0


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [("notes.txt", b"hello", "format"), ("x.jsonl", b"", "empty"), ("y.jsonl", b'{"a": 1}\n', "format"), ("z.jsonl.zst", b"none", "damaged")],
)  # fmt: skip
def test_a_file_that_is_no_transcript_is_one_line(
    processes: Server, tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(content)
    one_line(processes.run("archive", str(tmp_path / name), home=tmp_path / "wwt"), 1, str(tmp_path / name), says)


def test_folders_without_transcripts_are_one_line(processes: Server, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.md").write_text("# notes")
    for name in ("empty", "other"):
        done = processes.run("archive", str(tmp_path / name), home=tmp_path / "wwt")
        one_line(done, 1, str(tmp_path / name), "no transcripts")


def test_a_deleted_session_that_cannot_be_read_costs_nothing_else(
    processes: Server, home: Path, tmp_path: Path
) -> None:
    plant(tmp_path / "new", sessions=3)
    broken = tmp_path / "new" / "abababab-0000-4000-8000-000000000001.jsonl.deleted.2026-03-03T05-00-00.000Z"
    broken.write_bytes(b'{"type":"session","version":3,"id":"abababab-0000-4000-8000-000000000001"}\n{"type": "mess')
    done = processes.run("archive", str(tmp_path / "new"), "--json", home=home)
    assert done.code == 0
    report = json.loads(done.out)
    assert any(bad["file"] == str(broken) and bad["line"] == 2 for bad in report["unreadable"])


# --- settings and rules ---


def test_settings_that_cannot_be_read_are_one_line(processes: Server, home: Path) -> None:
    (home / "config.toml").write_text("[archive\nidle_minutes = 1\n")
    for command in COMMANDS:
        one_line(processes.run(*command, home=home), 2, str(home / "config.toml"), "line 1")


RULES = """schema: 1
secrets:
  - id: mine
    kind: mine
    literals: [un]
    pattern: '[unclosed'
    examples: {match: ['un'], miss: ['on']}
  - id: house
    kind: house-key
    literals: [hk-]
    pattern: 'hk-[0-9]{6}'
    examples: {match: ['hk-123456'], miss: ['hk-12']}
"""


@pytest.mark.parametrize("command", [("archive",), ("status",)], ids=["archive", "status"])
def test_a_broken_rule_is_named_once_with_its_line_and_the_others_run(
    processes: Server, home: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (home / "rules" / "mine.yaml").write_text(RULES, encoding="utf-8")
    one_line(processes.run(*command, home=home), 0, f"{home / 'rules' / 'mine.yaml'}:6", "mine")
    made = Claude("12121212-0000-4000-8000-000000000001")
    made.say("열쇠는 hk-" + "123456 입니다")
    made.write(tmp_path / "new")
    processes.run("archive", str(tmp_path / "new"), home=home)
    assert "[secret:house-key]" in processes.run("show", "12121212", home=home).out


def test_a_rule_file_that_is_no_yaml_costs_nothing_else(processes: Server, home: Path) -> None:
    (home / "rules" / "mine.yaml").write_bytes(b"schema: 1\nsecrets: [\n")
    (home / "rules" / "folder.yaml").mkdir()
    one_line(processes.run("archive", home=home), 0, str(home / "rules" / "mine.yaml"))


# --- what wwt keeps ---


def test_a_broken_staging_document_is_named_and_left_alone(
    processes: Server, small: tuple[Path, Path], home: Path
) -> None:
    path = next((home / "staging").glob("*.json"))
    path.write_text('{"schema": 1,\n "entries": [', encoding="utf-8")
    for command in (("review", "--list", "--all"), ("status",)):
        one_line(processes.run(*command, home=home), 0, str(path))
    assert processes.run("archive", str(small[0]), "--finished", home=home).code == 0
    assert path.read_text(encoding="utf-8").endswith("[")


def index_files(home: Path) -> list[Path]:
    folders = (home / "index" / "words", home / "index" / "vectors")
    return sorted(path.relative_to(home) for folder in folders for path in folder.rglob("*") if path.is_file())


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scramble(path: Path) -> None:
    path.write_bytes(b"\x00\xff garbage" * 50)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for at in range(0, len(content), 97):
        content[at] ^= 0x5A
    path.write_bytes(content)


def replace(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES = (cut, scramble, flip, replace, Path.unlink)


@pytest.mark.parametrize("first", range(len(DAMAGES)))
def test_no_damage_to_an_index_file_changes_an_answer(
    processes: Server, small: tuple[Path, Path], tmp_path: Path, first: int
) -> None:
    damage = DAMAGES[first]
    for number, name in enumerate(index_files(small[1])[first :: len(DAMAGES)]):
        home = copied(small[1], tmp_path / f"wwt{number}")
        damage(home / name)
        for command in (("search", QUERIES[0], "--all", "--json"), ("archive", str(small[0]))):
            done = processes.run(*command, home=home)
            assert done.code == 0, (name, done)
            assert damage is flip or done.err.count("\n") <= 1, (name, done)  # Tantivy prints its own panics
        after, before = state(home), state(small[1])
        assert (after["answers"], after["index"]) == (before["answers"], before["index"]), name


def overwritten(path: Path) -> None:
    path.write_bytes(b"damaged" * 1000)


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20_000])


def holed(path: Path) -> None:
    """Every page but the first is garbage: it opens, and fails at the first look."""
    path.write_bytes(path.read_bytes()[:4096] + b"\x5a" * (path.stat().st_size - 4096))


@pytest.mark.parametrize("damage", [overwritten, torn, holed], ids=lambda damage: damage.__name__)
def test_a_damaged_archive_is_named_and_left_alone(processes: Server, home: Path, damage: object) -> None:
    path = home / "archive.db"
    for beside in ("archive.db-wal", "archive.db-shm"):
        (home / beside).unlink(missing_ok=True)
    assert callable(damage)
    damage(path)
    before = path.read_bytes()
    for command in COMMANDS:
        one_line(processes.run(*command, home=home), 3, str(path))
    assert path.read_bytes() == before


def test_an_archive_of_a_newer_wwt_is_refused_untouched(processes: Server, home: Path) -> None:
    with closing(sqlite3.connect(home / "archive.db")) as db, db:
        db.execute("UPDATE alembic_version SET version_num = '9999'")
    before = (home / "archive.db").read_bytes()
    for command in COMMANDS:
        one_line(processes.run(*command, home=home), 3, str(home / "archive.db"), "9999")
    assert (home / "archive.db").read_bytes() == before


def test_what_is_no_event_in_the_inbox_is_put_aside(processes: Server, home: Path) -> None:
    (home / "inbox" / "1.json").write_bytes(b"\xff\x00")
    (home / "inbox" / "2.json").mkdir()
    (home / "inbox" / "3.json").write_text("[" * 100_000)
    assert processes.run("archive", home=home).code == 0
    assert sorted(path.name for path in (home / "inbox" / "quarantine").iterdir()) == ["1.json", "2.json", "3.json"]


def test_a_note_that_is_a_dangling_link_costs_nothing(processes: Server, home: Path) -> None:
    (home / "vault" / "general").mkdir(parents=True, exist_ok=True)
    (home / "vault" / "general" / "x.md").symlink_to(home / "nowhere.md")
    for command in (("archive",), ("review", "--accept-all", "--all", "--yes")):
        assert processes.run(*command, home=home).code == 0


@pytest.mark.parametrize("trouble", ["damaged", "newer", "settings", "folder", "index"])
def test_the_hook_never_says_a_word_about_trouble(processes: Server, home: Path, trouble: str) -> None:
    match trouble:
        case "damaged":
            holed(home / "archive.db")
        case "newer":
            with closing(sqlite3.connect(home / "archive.db")) as db, db:
                db.execute("UPDATE alembic_version SET version_num = '9999'")
        case "settings":
            (home / "config.toml").write_text("[")
        case "folder":
            shutil.rmtree(home)
            home.touch()
        case _:
            shutil.rmtree(home / "index")
    for event in ("session-start", "session-end"):
        payload = json.dumps({"session_id": "S", "cwd": "/nowhere", "transcript_path": "/t.jsonl"})
        done = processes.run("claude-code", event, program="wwt-hook", home=home, text=payload)
        assert (done.code, done.out) == (0, "")

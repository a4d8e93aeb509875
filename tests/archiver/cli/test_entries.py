"""The upkeep of knowledge as a person or a script does it: real processes, some at a real terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from archiver.render import columns
from store.reader import Reader
from tests.archiver.processes import Done, Server
from tests.factories import Claude

ROOT = Path(__file__).parents[3]
CHOICE = "큐는 Redis 대신 SQLite로 하자"
OTHER = "로그는 파일 말고 표준 출력에 쓰자"

Run = Callable[..., Done]


@dataclass(frozen=True)
class Prepared:
    """Homes that every test starts from a copy of: what waits for review, and the same accepted. `inbox` holds the transcripts."""

    inbox: Path
    waiting: Path
    accepted: Path


@pytest.fixture(scope="module")
def prepared(processes: Server, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    root = tmp_path_factory.mktemp("prepared")
    made = Prepared(root / "in", root / "waiting", root / "accepted")
    for number, choice in enumerate((CHOICE, OTHER), 1):
        session = Claude(f"{number}aaaaaaa-0000-4000-8000-000000000001", cwd="/home/u/shop")
        session.say(choice)
        session.answer("네, 그렇게 구현했습니다.")
        session.write(made.inbox, age_minutes=60)
    assert processes.run("archive", str(made.inbox), home=made.waiting).code == 0
    shutil.copytree(made.waiting, made.accepted)
    assert processes.run("review", "--accept-all", "--all", "--yes", home=made.accepted).code == 0
    return made


@pytest.fixture
def run(processes: Server, wwt_home: Path) -> Run:
    """`wwt` with these arguments; its exit code must be `code`."""

    def wwt(*arguments: str, code: int = 0, text: str = "", **environment: str) -> Done:
        done = processes.run(*arguments, home=wwt_home, text=text, **environment)
        assert done.code == code, done.out + done.err
        assert "Traceback" not in done.err
        return done

    return wwt


@pytest.fixture
def mined(prepared: Prepared, wwt_home: Path) -> Path:
    """The transcripts of two finished sessions, of which each holds a decision that waits for review."""
    shutil.copytree(prepared.waiting, wwt_home)
    return prepared.inbox


@pytest.fixture
def uids(run: Run, prepared: Prepared, wwt_home: Path) -> list[str]:
    shutil.copytree(prepared.accepted, wwt_home)
    return [entry["id"] for entry in listed(run)]


def listed(run: Run, *arguments: str) -> list[dict[str, Any]]:
    found: dict[str, Any] = json.loads(run("entries", "--all", *arguments, "--json").out)
    return list(found["entries"])


def terminal(home: Path, *arguments: str, keys: Sequence[tuple[bytes, bytes]] = (), **environment: str) -> Done:
    """`wwt` at a terminal of its own. `keys` are typed one after the other, each once its cue has been shown."""
    pid, controller = pty.fork()
    if not pid:
        os.chdir(ROOT)
        os.environ.update({"WWT_HOME": str(home), "PYTHONPATH": str(ROOT), "TERM": "dumb", **environment})
        os.execv(sys.executable, [sys.executable, "-c", "from archiver.cli.main import run; run()", *arguments])
    shown, left, seen, until = b"", list(keys), 0, time.monotonic() + 120
    while time.monotonic() < until:
        if select.select([controller], [], [], 0.1)[0]:
            try:
                data = os.read(controller, 65_536)
            except OSError:  # the other end is closed
                break
            shown += data
            if b"\x1b[6n" in data:  # where is the cursor?
                os.write(controller, b"\x1b[1;1R")
        elif left and left[0][0] in shown[seen:]:
            seen = len(shown)
            os.write(controller, left.pop(0)[1])
    else:  # it waits for something that nobody will type
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(controller)
    return Done(os.waitstatus_to_exitcode(status), shown.decode(errors="replace").replace("\r\n", "\n"), "")


def editor(tmp_path: Path, body: str) -> str:
    script = tmp_path / "editor.py"
    script.write_text(f"import os, pathlib, signal, sys\npath = pathlib.Path(sys.argv[-1])\n{body}\n", encoding="utf-8")
    return f"'{sys.executable}' '{script}'"


# --- listing ---


def test_the_list_is_of_one_project_and_says_so(run: Run, uids: list[str]) -> None:
    found = json.loads(run("entries", "--project", "shop", "--json").out)
    assert (found["scope"], {entry["id"] for entry in found["entries"]}) == ("shop", set(uids))
    assert run("entries", "--project", "shop").out.splitlines()[-1] == "2 in shop"


def test_the_list_is_narrowed(run: Run, uids: list[str]) -> None:
    assert len(listed(run, "--type", "decision", "--agent", "claude-code", "--since", "1d")) == 2
    for nothing in (("--type", "pattern"), ("--agent", "openclaw"), ("--tag", "no-such-tag")):
        assert listed(run, *nothing) == []
        assert "--retired" in run("entries", "--all", *nothing).out


def test_where_nothing_is_known_nobody_is_sent_to_look_everywhere(run: Run, mined: Path) -> None:
    assert run("entries", "--all").out == "No reviewed knowledge yet. Run `wwt review`.\n"
    assert run("tags", "--all").out == "No tags yet: they come with reviewed entries.\n"
    assert "--all" in run("entries", "--project", "shop").out


def test_a_long_line_is_folded_beside_its_id(run: Run, uids: list[str], wwt_home: Path) -> None:
    run("entries", "edit", uids[0], "--summary", "말 " * 30)
    lines = terminal(wwt_home, "entries", "--all", COLUMNS="40").out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(uids[0]))
    assert lines[start + 1].startswith(" " * 10 + "말")
    assert max(map(columns, lines)) <= 40


def test_the_list_shows_what_replaced_an_entry(run: Run, uids: list[str]) -> None:
    old, new = uids
    run("entries", "supersede", old, new)
    assert [entry["id"] for entry in listed(run)] == [new]
    assert {entry["id"]: entry["superseded_by"] for entry in listed(run, "--retired")} == {old: new, new: None}
    assert f"superseded by {new}" in run("entries", "--all", "--retired").out


# --- changing ---


def test_the_way_of_an_entry_by_command(run: Run, uids: list[str]) -> None:
    one, other = uids
    edited = json.loads(run("entries", "edit", one[:5], "--summary", "큐는 파일 하나로 한다", "--json").out)
    assert (edited["changed"], edited["entries"][0]["summary"]) == (1, "큐는 파일 하나로 한다")
    assert one in run("search", "파일 하나로", "--all").out
    tagged = json.loads(run("entries", "retag", one, "queue", "+sqlite", "+help", "--json").out)
    assert tagged["entries"][0]["tags"] == ["queue", "sqlite", "help"]
    assert json.loads(run("entries", "retag", one, "-queue", "-help", "--json").out)["entries"][0]["tags"] == ["sqlite"]
    assert json.loads(run("entries", "global", one, other, "--json").out)["changed"] == 2
    assert json.loads(run("entries", "local", one, other, "--json").out)["changed"] == 2
    run("entries", "retire", one, "--reason", "더는 쓰지 않는다")
    assert one not in run("search", "파일 하나로", "--all").out
    assert "더는 쓰지 않는다" in run("show", one[:6]).out
    run("entries", "revive", one)
    run("entries", "merge", one, other)
    shown = json.loads(run("show", one, "--json").out)
    assert (shown["status"], shown["successors"]) == ("superseded", [other])
    assert f"superseded by {other}" in run("show", one).out
    assert json.loads(run("undo", "--json").out)["action"] == "merge"
    assert json.loads(run("show", one, "--json").out)["status"] == "active"


def test_knowledge_is_added_by_hand_and_taken_back(run: Run, uids: list[str]) -> None:
    words = ("--type", "pattern", "--summary", "always run ruff before a commit", "--tags", "lint,ci", "-p", "shop")
    made = json.loads(run("entries", "add", *words, "--json").out)["entries"][0]
    assert (made["tags"], made["scope"], made["session"]) == (["lint", "ci"], "project", None)
    assert made["id"] in run("search", "ruff", "--all").out
    assert made["id"] in run("recall", "--project", "shop").out
    run("undo")
    assert made["id"] not in run("search", "ruff", "--all").out


def test_a_form_is_taken_from_a_file_or_standard_input(run: Run, uids: list[str], tmp_path: Path) -> None:
    (tmp_path / "form.md").write_text("type: pattern\nsummary: 새 요약\n\n새 내용\n", encoding="utf-8")
    run("entries", "edit", uids[0], "--file", str(tmp_path / "form.md"))
    assert "새 내용" in run("show", uids[0]).out
    run("entries", "add", "--global", "--file", "-", text="type: decision\ntags: a\nsummary: 또 하나\n")
    assert [entry["scope"] for entry in listed(run, "--tag", "a")] == ["global"]


def test_what_is_typed_is_masked_before_it_is_kept(run: Run, uids: list[str], wwt_home: Path) -> None:
    secret = "hunter22secretword"
    run("entries", "edit", uids[0], "--detail", f"password={secret}")
    run("entries", "retire", uids[0], "--reason", f"password={secret}")
    run("entries", "retag", uids[1], f"+password={secret}")
    assert "[secret:password]" in run("show", uids[0]).out
    assert [path for path in wwt_home.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()] == []


def test_a_change_that_is_none_says_so(run: Run, uids: list[str]) -> None:
    assert run("entries", "revive", uids[0]).out == "Nothing was changed.\n"
    assert json.loads(run("entries", "revive", uids[0], "--json").out)["changed"] == 0


MISTAKES = [
    (("edit", "nosuch", "--summary", "x"), 1, "wwt entries"),
    (("edit", "UID"), 2, "--file"),
    (("edit", "UID", "--summary", ""), 2, "--summary"),
    (("edit", "UID", "--type", "opinion"), 2, "opinion"),
    (("edit", "UID", "--summary", "x", "--file", "-"), 2, "--file"),
    (("edit", "UID", "--file", "-"), 1, "-:1:"),
    (("edit", "UID", "--file", "/no/such"), 1, "/no/such"),
    (("add", "--summary", "x", "--global"), 2, "--type"),
    (("add", "--summary", "x", "--type", "pattern"), 2, "--project"),
    (("add", "--detail", "x", "--global"), 2, "--summary"),
    (("retag", "UID"), 2, "+TAG"),
    (("retag", "UID", "--nope"), 2, "--nope"),
    (("retire",), 2, "UID"),
    (("supersede", "UID", "UID"), 1, "two"),
    (("--type", "decision", "retire", "UID"), 2, "retire"),
    (("nonsense",), 2, "nonsense"),
]


def test_a_mistake_is_one_line_and_changes_nothing(run: Run, uids: list[str]) -> None:
    before = listed(run, "--retired")
    for arguments, code, says in MISTAKES:
        done = run("entries", *(uids[0] if word == "UID" else word for word in arguments), code=code, text="nonsense")
        assert (done.out, len(done.err.splitlines())) == ("", 1)
        assert says in done.err
    assert listed(run, "--retired") == before


COMMANDS = ["edit", "add", "retag", "retire", "revive", "supersede", "merge", "global", "local"]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_command_of_a_group_has_help_with_two_examples(run: Run, language: str) -> None:
    for group, commands in (("entries", COMMANDS), ("tags", ["rename"])):
        shown = run(group, "--help", WWT_LANG=language).out
        for command in commands:
            assert f"  {command} " in shown
            helped = " ".join(run(group, command, "--help", WWT_LANG=language).out.split())
            assert helped.count(f"wwt {group} {command}") >= 2
    assert "CHANGE" in run("entries", "retag", "-h", WWT_LANG=language).out


def test_a_change_that_is_killed_anywhere_is_whole_or_not_there(
    processes: Server, prepared: Prepared, run: Run, uids: list[str], wwt_home: Path
) -> None:
    command = ("entries", "supersede", *uids)
    steps = processes.steps(*command, home=wwt_home)
    wanted = notes(wwt_home)
    for step in range(1, steps + 1):
        shutil.rmtree(wwt_home)
        shutil.copytree(prepared.accepted, wwt_home)
        assert processes.run(*command, home=wwt_home, kill_at=step).code < 0
        with closing(Reader(wwt_home / "archive.db")) as reader:
            standing = [row[0] for row in reader.rows("SELECT status FROM entry ORDER BY status")]
            logged = len(reader.rows("SELECT 1 FROM decision_log"))
        assert (standing, logged) in ((["active", "active"], 2), (["active", "superseded"], 3))
        run(*command)
        assert notes(wwt_home) == wanted


def notes(home: Path) -> dict[str, str]:
    """The notes of the vault without the times of their review."""
    return {
        path.name: re.sub(r"(?m)^reviewed: .*\n", "", path.read_text(encoding="utf-8"))
        for path in (home / "vault").rglob("*.md")
    }


# --- the editor ---


def test_an_editor_changes_an_entry(wwt_home: Path, run: Run, uids: list[str], tmp_path: Path) -> None:
    # Ctrl-C belongs to the editor: it must end neither it nor us.
    body = "os.killpg(0, signal.SIGINT) if signal.signal(signal.SIGINT, lambda *_: None) else None"
    body += "\npath.write_text(path.read_text('utf-8').replace('Redis', 'Kafka'), 'utf-8')"
    uid = next(entry["id"] for entry in listed(run) if "Redis" in entry["summary"])
    done = terminal(wwt_home, "entries", "edit", uid, EDITOR=editor(tmp_path, body))
    assert done.code == 0
    assert "Kafka" in run("show", uid).out


@pytest.mark.parametrize("body", ["pass", "path.write_text(' \\n')", "sys.exit(1)"])
def test_an_idle_or_empty_edit_changes_nothing(
    wwt_home: Path, run: Run, uids: list[str], tmp_path: Path, body: str
) -> None:
    before = listed(run)
    done = terminal(wwt_home, "entries", "edit", uids[0], EDITOR=editor(tmp_path, body))
    assert (done.code, done.out) == (0, "Nothing was changed.\n")
    assert listed(run) == before


def test_an_edit_that_cannot_be_read_is_kept_and_can_be_gone_on_with(
    wwt_home: Path, run: Run, uids: list[str], tmp_path: Path
) -> None:
    body = "path.write_text('type: idea\\nsummary: 새 요약\\n\\npassword=hunter22secretword\\n', 'utf-8')"
    done = terminal(wwt_home, "entries", "edit", uids[0], EDITOR=editor(tmp_path, body), TMPDIR=str(tmp_path))
    assert done.code == 1
    assert "line 1: `type:`" in done.out
    (kept,) = tmp_path.glob("wwt-entry-*.md")
    command = re.search(r"`wwt (entries edit \S+ --file (\S+))`", done.out)
    assert command is not None
    assert (command[2], kept.stat().st_mode & 0o777) == (str(kept), 0o600)
    typed = kept.read_text(encoding="utf-8")
    assert "새 요약" in typed
    assert "hunter22secretword" not in typed
    kept.write_text(typed.replace("idea", "pattern"), encoding="utf-8")
    run(*command[1].split())
    assert "새 요약" in run("show", uids[0]).out


def test_an_edit_of_what_was_changed_meanwhile_is_kept(
    wwt_home: Path, run: Run, uids: list[str], tmp_path: Path
) -> None:
    (note,) = (wwt_home / "vault").rglob(f"*{uids[0]}.md")
    body = f"note = pathlib.Path({str(note)!r})\n"
    body += "note.write_text(note.read_text('utf-8').replace('\\n# ', '\\n# 손으로 고친 '), 'utf-8')\n"
    body += "path.write_text('type: pattern\\nsummary: 새 요약\\n', 'utf-8')"
    done = terminal(wwt_home, "entries", "edit", uids[0], EDITOR=editor(tmp_path, body), TMPDIR=str(tmp_path))
    assert done.code == 1
    (kept,) = tmp_path.glob("wwt-entry-*.md")
    assert "새 요약" in kept.read_text(encoding="utf-8")
    assert "손으로 고친" in run("show", uids[0]).out


# --- tags ---


def test_tags_are_counted_in_a_project_or_everywhere(run: Run, uids: list[str]) -> None:
    run("entries", "add", "--type", "pattern", "--summary", "어디서나 먼저 잰다", "--tags", "measure", "--global")
    run("entries", "retag", *[uids[0], "queue"])
    run("entries", "retire", uids[1])
    found = json.loads(run("tags", "--project", "shop", "--json").out)
    assert (found["scope"], {row["tag"] for row in found["tags"]}) == ("shop", {"queue", "measure"})
    assert run("tags", "--all").out.splitlines()[-1] == "2 in every project"
    assert run("tags", "--all", "--project", "shop", code=2).out == ""


def test_a_tag_is_renamed_and_undone(run: Run, uids: list[str]) -> None:
    run("entries", "retag", uids[0], "quue")
    run("tags", "rename", "quue", "줄서기")
    assert [entry["id"] for entry in listed(run, "--tag", "줄서기")] == [uids[0]]
    run("undo")
    assert [entry["id"] for entry in listed(run, "--tag", "quue")] == [uids[0]]
    assert "wwt tags" in run("tags", "rename", "nosuch", "x", code=1).err
    run("tags", "--all", "rename", "a", "b", code=2)


# --- what was rejected ---


def test_what_was_rejected_is_listed_and_taken_back(run: Run, mined: Path) -> None:
    run("review", "--reject-all", "--all", "--yes")
    found = json.loads(run("review", "--rejected", "--all", "--json").out)
    assert found["total"] == 2
    assert found["rejected"][0].keys() == {"id", "anchors", "at", "summary", "type", "agent", "session", "project"}
    assert json.loads(run("review", "--rejected", "--type", "pattern", "--all", "--json").out)["rejected"] == []
    assert "decision" in run("review", "--rejected", "--list", "--project", "shop").out
    one = found["rejected"][0]
    done = json.loads(run("review", "--take-back", one["id"][:8], "--json").out)
    assert (done["taken_back"], done["waiting"]) == (1, 1)
    waiting = json.loads(run("review", "--list", "--all", "--json").out)["entries"]
    assert [entry["summary"] for entry in waiting] == [one["summary"]]
    assert "--rejected" in run("review", "--take-back", "nosuch", code=1).err
    run("review", "--rejected", "--accept-all", code=2)


def test_what_lost_its_words_is_staged_again_by_the_next_archive(run: Run, mined: Path, wwt_home: Path) -> None:
    run("review", "--reject-all", "--all", "--yes")
    with closing(sqlite3.connect(wwt_home / "archive.db")) as db:
        db.execute("DELETE FROM decision_log")
        db.commit()
    rejected = json.loads(run("review", "--rejected", "--all", "--json").out)["rejected"]
    assert {one["summary"] for one in rejected} == {None}
    assert "2 more" in run("review", "--rejected", "--type", "decision", "--all").out
    assert "archive" in run("review", "--take-back", rejected[0]["id"]).out
    assert json.loads(run("review", "--list", "--all", "--json").out)["total"] == 0
    run("archive", str(mined))
    assert json.loads(run("review", "--list", "--all", "--json").out)["total"] == 1


def test_a_person_chooses_what_to_take_back(run: Run, mined: Path, wwt_home: Path) -> None:
    run("review", "--reject-all", "--all", "--yes")
    down, asked, again = b"\x1b[B\r", b"taken back?", b"review again."
    keys = [(asked, down), (again, b"\r")]
    done = terminal(wwt_home, "review", "--rejected", "--all", keys=keys, TERM="xterm", LINES="24", COLUMNS="100")
    assert done.code == 0
    assert "1 taken back" in done.out
    assert json.loads(run("review", "--rejected", "--all", "--json").out)["total"] == 1
    assert json.loads(run("review", "--list", "--all", "--json").out)["total"] == 1

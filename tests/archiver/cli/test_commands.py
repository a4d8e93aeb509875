"""The commands as a person or a script runs them: real processes, some of them cold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.archiver.processes import shared
from tests.archiver.trees import copied
from tests.factories import Claude

ROOT = Path(__file__).parents[3]
HEAVY = {
    "sqlalchemy",
    "numpy",
    "kiwipiepy",
    "mcp",
    "tantivy",
    "alembic",
    "questionary",
    "rich.progress",
    "sentence_transformers",
    "torch",
}


def wwt(
    *arguments: str, code: int = 0, cwd: Path | None = None, cold: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command, which must end with `code`: forked from a loaded process, or with `cold` in a new interpreter."""
    command = [sys.executable, "-c", "from archiver.cli.main import run; run()", *arguments]
    if cold or not hasattr(os, "fork"):
        env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )
    else:
        home = Path(environment.pop("WWT_HOME", None) or os.environ["WWT_HOME"])
        forked = shared().run(*arguments, home=home, cwd=cwd, **environment)
        done = subprocess.CompletedProcess(command, forked.code, forked.out, forked.err)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a home that was archived (`wwt`) and the project it tells of (`shop`)."""
    root = tmp_path_factory.mktemp("first")
    made = Claude(cwd=str(root / "shop"))
    (root / "shop").mkdir()
    made.say("큐는 Redis 대신 SQLite로 하자")
    made.answer("네, 큐를 SQLite로 구현했습니다.")
    made.tool("Bash", {"command": "pytest"}, "E   ConnectionError: ERR_7F3A at queue.py:42", failed=True)
    made.answer("std::vector<int> 대신 리스트를 씁니다.")
    made.write(root / "in", age_minutes=60)
    wwt("archive", str(root / "in"), WWT_HOME=str(root / "wwt"), HOME=str(root))
    return root


@pytest.fixture
def archived(first: Path, wwt_home: Path) -> Path:
    copied(first / "wwt", wwt_home)
    return first / "shop"


def test_help_loads_nothing_heavy() -> None:
    code = "import sys; sys.argv=['wwt','--help']\nfrom archiver.cli import main\ntry: main.run()\nexcept SystemExit: pass\nsys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    assert set(done.stderr.split()).isdisjoint(HEAVY)
    assert "archive" in done.stdout


COMMANDS = [
    "archive",
    "ingest",
    "review",
    "undo",
    "search",
    "why",
    "sessions",
    "show",
    "recall",
    "entries",
    "tags",
    "status",
    "demo",
]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_command_has_help_with_two_examples(language: str) -> None:
    listed = wwt("--help", cold=True, WWT_LANG=language).stdout
    for command in COMMANDS:
        assert f"  {command} " in listed
        assert wwt(command, "--help", WWT_LANG=language).stdout.count(f"wwt {command}") >= 2 or command == "demo"


def test_search_json_keeps_its_contract(archived: Path) -> None:
    found = json.loads(wwt("search", "SQLite", "--json", cwd=archived).stdout)
    assert found.keys() == {"scope", "engines", "hits"}
    assert found["scope"] == "shop"
    assert found["hits"][0].keys() >= {
        "kind",
        "id",
        "session",
        "agent",
        "project",
        "time",
        "score",
        "text",
        "citation",
        "why",
    }


def test_archive_json_keeps_its_contract(tmp_path: Path) -> None:
    made = Claude()
    made.say("안녕하세요")
    made.write(tmp_path / "in")
    found = json.loads(wwt("archive", str(tmp_path / "in"), "--json").stdout)
    wanted = {
        "files_read",
        "bytes_read",
        "sessions",
        "turns_added",
        "chunks_added",
        "chunks_embedded",
        "candidates_added",
        "waiting_idle",
        "unreadable",
    }
    assert found.keys() >= wanted


def test_review_list_recall_and_status_json_keep_their_contracts(archived: Path) -> None:
    listing = json.loads(wwt("review", "--list", "--json", cwd=archived).stdout)
    wanted = {
        "id",
        "type",
        "summary",
        "detail",
        "tags",
        "confidence",
        "decided_by",
        "session",
        "agent",
        "project",
        "evidence",
    }
    assert listing["total"] == len(listing["entries"]) > 0
    assert listing["entries"][0].keys() >= wanted
    assert json.loads(wwt("recall", "--json", cwd=archived).stdout).keys() == {
        "entries",
        "shown",
        "of",
        "tokens",
        "text",
    }
    wanted = {"sessions", "turns", "chunks", "entries", "waiting", "inbox", "quarantined", "last_failure"}
    assert json.loads(wwt("status", "--json").stdout).keys() >= wanted


def test_the_way_from_queue_to_recall_by_command(archived: Path) -> None:
    wwt("review", "--accept-all", "--yes", cwd=archived, cold=True)
    entry = json.loads(wwt("entries", "--json", cwd=archived, cold=True).stdout)["entries"][0]
    assert "SQLite" in wwt("show", entry["id"], cold=True).stdout
    assert entry["id"] in wwt("recall", cwd=archived, cold=True).stdout
    assert (
        json.loads(wwt("search", "큐 SQLite", "--json", cwd=archived, cold=True).stdout)["hits"][0]["id"] == entry["id"]
    )
    assert json.loads(wwt("why", "큐", "--json", cwd=archived, cold=True).stdout)["hits"][0]["kind"] == "entry"
    assert json.loads(wwt("tags", "--json", cold=True).stdout)["tags"]
    assert json.loads(wwt("undo", "--json", cold=True).stdout)["undone"]
    assert json.loads(wwt("entries", "--json", cwd=archived, cold=True).stdout)["entries"] == []


def test_show_prints_a_session_and_a_turn_with_its_surroundings(archived: Path) -> None:
    session = json.loads(wwt("sessions", "--json", cwd=archived).stdout)["sessions"][0]["session"]
    assert "std::vector<int>" in wwt("show", session[:8]).stdout
    shown = wwt("show", f"{session[:8]}#1", "-C", "0").stdout
    assert "Redis" in shown
    assert "std::vector" not in shown


@pytest.mark.parametrize("query", ["<<<", "-retry", "", "--password", "AND", '"미완성 인용'])
def test_no_query_is_an_error(archived: Path, query: str) -> None:
    wwt("search", "--json", query, cwd=archived)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("archive", "/no/such/path"), 1, "/no/such/path"),
        (("archive", "--since", "someday"), 2, "someday"),
        (("archive", "--agent", "clippy"), 2, "clippy"),
        (("show", "nothing-like-it"), 1, "nothing-like-it"),
        (("search", "x", "--project", "nope"), 2, "nope"),
        (("search", "x", "--type", "opinion"), 2, "opinion"),
        (("search", "x", "--limt", "5"), 2, "--limit"),
        (("search", "x", "--all", "--project", "y"), 2, "--all"),
        (("review", "--list", "--accept-all"), 2, "--list"),
        (("review", "--min-confidence", "7"), 2, "--min-confidence"),
        (("nonsense",), 2, "nonsense"),
    ],
)
def test_a_mistake_is_one_line_and_an_exit_code(arguments: tuple[str, ...], code: int, says: str) -> None:
    done = wwt(*arguments, code=code)
    assert says in done.stderr
    assert done.stdout == ""


def test_reviewing_without_a_terminal_names_the_other_ways(archived: Path) -> None:
    done = wwt("review", cwd=archived, code=2)
    assert "--accept-all" in done.stderr


def test_nothing_to_review_is_no_error() -> None:
    assert wwt("review").stdout.strip()
    assert wwt("review", "--list").stdout.strip()


def test_a_broken_setting_names_file_and_setting(wwt_home: Path) -> None:
    wwt_home.mkdir()
    (wwt_home / "config.toml").write_text("[recall]\nbudget = 'much'\n")
    done = wwt("status", code=2)
    assert "config.toml" in done.stderr
    assert "recall.budget" in done.stderr


def test_a_home_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = wwt("status", code=1, WWT_HOME=str(tmp_path / "file" / "wwt"))
    assert "WWT_HOME" in done.stderr


def test_a_damaged_archive_needs_repair(wwt_home: Path) -> None:
    wwt_home.mkdir()
    (wwt_home / "archive.db").write_bytes(b"damaged" * 1000)
    before = (wwt_home / "archive.db").read_bytes()
    assert "archive.db" in wwt("status", code=3).stderr
    assert (wwt_home / "archive.db").read_bytes() == before


def test_output_into_a_closed_pipe_is_quiet(archived: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = f"{sys.executable} -c 'from archiver.cli.main import run; run()' show aaaaaaaa | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, env=env)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_bare_command_says_where_you_stand_in_three_lines(archived: Path) -> None:
    assert len(wwt().stdout.strip().splitlines()) == 3


def test_korean_by_language_setting(archived: Path) -> None:
    assert "세션" in wwt(WWT_LANG="ko").stdout
    assert (
        "검토"
        in wwt("review", "--list", WWT_LANG="ko", cwd=archived).stdout
        + wwt("review", WWT_LANG="ko", cwd=archived, code=2).stderr
    )


def test_the_demo_tells_the_whole_story_and_leaves_nothing(wwt_home: Path) -> None:
    done = wwt("demo", cold=True)
    assert "<!-- wwt:recall -->" in done.stdout
    assert "ERR_DUP_ORDER" in done.stdout
    assert "tiger" not in done.stdout
    assert not wwt_home.exists()


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("{} status >&- 2>&-", 0),
        ("mkdir gone; cd gone; rmdir ../gone; {} recall", 1),
        ("mkdir gone; cd gone; rmdir ../gone; {} search ERR_7F3A", 1),
        ("{} show $'ab\\xffcd'", 1),
        ("{} search x --all --branch $'\\xff'", 0),
    ],
)
def test_odd_surroundings_end_in_a_line_and_an_exit_code(archived: Path, script: str, code: int) -> None:
    program = f"{sys.executable} -c 'from archiver.cli.main import run; run()'"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", script.format(program)], capture_output=True, cwd=archived, env=env, timeout=60
    )
    assert done.returncode == code
    assert b"Traceback" not in done.stderr


def test_a_number_may_stand_right_behind_its_short_option(archived: Path) -> None:
    found = json.loads(wwt("search", "SQLite", "-n1", "--json", cwd=archived).stdout)
    assert len(found["hits"]) == 1

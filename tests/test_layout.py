"""Rules of the house that a search can check."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("archiver", "store", "staging", "rules", "migrations")


def sources() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def holding(pattern: str, *, but: str) -> list[str]:
    found = [
        path.relative_to(ROOT).as_posix() for path in sources() if re.search(pattern, path.read_text(encoding="utf-8"))
    ]
    return [name for name in found if not re.match(but, name)]


@pytest.mark.parametrize(
    ("pattern", "home"),
    [
        (r"import questionary|from questionary", r"staging/prompt\.py"),
        (r"\bprint\(|typer\.echo|sys\.stdout\.write\(", r"archiver/cli/"),
        (r"\.execute\(|\breader\.rows\(", r"store/|migrations/|archiver/sources/sqlite\.py"),
        (r"import (sentence_transformers|torch)\b|from (sentence_transformers|torch)\b", r"archiver/embed/"),
        (r"^import tantivy|^\s+import tantivy", r"store/words\.py"),
        (r"\bKiwi\(", r"store/tokens\.py"),
    ],
)
def test_each_thing_is_done_in_one_place(pattern: str, home: str) -> None:
    assert holding(pattern, but=home) == []


MINTS = {
    "rules/redact.py": "it masks",
    "rules/examples.py": "the examples of rules",
    "rules/summary.py": "cuts of safe text, put together again",
    "archiver/ingest.py": "a masked session id that was one of several, told apart by a hash",
    "archiver/search.py": "snippets of text that was read from the database",
    "staging/documents.py": "tags of text that was masked",
    "staging/promote.py": "lines of text that was masked",
}


def test_safe_text_is_minted_by_redaction_by_reading_back_and_where_a_reason_is_given() -> None:
    assert set(holding(r'SafeText\((?!""|str\))', but="store/")) == set(MINTS)


def test_the_top_level_is_what_was_agreed() -> None:
    wanted = {
        "pyproject.toml",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "archiver",
        "store",
        "migrations",
        "staging",
        "tests",
        "rules",
        "benchmarks",
        "docs",
    }
    import subprocess

    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no git checkout")
    names = {line.split("/")[0] for line in listed.stdout.splitlines()}
    assert {name for name in names if not name.startswith(".")} <= wanted


def test_every_package_is_in_the_wheel() -> None:
    declared = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    )
    found = {
        path.parent.relative_to(ROOT).as_posix().replace("/", ".")
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }
    assert declared == found


def test_every_test_folder_is_a_package() -> None:
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_each_source_and_command_is_described_in_the_readme() -> None:
    from archiver.cli.main import app

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    names = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    assert {name for name in names if f"wwt {name}" not in readme} == set()

import stat
import sys
from pathlib import Path

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from staging import prompt
from staging.review import Choice, Question
from store.errors import WwtError

ACTION = Question(
    "action", "?", (Choice("a", "승인"), Choice("r", "reject"), Choice("R", "all"), Choice("s", "skip")), "s"
)
TAGS = Question("tags", "tags", default="a")


def answer(question: Question, keys: str) -> str | None:
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        return prompt.ask(question, input=pipe, output=DummyOutput())


@pytest.mark.parametrize(("keys", "expected"), [("a\r", "a"), ("x\r", "R"), ("r\r", "r"), ("\r", "s"), ("\x03", None)])
def test_a_key_chooses_and_ctrl_c_leaves(keys: str, expected: str | None) -> None:
    assert answer(ACTION, keys) == expected


def test_free_text_takes_korean_and_ctrl_c_leaves() -> None:
    assert answer(TAGS, ", 배포\r") == "a, 배포"
    assert answer(TAGS, "\x03") is None


def test_an_empty_list_never_reaches_the_prompt() -> None:
    assert prompt.ask(Question("entry", "?")) is None


def test_without_a_terminal_review_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Path("/dev/null").open(encoding="utf-8"))  # noqa: SIM115
    with pytest.raises(WwtError) as caught:
        prompt.require_terminal()
    assert (caught.value.key, caught.value.exit_code) == ("review.no_terminal", 2)


def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    script = tmp_path / "an editor.py"
    script.write_text(f"import os, pathlib, sys\npath = pathlib.Path(sys.argv[-1])\n{body}\n", encoding="utf-8")
    monkeypatch.setenv("EDITOR", f"'{sys.executable}' '{script}'")
    monkeypatch.delenv("VISUAL", raising=False)


def test_the_editors_text_comes_back_and_its_file_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "seen"
    body = f"pathlib.Path({str(note)!r}).write_text(f'{{path}} {{path.stat().st_mode}}')\npath.write_text('새 글', 'utf-8')"
    editor(tmp_path, monkeypatch, body)
    assert prompt.edit("헌 글") == "새 글"
    path, mode = note.read_text().rsplit(" ", 1)
    assert not Path(path).exists() and stat.S_IMODE(int(mode)) == 0o600


@pytest.mark.parametrize("body", ["sys.exit(1)", "pass"])
def test_a_failed_or_idle_editor_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    editor(tmp_path, monkeypatch, body)
    assert prompt.edit("글") is None


@pytest.mark.parametrize("named", ["/no/such/editor", "vi '", "/no/such/editor --wait"])
def test_an_editor_that_cannot_start_is_named(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("VISUAL", named)
    with pytest.raises(WwtError) as caught:
        prompt.edit("글")
    assert caught.value.key == "review.no_editor"
    assert str(caught.value.fields["editor"]) in named


def test_a_blank_choice_of_editor_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(tmp_path, monkeypatch, "path.write_text('새 글', 'utf-8')")
    monkeypatch.setenv("VISUAL", " ")
    assert prompt.edit("헌 글") == "새 글"

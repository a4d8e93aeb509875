from __future__ import annotations

import pytest

from archiver.sources.tools import command, error_text


def test_error_lines_are_those_that_name_it() -> None:
    output = "\n".join(["building", "src/a.rs:1: error: mismatched", "note: x", *["noise"] * 50, "FAILED 3", "bye"])
    assert error_text(output) == "src/a.rs:1: error: mismatched\nFAILED 3"


def test_without_a_telling_line_the_first_ones_stand_in() -> None:
    assert error_text("\n\none\ntwo\n\nthree\nfour\nfive\nsix") == "one\ntwo\nthree\nfour\nfive"


def test_at_most_five_lines_of_three_hundred_characters() -> None:
    lines = error_text("\n".join(f"error {n} " + "가" * 900 for n in range(30))).split("\n")
    assert (len(lines), {len(line) for line in lines}) == (5, {300})


def test_what_stands_in_a_here_document_is_no_command() -> None:
    call = command("cat <<'EOF' > notes\npytest would fail\n\tEOF\ngit commit -m x")
    assert call is not None and call.kinds == ("commit",)
    assert command("cat <<EOF\nmade of words") is None


@pytest.mark.parametrize(
    "line",
    ["npm " + "-a " * 400 + "x", '"' * 5000, "".join(f"<<a{n} " for n in range(6_000)), "a;" * 10_000],
)
def test_odd_commands_are_read_in_no_time(line: str) -> None:
    assert command(line) is None


def test_places_that_a_linter_names_are_telling_behind_what_looks_wrong() -> None:
    found = "main.go:19:13: parameter seems unused"
    assert error_text(f"10:15:30: begins\n{found}\nmore\n[lint] ERROR task") == f"{found}\n[lint] ERROR task"
    warned = [f"src/{n}.c:{n}:1: warning: odd" for n in range(9)]
    assert error_text("\n".join([*warned, "src/a.c:3:1: error: bad"])).endswith("error: bad")


def test_escaped_quotes_open_no_quote() -> None:
    call = command('echo \\"; pytest; echo \\"')
    assert call is not None and call.kinds == ("test",)
    assert command("echo " + '\\"' * 9_000) is None

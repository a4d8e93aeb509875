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


@pytest.mark.parametrize(
    "line", ["npm " + "-a " * 400 + "x", '"' * 5000, "<<A " * 3000, "make " + "x " * 5000, "a;" * 10_000]
)
def test_odd_commands_are_read_in_no_time(line: str) -> None:
    assert command(line) is None or command(line) is not None

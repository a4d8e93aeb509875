import pytest
from hypothesis import given
from hypothesis import strategies as st

from staging.form import Fault, Form, line_of, read, tags_of, write
from store.records import EntryType, SafeText
from tests.staging.factories import redact

OLD = Form(EntryType.DECISION, SafeText("큐는 SQLite로 한다"), SafeText("# 이유\n\n한 대에서만 돈다"), ("sqlite", "큐"))


def test_what_is_written_reads_back() -> None:
    assert read(write(OLD), OLD, redact) == OLD


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")), max_size=40).map(str.strip)


@given(summary=words.filter(bool), detail=words, tag=words.filter(lambda tag: tag and "," not in tag))
def test_any_words_read_back(summary: str, detail: str, tag: str) -> None:
    def as_it_is(text: str) -> SafeText:
        return SafeText(text)

    form = Form(EntryType.PATTERN, line_of(summary, as_it_is), SafeText(detail), (tag,))
    assert read(write(form), OLD, as_it_is) == form


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("nonsense", 1),
        ("type: idea\nsummary: x\n", 1),
        ("type: decision\nsummary:\n\nx", 2),
        ("type: decision\ntags: a\n\nsummary: below the line", 1),
        ("\n\ntype: decision\nsummary: a long one\nthat went on\n\nx", 5),
        ("type: decision\nsummary: one\nsummary: two\n", 3),
    ],
)
def test_a_form_that_cannot_be_read_says_on_which_line(typed: str, line: int) -> None:
    found = read(typed, OLD, redact)
    assert isinstance(found, Fault)
    assert (found.line, bool(found.reason)) == (line, True)


def test_a_line_that_is_gone_leaves_what_was_there() -> None:
    found = read("summary: 다른 말\n\n새 내용\n", OLD, redact)
    assert found == Form(OLD.type, SafeText("다른 말"), SafeText("새 내용"), OLD.tags)
    assert read("tags:\nsummary: x", OLD, redact) == Form(OLD.type, SafeText("x"), SafeText(""), ())


def test_what_is_typed_is_masked_and_made_of_characters() -> None:
    found = read("summary: password=hunter22secret\ntags: a\udcff\n\nBearer abcdefghijklmnop1234567890", OLD, redact)
    assert isinstance(found, Form)
    assert "hunter22secret" not in found.summary
    assert "abcdefghijklmnop" not in found.detail
    assert found.tags == ("a?",)
    assert line_of(" zwei\n Zeilen ", redact) == "zwei Zeilen"
    assert tags_of(["a, b", "c"], redact) == ("a", "b", "c")

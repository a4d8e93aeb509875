"""Knowledge as a person types it: lines for type, tags and summary, an empty line, and the detail below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from store.messages import text
from store.records import Entry, EntryType, SafeText

Redact = Callable[[str], SafeText]

FIELDS = ("type", "tags", "summary")


@dataclass(frozen=True, slots=True)
class Form:
    """What of a piece of knowledge a person words. Masked."""

    type: EntryType
    summary: SafeText
    detail: SafeText
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a form can't be read. Lines count from 1."""

    line: int
    reason: str


def form_of(entry: Entry) -> Form:
    return Form(entry.type, entry.summary, entry.detail, entry.tags)


def write(form: Form) -> str:
    """The form as it is put before an editor; `read` reads it back."""
    return f"type: {form.type}\ntags: {', '.join(form.tags)}\nsummary: {_line(form.summary)}\n\n{form.detail}\n"


def read(typed: str, old: Form, redact: Redact) -> Form | Fault:
    """What a person made of the old form, masked. A line for type or tags that is gone leaves them as they were.

    Anything above the empty line that is no field is a fault, so that no word is dropped silently.
    """
    lines = whole(typed).replace("\r\n", "\n").removeprefix("\ufeff").split("\n")
    start = next((at for at, line in enumerate(lines) if line.strip()), 0)
    end = next((at for at, line in enumerate(lines) if at > start and not line.strip()), len(lines))
    found: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(lines[start:end], start + 1):
        name, colon, value = line.partition(":")
        name = name.strip().casefold()
        if not colon or name not in FIELDS or name in found:
            return Fault(number, text("form.no_field"))
        found[name] = (number, value.strip())
    line_number, kind = found.get("type", (start + 1, old.type.value))
    if kind.casefold() not in set(EntryType):
        return Fault(line_number, text("form.type", known=", ".join(EntryType)))
    line_number, summary = found.get("summary", (start + 1, ""))
    if not summary:
        return Fault(line_number, text("form.no_summary"))
    tags = tags_of([found["tags"][1]], redact) if "tags" in found else old.tags
    return Form(EntryType(kind.casefold()), redact(summary), redact("\n".join(lines[end:]).strip()), tags)


def line_of(typed: str, redact: Redact) -> SafeText:
    """A summary given on a command line, masked and on one line."""
    return redact(_line(whole(typed)))


def detail_of(typed: str, redact: Redact) -> SafeText:
    return redact(whole(typed).replace("\r\n", "\n").strip())


def tags_of(typed: Iterable[str], redact: Redact) -> tuple[SafeText, ...]:
    """`a, b` and `c` as a, b, c, masked."""
    return tuple(redact(tag.strip()) for one in typed for tag in whole(one).split(",") if tag.strip())


def whole(typed: str) -> str:
    """The same with `?` for what is no character, such as bytes of a command line that are no UTF-8."""
    return typed.encode("utf-8", "replace").decode()


def _line(words: str) -> str:
    return " ".join(words.split())

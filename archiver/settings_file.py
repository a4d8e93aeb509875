"""The settings file, changed one setting at a time: comments, order and layout stay as a person gave them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from archiver import config
from staging import atomic
from store.errors import WwtError

LOCK_SECONDS = 30.0
_BOM = b"\xef\xbb\xbf"
_BARE_NEWLINE = re.compile(rb"(?<!\r)\n")


def set_value(path: Path, key: str, value: object) -> None:
    """Write the setting `key`, as `section.name`; the file and its folder are made where they are missing.

    Raises WwtError and changes nothing where the file is broken, or would not be sound with this value in it.
    """
    _edit(path, key, partial(_put, value=value), checked=True)


def unset(path: Path, key: str) -> bool:
    """Take a setting out of the file, also one that wwt does not know. False where it was not in it.

    A setting that is wrong may go though another is wrong too: of two, one has to go first.
    """
    held = config.settings_in(config.parsed(path, config.decoded(path, atomic.read(path) or b"")))
    if key not in held:
        return False
    sound = key in config.known() and not config.wanted_of(key, held[key])
    _edit(path, key, _take_out, checked=sound)
    return True


Change = Callable[[Any, str, str], None]
"""Changes a document (section, name), whether it is one of plain values or one that knows its layout."""


def _put(document: Any, section: str, name: str, *, value: object) -> None:
    (document.setdefault(section, {}) if section else document)[name] = value


def _take_out(document: Any, section: str, name: str) -> None:
    table = document.get(section, {}) if section else document
    table.pop(name, None)
    if section and not table and not any(key.startswith(f"{section}.") for key in config.known()):
        document.pop(section, None)  # empty, it would still be a section that wwt does not know


def _edit(path: Path, key: str, change: Change, *, checked: bool) -> None:
    with _locked(path):
        before = atomic.read(path) or b""
        content = config.decoded(path, before)
        after = _edited(path, content, key, change)
        if checked:
            config.checked(path, after, content)
        # What a link leads to is replaced, so that a file kept among one's dotfiles stays there.
        atomic.write(path.resolve(), _in_its_form(before, after.encode()))


def _edited(path: Path, content: str, key: str, change: Change) -> str:
    """The content with the change made in its text, which must come to the same as the change made in its values."""
    import tomlkit  # noqa: PLC0415  costs 40 ms; only writing pays it
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    values = config.parsed(path, content)
    section, _, name = key.rpartition(".")
    try:
        # Without an end to its last line, a new section would stand glued to it.
        document = tomlkit.parse(content if content.endswith("\n") or not content else f"{content}\n")
        for each in (values, document):
            change(each, section, name)
        after = tomlkit.dumps(document)
        if config.settings_in(tomllib.loads(after)) == config.settings_in(values):
            return after
    except (TOMLKitError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise WwtError("config.cannot_edit", path=path, name=key) from error
    raise WwtError("config.cannot_edit", path=path, name=key)


def _in_its_form(before: bytes, after: bytes) -> bytes:
    """With the byte order mark and the line ends that the file had."""
    if b"\r\n" in before and not _BARE_NEWLINE.search(before):
        after = _BARE_NEWLINE.sub(b"\r\n", after)
    return (_BOM if before.startswith(_BOM) else b"") + after


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout  # noqa: PLC0415  costs 15 ms; only writing pays it

    atomic.make_folder(path.parent)
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=LOCK_SECONDS)
    try:
        lock.acquire()
    except Timeout as error:
        raise WwtError("config.locked", path=path) from error
    try:
        yield
    finally:
        lock.release()

import re
import string
from pathlib import Path

import pytest

from store import messages

ROOT = Path(__file__).parents[2]


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_message_exists_in_both_languages_with_the_same_fields() -> None:
    english, korean = messages.catalogue("en"), messages.catalogue("ko")
    assert english.keys() == korean.keys()
    assert {key for key in english if fields(english[key]) != fields(korean[key])} == set()


def test_korean_messages_are_korean() -> None:
    korean = messages.catalogue("ko")
    assert {
        key
        for key in korean
        if not re.search("[가-힣]", korean[key]) and re.search("[a-z]{3}", re.sub(r"\{\w+\}", "", korean[key]))
    } <= UNTRANSLATED


UNTRANSLATED: set[str] = set()


def test_every_key_in_the_code_is_in_the_catalogue() -> None:
    known = messages.catalogue("en").keys()
    used = set()
    for package in ("archiver", "store", "staging", "rules", "migrations"):
        for path in (ROOT / package).rglob("*.py"):
            used |= set(
                re.findall(
                    r"""(?:\btext|messages\.text|\btell|WwtError|UnknownModel)\(\s*"([a-z_]+\.[a-z_]+)["']""",
                    path.read_text(encoding="utf-8"),
                )
            )
    assert used - known == set()


@pytest.mark.parametrize(
    ("value", "wanted"), [("ko_KR.UTF-8", "ko"), ("ko", "ko"), ("en_US.UTF-8", "en"), ("C", "en"), ("fr_FR", "en")]
)
def test_the_locale_chooses_the_language(monkeypatch: pytest.MonkeyPatch, value: str, wanted: str) -> None:
    for name in ("WWT_LANG", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", value)
    assert messages.language() == wanted

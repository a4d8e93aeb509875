from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.load import load
from rules.redact import Redactor, default
from rules.schema import Secret
from rules.scrub import scrub
from store.records import SafeText

PIECES = [
    "ghp_" + "Z9x" * 12, "sk-" + "Ab3" * 12, "password", "비밀번호", "token", "api_key", "secret", "[secret:password]",
    "[secret:", "]", "=", ": ", '"', "'", "\\", "\n", " ", "hunter" + "2", "는 ", "입니다", "://a:", "@", "--", ",", ";", "&",
    "Authorization: Bearer ", "Cookie: a=", "-----BEGIN " + "PRIVATE KEY-----", "-----END " + "PRIVATE KEY-----",
    "MC4CAQ" + "Qx7bPw2k" * 4, "\ufdd0", "\x1b[31m", "\ud82d", "\u200d", "e\u0301", "900101-" + "1234567", "$", "{", "(", ".",
]  # fmt: skip
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))
BUILT = st.lists(st.sampled_from(PIECES) | st.text(max_size=3)).map("".join)


@given(ANY_TEXT | BUILT)
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = default()(text)
    assert default()(once) == once


@given(ANY_TEXT | BUILT)
def test_safe_text_is_valid_unicode_without_controls(text: str) -> None:
    safe = default()(text)
    safe.encode("utf-8")
    assert isinstance(safe, SafeText)
    assert unicodedata.is_normalized("NFC", safe)
    assert not [c for c in safe if unicodedata.category(c) == "Cc" and c not in "\n\t"]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("설정파\ud82d 분리", "설정파\ufffd 분리"),
        ("\ud83d\ude00 정상", "😀 정상"),
        ("키\udc88 하위", "키\ufffd 하위"),
        ("앞\x00뒤", "앞뒤"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("ok \x1b[2J\x1b[31mRED\x1b[0m \x1b]0;title\x07real a\x08 \x9b31m end", "ok RED real a  end"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1;2|hidden\x1b\\shown", "shown"),
        ("\u202egnp.exe\u202c \u2066x\u2069", "gnp.exe x"),
        ("ghp\u200b_x a\u200db\ufeff", "ghp_x ab"),
        ("👨\u200d👩\u200d👧 ❤️\u200d🔥", "👨\u200d👩\u200d👧 ❤️\u200d🔥"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("한글".encode().decode() and unicodedata.normalize("NFD", "한글"), "한글"),
    ],
)
def test_scrub_takes_out_what_is_not_text(text: str, clean: str) -> None:
    assert scrub(text) == clean


def test_ordinary_text_comes_back_as_the_same_object() -> None:
    text = "분리 기준을 3으로 결정했다. ok 😀"
    assert scrub(text) is text


def test_a_secret_cut_by_invisible_characters_is_masked() -> None:
    assert default()("gh\u200bp_" + "Z9x\x1b[0m" * 12) == "[secret:github-token]"


def test_a_placeholder_names_the_most_specific_kind() -> None:
    assert default()("token=" + "ghp_" + "Z9x" * 12) == "token=[secret:github-token]"


def test_placeholders_that_stood_there_stay_in_their_places() -> None:
    text = "[secret:jwt] 다음 비밀번호: " + "hunter" + "2 그리고 [secret:cookie]"
    assert default()(text) == "[secret:jwt] 다음 비밀번호: [secret:password] 그리고 [secret:cookie]"


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN " + "PRIVATE KEY-----\n" + ("Qx7bPw2k" * 9 + "\n") * 2700,
        "a" * 1_000_000,
        "key=" * 250_000,
        'password="' * 50_000,
        "e" + "\u0316\u0301\u05b0" * 100_000,
        "\x1b]" * 300_000,
        "eyJ" * 300_000,
    ],
    ids=["pem", "a", "key=", "quotes", "marks", "osc", "eyJ"],
)
def test_hostile_text_comes_back(text: str) -> None:
    assert isinstance(default()(text), SafeText)


def test_version_changes_with_the_rules() -> None:
    secrets, _ = load(Secret)
    assert Redactor(secrets).version == default().version
    assert Redactor(secrets[1:]).version != default().version


def test_a_users_rule_masks_too() -> None:
    badge = Secret.model_validate(
        {"id": "badge", "kind": "badge", "literals": ["badge"], "pattern": r"badge-(?P<secret>\d+)",
         "examples": {"match": ["badge-1"], "miss": ["badge"]}}
    )  # fmt: skip
    assert Redactor([badge])("Badge-7 badge-77") == "Badge-7 badge-[secret:badge]"

"""Databases and exports on their whole way: found where they lie, stored once, not read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.archiver.sources import test_hermes as hermes
from tests.archiver.sources import test_opencode as opencode
from tests.archiver.sources.test_markdown import AIDER, HEADINGS, SPECSTORY, kept
from tests.archiver.sources.test_web_exports import CHATS, SHARDS, TWO, as_file, node, tree, zipped
from tests.reports.walk import found, projects, read, said, sessions, titles


def nothing_new(*paths: Path) -> bool:
    report = read(*paths)
    return (report.files_read, report.bytes_read, report.turns_added) == (0, 0, 0)


def test_hermes_in_its_own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HERMES_HOME", raising=False)
    path = hermes.filled(Path.home() / ".hermes/state.db")
    read()
    assert set(sessions()) == {hermes.SESSION, "other"}
    assert projects() == {hermes.SESSION: "/srv/shop", "other": "/srv/other"}
    assert nothing_new()
    hermes.insert(path, "messages", hermes.message("user", "새 말 hh31", second=60))
    report = read()
    assert (report.files_read, report.turns_added) == (1, 1)
    assert found("hh31")


def test_hermes_moving_into_a_database_doubles_nothing() -> None:
    home = Path.home() / ".hermes"
    hermes.document(home / f"sessions/session_{hermes.SESSION}.json", *hermes.TALK)
    read()
    hermes.insert(home / "state.db", "sessions", hermes.session())
    rows = (hermes.message(row["role"], row["content"]) for row in hermes.TALK[:2])
    hermes.insert(home / "state.db", "messages", *rows)
    assert read().turns_added == 0
    assert said(hermes.SESSION) == [("user", "포트는 8080으로 하자"), ("assistant", "네")]
    assert nothing_new()


def test_opencode_in_its_own_folder_and_moving_into_a_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    root = Path.home() / ".local/share/opencode"
    opencode.filed(root)
    assert read().turns_added == 3
    opencode.stored(root / "opencode.db")
    assert read().turns_added == 0
    assert list(sessions()) == ["ses_1"]
    assert projects() == {"ses_1": "/srv/shop"}
    assert nothing_new()


def test_a_chat_export_given_in_every_form_is_stored_once(tmp_path: Path) -> None:
    forms = [
        as_file(zipped(conversations=TWO), "export.zip")(tmp_path),
        as_file(TWO)(tmp_path),
        as_file(zipped(**SHARDS), "parts.zip")(tmp_path),
        as_file(TWO[0], "one.json")(tmp_path),
    ]
    assert [read(path).turns_added for path in forms] == [4, 0, 0, 0]
    assert said("c1") == [("user", "질문 c1"), ("assistant", "답")]
    assert nothing_new(*forms)


def test_a_later_export_adds_what_is_new_and_forgets_nothing(tmp_path: Path) -> None:
    path = as_file(TWO)(tmp_path)
    read(path)
    grown = tree(
        "c1", node("a", "root", "user", "질문 c1"), node("b", "a", "assistant", "답"), node("c", "b", "user", "더 ee12")
    )
    as_file([grown])(tmp_path)
    assert read(path).turns_added == 1
    assert [text for _, text in said("c1")] == ["질문 c1", "답", "더 ee12"]
    assert said("c2") == [("user", "질문 c2"), ("assistant", "답")]


def test_punctuation_of_an_export_is_never_found(tmp_path: Path) -> None:
    read(as_file(CHATS)(tmp_path))
    assert not found("chat_messages")
    assert found("8080")
    assert titles() == {"s1": "포트 이야기"}


def test_exports_in_a_project_belong_to_it(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    kept(".specstory/history/a.md", SPECSTORY)(shop)
    kept(".aider.chat.history.md", AIDER)(shop)
    read(shop)
    assert set(projects().values()) == {str(shop)}
    assert len(sessions()) == 3
    assert nothing_new(shop)


def test_a_copy_of_an_export_is_stored_once(tmp_path: Path) -> None:
    read(kept("a/talk.md", HEADINGS)(tmp_path))
    assert read(kept("b/talk.md", HEADINGS)(tmp_path)).turns_added == 0
    assert len(sessions()) == 1


def test_an_export_whose_end_was_not_there_yet_has_no_half_turn_left(tmp_path: Path) -> None:
    path = kept("talk.md", HEADINGS[: HEADINGS.index("꿨습니다.")])(tmp_path)
    read(path)
    kept("talk.md", HEADINGS)(tmp_path)
    read(path)
    (session,) = sessions()
    assert [text for _, text in said(session)] == [
        "포트는 8080으로 하자", "#### 정리\n\n8080으로 바꿨습니다.", "```\n### 어시스턴트\n```\n이건 예시야",
    ]  # fmt: skip

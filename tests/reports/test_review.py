"""The queue and what comes of it: verdicts that hold, files that broke, knowledge that was replaced."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from archiver.home import Home
from staging.promote import Move, commit
from staging.waiting import Filters
from staging.waiting import waiting as waitlist
from store import knowledge
from store.records import now_ms
from store.verdicts import lookup_in
from tests.archiver.cli.test_commands import wwt
from tests.archiver.sources.transcripts import assistant, encode, user
from tests.reports.walk import accept_all, append, claude, recalled, reject_all, run, search, staged, waiting

CHOICES = ["큐는 Kafka 대신 Postgres로 하자", "Let's use Postgres instead of Kafka for the queue."]


def decided(choice: str = CHOICES[0], session: str = "S1", uuid: str = "1") -> Path:
    """A session with one decision in it."""
    done = "네, 그렇게 구현했습니다." if not choice.isascii() else "Done, implemented."
    rows = [user(uuid, choice, sessionId=session), assistant(f"{uuid}a", done, uuid, sessionId=session)]
    return claude(*rows, session=session)


def document() -> Path:
    return next((Home.open().root / "staging").glob("*.json"))


# --- verdicts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", CHOICES)
def test_what_was_rejected_comes_back_by_no_way(choice: str) -> None:
    path = decided(choice)
    run()
    assert reject_all().rejected == 1
    append(path, encode([user("9", "계속하자", "1a", 9)]))
    run()
    shutil.rmtree(Home.open().root / "index" / "words")
    decided(f"**{choice}**", session="S2", uuid="2")
    run()
    assert waiting() == []


def test_a_batch_makes_one_entry_of_one_finding() -> None:
    decided(session="S1", uuid="1")
    decided(session="S2", uuid="2")
    run()
    assert len(waiting()) == 1
    assert accept_all().accepted == 1
    assert accept_all().accepted == 0
    assert Home.open().reader.counts()["entries"] == 1


def test_an_acceptance_whose_document_was_not_rewritten_counts_once() -> None:
    decided()
    run()
    before = document().read_bytes()
    path = document()
    accept_all()
    path.write_bytes(before)
    assert waiting() == []
    assert accept_all().accepted == 0
    assert Home.open().reader.counts()["entries"] == 1


def test_replaced_knowledge_is_recalled_no_more_and_found_below() -> None:
    decided("웹 검색은 Bing 대신 Kagi로 하자", session="S1")
    run()
    accept_all()
    old = Home.open().reader.rows("SELECT uid FROM entry")[0]["uid"]
    decided("웹 검색은 Kagi 말고 SearXNG로 하자", session="S2", uuid="2")
    run()
    home = Home.open()
    items = waitlist(home.queue, lookup_in(home.database_path), Filters(), now=now_ms()).items
    commit(home.desk, items[0], Move.SUPERSEDE, old)
    home.index.embed_missing()
    text = recalled().text
    assert "SearXNG" in text
    assert old not in text
    hits = search("웹 검색 Kagi", only="knowledge")
    assert [hit.status for hit in hits] == ["active", "superseded"]
    assert hits[1].superseded_by == hits[0].id


def test_entries_written_by_hand_that_share_a_line_are_all_kept() -> None:
    decided()
    run()
    path = document()
    held = json.loads(path.read_text(encoding="utf-8"))
    held["entries"] = [
        {"type": "decision", "summary": text, "detail": "자세한 것은 운영 문서에 있다"}
        for text in ("로그는 30일 보관", "백업은 매일 밤", "배포는 화요일")
    ]
    path.write_text(json.dumps(held, ensure_ascii=False), encoding="utf-8")
    assert accept_all().accepted == 3
    assert {row["summary"] for row in Home.open().reader.rows("SELECT summary FROM entry")} == {
        "로그는 30일 보관",
        "백업은 매일 밤",
        "배포는 화요일",
    }


def test_two_edits_that_come_to_one_summary_lose_no_line() -> None:
    decided("운영 로그는 파일 대신 S3에 두자", session="S1", uuid="1")
    decided("개발 기록은 메일 말고 채팅에 남기자", session="S2", uuid="2")
    run()
    details = ["운영 서버는 30일 동안 둔다", "개발 서버는 하루만 둔다"]
    for path, detail in zip(sorted((Home.open().root / "staging").glob("*.json")), details, strict=True):
        held = json.loads(path.read_text(encoding="utf-8"))
        held["entries"][0] |= {"summary": "로그 보관 장소와 기간을 정함", "detail": detail}
        path.write_text(json.dumps(held, ensure_ascii=False), encoding="utf-8")
    accept_all()
    rows = Home.open().reader.rows("SELECT detail FROM entry")
    kept = "\n".join(row["detail"] for row in rows)
    assert len(rows) == 1
    assert all(detail in kept for detail in details)


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [0.3, 0.9])
def test_a_queue_file_cut_short_is_reported_kept_and_never_taken_for_empty(cut: float) -> None:
    decided()
    run()
    path = document()
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * cut)])
    damaged = path.read_bytes()
    done = wwt("review", "--list", "--all", "--json")
    assert [Path(broken["file"]) for broken in json.loads(done.stdout)["broken"]] == [path]
    line = json.loads(wwt("status", "--json").stdout)["broken"][0]["line"]
    assert f"{path}:{line}: " in wwt("status").stderr
    wwt("review", "--accept-all", "--all", "--yes")
    assert path.read_bytes() == damaged
    append(Path.home() / ".claude/projects/-srv-shop/S1.jsonl", encode([user("9", "이어서 하자", "1a", 9)]))
    run()
    assert path.read_bytes() == damaged
    assert any("Postgres" in text for text in staged())


@pytest.mark.parametrize("content", [None, b"", b"[]", b"{}"])
def test_nothing_to_review_is_said_and_no_error(content: bytes | None) -> None:
    home = Home.open()
    home.make()
    if content is not None:
        (home.root / "staging" / "claude-code-S1-00000000.json").write_bytes(content)
    assert wwt("review", "--all").stdout.strip()


def test_review_without_a_terminal_names_the_other_ways_and_changes_nothing() -> None:
    decided()
    run()
    before = document().read_bytes()
    done = wwt("review", "--all", code=2)
    assert "--accept-all" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert document().read_bytes() == before


@pytest.mark.parametrize(
    ("tags", "kept"),
    [
        (["배포", "DB"], {"배포", "db"}),
        ([" DB ", "db", "ＤＢ"], {"db"}),
        ([], set()),
    ],
)
def test_tags_typed_by_hand_are_one_tag_however_they_are_spelt(tags: list[str], kept: set[str]) -> None:
    decided()
    run()
    path = document()
    held = json.loads(path.read_text(encoding="utf-8"))
    held["entries"][0]["tags"] = tags
    path.write_text(json.dumps(held, ensure_ascii=False), encoding="utf-8")
    accept_all()
    home = Home.open()
    with home.database.transaction() as tx:
        entry = knowledge.list_entries(tx, knowledge.Filters())[0]
    assert {tag.replace("database", "db") for tag in entry.tags} == kept
    assert not kept or wwt("entries", "--all", "--tags", "DB").stdout.count("\n") >= 2


@pytest.mark.parametrize("tags", ["배포, DB", [1], {"a": 1}, None])
def test_tags_of_another_type_are_read_as_a_list_or_refused_by_line(tags: object) -> None:
    decided()
    run()
    path = document()
    held = json.loads(path.read_text(encoding="utf-8"))
    held["entries"][0]["tags"] = tags
    path.write_text(json.dumps(held, ensure_ascii=False), encoding="utf-8")
    listing = json.loads(wwt("review", "--list", "--all", "--json").stdout)
    assert len(listing["entries"]) + len(listing["broken"]) == 1
    assert all(len(tag) > 1 for row in listing["entries"] for tag in row["tags"])


# --- the vault -------------------------------------------------------------------------------------------------------


NAMES = ["가" * 130, "가" * 130 + "나", "CON", 'a/b:c*?"<>|', "..", "끝.", "\u202eevil", "é" * 210, "../../etc/passwd"]


def test_notes_have_short_safe_names_of_their_own_and_stay_untouched() -> None:
    decided()
    run()
    home = Home.open()
    path = document()
    held = json.loads(path.read_text(encoding="utf-8"))
    held["entries"] = [
        {"type": "pattern", "summary": f"{name}", "detail": f"{number}번 규칙"} for number, name in enumerate(NAMES)
    ]
    path.write_text(json.dumps(held, ensure_ascii=False), encoding="utf-8")
    from archiver import review

    assert review.accept_all(home.desk, Filters(), vault=home.vault).accepted == len(NAMES)
    notes = sorted((home.root / "vault").rglob("*.md"))
    assert len(notes) == len(NAMES)
    assert all(len(note.name.encode()) <= 255 and home.root / "vault" in note.resolve().parents for note in notes)
    assert not any(set(note.name) & set('<>:"/\\|?*\u202e') or note.stem.endswith((".", " ")) for note in notes)
    before = {note: note.stat().st_mtime_ns for note in notes}
    Home.open().vault.sync()
    assert {note: note.stat().st_mtime_ns for note in notes} == before

"""The whole way, on real parts: transcripts in, candidates, verdicts, entries, answers out."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import pytest

from archiver import inbox, review
from archiver.archive import Report, Wish, archive
from archiver.cli.search import find
from archiver.cli.sessions import _find_session
from archiver.home import Home
from archiver.ingest import rechunk
from archiver.recall import recall
from archiver.sources.claude_code import ClaudeCode
from archiver.transcript import Found, Parse, Progress
from staging.waiting import Filters
from store import sessions
from store.errors import WwtError
from store.records import Hit, Role, State, now_ms
from tests.conftest import warmed
from tests.factories import Claude, OpenClaw, words_in

FIX = "결제 중복의 원인은 멱등 키 누락이었고, 유니크 제약을 걸어서 해결했습니다."
CHOICE = "큐는 Redis 대신 SQLite로 하자"


@pytest.fixture(autouse=True)
def home(wwt_home: Path, template: Path) -> None:
    warmed(wwt_home, template)


def run(*paths: Path, **wish: bool) -> Report:
    return archive(Home.open(), Wish(tuple(paths), **wish))


def waiting() -> list[dict[str, object]]:
    return list(review.list_waiting(Home.open().desk, Filters()).rows)


def search(text: str, **wanted: object) -> list[Hit]:
    return list(find(Home.open(), text, project=None, everything=True, **wanted).hits)


def decided(session: str = "aaaaaaaa-0000-4000-8000-000000000001", prefix: str = "") -> Claude:
    made = Claude(session, prefix=prefix)
    made.say(CHOICE)
    made.answer("네, 큐를 SQLite로 구현했습니다.")
    return made


# --- reading ---


def test_a_second_run_over_an_unchanged_tree_adds_and_embeds_nothing(tmp_path: Path) -> None:
    decided().write(tmp_path / "in", age_minutes=60)
    first, second = run(tmp_path / "in"), run(tmp_path / "in")
    assert (first.files_read, first.turns_added) == (1, 2)
    assert first.chunks_embedded > 0
    assert (
        second.files_read,
        second.bytes_read,
        second.turns_added,
        second.chunks_embedded,
        second.candidates_added,
    ) == (0, 0, 0, 0, 0)


def test_growth_is_read_from_where_reading_stopped(tmp_path: Path) -> None:
    made = decided()
    for number in range(40):
        made.say(f"질문 {number} " + "가나다라 " * 40)
        made.answer(f"답 {number} " + "마바사아 " * 40)
    before = made.write(tmp_path / "in").stat().st_size
    run(tmp_path / "in")
    made.say("마지막 질문 gg77")
    made.answer("마지막 답")
    growth = made.write(tmp_path / "in").stat().st_size - before
    report = run(tmp_path / "in")
    assert report.turns_added == 2
    assert growth <= report.bytes_read <= growth + 8192
    assert "gg77" in search("gg77", limit=1)[0].text


def test_growth_changes_only_the_last_chunks(tmp_path: Path) -> None:
    made = decided()
    for number in range(60):
        made.say(f"질문 {number}번은 무엇을 묻나요? " * 4)
        made.answer(f"답 {number}번은 이것입니다. " * 8)
    made.write(tmp_path / "in")
    run(tmp_path / "in")
    before = {row["id"] for row in Home.open().reader.rows("SELECT id FROM chunk")}
    made.say("하나 더 물어봅니다")
    made.write(tmp_path / "in")
    report = run(tmp_path / "in")
    after = {row["id"] for row in Home.open().reader.rows("SELECT id FROM chunk")}
    assert len(before - after) <= 2
    assert report.chunks_embedded <= 2


@pytest.mark.parametrize("seed", range(3))
def test_growth_record_by_record_gives_the_chunks_of_reading_at_once(tmp_path: Path, seed: int) -> None:
    chance, made = random.Random(seed), Claude()
    for home in ("grown", "whole"):
        (tmp_path / home).mkdir()
        (tmp_path / home / "config.toml").write_text('[embedding]\nmodel = "none"\n', encoding="utf-8")
    for number in range(24):
        words = f"말 {number} " + "가나다 마바사 " * chance.choice((1, 5, 15, 40, 90))
        chance.choice((made.say, made.answer))(words)
        if chance.random() < 0.2:
            made.tool("Bash", {"command": "pytest"}, f"E   Error {number}", failed=True)
        made.write(tmp_path / "in")
        archive(Home.open(tmp_path / "grown"), Wish((tmp_path / "in",), distil=False))
    archive(Home.open(tmp_path / "whole"), Wish((tmp_path / "in",), distil=False))
    columns = "first_ord, last_ord, part, role, heading, text"
    grown, whole = (
        [
            tuple(row)
            for row in Home.open(tmp_path / home).reader.rows(f"SELECT {columns} FROM chunk ORDER BY {columns}")
        ]
        for home in ("grown", "whole")
    )
    assert grown == whole


def test_one_bad_record_and_one_bad_file_cost_nothing_else(tmp_path: Path) -> None:
    path = decided().write(tmp_path / "in")
    path.write_bytes(
        path.read_bytes() + b'{"type":"user","message":\n' + json.dumps({"type": "mode", "mode": "x"}).encode() + b"\n"
    )
    (tmp_path / "in" / "broken.jsonl").write_bytes(b"\xff\xfe\x00\x01not json\n")
    OpenClaw().write(tmp_path / "in")
    report = run(tmp_path / "in")
    assert report.turns_added == 2
    assert {(Path(bad["file"]).name, bad["line"]) for bad in report.unreadable} >= {(path.name, 3)}
    whole = [bad for bad in report.unreadable if "broken.jsonl" in str(bad["file"])]
    assert whole and not any("broken.jsonl" in str(bad["reason"]) for bad in whole)


def test_a_marker_at_the_end_of_each_of_thirty_long_turns_is_found(tmp_path: Path) -> None:
    made = Claude()
    made.say("서른 단계를 모두 설명해 줘")
    for number in range(30):
        made.answer("단계를 하나씩 자세히 설명합니다. " * 150 + f"끝표식 ZQ{number:02d}X 입니다.")
    made.write(tmp_path / "in")
    run(tmp_path / "in")
    assert [
        number for number in range(30) if f"ZQ{number:02d}X" not in search(f"ZQ{number:02d}X", limit=1)[0].text
    ] == []


def test_copies_in_a_resumed_file_are_stored_once_and_found_from_both(tmp_path: Path) -> None:
    first = decided()
    second = Claude("cccccccc-0000-4000-8000-000000000003")
    second.rows = [{**row, "sessionId": second.session} for row in first.rows]
    second.last = first.last
    second.say("크기는 512로 하자")
    first.write(tmp_path / "in", age_minutes=90)
    second.write(tmp_path / "in", age_minutes=60)
    report = run(tmp_path / "in")
    assert report.turns_added == 3
    counts = {row.external_id: len(Home.open().reader.turns(row.id)) for row in Home.open().reader.sessions("")}
    assert counts == {first.session: 2, second.session: 3}
    assert sum("SQLite" in str(row["summary"]) for row in waiting()) == 1


def test_equal_ids_of_different_sessions_with_different_words_are_no_copies(tmp_path: Path) -> None:
    for session, words in (("S1", "외주 API 정책"), ("S2", "개인 가계부")):
        made = Claude(session)
        made.say(words, uuid="1")
        made.write(tmp_path / "in")
    assert run(tmp_path / "in").turns_added == 2
    assert {hit.session for hit in search("가계부", limit=1)} == {"S2"}


def test_what_the_agent_cleans_up_stays_in_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    made = Claude()
    made.say("무지개해달 설정은 어디에 있나요?")
    path = made.write(tmp_path / "claude" / "projects" / "-home-u-shop")
    run()
    path.unlink()
    run()
    assert "무지개해달" in search("무지개해달", limit=1)[0].text
    assert Home.open().reader.rows("SELECT missing_since FROM source_file")[0][0] is not None


# --- distilling ---


def test_an_active_session_is_archived_but_not_distilled(tmp_path: Path) -> None:
    decided().write(tmp_path / "in")
    report = run(tmp_path / "in")
    assert (report.candidates_added, len(report.waiting_idle)) == (0, 1)
    assert run(tmp_path / "in", finished=True).candidates_added == 1


def test_a_deleted_session_leaves_its_findings_and_no_words(tmp_path: Path) -> None:
    made = OpenClaw()
    made.say("비둘기자리 서버에서 결제가 두 번 됩니다.")
    made.answer(FIX)
    made.say("고마워요, 코끼리별 배포도 확인했어요.")
    path = made.write(tmp_path / "in")
    run(tmp_path / "in")
    assert search("비둘기자리", limit=1)
    path.rename(path.with_name(path.name + ".deleted.2026-03-03T05-00-00.000Z"))
    report = run(tmp_path / "in")
    assert report.candidates_added == 1
    assert waiting()[0]["source_status"] == "deleted"
    root = Home.open().root
    assert words_in(root, "비둘기자리") == words_in(root, "코끼리별") == []
    assert {path.parent.name for path in words_in(root, "유니크 제약")} == {"staging"}
    assert search("비둘기자리", limit=1) == []
    assert run(tmp_path / "in").files_read == 0


def test_a_deleted_session_that_is_kept_is_mined_all_the_same(tmp_path: Path, wwt_home: Path) -> None:
    wwt_home.mkdir(exist_ok=True)
    (wwt_home / "config.toml").write_text("[archive]\nkeep_deleted = true\n", encoding="utf-8")
    made = OpenClaw()
    made.say(CHOICE)
    made.answer("네, SQLite로 구현했습니다.")
    made.write(tmp_path / "in", ".deleted.2026-03-03T05-00-00.000Z")
    report = run(tmp_path / "in")
    assert (report.turns_added, report.candidates_added) == (2, 1)
    assert waiting()[0]["source_status"] == "deleted"
    assert search("SQLite", limit=1)[0].session == made.session
    assert run(tmp_path / "in").candidates_added == 0


def test_a_reset_session_keeps_everything_and_is_distilled_at_once(tmp_path: Path) -> None:
    made = OpenClaw()
    made.say(CHOICE)
    made.answer("네, SQLite로 구현했습니다.")
    made.write(tmp_path / "in", ".reset.2026-03-03T04-00-00.000Z")
    report = run(tmp_path / "in")
    assert (report.turns_added, report.candidates_added) == (2, 1)
    assert search("SQLite", limit=1)[0].session == made.session


# --- verdicts ---


def test_rejected_stays_rejected_whatever_happens(tmp_path: Path) -> None:
    made = decided()
    made.write(tmp_path / "in", age_minutes=60)
    run(tmp_path / "in")
    assert len(waiting()) == 1
    assert review.reject_all(Home.open().desk, Filters()).rejected == 1
    made.say("좋아, 그대로 가자")
    made.answer("네, 확정했습니다.")
    made.write(tmp_path / "in", age_minutes=50)
    run(tmp_path / "in")
    assert waiting() == []
    shutil.rmtree(Home.open().root / "index")
    run(tmp_path / "in", finished=True)
    assert waiting() == []
    decided("dddddddd-0000-4000-8000-000000000004", prefix="other-").write(tmp_path / "in", age_minutes=45)
    assert run(tmp_path / "in").turns_added == 2
    assert waiting() == []


def test_accepted_knowledge_is_found_above_its_chunk_and_recalled_by_tag(tmp_path: Path) -> None:
    decided().write(tmp_path / "in", age_minutes=60)
    run(tmp_path / "in")
    assert review.accept_all(Home.open().desk, Filters()).accepted == 1
    Home.open().index.embed_missing()
    hits = search("큐 SQLite")
    assert hits[0].kind == "entry"
    home = Home.open()
    tags = hits[0].tags
    block = recall(home.reader, Path("/home/u/shop"), budget=500, aliases=home.aliases(), asked=[tags[0]])
    assert block.entries == (hits[0].id,)
    assert (
        recall(home.reader, Path("/home/u/shop"), budget=500, aliases=home.aliases(), asked=["unheard-of"]).entries
        == ()
    )


def test_a_hand_edit_survives_while_the_session_grows(tmp_path: Path) -> None:
    made = decided()
    made.write(tmp_path / "in", age_minutes=60)
    run(tmp_path / "in")
    path = next((Home.open().root / "staging").glob("*.json"))
    document = json.loads(path.read_text(encoding="utf-8"))
    document["entries"][0]["summary"] = "작업 큐는 SQLite (내가 고침)"
    path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    made.say("재시도 횟수는 3으로 고정하자")
    made.answer("네, 재시도 횟수를 3으로 고정했습니다.")
    made.write(tmp_path / "in", age_minutes=50)
    run(tmp_path / "in")
    summaries = {str(row["summary"]) for row in waiting()}
    assert "작업 큐는 SQLite (내가 고침)" in summaries
    assert len(summaries) == 2


def test_a_broken_staging_document_is_reported_untouched_and_stops_nothing(tmp_path: Path) -> None:
    made = decided()
    made.write(tmp_path / "in", age_minutes=60)
    run(tmp_path / "in")
    path = next((Home.open().root / "staging").glob("*.json"))
    path.write_text('{"schema": 1, "entries": [{"id": "x", "summary": "잘린', encoding="utf-8")
    before = path.read_bytes()
    made.say("재시도 횟수는 3으로 고정하자")
    made.answer("네, 재시도 횟수를 3으로 고정했습니다.")
    made.write(tmp_path / "in", age_minutes=50)
    assert run(tmp_path / "in").candidates_added >= 1
    assert path.read_bytes() == before
    listing = review.list_waiting(Home.open().desk, Filters())
    assert [broken.path for broken in listing.broken] == [path]
    assert listing.total >= 1


# --- indexes ---


@pytest.mark.parametrize("damage", ["delete", "truncate-words", "truncate-vectors"])
def test_a_lost_or_damaged_index_is_rebuilt_and_answers_the_same(tmp_path: Path, damage: str) -> None:
    for number in range(8):
        made = Claude(f"{number:08d}-0000-4000-8000-000000000001", prefix=f"p{number}-")
        made.say(f"배포 절차 {number}번은 어떻게 하나요?")
        made.answer(f"배포 절차 {number}번은 캐시를 데운 뒤 시작합니다. 식별자 DEP_{number}F.")
        made.write(tmp_path / "in")
    run(tmp_path / "in")
    before = [(hit.id, hit.text) for hit in search("배포 절차 DEP_3F")]
    index = Home.open().root / "index"
    if damage == "delete":
        shutil.rmtree(index)
    else:
        folder = index / damage.removeprefix("truncate-")
        largest = max((path for path in folder.iterdir() if path.is_file()), key=lambda path: path.stat().st_size)
        largest.write_bytes(largest.read_bytes()[: largest.stat().st_size // 2])
    assert [(hit.id, hit.text) for hit in search("배포 절차 DEP_3F")] == before


def test_a_last_line_without_its_newline_is_read_once_the_file_is_quiet(tmp_path: Path) -> None:
    made = decided()
    path = made.write(tmp_path / "in")
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert run(tmp_path / "in").turns_added == 1
    os.utime(path, (path.stat().st_mtime - 3600,) * 2)
    assert run(tmp_path / "in").turns_added == 1
    assert run(tmp_path / "in").files_read == 0


def test_a_newer_parser_drops_what_it_knows_nobody_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = decided()
    made.write(tmp_path / "in")
    run(tmp_path / "in")
    home = Home.open()
    with home.database.transaction() as tx:
        # What an older parser might have taken for speech.
        session = sessions.find(tx, "claude-code", made.session)
        file = sessions.file_row(tx, "claude-code", home.redact(str(tmp_path / "in" / f"{made.session}.jsonl")))
        assert session is not None
        assert file is not None
        noise = sessions.NewTurn("noise", 1, Role.USER, "prompt", home.redact("도구 출력 kk31"), None, State.LIVE)
        change = sessions.Change()
        sessions.put_turns(tx, "claude-code", session, home.redact(made.session), file.id, [noise], change)
        rechunk(tx, session, change)
    assert "kk31" in search("kk31", limit=1)[0].text
    monkeypatch.setattr(ClaudeCode, "parser_version", ClaudeCode.parser_version + 1)
    run(tmp_path / "in")
    assert all("kk31" not in hit.text for hit in search("kk31"))
    assert len(home.reader.rows("SELECT 1 FROM turn")) == 2


def test_a_session_that_goes_on_after_its_end_is_open_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    made = decided()
    path = made.write(tmp_path / "claude" / "projects" / "-home-u-shop")
    inbox.drop(
        Home.open().root / "inbox",
        inbox.Event("claude-code", "session-end", made.session, str(path), "/home/u/shop", now_ms()),
    )
    assert run().candidates_added == 1
    made.say("하나 더 묻겠습니다")
    made.write(path.parent)
    assert [waits.session for waits in run().waiting_idle] == [made.session]


def test_finished_reads_a_last_line_without_its_newline_too(tmp_path: Path) -> None:
    path = decided().write(tmp_path / "in")
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert run(tmp_path / "in").turns_added == 1
    assert run(tmp_path / "in", finished=True).turns_added == 1
    assert run(tmp_path / "in", finished=True).files_read == 0


@pytest.mark.parametrize("folder", [b"\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", b"bad\xff", b"AKIA" + b"Z7Q2" * 4])
def test_a_file_under_an_odd_name_is_read_once(tmp_path: Path, folder: bytes) -> None:
    decided().write(tmp_path / os.fsdecode(folder), age_minutes=60)
    assert [run(tmp_path / os.fsdecode(folder)).files_read for _ in range(2)] == [1, 0]


@pytest.mark.parametrize("values", [{"transcript": "/" + "x" * 5_000}, {"session": "\ud800"}, {"transcript": "/a\0b"}])
def test_an_event_with_odd_words_stops_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, str]
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    decided().write(tmp_path / "claude" / "projects" / "-home-u-shop", age_minutes=60)
    told = {"session": "s", "transcript": "", **values}
    inbox.drop(Home.open().root / "inbox", inbox.Event("claude-code", "session-end", cwd="", at=now_ms(), **told))
    assert run().turns_added == 2


def test_a_hook_that_spells_a_path_through_a_link_adds_no_second_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    made = decided()
    path = made.write(tmp_path / "claude" / "projects" / "-home-u-shop", age_minutes=60)
    (tmp_path / "link").symlink_to(path.parent)
    told = str(tmp_path / "link" / path.name)
    inbox.drop(Home.open().root / "inbox", inbox.Event("claude-code", "session-end", made.session, told, "", now_ms()))
    assert run().files_read == 1
    assert list(Home.open().reader.files()) == [("claude-code", str(path))]


DELETED, RESET = ".deleted.2026-03-03T05-00-00.000Z", ".reset.2026-03-03T04-00-00.000Z"


@pytest.mark.parametrize("ages", [(60, 90), (90, 60)])
def test_what_was_reset_before_its_session_was_deleted_goes_too(tmp_path: Path, ages: tuple[float, float]) -> None:
    made = OpenClaw()
    made.say("코끼리별 서버를 쓰기로 하자")
    made.write(tmp_path / "in", DELETED, age_minutes=ages[0])
    made.write(tmp_path / "in", RESET, age_minutes=ages[1])
    run(tmp_path / "in")
    assert Home.open().reader.counts()["turns"] == 0


def test_what_is_said_under_the_id_of_a_deleted_session_stays(tmp_path: Path) -> None:
    gone, again = OpenClaw(), OpenClaw()
    gone.say("코끼리별 서버를 쓰기로 하자")
    again.say("비둘기자리 서버는 어디 있어요?")
    gone.write(tmp_path / "in", DELETED, age_minutes=90)
    again.write(tmp_path / "in", age_minutes=60)
    run(tmp_path / "in")
    assert [turn["text"] for turn in Home.open().reader.rows("SELECT text FROM turn")] == [
        "비둘기자리 서버는 어디 있어요?"
    ]


@pytest.mark.parametrize("left", [b"", b'{"type":"mess'])
def test_a_deleted_session_whose_file_is_empty_or_broken_is_dropped_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: bytes
) -> None:
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path / "claw"))
    made = OpenClaw()
    made.say("코끼리별 서버는 어디 있어요?")
    live = made.write(tmp_path / "claw" / "agents" / "main" / "sessions", age_minutes=60)
    run()
    live.unlink()
    live.with_name(live.name + DELETED).write_bytes(left)
    run()
    assert words_in(Home.open().root, "코끼리별") == []
    assert [row["external_id"] for row in Home.open().reader.rows("SELECT external_id FROM session")] == [made.session]


def test_what_was_rejected_of_a_deleted_session_leaves_no_words_either(tmp_path: Path) -> None:
    made = OpenClaw()
    made.say("비둘기자리 서버의 재시도 횟수는 3으로 고정하자")
    made.answer("네, 재시도 횟수를 3으로 고정했습니다.")
    path = made.write(tmp_path / "in")
    run(tmp_path / "in", finished=True)
    assert review.reject_all(Home.open().desk, Filters()).rejected == 1
    path.rename(path.with_name(path.name + ".deleted.2026-03-03T05-00-00.000Z"))
    run(tmp_path / "in")
    assert waiting() == []
    assert words_in(Home.open().root, "비둘기자리") == []


def test_a_damaged_deleted_file_still_leaves_what_was_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path / "claw"))
    made = OpenClaw()
    made.say("비둘기자리 서버의 재시도 횟수는 3으로 고정하자")
    made.answer("네, 재시도 횟수를 3으로 고정했습니다.")
    path = made.write(tmp_path / "claw" / "agents" / "main" / "sessions")
    run()
    path.unlink()
    path.with_name(path.name + ".deleted.2026-03-03T05-00-00.000Z").write_bytes(b"\x00\x01 damaged\n")
    assert run().candidates_added == 1
    assert search("비둘기자리", limit=1) == []


def test_a_fault_in_one_file_costs_the_others_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decided().write(tmp_path / "in")
    broken = decided("eeeeeeee-0000-4000-8000-000000000009", prefix="other-").write(tmp_path / "in")
    parse = ClaudeCode.parse

    def faulty(self: ClaudeCode, found: Found, progress: Progress, *, final: bool) -> Parse:
        if found.path == broken:
            raise KeyError("message")
        return parse(self, found, progress, final=final)

    monkeypatch.setattr(ClaudeCode, "parse", faulty)
    report = run(tmp_path / "in")
    assert report.turns_added == 2
    assert [(bad["file"], "KeyError" in str(bad["reason"])) for bad in report.unreadable] == [(str(broken), True)]
    monkeypatch.undo()


def test_two_agents_with_one_session_id_are_told_apart(tmp_path: Path) -> None:
    shared = "aaaaaaaa-0000-4000-8000-000000000001"
    decided(shared).write(tmp_path / "in" / "claude")
    made = OpenClaw(shared)
    made.say("오픈클로의 질문")
    made.write(tmp_path / "in" / "openclaw")
    run(tmp_path / "in")
    home = Home.open()
    assert _find_session(home.reader, f"openclaw:{shared}").agent == "openclaw"
    with pytest.raises(WwtError):
        _find_session(home.reader, shared)

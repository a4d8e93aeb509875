"""A session that its user forgets: its words are in no file afterwards, and come back by no way."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import unicodedata
from collections.abc import Callable
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import zstandard

from archiver import distil, erase, exchange, forget, inbox, review
from archiver.archive import Report, Wish, archive
from archiver.cli.search import find
from archiver.home import Home
from archiver.sources.claude_code import ClaudeCode
from staging import promote
from staging.promote import Move
from staging.waiting import Filters
from store import decisions, forgetting, knowledge
from store.errors import WwtError
from store.records import Quote, Role, now_ms, parse_time
from store.words import Words
from tests.archiver.processes import Server
from tests.archiver.sources.rollouts import OTHER, THREAD, legacy, meta, name
from tests.archiver.standing import standing_of
from tests.archiver.trees import copied
from tests.factories import Claude, OpenClaw, write_lines

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
GONE = ("비둘기자리", "코끼리별", "까치노을", "두루미길", "ERR_OWL_9", "왜가리표")
"""Words that only the session to be forgotten has, each said in another place of it."""
LATER = "2031-01-01T00:00:{:02d}.000Z"


def talk(session: str = A, cwd: str = "/home/u/shop", prefix: str = "") -> Claude:
    """A session with a title, a decision, an error, an outcome, and words that no finding holds."""
    made = Claude(session, cwd=cwd, prefix=prefix)
    made.say("비둘기자리 서버에서 결제가 두 번 됩니다. 왜 그런가요?")
    made.tool("Bash", {"command": "pytest"}, "E   RuntimeError: ERR_OWL_9 at queue.py:3", failed=True)
    made.answer("코끼리별 로그를 보겠습니다.")
    made.say("작업 큐는 Redis 대신 SQLite로 하자")
    made.answer("네, 작업 큐를 SQLite로 구현했습니다.")
    made.tool("Bash", {"command": "git commit -m 두루미길"}, "[main 1a2b3c] 두루미길")
    made.say("두루미길의 재시도 횟수는 3으로 고정하자")
    made.answer("네, 두루미길의 재시도 횟수를 3으로 고정했습니다.")
    made.rows.append({"type": "custom-title", "customTitle": "왜가리표 정리", "sessionId": session})
    return made


def other() -> Claude:
    made = Claude(B, cwd="/home/u/shop", prefix="b-")
    made.say("크기는 512로 고정하자")
    made.answer("네, 크기를 512로 고정했습니다.")
    return made


def run(root: Path, *paths: Path, **wish: bool) -> Report:
    return archive(Home.open(root), Wish(tuple(paths), **wish))


def forgotten(root: Path, *names: str, **wish: Any) -> forget.Outcome:
    home = Home.open(root)
    return forget.forget(home, forget.plan(home, forget.Wish(names, **wish)))


def left(root: Path, words: tuple[str, ...] = GONE) -> list[tuple[str, str]]:
    """Which words stand in which files, in any form that a program might write them; the word index is asked too."""
    # Not in the model's weights: 70 MB, of which nothing comes from a session.
    paths = (path for path in sorted(root.rglob("*")) if path.is_file() and path.suffix != ".arrays")
    files = [(path, path.read_bytes()) for path in paths]
    found = [(word, str(path.relative_to(root))) for word in words for path, held in files if _holds(held, word)]
    index = Words(root / "index" / "words")
    return found + [(word, "words") for word in words if index.frequency(word.casefold())]


def _holds(held: bytes, word: str) -> bool:
    texts = {unicodedata.normalize(form, word) for form in ("NFC", "NFD")}
    texts |= {text.casefold() for text in texts}
    forms = {text.encode(code) for text in texts for code in ("utf-8", "utf-16-le", "utf-16-be")}
    forms |= {json.dumps(text)[1:-1].encode() for text in texts}
    return any(form in held for form in forms)


def rows(root: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(root / "archive.db")) as db:
        return db.execute(sql).fetchall()


def sessions_of(root: Path) -> list[str]:
    return [name for (name,) in rows(root, "SELECT external_id FROM session ORDER BY 1")]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with transcripts (`in`) and a home (`wwt`) that holds the words everywhere: see the test of it."""
    folder = tmp_path_factory.mktemp("stored")
    root = folder / "wwt"
    made = talk()
    made.write(folder / "in", age_minutes=90)
    other().write(folder / "in", age_minutes=60)
    loose = [{"type": "summary", "summary": "까치노을", "leafUuid": "none"}, *other().rows]
    write_lines(folder / "in" / "loose.jsonl", loose, age_minutes=60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WWT_LANG", "en")
        run(root, folder / "in")
        home = Home.open(root)
        [one, two] = [w for w in _waiting(home) if w.header.source_session == A]
        promote.decide(home.desk, one if "Redis" in one.item.summary else two, Move.ACCEPT)
        with home.database.transaction() as tx:
            [entry] = knowledge.list_entries(tx)
            [key] = tx.connection.execute("SELECT key FROM turn WHERE text LIKE '코끼리별%'").fetchone()  # type: ignore[union-attr]
            held = knowledge.entry_id(tx, entry.uid)
            assert held is not None
            quote = Quote(key, Role.ASSISTANT, home.redact("코끼리별 로그를 보겠습니다."), 1)
            knowledge.add_evidence(tx, held, [quote], agent="claude-code")
        home.vault.sync()
        assert home.database.checkpoint()
    _scatter(root)
    return folder


def _waiting(home: Home) -> list[Any]:
    return list(review._waiting(home.desk, Filters()).items)


def _scatter(root: Path) -> None:
    """What crashes, upgrades, hooks and people leave beside the archive."""
    shutil.copy(root / "archive.db", root / "backups" / "archive-0001.db")
    document = next(path for path in (root / "staging").glob("*.json") if A[:8] in path.name)
    (document.with_name(f".{document.name}.tmp")).write_bytes(document.read_bytes()[:400])
    stand_in = document.with_name(document.name.replace(".json", ".new.json"))
    stand_in.write_bytes(document.read_bytes()[:-20])
    (root / "staging" / "renamed.json").write_bytes(document.read_bytes())
    inbox.drop(root / "inbox", inbox.Event("claude-code", "session-end", A, "", "/비둘기자리", now_ms()))
    inbox.drop(root / "inbox", inbox.Event("claude-code", "session-end", B, "", "", now_ms()))
    (root / "inbox" / "quarantine").mkdir(exist_ok=True)
    (root / "inbox" / "quarantine" / "1.json").write_text(json.dumps({"session": A, "text": "비둘기자리"}))
    note = next((root / "vault").rglob("*SQLite*.md"))
    shutil.copy(note, note.with_name(f"{note.stem}.conflict.md"))
    (note.with_name(f".{note.name}.tmp")).write_bytes(note.read_bytes())


@pytest.fixture(autouse=True)
def without_vectors(wwt_home: Path) -> None:
    """Unpacking the model costs a second in each new home; `root` has it."""
    wwt_home.mkdir()
    (wwt_home / "config.toml").write_text('[embedding]\nmodel = "none"\n', encoding="utf-8")


@pytest.fixture
def root(stored: Path, tmp_path: Path) -> Path:
    return copied(stored / "wwt", tmp_path / "home")


# --- what goes ---


def test_the_words_stand_in_every_part_of_the_home(root: Path) -> None:
    parts = {file.split("/")[0] for _, file in left(root)}
    assert parts >= {"archive.db", "backups", "inbox", "staging", "vault", "words"}
    assert {word for word, file in left(root) if file.startswith("archive.db")} == set(GONE)


def test_forgetting_leaves_no_word_in_any_file(root: Path) -> None:
    done = forgotten(root, A)
    assert (done.sessions, done.turns, done.complete) == (1, 7, True)
    assert left(root) == []
    assert [path.name for path in root.rglob("*") if any(word in path.name for word in GONE)] == []


def test_what_was_forgotten_is_in_no_list_and_no_count(root: Path) -> None:
    before = Home.open(root).reader.counts()
    forgotten(root, A)
    home = Home.open(root)
    assert sessions_of(root) == [B]
    assert home.reader.counts() == {**before, "sessions": 1, "turns": 2, "chunks": 1}
    assert [
        hit.session
        for hit in find(home, "비둘기자리 결제", project=None, everything=True, limit=5).hits
        if hit.kind == "chunk"
    ] == [B]
    assert {w.header.source_session for w in _waiting(home)} == {B}


def test_an_entry_stays_and_says_that_its_source_was_forgotten(root: Path) -> None:
    forgotten(root, A)
    with Home.open(root).database.transaction() as tx:
        [entry] = knowledge.list_entries(tx)
    assert (entry.session, entry.source_forgotten, entry.status) == (None, True, "active")
    assert len(entry.evidence) > 1
    assert {str(quote.quote) for quote in entry.evidence} == {""}
    note = next((root / "vault").rglob(f"*-{entry.uid}.md")).read_text(encoding="utf-8")
    assert "source_forgotten: true" in note
    assert A not in note
    home = Home.open(root)
    assert find(home, "작업 큐 SQLite", project=None, everything=True, limit=1).hits[0].id == entry.uid


def test_events_of_other_sessions_and_later_ones_stay(root: Path) -> None:
    inbox.drop(root / "inbox", inbox.Event("claude-code", "session-end", A, "", "", now_ms() + 60_000))
    forgotten(root, A)
    assert [(e.session, e.at > now_ms()) for _, e in inbox.waiting(root / "inbox") if e] == [(B, False), (A, True)]


def test_backups_go_and_a_link_among_them_leads_nowhere(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "mine.db"
    elsewhere.write_text("mine")
    (root / "backups" / "archive-old.db").symlink_to(elsewhere)
    (root / "backups" / "notes.txt").write_text("mine")
    forgotten(root, A)
    assert [path.name for path in (root / "backups").iterdir()] == ["notes.txt"]
    assert elsewhere.read_text() == "mine"


def test_a_rejection_leaves_the_log_and_undo_brings_nothing_back(root: Path) -> None:
    home = Home.open(root)
    promote.decide(home.desk, next(w for w in _waiting(home) if w.header.source_session == A), Move.REJECT)
    forgotten(root, A)
    home = Home.open(root)
    with home.database.transaction() as tx:
        assert decisions.newest(tx) == []
    assert promote.undo(home.desk) is None
    assert left(root) == []


def test_a_decision_that_cannot_be_read_any_more_goes_too(root: Path) -> None:
    with closing(sqlite3.connect(root / "archive.db")) as db:
        db.execute(
            "INSERT INTO decision_log (at, action, document, candidate, before) VALUES (1, 'reject', 'd', '[{비둘기자리', ?)",
            (json.dumps({"anchors": [], "verdicts": [], "entries": [], "created": None}),),
        )
        db.commit()
    forgotten(root, A)
    assert left(root) == []


@pytest.mark.parametrize("broken", ["front: [", "---\nuid: {uid}\ntype: [\n---\n", "no front matter at all\n"])
def test_a_note_that_cannot_be_read_loses_its_quotes_and_nothing_else(root: Path, broken: str) -> None:
    note = next(
        path for path in (root / "vault").rglob("*.md") if ".conflict" not in path.name and "SQLite" in path.name
    )
    uid = note.stem.rpartition("-")[2]
    before = note.read_text(encoding="utf-8")
    mine = broken.replace("{uid}", uid) + before.partition("---\n\n")[2].replace(
        "\n\n<!--", "\n\n내 말은 그대로.\n\n<!--"
    )
    note.write_text(mine, encoding="utf-8")
    forgotten(root, A)
    assert left(root) == []
    assert note.read_text(encoding="utf-8").startswith(mine.partition("<!--")[0])


def test_a_note_edited_before_is_adopted_first(root: Path) -> None:
    note = next(
        path for path in (root / "vault").rglob("*.md") if ".conflict" not in path.name and "SQLite" in path.name
    )
    note.write_text(note.read_text(encoding="utf-8").replace("# 작업", "# 모든 작업"), encoding="utf-8")
    forgotten(root, A)
    with Home.open(root).database.transaction() as tx:
        [entry] = knowledge.list_entries(tx)
    assert entry.summary.startswith("모든 작업")
    assert left(root) == []


def test_a_project_of_which_nothing_is_left_is_gone(tmp_path: Path, wwt_home: Path) -> None:
    talk(cwd="/home/u/client").write(tmp_path / "in", age_minutes=90)
    other().write(tmp_path / "in", age_minutes=90)
    run(wwt_home, tmp_path / "in", distil=False)
    forgotten(wwt_home, A)
    assert [row["key"] for row in Home.open().reader.projects()] == ["/home/u/shop"]


# --- what does not come back ---


def reread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClaudeCode, "parser_version", ClaudeCode.parser_version + 1)


@pytest.mark.parametrize("whole", [False, True])
def test_the_next_archive_brings_nothing_back(
    stored: Path, root: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    forgotten(root, A)
    if whole:
        reread(monkeypatch)
    report = run(root, stored / "in", finished=True)
    assert (report.files_read > 0, report.turns_added, report.candidates_added) == (whole, 0, 0)
    assert sessions_of(root) == [B]
    assert left(root) == []


@pytest.mark.parametrize("whole", [False, True])
def test_of_a_session_that_goes_on_only_what_is_new_comes_back(
    tmp_path: Path, wwt_home: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    made = talk()
    made.write(tmp_path / "in", age_minutes=90)
    run(wwt_home, tmp_path / "in", distil=False)
    forgotten(wwt_home, A)
    made.say("포트는 8080으로 고정하자", timestamp=LATER.format(1))
    made.answer("네, 포트를 8080으로 고정했습니다.", timestamp=LATER.format(2))
    made.tool("Bash", {"command": "pytest"}, "1 passed")
    for row in made.rows[-2:]:
        row["timestamp"] = LATER.format(3)
    made.write(tmp_path / "in")
    if whole:
        reread(monkeypatch)
    assert run(wwt_home, tmp_path / "in", finished=True).turns_added == 2
    [row] = Home.open().reader.sessions("")
    assert (row.external_id, row.turns, row.title) == (A, 2, None)
    assert (row.started_at, row.ended_at) == (parse_time(LATER.format(1)), parse_time(LATER.format(3)))
    assert [quote.turn for w in _waiting(Home.open()) for quote in w.item.evidence] != []
    assert left(wwt_home) == []
    promote.decide(Home.open().desk, _waiting(Home.open())[0], Move.ACCEPT)
    with Home.open().database.transaction() as tx:
        [entry] = knowledge.list_entries(tx)
    assert (entry.session, entry.source_forgotten, bool(entry.evidence[0].quote)) == (A, False, True)


def test_a_turn_without_a_time_does_not_come_back(
    tmp_path: Path, wwt_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = talk()
    for row in made.rows:
        row.pop("timestamp", None)
    made.write(tmp_path / "in")
    run(wwt_home, tmp_path / "in", distil=False)
    forgotten(wwt_home, A)
    reread(monkeypatch)
    assert run(wwt_home, tmp_path / "in", finished=True).turns_added == 0
    assert sessions_of(wwt_home) == []
    assert left(wwt_home) == []


def test_a_turn_from_a_clock_that_ran_ahead_does_not_come_back(
    tmp_path: Path, wwt_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = talk()
    made.rows[0]["timestamp"] = LATER.format(9)
    made.write(tmp_path / "in")
    run(wwt_home, tmp_path / "in", distil=False)
    forgotten(wwt_home, A)
    reread(monkeypatch)
    assert run(wwt_home, tmp_path / "in", finished=True).turns_added == 0


def test_what_was_not_archived_yet_when_it_was_forgotten_is_not_archived_afterwards(
    tmp_path: Path, wwt_home: Path
) -> None:
    made = talk()
    rest, made.rows = made.rows[4:], made.rows[:4]
    made.write(tmp_path / "in")
    run(wwt_home, tmp_path / "in", distil=False)
    forgotten(wwt_home, A)
    made.rows += rest
    made.write(tmp_path / "in")
    assert run(wwt_home, tmp_path / "in", finished=True).turns_added == 0
    assert left(wwt_home) == []


def test_no_other_file_of_the_session_brings_it_back(tmp_path: Path, wwt_home: Path) -> None:
    made = OpenClaw()
    made.say("비둘기자리 서버는 어디 있나요?")
    made.answer("코끼리별에 있습니다.")
    made.write(tmp_path / "in")
    run(wwt_home, tmp_path / "in", distil=False)
    forgotten(wwt_home, made.session)
    made.write(tmp_path / "in", ".reset.2026-03-03T04-00-00.000Z")
    made.write(tmp_path / "more")
    report = run(wwt_home, tmp_path / "in", tmp_path / "more")
    assert (report.files_read, report.turns_added, report.candidates_added) == (2, 0, 0)
    assert sessions_of(wwt_home) == []
    assert left(wwt_home) == []


def test_deleting_a_forgotten_session_mines_nothing(tmp_path: Path, wwt_home: Path) -> None:
    made = OpenClaw()
    made.say("두루미길의 재시도 횟수는 3으로 고정하자")
    made.answer("네, 두루미길의 재시도 횟수를 3으로 고정했습니다.")
    path = made.write(tmp_path / "in")
    run(wwt_home, tmp_path / "in", distil=False)
    forgotten(wwt_home, made.session)
    path.rename(path.with_name(path.name + ".deleted.2026-03-03T05-00-00.000Z"))
    assert run(wwt_home, tmp_path / "in").candidates_added == 0
    assert run(wwt_home, tmp_path / "in").files_read == 0
    assert sessions_of(wwt_home) == []
    assert left(wwt_home) == []


def test_what_was_said_since_is_mined_when_the_session_is_deleted(tmp_path: Path, wwt_home: Path) -> None:
    made = OpenClaw()
    made.say("두루미길의 재시도 횟수는 3으로 고정하자")
    made.answer("네, 두루미길의 재시도 횟수를 3으로 고정했습니다.")
    made.write(tmp_path / "in")
    run(wwt_home, tmp_path / "in", distil=False)
    forgotten(wwt_home, made.session)
    made.say("포트는 8080으로 고정하자")
    made.answer("네, 포트를 8080으로 고정했습니다.")
    for number, row in enumerate(made.rows[-2:]):
        row["timestamp"] = LATER.format(number)
    (tmp_path / "in" / f"{made.session}.jsonl").unlink()
    made.write(tmp_path / "in", ".deleted.2026-03-03T05-00-00.000Z")
    assert run(wwt_home, tmp_path / "in").candidates_added == 1
    assert left(wwt_home) == []


def test_an_older_export_brings_no_quote_back(root: Path, tmp_path: Path) -> None:
    exchange.export(Home.open(root), tmp_path / "out")
    assert "코끼리별" in words_of(tmp_path / "out")
    forgotten(root, A)
    exchange.bring(Home.open(root), tmp_path / "out")
    assert left(root) == []


def test_an_older_export_brings_no_quote_into_an_archive_that_knows_of_the_forgetting(
    root: Path, tmp_path: Path, wwt_home: Path
) -> None:
    exchange.export(Home.open(root), tmp_path / "old")
    forgotten(root, A)
    exchange.export(Home.open(root), tmp_path / "new")
    shutil.rmtree(tmp_path / "new" / "shop")  # its notes are lost, not what was forgotten
    exchange.bring(Home.open(), tmp_path / "new")
    exchange.bring(Home.open(), tmp_path / "old")
    with Home.open().database.transaction() as tx:
        [entry] = knowledge.list_entries(tx)
    assert (entry.session, entry.source_forgotten) == (None, True)
    assert left(wwt_home) == []


def test_of_a_session_that_went_on_an_older_export_brings_nothing_of_before(
    tmp_path: Path, wwt_home: Path, root: Path
) -> None:
    exchange.export(Home.open(root), tmp_path / "old")
    made = talk()
    made.write(tmp_path / "in", age_minutes=90)
    run(wwt_home, tmp_path / "in", distil=False)
    forgotten(wwt_home, A)
    made.say("포트는 8080으로 고정하자", timestamp=LATER.format(1))
    made.write(tmp_path / "in")
    run(wwt_home, tmp_path / "in", distil=False)
    exchange.bring(Home.open(), tmp_path / "old")
    assert sessions_of(wwt_home) == [A]
    with Home.open().database.transaction() as tx:
        [entry] = knowledge.list_entries(tx)
    assert (entry.session, entry.source_forgotten) == (None, True)
    assert left(wwt_home) == []


def words_of(folder: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.md"))


def test_a_compressed_copy_and_an_event_of_a_hook_bring_nothing_back(tmp_path: Path, wwt_home: Path) -> None:
    path = rollout(tmp_path / "in", THREAD, legacy("비둘기자리 서버는 어디 있나요?", "코끼리별에 있습니다."))
    run(wwt_home, path, distil=False)
    assert forgotten(wwt_home, THREAD).turns == 2
    packed = tmp_path / "in" / f"{path.name}.zst"
    packed.write_bytes(zstandard.compress(path.read_bytes()))
    inbox.drop(wwt_home / "inbox", inbox.Event("codex", "session-end", THREAD, str(path), "/srv/shop", now_ms()))
    report = run(wwt_home, packed, finished=True)
    assert (report.files_read, report.turns_added, sessions_of(wwt_home)) == (1, 0, [])
    run(wwt_home)
    assert sessions_of(wwt_home) == []
    assert left(wwt_home) == []


def test_a_title_of_a_forgotten_turn_does_not_wait_for_it(
    tmp_path: Path, wwt_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, later = talk(), other()
    later.rows.insert(0, {"type": "summary", "summary": "까치노을 이야기", "leafUuid": made.rows[0]["uuid"]})
    made.write(tmp_path / "in", age_minutes=90)
    later.write(tmp_path / "in", age_minutes=60)
    run(wwt_home, tmp_path / "in", distil=False)
    forgotten(wwt_home, A)
    reread(monkeypatch)
    run(wwt_home, tmp_path / "in", finished=True)
    assert left(wwt_home) == []


# --- copies and subagents ---


def resumed(first: Claude) -> Claude:
    """A session whose file begins as a copy of another's."""
    made = Claude(B, cwd=first.cwd)
    made.rows = [{**row, "sessionId": B} for row in first.rows if "uuid" in row]
    made.last = first.last
    made.say("물떼새길은 30초로 고정하자")
    made.answer("네, 물떼새길을 30초로 고정했습니다.")
    return made


@pytest.fixture
def copies(tmp_path: Path, wwt_home: Path) -> Path:
    first = talk()
    first.write(tmp_path / "in", age_minutes=90)
    resumed(first).write(tmp_path / "in", age_minutes=60)
    for session in (A, B):
        run(wwt_home, tmp_path / "in" / f"{session}.jsonl")
    return tmp_path / "in"


def test_turns_that_another_session_shares_stay_with_it(copies: Path, wwt_home: Path) -> None:
    for waits in _waiting(Home.open()):
        promote.decide(Home.open().desk, waits, Move.ACCEPT)
    forgotten(wwt_home, A)
    [row] = Home.open().reader.sessions("")
    assert (row.external_id, row.turns) == (B, 8)
    turns = Home.open().reader.turns(row.id)
    assert [turn["ord"] for turn in turns] == list(range(1, 10))
    assert find(Home.open(), "비둘기자리", project=None, everything=True, limit=1).hits[0].session == B
    with Home.open().database.transaction() as tx:
        entries = knowledge.list_entries(tx)
    assert {(entry.session, entry.source_forgotten, bool(entry.evidence[0].quote)) for entry in entries} == {
        (B, False, True)
    }
    assert standing_of(Home.open().index).rows == standing_of(Home.open().index).words


def test_findings_that_waited_in_the_forgotten_session_are_found_again_in_the_other(
    copies: Path, wwt_home: Path
) -> None:
    before = {str(w.item.summary) for w in _waiting(Home.open())}
    forgotten(wwt_home, A)
    run(wwt_home, copies, finished=True)
    assert {str(w.item.summary) for w in _waiting(Home.open())} == before
    assert {w.header.source_session for w in _waiting(Home.open())} == {B}


def test_shared_turns_go_with_the_last_session_that_has_them(copies: Path, wwt_home: Path) -> None:
    assert forgotten(wwt_home, A, B).turns == 9
    assert sessions_of(wwt_home) == []
    assert left(wwt_home, (*GONE, "물떼새길")) == []


def test_forgetting_the_copy_leaves_the_original(copies: Path, wwt_home: Path) -> None:
    forgotten(wwt_home, B)
    [row] = Home.open().reader.sessions("")
    assert (row.external_id, row.turns) == (A, 6)
    assert left(wwt_home, ("물떼새길",)) == []


def rollout(folder: Path, thread: str, rows: list[dict[str, Any]], **more: Any) -> Path:
    path = folder / name(thread)
    write_lines(path, [meta(thread, **more), *rows])
    return path


def test_a_copy_that_comes_later_does_not_bring_the_row_of_what_it_was_made_from_back(
    tmp_path: Path, wwt_home: Path
) -> None:
    rollout(tmp_path / "in", THREAD, legacy("비둘기자리 서버는 어디 있나요?", "코끼리별에 있습니다."))
    run(wwt_home, tmp_path / "in", distil=False)
    forgotten(wwt_home, THREAD)
    rollout(tmp_path / "in", OTHER, legacy("물떼새길은 어디인가요?", "여기입니다."), forked_from_id=THREAD)
    run(wwt_home, tmp_path / "in", distil=False)
    assert sessions_of(wwt_home) == [OTHER]
    assert left(wwt_home) == []


def test_a_subagent_with_an_id_of_its_own_that_was_not_archived_yet_stays_away_with_its_session(
    tmp_path: Path, wwt_home: Path
) -> None:
    rollout(tmp_path / "in", THREAD, legacy("비둘기자리 서버는 어디 있나요?", "코끼리별에 있습니다."))
    run(wwt_home, tmp_path / "in", distil=False)
    forgotten(wwt_home, THREAD)
    spawned = {"source": {"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "depth": 1}}}}
    said = legacy("코끼리별까지 조사해 주세요", "조사했습니다.")
    rollout(tmp_path / "in", OTHER, said, **spawned)
    assert run(wwt_home, tmp_path / "in", distil=False).files_read == 1
    assert sessions_of(wwt_home) == []
    later = legacy("그 뒤의 말", "그 뒤의 답입니다.")
    for number, row in enumerate(later):
        row["timestamp"] = LATER.format(number)
    rollout(tmp_path / "in", OTHER, [*said, *later], **spawned)
    assert run(wwt_home, tmp_path / "in", distil=False).turns_added > 0
    assert sessions_of(wwt_home) == [OTHER]
    assert left(wwt_home) == []


def subagent(folder: Path, name: str) -> None:
    made = Claude(A, prefix=f"{name}-")
    made.say("비둘기자리 서버를 조사해 주세요", isSidechain=True, agentId=name)
    made.answer("코끼리별까지 조사했습니다.", isSidechain=True, agentId=name)
    made.write(folder / A / "subagents", f"agent-{name}.jsonl")


def test_subagents_go_with_their_session_and_stay_away(
    tmp_path: Path, wwt_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    folder = tmp_path / "claude" / "projects" / "-home-u-shop"
    talk().write(folder)
    subagent(folder, "x1")
    run(wwt_home, distil=False)
    assert sessions_of(wwt_home) == [A, f"{A}/x1"]
    assert forgotten(wwt_home, A).sessions == 2
    subagent(folder, "x2")
    reread(monkeypatch)
    assert (run(wwt_home, distil=False).turns_added, sessions_of(wwt_home)) == (0, [])
    assert left(wwt_home) == []


# --- which sessions ---


@pytest.fixture
def several(tmp_path: Path, wwt_home: Path) -> Path:
    for number, (folder, day) in enumerate([("shop", 1), ("shop", 9), ("shop2", 1)], 1):
        made = Claude(f"{number:08d}-0000-4000-8000-000000000001", cwd=f"/home/u/{folder}", prefix=f"{number}-")
        made.say("질문입니다", timestamp=f"2026-02-0{day}T00:00:00Z")
        made.write(tmp_path / "in")
    timeless = Claude("00000004-0000-4000-8000-000000000001", prefix="4-")
    timeless.say("질문입니다")
    timeless.rows[0].pop("timestamp")
    timeless.write(tmp_path / "in")
    claw = OpenClaw("00000005-0000-4000-8000-000000000001")
    claw.say("질문입니다")
    claw.write(tmp_path / "in")
    run(wwt_home, tmp_path / "in", distil=False)
    return wwt_home


FEBRUARY_5 = parse_time("2026-02-05T00:00:00Z")


@pytest.mark.parametrize(
    ("wish", "chosen"),
    [
        ({"before": FEBRUARY_5}, {1, 3}),
        ({"project": "/home/u/shop"}, {1, 2, 4, 5}),
        ({"project": "/home/u/shop", "before": FEBRUARY_5}, {1}),
        ({"agent": "openclaw"}, {5}),
        ({"agent": "openclaw", "before": FEBRUARY_5}, set()),
        ({"sessions": ("00000004",)}, {4}),
        ({"sessions": ("claude-code:00000002", "00000001")}, {1, 2}),
        ({"sessions": ("00000002",), "before": FEBRUARY_5}, set()),
    ],
)
def test_filters_combine(several: Path, wish: dict[str, Any], chosen: set[int]) -> None:
    home = Home.open()
    if "project" in wish:
        wish = {**wish, "project": home.reader.project_of_paths([wish["project"]])}
    assert {int(row.external_id[:8]) for row in forget.plan(home, forget.Wish(**wish)).chosen} == chosen


@pytest.mark.parametrize(
    ("name", "key"), [("0000", "forget.ambiguous"), ("ffff0000", "forget.unknown"), ("", "forget.unknown")]
)
def test_a_name_that_is_unclear_is_refused(several: Path, name: str, key: str) -> None:
    with pytest.raises(WwtError) as caught:
        forget.plan(Home.open(), forget.Wish((name,)))
    assert (caught.value.key, caught.value.exit_code) == (key, 1)


def test_a_session_that_is_forgotten_already_is_no_mistake(several: Path) -> None:
    forgotten(several, "00000001")
    assert forget.plan(Home.open(), forget.Wish(("00000001",))).gone == ("00000001",)


def test_looking_changes_nothing(root: Path) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and "archive.db-" not in path.name}
    seen = forget.plan(Home.open(root), forget.Wish((A,)))
    assert (seen.turns, seen.findings, seen.entries, seen.backups) == (7, 2, 1, 1)
    assert {path: path.read_bytes() for path in before} == before


# --- at the same time ---


def test_a_session_forgotten_while_it_is_mined_is_not_staged(
    tmp_path: Path, wwt_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk().write(tmp_path / "in")
    _while_mining(monkeypatch, lambda: forgotten(wwt_home, A))
    assert run(wwt_home, tmp_path / "in", finished=True).candidates_added == 0
    assert list((wwt_home / "staging").glob("*.json")) == []
    assert left(wwt_home) == []


def test_a_deleted_session_forgotten_while_it_is_buried_is_not_staged(
    tmp_path: Path, wwt_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = OpenClaw()
    made.say("두루미길의 재시도 횟수는 3으로 고정하자")
    made.answer("네, 두루미길의 재시도 횟수를 3으로 고정했습니다.")
    path = made.write(tmp_path / "in")
    run(wwt_home, tmp_path / "in", distil=False)
    path.rename(path.with_name(path.name + ".deleted.2026-03-03T05-00-00.000Z"))
    _while_mining(monkeypatch, lambda: forgotten(wwt_home, made.session))
    assert run(wwt_home, tmp_path / "in").candidates_added == 0
    assert run(wwt_home, tmp_path / "in").candidates_added == 0
    assert left(wwt_home) == []


def _while_mining(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    mine = distil.mine

    def slow(*arguments: Any, **more: Any) -> Any:
        found = mine(*arguments, **more)
        assert found
        monkeypatch.setattr(distil, "mine", mine)
        act()
        return found

    monkeypatch.setattr(distil, "mine", slow)


@pytest.mark.parametrize("move", [Move.ACCEPT, Move.REJECT])
def test_a_finding_on_screen_while_its_session_is_forgotten_is_decided_no_more(root: Path, move: Move) -> None:
    home = Home.open(root)
    [on_screen] = [w for w in _waiting(home) if w.header.source_session == A]
    forgotten(root, A)
    assert promote.decide(home.desk, on_screen, move).decided is None
    assert left(root) == []


def test_an_acceptance_that_is_taken_back_meanwhile_does_not_bring_its_finding_back(root: Path) -> None:
    home = Home.open(root)
    [waits] = [w for w in _waiting(home) if w.header.source_session == A]
    done = promote.decide(home.desk, waits, Move.REJECT)
    forgotten(root, A)
    promote.undo(home.desk, done.decided, done.waiting)
    assert left(root) == []


NEXT = (("archive",), ("undo",), ("forget", A, "--yes"), ("review", "--list", "--all"))

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked from one that is loaded")


@needs_fork
def test_forgetting_beside_archivers_and_readers_ends_clean(
    processes: Server, stored: Path, root: Path, tmp_path: Path
) -> None:
    growing = Claude("cccccccc-0000-4000-8000-000000000003", prefix="c-")
    for number in range(30):
        growing.say(f"질문 {number}번")
        growing.answer(f"답 {number}번")
    growing.write(tmp_path / "more", age_minutes=60)
    started = [
        processes.start("archive", str(tmp_path / "more"), str(stored / "in"), home=root),
        processes.start("forget", A, "--yes", home=root),
        processes.start("search", "결제", "--all", "--json", home=root),
        processes.start("review", "--list", "--all", home=root),
        processes.start("archive", str(stored / "in"), home=root),
    ]
    for one in started:
        done = one.wait()
        assert done.code == 0, done
    assert processes.run("archive", str(stored / "in"), home=root).code == 0
    assert left(root) == []
    assert sessions_of(root) == [B, growing.session]
    assert standing_of(Home.open(root).index).rows == standing_of(Home.open(root).index).words


@needs_fork
def test_forgetting_killed_anywhere_is_completed_by_the_next_command_that_writes(
    processes: Server, root: Path, tmp_path: Path
) -> None:
    steps = processes.steps("forget", A, "--yes", home=copied(root, tmp_path / "count"))
    chosen = sorted({1, steps, *random.Random(1).sample(range(2, steps), 7)})
    for step, command in zip(chosen, cycle(NEXT), strict=False):
        home = copied(root, tmp_path / "killed")
        assert processes.run("forget", A, "--yes", home=home, kill_at=step).code == -signal.SIGKILL
        begun = sessions_of(home) == [B]
        done = processes.run(*command, home=home)
        assert done.code == 0, (step, done)
        assert (left(home) == []) is (begun or command[0] == "forget"), step
        assert rows(home, "SELECT count(*) FROM forgotten WHERE due") == [(0,)]
        assert rows(home, "SELECT count(*) FROM meta WHERE key = 'erase_due'") == [(0,)]
        shutil.rmtree(home)


def test_while_another_process_holds_the_index_the_rest_is_done_and_the_next_run_goes_on(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "PATIENCE", 0.1)
    with Home.open(root).index.derived.lock() as held:
        assert held
        assert not forgotten(root, A).complete
        assert {file.split("/")[0] for _, file in left(root)} <= {"index", "words"}
        assert left(root)
    assert erase.finish(Home.open(root))
    assert left(root) == []


def test_the_tombstones_outlive_the_rows(root: Path) -> None:
    forgotten(root, A)
    with Home.open(root).database.transaction() as tx:
        assert forgetting.due(tx) == {}
    [(agent, session, up_to)] = rows(root, "SELECT agent, external_id, up_to FROM forgotten")
    assert (agent, session, abs(up_to - now_ms()) < 60_000) == ("claude-code", A, True)

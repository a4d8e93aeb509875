import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staging import atomic
from staging.documents import Broken, Document, Queue, decode, encode
from store.records import SafeText
from tests.staging.factories import candidate, desk_at, document, redact, stage, summaries, waits

NAME = Queue.name_for("claude-code", "s1")


def path_of(queue: Queue) -> Path:
    return queue.folder / NAME


def edit_json(path: Path, change: str, to: str) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(change, to), encoding="utf-8")


def test_a_document_reads_as_a_person_expects(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("파일 쓰기 전에 tmp에 쓰고 rename한다", tags=("bm25", "잠금")), status="deleted")
    text = path_of(desk.queue).read_text(encoding="utf-8")
    raw = json.loads(text)
    assert list(raw)[:7] == ["archived_at", "source_session", "source_status", "agent", "project", "schema", "entries"]
    assert list(raw["entries"][0])[:4] == ["id", "type", "summary", "detail"]
    assert (raw["source_status"], raw["entries"][0]["tags"]) == ("deleted", ["bm25", "잠금"])
    assert "tmp에 쓰고" in text and text.endswith("}\n") and '\n  "entries"' in text


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
def test_only_the_owner_may_read_the_queue(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    assert path_of(desk.queue).stat().st_mode & 0o777 == 0o600
    assert desk.queue.folder.stat().st_mode & 0o777 == 0o700


def test_distilling_again_changes_no_byte(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate(), candidate("포트는 8080을 쓴다"))
    before = path_of(desk.queue).stat()
    again = stage(desk, candidate(), candidate("포트는 8080을 쓴다"))
    after = path_of(desk.queue).stat()
    assert (again.added, again.kept) == (0, 2)
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_keys_of_a_persons_own_survive_a_rewrite_redacted(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    token = "ghp_" + "Z9x" * 12
    edit_json(path_of(desk.queue), '"schema": 1', f'"schema": 1, "note": "later, see {token}"')
    edit_json(path_of(desk.queue), '"type": "decision"', '"type": "decision", "stars": 3')
    stage(desk, candidate("두 번째 결정은 이것이다", turn="t2"), candidate())
    raw = json.loads(path_of(desk.queue).read_text(encoding="utf-8"))
    assert raw["note"].startswith("later, see [secret:") and token not in json.dumps(raw)
    assert len(raw["entries"]) == 2


def test_what_a_person_edited_is_kept_and_what_is_no_longer_mined_goes(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("포트는 8080을 쓴다"), candidate("로그는 stderr로 보낸다"))
    edit_json(path_of(desk.queue), '"summary": "포트는 8080을 쓴다"', '"summary": "포트는 8081을 쓴다"')
    stage(desk, candidate("이름은 snake_case로 쓴다"))
    assert sorted(summaries(waits(desk))) == ["이름은 snake_case로 쓴다", "포트는 8081을 쓴다"]


def test_an_entry_deleted_by_hand_stays_away_until_it_is_said_anew(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    both = (candidate("포트는 8080을 쓴다"), candidate("로그는 stderr로 보낸다"))
    stage(desk, *both)
    raw = json.loads(path_of(desk.queue).read_text(encoding="utf-8"))
    del raw["entries"][0]
    path_of(desk.queue).write_text(json.dumps(raw), encoding="utf-8")
    stage(desk, *both)
    stage(desk, *both)
    assert summaries(waits(desk)) == ["로그는 stderr로 보낸다"]
    stage(desk, candidate("포트는 8080을 쓴다", turn="t9"), both[1])
    assert len(waits(desk)) == 2


def test_deleting_every_entry_by_hand_is_remembered_after_the_document_is_gone(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    raw = json.loads(path_of(desk.queue).read_text(encoding="utf-8"))
    path_of(desk.queue).write_text(json.dumps({**raw, "entries": []}), encoding="utf-8")
    stage(desk, candidate())
    stage(desk, candidate())
    assert waits(desk) == () and not path_of(desk.queue).exists()


def test_an_entry_written_by_hand_needs_a_type_and_a_summary_only(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    desk.queue.folder.mkdir(parents=True)
    hand = {"entries": [{"type": "pattern", "summary": "배포 전에 백업", "tags": "배포, DB"}]}
    (desk.queue.folder / "mine.json").write_text(json.dumps(hand), encoding="utf-8")
    (one,) = waits(desk)
    assert (one.item.tags, one.item.edited, bool(one.item.id)) == (("배포", "DB"), True, True)


def test_a_secret_typed_into_a_document_is_masked_on_load(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    token = "ghp_" + "Z9x" * 12
    edit_json(path_of(desk.queue), '"detail": ""', f'"detail": "token {token}"')
    (one,) = waits(desk)
    assert token not in one.item.detail and isinstance(one.item.detail, SafeText) and one.item.edited


BROKEN = [
    (b"", 1),
    (b'{"schema": 1,\n "entries": [{"type": "decision", "summary": "\xec\x8a\xb9', 2),
    (b'{"entries": [\n  {"type": "decision", "summary": "ok"},\n  {"type": "idea", "summary": "x"}]}', 3),
    (b'{"entries": [\n  {"type": "decision", "summary": "ok",\n   "tags": [1]}]}', 3),
    (b'{"entries": [{"type": "decision",\n "summary": "  "}]}', 2),
    (b'{"entries": [{"type": "decision", "summary": "x",\n "confidence": NaN}]}', 2),
    (b'{"schema": 99}', 1),
    (b"[1, 2]", 1),
    (b"[" * 100_000, 1),
    (b"\xff\xfe{\x00}\x00", 1),
]


@pytest.mark.parametrize(("data", "line"), BROKEN)
def test_a_broken_document_is_named_by_line_and_left_alone(wwt_home: Path, data: bytes, line: int) -> None:
    desk = desk_at(wwt_home)
    desk.queue.folder.mkdir(parents=True)
    path_of(desk.queue).write_bytes(data)
    stage(desk, candidate("다른 세션의 결정을 적는다"), session="s2")
    (broken,) = desk.queue.read().broken
    assert (broken.path.name, broken.line) == (NAME, line) and broken.reason
    assert len(waits(desk)) == 1
    stage(desk, candidate())
    assert path_of(desk.queue).read_bytes() == data
    assert (desk.queue.folder / NAME.replace(".json", ".new.json")).exists() and len(waits(desk)) == 2


def test_a_column_points_at_the_fault() -> None:
    found = decode(Path("x.json"), b'{"entries": [{"type": "idea", "summary": "x"}]}', redact)
    assert isinstance(found, Broken) and (found.line, found.column) == (1, 23)


def test_a_repaired_document_takes_over_from_its_stand_in(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("포트는 8080을 쓴다"))
    good = path_of(desk.queue).read_bytes()
    path_of(desk.queue).write_bytes(good[:-30])
    stage(desk, candidate("포트는 8080을 쓴다"), candidate("로그는 stderr로 보낸다"))
    path_of(desk.queue).write_bytes(good)
    stage(desk, candidate("포트는 8080을 쓴다"), candidate("로그는 stderr로 보낸다"))
    assert sorted(summaries(waits(desk))) == ["로그는 stderr로 보낸다", "포트는 8080을 쓴다"]
    assert [p.name for p in desk.queue.folder.glob("*.json")] == [NAME]


@pytest.mark.parametrize(
    "session", ["", "..", "../../etc/passwd", "CON", "가" * 300, 'a/b:c*?"<>|', "x\u202ey", "\ud800"]
)
def test_document_names_are_valid_everywhere(session: str) -> None:
    name = Queue.name_for("claude-code", session)
    assert len(name.encode("utf-8", "strict")) < 240
    assert not set('/\\:*?"<>|\0\u202e').intersection(name) and not name.startswith(".") and name.endswith(".json")


def test_sessions_of_one_slug_have_documents_of_their_own() -> None:
    assert Queue.name_for("a", "x/y") != Queue.name_for("a", "x-y") != Queue.name_for("b", "x-y")


def test_two_processes_lose_no_entry(wwt_home: Path) -> None:
    desk_at(wwt_home)
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from staging.documents import Queue, Document, item_of\n"
        "from tests.staging.factories import candidate, redact, source\n"
        "queue = Queue(Path(sys.argv[1]) / 'staging', redact)\n"
        "for n in range(20):\n"
        "    item = item_of(candidate(f'writer {sys.argv[2]} says number {n}'))\n"
        "    queue.change('shared.json', lambda old: (old or Document(agent='x', source_session='s')).with_items([item]))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(wwt_home), who]) for who in ("a", "b")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    found = Queue(wwt_home / "staging", redact).get("shared.json")
    assert isinstance(found, Document) and len(found.entries) == 40


def test_an_editor_that_saves_meanwhile_is_not_overwritten(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate("포트는 8080을 쓴다"), candidate("로그는 stderr로 보낸다"))
    calls = []

    def edit(old: Document | None) -> Document | None:
        assert old is not None
        calls.append(old)
        if len(calls) == 1:
            edit_json(path_of(desk.queue), "로그는 stderr로 보낸다", "로그는 파일로 보낸다")
        return old.without(lambda item: item.summary.startswith("포트"))

    desk.queue.change(NAME, edit)
    assert summaries(waits(desk)) == ["로그는 파일로 보낸다"] and len(calls) == 2


def test_a_crash_before_the_rename_leaves_the_old_document(wwt_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    before = path_of(desk.queue).read_bytes()

    def killed(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic.os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        stage(desk, candidate(), candidate("새 결정은 이렇게 한다"))
    monkeypatch.undo()
    assert path_of(desk.queue).read_bytes() == before
    stage(desk, candidate(), candidate("새 결정은 이렇게 한다"))
    assert len(waits(desk)) == 2 and not list(desk.queue.folder.glob(".*.tmp"))


def test_an_empty_or_absent_folder_has_nothing_to_read(tmp_path: Path) -> None:
    assert Queue(tmp_path / "none", redact).read().staged == ()


words = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=40).filter(lambda t: t.strip())


@given(words, words, st.lists(words, max_size=3))
def test_what_is_written_is_read_back(summary: str, detail: str, tags: list[str]) -> None:
    made = candidate(redact(summary) or "x", detail=redact(detail), tags=[redact(t) for t in tags])
    if not made.summary.strip():
        return
    from staging.documents import item_of

    first = Document(agent="a", source_session="s", entries=(item_of(made),))
    second = decode(Path("x.json"), encode(first), redact)
    assert isinstance(second, Document) and second.entries == first.entries and not second.entries[0].edited


def test_a_confidence_is_written_as_it_was_mined(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate(confidence=0.83))
    assert document(desk).entries[0].confidence == 0.83


def test_forgetting_a_session_leaves_none_of_its_documents(wwt_home: Path) -> None:
    desk = desk_at(wwt_home)
    stage(desk, candidate())
    path_of(desk.queue).write_bytes(b"{broken")
    stage(desk, candidate())
    stage(desk, candidate("다른 세션의 결정이다"), session="s2")
    assert desk.queue.forget("claude-code", "s1") == 2
    assert summaries(waits(desk)) == ["다른 세션의 결정이다"] and desk.queue.read().broken == ()

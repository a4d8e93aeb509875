from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.sources.openclaw import OpenClaw
from archiver.transcript import About, Found, Progress, Title
from store.records import Role, State, Status
from tests.archiver.sources.transcripts import (
    Row,
    encode,
    entry,
    header,
    in_two_pieces,
    outcomes,
    parse,
    said,
    turns,
    write,
)

CLAW = OpenClaw()
WHEN = "2026-03-04T04-00-00.000Z"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "S1.jsonl"


def about(events: list[Any]) -> About:
    return next(event for event in events if isinstance(event, About))


def test_archives_are_found_and_copies_are_not(tmp_path: Path) -> None:
    folder = tmp_path / "main" / "sessions"
    kept = ["S1.jsonl", f"S1.jsonl.reset.{WHEN}", f"S2.jsonl.deleted.{WHEN}.zst", "S3-topic-42.jsonl"]
    beside = [
        "S1.checkpoint.0f4b2c3d-4e5f-4061-8071-2a3b4c5d6e7f.jsonl",
        "S1.trajectory.jsonl",
        "S1.trajectory-path.json",
        "S1.jsonl.lock",
        "sessions.json",
        "sessions.json.bak.1",
        "S1.jsonl.full.bak",
        "S3.jsonl.bak.1",
        f"S3.jsonl.bak.{WHEN}",
        "S1.archival-7.tmp",
    ]
    for name in kept + beside:
        write(folder / name, header())
    found = {one.path.name: (one.segment, one.session_status) for one in CLAW.discover(tmp_path)}
    assert found == {
        kept[0]: ("live", Status.ACTIVE),
        kept[1]: ("reset", Status.RESET),
        kept[2]: ("deleted", Status.DELETED),
        kept[3]: ("live", Status.ACTIVE),
    }


def test_segments_of_a_session_share_its_id(tmp_path: Path) -> None:
    reset = write(tmp_path / f"S1.jsonl.reset.{WHEN}", header(), entry("1", "user", "리셋 전"))
    live = write(tmp_path / "S1.jsonl", header(), entry("1", "user", "리셋 후"))
    old, new = parse(CLAW, reset)[0], parse(CLAW, live)[0]
    assert about(old).external_id == about(new).external_id == "S1"
    assert not turns(old).keys() & turns(new).keys()


@pytest.mark.parametrize(
    ("name", "rows", "session"),
    [
        ("file.jsonl", [header("head")], "head"),
        (f"file.jsonl.reset.{WHEN}", [], "file"),
        ("file-topic-9.jsonl", [header("head")], "file-topic-9"),
    ],
)
def test_the_session_is_named_by_its_header_or_its_file(
    tmp_path: Path, name: str, rows: list[Row], session: str
) -> None:
    assert about(parse(CLAW, write(tmp_path / name, *rows, entry("1", "user", "질문")))[0]).external_id == session


def test_compressed_archives_are_read(tmp_path: Path) -> None:
    path = tmp_path / f"S1.jsonl.reset.{WHEN}.zst"
    path.write_bytes(zstandard.compress(encode([header(), entry("1", "user", "찾을 말")])))
    assert said(CLAW, path) == [("user", "찾을 말")]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("[Wed 2026-02-18 11:21 GMT+1] 배포해줘", "배포해줘"),
        ("[Telegram 홍 id:7 +5m 2026-01-02 11:21 KST] 배포했어?\n[message_id: 12]", "배포했어?"),
        ("[Slack kim 2026-01-02] [Wed 2026-02-18 11:21 GMT+1] hi", "hi"),
        ("[2026-01-02] 회의록 정리해줘", "[2026-01-02] 회의록 정리해줘"),
        ("[중요] 이것부터", "[중요] 이것부터"),
        ("System: [2026-01-02 10:00:00] Node connected\n배포해줘", "배포해줘"),
        ('Conversation info (untrusted metadata):\n```json\n{"a": 1}\n```\n\n안녕', "안녕"),
        ("<!-- wwt:recall -->옛 결정<!-- /wwt:recall -->배포해줘", "배포해줘"),
    ],
)
def test_envelopes_are_cut_from_what_the_person_wrote(path: Path, text: str, kept: str) -> None:
    assert said(CLAW, write(path, header(), entry("1", "user", text))) == [("user", kept)]


def test_heartbeats_mirrors_and_silent_answers_are_no_turns(path: Path) -> None:
    write(
        path,
        header(),
        entry("1", "user", "배포했어?"),
        entry("2", "assistant", "네, 배포 완료", "1", provider="x", model="y"),
        entry("3", "assistant", "네, 배포 완료", "2", provider="openclaw", model="delivery-mirror"),
        entry("4", "user", "[Wed 2026-02-18 11:21 GMT+1] Read HEARTBEAT.md if it exists.", "3"),
        entry("5", "assistant", "NO_REPLY", "4"),
        entry("6", "assistant", "네, 배포 완료", "5"),
        entry("7", "user", "Read HEARTBEAT.md if it exists. If nothing needs attention, reply HEARTBEAT_OK.", "6"),
        entry("8", "assistant", "**HEARTBEAT_OK**", "7"),
    )
    assert said(CLAW, path) == [("user", "배포했어?"), ("assistant", "네, 배포 완료")]


def test_summaries_and_context_are_no_speech(path: Path) -> None:
    write(
        path,
        header(),
        entry("1", "user", "질문"),
        {"type": "compaction", "id": "2", "parentId": "1", "summary": "요약", "firstKeptEntryId": "1"},
        {"type": "branch_summary", "id": "3", "parentId": "2", "summary": "가지 요약"},
        {"type": "custom_message", "id": "4", "parentId": "3", "content": "runtime context", "customType": "x"},
        {"type": "custom", "id": "5", "parentId": "4", "data": {}},
        entry("6", "system", "system words", "5"),
        {"type": "session_info", "id": "7", "parentId": "6", "name": "배포 이야기"},
    )
    events, _ = parse(CLAW, path)
    assert [turn.text for turn in turns(events).values()] == ["질문"]
    assert [(event.rank, event.text) for event in events if isinstance(event, Title)] == [
        (0, "질문"),
        (3, "배포 이야기"),
    ]


def test_a_branch_left_for_another_prompt_is_abandoned(path: Path) -> None:
    write(
        path,
        header(),
        entry("1", "user", "시작"),
        entry("2", "assistant", "네", "1"),
        entry("3", "user", "몽고로", "2"),
        entry("4", "assistant", "몽고 적용", "3"),
        {"type": "branch_summary", "id": "5", "parentId": "2", "summary": "x"},
        entry("6", "user", "SQLite로", "5"),
    )
    abandoned = [turn.text for turn in turns(parse(CLAW, path)[0]).values() if turn.state is State.ABANDONED]
    assert abandoned == ["몽고로", "몽고 적용"]


def test_lines_without_ids_are_read_in_order_and_repeats_are_kept(path: Path) -> None:
    write(path, {"type": "session", "id": "S1", "cwd": "/srv"}, *(entry(None, "user", "계속") for _ in range(3)))
    held = turns(parse(CLAW, path)[0])
    assert [(turn.text, turn.state) for turn in held.values()] == [("계속", State.LIVE)] * 3


def tool(name: str, given: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "toolCall", "id": "c1", "name": name, "arguments": given}]


@pytest.mark.parametrize(
    ("name", "given", "more", "told"),
    [
        ("exec", {"command": "npm test"}, {}, [("test", True, "npm test")]),
        ("exec", {"command": "npm test"}, {"isError": True}, [("test", False, "npm test")]),
        ("exec", {"command": "npm test"}, {"details": {"exitCode": 1}}, [("test", False, "npm test")]),
        ("exec", {"command": "npm test"}, {"details": {"status": "running"}}, []),
        ("edit", {"path": "a.py"}, {}, [("files", True, "a.py")]),
        ("write", {"path": "b.py"}, {}, [("files", True, "b.py")]),
        ("mcp__wwt__search", {"command": "npm test"}, {"isError": True}, []),
        ("read", {"path": "c.py"}, {}, []),
    ],
)
def test_tool_records_prove_outcomes(
    path: Path, name: str, given: dict[str, Any], more: dict[str, Any], told: list[Any]
) -> None:
    write(
        path,
        header(),
        entry("1", "assistant", tool(name, given)),
        entry("2", "toolResult", "out", "c1", toolCallId="c1", toolName=name, **more),
    )
    assert outcomes(parse(CLAW, path)[0]) == told


def test_failed_calls_keep_their_error(path: Path) -> None:
    output = "\n".join(["start", "middle", "error: 파일이 없습니다"])
    write(
        path,
        header(),
        entry("1", "assistant", tool("exec", {"command": "x"})),
        entry("2", "toolResult", output, "1", toolCallId="c1", isError=True),
    )
    (error,) = turns(parse(CLAW, path)[0]).values()
    assert (error.role, error.text) == (Role.TOOL, "error: 파일이 없습니다")


def test_keys_name_session_and_entry(path: Path) -> None:
    write(path, header("0f4b2c3d"), entry("30c6a75f", "user", "질문"))
    assert list(turns(parse(CLAW, path)[0])) == ["0f4b2c3d/30c6a75f"]


def test_sessions_in_our_own_home_yield_nothing(path: Path, wwt_home: Path) -> None:
    assert parse(CLAW, write(path, header(cwd=str(wwt_home)), entry("1", "user", "x")))[0] == []


def test_files_are_known_by_content_then_name(tmp_path: Path) -> None:
    data = encode([header(), entry("1", "user", "x")])
    reset = CLAW.sniff(tmp_path / f"S1.jsonl.reset.{WHEN}", data)
    renamed = CLAW.sniff(tmp_path / "2026_가나다.txt", data)
    assert reset is not None and reset.segment == "reset"
    assert renamed is not None and renamed.segment == "live"
    assert CLAW.sniff(tmp_path / f"S1.jsonl.bak.{WHEN}", data) is None
    assert CLAW.sniff(tmp_path / "a.jsonl", encode([{"type": "message", "role": "user", "content": "x"}])) is None


def histories() -> st.SearchStrategy[list[dict[str, Any]]]:
    def build(seed: int) -> list[dict[str, Any]]:
        dice = random.Random(seed)
        rows: list[dict[str, Any]] = [header()]
        ids: list[str] = []
        for n in range(dice.randint(1, 14)):
            one = f"{n:04x}{seed % 10**4:04d}"
            parent = dice.choice([*ids, ids[-1], ids[-1], None, "nowhere", f"c{n - 1}"]) if ids else None
            text = dice.choice(["계속", f"말 {n}", "Read HEARTBEAT.md if it exists."])
            rows.append(
                dice.choice(
                    [
                        entry(one, "user", text, parent, n),
                        entry(None, "user", text, None, n),
                        entry(one, "assistant", text, parent, n),
                        entry(
                            one,
                            "assistant",
                            [{"type": "toolCall", "id": f"c{n}", "name": "exec", "arguments": {"command": "make"}}],
                            parent,
                            n,
                        ),
                        entry(one, "toolResult", "error x", parent, n, toolCallId=f"c{n - 1}", isError=True),
                        {"type": "branch_summary", "id": one, "parentId": parent},
                    ]
                )
            )
            ids.append(one)
        return rows

    return st.integers(0, 10**9).map(build)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories(), st.data())
def test_reading_a_file_in_two_pieces_gives_what_reading_it_whole_gives(
    path: Path, rows: list[Row], data: st.DataObject
) -> None:
    whole = encode(rows)
    path.write_bytes(whole)
    wanted = turns(parse(CLAW, path)[0])
    cut = data.draw(st.sampled_from([0] + [at + 1 for at, byte in enumerate(whole) if byte == 10]))
    assert in_two_pieces(CLAW, path, whole, cut) == wanted


def test_a_deleted_file_without_anything_in_it_still_names_its_session(tmp_path: Path) -> None:
    path = tmp_path / f"S9.jsonl.deleted.{WHEN}"
    path.touch()
    deleted = Found("openclaw", path, "deleted", Status.DELETED)
    assert list(CLAW.parse(deleted, Progress(), final=True)) == [About("S9")]
    assert parse(CLAW, path)[0] == []

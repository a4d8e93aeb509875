from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.sources.openclaw import OpenClaw
from archiver.sources.pi import Pi
from archiver.transcript import About, Found, Progress, Title, Upsert
from store.records import Role, State
from tests.archiver.sources.test_openclaw import tool
from tests.archiver.sources.transcripts import (
    Counted,
    Row,
    encode,
    entry,
    header,
    in_two_pieces,
    outcomes,
    parse,
    said,
    stamp,
    turns,
    unreadable,
    write,
)

PI = Pi()
UUID = "019e19b4-eb48-746a-aa6b-8dfcfa37954b"
NAME = f"2026-03-04T05-06-00-000Z_{UUID}.jsonl"
FIRST = {
    "type": "session",
    "id": UUID,
    "timestamp": stamp(0),
    "cwd": "/srv/shop",
    "provider": "p",
    "modelId": "m",
    "thinkingLevel": "off",
}
"""A header of the first version."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "--srv-shop--" / NAME


def about(events: list[Any]) -> About:
    return next(event for event in events if isinstance(event, About))


def states(path: Path) -> dict[str, State]:
    return {turn.text: turn.state for turn in turns(parse(PI, path)[0]).values()}


# --- where they lie ---


def test_sessions_lie_in_a_folder_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path.home() / ".pi" / "agent" / "sessions"
    write(root / "--srv-shop--" / NAME, header(UUID))
    write(root / "--srv-shop--" / "notes.txt", b"x")
    assert PI.roots() == [root]
    assert [found.path for found in PI.discover(root)] == [root / "--srv-shop--" / NAME]


def test_the_environment_says_where_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "agent"))
    assert PI.roots() == [tmp_path / "agent" / "sessions"]
    monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(tmp_path / "flat"))
    assert PI.roots() == [tmp_path / "flat"]
    path = write(tmp_path / "flat" / NAME, header(UUID))
    assert [found.path for found in PI.discover(tmp_path / "flat")] == [path]


def test_omps_sessions_are_read_too(tmp_path: Path) -> None:
    root = Path.home() / ".omp" / "agent" / "sessions"
    path = write(
        root / "-shop" / NAME,
        {"type": "title", "title": "배포 이야기", "pad": " " * 40},
        header(UUID),
        entry("1", "user", "질문"),
    )
    assert root in PI.roots()
    assert [found.path for found in PI.discover(root)] == [path]
    events = parse(PI, path)[0]
    assert [(event.rank, event.text) for event in events if isinstance(event, Title)] == [
        (0, "질문"),
        (3, "배포 이야기"),
    ]


def test_a_subagents_file_lies_in_a_folder_named_for_the_session_above(tmp_path: Path) -> None:
    root = tmp_path / "sessions"
    above = root / "-shop" / NAME
    write(above, header(UUID), entry("1", "user", "질문"))
    rows = [header("sub"), entry("1", "user", "로그를 모아라"), entry("2", "assistant", "모았습니다", "1")]
    path = write(above.with_suffix("") / "Scout.jsonl", *rows)
    write(root / "-shop" / "elsewhere" / "x.jsonl", header("y"))
    assert {found.path for found in PI.discover(root)} == {above, path}
    events = parse(PI, path)[0]
    assert (about(events).is_subagent, about(events).parent) == (True, UUID)
    assert [(turn.role, turn.kind) for turn in turns(events).values()] == [
        (Role.SUBAGENT, "task"),
        (Role.SUBAGENT, "answer"),
    ]


# --- pi or OpenClaw ---


def sniffed(path: Path, *rows: Row) -> str | None:
    head = encode(rows)[:65536]
    return next((source.agent for source in (PI, OpenClaw()) if source.sniff(path, head)), None)


ASKED = entry("1", "user", "질문")
BASH = entry("2", "assistant", tool("bash", {"command": "ls"}), "1")


@pytest.mark.parametrize(
    ("name", "rows", "agent"),
    [
        (NAME, [header("S1"), ASKED], "pi"),
        ("--srv-shop--/renamed.jsonl", [header("S1"), ASKED], "pi"),
        (".pi/agent/sessions/x/renamed.jsonl", [header("S1"), ASKED], "pi"),
        (".omp/agent/sessions/x/renamed.jsonl", [header("S1"), ASKED], "pi"),
        ("agents/main/sessions/S1.jsonl", [header("S1"), ASKED, BASH], "openclaw"),
        (f"agents/main/sessions/{NAME}", [header(UUID), ASKED], "openclaw"),
        ("renamed.jsonl", [header(UUID), ASKED], "pi"),
        (f"{UUID}.jsonl", [header(UUID), ASKED], "openclaw"),
        (f"{UUID}.jsonl.reset.2026-03-04T04-00-00.000Z", [header(UUID), ASKED], "openclaw"),
        ("renamed.jsonl", [FIRST, entry(None, "user", "질문")], "pi"),
        ("renamed.jsonl", [header("S1"), ASKED, BASH], "pi"),
        ("renamed.jsonl", [header("S1"), entry("1", "bashExecution", "x", command="ls")], "pi"),
        ("renamed.jsonl", [header("S1"), ASKED], "openclaw"),
        ("renamed.jsonl", [header(UUID), entry("1", "user", "[Telegram 홍 2026-01-02] 배포했어?")], "openclaw"),
        ("renamed.jsonl", [header(UUID), entry("1", "user", "Sender: \u27e6openclaw:ctx\u27e7\nid=1\n\n배포했어?")], "openclaw"),
        ("renamed.jsonl", [header(UUID), ASKED, entry("2", "assistant", tool("exec", {}), "1")], "openclaw"),
        ("renamed.jsonl", [header(UUID), {"type": "custom", "customType": "openclaw.runtime-context"}, ASKED], "openclaw"),
        ("renamed.jsonl", [header(UUID), {"type": "custom", "customType": "model-snapshot"}, ASKED], "openclaw"),
        ("renamed.jsonl", [header(UUID), entry("2", "assistant", "네", provider="openclaw", model="delivery-mirror")], "openclaw"),
        ("renamed.jsonl", [{"type": "user", "sessionId": "S1", "message": {"role": "user"}}], None),
        ("renamed.jsonl", [{"role": "user", "content": "x"}], None),
    ],
)  # fmt: skip
def test_a_file_is_told_by_where_it_lies_and_by_what_is_in_it(
    tmp_path: Path, name: str, rows: list[Row], agent: str | None
) -> None:
    assert sniffed(tmp_path / name, *rows) == agent


def test_the_first_bytes_of_a_file_that_goes_on_are_enough(tmp_path: Path) -> None:
    rows = [
        header(UUID),
        entry("1", "user", "질문 " * 20_000),
        *(entry(str(n), "user", "x" * 500, str(n - 1)) for n in range(2, 300)),
    ]
    assert sniffed(tmp_path / "renamed.jsonl", *rows) == "pi"


# --- what was said ---


def test_there_are_no_envelopes_of_a_gateway(path: Path) -> None:
    told = [
        "[Wed 2026-02-18 11:21 GMT+1] 배포해줘",
        "HEARTBEAT_OK를 지워 줘",
        "System: [2026-01-02 10:00:00] 이라고 찍어 줘",
        "NO_REPLY",
    ]
    write(
        path,
        header(UUID),
        *(entry(f"0000000{n}", "user", text, f"0000000{n - 1}" if n else None, n) for n, text in enumerate(told)),
    )
    assert said(PI, path) == [("user", text) for text in told]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('<skill name="review" location="/s/SKILL.md">\nRules\n</skill>\n\n이 함수를 봐 줘', "이 함수를 봐 줘"),
        (
            '<file name="/srv/a.py">\nx = 1\n</file>\n<file name="/srv/b.py">\ny = 2\n</file>\n이 둘을 합쳐 줘',
            "이 둘을 합쳐 줘",
        ),
        ('설정에 <file name="a"> 라고 적어 줘', '설정에 <file name="a"> 라고 적어 줘'),
        ("<!-- wwt:recall -->옛 결정<!-- /wwt:recall -->배포해줘", "배포해줘"),
    ],
)
def test_what_programs_put_before_a_prompt_is_cut(path: Path, text: str, kept: str) -> None:
    assert said(PI, write(path, header(UUID), entry("1", "user", text))) == [("user", kept)]


def test_what_is_typed_at_the_shell_is_a_command(path: Path) -> None:
    rows = [
        header(UUID),
        entry("1", "bashExecution", "out", command="git status", exitCode=0),
        entry("2", "user", "/model gpt", "1"),
    ]
    held = turns(parse(PI, write(path, *rows))[0])
    assert [(turn.role, turn.kind, turn.text) for turn in held.values()] == [
        (Role.USER, "command", "git status"),
        (Role.USER, "command", "/model gpt"),
    ]


def test_summaries_custom_messages_and_labels_are_no_speech(path: Path) -> None:
    write(
        path,
        header(UUID),
        {"type": "model_change", "id": "a", "parentId": None, "provider": "p", "modelId": "m"},
        entry("b", "user", "질문", "a"),
        {"type": "compaction", "id": "c", "parentId": "b", "summary": "요약"},
        {"type": "custom_message", "id": "d", "parentId": "c", "content": "context", "customType": "x"},
        entry("e", "custom", "hook", "d"),
        entry("f", "branchSummary", "가지", "e"),
        {"type": "label", "id": "g", "parentId": "f", "targetId": "b", "label": "표"},
        {"type": "session_info", "id": "h", "parentId": "g", "name": "큐 이야기"},
    )
    events, _ = parse(PI, path)
    assert [(turn.text, turn.state) for turn in turns(events).values()] == [("질문", State.LIVE)]
    assert [event.text for event in events if isinstance(event, Title)] == ["질문", "큐 이야기"]


def test_tools_prove_outcomes_and_failed_ones_keep_their_error(path: Path) -> None:
    write(
        path,
        header(UUID),
        entry("1", "assistant", tool("bash", {"command": "pytest -q"})),
        entry("2", "toolResult", "E KeyError: 'id'", "1", toolCallId="c1", toolName="bash", isError=True),
        entry("3", "assistant", [{"type": "toolCall", "id": "c2", "name": "edit", "arguments": {"path": "a.py"}}], "2"),
        entry("4", "toolResult", "ok", "3", toolCallId="c2", toolName="edit", isError=False),
    )
    events, _ = parse(PI, path)
    assert outcomes(events) == [("test", False, "pytest -q"), ("files", True, "a.py")]
    assert [turn.text for turn in turns(events).values()] == ["E KeyError: 'id'"]


# --- branches ---


def test_the_path_from_the_last_entry_to_the_root_is_live(path: Path) -> None:
    write(
        path,
        header(UUID),
        entry("1", "user", "시작"),
        entry("2", "assistant", "네", "1"),
        entry("3", "user", "몽고로", "2"),
        entry("4", "assistant", "몽고 적용", "3"),
        {"type": "branch_summary", "id": "5", "parentId": "2", "summary": "x"},
    )
    live, left = State.LIVE, State.ABANDONED
    assert states(path) == {"시작": live, "네": live, "몽고로": left, "몽고 적용": left}


def test_an_answer_that_was_left_for_another_is_abandoned(path: Path) -> None:
    write(
        path,
        header(UUID),
        entry("1", "user", "질문"),
        entry("2", "assistant", "틀린 답", "1"),
        entry("3", "assistant", "맞는 답", "1"),
    )
    assert states(path)["틀린 답"] is State.ABANDONED


def test_a_first_prompt_that_was_edited_is_abandoned(path: Path) -> None:
    write(
        path, header(UUID), entry("1", "user", "오타"), entry("2", "assistant", "네", "1"), entry("3", "user", "바로")
    )
    assert states(path) == {"오타": State.ABANDONED, "네": State.ABANDONED, "바로": State.LIVE}


def test_a_lost_entry_leaves_what_came_before_it_live(path: Path) -> None:
    write(
        path,
        header(UUID),
        entry("1", "user", "하나"),
        entry("2", "assistant", "둘", "1"),
        b'{"type":"mess',
        entry("4", "user", "셋", "3"),
    )
    assert set(states(path).values()) == {State.LIVE}
    assert [line for line, _ in unreadable(parse(PI, path)[0])] == [4]


def test_entries_without_ids_are_one_line_of_talk(path: Path) -> None:
    write(path, FIRST, *(entry(None, "user", "계속", second=n) for n in range(3)))
    assert [turn.state for turn in turns(parse(PI, path)[0]).values()] == [State.LIVE] * 3


# --- the same conversation in two files ---


def test_a_newer_program_that_gives_ids_changes_no_key(path: Path) -> None:
    rows = [
        entry(None, "user", "계속", second=1),
        entry(None, "assistant", "네", second=2),
        entry(None, "user", "계속", second=3),
    ]
    before = turns(parse(PI, write(path, FIRST, *rows))[0])
    named = [row | {"id": f"0000000{n}", "parentId": f"0000000{n - 1}" if n else None} for n, row in enumerate(rows)]
    after = turns(
        parse(PI, write(path, FIRST | {"version": 3}, *named, entry("00000009", "user", "더", "00000002", 9)))[0]
    )
    assert list(before) == list(after)[:3] and len(after) == 4


@pytest.mark.parametrize("name", ["parentSession", "branchedFrom"])
@pytest.mark.parametrize("folder", ["--srv-shop--", "--srv-other--"])
def test_what_a_fork_took_over_has_the_keys_of_where_it_was_said(tmp_path: Path, name: str, folder: str) -> None:
    first = [entry("00000001", "user", "첫 질문", None, 1), entry("00000002", "assistant", "첫 답", "00000001", 2)]
    second = [entry("00000003", "user", "둘째", "00000002", 25)]
    a, b, c = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "abc")
    files = {session: tmp_path / folder / f"2026-03-04T05-06-00-000Z_{session}.jsonl" for session in (a, b)}
    write(files[a], header(a), *first)
    write(files[b], header(b, timestamp=stamp(20), **{name: f"/elsewhere/{files[a].name}"}), *first, *second)
    forked = header(c, timestamp=stamp(30), **{name: f"C:\\Users\\u\\{files[b].name}"})
    path = write(
        tmp_path / "--srv-shop--" / "c.jsonl",
        forked,
        *first,
        *second,
        entry("00000004", "user", "셋째", "00000003", 35),
    )
    events = parse(PI, path)[0]
    assert list(turns(events)) == [f"{a}/00000001", f"{a}/00000002", f"{b}/00000003", f"{c}/00000004"]
    assert about(events).parent == b


def test_a_fork_whose_origin_is_gone_still_names_it(path: Path) -> None:
    rows = [entry("00000001", "user", "첫 질문", None, 1), entry("00000002", "user", "둘째", "00000001", 40)]
    write(
        path,
        header(UUID, timestamp=stamp(30), parentSession="/gone/x_aaaaaaaa-0000-4000-8000-000000000000.jsonl"),
        *rows,
    )
    assert list(turns(parse(PI, path)[0])) == ["aaaaaaaa-0000-4000-8000-000000000000/00000001", f"{UUID}/00000002"]


# --- growth ---


def growths() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Trees as pi writes them: each entry hangs from the one before, but where the person went back."""

    def build(seed: int) -> list[dict[str, Any]]:
        dice = random.Random(seed)
        if dice.random() < 0.2:
            rows = [
                entry(None, dice.choice(["user", "assistant"]), dice.choice(["계속", f"말 {n}"]), second=n)
                for n in range(8)
            ]
            return [FIRST, *rows]
        rows, ids = [header(UUID)], [None]
        for n in range(dice.randint(1, 14)):
            one = f"{n:08x}"
            parent = dice.choice(ids) if dice.random() < 0.2 else ids[-1]
            call = [{"type": "toolCall", "id": f"c{n}", "name": "bash", "arguments": {"command": "make"}}]
            rows.append(
                dice.choice(
                    [
                        entry(one, "user", dice.choice(["계속", f"말 {n}"]), parent, n),
                        entry(one, "assistant", f"답 {n}", parent, n),
                        entry(one, "assistant", call, parent, n),
                        entry(one, "toolResult", "error x", parent, n, toolCallId=f"c{n - 1}", isError=True),
                        {"type": "branch_summary", "id": one, "parentId": parent, "summary": "x"},
                        {"type": "compaction", "id": one, "parentId": parent, "summary": "x"},
                    ]
                )
            )
            ids.append(one)
        return rows

    return st.integers(0, 10**9).map(build)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(growths(), st.data())
def test_reading_a_file_in_two_pieces_gives_what_reading_it_whole_gives(
    path: Path, rows: list[Row], data: st.DataObject
) -> None:
    whole = encode(rows)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(whole)
    wanted = turns(parse(PI, path)[0])
    cut = data.draw(st.integers(0, len(whole)))
    assert in_two_pieces(PI, path, whole, cut) == wanted


def test_growth_along_the_branch_is_read_alone(path: Path) -> None:
    write(path, header(UUID), entry("1", "user", "질문 " * 500))
    _, progress = parse(PI, path)
    more = encode([entry("2", "assistant", "답", "1")])
    path.write_bytes(path.read_bytes() + more)
    running = PI.parse(Found("pi", path), progress, final=False)
    assert [event.turn.text for event in running if isinstance(event, Upsert)] == ["답"]
    assert running.bytes_read == len(more)


# --- hostile input ---

ODD: list[Any] = [
    None,
    True,
    -1,
    1e308,
    "",
    "x",
    "\ud800",
    "a\x00b",
    [],
    [[]],
    {},
    [{"type": "text", "text": 7}],
    "9" * 30,
    {"type": "session"},
]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10**9))
def test_anything_in_any_field_is_events_or_a_fault(path: Path, seed: int) -> None:
    dice = random.Random(seed)
    rows: list[Any] = [
        header(UUID, parentSession="/x/P.jsonl"),
        entry("1", "user", "질문"),
        entry("2", "assistant", [{"type": "text", "text": "답"}, *tool("bash", {"command": "npm test"})], "1"),
        entry("3", "toolResult", "error", "2", toolCallId="c1", toolName="bash", isError=True, details={"exitCode": 1}),
        {"type": "session_info", "id": "4", "parentId": "3", "name": "이름"},
        entry("5", "bashExecution", "x", "4", command="ls"),
    ]
    data = encode([json.dumps(_mutated(row, dice)).encode() for row in rows])
    write(path, data)
    PI.sniff(path, data)
    PI.sniff(path.with_name("x.jsonl"), data)
    events = list(PI.parse(Found("pi", path), Progress(), final=True))
    assert all(isinstance(event.turn.text, str) for event in events if isinstance(event, Upsert))


def _mutated(value: Any, dice: random.Random) -> Any:
    if dice.random() < 0.15:
        return dice.choice(ODD)
    if isinstance(value, dict):
        return {key: _mutated(held, dice) for key, held in value.items()}
    if isinstance(value, list):
        return [_mutated(held, dice) for held in value]
    return value


def test_marks_of_other_systems_are_read(path: Path) -> None:
    rows = encode([header(UUID), entry("1", "user", "질문"), entry("2", "assistant", "답", "1")])
    write(path, b"\xef\xbb\xbf" + rows.replace(b"\n", b"\r\n").rstrip())
    assert said(PI, path, final=True) == [("user", "질문"), ("assistant", "답")]


# --- counts ---


def _file(*rows: Row) -> Callable[[Path], Path]:
    return lambda folder: write(folder / "--srv-shop--" / NAME, *rows)


COUNTED = [
    Counted(
        "tree, left branch, failed test, edit", "pi",
        _file(
            header(UUID), entry("1", "user", "고쳐 줘"),
            entry("2", "assistant", tool("bash", {"command": "pytest -q"}), "1"),
            entry("3", "toolResult", "E KeyError: 'id'", "2", toolCallId="c1", toolName="bash", isError=True),
            entry("4", "assistant", [{"type": "toolCall", "id": "c2", "name": "edit", "arguments": {"path": "a.py"}}], "3"),
            entry("5", "toolResult", "ok", "4", toolCallId="c2", toolName="edit"),
            entry("6", "assistant", "틀린 답", "5"), entry("7", "assistant", "고쳤습니다", "5"),
        ),
        errors=1, outcomes=2,
    ),
    Counted(
        "first version, without ids", "pi",
        _file(FIRST, entry(None, "user", "/model"), entry(None, "user", "포트는?"), entry(None, "assistant", "8080")),
        user=2,
    ),
]  # fmt: skip

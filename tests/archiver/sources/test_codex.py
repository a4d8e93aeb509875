from __future__ import annotations

import json
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.sources.codex import Codex
from archiver.transcript import RECALL_CLOSE, RECALL_OPEN, About, Found, Outcome, Progress, RawTurn, Reread, Title
from store.records import Role, State
from tests.archiver.sources.rollouts import (
    AGENTS_MD,
    ENVIRONMENT,
    OTHER,
    SHAPES,
    THREAD,
    bare,
    bare_meta,
    call,
    completed,
    document,
    event,
    legacy,
    message,
    meta,
    name,
    output,
    paginated,
    record,
    sent,
    sent_only,
    shown,
    spoke,
)
from tests.archiver.sources.transcripts import (
    Counted,
    Row,
    encode,
    in_two_pieces,
    outcomes,
    parse,
    said,
    stamp,
    turns,
    unreadable,
    write,
)

CODEX = Codex()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / name()


def about(events: list[Any]) -> About:
    return next(one for one in events if isinstance(one, About))


def titles(events: list[Any]) -> list[tuple[int, str]]:
    return [(one.rank, one.text) for one in events if isinstance(one, Title)]


def told(path: Path) -> list[RawTurn]:
    return sorted(turns(parse(CODEX, path)[0]).values(), key=lambda turn: turn.pos)


def live(path: Path) -> list[str]:
    return [turn.text for turn in told(path) if turn.state is State.LIVE]


# --- three shapes, and those before and beside them ---


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_each_message_once(path: Path, shape: str) -> None:
    first = bare_meta() if shape == "bare" else meta()
    write(path, first, *SHAPES[shape]("로그는 어디에?", "state 폴더 아래입니다."))
    assert said(CODEX, path) == [("user", "로그는 어디에?"), ("assistant", "state 폴더 아래입니다.")]
    assert about(parse(CODEX, path)[0]).external_id == THREAD


@pytest.mark.parametrize("shape", SHAPES)
def test_a_text_said_twice_is_told_twice(path: Path, shape: str) -> None:
    first = bare_meta() if shape == "bare" else meta()
    say = SHAPES[shape]
    write(path, first, *say("계속", "네.", 1), *say("계속", "네.", 11))
    assert [text for _, text in said(CODEX, path)] == ["계속", "네.", "계속", "네."]


@pytest.mark.parametrize("shape", ["sent only", "legacy", "paginated"])
def test_keys_are_the_same_whatever_the_shape(path: Path, shape: str) -> None:
    write(path, meta(), *SHAPES[shape]("로그는 어디에?", "여기요."))
    wanted = list(
        turns(parse(CODEX, write(path.with_name("x.jsonl"), meta(), *legacy("로그는 어디에?", "여기요.")))[0])
    )
    assert [turn.key for turn in told(path)] == wanted


def test_the_document_of_the_first_versions_is_read_whole(tmp_path: Path) -> None:
    items = [message("user", ENVIRONMENT), message("user", "빌드가 깨졌어"), message("assistant", "고쳤습니다.")]
    shell = {
        "type": "local_shell_call",
        "call_id": "c1",
        "action": {"type": "exec", "command": ["bash", "-lc", "make"]},
    }
    ended = {"type": "function_call_output", "call_id": "c1", "output": '{"output":"ok","metadata":{"exit_code":0}}'}
    path = document(tmp_path / f"rollout-2025-05-07-{THREAD}.json", *items, shell, ended)
    events, progress = parse(CODEX, path)
    assert said(CODEX, path) == [("user", "빌드가 깨졌어"), ("assistant", "고쳤습니다.")]
    assert outcomes(events) == [("build", True, "make")]
    assert (about(events).external_id, about(events).cwd, progress.offset) == (THREAD, "/srv/shop", 0)


@pytest.mark.parametrize("broken", [b'{"session": {"id": "x"}, "items": [', b"[]", b"", b"\xff\xfe{}"])
def test_a_document_that_is_not_whole_is_told_of(tmp_path: Path, broken: bytes) -> None:
    path = tmp_path / f"rollout-2025-05-07-{THREAD}.json"
    path.write_bytes(broken)
    assert unreadable(parse(CODEX, path)[0]) == [(0, "not a whole transcript")]


def test_the_two_records_of_a_message_may_come_in_any_order_and_differ_in_white_space(path: Path) -> None:
    write(
        path,
        meta(),
        shown("질문", 1),
        sent("user", "질문", 1),
        sent("assistant", "첫 줄\n\n둘째 줄", 2),
        event("agent_message", 2, message="첫 줄\n둘째 줄 "),
        event("agent_message", 3, message="답만 보인 말"),
        sent("assistant", "보내기만 한 말", 4),
    )
    assert [text for _, text in said(CODEX, path)] == ["질문", "첫 줄\n\n둘째 줄", "답만 보인 말", "보내기만 한 말"]


def test_what_was_shown_counts_and_what_was_only_sent_in_the_persons_name_does_not(path: Path) -> None:
    write(path, meta(), sent("user", "[novel wrapper] machine words", 1), *legacy("진짜 질문", "답", 2))
    assert said(CODEX, path) == [("user", "진짜 질문"), ("assistant", "답")]
    assert titles(parse(CODEX, path)[0]) == [(0, "진짜 질문")]


def test_a_file_that_never_showed_an_answer_has_the_ones_that_were_sent(path: Path) -> None:
    write(
        path, meta(), shown("시작", 1), sent("user", "시작", 1), sent("assistant", "네", 2), sent("assistant", "네", 3)
    )
    assert [text for _, text in said(CODEX, path)] == ["시작", "네", "네"]


def test_a_record_written_twice_is_one(path: Path) -> None:
    question, answer = shown("롤백하자", 1), sent("assistant", "네", 2)
    write(path, meta(), *[question] * 4, *[answer] * 3, sent("assistant", "네", 3))
    assert [text for _, text in said(CODEX, path)] == ["롤백하자", "네", "네"]


def test_ordinals_that_repeat_are_nothing_to_go_by(path: Path) -> None:
    rows = [sent("user", f"말 {n}", n, ordinal=3) for n in range(1, 4)]
    write(path, meta(ordinal=0), *rows)
    assert [text for _, text in said(CODEX, path)] == ["말 1", "말 2", "말 3"]


def test_what_is_compacted_is_no_speech_and_neither_is_bookkeeping(path: Path) -> None:
    history = [message("user", "옛 질문"), message("assistant", "옛 답")]
    write(
        path,
        meta(),
        *legacy("질문", "답"),
        record("compacted", {"message": "요약", "replacement_history": history}, 3),
        record("world_state", {"full": True, "state": {"agents_md": {"text": "규칙"}}}, 3),
        {"timestamp": stamp(3), "type": "token_usage_record", "input_tokens": 3, "id": "u1"},
        record("response_item", {"type": "reasoning", "summary": [{"type": "summary_text", "text": "생각"}]}, 3),
        record(
            "response_item", {"type": "agent_message", "author": "a", "content": [{"type": "input_text", "text": "x"}]}
        ),
        event("agent_reasoning", 3, text="생각"),
        event("novel", 3, message="모를 것"),
        record("novel_record", {"text": "모를 것"}, 3),
    )
    events, _ = parse(CODEX, path)
    assert [turn.text for turn in turns(events).values()] == ["질문", "답"]
    assert unreadable(events) == []


# --- what the client says in the person's name ---


@pytest.mark.parametrize(
    "text",
    [
        AGENTS_MD,
        ENVIRONMENT,
        f"{AGENTS_MD}\n{ENVIRONMENT}",
        "<user_instructions>\n\nuse </b> tags\n\n</user_instructions>",
        "<INSTRUCTIONS>\nrules\n</INSTRUCTIONS>",
        "<skill>\n<name>deploy</name>\nsteps, then </skill> again\n</skill>",
        "<collaboration_mode># Plan mode</collaboration_mode>",
        '<subagent_notification>\n{"status":"done"}\n</subagent_notification>',
        "<turn_aborted>\nThe user interrupted the previous turn.\n</turn_aborted>",
        '<codex_internal_context source="goal">go on</codex_internal_context>',
        "<goal_context>\nobjective\n</goal_context>",
        "<external_board>\nnews\n</external_board>",
        "<recommended_plugins>\n- a\n</recommended_plugins>",
        "<hook_prompt hook_run_id=\"h1\">run the linter first</hook_prompt>",
        "  <environment_context>\nnever closed",
        "<extension_context>\n말\n</extension_context>",
        "<agent_message_board_notification>\nNew post.\n</agent_message_board_notification>",
        "Warning: apply_patch was requested via exec_command. Use the apply_patch tool instead.",
        "Another language model started to solve this problem and produced a summary of its thinking process.",
        "# Context from my IDE setup:\n\n## Open tabs:\n- a.py",
        "<image name=[Image #1]></image>",
        f"{RECALL_OPEN}\n결정: 포트는 8080\n{RECALL_CLOSE}",
        "You are an extractor. <observed><request>질문</request></observed>",
        " \n ",
    ],
)  # fmt: skip
@pytest.mark.parametrize("say", [sent, lambda role, text, second: shown(text, second)], ids=["sent", "shown"])
def test_what_the_client_says_in_the_users_name_is_no_turn(path: Path, say: Any, text: str) -> None:
    write(path, meta(), say("user", text, 1), say("user", "재시도는 3회로 하자", 2), sent("assistant", "네", 3))
    assert said(CODEX, path) == [("user", "재시도는 3회로 하자"), ("assistant", "네")]
    assert titles(parse(CODEX, path)[0]) == [(0, "재시도는 3회로 하자")]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<recommended_plugins>\n- a\n</recommended_plugins>\n\n포트는 8080으로", "포트는 8080으로"),
        ("# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\n이 함수 이름 바꿔줘\n\n둘째 줄", "이 함수 이름 바꿔줘\n\n둘째 줄"),
        ("# Files mentioned by the user:\n\n## log: /tmp/log\n\n## My request: 왜 이래?", "왜 이래?"),
        ("## My request for Codex:\n고쳐줘", "고쳐줘"),
        ("화면이 깨져요 <image name=[Image #1]>\n</image> 여기", "화면이 깨져요  여기"),
        (f"{ENVIRONMENT}\n이건 뭐지?", "이건 뭐지?"),
        ("왜 <environment_context> 태그가 보이지?", "왜 <environment_context> 태그가 보이지?"),
        ("<external_api> 문서를 요약해줘", "<external_api> 문서를 요약해줘"),
        ("# AGENTS.md instructions 는 누가 쓰나요?", "# AGENTS.md instructions 는 누가 쓰나요?"),
        (f"앞말 {RECALL_OPEN}기억{RECALL_CLOSE} 뒷말", "앞말  뒷말"),
        ("앞\x00뒤\r\n줄", "앞 뒤\n줄"),
    ],
)  # fmt: skip
def test_words_around_what_the_client_says_are_kept(path: Path, text: str, kept: str) -> None:
    for say in (sent("user", text, 1), shown(text, 1), spoke("user", text, 1)):
        assert said(CODEX, write(path, meta(), say)) == [("user", kept)]


def test_newer_versions_put_the_projects_file_and_the_surroundings_into_one_message(path: Path) -> None:
    joined = record("response_item", message("user", AGENTS_MD, ENVIRONMENT, "토큰 만료 버그 고쳐줘"), 1)
    developer = sent("developer", "<permissions instructions>\n...\n</permissions instructions>", 0)
    write(path, meta(), developer, joined, sent("system", "x", 1))
    assert said(CODEX, path) == [("user", "토큰 만료 버그 고쳐줘")]


def test_parts_that_are_no_text_are_passed_over(path: Path) -> None:
    content = [
        {"type": "input_text", "text": "<image name=[Image #1]>"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBOR"},
        {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": "이 화면 고쳐줘"},
    ]
    write(path, meta(), record("response_item", {"type": "message", "role": "user", "content": content}, 1))
    assert said(CODEX, path) == [("user", "이 화면 고쳐줘")]


def test_newer_records_say_which_of_their_parts_the_person_typed(path: Path) -> None:
    def kinds(*named: str) -> dict[str, Any]:
        return {"internal_chat_message_metadata_passthrough": {"content_item_kinds": list(named)}}

    typed = "<user_shell_command>\n<command>\nls\n</command>\n</user_shell_command>"
    said_so = [
        message("user", "규칙: pnpm만", "진짜 질문", **kinds("agents_md.instructions", "user.text")),
        message("user", "힌트: 병렬로", **kinds("hooks.additional_context")),
        message("user", "모르는 종류", **kinds("unknown")),
        message("user", "짝이 안 맞음", **kinds("agents_md.instructions", "user.text")),
        message("user", typed, **kinds("shell.user_command")),
    ]
    write(path, meta(), *[record("response_item", item, n) for n, item in enumerate(said_so)])
    assert [turn.text for turn in told(path)] == ["진짜 질문", "모르는 종류", "짝이 안 맞음", "ls"]


def test_a_command_that_the_person_typed_is_kept_as_one_also_where_prompts_are_shown(path: Path) -> None:
    typed = "<user_shell_command>\n<command>\ngit branch -v\n</command>\n<result>\nExit code: 0\n</result>\n</user_shell_command>"
    write(path, meta(), *legacy("질문", "답"), sent("user", typed, 3))
    assert [(turn.kind, turn.text) for turn in told(path)][2:] == [("command", "git branch -v")]


def test_older_events_say_of_what_kind_they_are(path: Path) -> None:
    kinds = [
        record("event_msg", {"type": "user_message", "message": f"말 {n}", "kind": kind}, n)
        for n, kind in enumerate(["environment_context", "user_instructions", "plain"])
    ]
    assert said(CODEX, write(path, meta(), *kinds)) == [("user", "말 2")]


def test_answers_are_kept_without_marks_and_failures_are_none(path: Path) -> None:
    write(
        path,
        meta(),
        shown("계획을 세워줘"),
        sent("assistant", "<proposed_plan>\n1. 캐시\n</proposed_plan>", 2),
        sent("assistant", "끝<oai-mem-citation>x</oai-mem-citation>", 3),
        event("agent_message", 4, message="API Error: 503"),
    )
    assert [text for _, text in said(CODEX, path)] == ["계획을 세워줘", "1. 캐시", "끝"]


PLANNED = "먼저 살펴봤습니다.\n\n<proposed_plan>\n1. 캐시를 LRU로\n2. 시험\n</proposed_plan>\n"


@pytest.mark.parametrize(
    "show", [lambda text: event("agent_message", 3, message=text), lambda text: spoke("assistant", text, 3)]
)
@pytest.mark.parametrize("sent_first", [True, False])
def test_a_plan_is_kept_though_it_is_not_shown_with_its_message(path: Path, show: Any, sent_first: bool) -> None:
    both = [sent("assistant", PLANNED, 2), show("먼저 살펴봤습니다.")]
    rows = [meta(), shown("계획을 세워줘"), *(both if sent_first else reversed(both)), *legacy("좋아", "네", 5)]
    wanted = ["계획을 세워줘", "먼저 살펴봤습니다.\n\n1. 캐시를 LRU로\n2. 시험", "좋아", "네"]
    whole = encode(rows)
    for cut in range(0, len(whole), 40):
        assert [turn.text for turn in in_two_pieces(CODEX, path, whole, cut).values()] == wanted


def test_a_command_that_ends_after_its_turn_does_not_lead_back_into_it(path: Path) -> None:
    turn, later = (f"019a2b3c-4d5e-7f60-8a1b-00000000000{n}" for n in (1, 2))
    late = completed({"type": "CommandExecution", "id": "c", "command": ["sleep", "9"], "exit_code": 0}, 6, turn)
    second = paginated("다음", "네", 5, later)
    write(path, meta(), *paginated("질문", "답", 1, turn), *second[:3], late, *second[3:])
    assert [text for _, text in said(CODEX, path)] == ["질문", "답", "다음", "네"]


def test_parts_that_one_record_joins_without_a_space_are_one_message(path: Path) -> None:
    parts = message("assistant", "첫 부분.", "둘째 부분.")
    write(
        path,
        meta(),
        shown("질문"),
        record("response_item", parts, 2),
        event("agent_message", 2, message="첫 부분.둘째 부분."),
    )
    assert [text for _, text in said(CODEX, path)] == ["질문", "첫 부분.\n\n둘째 부분."]


# --- turns that are stopped, steered, taken back ---


@pytest.mark.parametrize(
    "stop",
    [
        event("turn_aborted", 2, turn_id="t1", reason="interrupted"),
        sent("user", "<turn_aborted>\nx\n</turn_aborted>", 2),
    ],
)
@pytest.mark.parametrize("say", [sent_only, legacy])
def test_a_prompt_sent_again_after_it_was_stopped_is_one(path: Path, stop: Row, say: Any) -> None:
    first = say("포트는 8080으로", "", 1)[: 1 if say is sent_only else 2]
    write(path, meta(), *first, stop, *say("포트는 8080으로", "네", 5), *say("포트는 8080으로", "이미 했습니다", 9))
    assert [text for _, text in said(CODEX, path)] == ["포트는 8080으로", "네", "포트는 8080으로", "이미 했습니다"]


def test_other_words_after_a_stop_are_a_prompt_of_their_own(path: Path) -> None:
    write(path, meta(), shown("몽고로 하자"), event("turn_aborted", 2), *legacy("아니, SQLite로", "네", 3))
    assert [text for _, text in said(CODEX, path)] == ["몽고로 하자", "아니, SQLite로", "네"]


def test_a_prompt_while_the_agent_is_at_work_steers_it(path: Path) -> None:
    write(
        path,
        meta(),
        event("task_started", 1, turn_id="t1"),
        *legacy("고쳐줘", "보고 있습니다", 1),
        *legacy("테스트부터", "네", 3),
        event("task_complete", 5, turn_id="t1"),
        event("task_started", 6, turn_id="t2"),
        *legacy("커밋해", "했습니다", 6),
    )
    kinds = [turn.kind for turn in told(path) if turn.role is Role.USER]
    assert kinds == ["prompt", "steering", "prompt"]


@pytest.mark.parametrize("say", [sent_only, legacy, paginated])
def test_turns_that_were_rolled_back_are_abandoned(path: Path, say: Any) -> None:
    write(
        path,
        meta(),
        *say("시작", "네", 1),
        *say("몽고로", "몽고 적용", 3),
        *say("색인도", "색인 추가", 5),
        event("thread_rolled_back", 7, num_turns=2),
        *say("SQLite로", "SQLite 적용", 8),
    )
    assert live(path) == ["시작", "네", "SQLite로", "SQLite 적용"]
    assert len(told(path)) == 8


def test_rollbacks_add_up_and_reach_no_further_than_the_start(path: Path) -> None:
    rollback = event("thread_rolled_back", 9, num_turns=1)
    rows = [*legacy("하나", "1", 1), *legacy("둘", "2", 3), rollback, *legacy("셋", "3", 5), rollback, rollback]
    assert live(write(path, meta(), *rows, *legacy("넷", "4", 11))) == ["넷", "4"]
    assert live(write(path, meta(), *rows, event("thread_rolled_back", 9, num_turns=99))) == []
    assert titles(parse(CODEX, path)[0]) == [(0, "하나")]


def test_what_was_rolled_back_proves_nothing(path: Path) -> None:
    write(
        path,
        meta(),
        *legacy("테스트 돌려", "네"),
        call("shell", {"command": ["pytest"]}),
        output('{"output":"","metadata":{"exit_code":0}}'),
        event("thread_rolled_back", 4, num_turns=1),
    )
    assert outcomes(parse(CODEX, path)[0]) == []


def test_a_rollback_that_reaches_into_what_was_read_asks_for_the_whole_file(path: Path) -> None:
    rows = [meta(), *legacy("하나", "1", 1), *legacy("둘", "2", 3)]
    _, progress = parse(CODEX, write(path, *rows))
    within = write(path, *rows, *legacy("셋", "3", 5), event("thread_rolled_back", 7, num_turns=1))
    events, _ = parse(CODEX, within, progress)
    assert [turn.state for turn in turns(events).values()] == [State.ABANDONED] * 2
    write(path, *rows, *legacy("셋", "3", 5), event("thread_rolled_back", 7, num_turns=2))
    with pytest.raises(Reread):
        parse(CODEX, path, progress)


# --- whose session it is ---


def test_the_first_meta_of_a_file_is_its_own_and_copies_keep_their_keys(path: Path) -> None:
    old = [meta(OTHER, cwd="/srv/old"), *legacy("A에서 물은 것", "답"), record("turn_context", {"cwd": "/srv/old"}, 2)]
    parent = {turn.key for turn in told(write(path.with_name("parent.jsonl"), *old))}
    write(path, meta(THREAD, 9, cwd="/srv/new", forked_from_id=OTHER), *old, *legacy("B에서 물은 것", "새 답", 11))
    found = about(parse(CODEX, path)[0])
    assert (found.external_id, found.parent, found.cwd) == (THREAD, OTHER, "/srv/new")
    assert [turn.key in parent for turn in told(path)] == [True, True, False, False]


def test_behind_a_threads_own_meta_nothing_is_a_copy(path: Path) -> None:
    old = [meta(OTHER), *legacy("A에서 물은 것", "답")]
    write(path, meta(THREAD, 9, forked_from_id=OTHER), *old, meta(THREAD, 10), *legacy("B에서 물은 것", "새 답", 11))
    assert [turn.key.partition(":")[0] for turn in told(path)] == [OTHER, OTHER, THREAD, THREAD]


def test_a_fork_names_its_parent_in_one_of_several_ways(path: Path) -> None:
    base = {"thread_id": OTHER, "end_ordinal_exclusive": 9, "end_byte_offset": 900}
    for named in ({"forked_from_id": OTHER}, {"history_base": base}):
        found = about(parse(CODEX, write(path, meta(**named), *legacy("질문", "답")))[0])
        assert (found.parent, found.is_subagent) == (OTHER, False)
    rollover = write(path.with_name(name(rollout="r2")), meta(history_base=base), *legacy("질문", "답"))
    assert about(parse(CODEX, rollover)[0]).parent is None


def test_the_files_of_a_thread_share_its_id_and_no_keys(path: Path) -> None:
    further = write(path.with_name(name(rollout=OTHER)), meta(), *legacy("계속", "네"))
    write(path, meta(), *legacy("계속", "네"))
    assert about(parse(CODEX, further)[0]).external_id == THREAD
    assert not {turn.key for turn in told(path)} & {turn.key for turn in told(further)}


def test_a_turns_own_id_names_what_is_said_in_it(path: Path) -> None:
    turn = "019a2b3c-4d5e-7f60-8a1b-000000000001"
    write(path, meta(), *paginated("질문", "답", 1, turn))
    assert all(one.key.startswith(turn + ":") for one in told(path))


@pytest.mark.parametrize(
    "named",
    [
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": OTHER, "depth": 1}}}},
        {"source": {"subagent": "review"}, "parent_thread_id": OTHER},
        {"thread_source": "subagent", "parent_thread_id": OTHER},
        {"parent_thread_id": OTHER},
    ],
)
def test_subagents_are_sessions_of_their_own_below_their_parent(path: Path, named: dict[str, Any]) -> None:
    write(
        path,
        meta(**named),
        *legacy("TODO를 찾아라", "찾았습니다"),
        call("shell", {"command": ["x"]}),
        output("Exit code: 1\nOutput:\nno"),
    )
    events, _ = parse(CODEX, path)
    assert (about(events).is_subagent, about(events).parent, titles(events)) == (True, OTHER, [])
    assert [(turn.role, turn.kind) for turn in told(path)] == [(Role.SUBAGENT, "task"), (Role.SUBAGENT, "answer")]


def test_what_a_subagent_inherits_is_its_parents(path: Path) -> None:
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": OTHER}}}
    task = "Message Type: NEW_TASK\nTask name: /root/find\nPayload:\nTODO를 찾아라"
    mail = {"type": "agent_message", "author": "/root", "content": [{"type": "input_text", "text": task}]}
    write(
        path,
        meta(ordinal=0, source=spawn, subagent_history_start_ordinal=3),
        sent("user", "부모의 질문", 1, ordinal=1),
        sent("assistant", "부모의 답", 2, ordinal=2),
        record("response_item", mail, 3, ordinal=3),
        sent("user", "부모가 더 물은 것", 3, ordinal=4, metadata={"inherited_user_message": True}),
        sent("assistant", "찾았습니다", 4, ordinal=5),
    )
    assert [text for _, text in said(CODEX, path)] == ["TODO를 찾아라", "찾았습니다"]


@pytest.mark.parametrize(
    "named",
    [
        {"source": {"subagent": "compact"}},
        {"source": {"subagent": "memory_consolidation"}},
        {"source": {"internal": "guardian"}},
        {"source": "cli", "thread_source": "memory_consolidation"},
    ],
)
def test_threads_of_the_clients_own_yield_nothing(path: Path, named: dict[str, Any]) -> None:
    write(path, meta(**named), *legacy("Summarise this.", "요약"))
    events, progress = parse(CODEX, path)
    assert (events, progress.state["own"]) == ([], True)


def test_a_thread_without_memory_is_not_archived_and_that_is_said_once(path: Path) -> None:
    rows = [meta(memory_mode="disabled"), *legacy("비밀 이야기", "네")]
    events, progress = parse(CODEX, write(path, *rows))
    assert [line for line, _ in unreadable(events)] == [1]
    assert "memory" in unreadable(events)[0][1]
    assert parse(CODEX, write(path, *rows, *legacy("또 비밀", "네", 5)), progress)[0][1:] == []
    assert turns(events) == {}


def test_what_is_said_while_memory_is_off_is_left_out(path: Path) -> None:
    write(
        path,
        meta(),
        *legacy("하나", "1"),
        meta(memory_mode="disabled"),
        *legacy("둘", "2", 3),
        meta(memory_mode="enabled"),
        *legacy("셋", "3", 5),
    )
    assert [text for _, text in said(CODEX, path)] == ["하나", "1", "셋", "3"]
    assert [line for line, _ in unreadable(parse(CODEX, path)[0])] == [6]


def test_folder_branch_and_times_of_the_session(path: Path) -> None:
    write(
        path, meta(git={"branch": "main"}), *legacy("질문", "답", 3), record("turn_context", {"cwd": "/srv/other"}, 9)
    )
    found = about(parse(CODEX, path)[0])
    assert (found.cwd, found.branch) == ("/srv/other", "main")
    assert found.last_time is not None and found.first_time is not None
    assert found.last_time - found.first_time == 9_000
    bare_cwd = write(path, bare_meta(), message("user", ENVIRONMENT), *bare("질문", "답"))
    assert about(parse(CODEX, bare_cwd)[0]).cwd == "/srv/shop"
    assert {turn.time for turn in told(bare_cwd)} == {about(parse(CODEX, bare_cwd)[0]).first_time}


def test_a_file_that_lost_its_first_line_is_named_for_its_file(path: Path) -> None:
    assert about(parse(CODEX, write(path, b"{torn", *legacy("질문", "답")))[0]).external_id == THREAD
    other = write(path.with_name("copy.jsonl"), *legacy("질문", "답"))
    assert about(parse(CODEX, other)[0]).external_id == "copy"


def test_a_name_that_was_given_is_the_title(tmp_path: Path) -> None:
    path = write(tmp_path / "sessions/2026/03/04" / name(), meta(), *legacy("첫 질문", "답"))
    index = [
        {"id": THREAD, "thread_name": "옛 이름"},
        {"id": OTHER, "thread_name": "남의 것"},
        b"torn",
        {"id": THREAD, "thread_name": "새 이름"},
    ]
    write(tmp_path / "session_index.jsonl", *index)
    (found,) = CODEX.discover(tmp_path)
    assert titles(list(CODEX.parse(found, Progress(), final=False))) == [(0, "첫 질문"), (2, "새 이름")]
    write(path, meta(), *legacy("첫 질문", "답"), event("thread_name_updated", 5, thread_name="안에서 준 이름"))
    assert titles(parse(CODEX, path)[0]) == [(0, "첫 질문"), (2, "안에서 준 이름")]


def test_sessions_in_our_own_home_yield_nothing(path: Path, wwt_home: Path) -> None:
    assert parse(CODEX, write(path, meta(cwd=str(wwt_home / "runs")), *legacy("x", "y")))[0] == []


@pytest.mark.parametrize(
    "rows",
    [
        [meta()],
        [meta(), sent("user", AGENTS_MD), sent("user", ENVIRONMENT)],
        [meta(), event("token_count", info=None), event("turn.completed", usage={})],
    ],
)
def test_a_session_in_which_nothing_was_said_is_quietly_nothing(path: Path, rows: list[Row]) -> None:
    events, progress = parse(CODEX, write(path, *rows))
    assert (events, progress) == ([], Progress())


@pytest.mark.parametrize(
    "row",
    [
        sent("assistant", "x") | {"payload": {"type": "message", "role": "assistant", "content": [{"type": "novel", "body": "말"}]}},
        event("user_message", message={"novel": "말"}),
        {"role": "user", "message": "말"},
    ],
)  # fmt: skip
def test_messages_in_a_shape_that_is_not_known_are_reported_and_not_passed_over(path: Path, row: Row) -> None:
    assert [line for line, _ in unreadable(parse(CODEX, write(path, meta(), row))[0])] == [0]
    assert unreadable(parse(CODEX, write(path, meta(), row, *legacy("질문", "답")))[0]) == []


# --- tools ---

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: b.py\n+z\n*** End Patch\n"


@pytest.mark.parametrize(
    ("called", "told"),
    [
        (call("shell", {"command": ["bash", "-lc", "npm test"]}), ("test", "npm test")),
        (call("container.exec", {"command": ["pytest", "-q"]}), ("test", "pytest -q")),
        (call("shell_command", {"command": "cargo build"}), ("build", "cargo build")),
        (call("exec_command", {"cmd": "git commit -m x"}), ("commit", "git commit -m x")),
        (call("shell", {"command": ["powershell.exe", "-NoProfile", "-Command", "npm test"]}), ("test", "npm test")),
        (call("apply_patch", {"input": PATCH}), ("files", "src/a.py, b.py")),
        (call("shell", {"command": ["apply_patch", PATCH]}), ("files", "src/a.py, b.py")),
        (call("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}EOF"]}), ("files", "src/a.py, b.py")),
        (record("response_item", {"type": "custom_tool_call", "name": "apply_patch", "input": PATCH, "call_id": "call_0123456789abcdef"}), ("files", "src/a.py, b.py")),
        (record("response_item", {"type": "local_shell_call", "call_id": "call_0123456789abcdef", "action": {"type": "exec", "command": ["make"]}}), ("build", "make")),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("result", "ok"),
    [
        ('{"output":"fine","metadata":{"exit_code":0,"duration_seconds":0.1}}', True),
        ('{"output":"error: no","metadata":{"exit_code":2}}', False),
        ("Exit code: 0\nWall time: 1.2 seconds\nOutput:\nError handling passed", True),
        ("Exit code: 1\nWall time: 1.2 seconds\nTotal output lines: 3\nOutput:\nerror: no", False),
        ("Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 0\nOriginal token count: 9\nOutput:\nfine", True),
        ("Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nerror: no", False),
        ([{"type": "input_text", "text": "Exit code: 1\nOutput:\nerror: no"}], False),
        ({"output": "error: no", "metadata": {"exit_code": 1}}, False),
        ({"content": "fine", "success": True}, True),
        ('{"output":"","metadata":{"exit_code":-1}}', None),
        ("Process exited with code -1\nOutput:\nwatching for changes", None),
        ("aborted by user after 3.2s", None),
        ("exec command rejected by user", None),
        ('{"output":"patch rejected by user","metadata":{"exit_code":1}}', None),
        ("Process running with session ID 7\nOutput:\nstarting", None),
    ],
)  # fmt: skip
def test_calls_and_results_of_every_shape_prove_outcomes(
    path: Path, called: Row, told: Any, result: Any, ok: bool | None
) -> None:
    write(path, meta(), *legacy("해줘", "네"), called, output(result))
    events, _ = parse(CODEX, path)
    assert outcomes(events) == ([] if ok is None else [(told[0], ok, told[1])])
    assert [turn.text for turn in turns(events).values() if turn.role is Role.TOOL] == (
        ["error: no"] if ok is False else []
    )


@pytest.mark.parametrize(
    ("result", "ok"), [("Success. Updated the following files:\nM src/a.py", True), ("apply_patch verification failed: no such line", False), ("?", None)]
)  # fmt: skip
def test_a_patch_says_in_words_whether_it_was_applied(path: Path, result: str, ok: bool | None) -> None:
    events, _ = parse(
        CODEX, write(path, meta(), shown("고쳐줘"), call("apply_patch", {"input": PATCH}), output(result))
    )
    assert [one[1] for one in outcomes(events)] == ([] if ok is None else [ok])


@pytest.mark.parametrize(
    "ended",
    [
        event("exec_command_end", 2, call_id="call_0123456789abcdef", command=["bash", "-lc", "pytest"], exit_code=1, aggregated_output="E   ValueError: x", status="failed"),
        completed({"type": "CommandExecution", "id": "call_0123456789abcdef", "command": ["bash", "-lc", "pytest"], "exit_code": 1, "aggregated_output": "E   ValueError: x", "status": "failed"}, 2),
        completed({"type": "commandExecution", "id": "call_0123456789abcdef", "command": "pytest", "exitCode": 1, "aggregatedOutput": "E   ValueError: x"}, 2),
    ],
)  # fmt: skip
def test_an_end_that_is_recorded_twice_is_told_once(path: Path, ended: Row) -> None:
    sent_end = output("Exit code: 1\nWall time: 1 seconds\nOutput:\nE   ValueError: x\n(truncated)", second=3)
    for rows in ([ended], [ended, sent_end], [sent_end, ended]):
        events, _ = parse(CODEX, write(path, meta(), shown("돌려"), call("exec_command", {"cmd": "pytest"}), *rows))
        assert outcomes(events) == [("test", False, "pytest")]
        errors = [turn for turn in turns(events).values() if turn.role is Role.TOOL]
        assert [turn.text.split("\n")[0] for turn in errors] == ["E   ValueError: x"]


@pytest.mark.parametrize(
    ("ended", "ok"),
    [
        (event("patch_apply_end", 2, call_id="c", success=True, changes={"/srv/a.py": {"type": "update"}}), True),
        (completed({"type": "FileChange", "id": "c", "status": "completed", "changes": {"/srv/a.py": {}}}), True),
        (completed({"type": "fileChange", "id": "c", "status": "failed", "changes": [{"path": "/srv/a.py"}], "stderr": "error: x"}), False),
        (completed({"type": "FileChange", "id": "c", "status": "declined", "changes": {"/srv/a.py": {}}}), None),
    ],
)  # fmt: skip
def test_changes_of_files_are_outcomes(path: Path, ended: Row, ok: bool | None) -> None:
    events, _ = parse(CODEX, write(path, meta(), shown("고쳐줘"), ended))
    assert outcomes(events) == ([] if ok is None else [("files", ok, "/srv/a.py")])


@pytest.mark.parametrize(
    ("ended", "text"),
    [
        (event("mcp_tool_call_end", call_id="c", invocation={"server": "db"}, result={"Err": "connection refused"}), "connection refused"),
        (completed({"type": "McpToolCall", "id": "c", "server": "db", "result": {"isError": True, "content": [{"type": "text", "text": "no such table"}]}}), "no such table"),
        (completed({"type": "McpToolCall", "id": "c", "server": "db", "result": {"content": [{"type": "text", "text": "error-free"}]}}), None),
        (event("mcp_tool_call_end", call_id="c", invocation={"server": "wwt"}, result={"Err": "결정: 포트는 8080"}), None),
    ],
)  # fmt: skip
def test_failures_of_other_tools_are_kept_and_our_own_are_not(path: Path, ended: Row, text: str | None) -> None:
    events, _ = parse(CODEX, write(path, meta(), shown("조회해줘"), ended))
    assert [turn.text for turn in turns(events).values() if turn.role is Role.TOOL] == ([text] if text else [])


def test_a_command_that_ended_with_its_thread_did_not_fail(path: Path) -> None:
    stopped = {"type": "CommandExecution", "id": "c", "command": ["pytest"], "exit_code": -1, "status": "failed"}
    events, _ = parse(CODEX, write(path, meta(), shown("돌려"), completed(stopped | {"aggregated_output": "error x"})))
    assert (outcomes(events), [turn.role for turn in turns(events).values()]) == ([], [Role.USER])


def test_what_we_answered_ourselves_is_not_learned_again(path: Path) -> None:
    ours = call("search", {"query": "x"}) | {}
    ours["payload"]["namespace"] = "mcp__wwt__"
    write(path, meta(), shown("뭐였지?"), ours, output({"content": "결정: 포트는 8080", "success": False}))
    assert [turn.role for turn in told(path)] == [Role.USER]


def test_a_process_that_goes_on_is_followed_to_its_end(path: Path) -> None:
    running = "Chunk ID: a\nWall time: 10 seconds\nProcess running with session ID 7\nOutput:\n"
    rows = [
        meta(),
        shown("돌려"),
        call("exec_command", {"cmd": "pytest"}, "call_aaaaaaaaaaaaaaaa"),
        output(running, "call_aaaaaaaaaaaaaaaa"),
        call("write_stdin", {"session_id": 7, "chars": ""}, "call_bbbbbbbbbbbbbbbb"),
        output(running, "call_bbbbbbbbbbbbbbbb"),
        call("write_stdin", {"session_id": 7, "chars": ""}, "call_cccccccccccccccc"),
        output("Process exited with code 0\nOutput:\nok", "call_cccccccccccccccc"),
    ]
    events, _ = parse(CODEX, write(path, *rows))
    assert [one.key for one in events if isinstance(one, Outcome)] == ["call_aaaaaaaaaaaaaaaa"]
    _, progress = parse(CODEX, write(path, *rows[:4]))
    with pytest.raises(Reread):
        parse(CODEX, write(path, *rows), progress)


# --- growth ---


def test_new_lines_are_read_from_where_the_last_parse_stopped(path: Path) -> None:
    rows = [meta(), *paginated("질문", "답", 1)]
    events, progress = parse(CODEX, write(path, *rows))
    more = paginated("다음", "네", 5, "t2")
    write(path, *rows, *more)
    running = CODEX.parse(Found("codex", path), progress, final=False)
    held = turns(list(running), turns(events))
    assert [turn.text for turn in held.values()] == ["질문", "답", "다음", "네"]
    assert running.bytes_read == len(encode(more))


def test_between_the_two_records_of_a_message_nothing_is_doubled(path: Path) -> None:
    rows = [meta(), *paginated("질문", "답", 1), *legacy("더", "네", 5)]
    whole = turns(parse(CODEX, write(path, *rows))[0])
    for at in range(len(rows)):
        assert in_two_pieces(CODEX, path, encode(rows), len(encode(rows[:at]))) == whole


def test_what_was_only_sent_is_taken_back_when_something_is_shown(path: Path) -> None:
    rows = [meta(), sent("user", "[novel wrapper] machine words", 1), sent("user", "진짜 질문", 2)]
    events, progress = parse(CODEX, write(path, *rows))
    assert len(turns(events)) == 2
    held = turns(parse(CODEX, write(path, *rows, shown("진짜 질문", 2)), progress)[0], turns(events))
    assert [turn.text for turn in held.values()] == ["진짜 질문"]


def test_the_state_between_parses_holds_no_words_and_does_not_grow_with_the_turns(path: Path) -> None:
    rows: list[Row] = [meta()]
    sizes = []
    for n in range(40):
        turn = f"019a2b3c-4d5e-7f60-8a1b-{n:012d}"
        rows += paginated(f"비밀번호는 hunter{n}", "알겠습니다 hunter", n, turn)
        rows += [
            call("shell", {"command": ["pytest", "hunter"]}, f"call_{n:016d}"),
            output("Exit code: 1\nOutput:\nhunter", f"call_{n:016d}"),
        ]
        if n in (19, 39):
            _, progress = parse(CODEX, write(path, *rows))
            sizes.append(len(json.dumps(progress.state)))
            assert "hunter" not in str(progress.state)
    assert sizes[1] < sizes[0] * 1.5
    assert progress.offset == path.stat().st_size


def conversations() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Random rollouts: every shape, stopped and steered turns, calls whose ends come once or twice, forks, rollbacks."""

    def build(seed: int) -> list[dict[str, Any]]:
        dice = random.Random(seed)
        rows: list[dict[str, Any]] = [meta(ordinal=0)]
        for n in range(1, dice.randint(2, 16)):
            text = dice.choice(["계속", "좋아", f"말 {n}", AGENTS_MD])
            turn = dice.choice(["t1", f"019a2b3c-4d5e-7f60-8a1b-{n // 3:012d}"])
            call_id = f"call_{dice.choice([n, n - 1]):016d}"
            rows += dice.choice(
                [
                    *[list(say(text, dice.choice(["네", "", f"답 {n}"]), n)) for say in (sent_only, legacy)],
                    list(paginated(text, "네", n, turn)),
                    [sent("user", text, n)],
                    [shown(text, n)],
                    [event("task_started", n, turn_id=turn)],
                    [event("turn_aborted", n, turn_id=turn)],
                    [event("thread_rolled_back", n, num_turns=dice.randint(1, 3))],
                    [record("turn_context", {"turn_id": turn, "cwd": "/srv/x"}, n)],
                    [meta(dice.choice([THREAD, OTHER]), n)],
                    [call("shell", {"command": ["pytest"]}, call_id, n)],
                    [output("Exit code: 1\nOutput:\nerror x", call_id, n)],
                    [completed({"type": "CommandExecution", "id": call_id, "command": ["pytest"], "exit_code": 1, "aggregated_output": "error y"}, n, turn)],
                    [message("user", text)],
                ]
            )  # fmt: skip
        return rows

    return st.integers(0, 10**9).map(build)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(conversations(), st.data())
def test_reading_a_file_in_two_pieces_gives_what_reading_it_whole_gives(
    path: Path, rows: list[Row], data: st.DataObject
) -> None:
    whole = encode(rows)
    path.write_bytes(whole)
    wanted = turns(parse(CODEX, path)[0])
    cut = data.draw(st.integers(0, len(whole)))
    assert in_two_pieces(CODEX, path, whole, cut) == wanted


WRONG = st.sampled_from(
    [None, 7, -1.5, True, "", "x", [], ["x", 3, None], {}, {"type": "text", "text": 3}, "\ud800", "가" * 300]
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(conversations(), st.data())
def test_wrong_types_in_any_field_are_no_reason_to_fail(
    path: Path, rows: list[dict[str, Any]], data: st.DataObject
) -> None:
    rows = [json.loads(json.dumps(row)) for row in rows]
    for _ in range(data.draw(st.integers(1, 4))):
        place: Any = data.draw(st.sampled_from(rows))
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
                place[key] = deepcopy(data.draw(WRONG))
                break
            place = place[key]
    write(path, *rows, ascii_only=True)
    for turn in turns(parse(CODEX, path, final=True)[0]).values():
        (turn.key + turn.text).encode()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(conversations(), st.data())
def test_damaged_bytes_are_no_reason_to_fail(path: Path, rows: list[Row], data: st.DataObject) -> None:
    whole = bytearray(encode(rows))
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(whole)
    parse(CODEX, path, final=True)


def test_marks_line_ends_and_deep_nesting_do_not_hide_what_was_said(path: Path) -> None:
    rows = b"\r\n".join(json.dumps(row).encode() for row in [meta(), *legacy("질문", "답")])
    deep = b'{"type":"response_item","payload":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    path.write_bytes(b"\xef\xbb\xbf" + rows + b"\r\n" + deep + b"\n")
    assert said(CODEX, path) == [("user", "질문"), ("assistant", "답")]
    assert len(unreadable(parse(CODEX, path)[0])) == 1


# --- whose file it is, and where files lie ---


def test_files_are_known_by_content(tmp_path: Path) -> None:
    anywhere = tmp_path / "any-name.txt"
    long = encode([meta(base_instructions={"text": "가" * 90_000})])
    for head in (encode([meta()]), encode([{"novel": 1}, sent("user", "x")]), long[: 64 << 10], encode([bare_meta()])):
        assert CODEX.sniff(anywhere, head) == Found("codex", anywhere)
    for head in (
        b"",
        b"# notes",
        encode([{"type": "user", "sessionId": "S", "message": {"role": "user", "content": "x"}}, meta()]),
        encode([{"role": "user", "content": "x"}]),
        encode([message("user", "x")]),
        encode([{"type": "session", "id": "S1"}, {"type": "message", "id": "1", "message": {"role": "user"}}]),
    ):
        assert CODEX.sniff(anywhere, head) is None
    old = document(tmp_path / "rollout-2025-05-07-x.json", message("user", "x"))
    assert CODEX.sniff(old, old.read_bytes()) == Found("codex", old)
    assert CODEX.sniff(tmp_path / "a.json", b'{"session": "x", "items": []}') is None


def test_live_archived_compressed_and_old_files_are_found_once(tmp_path: Path) -> None:
    kept = [
        f"sessions/2026/03/04/{name()}",
        f"sessions/2026/03/05/{name(rollout=OTHER)}",
        f"sessions/rollout-{THREAD}.jsonl",
        "sessions/rollout-2025-05-07-abc.json",
        f"archived_sessions/{name(OTHER)}",
        f"archived_sessions/{name('019a2b3c-4d5e-7f60-8a1b-2c3d4e5f6099')}.zst",
    ]
    beside = [
        f"sessions/2026/03/04/{name()}.zst",
        "history.jsonl",
        "session_index.jsonl",
        "auth.json",
        "sessions/2026/notes.jsonl",
    ]
    for one in [*kept, *beside]:
        write(tmp_path / one, meta())
    found = list(CODEX.discover(tmp_path))
    assert sorted(str(one.path.relative_to(tmp_path)) for one in found) == sorted(kept)
    assert {one.segment for one in found if one.path.parent.name == "archived_sessions"} == {"archived"}
    assert {one.segment for one in found if one.path.parent.name != "archived_sessions"} == {"live"}


def test_compressed_files_are_read(path: Path) -> None:
    packed = path.with_name(path.name + ".zst")
    packed.write_bytes(zstandard.compress(encode([meta(), *legacy("찾을 말", "네")])))
    assert said(CODEX, packed) == [("user", "찾을 말"), ("assistant", "네")]


def segments(tmp_path: Path, reverted_to: int, *, more: list[Row] | None = None) -> tuple[Path, Path]:
    """A thread whose second file goes on from a record of the first."""
    rows = [meta(history_mode="paginated", ordinal=0), *paginated("하나", "1", 1), *paginated("둘", "2", 11, "t2")]
    rows = [row | {"ordinal": at} if isinstance(row, dict) else row for at, row in enumerate(rows)]
    first = write(tmp_path / "sessions/2026/03/04" / name(), *rows)
    base = {
        "thread_id": THREAD,
        "end_ordinal_exclusive": reverted_to,
        "end_byte_offset": len(encode(rows[:reverted_to])),
    }
    further = name(rollout=OTHER, when="2026-03-05T01-00-00")
    second = write(tmp_path / "sessions/2026/03/05" / further, meta(history_base=base), *paginated("셋", "3", 21, "t3"))
    return first, second


def read(tmp_path: Path) -> dict[str, State]:
    found = CODEX.discover(tmp_path)
    events = [event for one in found for event in CODEX.parse(one, Progress(), final=False)]
    return {turn.text: turn.state for turn in turns(events).values()}


def test_what_a_further_file_of_the_thread_does_not_build_on_is_abandoned(tmp_path: Path) -> None:
    segments(tmp_path, 7)
    gone = {text for text, state in read(tmp_path).items() if state is State.ABANDONED}
    assert gone == {"둘", "2"}
    base = {
        "thread_id": THREAD,
        "end_ordinal_exclusive": 1,
        "end_byte_offset": len(encode([meta(history_mode="paginated", ordinal=0)])),
    }
    newest = name(rollout="019a2b3c-4d5e-7f60-8a1b-2c3d4e5f6079", when="2026-03-06T01-00-00")
    write(tmp_path / "sessions/2026/03/06" / newest, meta(history_base=base), *paginated("넷", "4", 31, "t4"))
    gone = {text for text, state in read(tmp_path).items() if state is State.ABANDONED}
    assert gone == {"하나", "1", "둘", "2", "셋", "3"}


def test_a_rollover_takes_nothing_back(tmp_path: Path) -> None:
    first, second = segments(tmp_path, 13)
    assert set(read(tmp_path).values()) == {State.LIVE}
    found = {one.path: one for one in CODEX.discover(tmp_path)}
    assert found[first].size_and_clock() == Found("codex", first).size_and_clock()
    told = {path: titles(list(CODEX.parse(one, Progress(), final=False))) for path, one in found.items()}
    assert told == {first: [(0, "하나")], second: []}


def test_a_base_that_fits_no_record_takes_nothing_back(tmp_path: Path) -> None:
    first, second = segments(tmp_path, 7)
    second.write_bytes(second.read_bytes().replace(b'"end_byte_offset": ', b'"end_byte_offset": 1'))
    first.write_bytes(first.read_bytes() + encode([{"novel": "x" * 20_000}]))
    assert set(read(tmp_path).values()) == {State.LIVE}


def test_a_revert_asks_for_the_whole_of_the_file_it_reaches_into(tmp_path: Path) -> None:
    first, second = segments(tmp_path, 7)
    _, progress = parse(CODEX, first)
    reverted = next(one for one in CODEX.discover(tmp_path) if one.path == first)
    assert reverted.size_and_clock() != Found("codex", first).size_and_clock()
    with pytest.raises(Reread):
        list(CODEX.parse(reverted, progress, final=False))
    assert CODEX.sniff(first, first.read_bytes()) == reverted
    second.unlink()
    alone = CODEX.sniff(first, first.read_bytes())
    assert alone is not None
    assert alone.size_and_clock() == Found("codex", first).size_and_clock()


def test_what_is_certainly_copied_is_left_to_the_parent_that_is_there(tmp_path: Path) -> None:
    old = [meta(OTHER), *legacy("A에서 물은 것", "답", 1)]
    child = [meta(THREAD, 30, forked_from_id=OTHER), *old, *legacy("B에서 물은 것", "새 답", 31)]
    write(tmp_path / "sessions/2026/03/04" / name(), *child)
    alone = read(tmp_path)
    assert list(alone) == ["A에서 물은 것", "답", "B에서 물은 것", "새 답"]
    write(tmp_path / "archived_sessions" / name(OTHER), *old)
    found = next(one for one in CODEX.discover(tmp_path) if THREAD in one.path.name)
    assert next(iter(turns(CODEX.parse(found, Progress(), final=False)).values())).text == "B에서 물은 것"
    assert set(read(tmp_path)) == set(alone)


def test_turns_begun_before_a_fork_are_copied_though_their_lines_were_written_later(tmp_path: Path) -> None:
    before, own, after = (
        "019cb740-0000-7000-8000-00000000000a",
        "019cb750-0000-7000-8000-00000000000b",
        "019cb760-0000-7000-8000-00000000000c",
    )
    made = "2026-03-04T05:35:59.488Z"  # when the second id says that it was made
    parent = [meta(OTHER), *paginated("옛 질문", "옛 답", 1, before)]
    copied = [row | {"timestamp": made} for row in parent]
    head = meta(own, forked_from_id=OTHER)
    head["payload"]["timestamp"] = head["timestamp"] = made
    new = [row | {"timestamp": "2026-03-04T06:00:00.000Z"} for row in paginated("새 질문", "새 답", 1, after)]
    write(tmp_path / "sessions" / name(OTHER), *parent)
    path = write(tmp_path / "sessions" / name(own), head, *copied, *new)
    found = next(one for one in CODEX.discover(tmp_path) if one.path == path)
    assert [turn.text for turn in turns(list(CODEX.parse(found, Progress(), final=False))).values()] == [
        "새 질문",
        "새 답",
    ]


# --- counts ---


def _counted(kind: str, *rows: Row, **wanted: int) -> Counted:
    return Counted(kind, "codex", lambda folder: write(folder / name(), *rows), **wanted)


_RUN = [call("shell", {"command": ["bash", "-lc", "pytest"]}), output("Exit code: 1\nOutput:\nE   ValueError: x")]
COUNTED = [
    _counted("sent only", meta(), sent("user", AGENTS_MD), *sent_only("질문", "답"), *_RUN, errors=1, outcomes=1),
    _counted("legacy", meta(), *legacy("질문", "답"), *_RUN, *legacy("또", "네", 5), user=2, assistant=2, errors=1, outcomes=1),
    _counted("paginated", meta(history_mode="paginated"), *paginated("질문", "답"), *_RUN, errors=1, outcomes=1),
    _counted("bare", bare_meta(), message("user", ENVIRONMENT), *bare("질문", "답"), *bare("또", "네"), user=2, assistant=2),
    _counted("rolled back", meta(), *legacy("질문", "답"), event("thread_rolled_back", 3, num_turns=1), *legacy("다시", "네", 4)),
    Counted("document", "codex", lambda folder: document(folder / f"rollout-2025-05-07-{THREAD}.json", message("user", "질문"), message("assistant", "답"))),
]  # fmt: skip

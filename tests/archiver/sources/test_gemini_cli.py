from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.sources.gemini_cli import GeminiCli
from archiver.sources.gemini_projects import hash_of
from archiver.transcript import About, Found, Progress, Reread, Title
from store.records import Role, State
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

GEMINI = GeminiCli()
SHOP = "/srv/shop"
SESSION = "5c0f1a3e-0000-4000-8000-000000000001"
NAME = "session-2026-03-04T05-06-5c0f1a3e"


def header(session: str = SESSION, cwd: str = SHOP, **more: Any) -> dict[str, Any]:
    """The first line of a transcript."""
    times = {"startTime": stamp(0), "lastUpdated": stamp(0)}
    return {"sessionId": session, "projectHash": hash_of(cwd), **times, "kind": "main"} | more


def message(native: str, kind: str, content: Any, second: int = 1, **more: Any) -> dict[str, Any]:
    return {"id": native, "timestamp": stamp(second), "type": kind, "content": content} | more


def user(native: str, content: Any, second: int = 1, **more: Any) -> dict[str, Any]:
    return message(native, "user", content, second, **more)


def model(native: str, content: Any, second: int = 2, **more: Any) -> dict[str, Any]:
    return message(native, "gemini", content, second, **more)


def call(name: str, given: dict[str, Any], output: str, status: str = "success", call_id: str = "c1") -> dict[str, Any]:
    answered = {"functionResponse": {"id": call_id, "name": name, "response": {"output": output}}}
    return {"id": call_id, "name": name, "args": given, "result": [answered], "status": status, "timestamp": stamp(3)}


def shell(command: str, output: str, status: str = "success", **more: Any) -> dict[str, Any]:
    return call("run_shell_command", {"command": command} | more, output, status)


def document(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return header(**more) | {"messages": list(messages)}


def write_document(path: Path, value: object, indent: int | None = 2) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=indent), encoding="utf-8")
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / f"{NAME}.jsonl"


def texts(path: Path, state: State = State.LIVE) -> list[str]:
    held = turns(parse(GEMINI, path)[0])
    return [turn.text for turn in sorted(held.values(), key=lambda turn: turn.pos) if turn.state is state]


def about(path: Path) -> About:
    return next(event for event in parse(GEMINI, path)[0] if isinstance(event, About))


def titles(path: Path) -> list[tuple[int, str]]:
    return [(event.rank, event.text) for event in parse(GEMINI, path)[0] if isinstance(event, Title)]


# --- who says what ---


@pytest.mark.parametrize(
    "content",
    [
        "배포해줘",
        {"text": "배포해줘"},
        [{"text": "배포해줘"}],
        ["배포해줘"],
        ["", {"text": "배포해줘"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
    ],
)
def test_content_is_a_string_a_part_or_a_list_of_both(path: Path, content: Any) -> None:
    write(path, header(), user("u", content), model("g", content))
    assert said(GEMINI, path) == [("user", "배포해줘"), ("assistant", "배포해줘")]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "  \n",
        "/compress",
        "?",
        "<session_context>\nToday is Friday.\n|- src/\n|- decided.md\n</session_context>",
        "<session_context>\nnever closed",
        "<hook_context>zebra</hook_context>",
        "System: Please continue.",
        "Please continue.",
        "System: Potential loop detected. Details: zebra. Please take a step back.",
        "<state_snapshot>\n<overall_goal>zebra</overall_goal>\n</state_snapshot>",
        "<scratchpad>\nthinking\n</scratchpad>\n<state_snapshot>zebra</state_snapshot>",
        "Here is the user's editor context as a JSON object. This is for your information only.\n```json\n{}\n```",
        "Background execution update:\n<background_output>\nzebra\n</background_output>\n\nA previously backgrounded execution",
        "This is the Gemini CLI. We are setting up the context for our chat.\nToday's date is Monday.",
        "You are a summariser. <observed>zebra</observed>",
        [{"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "zebra"}}}],
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        None,
        17,
    ],
)
def test_what_the_program_writes_in_a_persons_name_is_no_turn_and_no_title(path: Path, content: Any) -> None:
    write(path, header(), user("n", content), user("u", "테스트 추가해줘"))
    assert said(GEMINI, path) == [("user", "테스트 추가해줘")]
    assert titles(path) == [(0, "테스트 추가해줘")]


REFERENCED = "explain @a.ts\n--- Content from referenced files ---\nContent from @a.ts:\nzebra\n--- End of content ---"


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        (REFERENCED, "explain @a.ts"),
        (f"{REFERENCED}\n그리고 정리해줘", "explain @a.ts\n\n그리고 정리해줘"),
        (
            ["explain @a.ts", {"text": "\n--- Content from referenced files ---"}, "\nContent from @a.ts:\n", "zebra"],
            "explain @a.ts",
        ),
        ("왜 --- Content from referenced files --- 가 나와?", "왜 --- Content from referenced files --- 가 나와?"),
        (["나는 이렇게 할래", "<hook_context>zebra</hook_context>"], "나는 이렇게 할래"),
        ("<session_context>zebra</session_context>\n첫 질문", "첫 질문"),
        (["@docs 봐줘", "\n<system_note>\nzebra\n</system_note>\n"], "@docs 봐줘"),
        ("<!-- wwt:recall -->옛 결정<!-- /wwt:recall -->배포해줘", "배포해줘"),
        ("// 이 주석은 지우자", "// 이 주석은 지우자"),
        ([{"text": "앞"}, {"text": "뒤"}], "앞\n\n뒤"),
    ],
)
def test_what_is_put_around_a_persons_words_is_cut(path: Path, content: Any, kept: str) -> None:
    assert said(GEMINI, write(path, header(), user("u", content))) == [("user", kept)]


@pytest.mark.parametrize(
    "opening", ["<!--", "Here is the user's editor context as a JSON object.\n```json\n{}", "<session_context> "]
)
def test_openings_that_never_close_are_read_once(path: Path, opening: str) -> None:
    text = "왜 이래? " + opening * 50_000
    write(path, header(), user("u", text, displayContent=text), model("g", "답"))
    assert len(said(GEMINI, path)) == 2


def test_what_was_typed_counts_before_what_was_sent(path: Path) -> None:
    write(
        path,
        header(),
        user("u", REFERENCED, displayContent=[{"text": "@a.ts 설명해줘"}]),
        user("v", "둘", displayContent=""),
        user("w", "", displayContent="셋"),
    )
    assert said(GEMINI, path) == [("user", "@a.ts 설명해줘"), ("user", "둘"), ("user", "셋")]


def test_a_prompt_that_is_shown_again_while_the_program_goes_on_by_itself_is_one(path: Path) -> None:
    rows = [
        header(),
        user("u", [{"text": "고쳐줘"}, {"text": "<hook_context>zebra</hook_context>"}], displayContent="고쳐줘"),
        model("g", "고쳤습니다"),
        user("v", "린트가 실패했습니다", displayContent="고쳐줘"),
        user("w", "System: Potential loop detected. Details: 고쳐줘", displayContent="고쳐줘"),
        model("h", "린트도 고쳤습니다"),
        user("x", [{"text": "고쳐줘"}, {"text": "<hook_context>ibis</hook_context>"}], displayContent="고쳐줘"),
    ]
    wanted = ["고쳐줘", "고쳤습니다", "린트도 고쳤습니다", "고쳐줘"]
    whole = encode(rows)
    for cut in [len(encode(rows[:at])) for at in range(len(rows) + 1)]:
        assert [turn.text for turn in in_two_pieces(GEMINI, path, whole, cut).values()] == wanted


def test_a_hint_given_while_the_model_works_is_steering(path: Path) -> None:
    hint = "User steering update:\n<user_input>\n캐시는 10분으로 [꼭\\]\n</user_input>\nInternal instruction: Re-evaluate the plan."
    response = {"functionResponse": {"id": "c1", "response": {"output": "zebra"}}}
    (turn,) = turns(parse(GEMINI, write(path, header(), user("u", [response, {"text": hint}])))[0]).values()
    assert (turn.kind, turn.text) == ("steering", "캐시는 10분으로 [꼭]")


@pytest.mark.parametrize(
    "content",
    [
        "",
        [{"text": "zebra", "thought": True}],
        [{"functionCall": {"id": "c1", "name": "read_file", "args": {}}}],
        "Got it. Thanks for the additional context!",
        "[The previous response was interrupted before it completed.]",
        "API Error: 503 zebra",
    ],
)
def test_thoughts_calls_and_stock_phrases_are_no_answers(path: Path, content: Any) -> None:
    thoughts = [{"subject": "zebra", "description": "zebra", "timestamp": stamp(1)}]
    write(path, header(), user("u", "질문"), model("g", content, thoughts=thoughts), model("h", "답"))
    assert said(GEMINI, path) == [("user", "질문"), ("assistant", "답")]


@pytest.mark.parametrize("kind", ["info", "error", "warning", "hologram"])
def test_notices_are_no_turns(path: Path, kind: str) -> None:
    assert parse(GEMINI, write(path, header(), message("n", kind, "Hook failed")), final=True)[0] == []


def test_a_summary_is_a_better_title_than_the_first_prompt(path: Path) -> None:
    write(path, header(), user("u", "결제 오류 고쳐줘"), {"$set": {"summary": "Fix the payment bug"}})
    assert titles(path) == [(0, "결제 오류 고쳐줘"), (2, "Fix the payment bug")]


# --- growth, rewinding ---


def test_a_message_that_is_written_again_is_one_turn_in_its_first_place(path: Path) -> None:
    write(
        path, header(), user("u", "질문"), model("g", "답의"), message("i", "info", "x"), user("v", "다음"),
        model("g", "답의 전부", toolCalls=[shell("pytest", "Output: ok")]),
        model("g", "답의 전부", toolCalls=[shell("pytest", "Output: ok")], tokens={"total": 1}),
    )  # fmt: skip
    assert texts(path) == ["질문", "답의 전부", "다음"]
    assert outcomes(parse(GEMINI, path)[0]) == [("test", True, "pytest")]


@pytest.mark.parametrize(
    ("target", "live", "abandoned"),
    [("u2", ["하나", "답1", "셋"], ["둘", "답2"]), ("g1", ["하나", "셋"], ["답1", "둘", "답2"]), ("nowhere", ["셋"], ["하나", "답1", "둘", "답2"])],
)  # fmt: skip
def test_rewound_turns_are_abandoned(path: Path, target: str, live: list[str], abandoned: list[str]) -> None:
    write(
        path, header(), user("u1", "하나"), model("g1", "답1"), user("u2", "둘"),
        model("g2", "답2", toolCalls=[shell("make build", "Output: ok")]), {"$rewindTo": target}, user("u3", "셋"),
    )  # fmt: skip
    assert texts(path) == live
    assert texts(path, State.ABANDONED) == abandoned
    assert outcomes(parse(GEMINI, path)[0]) == []


def test_the_title_is_of_a_prompt_that_was_not_taken_back(path: Path) -> None:
    write(path, header(), user("u1", "잘못 쓴 말"), {"$rewindTo": "u1"}, user("u2", "바른 말"))
    assert titles(path) == [(0, "바른 말")]


def test_compression_takes_nothing_that_was_said_and_its_summary_is_nobodys_words(path: Path) -> None:
    listed = [user("s", "우리는 Redis를 쓰기로 했다", 5), model("k", "알겠습니다", 5), model("g2", "둘째 답", 4)]
    write(
        path, header(), user("u1", "DB는 SQLite로 가자"), model("g1", "네"), user("u2", "인덱스도"), model("g2", "둘째 답", 4),
        {"$set": {"messages": listed, "lastUpdated": stamp(5)}}, user("u3", "이어서"),
    )  # fmt: skip
    assert texts(path) == ["DB는 SQLite로 가자", "네", "인덱스도", "둘째 답", "이어서"]


def test_a_list_may_be_all_there_is(path: Path) -> None:
    write(path, header(), {"$set": {"messages": [user("u1", "하나"), model("g1", "답")]}}, user("u2", "둘"))
    assert texts(path) == ["하나", "답", "둘"]


def test_messages_behind_known_ones_in_a_list_are_kept(path: Path) -> None:
    write(path, header(), user("u1", "하나"), {"$set": {"messages": [user("u1", "하나"), user("u2", "둘")]}})
    assert texts(path) == ["하나", "둘"]


# --- copies: what the agent's recorder writes when it gives the model another history ---


class Recorder:
    """Writes as the agent does: `$set` lists of all messages up to 0.60, `$patch` of what changed since.

    merged: turns of one role that follow each other become one where the history is taken anew.
    """

    def __init__(self, *, patches: bool, merged: bool) -> None:
        self.rows: list[dict[str, Any]] = [header()]
        self.patches, self.merged = patches, merged
        self.history: list[tuple[str, str, list[Any]]] = []
        self.known: dict[str, dict[str, Any]] = {}
        self.number = 0
        self.env = ("0" * 32, "user", [{"text": "<session_context>\nzebra\n</session_context>"}])
        self.start([])

    def record(self, kind: str, content: Any, native: str = "") -> str:
        self.number += 1
        native = native or f"{self.number:08x}-aaaa-4000-8000-000000000000"
        row = message(native, kind, content, self.number % 60)
        self.rows += [row, {"$set": {"lastUpdated": stamp(self.number % 60)}}]
        self.known[native] = row
        return native

    def say(self, text: str, answer: str = "") -> None:
        """A prompt, a tool round, and the answer, whose white space the recorder strips."""
        self.history.append((self.record("user", [{"text": text}]), "user", [{"text": text}]))
        asked = [{"functionCall": {"id": f"c{self.number}", "name": "read_file", "args": {}}}]
        self.history.append((self.record("gemini", ""), "model", asked))
        response = [{"functionResponse": {"id": f"c{self.number}", "response": {"output": "zebra"}}}]
        self.history.append((self.record("user", response), "user", response))
        answer = answer or f"{text} 완료"
        self.history.append((self.record("gemini", answer), "model", [{"text": f"{answer}\u200b \n"}]))

    def start(self, turns: list[tuple[str, str, list[Any]]]) -> None:
        self.history = [self.env, *turns]
        self.sync()

    def sync(self) -> None:
        ids = [native for native, _, _ in self.history]
        kinds = {"user": "user", "model": "gemini"}
        new = [(native, kinds[role], parts) for native, role, parts in self.history if native not in self.known]
        if self.patches:
            for native, kind, parts in new:
                self.record(kind, parts, native)
            gone = [native for native in self.known if native not in ids]
            self.rows.append({"$patch": {"removeIds": gone, "orderIds": ids}})
            self.known = {native: self.known[native] for native in ids}
            return
        self.known |= {native: message(native, kind, parts, 0) for native, kind, parts in new}
        self.known = {native: self.known[native] for native in ids}
        self.rows.append({"$set": {"messages": list(self.known.values()), "lastUpdated": stamp(0)}})

    def contents(self) -> list[tuple[str, list[Any]]]:
        taken: list[tuple[str, list[Any]]] = []
        for _, role, parts in copy.deepcopy(self.history):
            if self.merged and taken and taken[-1][0] == role:
                taken[-1][1].extend(parts)
            else:
                taken.append((role, parts))
        return taken

    def set_history(self, contents: list[tuple[str, list[Any]]]) -> None:
        """Every turn is recorded anew, as when tool outputs are masked or a saved chat is loaded."""
        kinds = {"user": "user", "model": "gemini"}
        self.history = [(self.record(kinds[role], parts), role, parts) for role, parts in contents]
        self.sync()

    def compress(self, keep: int) -> None:
        tail = self.contents()[-keep:] if keep else []
        snapshot = ("user", [{"text": "<state_snapshot>\n<overall_goal>zebra</overall_goal>\n</state_snapshot>"}])
        ack = ("model", [{"text": "Got it. Thanks for the additional context!"}])
        named = []
        for role, parts in [snapshot, ack, *tail]:
            self.number += 1
            named.append((f"{self.number:08x}-bbbb-4000-8000-000000000000", role, parts))
        self.start(named)

    def rewind(self, text: str) -> None:
        at = next(at for at, (_, _, parts) in enumerate(self.history) if {"text": text} in parts)
        self.rows.append({"$rewindTo": self.history[at][0]})
        self.known = {native: self.known[native] for native, _, _ in self.history[:at]}
        self.history = self.history[:at]
        self.sync()


FLOWS = {
    "가 나 compress:4 다": ("가 나 다", ""),
    "가 나 compress:0 다": ("가 나 다", ""),
    "가 나 compress:4 다 compress:8 라": ("가 나 다 라", ""),
    "가 나 mask 다": ("가 나 다", ""),
    "가 mask 나 mask 다": ("가 나 다", ""),
    "가 save 나 load 다": ("가 나 다", ""),
    "가 save 나 compress:4 load 다": ("가 나 다", ""),
    "가 가 나 compress:4 가": ("가 가 나 가", ""),
    "가 나 다 rewind:나 라": ("가 라", "나 다"),
    "가 나 compress:4 다 rewind:나 라": ("가 라", "나 다"),
    "가 나 mask 다 rewind:나 라": ("가 라", "나 다"),
    "가 나 save rewind:나 load 다": ("가 나 다", ""),
}
"""What is said and done, and what of it stands and what was taken back."""


def played(flow: str, recorder: Recorder) -> Recorder:
    saved = recorder.contents()
    for step in flow.split():
        name, _, given = step.partition(":")
        match name:
            case "compress":
                recorder.compress(int(given))
            case "rewind":
                recorder.rewind(given)
            case "save":
                saved = recorder.contents()
            case "load":
                recorder.set_history(saved)
            case "mask":
                recorder.set_history(recorder.contents())
            case _:
                recorder.say(step)
    return recorder


def exchanges(words: str) -> list[str]:
    return [text for word in words.split() for text in (word, f"{word} 완료")]


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("patches", [False, True])
@pytest.mark.parametrize("flow", list(FLOWS))
def test_the_program_recording_the_conversation_anew_doubles_nothing(
    path: Path, flow: str, patches: bool, merged: bool
) -> None:
    live, abandoned = FLOWS[flow]
    write(path, *played(flow, Recorder(patches=patches, merged=merged)).rows)
    assert texts(path) == exchanges(live)
    assert texts(path, State.ABANDONED) == exchanges(abandoned)


def test_a_loaded_chat_brings_back_what_was_rewound(path: Path) -> None:
    write(path, *played("가 save rewind:가 load 나", Recorder(patches=True, merged=False)).rows)
    assert [text.rstrip("\u200b \n") for text in texts(path)] == exchanges("가 나")


def test_a_copy_of_what_was_sent_is_known_where_other_words_were_typed(path: Path) -> None:
    sent = ["설명해줘 @src/a.ts", "\n--- Content from referenced files ---", "zebra"]
    write(
        path, header(), user("u1", sent, displayContent="설명해줘 @a"), model("g1", "네"), user("u2", sent), model("g2", "네"),
        {"$patch": {"removeIds": ["u1", "g1"], "orderIds": ["u2", "g2"]}},
    )  # fmt: skip
    assert texts(path) == ["설명해줘 @a", "네"]


def test_a_prompt_that_was_broken_off_is_not_what_an_earlier_one_repeats(path: Path) -> None:
    spoken = [user("u1", "고쳐줘"), model("g1", "네")]
    write(path, header(), *spoken, user("u2", "고쳐줘"), {"$set": {"messages": spoken}}, user("u3", "다른 말"))
    assert texts(path) == ["고쳐줘", "네", "고쳐줘", "다른 말"]


def test_no_more_than_a_summary_and_its_answer_is_taken_from_a_list(path: Path) -> None:
    listed = [user("s", "요약"), model("k", "알겠습니다"), user("u2", "둘"), model("g2", "답2")]
    write(path, header(), user("u1", "하나"), {"$set": {"messages": listed}})
    assert texts(path) == ["하나", "둘", "답2"]


# --- tools ---

OLD_SHELL = "Command: {}\nDirectory: (root)\nOutput: {}\nError: (none)\nExit Code: {}\nSignal: 0\nBackground PIDs: (none)\nProcess Group PGID: 7"


@pytest.mark.parametrize(
    ("done", "told"),
    [
        (shell("npm test", "Output: ok\nProcess Group PGID: 7"), [("test", True, "npm test")]),
        (shell("npm test", "Output: bad\nExit Code: 1\nProcess Group PGID: 7"), [("test", False, "npm test")]),
        (shell("npm test", "Output: Exit Code: 1\nall green\nProcess Group PGID: 7"), [("test", True, "npm test")]),
        (shell("npm test", OLD_SHELL.format("npm test", "ok", 0)), [("test", True, "npm test")]),
        (shell("npm test", OLD_SHELL.format("npm test", "bad", 2)), [("test", False, "npm test")]),
        (shell("npm test", "could not start", "error"), [("test", False, "npm test")]),
        (shell("npm test", "[Operation Cancelled]", "cancelled"), []),
        (shell("npm test", "", "executing"), []),
        (shell("npm test", "Command was cancelled by user before it could complete."), []),
        (shell("npm test", "Command was automatically cancelled because it exceeded 5 minutes."), [("test", False, "npm test")]),
        (shell("npm test", "Command moved to background (PID: 7).", is_background=True), []),
        (shell("git commit -m x", "Output: [main 1a2b] x"), [("commit", True, "git commit -m x")]),
        (shell("ls", "Output: x"), []),
        (call("write_file", {"file_path": "a.py"}, "Successfully created"), [("files", True, "a.py")]),
        (call("replace", {"file_path": "a.py"}, "0 occurrences found", "error"), [("files", False, "a.py")]),
        (call("replace", {"file_path": "a.py"}, "[Operation Cancelled]", "cancelled"), []),
        (call("read_file", {"file_path": "a.py"}, "x"), []),
        (call("mcp_wwt_search", {"file_path": "a.py"}, "npm test", "error"), []),
        ({"id": "c1", "name": "write_file", "args": "garbage", "status": "success"}, []),
    ],
)  # fmt: skip
def test_tool_calls_prove_outcomes(path: Path, done: dict[str, Any], told: list[Any]) -> None:
    write(path, header(), user("u", "질문"), model("g", "", toolCalls=[done]))
    assert outcomes(parse(GEMINI, path)[0]) == told


@pytest.mark.parametrize(
    ("done", "error"),
    [
        (shell("x", "Output: start\nerror: 파일이 없습니다\nExit Code: 1\nProcess Group PGID: 7"), "error: 파일이 없습니다"),
        (shell("x", OLD_SHELL.format("x", "error: 파일이 없습니다", 1)), "error: 파일이 없습니다"),
        (call("replace", {}, "Failed to edit, 0 occurrences found", "error"), "Failed to edit, 0 occurrences found"),
        (call("read_file", {}, "", "error") | {"result": [], "resultDisplay": "File not found."}, "File not found."),
        (
            call("m", {}, "", "error") | {"result": [{"functionResponse": {"response": {"error": {"message": "no such tool"}}}}]},
            "no such tool",
        ),
    ],
)  # fmt: skip
def test_failed_calls_keep_their_error(path: Path, done: dict[str, Any], error: str) -> None:
    write(path, header(), user("u", "질문"), model("g", "해볼게요", toolCalls=[done]))
    held = sorted(turns(parse(GEMINI, path)[0]).values(), key=lambda turn: turn.pos)
    assert [(turn.role, turn.text) for turn in held[1:]] == [(Role.ASSISTANT, "해볼게요"), (Role.TOOL, error)]
    assert held[1].pos < held[2].pos


@pytest.mark.parametrize(
    "done",
    [
        shell("grep x", "Output: (empty)\nExit Code: 1\nProcess Group PGID: 7"),
        shell("x", "error: x"),
        call("replace", {}, "error", "cancelled"),
    ],
)
def test_what_did_not_fail_or_says_nothing_is_no_error(path: Path, done: dict[str, Any]) -> None:
    assert said(GEMINI, write(path, header(), user("u", "질문"), model("g", "", toolCalls=[done]))) == [
        ("user", "질문")
    ]


# --- sessions ---


def test_a_subagent_belongs_to_the_session_whose_folder_it_lies_in(tmp_path: Path) -> None:
    path = tmp_path / "chats" / SESSION / "0la501.jsonl"
    write(path, header("0la501", kind="subagent"), user("u", "조사해"), model("g", "찾았습니다"))
    assert (about(path).external_id, about(path).parent, about(path).is_subagent) == ("0la501", SESSION, True)
    told = turns(parse(GEMINI, path)[0]).values()
    assert [(turn.role, turn.kind) for turn in told] == [(Role.SUBAGENT, "task"), (Role.SUBAGENT, "answer")]
    assert titles(path) == [(0, "조사해")]


def test_a_project_named_chats_has_no_subagents(tmp_path: Path) -> None:
    path = write(tmp_path / "tmp" / "chats" / "chats" / f"{NAME}.jsonl", header(), user("u", "질문"))
    assert (about(path).parent, about(path).is_subagent) == (None, False)


def test_a_subagents_file_that_was_moved_is_still_one(path: Path) -> None:
    write(path, header(kind="subagent"), user("u", "조사해"))
    assert (about(path).parent, about(path).is_subagent) == (None, True)


def test_short_ids_of_two_sessions_are_not_mixed_up(tmp_path: Path) -> None:
    one = write(tmp_path / "a.jsonl", header("first"), user("1", "하나"))
    other = write(tmp_path / "b.jsonl", header("other"), user("1", "둘"))
    assert list(turns(parse(GEMINI, one)[0])) != list(turns(parse(GEMINI, other)[0]))


def test_a_transcript_without_its_first_line_is_named_by_its_file(path: Path) -> None:
    assert about(write(path, b'{"sessionId":"x', user("u", "질문"))).external_id == NAME


def test_sessions_in_our_own_home_yield_nothing(path: Path, wwt_home: Path) -> None:
    write(path, header(directories=[str(wwt_home)]), user("u", "x"))
    assert parse(GEMINI, path)[0] == []


# --- projects ---


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "user" / ".gemini"


def chat(home: Path, name: str = "shop", *rows: Row) -> Path:
    return write(home / "tmp" / name / "chats" / f"{NAME}.jsonl", *(rows or (header(), user("u", "질문"))))


def register(home: Path, projects: object) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "projects.json").write_text(json.dumps({"projects": projects}), encoding="utf-8")


def test_a_slug_is_looked_up_in_the_registry(home: Path) -> None:
    register(home, {"/other": "other", SHOP: "shop"})
    assert about(chat(home, "shop", header(cwd="/gone"), user("u", "질문"))).cwd == SHOP


@pytest.mark.parametrize("base", ["tmp", "history"])
def test_a_marker_names_the_folder_of_a_slug(home: Path, base: str) -> None:
    marker = home / base / "shop" / ".project_root"
    marker.parent.mkdir(parents=True)
    marker.write_text(f"{SHOP}\n", encoding="utf-8")
    assert about(chat(home)).cwd == SHOP


def test_a_hash_is_compared_with_the_folders_that_are_known(home: Path) -> None:
    register(home, {SHOP: "shop-1"})
    assert about(chat(home, hash_of(SHOP))).cwd == SHOP
    assert about(chat(home, "renamed")).cwd == SHOP


def test_a_hash_is_compared_with_the_markers_too(home: Path) -> None:
    marker = home / "tmp" / "shop" / ".project_root"
    marker.parent.mkdir(parents=True)
    marker.write_text(SHOP, encoding="utf-8")
    assert about(chat(home, hash_of(SHOP))).cwd == SHOP


def test_the_hash_of_the_session_beats_what_the_slug_stands_for_today(home: Path) -> None:
    register(home, {"/srv/new/shop": "shop", SHOP: "shop-1"})
    assert about(chat(home)).cwd == SHOP


@pytest.mark.parametrize(
    "row",
    [
        {"$set": {"directories": ["/elsewhere", SHOP]}},
        user("e", f"<session_context>\n- **Workspace Directories:**\n  - {SHOP}\n  - /elsewhere\n</session_context>"),
        user("e", f"This is the Gemini CLI. We are setting up the context for our chat.\n  I'm currently working in the directory: {SHOP}\n"),
    ],
)  # fmt: skip
def test_a_folder_that_the_session_names_counts_if_its_hash_is_right(path: Path, row: dict[str, Any]) -> None:
    assert about(write(path, header(), row, user("u", "질문"))).cwd == SHOP


def test_the_first_directory_is_the_folder_where_nothing_speaks_against_it(path: Path) -> None:
    assert about(write(path, header(cwd="/redacted", directories=[SHOP, "/else"]), user("u", "질문"))).cwd == SHOP


@pytest.mark.parametrize("said", [f"<session_context>\n- **Workspace Directories:**\n  - {SHOP}\n</session_context>"])
def test_no_folder_is_made_up(home: Path, said: str) -> None:
    assert about(chat(home, "srv-shop", header(cwd="/gone"), user("e", said), user("u", "질문"))).cwd is None


def test_a_file_elsewhere_is_known_by_its_hash(home: Path, path: Path) -> None:
    write(path, header(), user("u", "질문"))
    assert about(path).cwd is None
    register(home, {SHOP: "shop"})
    assert about(path).cwd == SHOP


@pytest.mark.parametrize(
    "broken", [b"", b"[]", b'{"projects": 7}', b'{"projects": {"/a": 7, "": "shop"}}', b"\xff\xfe"]
)
def test_a_broken_registry_only_leaves_the_folder_unknown(home: Path, broken: bytes) -> None:
    found = chat(home)
    (home / "projects.json").write_bytes(broken)
    assert about(found).cwd is None


def test_a_file_is_another_one_once_its_folder_is_known(home: Path) -> None:
    chat(home)
    (before,) = GEMINI.discover(home / "tmp")
    register(home, {SHOP: "shop"})
    (after,) = GEMINI.discover(home / "tmp")
    assert before.size_and_clock() != after.size_and_clock()
    assert after == GEMINI.sniff(after.path, after.path.read_bytes())


# --- where they lie ---


def found(home: Path) -> set[str]:
    return {one.path.relative_to(home).as_posix() for one in GEMINI.discover(home / "tmp")}


def test_the_agents_home_may_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert GEMINI.roots() == [Path.home() / ".gemini" / "tmp"]
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "alt"))
    assert GEMINI.roots() == [tmp_path / "alt" / ".gemini" / "tmp"]


def test_the_sandbox_has_a_home_of_its_own() -> None:
    for home in (".gemini", ".cache/.gemini"):
        (Path.home() / home / "tmp").mkdir(parents=True)
    assert GEMINI.roots() == [Path.home() / ".gemini" / "tmp", Path.home() / ".cache" / ".gemini" / "tmp"]


def test_transcripts_are_found_and_what_lies_beside_them_is_not(home: Path) -> None:
    kept = [
        f"tmp/shop/chats/{NAME}.jsonl",
        "tmp/shop/chats/session-2025-12-01T01-02-aaaaaaaa.json",
        f"tmp/shop/chats/{SESSION}/0la501.jsonl",
    ]
    beside = [
        f"tmp/shop/chats/{NAME}.jsonl.unreadable-1767225600000",
        f"tmp/shop/chats/{NAME}.jsonl.tmp-4711",
        "tmp/shop/chats/notes.json",
        "tmp/shop/logs.json",
        "tmp/shop/checkpoint-before%20refactor.json",
        "tmp/shop/checkpoints/x.json",
        "history/shop/.project_root",
        "settings.json",
    ]
    for name in kept + beside:
        write(home / name, header(name), user("u", "x"))
    assert found(home) == set(kept)


def test_a_resumed_json_file_gives_way_to_the_jsonl_file_beside_it(home: Path) -> None:
    new = chat(home)
    old = write_document(new.with_suffix(".json"), document(user("u", "질문")))
    other = write_document(
        new.with_name("session-2025-12-01T01-02-aaaaaaaa.json"), document(user("v", "x"), session="b")
    )
    assert found(home) == {new.relative_to(home).as_posix(), other.relative_to(home).as_posix()}
    one = GEMINI.sniff(old, old.read_bytes())
    assert one is not None and one.path == new


def test_a_migrated_project_folder_gives_way_to_its_copy(home: Path) -> None:
    old = chat(home, hash_of(SHOP))
    child = Path(SESSION) / "0la501.jsonl"
    write(old.parent / child, header("0la501"), user("u", "x"))
    new = chat(home, "shop")
    write(new.parent / child, header("0la501"), user("u", "x"))
    assert found(home) == {f"tmp/shop/chats/{NAME}.jsonl", f"tmp/shop/chats/{child.as_posix()}"}
    one = GEMINI.sniff(old, old.read_bytes())
    assert one is not None and one.path == new


def test_a_folder_in_which_an_old_version_went_on_is_read_beside_its_copy(home: Path) -> None:
    old = chat(home, hash_of(SHOP), header(), user("u", "질문"), model("g", "답"), user("v", "더"))
    chat(home, "shop", header(), user("u", "질문"), model("g", "답"))
    assert len(found(home)) == 2
    one = GEMINI.sniff(old, old.read_bytes())
    assert one is not None and one.path == old


def test_files_of_one_name_with_different_sessions_are_not_copies(home: Path) -> None:
    chat(home, hash_of("/a"), header("A"), user("u", "하나"))
    chat(home, "b", header("B"), user("u", "둘"))
    assert len(found(home)) == 2


# --- content ---


def test_files_are_known_by_content(tmp_path: Path) -> None:
    def known(head: bytes, name: str = "any-name.txt") -> bool:
        return GEMINI.sniff(tmp_path / name, head) is not None

    assert known(encode([header(), user("u", "x")]))
    assert known(b"\xef\xbb\xbf\r\n" + encode([header()]))
    assert known(encode([b'{"sessionId":"x', user("u", "x"), model("g", "y")]))
    assert known(encode([{"$set": {"lastUpdated": stamp(1)}}]))
    assert known(json.dumps(document(user("u", "x")), indent=2).encode())
    assert known(json.dumps(document(user("u", "x" * 200_000)), indent=2).encode()[: 64 << 10])
    assert known(json.dumps(document(user("u", "x"))).encode())
    assert not known(encode([header()]), f"{NAME}.jsonl.unreadable-1767225600000")
    assert not known(encode([header()]), f"{NAME}.jsonl.tmp-4711")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"{",
        b"[]",
        encode([{"role": "user", "content": "api log"}, {"role": "model", "parts": [{"text": "x"}]}]),
        encode([user("u", "x")]),
        encode([{"type": "user", "uuid": "1", "sessionId": "S", "message": {"content": "x"}}]),
        encode([{"sessionId": "S", "type": "summary", "summary": "x"}]),
        encode([{"$set": {"status": "paid"}}]),
        json.dumps([{"sessionId": "S", "messageId": 0, "type": "user", "message": "/quit"}], indent=2).encode(),
        json.dumps([{"role": "user", "parts": [{"text": "x"}]}], indent=2).encode(),
        json.dumps({"messages": [], "sessionId": "S"}, indent=2).encode(),
        json.dumps({"text": json.dumps(document())}, indent=2).encode(),
        json.dumps({"projects": {SHOP: "shop"}}, indent=2).encode(),
        b"\xff\xfe{\x00",
        b"[" * 100_000,
    ],
)
def test_files_of_others_are_left_to_them(tmp_path: Path, head: bytes) -> None:
    assert GEMINI.sniff(tmp_path / "any-name.json", head) is None


WORDS = document(user("u", "질문"), model("g", "답"))


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(WORDS, indent=2).encode(),
        json.dumps(WORDS).encode(),
        json.dumps(WORDS, ensure_ascii=False, indent=2).encode(),
        b"\xef\xbb\xbf" + json.dumps(WORDS, indent=2).encode() + b"\n",
        json.dumps(WORDS, indent=2).replace("\n", "\r\n").encode(),
        json.dumps(WORDS | {"score": float("nan")}, indent=2).encode(),
        json.dumps(WORDS, indent=2).encode() + b"\x00\x00",
        encode([header(), user("u", "질문"), model("g", "답")]),
        encode([header(), user("u", "질문"), model("g", "답")]).replace(b"\n", b"\r\n"),
        encode([WORDS]),
    ],
)
@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_a_document_and_a_log_are_told_apart_by_content(path: Path, data: bytes, suffix: str) -> None:
    path = path.with_suffix(suffix)
    path.write_bytes(data)
    assert said(GEMINI, path, final=True) == [("user", "질문"), ("assistant", "답")]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (json.dumps(WORDS, indent=2).encode()[:200], "not JSON"),
        (b"[\n1\n]", "not an object"),
        (b"{\n" + b'"a":{' * 200_000, "nested too deeply"),
        (b'{\n"a": ' + b"9" * 5000 + b"}", "a number with too many digits"),
        (json.dumps(WORDS, indent=2).encode("utf-16"), "not UTF-8"),
    ],
)
def test_a_document_that_cannot_be_read_is_reported_once(path: Path, data: bytes, reason: str) -> None:
    path = path.with_suffix(".json")
    path.write_bytes(data)
    ((line, told),) = unreadable(parse(GEMINI, path, final=True)[0])
    assert line == 0 and told.startswith(reason)


@pytest.mark.parametrize(
    ("data", "told"), [(b"", [(0, "empty")]), (b"\n\n", [(0, "empty")]), (b'{"sessionId":"G2"', [])]
)
def test_an_empty_log_is_reported_and_one_just_begun_is_not(path: Path, data: bytes, told: list[Any]) -> None:
    path.write_bytes(data)
    assert unreadable(parse(GEMINI, path)[0]) == told


def test_a_torn_line_costs_nothing_else(path: Path) -> None:
    write(path, header(), user("u", "하나"), b'{"id":"x","type":"us', b"[1]", model("g", "답"))
    assert texts(path) == ["하나", "답"]
    assert [line for line, _ in unreadable(parse(GEMINI, path)[0])] == [3, 4]


def test_a_file_that_is_not_there_is_an_error(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        parse(GEMINI, path)


def test_a_document_is_always_read_from_its_start(path: Path) -> None:
    path = write_document(path.with_suffix(".json"), WORDS)
    assert parse(GEMINI, path)[1] == Progress()


def test_the_models_messages_of_other_writers_are_read(path: Path) -> None:
    spoken = {"id": "m", "timestamp": stamp(2), "type": "model", "parts": [{"text": "답"}]}
    write_document(
        path.with_suffix(".json"), document(user("u", "질문"), spoken, {"type": "user", "content": "이름 없음"})
    )
    assert texts(path.with_suffix(".json")) == ["질문", "답", "이름 없음"]


# --- reading on ---


def test_a_log_is_read_on_where_it_stopped(path: Path) -> None:
    write(path, header(), user("u1", "하나"), model("g1", "답의"))
    first, progress = parse(GEMINI, path)
    more = encode(
        [model("g1", "답의 끝"), user("u2", "둘"), model("g2", "", toolCalls=[shell("make test", "Output: ok")])]
    )
    with path.open("ab") as file:
        file.write(more)
    running = GEMINI.parse(Found("gemini-cli", path), progress, final=False)
    held = turns(list(running), turns(first))
    assert running.bytes_read == len(more)
    assert [turn.text for turn in sorted(held.values(), key=lambda turn: turn.pos)] == ["하나", "답의 끝", "둘"]
    assert "답" not in json.dumps(progress.state, ensure_ascii=False)


@pytest.mark.parametrize(
    "row", [{"$rewindTo": "u1"}, {"$set": {"messages": []}}, {"$patch": {"removeIds": ["u1"]}}, {"$patch": {"orderIds": ["u1"]}}]
)  # fmt: skip
def test_what_changes_earlier_messages_has_the_file_read_again(path: Path, row: dict[str, Any]) -> None:
    write(path, header(), user("u1", "하나"))
    progress = parse(GEMINI, path)[1]
    with path.open("ab") as file:
        file.write(encode([row]))
    with pytest.raises(Reread):
        parse(GEMINI, path, progress)


def test_masked_outputs_change_nothing(path: Path) -> None:
    write(path, header(), user("u1", "하나"))
    progress = parse(GEMINI, path)[1]
    with path.open("ab") as file:
        file.write(encode([{"$patch": {"updates": [{"id": "u1", "content": "masked"}]}}]))
    assert turns(parse(GEMINI, path, progress)[0]) == {}


def test_a_message_that_grows_in_a_later_read_keeps_its_place(path: Path) -> None:
    early = encode([header(), user("u1", "하나"), model("g1", "답의"), user("u2", "둘")])
    whole = early + encode([model("g1", "답의 끝")])
    path.write_bytes(whole)
    wanted = turns(parse(GEMINI, path)[0])
    assert in_two_pieces(GEMINI, path, whole, len(early)) == wanted


def histories() -> st.SearchStrategy[list[dict[str, Any]]]:
    def build(seed: int) -> list[dict[str, Any]]:
        dice = random.Random(seed)
        flow = Recorder(patches=dice.random() < 0.5, merged=dice.random() < 0.5)
        for n in range(dice.randint(1, 8)):
            match dice.randint(0, 7):
                case 0:
                    flow.compress(dice.choice([0, 2, 4]))
                case 1:
                    flow.set_history(flow.contents())
                case 2 if len(flow.history) > 2:
                    flow.rewind(
                        dice.choice([part["text"] for _, _, parts in flow.history for part in parts if "text" in part])
                    )
                case 3:
                    flow.rows.append({"$rewindTo": "nowhere"})
                case 4:
                    flow.rows.append(
                        model(f"g{n}", "", n, toolCalls=[shell("make test", "Output: error x\nExit Code: 2")])
                    )
                case _:
                    flow.say(dice.choice(["계속", f"말 {n}"]))
        return flow.rows

    return st.integers(0, 10**9).map(build)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories(), st.data())
def test_reading_a_file_in_two_pieces_gives_what_reading_it_whole_gives(
    path: Path, rows: list[Row], data: st.DataObject
) -> None:
    whole = encode(rows)
    path.write_bytes(whole)
    wanted = turns(parse(GEMINI, path)[0])
    lines = [0] + [at + 1 for at, byte in enumerate(whole) if byte == 10]
    cut = data.draw(st.one_of(st.sampled_from(lines), st.integers(0, len(whole))))
    assert in_two_pieces(GEMINI, path, whole, cut) == wanted


JUNK = st.sampled_from([None, True, -1, 1e400, "", "x", "\ud800", [], [[]], {}, {"text": 7}, [None, {"text": None}]])


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, child in pairs for place in places(child, (*at, key)))]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), JUNK, st.booleans())
def test_no_value_in_any_place_stops_a_file(path: Path, data: st.DataObject, junk: Any, whole: bool) -> None:
    listed = {"$set": {"messages": [user("u1", "하나"), model("g1", "답")], "directories": [SHOP], "summary": "s"}}
    tool = shell("make test", "Output: error\nExit Code: 1")
    rows: list[Any] = [
        header(), user("u1", [{"text": "하나"}], displayContent="하나"), model("g1", "답", toolCalls=[tool]), listed,
        {"$patch": {"updates": [{"id": "u1"}], "removeIds": ["u1"], "orderIds": ["g1"]}}, {"$rewindTo": "g1"},
    ]  # fmt: skip
    value: Any = rows if not whole else [document(*rows[1:3])]
    *way, last = data.draw(st.sampled_from(places(value)[1:]))
    inside = value
    for key in way:
        inside = inside[key]
    inside[last] = junk
    lines = [json.dumps(row).encode() for row in value]
    path = path.with_suffix(".json" if whole else ".jsonl")
    path.write_bytes(b"\n".join(lines) + b"\n")
    parse(GEMINI, path, final=True)
    GEMINI.sniff(path, path.read_bytes())


# --- size ---


def peak(path: Path) -> int:
    tracemalloc.start()
    assert len(turns(parse(GEMINI, path, final=True)[0])) == 2
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_memory_does_not_grow_with_what_tools_printed(path: Path) -> None:
    done = call("read_file", {"file_path": "a"}, "x" * 500_000)
    write(
        path, header(), user("u", "질문"), *(model(f"g{n}", "", toolCalls=[done]) for n in range(90)), model("z", "답")
    )
    assert peak(path) < path.stat().st_size / 4


RESIDENT = """
import resource, sys
from pathlib import Path
from archiver.sources.gemini_cli import SOURCE
from archiver.transcript import Found, Progress
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(list(SOURCE.parse(Found("gemini-cli", Path(sys.argv[1])), Progress(), final=True))) == 4
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts in other units, or not at all")
def test_a_document_takes_a_few_times_its_size(path: Path) -> None:
    done = call("read_file", {"file_path": "a"}, "x = 1\n가나다\n" * 20_000)
    rows = [user("u", "질문"), *(model(f"g{n}", "", toolCalls=[done]) for n in range(60)), model("z", "답")]
    path = write_document(path.with_suffix(".json"), document(*rows))
    ran = subprocess.run([sys.executable, "-c", RESIDENT, str(path)], capture_output=True, text=True, check=True)
    assert int(ran.stdout) * 1024 < path.stat().st_size * 4


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
def test_names_may_be_korean(tmp_path: Path) -> None:
    home = tmp_path / "user" / ".gemini"
    register(home, {"/srv/한글 폴더": "project"})
    assert about(chat(home, "project", header(cwd="/srv/한글 폴더"), user("u", "질문"))).cwd == "/srv/한글 폴더"


# --- counts ---


def _log(*rows: Row, name: str = NAME) -> Callable[[Path], Path]:
    return lambda folder: write(folder / f"{name}.jsonl", *rows)


def _old(value: object, indent: int | None = 2) -> Callable[[Path], Path]:
    return lambda folder: write_document(folder / f"{NAME}.json", value, indent)


FAILED = shell("make test", "Output: error: x\nExit Code: 2\nProcess Group PGID: 7")
ROWS = [user("u1", "하나"), model("g1", "답1", toolCalls=[FAILED]), message("i", "info", "x"), user("u2", "/quit")]

COUNTED = [
    Counted(
        "log with growth and a failed test", "gemini-cli",
        _log(header(), *ROWS, model("g1", "답1의 끝", toolCalls=[FAILED]), user("u3", "둘")),
        user=2, errors=1, outcomes=1,
    ),
    Counted(
        "log with a rewind", "gemini-cli", _log(header(), *ROWS, {"$rewindTo": "u1"}, user("u3", "둘")), assistant=0,
    ),
    Counted(
        "compressed twice, lists of all messages", "gemini-cli",
        _log(*played("가 나 compress:4 다 compress:8 라", Recorder(patches=False, merged=False)).rows),
        user=4, assistant=4,
    ),
    Counted(
        "compressed, masked, reloaded, patches", "gemini-cli",
        _log(*played("가 save 나 compress:4 다 mask load 라", Recorder(patches=True, merged=True)).rows),
        user=4, assistant=4,
    ),
    Counted("document", "gemini-cli", _old(document(*ROWS)), errors=1, outcomes=1),
    Counted("document on one line", "gemini-cli", _old(document(*ROWS), None), errors=1, outcomes=1),
    Counted("document as a line of a log", "gemini-cli", _log(document(*ROWS), user("u3", "둘")), user=2, errors=1, outcomes=1),
    Counted(
        "subagent", "gemini-cli",
        _log(header("0la501", kind="subagent"), user("u1", "조사해"), model("g1", "답"), name=f"chats/{SESSION}/0la501"),
        user=0, assistant=0,
    ),
    Counted("only notices", "gemini-cli", _old(document(message("w", "warning", "x"))), sessions=0, user=0, assistant=0),
]  # fmt: skip

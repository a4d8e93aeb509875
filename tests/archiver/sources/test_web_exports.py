from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.discover import from_paths
from archiver.sources.chatgpt import ChatGpt
from archiver.sources.claude_ai import ClaudeAi
from archiver.sources.json_array import Element, Elements
from archiver.transcript import About, Found, Source, Title, Unreadable
from store.records import State
from tests.archiver.sources.transcripts import Counted, parse, said, turns, unreadable

T = 1767323045.5


def node(key: str, parent: str | None, role: str, text: object, **more: Any) -> dict[str, Any]:
    content = text if isinstance(text, dict) else {"content_type": "text", "parts": [text]}
    message = {"id": f"m-{key}", "author": {"role": role}, "create_time": T, "recipient": "all", "content": content}
    return {"id": key, "parent": parent, "message": message | more}


def tree(
    session: str, *nodes: dict[str, Any], current: str | None = None, title: str = "캐시 이야기"
) -> dict[str, Any]:
    held = {"root": {"id": "root", "parent": None, "message": None}} | {one["id"]: one for one in nodes}
    last = nodes[-1]["id"] if nodes else "root"
    return {
        "title": title,
        "create_time": T,
        "mapping": held,
        "current_node": current or last,
        "conversation_id": session,
    }


def talk(session: str = "c1") -> dict[str, Any]:
    return tree(session, node("a", "root", "user", f"질문 {session}"), node("b", "a", "assistant", "답"))


def chat(session: str, *messages: dict[str, Any]) -> dict[str, Any]:
    made = {"uuid": session, "name": "포트 이야기", "created_at": "2026-03-04T05:06:07.000Z", "account": {"uuid": "x"}}
    return made | {"chat_messages": list(messages)}


def message(uuid: str, sender: str, text: str, parent: str | None = None, **more: Any) -> dict[str, Any]:
    row = {"uuid": uuid, "sender": sender, "text": "", "content": [{"type": "text", "text": text}]}
    above = {"parent_message_uuid": parent} if parent else {}
    return row | above | {"created_at": "2026-03-04T05:06:08.000Z"} | more


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def as_file(value: Any, name: str = "conversations.json") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(value if isinstance(value, bytes) else as_json(value))
        return path

    return make


def zipped(**parts: Any) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in parts.items():
            archive.writestr(f"{name}.json", as_json(value))
    return held.getvalue()


TWO = [talk("c1"), talk("c2")]
CHATS = [chat("s1", message("1", "human", "포트는?"), message("2", "assistant", "8080")), chat("empty")]
SHARDS = {"conversations-000": TWO[:1], "conversations-001": TWO[1:], "user": {"id": "u"}}

COUNTED = [
    Counted("array", "chatgpt", as_file(TWO), sessions=2, user=2, assistant=2),
    Counted("single object", "chatgpt", as_file(TWO[0], "chat.json")),
    Counted("zip", "chatgpt", as_file(zipped(conversations=TWO, user={"id": "u"}), "export.zip"), sessions=2, user=2, assistant=2),
    Counted("zip of parts", "chatgpt", as_file(zipped(**SHARDS), "export.zip"), sessions=2, user=2, assistant=2),
    Counted("array", "claude-ai", as_file(CHATS)),
    Counted("zip", "claude-ai", as_file(zipped(conversations=CHATS, users=[{}], projects=[]), "data.zip")),
]  # fmt: skip


def test_only_what_people_and_the_model_said_to_each_other_is_kept(tmp_path: Path) -> None:
    parts = [
        "앞",
        {"content_type": "image_asset_pointer", "asset_pointer": "x"},
        {"content_type": "audio_transcription", "text": "말"},
    ]
    talk = tree(
        "c1",
        node("s", "root", "system", "be nice"),
        node("u", "s", "user", {"content_type": "user_editable_context", "parts": ["I like cats"]}),
        node("a", "u", "user", {"content_type": "multimodal_text", "parts": parts}),
        node("t", "a", "assistant", {"content_type": "thoughts", "thoughts": [{"content": "hmm"}]}),
        node("c", "t", "assistant", {"content_type": "code", "text": "print(1)"}, recipient="python"),
        node("o", "c", "tool", {"content_type": "execution_output", "text": "1"}),
        node("h", "o", "assistant", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
        node("b", "h", "assistant", "답\ue200cite\ue202turn0\ue201입니다【12†a.pdf】"),
    )
    path = as_file([talk])(tmp_path)
    assert said(ChatGpt(), path) == [("user", "앞\n\n말"), ("assistant", "답입니다")]


def test_regenerated_answers_are_kept_as_abandoned(tmp_path: Path) -> None:
    talk = tree(
        "c1", node("a", "root", "user", "q"), node("b", "a", "assistant", "old"), node("c", "a", "assistant", "new")
    )
    states = {turn.text: turn.state for turn in turns(parse(ChatGpt(), as_file([talk])(tmp_path))[0]).values()}
    assert states == {"q": State.LIVE, "new": State.LIVE, "old": State.ABANDONED}


@pytest.mark.parametrize("current", ["nowhere", None, 7])
def test_without_a_current_node_the_newest_leaf_ends_the_conversation(current: object, tmp_path: Path) -> None:
    old, new = node("b", "a", "assistant", "old"), node("c", "a", "assistant", "new")
    new["message"]["create_time"] = T + 10
    talk = tree("c1", node("a", "root", "user", "q"), new, old) | {"current_node": current}
    live = [
        turn.text for turn in turns(parse(ChatGpt(), as_file([talk])(tmp_path))[0]).values() if turn.state is State.LIVE
    ]
    assert live == ["q", "new"]


def test_a_loop_in_the_tree_ends(tmp_path: Path) -> None:
    talk = tree("c1", node("a", "b", "user", "q"), node("b", "a", "assistant", "r"))
    assert len(turns(parse(ChatGpt(), as_file([talk])(tmp_path))[0])) == 2


def test_title_and_times_are_the_conversations(tmp_path: Path) -> None:
    events, _ = parse(ChatGpt(), as_file([talk()])(tmp_path))
    assert Title("캐시 이야기", 3) in events
    assert next(event for event in events if isinstance(event, About)).last_time == int(T * 1000)


@pytest.mark.parametrize("title", ["New chat", "", "새 채팅"])
def test_what_has_no_title_is_called_by_its_first_prompt(title: str, tmp_path: Path) -> None:
    told = as_file([tree("c1", node("a", "root", "user", "포트는?\n둘째 줄"), title=title)])(tmp_path)
    asked = as_file([chat("s", message("1", "human", "포트는?")) | {"name": title}], "b.json")(tmp_path)
    for source, path in ((ChatGpt(), told), (ClaudeAi(), asked)):
        assert [event for event in parse(source, path)[0] if isinstance(event, Title)] == [Title("포트는?", 0)]


def test_the_same_keys_come_from_zip_parts_and_file(tmp_path: Path) -> None:
    found = [as_file(TWO)(tmp_path), as_file(zipped(**SHARDS), "a.zip")(tmp_path)]
    one, other = (set(turns(parse(ChatGpt(), path)[0])) for path in found)
    assert one == other


def test_edited_messages_of_claude_are_abandoned(tmp_path: Path) -> None:
    top = "00000000-0000-4000-8000-000000000000"
    messages = [message("1", "human", "old q", top), message("2", "assistant", "old a", "1")]
    messages += [message("3", "human", "new q", top), message("4", "assistant", "new a", "3")]
    states = {
        turn.text: turn.state
        for turn in turns(parse(ClaudeAi(), as_file([chat("s", *messages)])(tmp_path))[0]).values()
    }
    assert states == {
        "old q": State.ABANDONED, "old a": State.ABANDONED, "new q": State.LIVE, "new a": State.LIVE,
    }  # fmt: skip


def test_claude_messages_without_blocks_give_their_text(tmp_path: Path) -> None:
    old = message("1", "human", "") | {"content": [], "text": "예전 형식"}
    thought = message("2", "assistant", "답") | {
        "content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "답"}]
    }
    assert said(ClaudeAi(), as_file([chat("s", old, thought)])(tmp_path)) == [
        ("user", "예전 형식"),
        ("assistant", "답"),
    ]


def test_what_was_pasted_into_claude_is_said_and_files_are_not(tmp_path: Path) -> None:
    pasted = {"file_name": "", "extracted_content": "lock wait: 30s"}
    old = {"file_name": "paste-2.txt", "extracted_content": "lock wait: 60s"}
    file = {"file_name": "manual.pdf", "extracted_content": "chapter one"}
    asked = message("1", "human", "왜 멈추지?", attachments=[pasted, file, old, {"file_name": ""}, None])
    assert said(ClaudeAi(), as_file([chat("s", asked)])(tmp_path)) == [
        ("user", "왜 멈추지?\n\nlock wait: 30s\n\nlock wait: 60s")
    ]


def test_blocks_that_the_export_leaves_out_are_no_words(tmp_path: Path) -> None:
    note = "```\nThis block is not supported on your current device yet.\n```"
    called = message("2", "assistant", "", content=[{"type": "tool_use", "name": "x"}]) | {"text": note}
    spoken = message("3", "assistant", "", content=[]) | {"text": f"먼저 찾아볼게요.\n\n{note}"}
    path = as_file([chat("s", message("1", "human", "찾아줘"), called, spoken)])(tmp_path)
    assert said(ClaudeAi(), path) == [("user", "찾아줘"), ("assistant", "먼저 찾아볼게요.")]


def test_a_broken_conversation_costs_only_itself(tmp_path: Path) -> None:
    good = as_json(talk("c3"))
    path = as_file(b"[" + as_json(talk("c1")) + b',\n{"title": "x", "mapping": {nonsense}},\n' + good + b"]")(tmp_path)
    events, _ = parse(ChatGpt(), path)
    assert {event.external_id for event in events if isinstance(event, About)} == {"c1", "c3"}
    assert unreadable(events) == [(2, "object 2 is not JSON")]


def test_a_file_cut_off_gives_what_was_whole(tmp_path: Path) -> None:
    whole = as_json(TWO)
    events, _ = parse(ChatGpt(), as_file(whole[:-40])(tmp_path))
    assert {event.external_id for event in events if isinstance(event, About)} == {"c1"}
    assert unreadable(events) == [(1, "object 2 is cut off or damaged")]


def test_lone_surrogates_do_not_cost_a_conversation(tmp_path: Path) -> None:
    data = as_json([talk()]).replace("답".encode(), b"\\ud83d x")
    assert said(ChatGpt(), as_file(data)(tmp_path))[1] == ("assistant", "\ufffd x")


def test_damaged_and_locked_archives_are_reported(tmp_path: Path) -> None:
    data = zipped(conversations=TWO)
    path = as_file(data[:60] + b"\x00" * 20 + data[80:], "a.zip")(tmp_path)
    events, _ = parse(ChatGpt(), path)
    assert [line for line, _ in unreadable(events)] == [0]


def test_other_json_and_other_archives_are_none(tmp_path: Path) -> None:
    as_file({"name": "shop", "version": "1"}, "package.json")(tmp_path)
    as_file([1, 2, "x"], "numbers.json")(tmp_path)
    as_file({"mapping": "none"}, "other.json")(tmp_path)
    as_file(zipped(data=[1]), "other.zip")(tmp_path)
    as_file(b"PK\x03\x04garbage", "broken.zip")(tmp_path)
    found, problems = from_paths([tmp_path])
    assert (found, [problem.key for problem in problems]) == ([], ["discover.no_transcripts"])


JSON = st.recursive(
    # Wider numbers become floats.
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.text(max_size=8), JSON, max_size=4), max_size=6), st.booleans(), st.integers(0, 3))
@settings(deadline=None)
def test_elements_are_those_a_json_parser_finds(values: list[dict[str, Any]], ascii_only: bool, indent: int) -> None:
    data = json.dumps(values, ensure_ascii=ascii_only, indent=indent or None).encode("utf-8", "surrogatepass")
    found = list(Elements(io.BytesIO(data)))
    assert [item.value for item in found if isinstance(item, Element)] == values
    assert not [item for item in found if isinstance(item, Unreadable)]


def test_an_object_larger_than_a_block_is_read_whole() -> None:
    values = [{"a": "x" * 3_000_000 + '"\\'}, {"b": [{}] * 100_000}, {"c": 1}]
    found = list(Elements(io.BytesIO(as_json(values))))
    assert [item.value for item in found if isinstance(item, Element)] == values


@pytest.mark.parametrize("source", [ChatGpt(), ClaudeAi()], ids=lambda source: str(source.agent))
@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_raises(source: Source, data: st.DataObject, tmp_path: Path) -> None:
    raw = as_json(TWO if source.agent == "chatgpt" else CHATS)
    cut, length = data.draw(st.integers(0, len(raw))), data.draw(st.integers(0, 30))
    path = tmp_path / "conversations.json"
    path.write_bytes(raw[:cut] + data.draw(st.binary(max_size=20)) + raw[cut + length :])
    source.sniff(path, path.read_bytes())
    list(source.parse(Found(source.agent, path), parse(source, path)[1], final=True))


@pytest.mark.parametrize("key", ["mapping", "title", "current_node", "conversation_id", "create_time"])
@pytest.mark.parametrize("value", [None, 3, [], {}, "x", {"a": {"message": {"author": 1, "content": {"parts": [[]]}}}}])
def test_wrong_types_anywhere_raise_nothing(key: str, value: object, tmp_path: Path) -> None:
    parse(ChatGpt(), as_file([talk() | {key: value}])(tmp_path))

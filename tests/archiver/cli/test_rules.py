from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.archiver.processes import Done, Server
from tests.factories import Claude, words_in

OWN = """
schema: 1
rules:
  - {id: decision.label, enabled: false}
  - id: decision.decree
    type: decision
    part: choice
    role: user
    weight: 1.2
    cues: ['^포고:']
    examples: {match: ['포고: 포트는 8080'], miss: ['포트는 8080']}
secrets:
  - id: jwt
    kind: badge
    literals: [badge-]
    pattern: 'badge-\\d+'
    examples: {match: ['badge-12'], miss: ['badge-x']}
"""
FAULTY = """
schema: 1
rules:
  - id: broken
    cues: ['(']
    type: decision
    part: choice
    weight: 1
    examples: {match: [x], miss: [y]}
  - id: lazy
    type: decision
    part: choice
    weight: 1.2
    cues: ['^decree:']
    examples: {match: ['law: port 80'], miss: ['decree: port 80']}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def own(home: Path, rules: str = OWN, name: str = "mine.yaml") -> Path:
    (home / "rules").mkdir(parents=True, exist_ok=True)
    (home / "rules" / name).write_text(rules, encoding="utf-8")
    return home / "rules" / name


def run(processes: Server, home: Path, *arguments: str, **more: Any) -> Done:
    return processes.run("rules", *arguments, home=home, **more)


def as_json(processes: Server, home: Path, *arguments: str, **more: Any) -> Any:
    done = run(processes, home, *arguments, "--json", **more)
    assert done.code in (0, 1), done.err
    return json.loads(done.out)


def test_every_rule_is_listed_with_its_type_state_and_place(processes: Server, home: Path) -> None:
    path = own(home)
    rules = {rule["id"]: rule for rule in as_json(processes, home, "list")["rules"]}
    assert {rule["type"] for rule in rules.values()} == {
        "solution", "decision", "pattern", "guard", "move", "secret", "family", "tag", "loanword"
    }  # fmt: skip
    assert all(rule["about"] or rule["type"] == "tag" for rule in rules.values())
    off, mine, replaced = rules["decision.label"], rules["decision.decree"], rules["jwt"]
    assert (off["on"], off["built_in"], off["off_at"]) == (False, True, f"{path}:4")
    assert (mine["on"], mine["built_in"], mine["file"], mine["line"]) == (True, False, str(path), 5)
    assert (replaced["replaces_built_in"], replaced["file"]) == (True, str(path))


def test_the_list_says_in_words_what_is_the_users(processes: Server, home: Path) -> None:
    path = own(home)
    listed = run(processes, home, "list", "--type", "decision").out
    assert f"switched off in {path}:4" in listed
    assert f"{path}:5" in listed
    assert "solution" not in listed
    assert run(processes, home, "list", "--type", "opinion").code == 2


def test_looking_at_rules_makes_no_home(processes: Server, home: Path) -> None:
    for arguments in (("list",), ("check",), ("try", "캐시는 LRU로 하자")):
        assert run(processes, home, *arguments).code == 0
    assert not home.exists()


def test_a_sound_rule_book_passes_and_says_how_much_was_run(processes: Server, home: Path) -> None:
    own(home)
    found = as_json(processes, home, "check")
    assert found["failures"] == []
    assert (found["rules"] > 200, found["examples"] > 800) == (True, True)
    assert f"Rules: {found['rules']}, examples: {found['examples']}." in run(processes, home, "check").out


def test_faults_and_wrong_examples_are_told_with_file_and_line_and_the_others_still_run(
    processes: Server, home: Path
) -> None:
    own(home)
    path = own(home, FAULTY, "faulty.yaml")
    done = run(processes, home, "check")
    assert done.code == 1
    assert f"{path}:5: broken: 'cues[0]' is not a valid regular expression" in done.out
    assert f'{path}:10: lazy: should fit but does not: "law: port 80" (none of its cues fits)' in done.out
    assert f'{path}:10: lazy: should not fit but does: "decree: port 80" (cues[0] fits "decree:")' in done.out
    found = as_json(processes, home, "check")
    assert [(each["line"], each["rule"], each["kind"]) for each in found["failures"]] == [
        (5, "broken", "fault"),
        (10, "lazy", "match"),
        (10, "lazy", "miss"),
    ]
    assert {"file", "line", "rule", "kind", "text", "reason"} == found["failures"][0].keys()
    assert found["rules"] > 200


def test_one_file_or_folder_is_checked_by_itself(processes: Server, home: Path, tmp_path: Path) -> None:
    path = own(home)
    own(home, FAULTY, "faulty.yaml")
    assert as_json(processes, home, "check", str(path)) == {"rules": 2, "examples": 4, "failures": []}
    (tmp_path / "draft").mkdir()
    (tmp_path / "draft" / "a.yaml").write_text(OWN, encoding="utf-8")
    assert as_json(processes, home, "check", str(tmp_path / "draft"))["rules"] == 2
    (tmp_path / "draft" / "b.yaml").write_text(FAULTY, encoding="utf-8")
    assert as_json(processes, home, "check", str(tmp_path / "draft"))["rules"] == 3


@pytest.mark.parametrize("path", ["no-such.yaml", "empty"])
def test_nothing_to_check_is_wrong_usage(processes: Server, home: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    done = run(processes, home, "check", str(tmp_path / path))
    assert (done.code, done.out) == (2, "")
    assert path in done.err


TALK = """user: 로그인이 자꾸 풀려요. 에러가 나요. 비밀번호는 hunter2hunter2 입니다
assistant: ## 원인
토큰 갱신이 두 번 호출되는 것이 원인이었습니다.

갱신 요청을 하나로 합치도록 수정했습니다.
User: 캐시는 LRU로 하자. 결정: Redis로 바꿀까?
> we decided to use Kafka
"""


def test_try_explains_a_conversation(processes: Server, home: Path, tmp_path: Path) -> None:
    (tmp_path / "talk.txt").write_text(TALK, encoding="utf-8")
    found = as_json(processes, home, "try", "--file", str(tmp_path / "talk.txt"))
    assert found.keys() == {"turns", "candidates", "secrets"}
    assert [turn["role"] for turn in found["turns"]] == ["user", "assistant", "user"]
    assert [(each["type"], each["decided_by"]) for each in found["candidates"]] == [
        ("solution", "assistant-reported"),
        ("decision", "user"),
    ]
    assert found["candidates"][0].keys() >= {"summary", "detail", "tags", "confidence", "decided_by"}
    assert found["secrets"] == [{"kind": "password", "rule": "password-ko-prose", "count": 1}]
    said = {each["text"]: each for turn in found["turns"] for each in turn["sentences"]}
    assert said["토큰 갱신이 두 번 호출되는 것이 원인이었습니다."]["heading"] == "원인"
    asked = said["결정: Redis로 바꿀까?"]
    assert [guard["guard"] for guard in asked["guards"] if "decision.choice" in guard["against"]] == ["question"]
    assert (asked["fate"], said["we decided to use Kafka"]["fate"]) == ("refused", "quoted")
    assert "hunter2hunter2" not in json.dumps(found)


def test_try_says_in_words_which_guard_refused(processes: Server, home: Path) -> None:
    done = run(processes, home, "try", "결정: Redis로 바꿀까?")
    assert "guard question refuses choice" in done.out
    assert "decision.label takes it for decision/choice, 1.40 points" in done.out
    assert "No candidates." in done.out
    assert "\x1b" not in done.out


@pytest.mark.parametrize("arguments", [("-",), ()])
def test_try_reads_standard_input(processes: Server, home: Path, arguments: tuple[str, ...]) -> None:
    found = as_json(processes, home, "try", *arguments, text="결정: 포트는 8080\n")
    assert [each["summary"] for each in found["candidates"]] == ["포트는 8080"]


def test_a_text_may_begin_with_a_dash_and_be_several_words(processes: Server, home: Path) -> None:
    for words in (("- 결정: 포트는 8080",), ("-h결정을", "못 하겠어"), ("결정:", "포트는", "8080")):
        assert run(processes, home, "try", *words).out.startswith("user #1")


def test_a_role_takes_the_whole_text_for_one_turn(processes: Server, home: Path) -> None:
    found = as_json(processes, home, "try", "--role", "assistant", "user: 캐시는 LRU로 하자")
    assert [turn["role"] for turn in found["turns"]] == ["assistant"]
    assert found["candidates"] == []


def test_of_a_long_text_only_what_rules_speak_of_is_shown(processes: Server, home: Path) -> None:
    done = run(processes, home, "try", "-", text="hello there\n" * 60 + "결정: 포트는 8080\n")
    assert done.out.count("hello there") == 0
    assert "Sentences of which no rule speaks: 60 (not shown)." in done.out
    assert "결정: 포트는 8080" in done.out


def test_hostile_text_steers_no_terminal(processes: Server, home: Path) -> None:
    done = run(processes, home, "try", "-", text="결정: \x1b]0;owned\x07포트는 \x1b[31m8080\u202e 이다\n")
    assert done.code == 0
    assert not set(done.out) & {"\x1b", "\x07", "\u202e"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("try",), "--session"),
        (("try", "  "), "--session"),
        (("try", "--role", "robot", "x"), "robot"),
        (("try", "--file", "/no/such"), "/no/such"),
        (("try", "--file", "/no/such", "x"), "choose one"),
        (("try", "--session", "abcd", "x"), "choose one"),
        (("try", "--rol", "user", "x"), "--role"),
        (("frobnicate",), "frobnicate"),
    ],
)
def test_a_slip_is_wrong_usage(processes: Server, home: Path, arguments: tuple[str, ...], says: str) -> None:
    done = run(processes, home, *arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


def test_a_users_rules_hold_in_list_check_try_and_archive_alike(processes: Server, home: Path, tmp_path: Path) -> None:
    own(home)
    own(home, FAULTY, "faulty.yaml")
    session = Claude(cwd=str(tmp_path / "shop"))
    session.say("포고: 포트는 8080, 출입증은 badge-1234")
    session.answer("네")
    session.say("결정: 캐시는 FIFO")
    session.answer("네")
    session.write(tmp_path / "in", age_minutes=60)
    done = processes.run("archive", str(tmp_path / "in"), home=home)
    assert (done.code, "faulty.yaml:5: broken" in done.err) == (0, True)
    waiting = json.loads(processes.run("review", "--list", "--all", "--json", home=home).out)["entries"]
    tried = as_json(processes, home, "try", "--session", session.session[:8])
    assert [each["summary"] for each in waiting] == [each["summary"] for each in tried["candidates"]]
    assert [each["rule"] for each in tried["candidates"]] == ["decision.decree"]
    assert "[secret:badge]" in waiting[0]["summary"]
    assert words_in(home, "badge-1234") == []


def test_a_finding_of_the_session_that_another_goes_on_from_is_told_apart(
    processes: Server, home: Path, tmp_path: Path
) -> None:
    first = Claude(cwd=str(tmp_path / "shop"))
    first.say("결정: 포트는 8080")
    first.answer("네")
    second = Claude("bbbbbbbb-0000-4000-8000-000000000002", cwd=first.cwd)
    second.rows = [{**row, "sessionId": second.session} for row in first.rows]
    second.last = first.last
    second.say("결정: 캐시는 LRU")
    for session in (first, second):
        path = session.write(tmp_path / "in", age_minutes=60)
        assert processes.run("archive", str(path), home=home).code == 0
    found = as_json(processes, home, "try", "--session", second.session[:8])["candidates"]
    assert {each["summary"]: each["own"] for each in found} == {"포트는 8080": False, "캐시는 LRU": True}


def test_a_session_that_is_not_there_is_refused(processes: Server, home: Path) -> None:
    done = run(processes, home, "try", "--session", "zzzz")
    assert (done.code, done.out) == (1, "")
    assert "zzzz" in done.err


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_group_by_itself_and_each_command_have_help_with_two_examples(
    processes: Server, home: Path, language: str
) -> None:
    alone = run(processes, home, WWT_LANG=language)
    assert (alone.code, alone.err) == (0, "")
    for command in ("list", "check", "try"):
        assert f"  {command} " in alone.out
        assert run(processes, home, command, "--help", WWT_LANG=language).out.count("wwt rules") >= 3


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_message_of_listing_and_trying_can_be_said(
    processes: Server, home: Path, tmp_path: Path, language: str
) -> None:
    (tmp_path / "talk.txt").write_text(TALK + "user: <system-reminder>x</system-reminder> 원인을 찾아 주세요.\n" * 2)
    listed = run(processes, home, "list", WWT_LANG=language)
    tried = run(processes, home, "try", "--file", str(tmp_path / "talk.txt"), WWT_LANG=language)
    assert (listed.code, tried.code, listed.err, tried.err) == (0, 0, "", "")

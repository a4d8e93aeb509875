"""No secret reaches any byte under WWT_HOME, whoever wrote it and in whatever form; the words around it stay."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from archiver.home import Home
from tests.archiver.sources.transcripts import assistant, call, entry, header, result, user
from tests.factories import words_in
from tests.reports.walk import accept_all, claude, found, openclaw, recalled, run, said, search, titles

GITHUB = "ghp_" + "Kq7" * 12
OPENAI = "sk-" + "Tz4" * 13
AMAZON = "AKIA" + "R5" * 8
PHRASE = "otter" + "7otter7"
BODY = "MC4CAQ" + "Ab7cDe2k" * 8
HEAD, FOOT = "-----BEGIN " + "PRIVATE KEY-----", "-----END " + "PRIVATE KEY-----"


def kept(*secrets: str) -> list[Path]:
    """Files under WWT_HOME that hold one of these, whole or in a longer piece of it."""
    return [path for secret in secrets for path in words_in(Home.open().root, secret)]


def test_what_a_tool_printed_leaves_no_secret_behind() -> None:
    output = f"SLACK=1\nGH_TOKEN={GITHUB}\nAuthorization: Bearer {OPENAI}\nE   KeyError: 'region'\n"
    claude(
        user("1", "환경변수를 봐줘"), assistant("2", call("Bash", {"command": f"curl -H 'Authorization: Bearer {OPENAI}' x; env"}), "1"),
        user("3", [result(output, failed=True)], "2", 2), assistant("4", f"토큰은 {GITHUB} 입니다. region이 없습니다.", "3", 3),
    )  # fmt: skip
    run()
    assert kept(GITHUB, OPENAI) == []
    assert found("region이 없습니다")


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        (f"gpg --passphrase {PHRASE} -d 백업.gpg 로 풀고 나서 확인", "확인"),
        (f"tool --token={GITHUB} --verbose", "--verbose"),
        (f"deploy --api-key '{OPENAI}' to staging first", "to staging first"),
        (f"tool --api_key {OPENAI} --dry-run", "--dry-run"),
        (f"tool --access_token={PHRASE} --region seoul", "seoul"),
        (f"tool --token \\\n    {PHRASE} \\\n    --region seoul", "seoul"),
        (f"echo {PHRASE} | docker login -u me --password-stdin", "docker login"),
        (f"https://api.local/login?user=a&pass={PHRASE}&next=home", "next=home"),
        (f"mysql --password={PHRASE} shop < dump.sql", "dump.sql"),
        (f"export AWS_ACCESS_KEY_ID={AMAZON}; terraform plan", "terraform plan"),
        (f"비밀번호는 {PHRASE} 이고 계정은 admin", "계정은 admin"),
        (f"DATABASE_URL=postgres://shop:{PHRASE}@db.local/shop 으로 접속", "db.local/shop"),
        (f'curl -u admin:{PHRASE} https://api.local/health', "api.local/health"),
    ],
)  # fmt: skip
def test_options_and_settings_are_masked_and_the_words_beside_them_stay(text: str, stays: str) -> None:
    claude(user("1", text), assistant("2", "네.", "1"))
    run()
    assert kept(PHRASE, GITHUB, OPENAI, AMAZON) == []
    assert stays in said()[0][1]


@pytest.mark.parametrize(
    "text", ["then --password from the vault app", "--token is required", "비밀번호는 따로 물어봐"]
)
def test_words_that_only_name_a_secret_stay(text: str) -> None:
    claude(user("1", text))
    run()
    assert said() == [("user", text)]


def test_titles_branches_folders_and_file_names_are_masked_too(tmp_path: Path) -> None:
    claude(
        {"type": "summary", "summary": f"rotate {AMAZON}", "leafUuid": "1"},
        user("1", f"{AMAZON} 이 열쇠가 안 먹어", gitBranch=f"fix/{AMAZON}", cwd=f"/srv/{GITHUB}/app"),
        assistant("2", "확인했습니다.", "1"),
        {"type": "custom-title", "customTitle": f"열쇠 {AMAZON}", "sessionId": "S1"},
    )
    openclaw(header(f"{GITHUB}"), entry("e1", "user", "질문"), name=f"{GITHUB}.jsonl")
    run()
    assert kept(AMAZON, GITHUB) == []
    command = [sys.executable, "-c", "from archiver.cli.main import run; run()", "sessions", "--all", "--json"]
    listed = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", check=True, cwd=Path(__file__).parents[2]
    )
    assert AMAZON not in listed.stdout
    assert GITHUB not in listed.stdout


@pytest.mark.parametrize(
    "block",
    [
        f"{HEAD}\n{BODY}\n{BODY}\n{FOOT}",
        json.dumps({"type": "service_account", "private_key": f"{HEAD}\n{BODY}\n{BODY}\n{FOOT}\n"}),
        f"{HEAD}{BODY}{FOOT}",
        f"     1\t{HEAD}\n     2\t{BODY}\n     3\t{BODY}",
        f"     1→{HEAD}\n     2→{BODY}\n     3→{BODY}\n     4→{FOOT}",
        f"> {HEAD}\n> {BODY}\n> {FOOT}",
        f"{HEAD}\n{BODY}\n" + "출력이 잘렸습니다",
    ],
    ids=["plain", "json", "one-line", "cat-n", "read-tool", "quoted", "cut-off"],
)
def test_no_line_of_a_private_key_survives(block: str) -> None:
    claude(
        user("1", f"이 열쇠로 접속해줘:\n{block}"), assistant("2", call("Bash", {"command": "cat key"}), "1"),
        user("3", [result(f"error: bad key\n{block}", failed=True)], "2", 2), assistant("4", "접속했습니다.", "3", 3),
    )  # fmt: skip
    run()
    assert kept(BODY, BODY[:30], BODY[-24:]) == []


def test_a_certificate_is_no_secret_and_an_endless_key_stalls_nothing() -> None:
    certificate = "-----BEGIN CERTIFICATE-----\nMIICaaBBccDDeeFF\n-----END CERTIFICATE-----"
    endless = HEAD + "\n" + (BODY + "\n") * 2600
    claude(user("1", f"인증서:\n{certificate}"), user("2", f"열쇠:\n{endless}", "1", 2))
    run()
    assert "MIICaaBBccDDeeFF" in said()[0][1]
    assert kept(BODY) == []


def test_what_was_stored_under_older_rules_is_masked_before_anything_shows_it(wwt_home: Path) -> None:
    code = "ZX-" + "9981-" * 3 + "OTTER"
    openclaw(
        header(),
        entry("aaaaaaa1", "user", f"큐는 Kafka 대신 Postgres로 하자. 사내 코드 {code} 참고"),
        entry("aaaaaaa2", "assistant", "네, Postgres로 구현했습니다.", "aaaaaaa1", 2),
    )
    run()
    accept_all()
    assert found(code)
    (wwt_home / "rules").mkdir(exist_ok=True)
    rule = {
        "id": "house-code",
        "kind": "house-code",
        "literals": ["zx-"],
        "pattern": "ZX-[0-9-]+OTTER",
        "examples": {"match": [["사내 코드 ZX-", "12-OTTER"]], "miss": ["ZX-ray"]},
    }
    (wwt_home / "rules" / "secrets.yaml").write_text(json.dumps({"secrets": [rule]}), encoding="utf-8")
    run()
    assert kept(code) == []
    assert code not in recalled().text
    assert search("사내 코드", limit=1)[0].text.count("[secret:house-code]") == 1
    assert all(code not in (title or "") for title in titles().values())

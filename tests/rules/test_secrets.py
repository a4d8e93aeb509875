from __future__ import annotations

import base64

import pytest

from rules.check import check_secrets
from rules.load import load
from rules.redact import default
from rules.schema import Secret

RANDOM = "Ab3Cd4Ef5Gh6Jk7Lm8Np9"
HEX = "0a1b2c3d4e5f6789"
WORD = "hunter" + "2hunter2"
BODY = "MC4CAQ" + "Qx7bPw2k" * 8
BEGIN, END = "-----BEGIN " + "PRIVATE KEY-----", "-----END " + "PRIVATE KEY-----"


def test_built_in_rules_load_without_fault() -> None:
    assert load(Secret)[1] == []


def test_every_example_of_the_built_in_rules_holds() -> None:
    assert check_secrets(load(Secret)[0]) == []


@pytest.mark.parametrize(
    "secret",
    [
        "AKIA" + "Q7" * 8, "AIza" + RANDOM * 2, "sk-" + "Ab3" * 12, "sk-proj-" + RANDOM, "sk-ant-api03-" + RANDOM,
        "ghp_" + "Z9x" * 12, "gho_" + RANDOM * 2, "ghs_" + RANDOM * 2, "github_pat_" + RANDOM + "_" + RANDOM,
        "glpat-" + RANDOM, "xoxb-" + "123456789012-" + RANDOM, "xapp-1-" + RANDOM, "sk_live_" + RANDOM,
        "rk_live_" + RANDOM, "whsec_" + RANDOM, "SK" + HEX * 2, "SG." + RANDOM + "." + RANDOM, "key-" + HEX * 2,
        "npm_" + RANDOM * 2, "pypi-" + RANDOM * 2, "hf_" + RANDOM * 2, "dop_v1_" + HEX * 4, "sbp_" + HEX * 3,
        "secret_" + RANDOM * 3, "ntn_" + RANDOM * 2, "lin_api_" + RANDOM * 2, "figd_" + RANDOM * 2,
        "gsk_" + RANDOM * 2, "r8_" + RANDOM * 2, "xai-" + RANDOM * 2, "pplx-" + RANDOM * 2, "nfp_" + RANDOM * 2,
        "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJ" + "zdWIiOiIxMjMifQ." + RANDOM,
    ],
)  # fmt: skip
@pytest.mark.parametrize("around", ["{}", "키는 {}입니다", '{{"a":"{}"}}', "fix/{} branch", "URL?x={}&y=1"])
def test_a_token_is_masked_wherever_it_stands(secret: str, around: str) -> None:
    text = default()(around.format(secret))
    assert secret not in text
    assert "[secret:" in text


@pytest.mark.parametrize(
    ("text", "secret", "kept"),
    [
        ("OPENAI_API_KEY={}\nHOME=/home/u", WORD, "OPENAI_API_KEY=[secret:secret]\nHOME=/home/u"),
        ("gpg --passphrase {} -d a.gpg", WORD, "--passphrase [secret:secret] -d a.gpg"),
        ("tool --token={} --api-key 'x'", WORD, "tool --token="),
        ("aws_secret_access_key = {}", "wJalr/" + RANDOM + "bPxRfiCYab3dE", "aws_secret_access_key = "),
        ('{{"password": "{}", "user": "me"}}', WORD, '"user": "me"'),
        ('{{\\"password\\": \\"{}\\"}}', WORD, '\\"password\\": \\"'),
        ("password: {}  # prod", WORD, "# prod"),
        ("[db]\npassword = '{}'", WORD, "password = '"),
        ("const dbPassword = \"{}\";", WORD, "const dbPassword = "),
        ("export MY_SECRET_KEY='{}'", RANDOM, "MY_SECRET_KEY="),
        ("DATABASE_URL=postgres://app:{}@db:5432/app", "p%40ss" + "w0rd", "@db:5432/app"),
        ("mongodb+srv://u:{}@c.mongodb.net", "p4ss" + "!x", "@c.mongodb.net"),
        ("jdbc:postgresql://h/db?user=a&password={}&ssl=true", WORD, "&ssl=true"),
        ("Authorization: Bearer {}", RANDOM, "Authorization: Bearer "),
        ("curl -H 'Authorization: Basic {}' http://x", "dXNlcjpw" + "YXNz", "http://x"),
        ("Set-Cookie: session={}; Path=/", RANDOM, "; Path=/"),
        ("Cookie: theme=dark1; sid={}", RANDOM, "sid="),
        ("curl -u me:{} https://api.example.com", WORD, "https://api.example.com"),
        ("mysql -uroot -p'{}' app", WORD, "' app"),
        ("sshpass -p {} ssh me@h", WORD, "ssh me@h"),
        ("machine h\nlogin me\npassword {}\n", WORD, "machine h"),
        ("//registry.npmjs.org/:_authToken={}", RANDOM, "_authToken="),
        ("otpauth://totp/a?secret={}&issuer=b", "JBSWY3DP" + "EHPK3PXP", "&issuer=b"),
        ("비밀번호: {}", WORD, "비밀번호: "),
        ("비밀번호는 {} 입니다", WORD, " 입니다"),
        ("비번 {} 로 접속", WORD, "로 접속"),
        ("DB 패스워드는 {}로 바꿨어요", WORD, "로 바꿨어요"),
        ("API 키: {}", RANDOM, "API 키: "),
        ("인증키 = {}", RANDOM, "인증키 = "),
        ("토큰은 {} 입니다", RANDOM, " 입니다"),
        ("X-Naver-Client-Secret: {}", "aB3dE5" + "fG7h", "X-Naver-Client-Secret: "),
        ("Authorization: KakaoAK {}", HEX * 2, "Authorization: KakaoAK "),
        ("DD_API_KEY={}", HEX * 2, "DD_API_KEY="),
        ("X-Auth-Key: {}", HEX * 2, "X-Auth-Key: "),
        ("AccountName=a;AccountKey={};EndpointSuffix=b", RANDOM * 3 + "==", ";EndpointSuffix=b"),
        ("주민등록번호 {}", "900101-" + "2345678", "주민등록번호 "),
        ("카드 {} 결제", "4111 1111 " + "1111 1111", " 결제"),
        ("<password>{}</password>", WORD, "</password>"),
    ],
)  # fmt: skip
def test_a_labelled_secret_goes_and_its_label_stays(text: str, secret: str, kept: str) -> None:
    masked = default()(text.format(secret))
    assert secret not in masked
    assert kept in masked


@pytest.mark.parametrize(
    "text",
    [
        f'{{"private_key": "{BEGIN}\\n{BODY}\\n{BODY}\\n{END}\\n"}}',
        f"{BEGIN}{BODY}{END}",
        f"     1\t{BEGIN}\n     2\t{BODY}\n     3\t{BODY}",
        f"{BEGIN}\n{BODY}\n{BODY}\n... truncated",
        f"{BEGIN}\r\n{BODY}\r\n{END}".replace("PRIVATE", "OPENSSH PRIVATE"),
        f"{BODY}\n{BODY}\n{END}",
        f"'{BEGIN}\\n' +\n  '{BODY}\\n' +\n  '{BODY}\\n'",
    ],
)  # fmt: skip
def test_no_part_of_a_private_key_survives_in_any_writing(text: str) -> None:
    masked = default()(text)
    assert "Qx7bPw2k" not in masked
    assert "[secret:private-key]" in masked


@pytest.mark.parametrize(
    "text",
    [
        "then --password from the vault app", "token budget: 4096", "tokens: 1500", 'password = os.environ["X"]',
        "password: str", "getPassword()", "secret: false", "api_key: ${API_KEY}", "token: <your-token>",
        "password: xxxx", "password=****", "비밀번호 정책", "비밀번호를 잊어버린 경우", "비밀번호: 8자 이상 입력하세요",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "id: 123e4567-e89b-12d3-a456-426614174000",
        "sha256:" + HEX * 4, "msg_01" + RANDOM, "toolu_01" + RANDOM, "/usr/lib/python3.11/site-packages/token.py",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==", "primary_key: id", "foreign_key: user_id", 'key: "name"',
        "max_tokens=4096", "010-1234-5678", "2024-01-01", "sk-learn", "task-force", "color: #ff00aa;",
        "risk-based-approach-to-long-words", "https://example.com/a?b=c", "user@host", "http://localhost:8080/path@x",
        "-----BEGIN CERTIFICATE-----\n" + BODY + "\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\n" + BODY + "\n-----END PUBLIC KEY-----",
        "def login(user, password=None, token=token):", "interface A { password: string; token?: string }",
        "토큰 예산은 4096개", "토큰 수: 1500", "암호화 방식: AES-256", "API 키를 설정하세요", "시크릿 로테이션 정책",
        "const token = await getToken(user)", "this.password = password", "1700000000000", "pwd && ls",
        "Authorization: Bearer ${token}", "Bearer authentication", "the secret: keep it simple",
        "ssh-rsa AAAAB3NzaC1yc2E me@host", "docker run -p 8080:80 nginx", "GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}",
        "password must be at least 8 characters", "ResetPasswordToken: ResetPasswordTokenService",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert default()(text) == text


def test_base64_of_a_picture_stays() -> None:
    picture = "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 8).decode()
    assert default()(picture) == picture


def test_a_wrong_example_is_reported_with_its_rule_and_place() -> None:
    wrong = Secret.model_validate(
        {"id": "badge", "kind": "badge", "literals": ["badge"], "pattern": r"badge-\d+",
         "examples": {"match": ["badge-x"], "miss": ["badge-1"]}}
    )  # fmt: skip
    wrong.found_at("mine.yaml", 4)
    failures = check_secrets([wrong])
    assert [(f.rule, f.file, f.line, f.example, f.wanted) for f in failures] == [
        ("badge", "mine.yaml", 4, "badge-x", "match"),
        ("badge", "mine.yaml", 4, "badge-1", "miss"),
    ]

"""Invented Claude Code transcripts of any size: mostly tool traffic, some speech, Korean and English."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

KOREAN = [
    "결제",
    "모듈",
    "배포",
    "캐시",
    "색인",
    "잠금",
    "서버",
    "요청",
    "응답",
    "시간",
    "설정",
    "오류",
    "원인",
    "수정",
    "확인",
    "테스트",
    "데이터",
    "사용자",
    "화면",
    "저장",
]
ENGLISH = [
    "the",
    "cache",
    "index",
    "lock",
    "server",
    "request",
    "response",
    "timeout",
    "config",
    "error",
    "cause",
    "fix",
    "check",
    "test",
    "data",
    "user",
    "view",
]
ENDINGS = ("을 확인했습니다.", "이 원인이었습니다.", "를 다시 실행해 주세요.", "은 어떻게 하나요?", "로 하자.")


def sentence(chance: random.Random) -> str:
    if chance.random() < 0.6:
        return " ".join(chance.choices(KOREAN, k=chance.randint(3, 9))) + chance.choice(ENDINGS)
    return " ".join(chance.choices(ENGLISH, k=chance.randint(5, 14))).capitalize() + "."


def speech(chance: random.Random, sentences: int) -> str:
    return "\n".join(sentence(chance) for _ in range(sentences)) + f" ID_{chance.randrange(10**6)}"


def records(session: str, seed: int, cwd: str) -> Iterator[bytes]:
    """An endless session. Of its bytes about one in ten was said; the rest is what tools were given and gave back."""
    chance = random.Random(seed)
    last, number = None, 0
    while True:
        for kind, message, more in _round(chance, session, number):
            uuid = f"{session[:8]}-{number:08d}"
            moment = f"2026-03-{number // 86_400 % 28 + 1:02d}T{number // 3_600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
            row = {
                "parentUuid": last, "isSidechain": False, "userType": "external", "cwd": cwd, "sessionId": session,
                "version": "2.1.40", "gitBranch": "main", "type": kind, "uuid": uuid, "timestamp": moment, "message": message, **more,
            }  # fmt: skip
            last, number = uuid, number + 1
            yield json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _round(
    chance: random.Random, session: str, number: int
) -> Iterator[tuple[str, dict[str, object], dict[str, object]]]:
    yield "user", {"role": "user", "content": speech(chance, chance.randint(1, 4))}, {}
    for call in range(chance.randint(2, 6)):
        tool = f"toolu_{session[:8]}_{number}_{call}"
        use = {
            "type": "tool_use",
            "id": tool,
            "name": "Read",
            "input": {"file_path": f"/src/{chance.randrange(999)}.py"},
        }
        yield "assistant", {"id": f"msg_{tool}", "role": "assistant", "model": "m", "content": [use]}, {}
        output = "\n".join(" ".join(chance.choices(ENGLISH, k=10)) for _ in range(chance.randint(10, 120)))
        failed = chance.random() < 0.05
        result = {"type": "tool_result", "tool_use_id": tool, "content": output, "is_error": failed}
        yield "user", {"role": "user", "content": [result]}, {"toolUseResult": {"stdout": output, "stderr": ""}}
    answer = [{"type": "text", "text": speech(chance, chance.randint(3, 12))}]
    yield "assistant", {"id": f"msg_{session[:8]}_{number}", "role": "assistant", "model": "m", "content": answer}, {}


def write(path: Path, size: int, *, seed: int = 0, cwd: str = "/home/user/project") -> Path:
    """A transcript of at least `size` bytes, in whole records."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with path.open("wb") as file:
        for line in records(path.stem, seed, cwd):
            written += file.write(line)
            if written >= size:
                break
    return path


def sessions(folder: Path, count: int, size: int) -> Path:
    for number in range(count):
        write(
            folder / f"{number:08x}-0000-4000-8000-000000000001.jsonl",
            size,
            seed=number,
            cwd=f"/home/user/project{number % 5}",
        )
    return folder

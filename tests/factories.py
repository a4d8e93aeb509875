"""Small invented transcripts, in the shapes the agents write."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

STAMP = "2026-03-02T01:{:02d}:{:02d}.000Z"


def stamp(number: int) -> str:
    return STAMP.format(number // 60 % 60, number % 60)


class Claude:
    """A Claude Code session under construction: `say` and `answer` append records, `write` puts the file in place."""

    def __init__(
        self, session: str = "aaaaaaaa-0000-4000-8000-000000000001", cwd: str = "/home/u/shop", *, prefix: str = ""
    ) -> None:
        self.session, self.cwd, self.prefix = session, cwd, prefix
        self.rows: list[dict[str, Any]] = []
        self.last: str | None = None

    def _record(self, kind: str, message: dict[str, Any], **more: Any) -> str:
        number = len(self.rows)
        uuid = more.pop("uuid", None) or f"{self.prefix}{self.session[:8]}-{number:04d}"
        parent = more.pop("parent", self.last)
        self.rows.append(
            {
                "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": self.cwd, "sessionId": self.session,
                "version": "2.1.40", "gitBranch": "main", "type": kind, "uuid": uuid, "timestamp": stamp(number), "message": message, **more,
            }
        )  # fmt: skip
        self.last = uuid
        return uuid

    def say(self, text: str | list[dict[str, Any]], **more: Any) -> str:
        return self._record("user", {"role": "user", "content": text}, **more)

    def answer(self, text: str, **more: Any) -> str:
        identity = more.pop("message_id", f"msg_{self.session[:8]}_{len(self.rows)}")
        content = [{"type": "text", "text": text}]
        return self._record(
            "assistant", {"id": identity, "role": "assistant", "model": "m", "content": content}, **more
        )

    def tool(self, name: str, arguments: dict[str, Any], output: str, *, failed: bool = False) -> None:
        tool = f"toolu_{self.session[:8]}_{len(self.rows)}"
        use = [{"type": "tool_use", "id": tool, "name": name, "input": arguments}]
        self._record("assistant", {"id": f"msg_{tool}", "role": "assistant", "model": "m", "content": use})
        result = [{"type": "tool_result", "tool_use_id": tool, "content": output, "is_error": failed}]
        self._record(
            "user",
            {"role": "user", "content": result},
            toolUseResult=f"Error: {output}" if failed else {"stdout": output, "stderr": ""},
        )

    def write(self, folder: Path, name: str | None = None, *, age_minutes: float = 0) -> Path:
        return write_lines(folder / (name or f"{self.session}.jsonl"), self.rows, age_minutes=age_minutes)


class OpenClaw:
    """An OpenClaw session under construction."""

    def __init__(self, session: str = "bbbbbbbb-0000-4000-8000-000000000002", cwd: str = "/home/u/shop") -> None:
        self.session = session
        self.rows: list[dict[str, Any]] = [
            {"type": "session", "version": 3, "id": session, "timestamp": stamp(0), "cwd": cwd}
        ]

    def _message(self, role: str, text: str, **more: Any) -> None:
        number = len(self.rows)
        parent = f"e{number - 1}" if number > 1 else None
        message = {"role": role, "content": [{"type": "text", "text": text}], **more}
        self.rows.append(
            {"type": "message", "id": f"e{number}", "parentId": parent, "timestamp": stamp(number), "message": message}
        )

    def say(self, text: str) -> None:
        self._message("user", text)

    def answer(self, text: str) -> None:
        self._message("assistant", text, provider="p", model="m")

    def write(self, folder: Path, suffix: str = "", *, age_minutes: float = 0) -> Path:
        return write_lines(folder / f"{self.session}.jsonl{suffix}", self.rows, age_minutes=age_minutes)


def write_lines(path: Path, rows: list[dict[str, Any]], *, age_minutes: float = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows))
    if age_minutes:
        then = path.stat().st_mtime - age_minutes * 60
        os.utime(path, (then, then))
    return path


def words_in(root: Path, words: str) -> list[Path]:
    """Files under a folder whose bytes hold these words, as UTF-8, as escaped JSON, or in a word index's lower case."""
    forms = {form.encode() for form in (words, words.casefold(), json.dumps(words)[1:-1])}
    return [
        path for path in sorted(root.rglob("*")) if path.is_file() and any(form in path.read_bytes() for form in forms)
    ]

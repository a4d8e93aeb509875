"""Thirty invented sessions, and what an archive of them comes to: for the tests that kill and crowd the archiver."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from archiver.cli.search import find
from archiver.home import Home
from tests.archiver.standing import standing_of
from tests.factories import Claude, OpenClaw

TOPICS = (
    ("결제 중복", "멱등 키 누락", "유니크 제약을 추가해서", "ERR_PAY"),
    ("배포 지연", "캐시 미스", "캐시를 데우도록 바꿔서", "ERR_DEPLOY"),
    ("로그인 실패", "시계 차이", "허용 오차를 60초로 늘려서", "ERR_CLOCK"),
    ("색인 충돌", "잠금 경쟁", "임시 파일에 쓰고 이름을 바꿔서", "ERR_LOCK"),
)
CHOICES = (
    ("Use SQLite instead of Redis for the {} queue.", "Done, the {} queue runs on SQLite now."),
    ("{} 큐는 Redis 대신 SQLite로 하자", "네, {} 큐를 SQLite로 구현했습니다."),
)
REPEATED = (
    "알림 메일은 SES 대신 사내 릴레이 서버로 보내기로 하자",
    "알림 메일은 SES 대신 사내 릴레이 서버로 보내기로 하자고요",
    "알림 메일을 SES 대신 사내 릴레이 서버로 보내기로 하자",
)
"""One decision, said a little differently: when one is accepted, the others join it."""
QUERIES = ("결제 중복 원인", "SQLite queue", "ERR_LOCK_7", "캐시를 데우는 배포", "허용 오차 60초")


def plant(folder: Path, sessions: int = 30) -> Path:
    """Claude Code sessions with copies across files and tool errors, a reset and a deleted OpenClaw session."""
    for number in range(sessions - 2):
        _claude(number).write(folder, age_minutes=600 - number)
    _resumed().write(folder, age_minutes=30 + 60)
    for number, words in enumerate(REPEATED):
        again = Claude(f"{number:08x}-0000-4000-8000-0000000000aa", cwd="/home/u/project0", prefix=f"r{number}-")
        again.say(words)
        again.answer("네, 그렇게 구현했습니다.")
        again.write(folder, age_minutes=80 + number)
    reset = OpenClaw("eeeeeeee-0000-4000-8000-00000000000e", cwd="/home/u/shop")
    reset.say("재시도 횟수는 3으로 고정하자")
    reset.answer("네, 재시도 횟수를 3으로 고정했습니다.")
    reset.write(folder, ".reset.2026-03-03T04-00-00.000Z", age_minutes=120)
    deleted = buried()
    deleted.write(folder, ".deleted.2026-03-03T05-00-00.000Z", age_minutes=100)
    return folder


def buried() -> OpenClaw:
    made = OpenClaw("dddddddd-0000-4000-8000-00000000000d", cwd="/home/u/shop")
    made.say("비둘기자리 서버에서 결제가 두 번 됩니다. 토큰은 " + "ghp_" + "Z9x" * 12 + " 입니다.")
    made.answer("결제 중복의 원인은 멱등 키 누락이었고, 유니크 제약을 걸어서 해결했습니다.")
    made.say("고마워요, 코끼리별 배포도 확인했어요.")
    return made


def _claude(number: int) -> Claude:
    what, cause, fix, code = TOPICS[number % len(TOPICS)]
    made = Claude(f"{number:08x}-0000-4000-8000-000000000001", cwd=f"/home/u/project{number % 3}", prefix=f"n{number}-")
    made.say(f"{what} 문제가 {number}번째로 다시 났어요. 로그에 {code}_{number} 라고 나옵니다.")
    made.tool("Bash", {"command": "pytest"}, f"E   RuntimeError: {code}_{number} at queue.py:{number}", failed=True)
    made.answer(f"{what}의 원인은 {cause}이었고, {fix} 해결했습니다. 작업 번호는 {number}입니다.")
    choice, done = CHOICES[number % 2]
    made.say(choice.format(f"job{number}"))
    made.answer(done.format(f"job{number}"))
    made.tool("Bash", {"command": "git commit -m fix"}, "[main 1a2b3c] fix")
    made.say("고마워요, 확인했어요.")
    return made


def _resumed() -> Claude:
    """A session that begins as a copy of another one's file."""
    first = _claude(3)
    made = Claude("cccccccc-0000-4000-8000-00000000000c", cwd=first.cwd)
    made.rows = [{**row, "sessionId": made.session} for row in first.rows]
    made.last = first.last
    made.say("타임아웃은 30초로 고정하자")
    made.answer("네, 타임아웃을 30초로 고정했습니다.")
    return made


def copied(home: Path, to: Path) -> Path:
    """A copy of a home. The model's weights, which nobody writes again, are linked: they are 70 MB."""
    return shutil.copytree(
        home,
        to,
        copy_function=lambda source, copy: (os.link if source.endswith(".arrays") else shutil.copy2)(source, copy),
    )


def state(root: Path) -> dict[str, Any]:
    """All that an archive holds, without what differs between two runs over the same sessions: ids, uids, clocks."""
    home = Home.open(root)
    with closing(sqlite3.connect(root / "archive.db")) as db:
        return {
            "turns": db.execute(
                "SELECT t.agent, s.external_id, t.key, t.ord, t.role, t.kind, t.state, t.text, t.time"
                " FROM turn t JOIN session s ON s.id = t.session_id ORDER BY 1, 2, 4, 3"
            ).fetchall(),
            "seen": db.execute(
                "SELECT t.key, s.external_id FROM turn_seen x JOIN turn t ON t.id = x.turn_id"
                " JOIN session s ON s.id = x.session_id ORDER BY 1, 2"
            ).fetchall(),
            "sessions": db.execute(
                "SELECT agent, external_id, status, title, cwd, started_at, ended_at, distilled_at >= changed_at"
                " FROM session ORDER BY 1, 2"
            ).fetchall(),
            "chunks": db.execute(
                "SELECT s.external_id, c.first_ord, c.last_ord, c.part, c.role, c.heading, c.text, c.hash, c.time"
                " FROM chunk c JOIN session s ON s.id = c.session_id ORDER BY 1, 2, 4, 5, 7"
            ).fetchall(),
            "vectors": db.execute("SELECT DISTINCT hash, model FROM vector ORDER BY 1, 2").fetchall(),
            "entries": db.execute(
                "SELECT e.type, e.summary, e.detail, e.status, e.scope, p.name,"
                " (SELECT group_concat(a.anchor) FROM (SELECT anchor FROM entry_anchor WHERE entry_id = e.id ORDER BY 1) a),"
                " (SELECT group_concat(v.turn_key || v.role || coalesce(v.quote, '')) FROM"
                "  (SELECT * FROM evidence WHERE entry_id = e.id ORDER BY turn_key, quote) v)"
                " FROM entry e LEFT JOIN project p ON p.id = e.project_id ORDER BY 1, 2, 3"
            ).fetchall(),
            "verdicts": db.execute(
                "SELECT v.anchor, v.outcome, e.summary FROM verdict v LEFT JOIN entry e ON e.id = v.entry_id ORDER BY 1"
            ).fetchall(),
            "outbox": db.execute("SELECT count(*) FROM outbox").fetchone(),
            "staging": {path.name: _document(path) for path in sorted((root / "staging").glob("*.json"))},
            "vault": sorted(_without_ids(path.read_text(encoding="utf-8")) for path in (root / "vault").rglob("*.md")),
            "answers": {query: _answers(home, query) for query in QUERIES},
            "index": _agreement(home),
        }


def _document(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    document.pop("archived_at")
    return document


def _without_ids(note: str) -> str:
    return "\n".join(line for line in note.splitlines() if not line.startswith(("uid:", "created:", "reviewed:")))


def _answers(home: Home, query: str) -> list[tuple[str, str, str]]:
    hits = find(home, query, project=None, everything=True, limit=5).hits
    return [(hit.kind, hit.session, hit.text) for hit in hits]


def _agreement(home: Home) -> tuple[bool, bool, int, int]:
    standing = standing_of(home.index)
    return standing.rows == standing.words, standing.intact, standing.waiting, standing.unembedded

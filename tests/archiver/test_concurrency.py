"""Archivers, hooks and readers at once: no error, nothing twice, no event lost."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from archiver import inbox
from archiver.home import Home
from store.words import Words
from tests.archiver.processes import Server
from tests.archiver.standing import standing_of
from tests.archiver.trees import plant, state
from tests.factories import Claude

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked from one that is loaded")


def events(home: Path) -> list[tuple[str, str]]:
    return sorted((e.agent, e.session) for _, e in inbox.waiting(home / "inbox") if e is not None)


def ended(home: Path) -> set[str]:
    with closing(sqlite3.connect(home / "archive.db")) as db:
        return {row[0] for row in db.execute("SELECT external_id FROM session WHERE status = 'ended'")}


def candidates(held: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """What waits, but for which of two near ones was there first."""
    return {
        name: [{key: value for key, value in item.items() if key != "repeats"} for item in document["entries"]]
        for name, document in held["staging"].items()
    }


def test_four_archivers_three_readers_and_ten_hooks_at_once(processes: Server, tmp_path: Path) -> None:
    agents = tmp_path / "claude"
    plant(agents / "projects" / "-home-u-shop", sessions=16)
    alone, crowd = tmp_path / "alone", tmp_path / "crowd"
    claude = {"CLAUDE_CONFIG_DIR": str(agents)}
    archivers = [processes.start("archive", home=crowd, **claude) for _ in range(4)]
    hooks, told = [], []
    for number in range(4, 14):  # not the third, of which another file holds copies: who is read first keeps them
        session = f"{number:08x}-0000-4000-8000-000000000001"
        payload = {
            "session_id": session,
            "transcript_path": str(agents / "projects" / "-home-u-shop" / f"{session}.jsonl"),
        }
        text, told = json.dumps(payload), [*told, session]
        hooks.append(processes.start("claude-code", "session-end", program="wwt-hook", home=crowd, text=text, **claude))
    readers = [processes.start("search", "결제 중복 원인", "--all", "--json", home=crowd, **claude) for _ in range(3)]
    for one in [*archivers, *hooks, *readers]:
        done = one.wait()
        assert (done.code, done.err) == (0, ""), done
    waiting = {session for _, session in events(crowd)}
    assert waiting | ended(crowd) >= set(told), "an event is gone and its session is not over"
    for home in (crowd, alone):
        assert processes.run("archive", home=home, **claude).code == 0
    assert events(crowd) == []
    assert ended(crowd) == set(told)
    here, there = state(crowd), state(alone)
    for what in ("turns", "seen", "chunks", "vectors", "answers", "index", "outbox"):
        assert here[what] == there[what], what
    assert candidates(here) == candidates(there)


def test_while_another_process_writes_the_index_archiving_and_searching_go_on(
    processes: Server, tmp_path: Path
) -> None:
    home = tmp_path / "wwt"
    plant(tmp_path / "in", sessions=4)
    processes.run("archive", str(tmp_path / "in"), home=home)
    made = Claude("99999999-0000-4000-8000-000000000009", prefix="late-")
    made.say("늦게 온 물수리별 이야기 LATE_77")
    made.answer("물수리별 배포를 끝냈습니다.")
    made.write(tmp_path / "in", age_minutes=60)
    with Words(home / "index" / "words").writing():  # holds Tantivy's own lock
        done = processes.run("archive", str(tmp_path / "in"), home=home)
        assert (done.code, done.err) == (0, "")
        for query in ("LATE_77", "물수리별 배포"):
            found = json.loads(processes.run("search", query, "--all", "--json", home=home).out)["hits"]
            assert "물수리별" in found[0]["text"]
        assert standing_of(Home.open(home).index).waiting > 0
    assert processes.run("archive", str(tmp_path / "in"), home=home).code == 0
    assert standing_of(Home.open(home).index).waiting == 0


def test_a_reviewer_is_not_kept_waiting_by_an_archiver(processes: Server, tmp_path: Path) -> None:
    home = tmp_path / "wwt"
    plant(tmp_path / "in", sessions=4)
    processes.run("archive", str(tmp_path / "in"), home=home)
    plant(tmp_path / "more", sessions=16)
    archiver = processes.start("archive", str(tmp_path / "more"), home=home)
    reviewer = processes.start("review", "--accept-all", "--all", "--yes", "--json", home=home)
    for one in (reviewer, archiver):
        done = one.wait()
        assert (done.code, done.err) == (0, ""), done
    assert json.loads((reviewer.base.with_suffix(".out")).read_text())["accepted"] > 0

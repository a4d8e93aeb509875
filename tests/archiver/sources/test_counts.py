"""What every format must give: one table over all sources, from invented inputs of each variant."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.agents import AGENTS
from archiver.discover import from_paths
from archiver.sources import SOURCES
from archiver.transcript import About, Outcome, Progress, Upsert
from store.records import Role, State
from tests.archiver.sources import (
    test_claude_code,
    test_codex,
    test_gemini_cli,
    test_hermes,
    test_markdown,
    test_openclaw,
    test_openclaw_store,
    test_opencode,
    test_pi,
    test_web_exports,
)
from tests.archiver.sources.transcripts import Counted

MODULES = (
    test_claude_code,
    test_codex,
    test_gemini_cli,
    test_hermes,
    test_markdown,
    test_openclaw,
    test_openclaw_store,
    test_opencode,
    test_pi,
    test_web_exports,
)
TABLE: list[Counted] = [case for module in MODULES for case in module.COUNTED]


@pytest.mark.parametrize("case", TABLE, ids=lambda case: f"{case.agent}: {case.name}")
def test_counts(case: Counted, tmp_path: Path) -> None:
    found, problems = from_paths([case.make(tmp_path)])
    assert problems == []
    assert {one.agent for one in found} == {case.agent}
    source = next(source for source in SOURCES if source.agent == case.agent)
    events = [event for one in found for event in source.parse(one, Progress(), final=True)]
    turns = {event.turn.key: event.turn for event in events if isinstance(event, Upsert)}
    live = [turn for turn in turns.values() if turn.state is State.LIVE]
    counts = {
        "sessions": len({event.external_id for event in events if isinstance(event, About)}),
        "user": sum(turn.role is Role.USER for turn in live),
        "assistant": sum(turn.role is Role.ASSISTANT for turn in live),
        "errors": sum(turn.role is Role.TOOL for turn in live),
        "outcomes": len({event.key for event in events if isinstance(event, Outcome)}),
    }
    assert counts == {name: getattr(case, name) for name in counts}


def test_every_agent_of_the_table_is_counted() -> None:
    assert {case.agent for case in TABLE} == {agent.id for agent in AGENTS}

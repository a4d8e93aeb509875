"""Small invented candidates, queues and desks for the tests of staging, review and the vault."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from migrations import upgrade
from rules.redact import default
from staging.documents import Document, Queue
from staging.intake import Intake, Source, take_in
from staging.promote import Desk
from staging.review import Question
from staging.waiting import Filters, Waiting, waiting
from store.database import Database
from store.records import Candidate, DecidedBy, EntryType, Quote, Role, SafeText, anchor
from store.verdicts import lookup_in

NOW = 1_775_000_000_000
PROJECT = SafeText("/home/u/shop")

redact = default()


def candidate(
    core: str = "캐시는 Redis 대신 SQLite에 둔다",
    *,
    detail: str = "",
    kind: EntryType = EntryType.DECISION,
    tags: Sequence[str] = ("cache",),
    confidence: float = 0.8,
    rule: str = "decision.choice",
    turn: str = "t1",
    anchors: Sequence[str] = (),
) -> Candidate:
    return Candidate(
        type=kind,
        summary=SafeText(core),
        detail=SafeText(detail),
        tags=tuple(tags),
        confidence=confidence,
        rule=rule,
        decided_by=DecidedBy.USER,
        evidence=(Quote(turn, Role.USER, SafeText(core), NOW),),
        anchors=tuple(anchors) or (anchor(core),),
    )


def source(session: str = "s1", *, status: str = "ended", agent: str = "claude-code", project: str = PROJECT) -> Source:
    return Source(agent, session, SafeText(project), status, NOW)  # type: ignore[arg-type]


def desk_at(home: Path) -> Desk:
    home.mkdir(parents=True, exist_ok=True)
    upgrade(home / "archive.db", home / "backups")
    ticks = iter(range(NOW, NOW + 1_000_000))
    return Desk(Database(home / "archive.db"), Queue(home / "staging", redact), now=lambda: next(ticks))


def stage(
    desk: Desk, *candidates: Candidate, session: str = "s1", status: str = "ended", project: str = PROJECT
) -> Intake:
    where = source(session, status=status, project=project)
    return take_in(desk.queue, where, candidates, verdicts=lookup_in(desk.database.path))


def waits(desk: Desk, filters: Filters = Filters()) -> tuple[Waiting, ...]:  # noqa: B008  frozen
    return waiting(desk.queue, lookup_in(desk.database.path), filters, now=NOW).items


def document(desk: Desk, session: str = "s1") -> Document:
    found = desk.queue.get(Queue.name_for("claude-code", session))
    assert isinstance(found, Document)
    return found


def summaries(items: Iterable[Waiting]) -> list[str]:
    return [str(one.item.summary) for one in items]


class Script:
    """Answers to the questions of a sitting, in order; what was shown and asked is kept. At the end it wants out."""

    def __init__(self, answers: Iterable[str | None], *, edits: Sequence[str | None] = ()) -> None:
        self.answers = iter(answers)
        self.edits = iter(edits)
        self.asked: list[Question] = []
        self.shown: list[str] = []
        self.edited: list[str] = []

    def ask(self, question: Question) -> str | None:
        self.asked.append(question)
        return next(self.answers, None)

    def show(self, line: str) -> None:
        self.shown.append(line)

    def edit(self, text: str) -> str | None:
        self.edited.append(text)
        return next(self.edits, None)

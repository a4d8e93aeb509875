"""The decision loop: shows one candidate at a time, asks, and has every answer carried out before the next question."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal

from staging import form
from staging.dedup import similarity
from staging.documents import Document, Item, Redact
from staging.form import Fault, Form
from staging.intake import known_text
from staging.promote import Desk, Done, Move, commit, decide, drop, save, undo
from staging.waiting import Waiting
from store import knowledge
from store.errors import WwtError
from store.messages import text
from store.records import Entry, Scope, anchor

BEST = 20
OFFERED = 9
"""Entries offered as the target of a merge: more than fit on a screen are no help."""


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    label: str


@dataclass(frozen=True, slots=True)
class Question:
    """`choices` is empty for a line of free text, and only then."""

    kind: Literal["action", "entry", "like", "tags"]
    text: str
    choices: tuple[Choice, ...] = ()
    default: str = ""


Ask = Callable[[Question], str | None]
"""The chosen value, or None when the person wants out."""
Show = Callable[[str], None]
Edit = Callable[[str], str | None]
"""The text after the person edited it; None if they gave up."""

ACTIONS = (
    ("a", "accept"),
    ("e", "edit"),
    ("m", "merge"),
    ("u", "supersede"),
    ("t", "retag"),
    ("g", "everywhere"),
    ("r", "reject"),
    ("R", "reject_like"),
    ("s", "skip"),
    ("b", "back"),
    ("q", "quit"),
)


@dataclass(slots=True)
class Tally:
    """What a sitting came to. `left` still wait under the same filters."""

    accepted: int = 0
    merged: int = 0
    superseded: int = 0
    rejected: int = 0
    skipped: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """One answer that `back` returns from: at which place of the list, and what it decided (nothing: it was skipped)."""

    place: int
    done: tuple[Done, ...] = ()


def review(desk: Desk, waiting: Sequence[Waiting], *, ask: Ask, show: Show, edit: Edit, limit: int = BEST) -> Tally:
    """Go through the first `limit` of `waiting`. Ends at the last one, on "q", or when `ask` answers None."""
    if not waiting:
        show(text("review.nothing"))
        return Tally()
    sitting = _Sitting(desk, tuple(waiting), limit, ask, lambda line: show(plain(line)), edit)
    sitting.run()
    return sitting.tally


def plain(line: str) -> str:
    """The text without what could drive a terminal: controls, escapes, overrides of the writing direction."""
    return "".join(
        c for c in line if c in "\n\t\u200d\ufe0f" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
    )


def as_text(item: Item) -> str:
    """An item as it is put before an editor; `from_text` reads it back."""
    return form.write(_form(item))


def from_text(edited: str, item: Item, redact: Redact) -> Item | Fault:
    """The item with a person's changes, redacted."""
    typed = form.read(edited, _form(item), redact)
    if isinstance(typed, Fault):
        return typed
    changes = {"type": typed.type, "summary": typed.summary, "detail": typed.detail, "tags": typed.tags}
    return item.model_copy(update=changes)


def _form(item: Item) -> Form:
    return Form(item.type, item.summary, item.detail, item.tags)


@dataclass
class _Sitting:
    desk: Desk
    all: tuple[Waiting, ...]
    limit: int
    ask: Ask
    show: Show
    edit: Edit
    tally: Tally = field(default_factory=Tally)
    place: int = 0
    steps: list[_Step] = field(default_factory=list)
    decided: set[str] = field(default_factory=set)
    """Anchors decided in this sitting: they may belong to items further down the list."""
    refused: dict[str, str] = field(default_factory=dict)
    """Edits that could not be read, by item: the next edit of it goes on from there."""

    def run(self) -> None:
        best = self.all[: self.limit]
        while self.place < len(best):
            current = self._on_disk(best[self.place])
            if current is None:
                self.place += 1
                continue
            self.show(self._card(current, len(best)))
            answer = self.ask(self._action())
            if answer is None or answer == "q":
                break
            self._answer(answer, current)
        self.tally.left = sum(not self._is_decided(waiting) for waiting in self.all)

    def _answer(self, answer: str, waiting: Waiting) -> None:
        handlers: dict[str, Callable[[Waiting], None]] = {
            "a": lambda w: self._decide(w, Move.ACCEPT),
            "r": lambda w: self._decide(w, Move.REJECT),
            "m": lambda w: self._with_entry(w, Move.MERGE),
            "u": lambda w: self._with_entry(w, Move.SUPERSEDE),
            "R": self._reject_like,
            "e": self._edit,
            "t": self._retag,
            "g": self._everywhere,
            "s": self._skip,
            "b": lambda _: self._back(),
        }
        handler = handlers.get(answer)
        if handler is None:
            self.show(text("review.unknown_answer", answer=answer))
            return
        handler(waiting)

    def _decide(self, waiting: Waiting, move: Move, target: str | None = None) -> None:
        if self._on_disk(waiting) != waiting:
            self.show(text("review.changed_meanwhile"))
            return
        try:
            done = decide(self.desk, waiting, move, target)
        except WwtError as error:
            if error.key != "review.no_entry":
                raise
            self.show(text(error.key, **error.fields))
            return
        if done.decided is None:
            self.show(text("review.already_decided"))
        self._count([done], move, 1)
        self.steps.append(_Step(self.place, (done,)))
        self.place += 1

    def _with_entry(self, waiting: Waiting, move: Move) -> None:
        offered = self._entries(waiting)
        if not offered:
            self.show(text("review.no_entries"))
            return
        choices = tuple(Choice(entry.uid, plain(f"{entry.uid}  {entry.summary}")) for entry in offered)
        chosen = self.ask(Question("entry", text(f"review.ask_{move.value}"), choices, choices[0].value))
        if chosen is not None:
            self._decide(waiting, move, chosen)

    def _reject_like(self, waiting: Waiting) -> None:
        choices = (
            Choice("rule", plain(text("review.like_rule", rule=waiting.item.rule))),
            Choice("session", plain(text("review.like_session", session=waiting.header.source_session))),
        )
        chosen = self.ask(Question("like", text("review.ask_like"), choices, "rule"))
        if chosen not in ("rule", "session"):
            return
        alike = [w for w in self.all if not self._is_decided(w) and _alike(w, waiting, chosen)]
        done = [commit(self.desk, one, Move.REJECT) for one in alike]
        drop(self.desk.queue, alike)
        self.show(text("review.rejected_like", count=len(done)))
        self._count(done, Move.REJECT, 1)
        self.steps.append(_Step(self.place, tuple(done)))
        self.place += 1

    def _edit(self, waiting: Waiting) -> None:
        edited = self.edit(self.refused.get(waiting.item.id) or as_text(waiting.item))
        if edited is None:
            return
        item = from_text(edited, waiting.item, self.desk.queue.redact)
        if isinstance(item, Fault):
            self.refused[waiting.item.id] = edited
            self.show(text("review.bad_edit", line=item.line, reason=item.reason))
            return
        self.refused.pop(waiting.item.id, None)
        self._save(waiting, item)

    def _retag(self, waiting: Waiting) -> None:
        answer = self.ask(Question("tags", text("review.ask_tags"), default=", ".join(waiting.item.tags)))
        if answer is None:
            return
        redact = self.desk.queue.redact
        tags = tuple(redact(tag.strip()) for tag in answer.split(",") if tag.strip())
        self._save(waiting, waiting.item.model_copy(update={"tags": tags}))

    def _everywhere(self, waiting: Waiting) -> None:
        scope = Scope.PROJECT if waiting.item.scope is Scope.GLOBAL else Scope.GLOBAL
        self._save(waiting, waiting.item.model_copy(update={"scope": scope}))

    def _save(self, waiting: Waiting, item: Item) -> None:
        """The item is shown again from its document, so what is accepted is what is on disk."""
        if self._on_disk(waiting) != waiting:
            self.show(text("review.changed_meanwhile"))
            return
        save(self.desk, waiting, item)

    def _skip(self, waiting: Waiting) -> None:
        self.tally.skipped += 1
        self.steps.append(_Step(self.place))
        self.place += 1

    def _back(self) -> None:
        if not self.steps:
            self.show(text("review.no_way_back"))
            return
        step = self.steps.pop()
        for done in reversed(step.done):
            if done.decided is not None:
                undo(self.desk, done.decided, done.waiting)
        if step.done:
            self._count(step.done, _move(step.done), -1)
        else:
            self.tally.skipped -= 1
        self.place = step.place

    def _count(self, done: Sequence[Done], move: Move, sign: int) -> None:
        ours = [one for one in done if one.decided is not None]
        for one in done:
            anchors = one.waiting.item.anchors
            if sign > 0:
                self.decided.update(anchors)
            elif one.decided is not None:
                self.decided.difference_update(anchors)
        name = {Move.ACCEPT: "accepted", Move.REJECT: "rejected", Move.MERGE: "merged", Move.SUPERSEDE: "superseded"}[
            move
        ]
        setattr(self.tally, name, getattr(self.tally, name) + sign * len(ours))

    def _is_decided(self, waiting: Waiting) -> bool:
        return not self.decided.isdisjoint(waiting.item.anchors)

    def _on_disk(self, waiting: Waiting) -> Waiting | None:
        """The item as its document has it now: someone may have edited, deleted or decided it since the list was made."""
        if self._is_decided(waiting):
            return None
        document = self.desk.queue.get(waiting.name)
        if not isinstance(document, Document):
            return None
        item = next((item for item in document.entries if item.id == waiting.item.id), None)
        return None if item is None else replace(waiting, item=item)

    def _entries(self, waiting: Waiting) -> list[Entry]:
        """Active entries of the project and global ones, the nearest first."""
        with self.desk.database.transaction() as tx:
            known = knowledge.list_entries(tx, knowledge.Filters(project=waiting.header.project or None))
        mine = known_text(waiting.item.summary, waiting.item.detail)
        marked = waiting.item.repeats.entry if waiting.item.repeats else None
        nearness = {e.uid: similarity(mine, known_text(e.summary, e.detail)) for e in known}
        return sorted(known, key=lambda e: (e.uid != marked, -nearness[e.uid]))[:OFFERED]

    def _action(self) -> Question:
        choices = tuple(Choice(key, text(f"review.{name}")) for key, name in ACTIONS)
        return Question("action", text("review.ask_action"), choices, "s")

    def _card(self, waiting: Waiting, shown: int) -> str:
        header, item = waiting.header, waiting.item
        total = f"{len(self.all):,}"
        lines = [
            text("review.place", number=self.place + 1, shown=shown, total=total),
            text(
                "review.about",
                type=text(f"type.{item.type.value}"),
                confidence=f"{item.confidence:.2f}",
                decided_by=item.decided_by.value,
                project=PurePath(header.project).name or header.project or "-",
                session=header.source_session[:8],
            ),
            "",
            item.summary,
        ]
        if anchor(item.detail) != anchor(item.summary):
            lines += [f"  {line}" for line in item.detail.splitlines()]
        if item.tags:
            lines.append(text("review.tags", tags=", ".join(item.tags)))
        if item.scope is Scope.GLOBAL:
            lines.append(text("review.is_global"))
        lines += _evidence(waiting)
        lines += self._beside(waiting)
        return "\n".join(("", *lines, ""))

    def _beside(self, waiting: Waiting) -> list[str]:
        """What the candidate comes near to, to be read beside it."""
        if len(waiting.all) > 1:
            return [text("review.said_in", count=len(waiting.all))]
        repeats = waiting.item.repeats
        other = self._repeated(waiting)
        if repeats is None or other is None:
            return []
        key = "review.may_replace" if repeats.supersedes else "review.near_to"
        summary, detail = other
        return [
            text(key, percent=round(repeats.similarity * 100)),
            f"  | {summary}",
            *(f"  | {line}" for line in detail.splitlines()),
        ]

    def _repeated(self, waiting: Waiting) -> tuple[str, str] | None:
        repeats = waiting.item.repeats
        if repeats is None:
            return None
        if repeats.entry is not None:
            with self.desk.database.transaction() as tx:
                entry = knowledge.get(tx, repeats.entry)
            return None if entry is None else (entry.summary, entry.detail)
        item = next((w.item for w in self.all if w.item.id == repeats.waiting), None)
        return None if item is None else (item.summary, item.detail)


def _evidence(waiting: Waiting) -> list[str]:
    quotes = [e for one in waiting.all for e in one.item.evidence if e.quote]
    return [
        text("review.quote", role=e.role.value, time=(e.time or "")[:10], quote=" ".join(e.quote.split()))
        for e in quotes
    ]


def _alike(one: Waiting, other: Waiting, by: str) -> bool:
    if by == "rule":
        return one.item.rule == other.item.rule
    return (one.header.agent, one.header.source_session) == (other.header.agent, other.header.source_session)


def _move(done: Sequence[Done]) -> Move:
    return next((Move(one.decided.action) for one in done if one.decided is not None), Move.REJECT)

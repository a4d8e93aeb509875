"""Sessions, their files and turns: writing what a parse found, and reading a session back whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import insert as upsert

from store.records import Conversation, Fact, Role, SafeText, State, Status, Turn
from store.tables import (
    chunk,
    evidence,
    forgotten,
    outcome,
    pending_title,
    project,
    session,
    source_file,
    turn,
    turn_seen,
)

BATCH = 500


@dataclass(frozen=True, slots=True)
class FileRow:
    """What is known of a transcript file since it was last read. `state` is the parser's own JSON."""

    id: int
    size: int
    mtime_ns: int
    head_hash: str
    tail_hash: str
    offset: int
    state: str
    parser_version: int
    session_id: int | None


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A parsed turn, masked, on its way in. `pos` orders the turns of one file."""

    key: str
    pos: int
    role: Role
    kind: str
    text: SafeText
    time: int | None
    state: State


@dataclass(slots=True)
class Change:
    """What applying a file changed in one session. `altered` are ids of turns whose words or state changed;
    `moved` says that known turns stand in another file now, so their order may differ."""

    added: int = 0
    altered: set[int] = field(default_factory=set)
    moved: bool = False

    @property
    def any(self) -> bool:
        return bool(self.added or self.altered or self.moved)


# --- files ---


def file_row(tx: Connection, agent: str, path: SafeText) -> FileRow | None:
    c = source_file.c
    columns = (
        c.id,
        c.size,
        c.mtime_ns,
        c.head_hash,
        c.tail_hash,
        c.offset,
        c.parser_state,
        c.parser_version,
        c.session_id,
    )
    row = tx.execute(select(*columns).where(c.agent == agent, c.path == path)).first()
    return FileRow(*row) if row else None


def save_file(tx: Connection, agent: str, path: SafeText, values: dict[str, Any]) -> int:
    """Insert or update the row of a file; `values` are columns of `source_file`. Returns its id."""
    row = {"agent": agent, "path": path, "missing_since": None, **values}
    statement = upsert(source_file).values(**row)
    statement = statement.on_conflict_do_update(index_elements=["agent", "path"], set_=row)
    return int(tx.execute(statement.returning(source_file.c.id)).scalar_one())


def update_file(tx: Connection, file_id: int, values: dict[str, Any]) -> None:
    tx.execute(update(source_file).where(source_file.c.id == file_id).values(**values))


def detach_turns(tx: Connection, file_id: int) -> list[int]:
    """The file is read anew from its start: its turns stay, but their positions in it mean nothing now. Their ids."""
    ids = list(tx.execute(select(turn.c.id).where(turn.c.file_id == file_id)).scalars())
    tx.execute(update(turn).where(turn.c.file_id == file_id).values(file_id=None))
    return ids


def drop_unclaimed(tx: Connection, turn_ids: Sequence[int]) -> dict[int, set[int]]:
    """Drop those of these turns that no file claims any more: a newer parser knows that nobody said them. Their ids by session."""
    dropped: dict[int, set[int]] = defaultdict(set)
    for start in range(0, len(turn_ids), BATCH):
        batch = turn_ids[start : start + BATCH]
        unclaimed = select(turn.c.id, turn.c.session_id).where(turn.c.id.in_(batch), turn.c.file_id.is_(None))
        for row in tx.execute(unclaimed).all():
            dropped[row.session_id].add(row.id)
            tx.execute(delete(turn).where(turn.c.id == row.id))
    return dropped


# --- sessions ---


def ensure(tx: Connection, agent: str, external_id: SafeText, **values: Any) -> int:
    """Id of the session, made if new."""
    found = tx.execute(
        select(session.c.id).where(session.c.agent == agent, session.c.external_id == external_id)
    ).scalar()
    if found is not None:
        return int(found)
    row = {"agent": agent, "external_id": external_id, **values}
    return int(tx.execute(insert(session).values(**row).returning(session.c.id)).scalar_one())


def find(tx: Connection, agent: str, external_id: str) -> int | None:
    found = tx.execute(
        select(session.c.id).where(session.c.agent == agent, session.c.external_id == SafeText(external_id))
    ).scalar()
    return None if found is None else int(found)


def end(tx: Connection, session_id: int) -> None:
    """The agent said that this session is over. A reset or deleted one stays what it is."""
    active = session.c.status == Status.ACTIVE.value
    tx.execute(update(session).where(session.c.id == session_id, active).values(status=Status.ENDED.value))


def reopen(tx: Connection, session_id: int) -> None:
    """Something was said after the end that a hook told of: the session was resumed."""
    ended = session.c.status == Status.ENDED.value
    tx.execute(update(session).where(session.c.id == session_id, ended).values(status=Status.ACTIVE.value))


def get(tx: Connection, session_id: int) -> Row[Any]:
    return tx.execute(select(session).where(session.c.id == session_id)).one()


def refine(tx: Connection, session_id: int, **values: Any) -> None:
    """Set columns of a session; None leaves what is there."""
    kept = {name: value for name, value in values.items() if value is not None}
    if kept:
        tx.execute(update(session).where(session.c.id == session_id).values(**kept))


def widen(tx: Connection, session_id: int, first: int | None, last: int | None) -> None:
    """Let the session's times cover these, in UTC ms."""
    c = session.c
    up_to = _forgotten(tx, session_id)
    if up_to is not None:
        first, last = (None if time is None or time <= up_to else time for time in (first, last))
    if first is not None:
        tx.execute(
            update(session)
            .where(c.id == session_id, or_(c.started_at.is_(None), c.started_at > first))
            .values(started_at=first)
        )
    if last is not None:
        tx.execute(
            update(session)
            .where(c.id == session_id, or_(c.ended_at.is_(None), c.ended_at < last))
            .values(ended_at=last)
        )


def offer_title(tx: Connection, session_id: int, title: SafeText, rank: int) -> bool:
    """Take the title if its rank allows: a higher one wins, of equals the later one, and of rank 0 the first. True if it changed.

    A session that was forgotten and goes on stays without: a title may be made of all of it.
    """
    if _forgotten(tx, session_id) is not None:
        return False
    held = tx.execute(select(session.c.title, session.c.title_rank).where(session.c.id == session_id)).one()
    if held.title is not None and (rank < held.title_rank or (rank == 0 and held.title_rank == 0)):
        return False
    if held.title == title and held.title_rank == rank:
        return False
    tx.execute(update(session).where(session.c.id == session_id).values(title=title, title_rank=rank))
    return bool(held.title != title)


def wait_title(tx: Connection, agent: str, leaf: str, title: SafeText) -> None:
    """Keep a title for the session that holds the turn `leaf`, until that turn is archived.

    Once a session of the agent was forgotten, only the turn could tell whose title it is: without it none is kept.
    """
    any_gone = tx.execute(select(forgotten.c.agent).where(forgotten.c.agent == agent).limit(1)).first()
    if any_gone and not tx.execute(select(turn.c.id).where(turn.c.agent == agent, _is_leaf(leaf)).limit(1)).first():
        return
    statement = upsert(pending_title).values(agent=agent, leaf=leaf, title=title)
    tx.execute(statement.on_conflict_do_update(index_elements=["agent", "leaf"], set_={"title": title}))


def settle_titles(tx: Connection, rank: int) -> list[int]:
    """Give the waiting titles whose turn is now known to their sessions; returns the sessions that changed."""
    same = and_(turn.c.agent == pending_title.c.agent, _is_leaf(pending_title.c.leaf))
    joined = select(pending_title, turn.c.session_id).join(turn, same)
    changed = []
    for row in tx.execute(joined).all():
        if offer_title(tx, row.session_id, row.title, rank):
            changed.append(row.session_id)
        tx.execute(delete(pending_title).where(pending_title.c.agent == row.agent, pending_title.c.leaf == row.leaf))
    return changed


def _is_leaf(leaf: Any) -> ColumnElement[bool]:
    """Whether a turn is the one that a title names: a short native id is stored with a digest behind a colon."""
    # ';' is the character after ':'.
    return or_(turn.c.key == leaf, and_(turn.c.key > leaf + ":", turn.c.key < leaf + ";"))


def forgotten_up_to(tx: Connection, agent: str, *external_ids: str) -> int | None:
    """UTC ms up to which the user had one of these sessions forgotten, or None. With a session go its subagents (`session/agent`)."""
    names = {start for name in external_ids for start in accumulate(name.split("/"), "{}/{}".format)}
    c = forgotten.c
    return tx.execute(select(func.max(c.up_to)).where(c.agent == agent, c.external_id.in_(names))).scalar()


def _forgotten(tx: Connection, session_id: int) -> int | None:
    named = tx.execute(select(session.c.agent, session.c.external_id).where(session.c.id == session_id)).first()
    return None if named is None else forgotten_up_to(tx, named.agent, named.external_id)


# --- turns ---


def put_turns(
    tx: Connection,
    agent: str,
    session_id: int,
    external_id: str,
    file_id: int,
    turns: Sequence[NewTurn],
    change: Change,
) -> None:
    """Store turns of one file. A turn that another session already holds is a copy: linked, not stored again.

    The agent's key alone does not make a copy: the text must be the same, or one the beginning of the other.
    """
    for start in range(0, len(turns), BATCH):
        # Of several versions of one key the last counts.
        latest = {new.key: new for new in turns[start : start + BATCH]}
        qualified = {key: f"{key}@{external_id}" for key in latest}
        held = _held(tx, agent, [*latest, *qualified.values()])
        fresh = []
        for new in latest.values():
            if (own := held.get(qualified[new.key])) is not None:
                _update(tx, own, replace(new, key=qualified[new.key]), session_id, file_id, change)
            elif (known := held.get(new.key)) is None:
                fresh.append(new)
            elif known.session_id == session_id:
                _update(tx, known, new, session_id, file_id, change)
            elif same_words(known.text, new.text):
                _link(tx, known, new, session_id, change)
            else:
                fresh.append(replace(new, key=qualified[new.key]))
        _insert(tx, agent, session_id, file_id, fresh)
        change.added += len(fresh)


def same_words(one: str, other: str) -> bool:
    """Equal, or one the beginning of the other: a copy made while the message was still being written."""
    return one == other or (bool(one and other) and (one.startswith(other) or other.startswith(one)))


def _held(tx: Connection, agent: str, keys: list[str]) -> dict[str, Row[Any]]:
    found: dict[str, Row[Any]] = {}
    for start in range(0, len(keys), BATCH):
        rows = tx.execute(select(turn).where(turn.c.agent == agent, turn.c.key.in_(keys[start : start + BATCH])))
        found |= {row.key: row for row in rows}
    return found


def _insert(tx: Connection, agent: str, session_id: int, file_id: int, turns: Sequence[NewTurn]) -> None:
    rows = [
        {
            "agent": agent,
            "session_id": session_id,
            "file_id": file_id,
            "key": new.key,
            "pos": new.pos,
            "ord": 0,
            "role": new.role.value,
            "kind": new.kind,
            "state": new.state.value,
            "text": new.text,
            "time": new.time,
        }
        for new in turns
    ]
    if rows:
        tx.execute(insert(turn), rows)
        _attach_evidence(tx, agent, [new.key for new in turns])


def _attach_evidence(tx: Connection, agent: str, keys: Sequence[str]) -> None:
    """Evidence that was imported before its transcript was archived finds its turns."""
    same = select(turn.c.id).where(turn.c.agent == agent, turn.c.key == evidence.c.turn_key).scalar_subquery()
    lone = (evidence.c.turn_id.is_(None), evidence.c.turn_key.in_(keys))
    tx.execute(update(evidence).where(*lone).values(turn_id=same))


def _update(tx: Connection, held: Row[Any], new: NewTurn, session_id: int, file_id: int, change: Change) -> None:
    text = held.text if held.text.startswith(new.text) and held.file_id != file_id else new.text
    values = {"text": text, "role": new.role.value, "kind": new.kind, "state": new.state.value}
    differs = any(getattr(held, name) != value for name, value in values.items())
    moved = (held.file_id, held.pos) != (file_id, new.pos)
    if differs or moved:
        tx.execute(update(turn).where(turn.c.id == held.id).values(**values, file_id=file_id, pos=new.pos))
    if differs:
        change.altered.add(held.id)
    change.moved |= moved


def _link(tx: Connection, held: Row[Any], new: NewTurn, session_id: int, change: Change) -> None:
    tx.execute(upsert(turn_seen).values(turn_id=held.id, session_id=session_id).on_conflict_do_nothing())
    if len(new.text) > len(held.text):
        tx.execute(update(turn).where(turn.c.id == held.id).values(text=new.text))


def extend_turn(
    tx: Connection,
    agent: str,
    session_id: int,
    external_id: str,
    key: str,
    more: SafeText,
    change: Change,
    *,
    own: bool,
) -> None:
    """Append a block to a stored turn of this session, once: a block it already ends with is not added again.

    A turn that it shares with the session that holds it grows too, but for `own`.
    """
    for name in (f"{key}@{external_id}", key):
        held = tx.execute(select(turn).where(turn.c.agent == agent, turn.c.key == name)).first()
        if held is not None and (held.session_id == session_id or (name == key and not own)):
            if not held.text.endswith(more):
                text = SafeText.joined("\n\n", (held.text, more)) if held.text else more
                tx.execute(update(turn).where(turn.c.id == held.id).values(text=text))
                change.altered.add(held.id)
            return


def retract_turn(tx: Connection, agent: str, session_id: int, external_id: str, key: str, change: Change) -> None:
    """Drop a turn that the agent's own records took back. Another session's stays, but is no copy any more."""
    names = (f"{key}@{external_id}", key)
    named = select(turn.c.id).where(turn.c.agent == agent, turn.c.key.in_(names))
    tx.execute(delete(turn_seen).where(turn_seen.c.session_id == session_id, turn_seen.c.turn_id.in_(named)))
    held = (
        tx.execute(
            select(turn.c.id).where(turn.c.agent == agent, turn.c.key.in_(names), turn.c.session_id == session_id)
        )
        .scalars()
        .all()
    )
    for turn_id in held:
        change.altered.add(turn_id)
    tx.execute(delete(turn).where(turn.c.id.in_(held)))


def put_outcomes(tx: Connection, session_id: int, rows: Iterable[dict[str, Any]]) -> None:
    up_to = _forgotten(tx, session_id)
    for row in rows:
        if up_to is not None and (row["time"] is None or row["time"] <= up_to):
            continue
        statement = upsert(outcome).values(session_id=session_id, **row)
        tx.execute(statement.on_conflict_do_update(index_elements=["session_id", "key"], set_=row))


def renumber(tx: Connection, session_id: int) -> int | None:
    """Number the session's turns from 1 in the order they were said; returns the first number whose turn changed, or None.

    Order is by file, the file with the earliest turn first, then by position in it. Times alone won't do:
    they are not monotone in the files.
    """
    c = turn.c
    ranked = (
        select(c.file_id, func.coalesce(func.min(c.time), 0).label("start"))
        .where(c.session_id == session_id)
        .group_by(c.file_id)
        .subquery()
    )
    rows = tx.execute(
        select(c.id, c.ord)
        .join(ranked, func.coalesce(ranked.c.file_id, -1) == func.coalesce(c.file_id, -1))
        .where(c.session_id == session_id)
        # Turns whose file was replaced keep the order they had.
        .order_by(ranked.c.start, func.coalesce(c.file_id, -1), case((c.file_id.is_(None), c.ord), else_=c.pos), c.id)
    ).all()
    moves = [{"b_id": row.id, "b_ord": number} for number, row in enumerate(rows, 1) if row.ord != number]
    if not moves:
        return None
    tx.execute(update(turn).where(c.id == bindparam("b_id")).values(ord=bindparam("b_ord")), moves)
    return int(moves[0]["b_ord"])


def first_ord(tx: Connection, turn_ids: Iterable[int]) -> int | None:
    """The lowest number among these turns, or None if none is left."""
    found: list[int] = []
    ids = list(turn_ids)
    for start in range(0, len(ids), BATCH):
        lowest = tx.execute(select(func.min(turn.c.ord)).where(turn.c.id.in_(ids[start : start + BATCH]))).scalar()
        found += [] if lowest is None else [int(lowest)]
    return min(found, default=None)


def turns_from(tx: Connection, session_id: int, from_ord: int = 0) -> Iterator[Turn]:
    """The session's own turns (copies it only shares are not among them), by number, read as they are asked for."""
    c = turn.c
    columns = (c.key, c.ord, c.role, c.kind, c.text, c.time, c.state)
    rows = tx.execute(select(*columns).where(c.session_id == session_id, c.ord >= from_ord).order_by(c.ord))
    for row in rows:
        yield Turn(row.key, row.ord, Role(row.role), row.kind, row.text, row.time, State(row.state))


def last_prompt_before(tx: Connection, session_id: int, number: int) -> int:
    """Number of the last live user turn before turn `number`, or `number` itself."""
    c = turn.c
    found = tx.execute(
        select(func.max(c.ord)).where(
            c.session_id == session_id, c.ord < number, c.role == Role.USER.value, c.state == State.LIVE.value
        )
    ).scalar()
    return int(found) if found is not None else number


# --- whole sessions ---


def conversation(tx: Connection, session_id: int) -> tuple[Conversation, frozenset[str]]:
    """The session as mining reads it, with the turns it shares with others, and the keys of the turns that are its own."""
    about = tx.execute(
        select(session, project.c.key.label("project_key"))
        .outerjoin(project, project.c.id == session.c.project_id)
        .where(session.c.id == session_id)
    ).one()
    c = turn.c
    seen = select(turn_seen.c.turn_id).where(turn_seen.c.session_id == session_id)
    rows = tx.execute(
        select(turn).where(or_(c.session_id == session_id, c.id.in_(seen)), c.state == State.LIVE.value)
    ).all()
    own = frozenset(row.key for row in rows if row.session_id == session_id)
    # Shared turns come from where the session began, so they stand before its own.
    ordered = sorted(rows, key=lambda row: (row.session_id == session_id, row.session_id, row.ord))
    turns = tuple(Turn(row.key, row.ord, Role(row.role), row.kind, row.text, row.time) for row in ordered)
    facts = tuple(
        Fact(row.after_turn, row.kind, bool(row.ok), row.label, row.time)
        for row in tx.execute(select(outcome).where(outcome.c.session_id == session_id).order_by(outcome.c.id))
    )
    title = about.title or SafeText("")
    return Conversation(about.agent, about.external_id, about.project_key or SafeText(""), title, turns, facts), own


def mark_distilled(tx: Connection, session_id: int, seen: int) -> None:
    """`seen` is the `changed_at` that mining looked at: what was archived meanwhile is still due."""
    tx.execute(update(session).where(session.c.id == session_id).values(distilled_at=seen))


def empty(tx: Connection, session_id: int) -> list[int]:
    """Drop the words of a session: title, turns, outcomes. Copies that another session shares move there. Returns its chunk ids.

    Its row stays, with agent, project, times and status; so do entries, whose quotes are dropped with the words.
    """
    chunks = list(tx.execute(select(chunk.c.id).where(chunk.c.session_id == session_id)).scalars())
    c = turn.c
    heir = select(func.min(turn_seen.c.session_id)).where(turn_seen.c.turn_id == c.id).scalar_subquery()
    shared = list(
        tx.execute(
            select(c.id).where(c.session_id == session_id, exists().where(turn_seen.c.turn_id == c.id))
        ).scalars()
    )
    for start in range(0, len(shared), BATCH):
        batch = shared[start : start + BATCH]
        tx.execute(update(turn).where(c.id.in_(batch)).values(session_id=heir, file_id=None))
        owned = exists().where(c.id == turn_seen.c.turn_id, c.session_id == turn_seen.c.session_id)
        tx.execute(delete(turn_seen).where(turn_seen.c.turn_id.in_(batch), owned))
    keys = select(c.key).where(c.session_id == session_id)
    tx.execute(update(evidence).where(evidence.c.turn_key.in_(keys)).values(quote=None))
    tx.execute(delete(turn).where(c.session_id == session_id))
    tx.execute(delete(turn_seen).where(turn_seen.c.session_id == session_id))
    tx.execute(delete(outcome).where(outcome.c.session_id == session_id))
    tx.execute(update(session).where(session.c.id == session_id).values(title=None, title_rank=0, git_branch=None))
    return chunks


def heirs(tx: Connection, session_id: int) -> list[int]:
    """Sessions that share turns of this one and would own them if it went."""
    rows = tx.execute(
        select(func.min(turn_seen.c.session_id))
        .join(turn, turn.c.id == turn_seen.c.turn_id)
        .where(turn.c.session_id == session_id)
        .group_by(turn_seen.c.turn_id)
    )
    return sorted({int(row[0]) for row in rows})


def mark_missing(tx: Connection, file_ids: Sequence[int], at: int) -> None:
    """These files are gone from where their agent kept them. Their sessions stay."""
    tx.execute(update(source_file).where(source_file.c.id.in_(file_ids)).values(missing_since=at))


def mine_again(tx: Connection) -> int:
    """Have every session distilled once more: what was held back by a verdict may be staged now. How many are."""
    mined = (session.c.status != Status.DELETED.value, session.c.is_subagent == 0)
    return int(tx.execute(update(session).where(*mined).values(distilled_at=None)).rowcount)

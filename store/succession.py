"""Sessions that were archived as another agent's: they go by their own agent's name from now on, with all that hangs on them."""

from __future__ import annotations

from sqlalchemy import Connection, and_, delete, exists, insert, select, update

from store import sessions
from store.records import SafeText
from store.tables import evidence, forgotten, session, source_file, turn, turn_seen


def take_over(
    tx: Connection, former: str, agent: str, external_id: SafeText, path: SafeText, stamp: tuple[int, int]
) -> list[int] | None:
    """Give a session of the agent `former` to `agent`: its files, its turns, and whether it was forgotten.

    None if `former` has none, or `agent` has one of that id already. Else the ids of the turns that the file at `path` gave,
    if it is as it was then (`stamp`: size and clock): reading it by the agent's own parser shows which of them were said.
    """
    _forgotten(tx, former, agent, external_id)
    held = sessions.find(tx, former, external_id)
    if held is None or sessions.find(tx, agent, external_id) is not None:
        return None
    _merge_copies(tx, held, agent)
    given = _given(tx, former, path, stamp)
    _files(tx, held, agent)
    tx.execute(update(turn).where(turn.c.session_id == held).values(agent=agent))
    tx.execute(update(session).where(session.c.id == held).values(agent=agent))
    return given


def _given(tx: Connection, former: str, path: SafeText, stamp: tuple[int, int]) -> list[int]:
    c = source_file.c
    same = and_(c.agent == former, c.path == path, c.size == stamp[0], c.mtime_ns == stamp[1])
    return list(tx.execute(select(turn.c.id).join(source_file, c.id == turn.c.file_id).where(same)).scalars())


def _forgotten(tx: Connection, former: str, agent: str, external_id: SafeText) -> None:
    c = forgotten.c
    other = forgotten.alias()
    taken = exists().where(other.c.agent == agent, other.c.external_id == c.external_id)
    named = and_(c.agent == former, c.external_id == external_id)
    tx.execute(update(forgotten).where(named, ~taken).values(agent=agent))


def _files(tx: Connection, held: int, agent: str) -> None:
    """Whatever was read of it is read again, by the other parser."""
    c = source_file.c
    other = source_file.alias()
    taken = exists().where(other.c.agent == agent, other.c.path == c.path)
    doubled = select(c.id).where(c.session_id == held, c.agent != agent, taken)
    tx.execute(update(turn).where(turn.c.file_id.in_(doubled)).values(file_id=None))
    tx.execute(delete(source_file).where(c.id.in_(doubled)))
    unread = {"agent": agent, "size": -1, "offset": 0, "parser_version": 0}
    tx.execute(update(source_file).where(c.session_id == held, c.agent != agent).values(**unread))


def _merge_copies(tx: Connection, held: int, agent: str) -> None:
    """Turns that another session of the agent holds already, as a copy made by a fork does, stay there and are shared."""
    theirs = turn.alias()
    same = select(turn.c.id, theirs.c.id.label("kept")).join(
        theirs, and_(theirs.c.key == turn.c.key, theirs.c.agent == agent)
    )
    for row in tx.execute(same.where(turn.c.session_id == held, turn.c.agent != agent)).all():
        tx.execute(update(evidence).where(evidence.c.turn_id == row.id).values(turn_id=row.kept))
        tx.execute(insert(turn_seen).prefix_with("OR IGNORE").values(turn_id=row.kept, session_id=held))
        tx.execute(delete(turn).where(turn.c.id == row.id))

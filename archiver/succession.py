"""What waits of a session that was archived as another agent's, put under its own agent's name."""

from __future__ import annotations

from staging.documents import Document, Queue


def move_waiting(queue: Queue, former: str, agent: str, session: str) -> None:
    """Nothing a person wrote into the document is lost; running it again changes nothing."""
    old_name = queue.name_for(former, session)
    old = queue.get(old_name)
    if not isinstance(old, Document):
        return

    def moved(held: Document | None) -> Document:
        return held.with_items(old.entries) if held is not None else old.model_copy(update={"agent": agent})

    if isinstance(queue.change(queue.name_for(agent, session), moved), Document):
        queue.change(old_name, lambda held: None if held == old else held)

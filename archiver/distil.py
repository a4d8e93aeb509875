"""Mining finished sessions into the review queue, and burying the deleted ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from archiver.home import Home
from archiver.ingest import FileReport, read_whole, rechunk
from archiver.transcript import Found, Source
from rules.mine import mine
from staging.intake import Intake, take_in
from store import chunks, sessions
from store.reader import DueSession
from store.records import Candidate, Conversation, SafeText, Status, now_ms
from store.tokens import morphemes


def distil(home: Home, rows: Iterable[DueSession]) -> Iterator[Intake]:
    """Mine each session, write its staging document, then mark it distilled: a crash between the two only repeats the work."""
    for row in rows:
        with home.database.transaction() as tx:
            conversation, own = sessions.conversation(tx, row.id)
        found = mine(conversation, home.rules, morphemes=morphemes)
        # What rests on shared turns alone is the other session's finding.
        mined = [candidate for candidate in found if any(quote.turn in own for quote in candidate.evidence)]
        yield stage(home, conversation, Status.RESET if row.status == Status.RESET else Status.ENDED, mined)
        with home.database.transaction() as tx:
            sessions.mark_distilled(tx, row.id, row.changed_at)


def bury(home: Home, source: Source, found: Found) -> tuple[FileReport, Intake]:
    """A session its user deleted: mine it, write its staging document, then drop its words, those archived while it was live too.

    Its row stays: agent, project, times and status say where an entry came from, and the file is not read again.
    """
    conversation, report, about = read_whole(source, found, home.redact)
    mined = mine(conversation, home.rules, morphemes=morphemes)
    intake = stage(home, conversation, Status.DELETED, mined)
    stat = found.path.stat()
    with home.database.transaction() as tx:
        session_id = sessions.ensure(tx, source.agent, conversation.session)
        heirs = sessions.heirs(tx, session_id)
        chunks.remove(tx, sessions.empty(tx, session_id))
        for heir in heirs:
            rechunk(tx, heir, sessions.Change(moved=True))
        sessions.refine(tx, session_id, status=Status.DELETED.value, changed_at=now_ms(), distilled_at=now_ms())
        if about is not None:
            sessions.widen(tx, session_id, about.first_time, about.last_time)
        values = {"segment": "deleted", "size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "parser_version": source.parser_version}
        sessions.save_file(tx, source.agent, home.redact(str(found.path)), values | {"session_id": session_id})
    home.database.checkpoint()
    return report, intake

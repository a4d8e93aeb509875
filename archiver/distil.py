"""Mining finished sessions into the review queue, and burying the deleted ones."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

from archiver import config, erase, transcript
from archiver.home import Home
from archiver.ingest import FileReport, project_of, read_whole, rechunk, safe_id
from rules import tags
from rules.mine import mine
from staging.dedup import Known
from staging.documents import SourceStatus
from staging.intake import Intake, Source, known_text, take_in
from staging.promote import support
from store import chunks, decisions, sessions
from store.reader import DueSession
from store.records import Candidate, Conversation, SafeText, Status, now_ms
from store.tokens import morphemes
from store.verdicts import lookup_in

ENDINGS: dict[str, SourceStatus] = {Status.RESET: "reset", Status.DELETED: "deleted"}
"""How a session came to its end, where that is more than ending."""


def distil(home: Home, rows: Iterable[DueSession]) -> Iterator[Intake]:
    """Mine each session, write its staging document, then mark it distilled: a crash between the two only repeats the work."""
    for row in rows:
        up_to = home.reader.forgotten_up_to(row.agent, row.external_id)
        with home.database.transaction() as tx:
            if sessions.find(tx, row.agent, row.external_id) != row.id:
                continue  # its user had it forgotten meanwhile
            conversation, own = sessions.conversation(tx, row.id)
        found = mine(conversation, home.rules, morphemes=morphemes)
        # What rests on shared turns alone is the other session's finding.
        mined = [candidate for candidate in found if any(quote.turn in own for quote in candidate.evidence)]
        source = _source(conversation, ENDINGS.get(row.status, "ended"))
        intake = _stage(home, source, mined, up_to)
        with home.database.transaction() as tx:
            if sessions.find(tx, row.agent, row.external_id) != row.id:
                continue
            support(tx, source, intake.supports, keep_deleted=home.settings.archive.keep_deleted)
            sessions.mark_distilled(tx, row.id, row.changed_at)
        yield intake


def _source(conversation: Conversation, status: SourceStatus) -> Source:
    return Source(conversation.agent, conversation.session, conversation.project, status, now_ms())


def _stage(home: Home, source: Source, mined: list[Candidate], up_to: int | None) -> Intake:
    """Into the session's staging document, compared with what this project and every project know already.

    `up_to` is up to when the session was forgotten as it was read: what was forgotten since is not written.
    """
    known: list[Known] = []
    if mined:
        project_id = home.reader.project_of_paths([source.project])
        known = [
            Known(entry.uid, known_text(entry.summary, entry.detail)) for entry in home.reader.known_entries(project_id)
        ]

    def still() -> bool:
        return home.reader.forgotten_up_to(source.agent, source.session) == up_to

    return take_in(home.queue, source, mined, verdicts=lookup_in(home.database_path), entries=known, still=still)


def compile_lexicon(home: Home) -> None:
    """Write the tag aliases as JSON, for the session-start path that may not read YAML; only when they changed."""
    path = config.lexicon_path(home.root)
    data = json.dumps(tags.compile_lexicon(tags.lexicon(home.rules)), ensure_ascii=False, sort_keys=True).encode()
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_suffix(f".{os.getpid()}.tmp")  # two runs may be at it
        draft.write_bytes(data)
        draft.replace(path)


def bury(
    home: Home, source: transcript.Source, found: transcript.Found, again: Iterable[transcript.Found] = ()
) -> tuple[FileReport, Intake]:
    """A session its user deleted: mine it, write its staging document, then drop its words, those archived while it was live too.

    `erase.finish` then takes them out of the files. `again` are transcripts of what was said under its id since: they have
    to be read anew, from their start.

    Its row stays: agent, project, times and status say where an entry came from, and the file is not read again.
    """
    conversation, report, about = read_whole(source, found, home.redact)
    size, clock = found.size_and_clock()
    values = {
        "segment": "deleted",
        "size": size,
        "mtime_ns": clock,
        "offset": size,
        "parser_version": source.parser_version,
    }
    path = safe_id(found.name, home.redact)
    if about is None:  # no session of a person's: nothing to mine, nothing to drop
        with home.database.transaction() as tx:
            sessions.save_file(tx, source.agent, path, values)
        return report, Intake()
    up_to = home.reader.forgotten_up_to(source.agent, conversation.session)
    conversation = _said_since(conversation, up_to)
    if not conversation.turns:
        conversation = _as_archived(home, conversation)
    if up_to is not None and not conversation.turns:  # nothing was said since it was forgotten
        with home.database.transaction() as tx:
            sessions.save_file(tx, source.agent, path, values)
        return report, Intake()
    mined = mine(conversation, home.rules, morphemes=morphemes)
    intake = _stage(home, _source(conversation, "deleted"), mined, up_to)
    with home.database.transaction() as tx:
        if home.reader.forgotten_up_to(source.agent, conversation.session) != up_to:  # while it was mined
            return report, Intake()
        session_id = sessions.ensure(tx, source.agent, conversation.session)
        if about.cwd:
            sessions.refine(tx, session_id, project_id=project_of(tx, about.cwd, home.redact))
        heirs = sessions.heirs(tx, session_id)
        if held := sessions.empty(tx, session_id):
            chunks.remove(tx, held)
            erase.note(tx)
        decisions.withhold_quotes(tx, source.agent, conversation.session)
        for heir in heirs:
            rechunk(tx, heir, sessions.Change(moved=True))
        sessions.refine(tx, session_id, status=Status.DELETED.value, changed_at=now_ms(), distilled_at=now_ms())
        sessions.widen(tx, session_id, about.first_time, about.last_time)
        sessions.save_file(tx, source.agent, path, values | {"session_id": session_id})
        for item in again:
            unread = {"segment": item.segment, "size": -1, "mtime_ns": 0, "offset": 0}
            sessions.save_file(tx, source.agent, safe_id(item.name, home.redact), unread)
    return report, intake


def _said_since(conversation: Conversation, up_to: int | None) -> Conversation:
    """What is left of a session whose user had it forgotten up to then; its title may be made of what was."""
    if up_to is None:
        return conversation
    turns = tuple(turn for turn in conversation.turns if turn.time is not None and turn.time > up_to)
    facts = tuple(fact for fact in conversation.facts if fact.time is not None and fact.time > up_to)
    return replace(conversation, title=SafeText(""), turns=turns, facts=facts)


def _as_archived(home: Home, unread: Conversation) -> Conversation:
    """The session as it was archived while it was live: its file is empty or damaged, what was learned is still here."""
    with home.database.transaction() as tx:
        held = sessions.find(tx, unread.agent, unread.session)
        return unread if held is None else sessions.conversation(tx, held)[0]

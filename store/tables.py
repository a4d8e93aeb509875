"""The schema, declared once. `migrations` brings a database here; a test compares the two."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

from store.records import SafeText

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Safe(TypeDecorator[SafeText]):
    """A text column that refuses a string which did not pass through redaction."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if value is None or isinstance(value, SafeText):
            return value
        raise TypeError(f"unredacted text for the database: {type(value).__name__}")

    def process_result_value(self, value: Any, dialect: Dialect) -> SafeText | None:
        return None if value is None else SafeText(value)


def _id() -> Column[int]:
    return Column("id", Integer, primary_key=True)


# BigInteger times are UTC milliseconds.

project = Table(
    "project",
    metadata,
    _id(),
    Column("key", Safe, nullable=False, unique=True),
    Column("name", Safe, nullable=False),
)

project_path = Table(
    "project_path",
    metadata,
    _id(),
    Column("project_id", ForeignKey("project.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("path", Safe, nullable=False, unique=True),
)

session = Table(
    "session",
    metadata,
    _id(),
    Column("agent", Text, nullable=False),
    Column("external_id", Safe, nullable=False),
    Column("project_id", ForeignKey("project.id"), index=True),
    Column("cwd", Safe),
    Column("git_branch", Safe),
    Column("title", Safe),
    Column("title_rank", Integer, nullable=False, server_default="0"),
    Column("started_at", BigInteger, index=True),
    Column("ended_at", BigInteger, index=True),
    Column("status", Text, nullable=False, server_default="active"),
    Column("parent_id", ForeignKey("session.id", ondelete="SET NULL"), index=True),
    Column("is_subagent", Integer, nullable=False, server_default="0"),
    Column("changed_at", BigInteger, nullable=False, server_default="0"),
    Column("distilled_at", BigInteger),
    Column("redaction_version", Text, nullable=False, server_default=""),
    UniqueConstraint("agent", "external_id"),
    CheckConstraint("status IN ('active', 'ended', 'reset', 'deleted')", name="status"),
)

source_file = Table(
    "source_file",
    metadata,
    _id(),
    Column("agent", Text, nullable=False),
    Column("path", Safe, nullable=False),
    Column("segment", Text, nullable=False, server_default="live"),
    Column("session_id", ForeignKey("session.id", ondelete="SET NULL"), index=True),
    Column("size", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("head_hash", Text, nullable=False, server_default=""),
    Column("tail_hash", Text, nullable=False, server_default=""),
    Column("offset", BigInteger, nullable=False, server_default="0"),
    Column("parser_state", Text, nullable=False, server_default="{}"),
    Column("parser_version", Integer, nullable=False, server_default="0"),
    Column("missing_since", BigInteger),
    UniqueConstraint("agent", "path"),
    CheckConstraint("segment IN ('live', 'reset', 'deleted', 'archived')", name="segment"),
)

turn = Table(
    "turn",
    metadata,
    _id(),
    Column("agent", Text, nullable=False),
    Column("session_id", ForeignKey("session.id", ondelete="CASCADE"), nullable=False),
    Column("file_id", ForeignKey("source_file.id", ondelete="SET NULL"), index=True),
    Column("key", Text, nullable=False),
    Column("pos", BigInteger, nullable=False),
    Column("ord", Integer, nullable=False),
    Column("role", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="live"),
    Column("text", Safe, nullable=False),
    Column("time", BigInteger),
    UniqueConstraint("agent", "key"),
    Index("ix_turn_session_id_ord", "session_id", "ord"),
    CheckConstraint("role IN ('user', 'assistant', 'tool', 'subagent')", name="role"),
    CheckConstraint("state IN ('live', 'abandoned')", name="state"),
)

turn_seen = Table(
    "turn_seen",
    metadata,
    Column("turn_id", ForeignKey("turn.id", ondelete="CASCADE"), primary_key=True),
    Column("session_id", ForeignKey("session.id", ondelete="CASCADE"), primary_key=True, index=True),
)

outcome = Table(
    "outcome",
    metadata,
    _id(),
    Column("session_id", ForeignKey("session.id", ondelete="CASCADE"), nullable=False),
    Column("key", Text, nullable=False),
    Column("after_turn", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("ok", Integer, nullable=False),
    Column("label", Safe, nullable=False),
    Column("time", BigInteger),
    UniqueConstraint("session_id", "key"),
    CheckConstraint("kind IN ('test', 'build', 'commit', 'files')", name="kind"),
)

# Ids of chunks and entries stand in the derived indexes, so they are never used again: AUTOINCREMENT.
chunk = Table(
    "chunk",
    metadata,
    _id(),
    Column("session_id", ForeignKey("session.id", ondelete="CASCADE"), nullable=False),
    Column("first_ord", Integer, nullable=False),
    Column("last_ord", Integer, nullable=False),
    Column("part", Integer, nullable=False, server_default="0"),
    Column("role", Text, nullable=False, server_default="speech"),
    Column("heading", Safe, nullable=False),
    Column("text", Safe, nullable=False),
    Column("hash", Text, nullable=False, index=True),
    Column("time", BigInteger),
    Index("ix_chunk_session_id_first_ord", "session_id", "first_ord"),
    CheckConstraint("role IN ('speech', 'tool', 'subagent', 'abandoned')", name="role"),
    sqlite_autoincrement=True,
)

vector = Table(
    "vector",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("chunk", LargeBinary, nullable=False),
    Column("sentences", LargeBinary, nullable=False),
    Column("scales", LargeBinary, nullable=False),
    Column("n", Integer, nullable=False),
)

entry = Table(
    "entry",
    metadata,
    _id(),
    Column("uid", Text, nullable=False, unique=True),
    Column("type", Text, nullable=False),
    Column("summary", Safe, nullable=False),
    Column("detail", Safe, nullable=False),
    Column("hash", Text, nullable=False, index=True),
    Column("project_id", ForeignKey("project.id"), index=True),
    Column("scope", Text, nullable=False, server_default="project"),
    Column("agent", Text, nullable=False, server_default=""),
    Column("rule", Text, nullable=False, server_default=""),
    Column("confidence", Float, nullable=False, server_default="1"),
    Column("decided_by", Text, nullable=False),
    Column("status", Text, nullable=False, server_default="active"),
    Column("superseded_by", ForeignKey("entry.id", ondelete="SET NULL"), index=True),
    Column("session_id", ForeignKey("session.id", ondelete="SET NULL"), index=True),
    Column("created_at", BigInteger, nullable=False),
    Column("reviewed_at", BigInteger, nullable=False),
    Column("used_at", BigInteger),
    Column("uses", Integer, nullable=False, server_default="0"),
    Column("source_forgotten", Integer, nullable=False, server_default="0"),
    CheckConstraint("type IN ('solution', 'decision', 'pattern')", name="type"),
    CheckConstraint("scope IN ('project', 'global')", name="scope"),
    CheckConstraint("status IN ('active', 'superseded', 'retired')", name="status"),
    sqlite_autoincrement=True,
)

entry_anchor = Table(
    "entry_anchor",
    metadata,
    Column("entry_id", ForeignKey("entry.id", ondelete="CASCADE"), primary_key=True),
    Column("anchor", Text, primary_key=True, index=True),
)

tag = Table("tag", metadata, _id(), Column("name", Safe, nullable=False, unique=True))

entry_tag = Table(
    "entry_tag",
    metadata,
    Column("entry_id", ForeignKey("entry.id", ondelete="CASCADE"), primary_key=True),
    Column("tag_id", ForeignKey("tag.id", ondelete="CASCADE"), primary_key=True, index=True),
    Column("place", Integer, nullable=False, server_default="0"),
)

evidence = Table(
    "evidence",
    metadata,
    _id(),
    Column("entry_id", ForeignKey("entry.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("turn_id", ForeignKey("turn.id", ondelete="SET NULL"), index=True),
    Column("turn_key", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("quote", Safe),
    Column("time", BigInteger),
    UniqueConstraint("entry_id", "turn_key", "quote"),
)

verdict = Table(
    "verdict",
    metadata,
    Column("anchor", Text, primary_key=True),
    Column("outcome", Text, nullable=False),
    Column("entry_id", ForeignKey("entry.id", ondelete="SET NULL"), index=True),
    Column("at", BigInteger, nullable=False),
    CheckConstraint("outcome IN ('accepted', 'rejected', 'merged')", name="outcome"),
)

# What `wwt undo` needs to put the last decisions back; only the newest few are kept.
decision_log = Table(
    "decision_log",
    metadata,
    _id(),
    Column("at", BigInteger, nullable=False),
    Column("action", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("candidate", Safe, nullable=False),
    Column("before", Safe, nullable=False),
    Column("entry_uid", Text),
    sqlite_autoincrement=True,
)

# Sessions whose user had them forgotten. `due`: words of theirs may still stand in some file.
forgotten = Table(
    "forgotten",
    metadata,
    Column("agent", Text, primary_key=True),
    Column("external_id", Text, primary_key=True),
    Column("up_to", BigInteger, nullable=False),
    Column("due", Integer, nullable=False, server_default="0"),
)

# A title that names a turn of another session (Claude Code `summary` lines), waiting until that turn is archived.
pending_title = Table(
    "pending_title",
    metadata,
    Column("agent", Text, primary_key=True),
    Column("leaf", Text, primary_key=True),
    Column("title", Safe, nullable=False),
)

outbox = Table(
    "outbox",
    metadata,
    _id(),
    Column("kind", Text, nullable=False),
    Column("ref", Integer, nullable=False),
    Column("op", Text, nullable=False),
    Column("applied_words", Integer, nullable=False, server_default="0"),
    Column("applied_vectors", Integer, nullable=False, server_default="0"),
    Index("ix_outbox_ref", "kind", "ref"),
    CheckConstraint("kind IN ('chunk', 'entry')", name="kind"),
    CheckConstraint("op IN ('put', 'delete')", name="op"),
    sqlite_autoincrement=True,
)

meta = Table("meta", metadata, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))


def text_columns(table: Table) -> list[str]:
    return [column.name for column in table.columns if isinstance(column.type, Text | Safe)]

"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "decision_log",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("candidate", sa.Text(), nullable=False),
        sa.Column("before", sa.Text(), nullable=False),
        sa.Column("entry_uid", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decision_log")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "forgotten",
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("up_to", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("agent", "external_id", name=op.f("pk_forgotten")),
    )
    op.create_table(
        "meta",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_meta")),
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("ref", sa.Integer(), nullable=False),
        sa.Column("op", sa.Text(), nullable=False),
        sa.Column("applied_words", sa.Integer(), server_default="0", nullable=False),
        sa.Column("applied_vectors", sa.Integer(), server_default="0", nullable=False),
        sa.CheckConstraint("kind IN ('chunk', 'entry')", name=op.f("ck_outbox_kind")),
        sa.CheckConstraint("op IN ('put', 'delete')", name=op.f("ck_outbox_op")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_outbox_ref", "outbox", ["kind", "ref"], unique=False)
    op.create_table(
        "pending_title",
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("leaf", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("agent", "leaf", name=op.f("pk_pending_title")),
    )
    op.create_table(
        "project",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint("key", name=op.f("uq_project_key")),
    )
    op.create_table(
        "tag",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tag")),
        sa.UniqueConstraint("name", name=op.f("uq_tag_name")),
    )
    op.create_table(
        "vector",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("chunk", sa.LargeBinary(), nullable=False),
        sa.Column("sentences", sa.LargeBinary(), nullable=False),
        sa.Column("scales", sa.LargeBinary(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("hash", "model", name=op.f("pk_vector")),
    )
    op.create_table(
        "project_path",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_project_path_project_id_project"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project_path")),
        sa.UniqueConstraint("path", name=op.f("uq_project_path_path")),
    )
    op.create_index(op.f("ix_project_path_project_id"), "project_path", ["project_id"], unique=False)
    op.create_table(
        "session",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=True),
        sa.Column("cwd", sa.Text(), nullable=True),
        sa.Column("git_branch", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("title_rank", sa.Integer(), server_default="0", nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.Text(), server_default="active", nullable=False),
        sa.Column("parent_id", sa.Integer(), nullable=True),
        sa.Column("is_subagent", sa.Integer(), server_default="0", nullable=False),
        sa.Column("changed_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("distilled_at", sa.BigInteger(), nullable=True),
        sa.Column("redaction_version", sa.Text(), server_default="", nullable=False),
        sa.CheckConstraint("status IN ('active', 'ended', 'reset', 'deleted')", name=op.f("ck_session_status")),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["session.id"], name=op.f("fk_session_parent_id_session"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_session_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_session")),
        sa.UniqueConstraint("agent", "external_id", name=op.f("uq_session_agent_external_id")),
    )
    op.create_index(op.f("ix_session_ended_at"), "session", ["ended_at"], unique=False)
    op.create_index(op.f("ix_session_parent_id"), "session", ["parent_id"], unique=False)
    op.create_index(op.f("ix_session_project_id"), "session", ["project_id"], unique=False)
    op.create_index(op.f("ix_session_started_at"), "session", ["started_at"], unique=False)
    op.create_table(
        "chunk",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.Integer(), nullable=False),
        sa.Column("first_ord", sa.Integer(), nullable=False),
        sa.Column("last_ord", sa.Integer(), nullable=False),
        sa.Column("part", sa.Integer(), server_default="0", nullable=False),
        sa.Column("role", sa.Text(), server_default="speech", nullable=False),
        sa.Column("heading", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("role IN ('speech', 'tool', 'subagent', 'abandoned')", name=op.f("ck_chunk_role")),
        sa.ForeignKeyConstraint(
            ["session_id"], ["session.id"], name=op.f("fk_chunk_session_id_session"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chunk")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_chunk_hash"), "chunk", ["hash"], unique=False)
    op.create_index("ix_chunk_session_id_first_ord", "chunk", ["session_id", "first_ord"], unique=False)
    op.create_table(
        "entry",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uid", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=True),
        sa.Column("scope", sa.Text(), server_default="project", nullable=False),
        sa.Column("agent", sa.Text(), server_default="", nullable=False),
        sa.Column("rule", sa.Text(), server_default="", nullable=False),
        sa.Column("confidence", sa.Float(), server_default="1", nullable=False),
        sa.Column("decided_by", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default="active", nullable=False),
        sa.Column("superseded_by", sa.Integer(), nullable=True),
        sa.Column("session_id", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("reviewed_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.Column("uses", sa.Integer(), server_default="0", nullable=False),
        sa.CheckConstraint("scope IN ('project', 'global')", name=op.f("ck_entry_scope")),
        sa.CheckConstraint("status IN ('active', 'superseded', 'retired')", name=op.f("ck_entry_status")),
        sa.CheckConstraint("type IN ('solution', 'decision', 'pattern')", name=op.f("ck_entry_type")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_entry_project_id_project")),
        sa.ForeignKeyConstraint(
            ["session_id"], ["session.id"], name=op.f("fk_entry_session_id_session"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["superseded_by"], ["entry.id"], name=op.f("fk_entry_superseded_by_entry"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_entry")),
        sa.UniqueConstraint("uid", name=op.f("uq_entry_uid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_entry_hash"), "entry", ["hash"], unique=False)
    op.create_index(op.f("ix_entry_project_id"), "entry", ["project_id"], unique=False)
    op.create_index(op.f("ix_entry_session_id"), "entry", ["session_id"], unique=False)
    op.create_index(op.f("ix_entry_superseded_by"), "entry", ["superseded_by"], unique=False)
    op.create_table(
        "outcome",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("after_turn", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("ok", sa.Integer(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("kind IN ('test', 'build', 'commit', 'files')", name=op.f("ck_outcome_kind")),
        sa.ForeignKeyConstraint(
            ["session_id"], ["session.id"], name=op.f("fk_outcome_session_id_session"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outcome")),
        sa.UniqueConstraint("session_id", "key", name=op.f("uq_outcome_session_id_key")),
    )
    op.create_table(
        "source_file",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("segment", sa.Text(), server_default="live", nullable=False),
        sa.Column("session_id", sa.Integer(), nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("head_hash", sa.Text(), server_default="", nullable=False),
        sa.Column("tail_hash", sa.Text(), server_default="", nullable=False),
        sa.Column("offset", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("parser_state", sa.Text(), server_default="{}", nullable=False),
        sa.Column("parser_version", sa.Integer(), server_default="0", nullable=False),
        sa.Column("missing_since", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("segment IN ('live', 'reset', 'deleted', 'archived')", name=op.f("ck_source_file_segment")),
        sa.ForeignKeyConstraint(
            ["session_id"], ["session.id"], name=op.f("fk_source_file_session_id_session"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_source_file")),
        sa.UniqueConstraint("agent", "path", name=op.f("uq_source_file_agent_path")),
    )
    op.create_index(op.f("ix_source_file_session_id"), "source_file", ["session_id"], unique=False)
    op.create_table(
        "entry_anchor",
        sa.Column("entry_id", sa.Integer(), nullable=False),
        sa.Column("anchor", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["entry_id"], ["entry.id"], name=op.f("fk_entry_anchor_entry_id_entry"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("entry_id", "anchor", name=op.f("pk_entry_anchor")),
    )
    op.create_index(op.f("ix_entry_anchor_anchor"), "entry_anchor", ["anchor"], unique=False)
    op.create_table(
        "entry_tag",
        sa.Column("entry_id", sa.Integer(), nullable=False),
        sa.Column("tag_id", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["entry_id"], ["entry.id"], name=op.f("fk_entry_tag_entry_id_entry"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["tag_id"], ["tag.id"], name=op.f("fk_entry_tag_tag_id_tag"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("entry_id", "tag_id", name=op.f("pk_entry_tag")),
    )
    op.create_index(op.f("ix_entry_tag_tag_id"), "entry_tag", ["tag_id"], unique=False)
    op.create_table(
        "turn",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Integer(), nullable=False),
        sa.Column("file_id", sa.Integer(), nullable=True),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("pos", sa.BigInteger(), nullable=False),
        sa.Column("ord", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="live", nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("role IN ('user', 'assistant', 'tool', 'subagent')", name=op.f("ck_turn_role")),
        sa.CheckConstraint("state IN ('live', 'abandoned')", name=op.f("ck_turn_state")),
        sa.ForeignKeyConstraint(
            ["file_id"], ["source_file.id"], name=op.f("fk_turn_file_id_source_file"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["session_id"], ["session.id"], name=op.f("fk_turn_session_id_session"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_turn")),
        sa.UniqueConstraint("agent", "key", name=op.f("uq_turn_agent_key")),
    )
    op.create_index(op.f("ix_turn_file_id"), "turn", ["file_id"], unique=False)
    op.create_index("ix_turn_session_id_ord", "turn", ["session_id", "ord"], unique=False)
    op.create_table(
        "verdict",
        sa.Column("anchor", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("entry_id", sa.Integer(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("outcome IN ('accepted', 'rejected', 'merged')", name=op.f("ck_verdict_outcome")),
        sa.ForeignKeyConstraint(
            ["entry_id"], ["entry.id"], name=op.f("fk_verdict_entry_id_entry"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("anchor", name=op.f("pk_verdict")),
    )
    op.create_index(op.f("ix_verdict_entry_id"), "verdict", ["entry_id"], unique=False)
    op.create_table(
        "evidence",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("entry_id", sa.Integer(), nullable=False),
        sa.Column("turn_id", sa.Integer(), nullable=True),
        sa.Column("turn_key", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("quote", sa.Text(), nullable=True),
        sa.Column("time", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["entry_id"], ["entry.id"], name=op.f("fk_evidence_entry_id_entry"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["turn_id"], ["turn.id"], name=op.f("fk_evidence_turn_id_turn"), ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evidence")),
        sa.UniqueConstraint("entry_id", "turn_key", "quote", name=op.f("uq_evidence_entry_id_turn_key_quote")),
    )
    op.create_index(op.f("ix_evidence_entry_id"), "evidence", ["entry_id"], unique=False)
    op.create_index(op.f("ix_evidence_turn_id"), "evidence", ["turn_id"], unique=False)
    op.create_table(
        "turn_seen",
        sa.Column("turn_id", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["session.id"], name=op.f("fk_turn_seen_session_id_session"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["turn_id"], ["turn.id"], name=op.f("fk_turn_seen_turn_id_turn"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("turn_id", "session_id", name=op.f("pk_turn_seen")),
    )
    op.create_index(op.f("ix_turn_seen_session_id"), "turn_seen", ["session_id"], unique=False)

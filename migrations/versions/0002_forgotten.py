"""Entries whose source was forgotten say so; a tombstone knows whether its session's words are out of every file."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("entry", sa.Column("source_forgotten", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("forgotten", sa.Column("due", sa.Integer(), nullable=False, server_default="0"))

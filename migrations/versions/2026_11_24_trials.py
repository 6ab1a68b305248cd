"""Trials: what a page size gained on a node, measured."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0014_trials"
down_revision = "0013_sealed_documents"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "trials",
        sa.Column("node_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ordered_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("stored_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("content_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("summary", JSONB(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name=op.f("fk_trials_node_id_nodes"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("node_id", "id", name=op.f("pk_trials")),
    )
    op.create_index(op.f("ix_trials_id"), "trials", ["id"])
    op.create_index(op.f("ix_trials_node_id_ordered_at_id"), "trials", ["node_id", "ordered_at", "id"])


def downgrade() -> None:
    """Take back."""
    op.drop_table("trials")

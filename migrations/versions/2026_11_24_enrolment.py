"""Limits of enrolment tokens, the claim of agent tokens, and machines that ask to enrol again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008_enrolment"
down_revision = "0007_processes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.add_column(
        "tokens",
        sa.Column(
            "enrolments", sa.BigInteger(), nullable=False, server_default=sa.text("0")
        ),
    )
    op.add_column("tokens", sa.Column("max_enrolments", sa.BigInteger(), nullable=True))
    op.add_column("tokens", sa.Column("name_pattern", sa.Text(), nullable=True))
    op.add_column("tokens", sa.Column("claim_sha256", sa.LargeBinary(), nullable=True))
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "enrolment_requests",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("node_machine_id", sa.Text(), nullable=False),
        sa.Column("machine_id", sa.Text(), nullable=False),
        sa.Column("claim_sha256", sa.LargeBinary(), nullable=True),
        sa.Column("node_name", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("token_name", sa.Text(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("first_asked_at", moment, nullable=False),
        sa.Column("last_asked_at", moment, nullable=False),
        sa.Column("decision", sa.Text(), nullable=True),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column("decided_at", moment, nullable=True),
        sa.CheckConstraint(
            "decision IN ('approved', 'refused')",
            name=op.f("ck_enrolment_requests_decision"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_enrolment_requests")),
        sa.UniqueConstraint(
            "node_machine_id",
            "claim_sha256",
            name=op.f("uq_enrolment_requests_node_machine_id_claim_sha256"),
            postgresql_nulls_not_distinct=True,
        ),
    )
    op.create_index(
        op.f("ix_enrolment_requests_first_asked_at_id"),
        "enrolment_requests",
        ["first_asked_at", "id"],
    )


def downgrade() -> None:
    """Take back."""
    op.drop_table("enrolment_requests")
    for column in ("claim_sha256", "name_pattern", "max_enrolments", "enrolments"):
        op.drop_column("tokens", column)

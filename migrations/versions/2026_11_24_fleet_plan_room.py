"""Whose fleet plans are, and how large: they are bounded in number and in bytes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018_fleet_plan_room"
down_revision = "0017_report_references"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply. Fleet plans of before count as nobody's, and as small as a table without its plans."""
    op.add_column("fleet_plans", sa.Column("author_id", sa.Uuid(), nullable=True))
    op.add_column(
        "fleet_plans", sa.Column("stored_bytes", sa.BigInteger(), server_default=sa.text("0"), nullable=False)
    )


def downgrade() -> None:
    """Take back."""
    op.drop_column("fleet_plans", "stored_bytes")
    op.drop_column("fleet_plans", "author_id")

"""Since when the service hears agents without a gap, so that its own silence is nobody else's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035_listening"
down_revision = "0034_gone_scenarios"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "listening",
        sa.Column("is_one", sa.Boolean(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("is_one", name=op.f("pk_listening")),
    )


def downgrade() -> None:
    """Undo."""
    op.drop_table("listening")

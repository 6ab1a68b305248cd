"""What tells the files of a fleet plan's groups apart."""

from __future__ import annotations

from alembic import op

revision = "0026_files_key"
down_revision = "0025_lists_by_time"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.execute("ALTER TABLE fleet_plan_groups ADD COLUMN files_key text")


def downgrade() -> None:
    """Take back."""
    op.execute("ALTER TABLE fleet_plan_groups DROP COLUMN files_key")

"""The verdict on a plan is kept with it."""

from __future__ import annotations

from alembic import op

revision = "0011_plan_verdict"
down_revision = "0010_session_logins"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.execute("ALTER TABLE plans ADD COLUMN verdict json")


def downgrade() -> None:
    """Take back."""
    op.execute("ALTER TABLE plans DROP COLUMN verdict")

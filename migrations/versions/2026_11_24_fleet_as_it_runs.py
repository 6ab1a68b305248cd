"""A fleet plan may take each node as it runs, and a group says what changes on each of its nodes."""

from __future__ import annotations

from alembic import op

revision = "0012_fleet_as_it_runs"
down_revision = "0011_plan_verdict"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.execute("ALTER TABLE fleet_plans ALTER COLUMN scenario DROP NOT NULL")
    op.execute("ALTER TABLE fleet_plan_groups ADD COLUMN figures jsonb")


def downgrade() -> None:
    """Take back. Plans of nodes as they run had no place before."""
    op.execute("ALTER TABLE fleet_plan_groups DROP COLUMN figures")
    op.execute("DELETE FROM fleet_plans WHERE scenario IS NULL")
    op.execute("ALTER TABLE fleet_plans ALTER COLUMN scenario SET NOT NULL")

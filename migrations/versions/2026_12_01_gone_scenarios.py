"""A scenario is gone at once; what was made of it goes in small parts."""

from __future__ import annotations

from alembic import op

revision = "0034_gone_scenarios"
down_revision = "0033_own_tried"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.execute("ALTER TABLE scenarios ADD COLUMN is_gone boolean NOT NULL DEFAULT false")
    op.execute("CREATE INDEX ix_scenarios_id ON scenarios (id) WHERE is_gone")


def downgrade() -> None:
    """Undo: those that are gone go with their drafts in one step. Who changes plans waits meanwhile."""
    gone = "SELECT id FROM scenarios WHERE is_gone"
    op.execute(f"DELETE FROM plans WHERE state = 'draft' AND scenario_id IN ({gone})")  # noqa: S608 - a constant
    op.execute("DELETE FROM scenarios WHERE is_gone")
    op.execute("ALTER TABLE scenarios DROP COLUMN is_gone")

"""Lists of all runs and of all trials are read by an index, newest first."""

from __future__ import annotations

from alembic import op

revision = "0025_lists_by_time"
down_revision = "0024_trials_and_states"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply. Who stores a run or a trial waits meanwhile: a second for a million."""
    op.execute("CREATE INDEX ix_runs_ordered_at_id ON runs (ordered_at, id)")
    op.execute("CREATE INDEX ix_trials_ordered_at_id ON trials (ordered_at, id)")


def downgrade() -> None:
    """Undo; nothing is lost."""
    op.execute("DROP INDEX ix_trials_ordered_at_id, ix_runs_ordered_at_id")

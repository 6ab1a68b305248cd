"""Which trials have predictions is told without opening them; plans by state and by author are found by an index."""

from __future__ import annotations

from alembic import op

revision = "0024_trials_and_states"
down_revision = "0023_newest_reference"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply. No row is written anew: whoever stores a report waits meanwhile."""
    has = "coalesce(summary -> 'predicted', '{}') <> '{}'"
    op.execute(f"CREATE INDEX ix_trials_predicted ON trials (node_id, ordered_at, id) WHERE {has}")
    op.execute("CREATE INDEX ix_plans_state_created_at_id ON plans (state, created_at, id)")
    op.execute("CREATE INDEX ix_plans_author_id ON plans (author_id) WHERE state IN ('draft', 'proposed')")


def downgrade() -> None:
    """Undo; nothing is lost."""
    op.execute("DROP INDEX ix_plans_author_id, ix_plans_state_created_at_id, ix_trials_predicted")

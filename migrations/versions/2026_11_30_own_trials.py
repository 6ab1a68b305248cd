"""Of a node's predictions those of its own agent are read first."""

from __future__ import annotations

from alembic import op

revision = "0032_own_trials"
down_revision = "0031_audit_searches"
branch_labels = None
depends_on = None

_INDEX = "INDEX ix_trials_predicted"
_OF = "WHERE coalesce(summary -> 'predicted', '{}') <> '{}'"


def upgrade() -> None:
    """Apply. Who stores a trial waits meanwhile."""
    op.execute(f"DROP {_INDEX}")
    op.execute(f"CREATE {_INDEX} ON trials (node_id, (is_own IS FALSE), ordered_at DESC, id DESC) {_OF}")


def downgrade() -> None:
    """Undo; nothing is lost."""
    op.execute(f"DROP {_INDEX}")
    op.execute(f"CREATE {_INDEX} ON trials (node_id, ordered_at, id) {_OF}")

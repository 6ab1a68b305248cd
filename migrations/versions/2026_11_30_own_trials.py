"""Of a node's predictions those of its own agent are read first."""

from __future__ import annotations

from alembic import op

revision = "0032_own_trials"
down_revision = "0031_audit_searches"
branch_labels = None
depends_on = None

_OF = "WHERE coalesce(summary -> 'predicted', '{}') <> '{}'"


def upgrade() -> None:
    """Apply. Who stores a trial waits meanwhile."""
    columns = "node_id, (is_own IS FALSE), ordered_at DESC, id DESC"
    op.execute(f"CREATE INDEX ix_trials_own_predicted ON trials ({columns}) {_OF}")


def downgrade() -> None:
    """Undo; nothing is lost."""
    op.execute("DROP INDEX ix_trials_own_predicted")

"""What events told of a node lately is kept beside its state."""

from __future__ import annotations

from alembic import op

revision = "0022_told"
down_revision = "0021_token_lines"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply. Null: nothing is remembered."""
    op.execute("ALTER TABLE node_states ADD COLUMN told jsonb")


def downgrade() -> None:
    """Undo: what is remembered is lost, and a finding that comes and goes is told once more."""
    op.execute("ALTER TABLE node_states DROP COLUMN told")

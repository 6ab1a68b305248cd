"""The newest state of a node as what has changed since a base, and columns that seldom change beside its row."""

from __future__ import annotations

from alembic import op

revision = "0016_newest_state"
down_revision = "0015_sealed_samples"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply. Rows stay as they are: a node's next report writes its base."""
    op.execute("ALTER TABLE node_states ADD COLUMN base_kept bytea, ADD COLUMN newest_kept bytea")
    # Compressed already.
    for column in ("base_kept", "newest_kept", "processes_kept"):
        op.execute(f"ALTER TABLE node_states ALTER COLUMN {column} SET STORAGE EXTERNAL")


def downgrade() -> None:
    """Back to the columns, which say what each node said when its base was written, until its next report."""
    op.execute("ALTER TABLE node_states DROP COLUMN base_kept, DROP COLUMN newest_kept")
    op.execute("ALTER TABLE node_states ALTER COLUMN processes_kept SET STORAGE EXTENDED")

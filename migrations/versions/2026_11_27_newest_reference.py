"""The newest reference of a node is found without looking at its others."""

from __future__ import annotations

from alembic import op

revision = "0023_newest_reference"
down_revision = "0022_told"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.execute("CREATE INDEX ix_report_references_newest ON report_references (node_id, made_at DESC, report_id)")


def downgrade() -> None:
    """Take back."""
    op.execute("DROP INDEX ix_report_references_newest")

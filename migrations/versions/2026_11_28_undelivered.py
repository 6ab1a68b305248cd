"""What a receiver has not got is found without what it has."""

from __future__ import annotations

from alembic import op

revision = "0027_undelivered"
down_revision = "0026_files_key"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.execute("CREATE INDEX ix_webhook_deliveries_webhook_id ON webhook_deliveries (webhook_id) WHERE NOT delivered")


def downgrade() -> None:
    """Undo: a list of receivers counts all deliveries again."""
    op.execute("DROP INDEX ix_webhook_deliveries_webhook_id")

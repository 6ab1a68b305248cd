"""A report is written once: its document is the newest state of its node, and says its sample in full."""

from __future__ import annotations

from alembic import op

revision = "0020_newest_report"
down_revision = "0019_partitions_by_function"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply. Rows stay as they are: a node's next report is the first that is its newest state."""
    op.execute(
        """
        ALTER TABLE samples
            ADD COLUMN anon_shmem_bytes bigint, ALTER COLUMN memory DROP NOT NULL, ALTER COLUMN pools DROP NOT NULL
        """
    )
    op.execute("ALTER TABLE node_states ADD COLUMN newest_document bytea")
    # Compressed already.
    op.execute("ALTER TABLE node_states ALTER COLUMN newest_document SET STORAGE EXTERNAL")


def downgrade() -> None:
    """Refuse while a sample is in its report's document alone. States are those of each node's last reference."""
    op.execute(
        """
        DO $$ BEGIN
            IF EXISTS (SELECT FROM samples WHERE memory IS NULL) THEN
                RAISE EXCEPTION 'samples holds what the release before does not read; '
                    'restore the backup, or wait until all is sealed';
            END IF;
        END $$
        """
    )
    op.execute("ALTER TABLE node_states DROP COLUMN newest_document")
    op.execute(
        """
        ALTER TABLE samples
            DROP COLUMN anon_shmem_bytes, ALTER COLUMN memory SET NOT NULL, ALTER COLUMN pools SET NOT NULL
        """
    )

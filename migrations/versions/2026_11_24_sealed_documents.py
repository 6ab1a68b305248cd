"""Documents of an hour in one row."""

from __future__ import annotations

from alembic import op

revision = "0013_sealed_documents"
down_revision = "0012_fleet_as_it_runs"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.execute(
        """
        CREATE TABLE sealed_documents (
            node_id uuid NOT NULL,
            start_at timestamptz NOT NULL,
            first_report_id uuid NOT NULL,
            end_at timestamptz NOT NULL,
            report_ids uuid[] NOT NULL,
            sizes_bytes integer[] NOT NULL,
            documents bytea NOT NULL,
            CONSTRAINT pk_sealed_documents PRIMARY KEY (node_id, start_at, first_report_id),
            CONSTRAINT ck_sealed_documents_sizes_bytes CHECK (cardinality(report_ids) = cardinality(sizes_bytes))
        ) PARTITION BY RANGE (start_at)
        """
    )
    # A block is compressed already.
    op.execute("ALTER TABLE sealed_documents ALTER COLUMN documents SET STORAGE EXTERNAL")
    op.execute("CREATE TABLE sealed_documents_default PARTITION OF sealed_documents DEFAULT")


def downgrade() -> None:
    """Refuse while anything is sealed: the release before does not read it. Its retention removes it."""
    op.execute(
        """
        DO $$ BEGIN
            IF EXISTS (SELECT FROM sealed_documents) THEN
                RAISE EXCEPTION 'sealed_documents holds documents that the release before does not read; '
                    'restore the backup, or delete them: DELETE FROM sealed_documents';
            END IF;
        END $$
        """
    )
    op.execute("DROP TABLE sealed_documents")

"""Samples of six hours in one row, and reports that are known by their sealed documents alone."""

from __future__ import annotations

from alembic import op

revision = "0015_sealed_samples"
down_revision = "0014_trials"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.execute(
        """
        CREATE TABLE sealed_samples (
            node_id uuid NOT NULL,
            start_at timestamptz NOT NULL,
            first_report_id uuid NOT NULL,
            end_at timestamptz NOT NULL,
            report_ids uuid[] NOT NULL,
            numbers bytea NOT NULL,
            details bytea NOT NULL,
            CONSTRAINT pk_sealed_samples PRIMARY KEY (node_id, start_at, first_report_id)
        ) PARTITION BY RANGE (start_at)
        """
    )
    # Blocks are compressed already, and ids are random.
    for table, column in (
        ("sealed_samples", "report_ids"),
        ("sealed_samples", "numbers"),
        ("sealed_samples", "details"),
        ("sealed_documents", "report_ids"),
    ):
        op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL")
    op.execute("CREATE TABLE sealed_samples_default PARTITION OF sealed_samples DEFAULT")
    op.execute(
        """
        ALTER TABLE sealed_documents
            ADD COLUMN taken_from timestamptz,
            ADD COLUMN taken_to timestamptz,
            ADD COLUMN report_count integer NOT NULL DEFAULT 0
        """
    )
    op.execute("ALTER TABLE nodes ADD COLUMN sealed_until timestamptz")


def downgrade() -> None:
    """Refuse while anything is sealed that the release before does not read. Its retention removes it."""
    op.execute(
        """
        DO $$ BEGIN
            IF EXISTS (SELECT FROM sealed_samples) OR EXISTS (SELECT FROM sealed_documents WHERE taken_to IS NOT NULL)
            THEN
                RAISE EXCEPTION 'sealed_samples or sealed_documents hold what the release before does not read; '
                    'restore the backup, or delete it: DELETE FROM sealed_samples; DELETE FROM sealed_documents';
            END IF;
        END $$
        """
    )
    op.execute("ALTER TABLE nodes DROP COLUMN sealed_until")
    op.execute(
        "ALTER TABLE sealed_documents DROP COLUMN report_count, DROP COLUMN taken_to, DROP COLUMN taken_from"
    )
    op.execute("DROP TABLE sealed_samples")

"""Whole reports, since which others of their node say what has changed."""

from __future__ import annotations

from alembic import op

revision = "0017_report_references"
down_revision = "0016_newest_state"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply. Documents that are there stay as they are."""
    op.execute(
        """
        CREATE TABLE report_references (
            node_id uuid NOT NULL,
            report_id uuid NOT NULL,
            made_at timestamptz NOT NULL,
            document bytea NOT NULL,
            CONSTRAINT pk_report_references PRIMARY KEY (node_id, report_id),
            CONSTRAINT fk_report_references_node_id_nodes FOREIGN KEY (node_id) REFERENCES nodes (id) ON DELETE CASCADE
        )
        """
    )
    # Compressed already.
    op.execute("ALTER TABLE report_references ALTER COLUMN document SET STORAGE EXTERNAL")


def downgrade() -> None:
    """Refuse while a report is read with the help of another one: the release before does not."""
    op.execute(
        r"""
        DO $$ BEGIN
            IF EXISTS (SELECT FROM report_documents WHERE substring(document FOR 1) = '\x01') THEN
                RAISE EXCEPTION 'report_documents holds what the release before does not read; '
                    'restore the backup, or wait until all is sealed';
            END IF;
        END $$
        """
    )
    op.execute("DROP TABLE report_references")

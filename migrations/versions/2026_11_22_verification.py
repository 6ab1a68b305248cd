"""Verification: what the newest report of a node says of its plan in force."""

from __future__ import annotations

from alembic import op

revision = "0004_verification"
down_revision = "0003_access"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.execute("ALTER TABLE plans_in_force ADD COLUMN outcome text, ADD COLUMN verified_at timestamptz")
    op.execute("ALTER TABLE plans_in_force ADD COLUMN checks jsonb NOT NULL DEFAULT '[]'::jsonb")
    op.execute(
        "ALTER TABLE plans_in_force ADD CONSTRAINT ck_plans_in_force_outcome"
        " CHECK (outcome IN ('in_force', 'not_in_force', 'undecided'))"
    )


def downgrade() -> None:
    """Take back."""
    op.execute("ALTER TABLE plans_in_force DROP CONSTRAINT ck_plans_in_force_outcome")
    op.execute("ALTER TABLE plans_in_force DROP COLUMN outcome, DROP COLUMN verified_at, DROP COLUMN checks")

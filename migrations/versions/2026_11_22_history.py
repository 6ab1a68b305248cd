"""The planner's history of a node in the roll-ups: AnonPages + Shmem, so that no plan reads a week of samples.

Adding a column without a default changes no row. Rows of before hold null, and `hugeplan reparse` fills them.
"""

from __future__ import annotations

from alembic import op

revision = "0005_history"
down_revision = "0004_verification"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    for table in ("sample_hours", "sample_days"):
        op.execute(f"ALTER TABLE {table} ADD COLUMN anon_shmem_bytes_max bigint")


def downgrade() -> None:
    """Take back."""
    for table in ("sample_hours", "sample_days"):
        op.execute(f"ALTER TABLE {table} DROP COLUMN anon_shmem_bytes_max")

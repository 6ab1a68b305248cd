"""Agents' tokens in force are counted at each enrolment: without reading those that have ended."""

from __future__ import annotations

from alembic import op

revision = "0029_tokens_in_force"
down_revision = "0028_names"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply. Not by last_used_at, which changes each minute: such a change would write to all indexes of tokens."""
    op.execute(
        "CREATE INDEX ix_tokens_in_force ON tokens (created_at)"
        " WHERE role = 'agent' AND expires_at IS NULL AND revoked_at IS NULL"
    )


def downgrade() -> None:
    """Undo."""
    op.execute("DROP INDEX ix_tokens_in_force")

"""When a session's person last showed a token, and until when a link's session may last."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010_session_logins"
down_revision = "0009_one_plan"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    moment = sa.DateTime(timezone=True)
    op.add_column(
        "browser_sessions", sa.Column("logged_in_at", moment, nullable=True)
    )
    op.add_column("login_links", sa.Column("logged_in_at", moment, nullable=True))
    op.add_column("login_links", sa.Column("sessions_end_at", moment, nullable=True))


def downgrade() -> None:
    """Undo."""
    op.drop_column("login_links", "sessions_end_at")
    op.drop_column("login_links", "logged_in_at")
    op.drop_column("browser_sessions", "logged_in_at")

"""Each condition of a search in the audit log has an index in the list's order: the log grows for ever."""

from __future__ import annotations

from alembic import op

revision = "0031_audit_searches"
down_revision = "0030_endings"
branch_labels = None
depends_on = None

_COLUMNS = ("subject_id", "actor_name", "action")


def upgrade() -> None:
    """Apply. Who changes something waits meanwhile: some seconds for a million changes."""
    for column in _COLUMNS:
        op.execute(f"CREATE INDEX ix_audit_events_{column}_at_id ON audit_events ({column}, at, id)")
    op.execute("DROP INDEX ix_audit_events_subject_kind_subject_id")


def downgrade() -> None:
    """Undo; nothing is lost."""
    op.execute("CREATE INDEX ix_audit_events_subject_kind_subject_id ON audit_events (subject_kind, subject_id)")
    op.execute("DROP INDEX " + ", ".join(f"ix_audit_events_{column}_at_id" for column in _COLUMNS))

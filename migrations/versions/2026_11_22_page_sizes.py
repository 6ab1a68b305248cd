"""Findings name a pool by its page size as the kernel does: "2M pool", where they said "2 MiB pool".

A stored finding keeps the time since when it holds: under a new subject it would end and begin again.
"""

from __future__ import annotations

from alembic import op

revision = "0006_page_sizes"
down_revision = "0005_history"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.execute(
        r"UPDATE node_findings SET subject = regexp_replace(subject, '^(\d+) ([KMG])iB pool', '\1\2 pool')"
        r" WHERE subject ~ '^\d+ [KMG]iB pool'"
    )


def downgrade() -> None:
    """Take back."""
    op.execute(
        r"UPDATE node_findings SET subject = regexp_replace(subject, '^(\d+)([KMG]) pool', '\1 \2iB pool')"
        r" WHERE subject ~ '^\d+[KMG] pool'"
    )

"""Processes of a node's newest sample as packed JSON: nothing looks into them, and building jsonb of them took a third
of what a report cost PostgreSQL.

The former column stays for servers of the version before, which run beside this one while it is rolled out.
"""

from __future__ import annotations

from alembic import op

revision = "0007_processes"
down_revision = "0006_page_sizes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.execute("ALTER TABLE node_states ADD COLUMN processes_kept bytea")
    op.execute("ALTER TABLE node_states ALTER COLUMN processes SET DEFAULT '[]'::jsonb")
    # It is compressed already.
    op.execute("ALTER TABLE node_states ALTER COLUMN processes_kept SET STORAGE EXTERNAL")
    # Most of it is packed facts: trying to compress them took a sixth of what a report with a run cost PostgreSQL.
    op.execute("ALTER TABLE node_states ALTER COLUMN measured SET STORAGE EXTERNAL")
    # Room for the next version of a row beside it: without, each report left an entry in the index until a vacuum.
    op.execute("ALTER TABLE node_states SET (fillfactor = 50)")


def downgrade() -> None:
    """Take back. Processes come again with each node's next report."""
    op.execute("ALTER TABLE node_states RESET (fillfactor)")
    op.execute("ALTER TABLE node_states ALTER COLUMN measured SET STORAGE EXTENDED")
    op.execute("ALTER TABLE node_states ALTER COLUMN processes DROP DEFAULT")
    op.execute("ALTER TABLE node_states DROP COLUMN processes_kept")

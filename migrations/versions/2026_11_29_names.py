"""A node's name is one machine's: of nodes that had one name, the first that is heard of keeps it."""

from __future__ import annotations

from alembic import op

revision = "0028_names"
down_revision = "0027_undelivered"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply. In the words of hugeplan.fleet.ingest.names, which settles whose a name is from now on."""
    op.execute("CREATE INDEX ix_nodes_host ON nodes (split_part(lower(name), '.', 1))")
    op.execute(
        """
        UPDATE nodes n
        SET name = left(name, 200) || ' (machine ' || left(regexp_replace(machine_id, '^.*~', ''), 8) || ')'
        WHERE EXISTS (
            SELECT FROM nodes o
            WHERE o.id <> n.id AND split_part(lower(o.name), '.', 1) = split_part(lower(n.name), '.', 1)
            AND (
                lower(o.name) = lower(n.name)
                OR (strpos(o.name, '.') = 0 OR strpos(n.name, '.') = 0) AND split_part(n.name, '.', 1) !~ '^[0-9]+$'
            )
            AND (o.last_report_at <= now() - interval '1 day', o.first_report_at, o.machine_id)
                < (n.last_report_at <= now() - interval '1 day', n.first_report_at, n.machine_id)
        )
        """
    )


def downgrade() -> None:
    """Undo: the next report of a machine says its name."""
    op.execute("DROP INDEX ix_nodes_host")

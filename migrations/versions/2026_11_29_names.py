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
    # One pass: whoever reads or stores anything of a node waits meanwhile, and all names of a fleet may begin alike.
    op.execute(
        """
        UPDATE nodes n
        SET name = left(name, 200) || ' (machine ' || left(regexp_replace(machine_id, '^.*~', ''), 8) || ')'
        FROM (
            SELECT id, first, is_bare,
                row_number() OVER (PARTITION BY whole ORDER BY silent, since, machine) AS of_name,
                row_number() OVER of_host AS of_host, count(*) FILTER (WHERE is_bare) OVER of_host AS bare
            FROM (
                SELECT id, lower(name) AS whole, split_part(lower(name), '.', 1) AS first,
                    strpos(name, '.') = 0 AS is_bare, machine_id AS machine,
                    last_report_at <= now() - interval '1 day' AS silent, first_report_at AS since
                FROM nodes
            ) named
            WINDOW of_host AS (PARTITION BY first ORDER BY silent, since, machine)
        ) t
        WHERE n.id = t.id AND (
            t.of_name > 1 OR t.first !~ '^[0-9]+$' AND CASE WHEN t.is_bare THEN t.of_host > 1 ELSE t.bare > 0 END
        )
        """
    )


def downgrade() -> None:
    """Undo: the next report of a machine says its name."""
    op.execute("DROP INDEX ix_nodes_host")

"""A node's name is one machine's: of nodes that had one name, the first that is heard of keeps it."""

from __future__ import annotations

from alembic import op

revision = "0028_names"
down_revision = "0027_undelivered"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply. In the words of hugeplan.fleet.ingest.names, which settles whose a name is from now on."""
    op.execute(
        "UPDATE nodes SET name = left(name, 200) || ' (machine ' || left(regexp_replace(machine_id, '^.*~', ''), 8)"
        " || ')' FROM (SELECT id, row_number() OVER (PARTITION BY name ORDER BY"
        " last_report_at > now() - interval '1 day' DESC, first_report_at, machine_id) AS place FROM nodes) AS o"
        " WHERE o.id = nodes.id AND o.place > 1"
    )


def downgrade() -> None:
    """Nothing to undo: the next report of a machine says its name."""

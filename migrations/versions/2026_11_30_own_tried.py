"""Of a machine type's nodes those that their own agents tried are read first."""

from __future__ import annotations

from alembic import op

revision = "0033_own_tried"
down_revision = "0032_own_trials"
branch_labels = None
depends_on = None

_OF_NODE = "FROM trials WHERE node_id = {} AND coalesce(summary -> 'predicted', '{{}}') <> '{{}}'"
# The first by its index: of its agent, if it has such a one.
_OWN = f"""(
    SELECT CASE WHEN is_own IS NOT FALSE THEN ordered_at END {_OF_NODE}
    ORDER BY (is_own IS FALSE), ordered_at DESC, id DESC LIMIT 1
)"""
_NOTE = """
CREATE OR REPLACE FUNCTION note_trial() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    tried uuid := CASE WHEN TG_OP = 'DELETE' THEN OLD.node_id ELSE NEW.node_id END;
    newest timestamptz := (SELECT max(ordered_at) {of_node});
    {more}
BEGIN
    UPDATE nodes SET {columns} WHERE id = tried AND ({differ});
    RETURN NULL;
END $$
"""
_BEFORE = {"columns": "tried_at = newest", "differ": "tried_at IS DISTINCT FROM newest"}


def upgrade() -> None:
    """Apply. Trials whose sender is not known count as their agents'."""
    op.execute("ALTER TABLE nodes ADD COLUMN own_tried_at timestamptz")
    changes = {
        "more": f"own timestamptz := {_OWN.format('tried')};",
        "columns": f"{_BEFORE['columns']}, own_tried_at = own",
        "differ": f"{_BEFORE['differ']} OR own_tried_at IS DISTINCT FROM own",
    }
    op.execute(_NOTE.format(of_node=_OF_NODE.format("tried"), **changes))
    op.execute(f"UPDATE nodes SET own_tried_at = {_OWN.format('nodes.id')} WHERE tried_at IS NOT NULL")  # noqa: S608
    columns = "(machine_type, own_tried_at) WHERE own_tried_at IS NOT NULL"
    op.execute(f"CREATE INDEX ix_nodes_machine_type_own_tried_at ON nodes {columns}")


def downgrade() -> None:
    """Undo; nothing is lost."""
    op.execute(_NOTE.format(of_node=_OF_NODE.format("tried"), more="", **_BEFORE))
    op.execute("ALTER TABLE nodes DROP COLUMN own_tried_at")

"""A scenario is gone at once; what was made of it goes in small parts. What summaries add up is bounded per node, and
deliveries to webhooks have turns.

``listening`` says since when agents are heard without a gap: the service's own silence is nobody else's.
"""

from __future__ import annotations

from alembic import op

revision = "0034_gone_scenarios"
down_revision = "0033_own_tried"
branch_labels = None
depends_on = None


def _index(columns: str, condition: str) -> None:
    name = "_".join(("ix_webhook_deliveries", *columns.split(", ")))
    op.execute(f"CREATE INDEX {name} ON webhook_deliveries ({columns}) WHERE {condition}")


def upgrade() -> None:
    """Apply."""
    op.execute("ALTER TABLE scenarios ADD COLUMN is_gone boolean NOT NULL DEFAULT false")
    op.execute("CREATE INDEX ix_scenarios_id ON scenarios (id) WHERE is_gone")
    # Of a code and a state one row, and of a run 20 page sizes beside ties: no machine has more.
    op.execute(
        "DELETE FROM node_findings WHERE ctid NOT IN (SELECT DISTINCT ON (node_id, code, state) ctid"
        " FROM node_findings ORDER BY node_id, code, state, since)"
    )
    op.execute(
        "DELETE FROM run_wins w USING (SELECT node_id, run_id FROM run_wins GROUP BY node_id, run_id"
        " HAVING count(*) > 21) many WHERE w.node_id = many.node_id AND w.run_id = many.run_id"
    )
    op.execute(
        "CREATE TABLE listening (is_one boolean NOT NULL, since timestamptz NOT NULL, until timestamptz NOT NULL,"
        " CONSTRAINT pk_listening PRIMARY KEY (is_one))"
    )
    op.execute("ALTER TABLE webhook_deliveries ADD COLUMN turn bigint NOT NULL DEFAULT 0")
    op.execute("DROP INDEX ix_webhook_deliveries_next_attempt_at, ix_webhook_deliveries_webhook_id")
    _index("webhook_id, turn, event_id", "finished_at IS NULL")
    _index("webhook_id, next_attempt_at", "finished_at IS NULL")
    _index("webhook_id, attempts", "NOT delivered")


def downgrade() -> None:
    """Undo: those that are gone go with their drafts in one step. Who changes plans waits meanwhile."""
    gone = "SELECT id FROM scenarios WHERE is_gone"
    op.execute(f"DELETE FROM plans WHERE state = 'draft' AND scenario_id IN ({gone})")  # noqa: S608 - a constant
    op.execute("DELETE FROM scenarios WHERE is_gone")
    op.execute("ALTER TABLE scenarios DROP COLUMN is_gone")
    op.execute("DROP TABLE listening")
    op.execute("ALTER TABLE webhook_deliveries DROP COLUMN turn")
    op.execute("DROP INDEX ix_webhook_deliveries_webhook_id_next_attempt_at, ix_webhook_deliveries_webhook_id_attempts")
    _index("next_attempt_at", "finished_at IS NULL")
    _index("webhook_id", "NOT delivered")

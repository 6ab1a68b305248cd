"""An approval that has ended stays ended; a trial's sender, and a node's newest prediction; names are found whole."""

from __future__ import annotations

from alembic import op

revision = "0030_endings"
down_revision = "0029_tokens_in_force"
branch_labels = None
depends_on = None

_FOLLOW = """
CREATE OR REPLACE FUNCTION follow_plan_in_force() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    later uuid;
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.plan_id IS NOT DISTINCT FROM OLD.plan_id THEN
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' AND NOT EXISTS (SELECT FROM plans_in_force f WHERE f.plan_id = OLD.plan_id) THEN
        -- Ended, or taken back: the plan of before has its approval again and not its state yet.
        IF TG_OP = 'DELETE' OR EXISTS (
            SELECT FROM plans WHERE id = NEW.plan_id AND state = 'superseded' AND superseded_by = OLD.plan_id
                AND approved_at IS NOT NULL AND approval_ended_at IS NULL
        ) THEN
            SELECT id INTO later FROM plans WHERE node_id = OLD.node_id AND state = 'approved' LIMIT 1;
            UPDATE plans SET version = version + 1, state_at = now(), replaces = NULL,
                state = CASE WHEN approved_at IS NULL THEN 'draft'
                             WHEN approval_ended_at IS NULL AND later IS NULL THEN 'approved' ELSE 'superseded' END,
                superseded_by = CASE WHEN approved_at IS NULL THEN NULL
                                     WHEN approval_ended_at IS NULL THEN later ELSE superseded_by END,
                approval_ended_at = CASE WHEN approved_at IS NULL OR later IS NULL THEN approval_ended_at
                                         ELSE coalesce(approval_ended_at, now()) END
            WHERE id = OLD.plan_id AND state = 'in_force';
        ELSE
            UPDATE plans SET version = version + 1, state_at = now(), superseded_by = NEW.plan_id, state = 'superseded',
                approval_ended_at = CASE WHEN approved_at IS NOT NULL THEN coalesce(approval_ended_at, now()) END
            WHERE id = OLD.plan_id AND state = 'in_force';
        END IF;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        UPDATE plans SET version = version + 1, state = 'in_force', state_at = now(), stale = NULL,
            superseded_by = CASE WHEN approval_ended_at IS NOT NULL THEN superseded_by END,
            replaces = CASE WHEN TG_OP = 'UPDATE' THEN OLD.plan_id END
        WHERE id = NEW.plan_id;
    END IF;
    RETURN NULL;
END $$
"""
# Whether what took a plan's place ended its approval is not known, so it cannot give it back: it ended a moment before.
_SUPERSEDED = """
UPDATE plans SET approval_ended_at = state_at - interval '1 microsecond'
WHERE state = 'superseded' AND approved_at IS NOT NULL
"""
# Where a later approval stands, the earlier one had ended: a label, or an end of what was in force, brought it back.
_ENDED = """
WITH next AS (
    SELECT id, lead(id) OVER of_node AS by, lead(approved_at) OVER of_node AS at
    FROM plans WHERE approved_at IS NOT NULL AND node_id IS NOT NULL
    WINDOW of_node AS (PARTITION BY node_id ORDER BY approved_at, id)
)
UPDATE plans p SET version = version + 1, superseded_by = next.by, approval_ended_at = next.at,
    state = CASE p.state WHEN 'approved' THEN 'superseded' ELSE p.state END,
    state_at = CASE p.state WHEN 'approved' THEN now() ELSE p.state_at END
FROM next WHERE next.id = p.id AND next.at IS NOT NULL AND (
    p.state = 'approved' OR p.state = 'in_force' AND EXISTS (
        SELECT FROM plans_in_force f WHERE f.plan_id = p.id AND f.source = 'label' AND f.since > next.at
    )
)
"""
_PREDICTED = "coalesce(summary -> 'predicted', '{}') <> '{}'"
# By the database, so that whoever stores or deletes a trial keeps it.
_TRIED = f"""
CREATE FUNCTION note_trial() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    tried uuid := CASE WHEN TG_OP = 'DELETE' THEN OLD.node_id ELSE NEW.node_id END;
    newest timestamptz := (SELECT max(ordered_at) FROM trials WHERE node_id = tried AND {_PREDICTED});
BEGIN
    UPDATE nodes SET tried_at = newest WHERE id = tried AND tried_at IS DISTINCT FROM newest;
    RETURN NULL;
END $$;
CREATE TRIGGER nodes_follow_trials AFTER INSERT OR DELETE OR UPDATE OF ordered_at, summary ON trials
    FOR EACH ROW EXECUTE FUNCTION note_trial();
UPDATE nodes SET tried_at = t.newest
FROM (SELECT node_id, max(ordered_at) AS newest FROM trials WHERE {_PREDICTED} GROUP BY node_id) t
WHERE nodes.id = t.node_id;
CREATE INDEX ix_nodes_machine_type_tried_at ON nodes (machine_type, tried_at) WHERE tried_at IS NOT NULL;
"""  # noqa: S608 - constants
_HOST = "CREATE INDEX ix_nodes_host ON nodes (split_part(lower(name), '.', 1))"


def upgrade() -> None:
    """Apply. Who sent the trials of before is not known."""
    op.execute("ALTER TABLE plans ADD COLUMN approval_ended_at timestamptz")
    op.execute(_SUPERSEDED)
    op.execute(_ENDED)
    op.execute(_FOLLOW)
    op.execute("ALTER TABLE trials ADD COLUMN is_own boolean")
    op.execute("ALTER TABLE nodes ADD COLUMN tried_at timestamptz")
    op.execute(_TRIED)
    op.execute("CREATE INDEX ix_nodes_lower_name ON nodes (lower(name))")
    op.execute(f"DROP INDEX ix_nodes_host; {_HOST} WHERE strpos(name, ' ') = 0")


_FOLLOW_BEFORE = """
CREATE OR REPLACE FUNCTION follow_plan_in_force() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.plan_id IS NOT DISTINCT FROM OLD.plan_id THEN
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' AND NOT EXISTS (SELECT FROM plans_in_force f WHERE f.plan_id = OLD.plan_id) THEN
        UPDATE plans SET version = version + 1, state_at = now(),
            superseded_by = CASE WHEN TG_OP = 'UPDATE' THEN NEW.plan_id END,
            state = CASE WHEN TG_OP = 'UPDATE' THEN 'superseded'
                         WHEN approved_at IS NULL THEN 'draft' ELSE 'approved' END
        WHERE id = OLD.plan_id AND state = 'in_force';
    END IF;
    IF TG_OP <> 'DELETE' THEN
        UPDATE plans SET version = version + 1, state = 'in_force', state_at = now(), superseded_by = NULL,
            stale = NULL, replaces = CASE WHEN TG_OP = 'UPDATE' THEN OLD.plan_id END
        WHERE id = NEW.plan_id;
    END IF;
    RETURN NULL;
END $$
"""


def downgrade() -> None:
    """Undo. When approvals ended is lost; the plans stay superseded."""
    op.execute(f"DROP INDEX ix_nodes_lower_name, ix_nodes_host; {_HOST}")
    op.execute("DROP TRIGGER nodes_follow_trials ON trials; DROP FUNCTION note_trial()")
    op.execute("ALTER TABLE nodes DROP COLUMN tried_at")
    op.execute("ALTER TABLE trials DROP COLUMN is_own")
    op.execute(_FOLLOW_BEFORE)
    op.execute("ALTER TABLE plans DROP COLUMN approval_ended_at")

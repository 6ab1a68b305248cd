"""A plan is one object: its digest and its sample, the states from draft to superseded, who decided, and the role
``approver``.

Plans of before keep all that they have: they are drafts, or in force where they are; their digest is not known. A plan
outlives its scenario, because somebody may have signed it.
"""

from __future__ import annotations

from alembic import op

revision = "0009_one_plan"
down_revision = "0008_enrolment"
branch_labels = None
depends_on = None

_ROLES = "ALTER TABLE tokens DROP CONSTRAINT ck_tokens_role, ADD CONSTRAINT ck_tokens_role CHECK (role IN ({}))"
_SCENARIO = (
    "ALTER TABLE plans DROP CONSTRAINT fk_plans_scenario_id_scenarios,"
    " ADD CONSTRAINT fk_plans_scenario_id_scenarios FOREIGN KEY (scenario_id) REFERENCES scenarios (id) ON DELETE {}"
)

# The state follows the one table that says what is in force, whoever writes it: people, verify, labels, deletions.
_FOLLOW = """
CREATE FUNCTION follow_plan_in_force() RETURNS trigger LANGUAGE plpgsql AS $$
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
END $$;
CREATE TRIGGER plans_follow_plans_in_force AFTER INSERT OR DELETE OR UPDATE OF plan_id ON plans_in_force
    FOR EACH ROW EXECUTE FUNCTION follow_plan_in_force();
"""


def upgrade() -> None:
    """Apply."""
    op.execute(_ROLES.format("'agent', 'enrolment', 'viewer', 'planner', 'approver', 'admin'"))
    op.execute("""
    ALTER TABLE plans
        ALTER COLUMN scenario_id DROP NOT NULL,
        ALTER COLUMN scenario_version DROP NOT NULL,
        ADD COLUMN node_name text,
        ADD COLUMN digest text,
        ADD COLUMN author_id uuid,
        ADD COLUMN sampled_at timestamptz,
        ADD COLUMN run_id uuid,
        ADD COLUMN run_at timestamptz,
        ADD COLUMN fleet_plan_id uuid,
        ADD COLUMN version bigint NOT NULL DEFAULT 1,
        ADD COLUMN state text NOT NULL DEFAULT 'draft',
        ADD COLUMN state_at timestamptz,
        ADD COLUMN proposed_by text,
        ADD COLUMN proposed_by_id uuid,
        ADD COLUMN proposed_at timestamptz,
        ADD COLUMN approved_by text,
        ADD COLUMN approved_by_id uuid,
        ADD COLUMN approved_at timestamptz,
        ADD COLUMN replaces uuid,
        ADD COLUMN superseded_by uuid,
        ADD COLUMN stale jsonb,
        ADD COLUMN checked_sample_at timestamptz,
        ADD CONSTRAINT ck_plans_state
            CHECK (state IN ('draft', 'proposed', 'approved', 'in_force', 'superseded')),
        ADD CONSTRAINT fk_plans_fleet_plan_id_fleet_plans
            FOREIGN KEY (fleet_plan_id) REFERENCES fleet_plans (id) ON DELETE SET NULL
    """)
    op.execute(_SCENARIO.format("SET NULL"))
    op.execute("CREATE INDEX ix_plans_node_id_created_at_id ON plans (node_id, created_at, id)")
    op.execute("CREATE INDEX ix_plans_created_at_id ON plans (created_at, id)")
    op.execute("CREATE INDEX ix_plans_fleet_plan_id_node_id ON plans (fleet_plan_id, node_id)")
    op.execute("UPDATE plans SET state_at = created_at, node_name = plan ->> 'node'")
    op.execute("UPDATE plans SET state = 'in_force' WHERE id IN (SELECT plan_id FROM plans_in_force)")
    op.execute(_FOLLOW)


def downgrade() -> None:
    """Take back. Approvers become planners, and plans without a scenario go: the version before cannot hold them."""
    op.execute("DROP TRIGGER plans_follow_plans_in_force ON plans_in_force; DROP FUNCTION follow_plan_in_force()")
    op.execute("DELETE FROM plans WHERE scenario_id IS NULL OR scenario_version IS NULL")
    op.execute("DROP INDEX ix_plans_node_id_created_at_id, ix_plans_created_at_id, ix_plans_fleet_plan_id_node_id")
    op.execute(_SCENARIO.format("CASCADE"))
    op.execute("""
    ALTER TABLE plans
        ALTER COLUMN scenario_id SET NOT NULL, ALTER COLUMN scenario_version SET NOT NULL,
        DROP COLUMN node_name, DROP COLUMN digest, DROP COLUMN author_id, DROP COLUMN sampled_at, DROP COLUMN run_id,
        DROP COLUMN run_at,
        DROP COLUMN fleet_plan_id, DROP COLUMN version, DROP COLUMN state, DROP COLUMN state_at,
        DROP COLUMN proposed_by, DROP COLUMN proposed_by_id, DROP COLUMN proposed_at, DROP COLUMN approved_by,
        DROP COLUMN approved_by_id, DROP COLUMN approved_at, DROP COLUMN replaces, DROP COLUMN superseded_by,
        DROP COLUMN stale, DROP COLUMN checked_sample_at
    """)
    op.execute("UPDATE tokens SET role = 'planner' WHERE role = 'approver'")
    op.execute(_ROLES.format("'agent', 'enrolment', 'viewer', 'planner', 'admin'"))

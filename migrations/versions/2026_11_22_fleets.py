"""Fleets: states beside nodes, roll-ups that add up, findings, events, plans in force, fleet plans, webhooks."""

from __future__ import annotations

from alembic import op

revision = "0002_fleets"
down_revision = "0001"
branch_labels = None
depends_on = None

NEW_TABLES = """
CREATE TABLE run_wins (
    node_id UUID NOT NULL,
    run_id UUID NOT NULL,
    backing TEXT NOT NULL,
    cases BIGINT NOT NULL,
    wins BIGINT NOT NULL,
    lowest BIGINT NOT NULL,
    log_sum DOUBLE PRECISION NOT NULL,
    log_count BIGINT NOT NULL,
    CONSTRAINT pk_run_wins PRIMARY KEY (node_id, run_id, backing),
    CONSTRAINT fk_run_wins_node_id_run_id_runs FOREIGN KEY(node_id, run_id) REFERENCES runs (node_id, id) ON DELETE CASCADE
);

CREATE TABLE node_states (
    node_id UUID NOT NULL,
    inventory JSONB NOT NULL,
    sample JSONB NOT NULL,
    processes JSONB NOT NULL,
    collectors JSONB NOT NULL,
    measured JSONB,
    findings JSONB DEFAULT '[]'::jsonb NOT NULL,
    CONSTRAINT pk_node_states PRIMARY KEY (node_id),
    CONSTRAINT fk_node_states_node_id_nodes FOREIGN KEY(node_id) REFERENCES nodes (id) ON DELETE CASCADE
);

CREATE TABLE sample_days (
    node_id UUID NOT NULL,
    start_at TIMESTAMP WITH TIME ZONE NOT NULL,
    samples BIGINT NOT NULL,
    mem_total_bytes_max BIGINT NOT NULL,
    mem_available_bytes_min BIGINT,
    mem_available_bytes_sum DOUBLE PRECISION NOT NULL,
    mem_available_samples BIGINT NOT NULL,
    page_tables_bytes_max BIGINT,
    anon_huge_pages_bytes_max BIGINT,
    hugetlb_bytes_min BIGINT,
    hugetlb_bytes_max BIGINT,
    pool_idle_bytes_min BIGINT,
    pool_idle_bytes_max BIGINT,
    ordinary_bytes_max BIGINT,
    CONSTRAINT pk_sample_days PRIMARY KEY (node_id, start_at),
    CONSTRAINT ck_sample_days_samples CHECK (samples > 0)
)
 PARTITION BY RANGE (start_at);

CREATE TABLE node_findings (
    node_id UUID NOT NULL,
    code TEXT NOT NULL,
    subject TEXT NOT NULL,
    state TEXT NOT NULL,
    title TEXT NOT NULL,
    since TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_node_findings PRIMARY KEY (node_id, code, subject),
    CONSTRAINT fk_node_findings_node_id_nodes FOREIGN KEY(node_id) REFERENCES nodes (id) ON DELETE CASCADE
);

CREATE INDEX ix_node_findings_code_state ON node_findings (code, state);

CREATE TABLE events (
    id BIGSERIAL NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    kind TEXT NOT NULL,
    node_id UUID,
    node_name TEXT,
    code TEXT,
    subject TEXT,
    state TEXT,
    previous_state TEXT,
    text TEXT NOT NULL,
    CONSTRAINT pk_events PRIMARY KEY (id)
);

CREATE INDEX ix_events_at ON events (at);

CREATE INDEX ix_events_node_id_id ON events (node_id, id);

CREATE TABLE plans_in_force (
    node_id UUID NOT NULL,
    plan_id UUID,
    pools JSONB NOT NULL,
    source TEXT NOT NULL,
    since TIMESTAMP WITH TIME ZONE NOT NULL,
    set_by TEXT NOT NULL,
    CONSTRAINT pk_plans_in_force PRIMARY KEY (node_id),
    CONSTRAINT fk_plans_in_force_node_id_nodes FOREIGN KEY(node_id) REFERENCES nodes (id) ON DELETE CASCADE,
    CONSTRAINT fk_plans_in_force_plan_id_plans FOREIGN KEY(plan_id) REFERENCES plans (id) ON DELETE SET NULL
);

CREATE INDEX ix_plans_in_force_plan_id ON plans_in_force (plan_id);

CREATE TABLE fleet_plans (
    id UUID NOT NULL,
    name TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    created_by TEXT NOT NULL,
    status TEXT NOT NULL,
    cancel_requested BOOLEAN DEFAULT false NOT NULL,
    selector JSONB NOT NULL,
    scenario JSON NOT NULL,
    model_version TEXT NOT NULL,
    nodes_total BIGINT NOT NULL,
    nodes_done BIGINT NOT NULL,
    plans_computed BIGINT NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE,
    heartbeat_at TIMESTAMP WITH TIME ZONE,
    finished_at TIMESTAMP WITH TIME ZONE,
    error TEXT,
    summary JSONB,
    CONSTRAINT pk_fleet_plans PRIMARY KEY (id),
    CONSTRAINT ck_fleet_plans_status CHECK (status IN ('queued', 'running', 'done', 'failed', 'cancelled'))
);

CREATE INDEX ix_fleet_plans_created_at_id ON fleet_plans (created_at, id);

CREATE TABLE fleet_plan_groups (
    fleet_plan_id UUID NOT NULL,
    number BIGINT NOT NULL,
    nodes BIGINT NOT NULL,
    machine_type TEXT,
    headline TEXT NOT NULL,
    pools JSONB NOT NULL,
    plan JSON NOT NULL,
    CONSTRAINT pk_fleet_plan_groups PRIMARY KEY (fleet_plan_id, number),
    CONSTRAINT fk_fleet_plan_groups_fleet_plan_id_fleet_plans FOREIGN KEY(fleet_plan_id) REFERENCES fleet_plans (id) ON DELETE CASCADE
);

CREATE TABLE fleet_plan_nodes (
    fleet_plan_id UUID NOT NULL,
    position BIGINT NOT NULL,
    node_id UUID NOT NULL,
    name TEXT NOT NULL,
    severity SMALLINT NOT NULL,
    exceptions JSONB NOT NULL,
    group_number BIGINT,
    mem_total_bytes BIGINT NOT NULL,
    locked_bytes BIGINT,
    free_bytes BIGINT,
    fits BOOLEAN,
    missing_pages BIGINT,
    idle_pages BIGINT,
    CONSTRAINT pk_fleet_plan_nodes PRIMARY KEY (fleet_plan_id, position),
    CONSTRAINT fk_fleet_plan_nodes_fleet_plan_id_fleet_plans FOREIGN KEY(fleet_plan_id) REFERENCES fleet_plans (id) ON DELETE CASCADE
);

CREATE TABLE webhooks (
    id UUID NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    format TEXT NOT NULL,
    kinds JSONB NOT NULL,
    last_event_id BIGINT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    created_by TEXT NOT NULL,
    CONSTRAINT pk_webhooks PRIMARY KEY (id)
);

CREATE TABLE webhook_deliveries (
    webhook_id UUID NOT NULL,
    event_id BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    next_attempt_at TIMESTAMP WITH TIME ZONE NOT NULL,
    finished_at TIMESTAMP WITH TIME ZONE,
    delivered BOOLEAN NOT NULL,
    last_status BIGINT,
    last_error TEXT,
    CONSTRAINT pk_webhook_deliveries PRIMARY KEY (webhook_id, event_id),
    CONSTRAINT fk_webhook_deliveries_webhook_id_webhooks FOREIGN KEY(webhook_id) REFERENCES webhooks (id) ON DELETE CASCADE
);

CREATE INDEX ix_webhook_deliveries_finished_at ON webhook_deliveries (finished_at);

CREATE INDEX ix_webhook_deliveries_next_attempt_at ON webhook_deliveries (next_attempt_at) WHERE finished_at IS NULL;

CREATE TABLE scenario_versions (
    scenario_id UUID NOT NULL,
    version BIGINT NOT NULL,
    name TEXT NOT NULL,
    node_id UUID,
    document JSON NOT NULL,
    saved_at TIMESTAMP WITH TIME ZONE NOT NULL,
    saved_by TEXT,
    CONSTRAINT pk_scenario_versions PRIMARY KEY (scenario_id, version),
    CONSTRAINT fk_scenario_versions_scenario_id_scenarios FOREIGN KEY(scenario_id) REFERENCES scenarios (id) ON DELETE CASCADE
);
"""

SAMPLE_HOURS = """
CREATE TABLE sample_hours (
    node_id UUID NOT NULL,
    start_at TIMESTAMP WITH TIME ZONE NOT NULL,
    samples BIGINT NOT NULL,
    mem_total_bytes_max BIGINT NOT NULL,
    mem_available_bytes_min BIGINT,
    mem_available_bytes_sum DOUBLE PRECISION NOT NULL,
    mem_available_samples BIGINT NOT NULL,
    page_tables_bytes_max BIGINT,
    anon_huge_pages_bytes_max BIGINT,
    hugetlb_bytes_min BIGINT,
    hugetlb_bytes_max BIGINT,
    pool_idle_bytes_min BIGINT,
    pool_idle_bytes_max BIGINT,
    ordinary_bytes_max BIGINT,
    CONSTRAINT pk_sample_hours PRIMARY KEY (node_id, start_at),
    CONSTRAINT ck_sample_hours_samples CHECK (samples > 0)
)
 PARTITION BY RANGE (start_at)
"""

# The former hours have a mean and no sum; with a count they are one.
COPY_HOURS = """
INSERT INTO sample_hours (node_id, start_at, samples, mem_total_bytes_max, mem_available_bytes_min,
    mem_available_bytes_sum, mem_available_samples, page_tables_bytes_max, anon_huge_pages_bytes_max,
    hugetlb_bytes_max)
SELECT node_id, hour_at, samples, mem_total_bytes_max, mem_available_bytes_min,
    coalesce(mem_available_bytes_mean, 0) * CAST(samples AS double precision),
    CASE WHEN mem_available_bytes_mean IS NULL THEN 0 ELSE samples END,
    page_tables_bytes_max, anon_huge_pages_bytes_max, hugetlb_bytes_max
FROM sample_hours_before
"""

STATEMENTS = (
    "CREATE TABLE sample_days_default PARTITION OF sample_days DEFAULT",
    "ALTER TABLE sample_hours RENAME TO sample_hours_before",
    "ALTER TABLE sample_hours_before RENAME CONSTRAINT pk_sample_hours TO pk_sample_hours_before",
    "ALTER TABLE sample_hours_before RENAME CONSTRAINT ck_sample_hours_samples TO ck_sample_hours_before_samples",
    SAMPLE_HOURS,
    "CREATE TABLE sample_hours_default PARTITION OF sample_hours DEFAULT",
    COPY_HOURS,
    "DROP TABLE sample_hours_before",
    """
    INSERT INTO node_states (node_id, inventory, sample, processes, collectors)
    SELECT id, inventory, sample, processes, collectors FROM nodes
    """,
    """
    ALTER TABLE nodes
        DROP COLUMN inventory, DROP COLUMN sample, DROP COLUMN processes, DROP COLUMN collectors,
        ADD COLUMN labels jsonb DEFAULT '{}'::jsonb NOT NULL,
        ADD COLUMN labels_set jsonb DEFAULT '{}'::jsonb NOT NULL,
        ADD COLUMN machine_type text,
        ADD COLUMN group_key text,
        ADD COLUMN mem_available_bytes bigint,
        ADD COLUMN page_tables_bytes bigint,
        ADD COLUMN anon_huge_pages_bytes bigint,
        ADD COLUMN pool_bytes bigint,
        ADD COLUMN pool_idle_bytes bigint,
        ADD COLUMN pools jsonb DEFAULT '[]'::jsonb NOT NULL,
        ADD COLUMN spool jsonb,
        ADD COLUMN clock_ahead_seconds double precision,
        ADD COLUMN findings_wrong bigint DEFAULT 0 NOT NULL,
        ADD COLUMN findings_attention bigint DEFAULT 0 NOT NULL,
        ADD COLUMN plan_state text
    """,
    # A node is updated with each report: room for the next version on the same page keeps its indexes untouched.
    "ALTER TABLE nodes SET (fillfactor = 70)",
    "CREATE INDEX ix_nodes_group_key ON nodes (group_key)",
    """
    ALTER TABLE reports
        ADD COLUMN schema_version smallint DEFAULT 1 NOT NULL,
        ADD COLUMN state text DEFAULT 'parsed' NOT NULL,
        ADD CONSTRAINT ck_reports_state CHECK (state IN ('parsed', 'newer_schema'))
    """,
    "ALTER TABLE samples ADD COLUMN pool_idle_bytes bigint",
    "ALTER TABLE report_documents ALTER COLUMN document SET STORAGE EXTERNAL",
    "DROP TABLE curves",
    "DROP INDEX ix_runs_node_id_started_at_id",
    """
    ALTER TABLE runs
        ADD COLUMN ordered_at timestamptz,
        ADD COLUMN geometry_rank smallint DEFAULT 0 NOT NULL,
        ADD COLUMN latency_rank smallint DEFAULT 0 NOT NULL,
        ADD COLUMN pressure_rank smallint DEFAULT 0 NOT NULL,
        ADD COLUMN bad boolean DEFAULT false NOT NULL,
        ADD COLUMN bad_reason text
    """,
    """
    UPDATE runs SET
        ordered_at = least(started_at, stored_at),
        geometry_rank = CASE WHEN sections @> '[{"name": "geometry", "status": "ok"}]' THEN 2
            WHEN sections @> '[{"name": "geometry"}]' THEN 1 ELSE 0 END,
        latency_rank = CASE WHEN sections @> '[{"name": "latency", "status": "ok"}]' THEN 2
            WHEN sections @> '[{"name": "latency"}]' THEN 1 ELSE 0 END,
        pressure_rank = CASE WHEN json_array_length(coalesce(document #> '{latency,pressure,points}', '[]')) > 0
            THEN CASE WHEN sections @> '[{"name": "latency", "status": "ok"}]' THEN 2 ELSE 1 END ELSE 0 END
    """,
    """
    ALTER TABLE runs
        ALTER COLUMN ordered_at SET NOT NULL,
        ALTER COLUMN geometry_rank DROP DEFAULT,
        ALTER COLUMN latency_rank DROP DEFAULT,
        ALTER COLUMN pressure_rank DROP DEFAULT,
        ALTER COLUMN document TYPE bytea USING convert_to(document::text, 'UTF8'),
        ALTER COLUMN document SET STORAGE EXTERNAL
    """,
    "CREATE INDEX ix_runs_node_id_ordered_at_id ON runs (node_id, ordered_at, id)",
    """
    ALTER TABLE plans
        ADD COLUMN schema_version bigint DEFAULT 1 NOT NULL,
        ADD COLUMN model_version text,
        ADD COLUMN author text,
        ADD COLUMN scenario json,
        ADD COLUMN request json
    """,
    """
    INSERT INTO scenario_versions (scenario_id, version, name, node_id, document, saved_at)
    SELECT id, version, name, node_id, document, updated_at FROM scenarios
    """,
)


def upgrade() -> None:
    """Apply. `hugeplan reparse` fills what is made from stored documents: hardware facts, wins, groups."""
    for statement in (*NEW_TABLES.split(";\n"), *STATEMENTS):
        if statement.strip():
            op.execute(statement)


def downgrade() -> None:
    """Undo. Curves are not written again: the documents that they were read from are kept."""
    for statement in DOWN:
        op.execute(statement)


DOWN = (
    "ALTER TABLE plans DROP COLUMN schema_version, DROP COLUMN model_version, DROP COLUMN author,"
    " DROP COLUMN scenario, DROP COLUMN request",
    "DROP TABLE scenario_versions, webhook_deliveries, webhooks, fleet_plan_nodes, fleet_plan_groups, fleet_plans,"
    " plans_in_force, events, node_findings, run_wins, sample_days",
    "CREATE FUNCTION pg_temp.plain(bytea) RETURNS json LANGUAGE plpgsql AS $$ BEGIN"
    " RETURN convert_from($1, 'UTF8')::json; EXCEPTION WHEN OTHERS THEN RETURN 'null'::json; END $$",
    "DROP INDEX ix_runs_node_id_ordered_at_id",
    "ALTER TABLE runs DROP COLUMN ordered_at, DROP COLUMN geometry_rank, DROP COLUMN latency_rank,"
    " DROP COLUMN pressure_rank, DROP COLUMN bad, DROP COLUMN bad_reason,"
    " ALTER COLUMN document TYPE json USING pg_temp.plain(document)",
    "CREATE INDEX ix_runs_node_id_started_at_id ON runs (node_id, started_at, id)",
    """
    CREATE TABLE curves (
        node_id uuid NOT NULL, run_id uuid NOT NULL, ordinal bigint NOT NULL, section text NOT NULL,
        name text NOT NULL, x_name text NOT NULL, backing text NOT NULL, backing_kind text, page_bytes bigint,
        layout text, granted_fraction double precision, status text NOT NULL, reason text,
        x bigint[] NOT NULL, ns_min double precision[] NOT NULL, ns_p10 double precision[] NOT NULL,
        ns_p50 double precision[] NOT NULL, ns_p90 double precision[] NOT NULL, ns_mad double precision[] NOT NULL,
        batches bigint[] NOT NULL, dropped bigint[] NOT NULL,
        CONSTRAINT pk_curves PRIMARY KEY (node_id, run_id, ordinal),
        CONSTRAINT fk_curves_node_id_run_id_runs FOREIGN KEY (node_id, run_id)
            REFERENCES runs (node_id, id) ON DELETE CASCADE
    )
    """,
    "ALTER TABLE samples DROP COLUMN pool_idle_bytes",
    "ALTER TABLE reports DROP COLUMN schema_version, DROP COLUMN state",
    "DROP INDEX ix_nodes_group_key",
    """
    ALTER TABLE nodes
        DROP COLUMN labels, DROP COLUMN labels_set, DROP COLUMN machine_type, DROP COLUMN group_key,
        DROP COLUMN mem_available_bytes, DROP COLUMN page_tables_bytes, DROP COLUMN anon_huge_pages_bytes,
        DROP COLUMN pool_bytes, DROP COLUMN pool_idle_bytes, DROP COLUMN pools, DROP COLUMN spool,
        DROP COLUMN clock_ahead_seconds, DROP COLUMN findings_wrong, DROP COLUMN findings_attention,
        DROP COLUMN plan_state,
        ADD COLUMN inventory jsonb, ADD COLUMN sample jsonb, ADD COLUMN processes jsonb, ADD COLUMN collectors jsonb
    """,
    """
    UPDATE nodes SET inventory = s.inventory, sample = s.sample, processes = s.processes, collectors = s.collectors
    FROM node_states s WHERE s.node_id = nodes.id
    """,
    """
    ALTER TABLE nodes ALTER COLUMN inventory SET NOT NULL, ALTER COLUMN sample SET NOT NULL,
        ALTER COLUMN processes SET NOT NULL, ALTER COLUMN collectors SET NOT NULL
    """,
    "DROP TABLE node_states",
    "ALTER TABLE sample_hours RENAME TO sample_hours_after",
    "ALTER TABLE sample_hours_after RENAME CONSTRAINT pk_sample_hours TO pk_sample_hours_after",
    "ALTER TABLE sample_hours_after RENAME CONSTRAINT ck_sample_hours_samples TO ck_sample_hours_after_samples",
    """
    CREATE TABLE sample_hours (
        node_id uuid NOT NULL, hour_at timestamptz NOT NULL, samples bigint NOT NULL,
        mem_total_bytes_max bigint NOT NULL, mem_available_bytes_min bigint, mem_available_bytes_mean bigint,
        page_tables_bytes_max bigint, anon_huge_pages_bytes_max bigint, hugetlb_bytes_max bigint,
        CONSTRAINT pk_sample_hours PRIMARY KEY (node_id, hour_at),
        CONSTRAINT ck_sample_hours_samples CHECK (samples > 0),
        CONSTRAINT fk_sample_hours_node_id_nodes FOREIGN KEY (node_id) REFERENCES nodes (id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX ix_sample_hours_hour_at ON sample_hours (hour_at)",
    """
    INSERT INTO sample_hours SELECT a.node_id, a.start_at, a.samples, a.mem_total_bytes_max, a.mem_available_bytes_min,
        CAST(a.mem_available_bytes_sum / nullif(a.mem_available_samples, 0) AS bigint),
        a.page_tables_bytes_max, a.anon_huge_pages_bytes_max, a.hugetlb_bytes_max
    FROM sample_hours_after a JOIN nodes n ON n.id = a.node_id
    """,
    "DROP TABLE sample_hours_after",
)

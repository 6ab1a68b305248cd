"""The first tables: fleet, benchmarks, scenarios, access."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "nodes",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("machine_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("synthetic", sa.Boolean(), nullable=False),
        sa.Column("architecture", sa.Text(), nullable=False),
        sa.Column("cpu_brand", sa.Text(), nullable=True),
        sa.Column("virtualised", sa.Boolean(), nullable=True),
        sa.Column("mem_total_bytes", sa.BigInteger(), nullable=False),
        sa.Column("numa_node_count", sa.BigInteger(), nullable=False),
        sa.Column("agent_version", sa.Text(), nullable=False),
        sa.Column("first_report_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_report_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sampled_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("inventory", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("sample", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("processes", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("collectors", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("latest_run_id", sa.Uuid(), nullable=True),
        sa.Column("effective_granule_bytes", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("mem_total_bytes > 0", name=op.f("ck_nodes_mem_total_bytes")),
        sa.CheckConstraint("numa_node_count > 0", name=op.f("ck_nodes_numa_node_count")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_nodes")),
        sa.UniqueConstraint("machine_id", name=op.f("uq_nodes_machine_id")),
    )
    op.create_index(op.f("ix_nodes_name_id"), "nodes", ["name", "id"], unique=False)
    op.create_table(
        "report_documents",
        sa.Column("node_id", sa.Uuid(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("report_id", sa.Uuid(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("node_id", "received_at", "report_id", name=op.f("pk_report_documents")),
        postgresql_partition_by="RANGE (received_at)",
    )
    op.create_table(
        "samples",
        sa.Column("node_id", sa.Uuid(), nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("report_id", sa.Uuid(), nullable=False),
        sa.Column("mem_total_bytes", sa.BigInteger(), nullable=False),
        sa.Column("mem_available_bytes", sa.BigInteger(), nullable=True),
        sa.Column("page_tables_bytes", sa.BigInteger(), nullable=True),
        sa.Column("anon_huge_pages_bytes", sa.BigInteger(), nullable=True),
        sa.Column("hugetlb_bytes", sa.BigInteger(), nullable=True),
        sa.Column("memory", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("pools", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.CheckConstraint("mem_total_bytes > 0", name=op.f("ck_samples_mem_total_bytes")),
        sa.PrimaryKeyConstraint("node_id", "taken_at", "report_id", name=op.f("pk_samples")),
        postgresql_partition_by="RANGE (taken_at)",
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("machine_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("machine_id IS NULL OR role = 'agent'", name=op.f("ck_tokens_machine_id")),
        sa.CheckConstraint("role IN ('agent', 'enrolment', 'viewer', 'planner', 'admin')", name=op.f("ck_tokens_role")),
        sa.CheckConstraint("octet_length(secret_sha256) = 32", name=op.f("ck_tokens_secret_sha256")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("secret_sha256", name=op.f("uq_tokens_secret_sha256")),
    )
    op.create_index(op.f("ix_tokens_created_at_id"), "tokens", ["created_at", "id"], unique=False)
    op.create_index(op.f("ix_tokens_machine_id"), "tokens", ["machine_id"], unique=False)
    op.create_table(
        "browser_sessions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("secret_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("token_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("octet_length(secret_sha256) = 32", name=op.f("ck_browser_sessions_secret_sha256")),
        sa.ForeignKeyConstraint(
            ["token_id"], ["tokens.id"], name=op.f("fk_browser_sessions_token_id_tokens"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_browser_sessions")),
        sa.UniqueConstraint("secret_sha256", name=op.f("uq_browser_sessions_secret_sha256")),
    )
    op.create_index(op.f("ix_browser_sessions_expires_at"), "browser_sessions", ["expires_at"], unique=False)
    op.create_index(op.f("ix_browser_sessions_token_id"), "browser_sessions", ["token_id"], unique=False)
    op.create_table(
        "reports",
        sa.Column("node_id", sa.Uuid(), nullable=False),
        sa.Column("report_id", sa.Uuid(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("content_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.CheckConstraint("octet_length(content_sha256) = 32", name=op.f("ck_reports_content_sha256")),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name=op.f("fk_reports_node_id_nodes"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("node_id", "report_id", name=op.f("pk_reports")),
    )
    op.create_index(op.f("ix_reports_received_at"), "reports", ["received_at"], unique=False)
    op.create_table(
        "runs",
        sa.Column("node_id", sa.Uuid(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("stored_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=True),
        sa.Column("tool_version", sa.Text(), nullable=False),
        sa.Column("duration_seconds", sa.Double(), nullable=True),
        sa.Column("sections", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("document", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name=op.f("fk_runs_node_id_nodes"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("node_id", "id", name=op.f("pk_runs")),
    )
    op.create_index(op.f("ix_runs_id"), "runs", ["id"], unique=False)
    op.create_index(op.f("ix_runs_node_id_started_at_id"), "runs", ["node_id", "started_at", "id"], unique=False)
    op.create_table(
        "sample_hours",
        sa.Column("node_id", sa.Uuid(), nullable=False),
        sa.Column("hour_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("samples", sa.BigInteger(), nullable=False),
        sa.Column("mem_total_bytes_max", sa.BigInteger(), nullable=False),
        sa.Column("mem_available_bytes_min", sa.BigInteger(), nullable=True),
        sa.Column("mem_available_bytes_mean", sa.BigInteger(), nullable=True),
        sa.Column("page_tables_bytes_max", sa.BigInteger(), nullable=True),
        sa.Column("anon_huge_pages_bytes_max", sa.BigInteger(), nullable=True),
        sa.Column("hugetlb_bytes_max", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("samples > 0", name=op.f("ck_sample_hours_samples")),
        sa.ForeignKeyConstraint(
            ["node_id"], ["nodes.id"], name=op.f("fk_sample_hours_node_id_nodes"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("node_id", "hour_at", name=op.f("pk_sample_hours")),
    )
    op.create_index(op.f("ix_sample_hours_hour_at"), "sample_hours", ["hour_at"], unique=False)
    op.create_table(
        "scenarios",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("node_id", sa.Uuid(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("version > 0", name=op.f("ck_scenarios_version")),
        sa.ForeignKeyConstraint(
            ["node_id"], ["nodes.id"], name=op.f("fk_scenarios_node_id_nodes"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scenarios")),
    )
    op.create_index(op.f("ix_scenarios_node_id"), "scenarios", ["node_id"], unique=False)
    op.create_index(op.f("ix_scenarios_updated_at_id"), "scenarios", ["updated_at", "id"], unique=False)
    op.create_table(
        "curves",
        sa.Column("node_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("ordinal", sa.BigInteger(), nullable=False),
        sa.Column("section", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("x_name", sa.Text(), nullable=False),
        sa.Column("backing", sa.Text(), nullable=False),
        sa.Column("backing_kind", sa.Text(), nullable=True),
        sa.Column("page_bytes", sa.BigInteger(), nullable=True),
        sa.Column("layout", sa.Text(), nullable=True),
        sa.Column("granted_fraction", sa.Double(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("x", postgresql.ARRAY(sa.BigInteger()), nullable=False),
        sa.Column("ns_min", postgresql.ARRAY(sa.Double()), nullable=False),
        sa.Column("ns_p10", postgresql.ARRAY(sa.Double()), nullable=False),
        sa.Column("ns_p50", postgresql.ARRAY(sa.Double()), nullable=False),
        sa.Column("ns_p90", postgresql.ARRAY(sa.Double()), nullable=False),
        sa.Column("ns_mad", postgresql.ARRAY(sa.Double()), nullable=False),
        sa.Column("batches", postgresql.ARRAY(sa.BigInteger()), nullable=False),
        sa.Column("dropped", postgresql.ARRAY(sa.BigInteger()), nullable=False),
        sa.CheckConstraint(
            "cardinality(x) = cardinality(ns_p50)"
            " AND cardinality(x) = cardinality(ns_min)"
            " AND cardinality(x) = cardinality(ns_p10)"
            " AND cardinality(x) = cardinality(ns_p90)"
            " AND cardinality(x) = cardinality(ns_mad)"
            " AND cardinality(x) = cardinality(batches)"
            " AND cardinality(x) = cardinality(dropped)",
            name=op.f("ck_curves_lengths"),
        ),
        sa.ForeignKeyConstraint(
            ["node_id", "run_id"],
            ["runs.node_id", "runs.id"],
            name=op.f("fk_curves_node_id_run_id_runs"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("node_id", "run_id", "ordinal", name=op.f("pk_curves")),
    )
    op.create_table(
        "plans",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("scenario_id", sa.Uuid(), nullable=False),
        sa.Column("scenario_version", sa.BigInteger(), nullable=False),
        sa.Column("node_id", sa.Uuid(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("headline", sa.Text(), nullable=False),
        sa.Column("plan", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("artifacts", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["scenario_id"], ["scenarios.id"], name=op.f("fk_plans_scenario_id_scenarios"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_plans")),
    )
    op.create_index(
        op.f("ix_plans_scenario_id_created_at_id"), "plans", ["scenario_id", "created_at", "id"], unique=False
    )
    # Rows of days without a partition of their own; hugeplan.db.maintenance makes and drops the daily ones.
    op.execute("CREATE TABLE samples_default PARTITION OF samples DEFAULT")
    op.execute("CREATE TABLE report_documents_default PARTITION OF report_documents DEFAULT")


def downgrade() -> None:
    """Undo."""
    op.drop_index(op.f("ix_plans_scenario_id_created_at_id"), table_name="plans")
    op.drop_table("plans")
    op.drop_table("curves")
    op.drop_index(op.f("ix_scenarios_updated_at_id"), table_name="scenarios")
    op.drop_index(op.f("ix_scenarios_node_id"), table_name="scenarios")
    op.drop_table("scenarios")
    op.drop_index(op.f("ix_sample_hours_hour_at"), table_name="sample_hours")
    op.drop_table("sample_hours")
    op.drop_index(op.f("ix_runs_node_id_started_at_id"), table_name="runs")
    op.drop_index(op.f("ix_runs_id"), table_name="runs")
    op.drop_table("runs")
    op.drop_index(op.f("ix_reports_received_at"), table_name="reports")
    op.drop_table("reports")
    op.drop_index(op.f("ix_browser_sessions_token_id"), table_name="browser_sessions")
    op.drop_index(op.f("ix_browser_sessions_expires_at"), table_name="browser_sessions")
    op.drop_table("browser_sessions")
    op.drop_index(op.f("ix_tokens_machine_id"), table_name="tokens")
    op.drop_index(op.f("ix_tokens_created_at_id"), table_name="tokens")
    op.drop_table("tokens")
    op.drop_table("samples")
    op.drop_table("report_documents")
    op.drop_index(op.f("ix_nodes_name_id"), table_name="nodes")
    op.drop_table("nodes")

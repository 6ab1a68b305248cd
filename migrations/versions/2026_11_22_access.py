"""Access: login links, logins at an OpenID provider, machines and their clones, approvals, the audit log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003_access"
down_revision = "0002_fleets"
branch_labels = None
depends_on = None

APPEND_ONLY = """
CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit_events is append-only';
END $$;
CREATE TRIGGER audit_events_append_only BEFORE UPDATE OR DELETE ON audit_events
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER audit_events_no_truncate BEFORE TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
"""


def _moment(name: str) -> sa.Column[sa.DateTime]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def upgrade() -> None:
    """Apply."""
    op.add_column("tokens", sa.Column("replaces", sa.Uuid(), nullable=True))
    op.add_column("tokens", sa.Column("oidc_subject", sa.Text(), nullable=True))
    op.create_unique_constraint(op.f("uq_tokens_oidc_subject"), "tokens", ["oidc_subject"])
    op.add_column("browser_sessions", sa.Column("address", sa.Text(), nullable=True))
    op.add_column("browser_sessions", sa.Column("user_agent", sa.Text(), nullable=True))
    op.create_table(
        "login_links",
        sa.Column("secret_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("token_id", sa.Uuid(), nullable=False),
        _moment("created_at"),
        _moment("expires_at"),
        sa.CheckConstraint("octet_length(secret_sha256) = 32", name=op.f("ck_login_links_secret_sha256")),
        sa.ForeignKeyConstraint(
            ["token_id"], ["tokens.id"], name=op.f("fk_login_links_token_id_tokens"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("secret_sha256", name=op.f("pk_login_links")),
    )
    op.create_index(op.f("ix_login_links_token_id"), "login_links", ["token_id"])
    op.create_table(
        "oidc_logins",
        sa.Column("state_sha256", sa.LargeBinary(), nullable=False),
        sa.Column("nonce", sa.Text(), nullable=False),
        sa.Column("code_verifier", sa.Text(), nullable=False),
        _moment("expires_at"),
        sa.PrimaryKeyConstraint("state_sha256", name=op.f("pk_oidc_logins")),
    )
    op.create_table(
        "enrolment_approvals",
        sa.Column("machine_id", sa.Text(), nullable=False),
        sa.Column("approved_by", sa.Text(), nullable=False),
        _moment("created_at"),
        _moment("expires_at"),
        sa.PrimaryKeyConstraint("machine_id", name=op.f("pk_enrolment_approvals")),
    )
    op.create_table(
        "machines",
        sa.Column("node_machine_id", sa.Text(), nullable=False),
        sa.Column("machine_id", sa.Text(), nullable=False),
        sa.Column("dmi_sha256", sa.Text(), nullable=True),
        sa.Column("mac_sha256", postgresql.ARRAY(sa.Text()), nullable=True),
        sa.Column("boot_id", sa.Text(), nullable=True),
        sa.Column("former_boot_ids", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("boot_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("boots_interleaved", sa.Boolean(), nullable=False),
        _moment("first_seen_at"),
        _moment("last_seen_at"),
        sa.PrimaryKeyConstraint("node_machine_id", name=op.f("pk_machines")),
    )
    op.create_index(op.f("ix_machines_machine_id"), "machines", ["machine_id"])
    op.create_table(
        "audit_events",
        sa.Column("id", sa.BigInteger(), autoincrement=True, nullable=False),
        _moment("at"),
        sa.Column("actor_id", sa.Uuid(), nullable=True),
        sa.Column("actor_name", sa.Text(), nullable=False),
        sa.Column("actor_role", sa.Text(), nullable=True),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject_kind", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("detail", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_events")),
    )
    op.create_index(op.f("ix_audit_events_at_id"), "audit_events", ["at", "id"])
    op.create_index(op.f("ix_audit_events_subject_kind_subject_id"), "audit_events", ["subject_kind", "subject_id"])
    op.execute(APPEND_ONLY)
    # Machines that are known already keep their nodes.
    op.execute(
        "INSERT INTO machines (node_machine_id, machine_id, former_boot_ids, boots_interleaved, first_seen_at,"
        " last_seen_at) SELECT machine_id, machine_id, '{}', false, first_report_at, last_report_at FROM nodes"
    )


def downgrade() -> None:
    """Undo."""
    for table in ("audit_events", "machines", "enrolment_approvals", "oidc_logins", "login_links"):
        op.drop_table(table)
    op.execute("DROP FUNCTION refuse_audit_change()")
    op.drop_column("browser_sessions", "user_agent")
    op.drop_column("browser_sessions", "address")
    op.drop_constraint(op.f("uq_tokens_oidc_subject"), "tokens")
    op.drop_column("tokens", "oidc_subject")
    op.drop_column("tokens", "replaces")

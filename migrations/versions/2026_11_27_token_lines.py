"""Which line a token is of: the first one's id, which all have that came of it by rotation. Bounds count by it."""

from __future__ import annotations

from alembic import op

revision = "0021_token_lines"
down_revision = "0020_newest_report"
branch_labels = None
depends_on = None

# Maintenance deletes what has long ended, so the first token of a line may be gone. Each turn doubles how far a row
# sees, so that a line of 100,000 takes 17.
_FILL = """
UPDATE tokens t SET line_id = coalesce((SELECT p.id FROM tokens p WHERE p.id = t.replaces), t.id);
DO $$ BEGIN
    LOOP
        UPDATE tokens t SET line_id = p.line_id FROM tokens p WHERE t.line_id = p.id AND p.line_id <> p.id;
        EXIT WHEN NOT FOUND;
    END LOOP;
END $$;
"""
# By the database: a service of the release before that still runs names no line.
_TRIGGER = """
CREATE FUNCTION line_of_token() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.line_id := coalesce(NEW.line_id, (SELECT t.line_id FROM tokens t WHERE t.id = NEW.replaces), NEW.id);
    RETURN NEW;
END $$;
CREATE TRIGGER tokens_have_lines BEFORE INSERT ON tokens FOR EACH ROW EXECUTE FUNCTION line_of_token();
"""
_AUTHORS = (
    ("plans", "author_id"),
    ("plans", "proposed_by_id"),
    ("plans", "approved_by_id"),
    ("fleet_plans", "author_id"),
)


def upgrade() -> None:
    """Apply."""
    op.execute("ALTER TABLE tokens ADD COLUMN line_id uuid")
    op.execute(_FILL)
    op.execute(_TRIGGER)
    op.execute("ALTER TABLE tokens ALTER COLUMN line_id SET NOT NULL")
    op.create_index(op.f("ix_tokens_line_id_created_at"), "tokens", ["line_id", "created_at"])
    for table, column in _AUTHORS:
        op.execute(
            f"UPDATE {table} SET {column} = t.line_id FROM tokens t WHERE {column} = t.id AND t.line_id <> t.id"  # noqa: S608
        )


def downgrade() -> None:
    """Take back. Who kept a plan stays the line: its first token."""
    op.execute("DROP TRIGGER tokens_have_lines ON tokens; DROP FUNCTION line_of_token()")
    op.drop_index(op.f("ix_tokens_line_id_created_at"), "tokens")
    op.drop_column("tokens", "line_id")

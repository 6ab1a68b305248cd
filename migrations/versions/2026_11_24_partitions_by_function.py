"""Partitions are made, emptied and dropped by functions of the owner: the service's role owns no table.

A caller needs the right to delete the table's rows anyway; names are looked up, so nothing else can be reached.
"""

from __future__ import annotations

from alembic import op

revision = "0019_partitions_by_function"
down_revision = "0018_fleet_plan_room"
branch_labels = None
depends_on = None

# The caller is whoever logged in: within the function the current user is its owner.
_PARENT = """
CREATE FUNCTION partitioned_table(parent text) RETURNS regclass
LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
DECLARE
    found regclass;
BEGIN
    SELECT c.oid INTO found FROM pg_class c
    WHERE c.relkind = 'p' AND c.relname = parent AND c.relnamespace = 'public'::regnamespace;
    IF found IS NULL THEN
        RAISE undefined_table USING MESSAGE = format('%L is no partitioned table', parent);
    ELSIF NOT has_table_privilege(session_user, found, 'DELETE') THEN
        RAISE insufficient_privilege USING MESSAGE = format('%I may not delete rows of %I', session_user, parent);
    END IF;
    RETURN found;
END $$
"""

_MAKE = """
CREATE FUNCTION make_partition(parent text, first_day date, end_day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    root regclass := partitioned_table(parent);
    part text := parent || to_char(first_day, '_YYYYMMDD');
    key text := (
        SELECT a.attname FROM pg_partitioned_table p
        JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0] WHERE p.partrelid = root
    );
    first_time timestamptz := first_day::timestamp AT TIME ZONE 'UTC';
    end_time timestamptz := end_day::timestamp AT TIME ZONE 'UTC';
BEGIN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', part, parent);
    EXECUTE format(
        'WITH moved AS (DELETE FROM %I WHERE %I >= %L AND %I < %L RETURNING *) INSERT INTO %I SELECT * FROM moved',
        parent || '_default', key, first_time, key, end_time, part
    );
    EXECUTE format(
        'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, part, first_time, end_time
    );
END $$
"""

_DROP = """
CREATE FUNCTION drop_partition(parent text, first_day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    root regclass := partitioned_table(parent);
    part text := parent || to_char(first_day, '_YYYYMMDD');
BEGIN
    IF NOT EXISTS (SELECT FROM pg_inherits WHERE inhparent = root AND inhrelid = to_regclass(quote_ident(part))) THEN
        RAISE undefined_table USING MESSAGE = format('%L is no partition of %I', part, parent);
    END IF;
    EXECUTE format('DROP TABLE %I', part);
END $$
"""

_EMPTY = """
CREATE FUNCTION give_space_back(parent text, first_day date) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    root regclass := partitioned_table(parent);
    part text := parent || to_char(first_day, '_YYYYMMDD');
    has_rows boolean;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_inherits WHERE inhparent = root AND inhrelid = to_regclass(quote_ident(part))) THEN
        RAISE undefined_table USING MESSAGE = format('%L is no partition of %I', part, parent);
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT FROM %I)', part) INTO has_rows;
    IF NOT has_rows THEN
        EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', part);
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', part) INTO has_rows;
    END IF;
    IF NOT has_rows THEN
        EXECUTE format('TRUNCATE %I', part);
    END IF;
    RETURN NOT has_rows;
END $$
"""

_SIGNATURES = (
    "partitioned_table(text)",
    "make_partition(text, date, date)",
    "drop_partition(text, date)",
    "give_space_back(text, date)",
)


def upgrade() -> None:
    """Apply."""
    for statement in (_PARENT, _MAKE, _DROP, _EMPTY):
        op.execute(statement)


def downgrade() -> None:
    """Take back."""
    for signature in reversed(_SIGNATURES):
        op.execute(f"DROP FUNCTION {signature}")

"""The statements that store a batch of reports. Rows of a batch travel as one JSON parameter per table.

The parameters ``$1``, ``$2`` and so on are given in this order by hugeplan.fleet.ingest.batch.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy.engine import make_url

from hugeplan.benchmarks.records import RunRecord, WinsRecord
from hugeplan.db.base import Base
from hugeplan.db.exchange import Statement
from hugeplan.db.models import NodeFindingRow, NodeRow, NodeStateRow, RunRow, RunWinsRow, SampleHourRow, SampleRow
from hugeplan.db.retention import HEARD_AT
from hugeplan.events import records as events

_DIALECT: Final = make_url("postgresql://").get_dialect()()


def _columns(row: type[Base], *names: str) -> dict[str, str]:
    """Columns of a table with their types; all where none is named."""
    columns = row.__table__.c
    return {name: columns[name].type.compile(dialect=_DIALECT) for name in names or columns.keys()}


_NODE: Final = _columns(NodeRow, "id", "machine_id", "first_report_at")
_RUN_COLUMNS: Final = _columns(NodeRow, "latest_run_id", "effective_granule_bytes")
_OTHERS: Final = {"labels_set", "sealed_until", "tried_at", "own_tried_at"} | _NODE.keys() | _RUN_COLUMNS.keys()
NODE_COLUMNS: Final = {name: kind for name, kind in _columns(NodeRow).items() if name not in _OTHERS}
"""What the newest sample says; written together."""

_IN_FULL: Final = _columns(NodeStateRow, "inventory", "sample", "collectors", "told")
_STATE_COLUMNS: Final = _IN_FULL | _columns(NodeStateRow, "processes_kept")
_FINDINGS: Final = _columns(NodeStateRow, "findings")
_MEASURED: Final = {"measured": "jsonb"} | _RUN_COLUMNS
_SAMPLE_COLUMNS: Final = _columns(SampleRow)
_ROLLED_UP_ONLY: Final = {"ordinary_bytes": "bigint"}


def _records(columns: dict[str, str], parameter: str = "$1") -> str:
    listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return f"jsonb_to_recordset({parameter}::jsonb) AS r({listed})"


def _insert(table: str, columns: dict[str, str]) -> str:
    names = ", ".join(columns)
    return f"INSERT INTO {table} ({names}) SELECT {names} FROM {_records(columns)}"  # noqa: S608 - constants


def _changes(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} = r.{name}" for name in columns)


def _update(table: str, key: str, columns: dict[str, str]) -> str:
    return (
        f"UPDATE {table} SET {_changes(columns)} FROM {_records({key: 'uuid'} | columns)} WHERE {table}.{key} = r.{key}"  # noqa: S608
    )


BIND_TOKEN: Final = Statement("UPDATE tokens SET machine_id = $1 WHERE id = $2 AND machine_id IS NULL")

LOCK_NODES: Final = Statement("SELECT id FROM nodes WHERE machine_id = ANY($1) FOR UPDATE SKIP LOCKED")
"""The lock puts concurrent reports of one machine in a row. A node that somebody else has locked holds up its own
reports alone: they are tried again. So no order is needed, as nobody is waited for."""

STAND_IN_LINE: Final = (
    Statement("SET LOCAL lock_timeout = '500ms'"),
    Statement("SELECT FROM nodes WHERE machine_id = ANY($1) FOR UPDATE"),
    Statement("SET LOCAL lock_timeout TO DEFAULT"),
)
"""For one report that found its node locked: who only looks whether a lock is free never has it beside those who wait
for it in line, such as the many changes of one planner."""

LOCK_NAMES: Final = Statement("SELECT pg_advisory_xact_lock($1::bigint)")
MOST_NAMESAKES: Final = 16
NAMESAKES: Final = Statement(f"""
SELECT n.name, n.id, n.machine_id, n.heard_at > now() - $3::interval
FROM unnest($1::text[], $2::text[]) AS c(said, machine_id), LATERAL (
    SELECT lower(said) AS whole, CASE WHEN said !~ '^[0-9]+([.]|$)| ' THEN split_part(lower(said), '.', 1) END AS host
) s, LATERAL (
    SELECT nodes.*, {HEARD_AT} AS heard_at FROM (
        SELECT * FROM nodes WHERE lower(name) IN (whole, host)
        UNION ALL SELECT * FROM nodes
        WHERE split_part(lower(name), '.', 1) = host AND whole = host AND strpos(name, ' ') = 0
    ) nodes WHERE nodes.machine_id <> c.machine_id LIMIT {MOST_NAMESAKES}
) n
""")  # noqa: S608 - constants
"""Of each name that a machine says the other nodes that have it, as names of one host are compared
(hugeplan.planner.host_names). All that a fleet has may begin alike: no more are read."""
LOCK_THESE: Final = Statement("SELECT id FROM nodes WHERE id = ANY($1) FOR UPDATE SKIP LOCKED")
RENAME_NODES: Final = Statement(_update("nodes", "id", {"name": "text"}))

WAIT_BRIEFLY: Final = Statement("SET LOCAL lock_timeout = '20ms'")
WAIT: Final = Statement("SET LOCAL lock_timeout TO DEFAULT")
"""Around INSERT_NODES: it waits for whoever makes the same node, which no lock can be asked of before."""

NODES: Final = Statement("""
SELECT n.id, n.machine_id, n.name, n.sampled_at, n.labels_set::text, n.effective_granule_bytes, s.findings::text,
    p.pools::text, p.plan_id, p.outcome, n.sealed_until, s.told::text, n.first_report_at, r.report_id,
    r.document
FROM nodes n JOIN node_states s ON s.node_id = n.id LEFT JOIN plans_in_force p ON p.node_id = n.id
LEFT JOIN LATERAL (
    SELECT * FROM report_references r WHERE r.node_id = n.id ORDER BY r.made_at DESC, r.report_id LIMIT 1
) r ON true
WHERE n.machine_id = ANY($1)
""")
"""The nodes, each with its newest reference. It comes after the lock, as all that is read: a statement sees what was
committed before it began."""

TOKENS_AND_SEEN: Final = Statement("""
SELECT t.id, t.machine_id, w.machine_id, w.report_id, r.node_id, r.content_sha256, r.run_id, r.state, t.name_pattern,
    t.machine_id <> w.machine_id AND EXISTS (SELECT FROM tokens o WHERE o.machine_id = w.machine_id)
FROM unnest($1::uuid[], $2::text[], $3::uuid[]) AS w(token_id, machine_id, report_id)
LEFT JOIN tokens t ON t.id = w.token_id AND t.role = 'agent' AND t.revoked_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > now())
LEFT JOIN nodes n ON n.machine_id = w.machine_id
LEFT JOIN LATERAL (
    SELECT * FROM reports WHERE reports.node_id = n.id AND reports.report_id = w.report_id LIMIT 1
) r ON true
""")
"""For each report its token, where that is good, the report that is stored by its id, where there is one, and whether
its machine has had a token of its own while this one is another's. LATERAL and LIMIT make the whole key a condition of
the index. As a plain join, planned while there were few reports, it read all reports of a node and compared ids.
"""

INSERT_REFERENCES: Final = Statement("""
INSERT INTO report_references (node_id, report_id, made_at, document)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::bytea[])
""")

SEALED_SEEN: Final = Statement("""
SELECT w.node_id, w.report_id, s.start_at
FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) AS w(node_id, report_id, stated_at)
JOIN LATERAL (
    SELECT * FROM (
        SELECT * FROM (
            SELECT * FROM sealed_documents s WHERE s.node_id = w.node_id ORDER BY s.start_at DESC LIMIT 1000
        ) s WHERE w.stated_at IS NULL OR w.stated_at BETWEEN s.taken_from AND s.taken_to LIMIT 100
    ) s WHERE s.report_ids @> ARRAY[w.report_id] LIMIT 1
) s ON true
""")
"""The blocks of reports that have no row of their own any more. They are looked for by the time that they say: no index
of their ids is kept (docs/adr/0042). An agent says which times its blocks have and how many these are, so that a bound
is needed: a thousand are 30 days of a report every seven seconds, and a hundred a day of blocks of a long spool."""

PUT_IN_FORCE: Final = Statement("""
INSERT INTO plans_in_force (node_id, plan_id, pools, source, since, set_by)
VALUES ($1, $2, $3::jsonb, 'label', $4, $5)
ON CONFLICT (node_id) DO UPDATE SET plan_id = excluded.plan_id, pools = excluded.pools, source = excluded.source,
    since = excluded.since, set_by = excluded.set_by, outcome = NULL, verified_at = NULL, checks = '[]'
""")
VERIFIED: Final = Statement(
    _update("plans_in_force", "node_id", {"outcome": "text", "verified_at": "timestamptz", "checks": "jsonb"})
)
MEASURED: Final = Statement("""
SELECT n.machine_id, s.measured::text FROM nodes n JOIN node_states s ON s.node_id = n.id WHERE n.machine_id = ANY($1)
""")

INSERT_NODES: Final = Statement(
    _insert("nodes", _NODE | NODE_COLUMNS | _RUN_COLUMNS) + " ON CONFLICT (machine_id) DO NOTHING RETURNING id"
)
INSERT_STATES: Final = Statement(_insert("node_states", {"node_id": "uuid"} | _STATE_COLUMNS | _FINDINGS))
_LAST_REPORT: Final = "greatest(least(nodes.last_report_at, now()), r.last_report_at)"
"""A marked report that is taken again arrived before others that are known. A service's clock that was ahead does not
let a node be heard for days."""

UPDATE_LAST_REPORT: Final = Statement(f"""
UPDATE nodes SET last_report_at = {_LAST_REPORT}
FROM {_records({"id": "uuid", "last_report_at": "timestamptz"})} WHERE nodes.id = r.id
""")  # noqa: S608 - constants
UPDATE_RUN_OF_NODE: Final = Statement(_update("nodes", "id", _RUN_COLUMNS))
UPDATE_MEASURED: Final = Statement(_update("node_states", "node_id", {"measured": "jsonb", "told": "jsonb"}))

_RUN: Final = _columns(RunRow, *RunRecord.__struct_fields__)
INSERT_RUNS: Final = Statement(f"""
WITH win AS ({_insert("run_wins", _columns(RunWinsRow, *WinsRecord.__struct_fields__))})
INSERT INTO runs ({", ".join(_RUN)}, document)
SELECT {", ".join(f"r.{name}" for name in _RUN)}, d.document
FROM {_records(_RUN, "$2")} JOIN unnest($3::uuid[], $4::bytea[]) AS d(id, document) ON d.id = r.id
""")  # noqa: S608 - constants
"""Runs with their wins. That the wins are of a run that is there is judged when the whole statement is done."""


_TOTALS: Final = {
    "samples": "count(*)",
    "mem_available_bytes_sum": "coalesce(sum(CAST(mem_available_bytes AS double precision)), 0)",
    "mem_available_samples": "count(mem_available_bytes)",
}
_EXTREMES: Final = {"max": "greatest", "min": "least"}


def roll_up(name: str, table: str, source: str) -> str:
    """Queries of a WITH that add samples to rows of their hour or day (``name``). Sums and extremes, in any order."""
    # Rows are updated by themselves: ON CONFLICT logs a lock of each before.
    parts = ((column, column.rpartition("_")[::2]) for column in _columns(SampleHourRow))
    extremes = {column: part for column, part in parts if part[1] in _EXTREMES}
    added = _TOTALS | {column: f"{kind}({value})" for column, (value, kind) in extremes.items()}
    together = [f"{column} = t.{column} + excluded.{column}" for column in _TOTALS]
    together += [f"{one} = {_EXTREMES[kind]}(t.{one}, excluded.{one})" for one, (_, kind) in extremes.items()]
    key, changes = "node_id, start_at", ", ".join(together)
    return f"""
{name}_added AS MATERIALIZED (
    SELECT node_id, date_trunc('{name}', taken_at, 'UTC') AS start_at,
        {", ".join(f"{value} AS {column}" for column, value in added.items())}
    FROM {source} GROUP BY 1, 2
),
{name}_updated AS (
    UPDATE {table} t SET {changes} FROM {name}_added excluded
    WHERE (t.node_id, t.start_at) = (excluded.node_id, excluded.start_at) RETURNING t.node_id, t.start_at
),
{name} AS (
    INSERT INTO {table} AS t ({key}, {", ".join(added)}) SELECT * FROM {name}_added a
    WHERE NOT EXISTS (SELECT FROM {name}_updated u WHERE (u.node_id, u.start_at) = (a.node_id, a.start_at))
    ON CONFLICT ({key}) DO UPDATE SET {changes}
)
"""  # noqa: S608 - constants


_SAMPLE_NAMES: Final = ", ".join(_SAMPLE_COLUMNS)
INSERT_REPORTS: Final = Statement(f"""
WITH rows AS MATERIALIZED (
    SELECT * FROM {_records(_SAMPLE_COLUMNS | _ROLLED_UP_ONLY, "$10")}
),
changed AS MATERIALIZED (
    SELECT * FROM {_records({"id": "uuid"} | NODE_COLUMNS | _STATE_COLUMNS | _FINDINGS | _MEASURED, "$11")}
),
state AS (
    UPDATE node_states SET {", ".join(f"{name} = coalesce(r.{name}, node_states.{name})" for name in _IN_FULL)},
        processes_kept = r.processes_kept, processes = '[]',
        base_kept = NULL, newest_kept = NULL, newest_document = NULL,
        findings = CASE WHEN node_states.findings = r.findings THEN node_states.findings ELSE r.findings END,
        measured = coalesce(r.measured, node_states.measured)
    FROM changed r WHERE node_states.node_id = r.id AND (
        num_nonnulls(r.inventory, r.measured, r.told) > 0
        OR node_states.findings <> r.findings OR node_states.processes <> '[]'
        OR num_nonnulls(node_states.processes_kept, node_states.newest_kept, node_states.newest_document) > 0)
),
node AS (
    UPDATE nodes SET {_changes(NODE_COLUMNS).replace("= r.last_report_at", f"= {_LAST_REPORT}")},
        latest_run_id = CASE WHEN r.measured IS NULL THEN nodes.latest_run_id ELSE r.latest_run_id END,
        effective_granule_bytes = CASE WHEN r.measured IS NULL THEN nodes.effective_granule_bytes
            ELSE r.effective_granule_bytes END
    FROM changed r WHERE nodes.id = r.id
),
document AS (
    INSERT INTO report_documents (node_id, report_id, received_at, document)
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::bytea[])
),
sample AS (INSERT INTO samples ({_SAMPLE_NAMES}) SELECT {_SAMPLE_NAMES} FROM rows),
{roll_up("hour", "sample_hours", "rows")},
{roll_up("day", "sample_days", "rows")},
token AS (
    UPDATE tokens SET last_used_at = now() FROM (
        SELECT id FROM tokens WHERE id = ANY($9)
            AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute') FOR NO KEY UPDATE SKIP LOCKED
    ) due WHERE tokens.id = due.id
)
INSERT INTO reports (node_id, report_id, received_at, content_sha256, run_id, schema_version, state)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $5::bytea[],
    $6::uuid[], $7::smallint[], $8::text[])
""")  # noqa: S608 - constants
"""What every report adds and changes, in one statement: each of its parts as a statement of its own costs as much
again. ``changed`` are the nodes that were there before, with their states. A state that stays is not written, and a
value that stays keeps its place outside the row. A token that somebody else has locked is noted with a later report.
"""

DELETE_FINDINGS: Final = Statement("DELETE FROM node_findings WHERE node_id = ANY($1)")
INSERT_FINDINGS: Final = Statement(
    _insert("node_findings", _columns(NodeFindingRow)) + " ON CONFLICT (node_id, code, subject) DO NOTHING"
)
LOCK_EVENTS: Final = Statement(events.LOCK_EVENTS)
INSERT_EVENTS: Final = Statement(events.INSERT_EVENTS.replace("%s", "$1"))

"""A synthetic fleet into the database: COPY for nodes and runs, one statement per table for history."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import psycopg
from psycopg import Connection, sql

from hugeplan.benchmarks.records import RunRecord, WinsRecord, run_record, wins_records
from hugeplan.documents.against import against
from hugeplan.documents.decoding import convert
from hugeplan.documents.kept import pack
from hugeplan.documents.report import Report
from hugeplan.documents.tlbbench import TlbbenchDocument
from hugeplan.fleet.findings.base import PlannedPool
from hugeplan.fleet.hardware_state import MeasuredState, measured_alone, packed, with_run
from hugeplan.fleet.ingest.incoming import Incoming
from hugeplan.fleet.ingest.node_update import Node
from hugeplan.fleet.ingest.statements import NODE_COLUMNS
from hugeplan.planner.model import MIB
from tools.seed.fleet import Machine, SyntheticNode, nodes
from tools.seed.runs import synthetic_run

_PAGE_2M = 2 * MIB
_OFTEN_MEASURED = 10
_JSON_COLUMNS = frozenset(
    {"labels", "pools", "spool", "inventory", "sample", "collectors", "findings", "measured", "sections"}
)


@dataclass(frozen=True, slots=True)
class SeedOptions:
    """What to make. ``samples`` and ``runs`` are per node; ``history_days`` is how far roll-ups reach back.

    ``most_runs``: runs of every tenth node, where that is more than ``runs``: a few nodes are measured often.
    ``documents``: the newest report of a node is kept as an agent's is, and says the node's state.
    """

    nodes: int
    seed: int
    samples: int = 24
    runs: int = 1
    history_days: int = 30
    most_runs: int = 0
    documents: bool = False


@dataclass(frozen=True, slots=True)
class _Measured:
    """What all runs of one machine type have in common: only their ids and times differ."""

    document: TlbbenchDocument
    packed: bytes
    record: RunRecord
    wins: list[WinsRecord]


@dataclass(slots=True)
class _Rows:
    """Rows by table, in the order of ``columns``, and the documents of runs that were made for them."""

    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    documents: dict[tuple[str, bool], _Measured] = field(default_factory=dict)

    def add(self, table: str, row: dict[str, Any]) -> None:
        self.tables.setdefault(table, []).append(row)


def seed_fleet(url: str, options: SeedOptions, say: Callable[[str], None] = lambda _: None) -> int:
    """Make the fleet in one transaction and return its nodes. The synthetic nodes that were there are replaced."""
    now = datetime.now(UTC).replace(microsecond=0)
    with psycopg.connect(url, application_name="tools.seed") as connection:
        _remove_synthetic(connection)
        made = _copy_nodes(connection, options, now)
        say(f"{made} nodes with their runs")
        _history(connection, options, now)
        say(f"{made * options.samples} samples, {options.history_days} days of roll-ups")
    with psycopg.connect(url, autocommit=True) as connection:
        for table in ("nodes", "node_states", "runs", "run_wins", "samples", "sample_hours", "sample_days"):
            connection.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table)))
    return made


def _remove_synthetic(connection: Connection[Any]) -> None:
    for table in ("samples", "sample_hours", "sample_days", "report_documents"):
        connection.execute(
            sql.SQL("DELETE FROM {} USING nodes n WHERE n.id = node_id AND n.synthetic").format(sql.Identifier(table))
        )
    connection.execute("DELETE FROM nodes WHERE synthetic")


def _copy_nodes(connection: Connection[Any], options: SeedOptions, now: datetime) -> int:
    rows = _Rows()
    made = 0
    for synthetic in nodes(options.nodes, options.seed, now.isoformat()):
        runs = max(options.runs, options.most_runs) if made % _OFTEN_MEASURED == 0 else options.runs
        _add_node(rows, synthetic, options, runs if synthetic.measured else 0, now)
        made += 1
        if made % 1000 == 0:
            _flush(connection, rows)
    _flush(connection, rows)
    return made


def _add_node(
    rows: _Rows,
    synthetic: SyntheticNode,
    options: SeedOptions,
    runs: int,
    now: datetime,
) -> None:
    arrived = now - timedelta(seconds=synthetic.silent_seconds)
    report = convert(Report, synthetic.report)
    planned = None if synthetic.plan_pages is None else (PlannedPool(_PAGE_2M, synthetic.plan_pages),)
    node = Node(
        id=synthetic.id,
        name=report.node_name,
        is_new=True,
        sampled_at=None,
        labels_set={},
        measured=MeasuredState(),
        findings=[],
        planned=planned,
    )
    for number in range(runs):
        _add_run(rows, node, synthetic, arrived, number)
    node.apply(_incoming(synthetic, report, arrived), None, {})
    rows.add(
        "nodes",
        {
            "id": node.id,
            "machine_id": report.machine_id,
            "first_report_at": now - timedelta(days=options.history_days),
            "latest_run_id": node.measured.latest.run_id if node.measured.latest else None,
            "effective_granule_bytes": node.measured.effective_granule_bytes,
            **{name: node.columns.get(name) for name in NODE_COLUMNS},
        },
    )
    measured = packed(node.measured) if node.measured.latest else None
    state = {name: node.state[name] for name in ("inventory", "sample", "processes_kept", "collectors", "findings")}
    if options.documents:
        _add_document(rows, node, synthetic, arrived)
        state["processes_kept"] = None
    rows.add("node_states", {"node_id": node.id, "measured": measured, **state})
    for finding in node.findings:
        rows.add(
            "node_findings",
            {
                "node_id": node.id,
                "code": finding.code,
                "subject": finding.subject,
                "state": finding.state,
                "title": finding.title,
                "since": finding.since,
            },
        )
    if planned is not None:
        rows.add(
            "plans_in_force",
            {
                "node_id": node.id,
                "pools": list(planned),
                "source": "hand",
                "since": now - timedelta(days=options.history_days),
                "set_by": "tools.seed",
            },
        )


def _add_document(rows: _Rows, node: Node, synthetic: SyntheticNode, arrived: datetime) -> None:
    """The newest report, as ingest keeps one that its node's others will refer to, with its sample."""
    raw = json.dumps(synthetic.report, separators=(",", ":")).encode()
    ids = {"node_id": node.id, "report_id": uuid.UUID(synthetic.report["report_id"])}
    sha256 = hashlib.sha256(raw).digest()
    rows.add("reports", {**ids, "received_at": arrived, "content_sha256": sha256})
    rows.add("report_references", {**ids, "made_at": arrived, "document": pack(raw)})
    document = against(raw, ids["report_id"], ids["report_id"], raw)
    rows.add("report_documents", {**ids, "received_at": arrived, "document": document})
    memory = synthetic.report["sample"]["memory"]
    numbers = ("mem_total_bytes", "mem_available_bytes", "page_tables_bytes", "anon_huge_pages_bytes", "hugetlb_bytes")
    of_sample = {name: memory.get(name) for name in numbers}
    rows.add("samples", {**ids, "taken_at": arrived, **of_sample, "pool_idle_bytes": node.columns["pool_idle_bytes"]})


def _add_run(rows: _Rows, node: Node, synthetic: SyntheticNode, arrived: datetime, number: int) -> None:
    """The run of ``number`` days ago. The newest is the first, and the only one that the node's state is made of."""
    started = arrived - timedelta(days=number)
    made = _measured(rows, synthetic.machine, synthetic.fractured, started)
    run_id = uuid.uuid5(node.id, started.isoformat())
    ids = {"node_id": node.id, "id": run_id}
    record = msgspec.structs.replace(made.record, **ids, started_at=started, stored_at=started, ordered_at=started)
    if number == 0:
        node.measured = with_run(node.measured, record, measured_alone(made.document, record))
    rows.add("runs", {**msgspec.structs.asdict(record), "document": made.packed})
    for wins in made.wins:
        rows.add("run_wins", {**msgspec.structs.asdict(wins), "node_id": node.id, "run_id": run_id})


def _measured(rows: _Rows, machine: Machine, fractured: bool, started: datetime) -> _Measured:
    key = (machine.brand, fractured)
    if key not in rows.documents:
        content = synthetic_run(machine, started.isoformat(), fractured=fractured)
        document = convert(TlbbenchDocument, content)
        nobody = uuid.UUID(int=0)
        rows.documents[key] = _Measured(
            document=document,
            packed=pack(json.dumps(content).encode()),
            record=run_record(document, node_id=nobody, run_id=nobody, received_at=started),
            wins=wins_records(document, node_id=nobody, run_id=nobody),
        )
    return rows.documents[key]


def _incoming(synthetic: SyntheticNode, report: Report, arrived: datetime) -> Incoming:
    return Incoming(
        token_id=uuid.UUID(int=0),
        received_at=arrived,
        report_id=report.report_id,
        machine_id=report.machine_id,
        schema_version=1,
        parsed=report,
        document=b"",
        content=None,
        content_sha256=b"",
        run=None,
        taken_at=arrived,
        clock_ahead_seconds=synthetic.clock_ahead_seconds or None,
    )


def _flush(connection: Connection[Any], rows: _Rows) -> None:
    for table in (
        "nodes", "node_states", "runs", "run_wins", "node_findings", "plans_in_force", "reports", "report_references",
        "report_documents", "samples",
    ):  # fmt: skip
        _copy(connection, table, rows.tables.get(table, ()))
    rows.tables.clear()


def _copy(connection: Connection[Any], table: str, found: Sequence[dict[str, Any]]) -> None:
    if not found:
        return
    columns = list(found[0])
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in found:
            copy.write_row(
                [
                    msgspec.json.encode(value).decode() if name in _JSON_COLUMNS and value is not None else value
                    for name, value in row.items()
                ]
            )


# Use follows the day and the week, on top of each cluster's growth. hashtext makes it the same for the same node.
AVAILABLE = """greatest(n.mem_total_bytes / 50, CAST(n.mem_available_bytes * (1 + 0.05 *
    sin(extract(epoch FROM {at}) / 86400 * 2 * pi() + hashtext(n.name) %% 7)) AS bigint))"""
# What moves is anonymous memory: what less is available than in the node's own sample is in use there.
ANON = """greatest(0, CAST(s.sample -> 'memory' ->> 'anon_pages_bytes' AS bigint)
    + n.mem_available_bytes - v.available)"""
SHMEM = "CAST(s.sample -> 'memory' ->> 'shmem_bytes' AS bigint)"
MEMORY = "s.sample -> 'memory' || jsonb_build_object('mem_available_bytes', v.available, 'anon_pages_bytes', {anon})"
_SAMPLES = f"""
INSERT INTO samples (node_id, taken_at, report_id, mem_total_bytes, mem_available_bytes, page_tables_bytes,
    anon_huge_pages_bytes, hugetlb_bytes, pool_idle_bytes, memory, pools)
SELECT n.id, t, gen_random_uuid(), n.mem_total_bytes, v.available, n.page_tables_bytes, n.anon_huge_pages_bytes,
    n.pool_bytes, n.pool_idle_bytes,
    {MEMORY.format(anon=ANON)}, s.sample -> 'pools'
FROM nodes n JOIN node_states s ON s.node_id = n.id
CROSS JOIN generate_series(%(now)s - (%(count)s - 1) * interval '1 minute', %(now)s, interval '1 minute') AS t
CROSS JOIN LATERAL (SELECT {AVAILABLE.format(at="t")} AS available) AS v
WHERE n.synthetic AND t <= n.sampled_at
"""  # noqa: S608 - constants

_ROLL_UP = """
INSERT INTO {table} (node_id, start_at, samples, mem_total_bytes_max, mem_available_bytes_min, mem_available_bytes_sum,
    mem_available_samples, page_tables_bytes_max, anon_huge_pages_bytes_max, hugetlb_bytes_min, hugetlb_bytes_max,
    pool_idle_bytes_min, pool_idle_bytes_max, ordinary_bytes_max, anon_shmem_bytes_max)
SELECT n.id, t, {samples}, n.mem_total_bytes, v.available, CAST(v.available AS double precision) * {samples}, {samples},
    n.page_tables_bytes, n.anon_huge_pages_bytes, n.pool_bytes, n.pool_bytes, n.pool_idle_bytes, n.pool_idle_bytes,
    greatest(0, n.mem_total_bytes - v.available - coalesce(n.pool_bytes, 0)), {anon} + {shmem}
FROM nodes n JOIN node_states s ON s.node_id = n.id
CROSS JOIN generate_series(date_trunc('{width}', %(now)s - make_interval(days => %(days)s), 'UTC'),
    date_trunc('{width}', %(now)s, 'UTC'), interval '1 {width}') AS t
CROSS JOIN LATERAL (SELECT CAST(least(n.mem_total_bytes - coalesce(n.pool_bytes, 0), n.mem_available_bytes * (1 +
    (extract(epoch FROM %(now)s - t) / 86400) * (abs(hashtext(n.name)) %% 5) * 0.001
    + 0.04 * sin(extract(epoch FROM t) / 86400 * 2 * pi() + hashtext(n.name) %% 7))) AS bigint) AS available) AS v
WHERE n.synthetic
"""


# A day's extremes are those of its hours, and an hour's those of its samples, as in what agents report.
_EXTREMES = """
UPDATE {table} t SET mem_available_bytes_min = least(t.mem_available_bytes_min, x.low),
    anon_shmem_bytes_max = greatest(t.anon_shmem_bytes_max, x.high)
FROM (SELECT f.node_id, date_trunc('{width}', f.{at}, 'UTC') AS start_at, min(f.{low}) AS low, max({high}) AS high
    FROM {source} f JOIN nodes n ON n.id = f.node_id AND n.synthetic GROUP BY 1, 2) AS x
WHERE t.node_id = x.node_id AND t.start_at = x.start_at
    AND (x.low < t.mem_available_bytes_min OR x.high > t.anon_shmem_bytes_max)
"""
_OF_SAMPLES = {
    "table": "sample_hours", "width": "hour", "source": "samples", "at": "taken_at", "low": "mem_available_bytes",
    "high": "CAST(f.memory ->> 'anon_pages_bytes' AS bigint) + CAST(f.memory ->> 'shmem_bytes' AS bigint)",
}  # fmt: skip
_OF_HOURS = {
    "table": "sample_days", "width": "day", "source": "sample_hours", "at": "start_at",
    "low": "mem_available_bytes_min", "high": "f.anon_shmem_bytes_max",
}  # fmt: skip


def _history(connection: Connection[Any], options: SeedOptions, now: datetime) -> None:
    values = {"now": now, "count": options.samples, "days": options.history_days}
    if options.samples:
        connection.execute(_SAMPLES, values)
    for table, width, samples in (("sample_hours", "hour", 60), ("sample_days", "day", 1440)):
        # Hours of a large fleet are its largest table; a week of them is enough to look at.
        days = min(options.history_days, 7) if width == "hour" else options.history_days
        connection.execute(
            _ROLL_UP.format(table=table, width=width, samples=samples, anon=ANON, shmem=SHMEM),
            values | {"days": days},
        )
    for parts in (_OF_SAMPLES, _OF_HOURS):
        connection.execute(_EXTREMES.format(**parts))

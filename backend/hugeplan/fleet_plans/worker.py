"""The process of one job: ``python -m hugeplan.fleet_plans.worker``, with the database in HUGEPLAN_DATABASE_URL.

The job's id comes as a line on standard input, so that the process can be made ready before there is a job.

It reads the nodes, plans shape by shape, says how far it is, and writes the results in one transaction. It looks for
a request to cancel whenever it says how far it is.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

import msgspec
import psycopg
from psycopg import Connection
from sqlalchemy import select
from sqlalchemy.dialects import postgresql

from hugeplan.db.models import NodeRow, NodeStateRow
from hugeplan.documents.decoding import decode, struct_of
from hugeplan.documents.report import Inventory, Sample
from hugeplan.events.records import INSERT_EVENTS, LOCK_EVENTS
from hugeplan.fleet.facts import IncompleteReportError, SharedHardware, node_facts
from hugeplan.fleet.hardware_state import MeasuredState, unpacked
from hugeplan.fleet.selector import NodeSelector, conditions
from hugeplan.hardware import catalogue
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.fleet import FleetPlan, plan_fleet
from hugeplan.planner.model import HardwareFacts, NodeFacts, PlanRequest
from hugeplan.planner.units import format_bytes
from hugeplan.scenario_file import ScenarioDocument, to_request

PROGRESS_SECONDS: Final = 0.2
FINE, ATTENTION, WRONG = 0, 1, 2


class CancelledError(Exception):
    """Somebody asked the job to end."""


@dataclass(frozen=True, slots=True)
class Selected:
    """One selected node. ``facts`` is None where its report lacks what the planner needs; ``problem`` says what."""

    id: UUID
    name: str
    machine_type: str | None
    mem_total_bytes: int
    facts: NodeFacts | None
    problem: str | None


class Job:
    """One job over one connection for its results and another for its progress."""

    def __init__(self, url: str, job_id: UUID) -> None:
        self._job_id = job_id
        self._data: Connection[Any] = psycopg.connect(url, application_name="hugeplan fleet plan")
        self._status: Connection[Any] = psycopg.connect(url, autocommit=True, application_name="hugeplan fleet plan")
        self._last_said = 0.0
        self._started = time.monotonic()

    def run(self) -> None:
        """Plan, and store the results or why there are none."""
        if not self._begin():
            return
        try:
            self._plan()
        except CancelledError:
            self._end("cancelled", None)
        except (PlannerError, ValueError) as error:
            self._end("failed", str(error)[:2000])

    def _begin(self) -> bool:
        """Take the job. False when it is not there to be taken: cancelled before its turn."""
        taken = self._status.execute(
            "UPDATE fleet_plans SET status = 'running', started_at = now(), heartbeat_at = now()"
            " WHERE id = %s AND status = 'queued' RETURNING id",
            [self._job_id],
        ).fetchone()
        return taken is not None

    def _say(self, done: int, plans: int) -> None:
        """Tell how far it is, a few times per second. CancelledError when somebody asked to end it."""
        now = time.monotonic()
        if now - self._last_said < PROGRESS_SECONDS:
            return
        self._last_said = now
        row = self._status.execute(
            "UPDATE fleet_plans SET nodes_done = %s, plans_computed = %s, heartbeat_at = now()"
            " WHERE id = %s RETURNING cancel_requested",
            [done, plans, self._job_id],
        ).fetchone()
        if row is None or row[0]:
            raise CancelledError

    def _end(self, status: str, error: str | None) -> None:
        self._data.rollback()
        self._status.execute(
            "UPDATE fleet_plans SET status = %s, error = %s, finished_at = now() WHERE id = %s",
            [status, error, self._job_id],
        )

    def _plan(self) -> None:
        row = self._data.execute(
            "SELECT selector::text, scenario::text, name FROM fleet_plans WHERE id = %s", [self._job_id]
        ).fetchone()
        assert row is not None
        scenario = ScenarioDocument.model_validate_json(row[1])
        nodes = self._nodes(NodeSelector.model_validate_json(row[0]))
        self._say(0, 0)
        usable = [node for node in nodes if node.facts is not None]
        requests = _requests(scenario, [node.facts for node in usable if node.facts is not None])
        found = plan_fleet(requests, progress=self._say)
        self._last_said = 0.0
        self._say(len(nodes), found.plans_computed)
        self._store(nodes, usable, found, row[2])

    def _nodes(self, selector: NodeSelector) -> list[Selected]:
        """The selected nodes. All of a machine type share the hardware facts of the one that was measured last."""
        hardware, shared = self._hardware(), SharedHardware()
        sql, values = _nodes_statement(selector)
        selected = []
        with self._data.cursor(name="nodes") as cursor:
            cursor.itersize = 1000
            for row in cursor.execute(sql, values):
                selected.append(_selected(row, hardware.get(row[2]), shared))
                self._say(0, 0)
        return selected

    def _hardware(self) -> dict[str | None, HardwareFacts | None]:
        rows = self._data.execute(
            # The narrow row of its newest run says when a node was measured: its state is large to read.
            "SELECT newest.machine_type, s.measured::text FROM ("
            " SELECT DISTINCT ON (n.machine_type) n.machine_type, n.id FROM nodes n"
            " JOIN runs r ON r.node_id = n.id AND r.id = n.latest_run_id"
            " ORDER BY n.machine_type, r.ordered_at DESC, n.id"
            ") AS newest JOIN node_states s ON s.node_id = newest.id WHERE s.measured IS NOT NULL"
        )
        decoder = msgspec.json.Decoder(MeasuredState)
        return {machine: unpacked(decoder.decode(measured)).hardware for machine, measured in rows}

    def _store(self, nodes: Sequence[Selected], usable: Sequence[Selected], found: FleetPlan, name: str) -> None:
        lines = {node.id: line for node, line in zip(usable, found.nodes, strict=True)}
        rows = [_row(node, lines.get(node.id), found) for node in nodes]
        rows.sort(key=lambda row: (-row["severity"], row["name"], str(row["node_id"])))
        machines = {line.group: node.machine_type for node, line in zip(usable, found.nodes, strict=True)}
        with self._data.cursor() as cursor:
            with cursor.copy(
                "COPY fleet_plan_groups (fleet_plan_id, number, nodes, machine_type, headline, pools, plan) FROM STDIN"
            ) as copy:
                for number, group in enumerate(found.groups):
                    pools = [
                        {"numa_node": pool.numa_node, "page_bytes": pool.page_bytes, "pages": pool.pages}
                        for pool in group.plan.pools
                        if pool.pages
                    ]
                    copy.write_row(
                        (
                            self._job_id,
                            number,
                            group.nodes,
                            machines[number],
                            group.plan.headline,
                            _json(pools),
                            _json(group.plan),
                        )
                    )
            columns = (*rows[0],)
            with cursor.copy(
                f"COPY fleet_plan_nodes (fleet_plan_id, position, {', '.join(columns)}) FROM STDIN"
            ) as copy:
                for position, row in enumerate(rows):
                    values = [_json(v) if column == "exceptions" else v for column, v in row.items()]
                    copy.write_row((self._job_id, position, *values))
            summary = self._summary(rows, found)
            cursor.execute(
                "UPDATE fleet_plans SET status = 'done', finished_at = now(), nodes_done = nodes_total,"
                " plans_computed = %s, summary = %s::jsonb WHERE id = %s",
                [found.plans_computed, _json(summary), self._job_id],
            )
            text = f"The fleet plan {name} is done: {len(rows)} nodes, {summary['nodes_wrong']} wrong."
            cursor.execute(LOCK_EVENTS)
            cursor.execute("SELECT now()")
            at = cursor.fetchone()
            event = {"at": at[0] if at else None, "kind": "fleet_plan_finished", "text": text}
            cursor.execute(INSERT_EVENTS, [_json([event])])
        self._data.commit()

    def _summary(self, rows: Sequence[dict[str, Any]], found: FleetPlan) -> dict[str, Any]:
        return {
            "nodes": len(rows),
            "groups": len(found.groups),
            "plans_computed": found.plans_computed,
            "nodes_wrong": sum(row["severity"] == WRONG for row in rows),
            "nodes_attention": sum(row["severity"] == ATTENTION for row in rows),
            "nodes_without_facts": sum(row["group_number"] is None for row in rows),
            "nodes_not_fitting": sum(row["fits"] is False for row in rows),
            "nodes_missing_pages": sum(bool(row["missing_pages"]) for row in rows),
            "nodes_idle_pages": sum(bool(row["idle_pages"]) for row in rows),
            "mem_total_bytes": sum(row["mem_total_bytes"] for row in rows),
            "locked_bytes": found.locked_bytes,
            "seconds": round(time.monotonic() - self._started, 3),
        }


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _nodes_statement(selector: NodeSelector) -> tuple[str, dict[str, Any]]:
    """The selector's statement in psycopg's terms: the conditions are written once, for SQLAlchemy."""
    statement = (
        select(NodeRow.id, NodeRow.name, NodeRow.machine_type, NodeRow.mem_total_bytes)
        .join(NodeStateRow, NodeStateRow.node_id == NodeRow.id)
        .where(*conditions(selector))
        .order_by(NodeRow.name, NodeRow.id)
    )
    compiled = statement.compile(dialect=postgresql.psycopg.dialect())  # type: ignore[no-untyped-call]
    sql = str(compiled).replace(
        "SELECT nodes.id, nodes.name, nodes.machine_type, nodes.mem_total_bytes",
        "SELECT nodes.id, nodes.name, nodes.machine_type, nodes.mem_total_bytes, node_states.inventory::text,"
        " node_states.sample::text",
        1,
    )
    return sql, dict(compiled.params)


def _selected(row: Sequence[Any], measured: HardwareFacts | None, shared: SharedHardware) -> Selected:
    node_id, name, machine_type, mem_total_bytes, inventory, sample = row
    try:
        facts = node_facts(
            name,
            decode(Inventory, inventory.encode()),
            decode(Sample, sample.encode()),
            measured=measured,
            hardware=shared,
        )
    except IncompleteReportError as error:
        return Selected(node_id, name, machine_type, mem_total_bytes, None, str(error))
    return Selected(node_id, name, machine_type, mem_total_bytes, facts, None)


def _requests(scenario: ScenarioDocument, facts: Sequence[NodeFacts]) -> list[PlanRequest]:
    """One request per node. Everything but the node is the same object in all of them, so it is judged once."""
    if not facts:
        return []
    first = to_request(scenario, facts[0])
    return [replace(first, node=node, sample=None) for node in facts]


def _row(node: Selected, line: Any, found: FleetPlan) -> dict[str, Any]:
    """One line of the results; exceptions are what a reader must look at."""
    base = {"node_id": node.id, "name": node.name}
    if line is None:
        return base | {
            "severity": WRONG,
            "exceptions": [node.problem or "The node cannot be planned."],
            "group_number": None,
            "mem_total_bytes": node.mem_total_bytes,
            "locked_bytes": None,
            "free_bytes": None,
            "fits": None,
            "missing_pages": None,
            "idle_pages": None,
        }
    exceptions: list[str] = []
    severity = FINE
    plan = found.groups[line.group].plan
    if not line.fits:
        exceptions.append(
            f"The plan does not fit: {format_bytes(-line.free_bytes)} are missing."
            if line.free_bytes < 0
            else "The plan does not fit on one of the NUMA nodes."
        )
        severity = WRONG
    for finding in plan.findings:
        if finding.state in ("wrong", "attention") and finding.code not in _PER_NODE:
            exceptions.append(f"{finding.subject}: {finding.title}")
            severity = max(severity, WRONG if finding.state == "wrong" else ATTENTION)
    if line.missing_pages:
        exceptions.append(f"{line.missing_pages} pages of the plan are not there.")
        severity = max(severity, ATTENTION)
    return base | {
        "severity": severity,
        "exceptions": exceptions[:20],
        "group_number": line.group,
        "mem_total_bytes": node.mem_total_bytes,
        "locked_bytes": line.locked_bytes,
        "free_bytes": line.free_bytes,
        "fits": line.fits,
        "missing_pages": line.missing_pages,
        "idle_pages": line.idle_pages,
    }


#: Findings of the group's plan that hold for its smallest node alone; a node's own line says it.
_PER_NODE: Final = frozenset({"pool_short", "memory_fit"})


def main() -> int:
    """Run the job that is named on standard input; nothing where that ends without one."""
    struct_of(Inventory)
    struct_of(Sample)
    catalogue.catalogue()
    # What was made so far stays, and facts of nodes have no cycles: looking for some took a tenth of a large job.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    named = sys.stdin.readline().strip()
    if named:
        Job(os.environ["HUGEPLAN_DATABASE_URL"], UUID(named)).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())

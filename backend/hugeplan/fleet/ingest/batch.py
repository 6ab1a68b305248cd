"""One batch of reports in one transaction: what is stored is read, each report is judged, and the rows are written."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final, Literal
from uuid import UUID

import msgspec
from psycopg import AsyncConnection

from hugeplan.access.machines import CLONE_MARK
from hugeplan.benchmarks.records import RunRecord, WinsRecord, run_record, wins_records
from hugeplan.documents.report import Report
from hugeplan.errors import ConflictError, FieldProblem, ForbiddenError, UnauthenticatedError, invalid_input
from hugeplan.events.records import INSERT_EVENTS, LOCK_EVENTS
from hugeplan.fleet.findings.base import PlannedPool
from hugeplan.fleet.hardware_state import MeasuredState
from hugeplan.fleet.ingest import statements
from hugeplan.fleet.ingest.in_force import LABEL, SavedPlans, labelled_plan
from hugeplan.fleet.ingest.incoming import Incoming, is_same_content, lenient
from hugeplan.fleet.ingest.node_update import KeptFinding, Node, anon_shmem_bytes, ordinary_bytes, pool_idle_bytes
from hugeplan.fleet.schemas import ReportReceipt

_PARSED: Final = "parsed"
_NEWER: Final = "newer_schema"

_findings = msgspec.json.Decoder(list[KeptFinding])
_planned = msgspec.json.Decoder(tuple[PlannedPool, ...])
_measured = msgspec.json.Decoder(MeasuredState)


def _json(rows: Any) -> str:
    return msgspec.json.encode(rows).decode()


class Batch:
    """One batch in one transaction. ``checked``: machines by token where the tokens were checked before."""

    def __init__(
        self,
        connection: AsyncConnection[Any],
        incoming: Sequence[Incoming],
        plans: SavedPlans,
        *,
        checked: dict[UUID, str | None] | None = None,
    ) -> None:
        self._connection = connection
        self._checked = checked
        self._plans = plans
        self._incoming = incoming
        self._start()

    def _start(self) -> None:
        self.answers: dict[int, ReportReceipt | Exception] = {}
        self._nodes: dict[str, Node] = {}
        self._stored: list[tuple[Incoming, Node]] = []
        self._runs: list[tuple[RunRecord, bytes]] = []
        self._wins: list[WinsRecord] = []
        self._binds: list[tuple[str, UUID]] = []

    async def write(self) -> bool:
        """Write everything. False when a new node turned out to be made by another process in this moment."""
        self._start()
        tokens, seen = await self._read()
        bound = dict(tokens if self._checked is None else self._checked)
        for index, incoming in enumerate(self._incoming):
            self.answers[index] = self._take(incoming, bound, seen)
        if not self._stored:
            return True
        return await self._store()

    async def _read(self) -> tuple[dict[UUID, str | None], dict[tuple[str, UUID], tuple[Any, ...]]]:
        """The tokens, the nodes (locked), and the reports that are stored already."""
        machines = sorted({incoming.machine_id for incoming in self._incoming})
        with_runs = sorted({incoming.machine_id for incoming in self._incoming if incoming.run_id})
        execute = self._connection.execute
        # All are sent together: the lock comes first, and each sees what was committed before it.
        nodes = await execute(statements.LOCK_NODES, [machines])
        found = await execute(
            statements.TOKENS_AND_SEEN,
            [
                [incoming.token_id for incoming in self._incoming],
                [incoming.machine_id for incoming in self._incoming],
                [incoming.report_id for incoming in self._incoming],
                [incoming.content_sha256 for incoming in self._incoming],
            ],
        )
        measured = await execute(statements.MEASURED, [with_runs]) if with_runs else None
        for row in await nodes.fetchall():
            self._nodes[row[1]] = _node(row)
        bound: dict[UUID, str | None] = {}
        known: dict[tuple[str, UUID], tuple[Any, ...]] = {}
        for token_id, owner, *seen in await found.fetchall():
            if token_id is not None:
                bound[token_id] = owner
            if seen[2] is not None:
                known[seen[0], seen[1]] = tuple(seen)
        in_force = {node.plan_id for node in self._nodes.values() if node.plan_id is not None}
        await self._plans.read(self._connection, in_force, again=self._newly_labelled())
        for machine_id, state in await measured.fetchall() if measured else ():
            # A node that was made since the lock is met again when this batch begins again.
            if state is not None and machine_id in self._nodes:
                self._nodes[machine_id].measured = _measured.decode(state)
        return bound, known

    def _newly_labelled(self) -> set[UUID]:
        """The plans that labels name and that are not in force yet."""
        found: set[UUID] = set()
        for incoming in self._incoming:
            if incoming.parsed is not None:
                node = self._nodes.get(incoming.machine_id)
                plan_id = labelled_plan(incoming.parsed.labels | (node.labels_set if node else {}))
                if plan_id is not None and (node is None or node.plan_id != plan_id):
                    found.add(plan_id)
        return found

    def _take(
        self, incoming: Incoming, bound: dict[UUID, str | None], seen: dict[tuple[str, UUID], tuple[Any, ...]]
    ) -> ReportReceipt | Exception:
        """Judge one report and note what is to be written for it."""
        refusal = self._refusal(incoming, bound)
        if refusal is not None:
            return refusal
        key = (incoming.machine_id, incoming.report_id)
        if key in seen:
            return _answer_seen(incoming, seen[key])
        node = self._nodes.get(incoming.machine_id)
        run = None
        if node is None:
            report = incoming.parsed or lenient(incoming.content)
            if report is None:
                expected = "1 from a machine that never reported before"
                return invalid_input(
                    [FieldProblem(field="schema_version", value=str(incoming.schema_version), expected=expected)]
                )
            node = self._nodes[incoming.machine_id] = _new_node(report)
            if incoming.parsed is None:
                node.introduce(incoming, report)
        if incoming.run_id is not None and incoming.parsed is not None and incoming.parsed.run is not None:
            document = incoming.parsed.run
            run = run_record(document, node_id=node.id, run_id=incoming.run_id, received_at=incoming.received_at)
            self._runs.append((run, incoming.run_document or b""))
            self._wins += wins_records(document, node_id=node.id, run_id=incoming.run_id, facts=incoming.facts)
        node.apply(incoming, run, self._plans)
        if bound[incoming.token_id] is None:
            bound[incoming.token_id] = incoming.machine_id
            self._binds.append((incoming.machine_id, incoming.token_id))
        self._stored.append((incoming, node))
        state: Literal["parsed", "newer_schema"] = _PARSED if incoming.parsed is not None else _NEWER
        seen[key] = (*key, node.id, incoming.content_sha256, incoming.run_id, state, incoming.document)
        return ReportReceipt(
            report_id=incoming.report_id, node_id=node.id, created=True, run_id=incoming.run_id, state=state
        )

    def _refusal(self, incoming: Incoming, bound: dict[UUID, str | None]) -> Exception | None:
        """An agent reports only for its own machine; an unbound token binds to the first one it names."""
        if incoming.token_id not in bound:
            return UnauthenticatedError("This token is unknown, expired or revoked.")
        owner = bound[incoming.token_id]
        if owner is None:
            owner = incoming.machine_id
        # A clone reports with the token that was cloned with it; whose machine it is was judged before (admit_machine).
        if owner not in {incoming.machine_id, incoming.machine_id.partition(CLONE_MARK)[0]}:
            expected = "the machine the token was enrolled for"
            return ForbiddenError(
                "This agent token belongs to another machine. Enrol this machine, or use its own token.",
                [FieldProblem(field="machine_id", value=incoming.machine_id, expected=expected)],
            )
        return None

    async def _store(self) -> bool:
        nodes = [node for node in self._nodes.values() if node.columns]
        new = [node for node in nodes if node.is_new]
        if new and not await self._insert_nodes(new):
            return False
        before = [node for node in nodes if not node.is_new]
        await self._update_nodes(before)
        await self._insert_reports([node for node in before if node.is_changed_with_its_sample])
        if self._runs:
            await self._insert_runs(nodes)
        for machine_id, token_id in self._binds:
            await self._connection.execute(statements.BIND_TOKEN, [machine_id, token_id])
        await self._keep_verifications(nodes)
        await self._insert_findings_and_events(nodes)
        return True

    async def _keep_verifications(self, nodes: Sequence[Node]) -> None:
        now = max(incoming.received_at for incoming, _ in self._stored)
        for node in nodes:
            if node.put_in_force:
                by = f"label {LABEL}"
                await self._connection.execute(
                    statements.PUT_IN_FORCE, [node.id, node.plan_id, _json(node.planned), now, by]
                )
        rows = [
            {"node_id": node.id, "verified_at": now, **asdict(node.verification)}
            for node in nodes
            if node.verification is not None
        ]
        if rows:
            await self._connection.execute(statements.VERIFIED, [_json(rows)])

    async def _insert_runs(self, nodes: Sequence[Node]) -> None:
        execute = self._connection.execute
        rows, documents = zip(*self._runs, strict=True)
        values = [_json(self._wins), _json(rows), [run.id for run in rows], list(documents)]
        await execute(statements.INSERT_RUNS, values)
        measured = [
            {"node_id": node.id, "measured": node.state["measured"]}
            for node in nodes
            if "measured" in node.state and not node.is_changed_with_its_sample
        ]
        if measured:
            await execute(statements.UPDATE_MEASURED, [_json(measured)])

    async def _insert_nodes(self, new: Sequence[Node]) -> bool:
        machines = {node.id: machine_id for machine_id, node in self._nodes.items()}
        first = {node.id: incoming.received_at for incoming, node in reversed(self._stored)}
        rows = [
            {"id": node.id, "machine_id": machines[node.id], "first_report_at": first[node.id], **node.columns}
            for node in new
        ]
        inserted = await self._connection.execute(statements.INSERT_NODES, [_json(rows)])
        if len(await inserted.fetchall()) != len(new):
            return False
        states = [{"node_id": node.id, "findings": [], **node.state} for node in new]
        await self._connection.execute(statements.INSERT_STATES, [_json(states)])
        return True

    async def _update_nodes(self, nodes: Sequence[Node]) -> None:
        """What changes on nodes beside their newest sample."""
        execute = self._connection.execute
        late = [node for node in nodes if not node.is_changed_with_its_sample]
        if late:
            rows = [{"id": node.id, "last_report_at": node.columns["last_report_at"]} for node in late]
            await execute(statements.UPDATE_LAST_REPORT, [_json(rows)])
        ran = [node for node in nodes if "measured" in node.state and not node.is_changed_with_its_sample]
        if ran:
            rows = [
                {"id": node.id, **{name: node.columns[name] for name in ("latest_run_id", "effective_granule_bytes")}}
                for node in ran
            ]
            await execute(statements.UPDATE_RUN_OF_NODE, [_json(rows)])

    async def _insert_reports(self, sampled: Sequence[Node]) -> None:
        """The reports with their samples, and the nodes that these samples changed."""
        stored = self._stored
        changed = [{"id": node.id, "findings": [], **node.columns, **node.state} for node in sampled]
        samples = [sample_record(incoming, node.id) for incoming, node in stored if incoming.parsed]
        await self._connection.execute(
            statements.INSERT_REPORTS,
            {
                "nodes": [node.id for _, node in stored],
                "reports": [incoming.report_id for incoming, _ in stored],
                "received": [incoming.received_at for incoming, _ in stored],
                "documents": [incoming.document for incoming, _ in stored],
                "hashes": [incoming.content_sha256 for incoming, _ in stored],
                "runs": [incoming.run_id for incoming, _ in stored],
                "versions": [incoming.schema_version for incoming, _ in stored],
                "states": [_PARSED if incoming.parsed is not None else _NEWER for incoming, _ in stored],
                "tokens": [incoming.token_id for incoming, _ in stored],
                "samples": _json(samples),
                "changed": _json(changed),
            },
        )

    async def _insert_findings_and_events(self, nodes: Sequence[Node]) -> None:
        changed = [node for node in nodes if node.findings_changed]
        if changed:
            rows = [{"node_id": node.id, **msgspec.structs.asdict(f)} for node in changed for f in node.findings]
            await self._connection.execute(statements.DELETE_FINDINGS, [[node.id for node in changed]])
            await self._connection.execute(statements.INSERT_FINDINGS, [_json(rows)])
        events = [event for node in nodes for event in node.events]
        if events:
            await self._connection.execute(LOCK_EVENTS)
            await self._connection.execute(INSERT_EVENTS, [_json(events)])


def _node(row: tuple[Any, ...]) -> Node:
    node_id, _, name, sampled_at, labels_set, granule, findings, pools, plan_id, outcome = row
    return Node(
        id=node_id,
        name=name,
        is_new=False,
        sampled_at=sampled_at,
        labels_set=msgspec.json.decode(labels_set),
        measured=MeasuredState(effective_granule_bytes=granule),
        findings=_findings.decode(findings),
        planned=None if pools is None else _planned.decode(pools),
        plan_id=plan_id,
        outcome=outcome,
    )


def _new_node(report: Report) -> Node:
    return Node(
        id=uuid.uuid4(),
        name=report.node_name,
        is_new=True,
        sampled_at=None,
        labels_set={},
        measured=MeasuredState(),
        findings=[],
        planned=None,
    )


def _answer_seen(incoming: Incoming, row: tuple[Any, ...]) -> ReportReceipt | Exception:
    _, report_id, node_id, content_sha256, run_id, state, document = row
    if is_same_content(incoming, content_sha256, document):
        return ReportReceipt(report_id=report_id, node_id=node_id, created=False, run_id=run_id, state=state)
    return ConflictError(
        f"Another report with the id {report_id} is stored.",
        [FieldProblem(field="report_id", value=str(report_id), expected="an id of its own")],
    )


def sample_record(incoming: Incoming, node_id: UUID) -> dict[str, Any]:
    """The columns of a report's sample, and what the roll-ups add up."""
    report = incoming.parsed
    assert report is not None
    memory = report.sample.memory
    return {
        "node_id": node_id,
        "taken_at": incoming.taken_at,
        "report_id": incoming.report_id,
        "mem_total_bytes": memory.mem_total_bytes,
        "mem_available_bytes": memory.mem_available_bytes,
        "page_tables_bytes": memory.page_tables_bytes,
        "anon_huge_pages_bytes": memory.anon_huge_pages_bytes,
        "hugetlb_bytes": memory.hugetlb_bytes,
        "pool_idle_bytes": pool_idle_bytes(report.sample),
        "ordinary_bytes": ordinary_bytes(report.sample),
        "anon_shmem_bytes": anon_shmem_bytes(memory),
        "memory": memory,
        "pools": report.sample.pools,
    }


async def store_kept(connection: AsyncConnection[Any], kept: Incoming) -> None:
    """Store a report that an earlier version kept unread, in the caller's transaction. Its node is there already.

    Its token was checked when it arrived, and may be revoked since.
    """
    batch = Batch(connection, [kept], SavedPlans(), checked={kept.token_id: kept.machine_id})
    await batch.write()
    answer = batch.answers[0]
    if isinstance(answer, Exception):
        raise answer

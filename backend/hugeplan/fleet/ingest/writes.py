"""What is written for a batch of reports that was judged: statements with their parameters, in their order. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal
from uuid import UUID

import msgspec

from hugeplan.benchmarks.records import RunRecord, WinsRecord
from hugeplan.db.exchange import Call, blobs, integers, texts, times, uuids
from hugeplan.fleet.ingest import statements
from hugeplan.fleet.ingest.in_force import LABEL
from hugeplan.fleet.ingest.incoming import Incoming
from hugeplan.fleet.ingest.node_update import Node, anon_shmem_bytes, ordinary_bytes, pool_idle_bytes

State = Literal["parsed", "newer_schema"]
PARSED: Final[State] = "parsed"
NEWER: Final[State] = "newer_schema"

to_json = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Judged:
    """The reports of a batch that are to be stored, each with its node, and what is written beside them.

    ``documents`` are theirs as kept; ``references`` are those of them with which later ones are read; they are whole.
    ``runs`` are with their documents as kept; ``binds`` are machines and the tokens that are theirs from now on.
    """

    stored: list[tuple[Incoming, Node]] = field(default_factory=list)
    documents: list[bytes] = field(default_factory=list)
    references: list[tuple[Incoming, Node]] = field(default_factory=list)
    runs: list[tuple[RunRecord, bytes]] = field(default_factory=list)
    wins: list[WinsRecord] = field(default_factory=list)
    binds: list[tuple[str, UUID]] = field(default_factory=list)


def writes_of(judged: Judged, nodes: Sequence[Node]) -> list[Call]:
    """The statements that store the batch, in their order."""
    before = [node for node in nodes if not node.is_new]
    calls = _node_updates(before)
    if judged.references:
        calls.append(_reference_inserts(judged))
    calls.append(_reports(judged, [node for node in before if node.is_changed_with_its_sample]))
    if judged.runs:
        calls += _run_inserts(judged, nodes)
    calls += [
        (statements.BIND_TOKEN, [machine_id.encode(), str(token_id).encode()]) for machine_id, token_id in judged.binds
    ]
    return calls + _verifications(judged, nodes) + _findings_and_events(nodes)


def _verifications(judged: Judged, nodes: Sequence[Node]) -> list[Call]:
    now = max(incoming.received_at for incoming, _ in judged.stored).isoformat().encode()
    by = f"label {LABEL}".encode()
    calls: list[Call] = [
        (
            statements.PUT_IN_FORCE,
            [str(node.id).encode(), str(node.plan_id).encode(), to_json(node.planned), now, by],
        )
        for node in nodes
        if node.put_in_force
    ]
    rows = [
        {"node_id": node.id, "verified_at": now.decode(), **asdict(node.verification)}
        for node in nodes
        if node.verification is not None
    ]
    if rows:
        calls.append((statements.VERIFIED, [to_json(rows)]))
    return calls


def _run_inserts(judged: Judged, nodes: Sequence[Node]) -> list[Call]:
    rows, documents = zip(*judged.runs, strict=True)
    calls: list[Call] = [
        (
            statements.INSERT_RUNS,
            [to_json(judged.wins), to_json(rows), uuids(run.id for run in rows), blobs(documents)],
        )
    ]
    measured = [
        {"node_id": node.id, **{name: node.state[name] for name in ("measured", "told")}}
        for node in nodes
        if "measured" in node.state and not node.is_changed_with_its_sample
    ]
    if measured:
        calls.append((statements.UPDATE_MEASURED, [to_json(measured)]))
    return calls


def _node_updates(nodes: Sequence[Node]) -> list[Call]:
    """What changes on nodes beside their newest sample."""
    calls: list[Call] = []
    late = [node for node in nodes if not node.is_changed_with_its_sample]
    if late:
        rows = [{"id": node.id, "last_report_at": node.columns["last_report_at"]} for node in late]
        calls.append((statements.UPDATE_LAST_REPORT, [to_json(rows)]))
    ran = [node for node in late if "measured" in node.state]
    if ran:
        rows = [
            {"id": node.id, **{name: node.columns[name] for name in ("latest_run_id", "effective_granule_bytes")}}
            for node in ran
        ]
        calls.append((statements.UPDATE_RUN_OF_NODE, [to_json(rows)]))
    return calls


def _reference_inserts(judged: Judged) -> Call:
    made = judged.references
    return statements.INSERT_REFERENCES, [
        uuids(node.id for _, node in made),
        uuids(incoming.report_id for incoming, _ in made),
        times(incoming.received_at for incoming, _ in made),
        blobs(incoming.document for incoming, _ in made),
    ]


def _reports(judged: Judged, sampled: Sequence[Node]) -> Call:
    """The reports with their samples, and the nodes that these samples changed."""
    stored = judged.stored
    changed = [{"id": node.id, "findings": [], **node.columns, **node.state} for node in sampled]
    samples = [sample_record(incoming, node.id) for incoming, node in stored if incoming.parsed]
    return statements.INSERT_REPORTS, [
        uuids(node.id for _, node in stored),
        uuids(incoming.report_id for incoming, _ in stored),
        times(incoming.received_at for incoming, _ in stored),
        blobs(judged.documents),
        blobs(incoming.content_sha256 for incoming, _ in stored),
        uuids(incoming.run_id for incoming, _ in stored),
        integers(incoming.schema_version for incoming, _ in stored),
        texts(PARSED if incoming.parsed is not None else NEWER for incoming, _ in stored),
        uuids(incoming.token_id for incoming, _ in stored),
        to_json(samples),
        to_json(changed),
    ]


def _findings_and_events(nodes: Sequence[Node]) -> list[Call]:
    calls: list[Call] = []
    changed = [node for node in nodes if node.findings_changed]
    if changed:
        rows = [{"node_id": node.id, **msgspec.structs.asdict(f)} for node in changed for f in node.counted_findings()]
        calls.append((statements.DELETE_FINDINGS, [uuids(node.id for node in changed)]))
        calls.append((statements.INSERT_FINDINGS, [to_json(rows)]))
    events = [event for node in nodes for event in node.events]
    if events:
        calls.append((statements.LOCK_EVENTS, []))
        calls.append((statements.INSERT_EVENTS, [to_json(events)]))
    return calls


def sample_record(incoming: Incoming, node_id: UUID) -> dict[str, Any]:
    """The columns of a report's sample, and what the roll-ups add up. What a large document says is kept in both."""
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
    } | ({} if incoming.is_small else {"memory": memory, "pools": report.sample.pools})

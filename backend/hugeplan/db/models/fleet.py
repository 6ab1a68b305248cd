"""Tables of nodes, reports and samples. Large tables lead with node_id, so that they can be sharded by it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    CheckConstraint,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Text,
    Uuid,
    column,
    select,
    table,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, column_property, mapped_column

from hugeplan.db.base import Base, JsonbObject, JsonObject

_EMPTY_OBJECT = text("'{}'::jsonb")
_EMPTY_LIST = text("'[]'::jsonb")
_ZERO = text("0")


class NodeRow(Base):
    """A machine and what its newest report says in numbers, so that the fleet is listed and summed from one table.

    ``sampled_at`` is when the newest sample was taken, but never later than its arrival; an older report that arrives
    later does not overwrite it. ``labels`` are the agent's labels with ``labels_set`` written over them.
    ``clock_ahead_seconds`` is how far the newest report's clock was ahead of the server's; null: not ahead.
    ``sealed_until`` is the latest time that any of its sealed reports says; null: none is sealed.
    ``tried_at`` is ``ordered_at`` of its newest trial with predictions, ``own_tried_at`` of those that others did not
    send; a trigger keeps both.
    """

    __tablename__ = "nodes"
    __table_args__ = (
        CheckConstraint("mem_total_bytes > 0", name="mem_total_bytes"),
        CheckConstraint("numa_node_count > 0", name="numa_node_count"),
        Index(None, "name", "id"),
        Index("ix_nodes_host", text("split_part(lower(name), '.', 1)"), postgresql_where=text("strpos(name, ' ') = 0")),
        Index("ix_nodes_lower_name", text("lower(name)")),
        Index(None, "machine_type", "tried_at", postgresql_where=text("tried_at IS NOT NULL")),
        Index(None, "machine_type", "own_tried_at", postgresql_where=text("own_tried_at IS NOT NULL")),
        Index(None, "group_key"),
        {"postgresql_with": {"fillfactor": 70}},
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    machine_id: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    synthetic: Mapped[bool]
    architecture: Mapped[str]
    cpu_brand: Mapped[str | None]
    virtualised: Mapped[bool | None]
    mem_total_bytes: Mapped[int]
    numa_node_count: Mapped[int]
    agent_version: Mapped[str]
    first_report_at: Mapped[datetime]
    last_report_at: Mapped[datetime]
    sampled_at: Mapped[datetime]
    latest_run_id: Mapped[UUID | None]
    effective_granule_bytes: Mapped[int | None]
    labels: Mapped[JsonbObject] = mapped_column(server_default=_EMPTY_OBJECT)
    labels_set: Mapped[JsonbObject] = mapped_column(server_default=_EMPTY_OBJECT)
    machine_type: Mapped[str | None]
    group_key: Mapped[str | None]
    mem_available_bytes: Mapped[int | None]
    page_tables_bytes: Mapped[int | None]
    anon_huge_pages_bytes: Mapped[int | None]
    pool_bytes: Mapped[int | None]
    pool_idle_bytes: Mapped[int | None]
    pools: Mapped[list[JsonObject]] = mapped_column(JSONB, server_default=_EMPTY_LIST)
    spool: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))
    clock_ahead_seconds: Mapped[float | None] = mapped_column(Double)
    findings_wrong: Mapped[int] = mapped_column(server_default=_ZERO)
    findings_attention: Mapped[int] = mapped_column(server_default=_ZERO)
    plan_state: Mapped[str | None]
    sealed_until: Mapped[datetime | None]
    tried_at: Mapped[datetime | None]
    own_tried_at: Mapped[datetime | None]


class ListeningRow(Base):
    """Since when agents have been heard without a gap, and until when: one row (hugeplan.db.retention)."""

    __tablename__ = "listening"

    is_one: Mapped[bool] = mapped_column(primary_key=True)
    since: Mapped[datetime]
    until: Mapped[datetime]


class NodeStateRow(Base):
    """What a node's newest report says, where its document does not, and what was measured, beside the narrow row.

    ``measured`` holds the planner's HardwareFacts as measured, the newest geometry without curves, and the runs that
    they come from (hugeplan.fleet.hardware_state). It is made when a run arrives, so that no read parses a run.
    ``told`` is what events told of the node lately (hugeplan.events.records.Told).
    ``processes_kept`` is a JSON array, packed (hugeplan.documents.kept). ``processes`` holds them in its place where a
    server of an earlier version stored the newest report, and is empty otherwise.

    ``newest_document`` is the newest report as ``report_documents`` kept it, once it has left that table.
    ``base_kept`` and ``newest_kept`` were written by the release before. hugeplan.fleet.newest says which of all
    counts; the other columns then say what an earlier report said.
    """

    __tablename__ = "node_states"
    __table_args__ = ({"postgresql_with": {"fillfactor": 50}},)

    node_id: Mapped[UUID] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    inventory: Mapped[JsonbObject]
    sample: Mapped[JsonbObject]
    processes: Mapped[list[JsonObject]] = mapped_column(JSONB, server_default=_EMPTY_LIST)
    processes_kept: Mapped[bytes | None] = mapped_column(LargeBinary)
    collectors: Mapped[list[JsonObject]] = mapped_column(JSONB)
    measured: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))
    findings: Mapped[list[JsonObject]] = mapped_column(JSONB, server_default=_EMPTY_LIST)
    told: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))
    base_kept: Mapped[bytes | None] = mapped_column(LargeBinary)
    newest_kept: Mapped[bytes | None] = mapped_column(LargeBinary)
    newest_document: Mapped[bytes | None] = mapped_column(LargeBinary)


class ReportRow(Base):
    """That a report was stored. Its key makes ingestion idempotent; ``content_sha256`` tells a repeated
    report from another one with the same id. ``state``: ``parsed``, or ``newer_schema`` for one that only a later
    version of the service can read.
    """

    __tablename__ = "reports"
    __table_args__ = (
        CheckConstraint("octet_length(content_sha256) = 32", name="content_sha256"),
        CheckConstraint("state IN ('parsed', 'newer_schema')", name="state"),
        Index(None, "received_at"),
    )

    node_id: Mapped[UUID] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    report_id: Mapped[UUID] = mapped_column(primary_key=True)
    received_at: Mapped[datetime]
    content_sha256: Mapped[bytes] = mapped_column(LargeBinary)
    run_id: Mapped[UUID | None]
    schema_version: Mapped[int] = mapped_column(SmallInteger, server_default=text("1"))
    state: Mapped[str] = mapped_column(server_default=text("'parsed'"))


class ReportDocumentRow(Base):
    """A report's bytes as they came (docs/adr/0003), as what has changed since a reference (hugeplan.documents.against)
    or as gzip, where that is smaller. Partitioned by day of arrival.
    """

    __tablename__ = "report_documents"
    __table_args__ = ({"postgresql_partition_by": "RANGE (received_at)"},)

    node_id: Mapped[UUID] = mapped_column(primary_key=True)
    received_at: Mapped[datetime] = mapped_column(primary_key=True)
    report_id: Mapped[UUID] = mapped_column(primary_key=True)
    document: Mapped[bytes] = mapped_column(LargeBinary)


class ReportReferenceRow(Base):
    """A whole report, packed, with which others of its node are read (hugeplan.documents.against). The node's newest
    one serves the reports that arrive; an earlier one stays while a document refers to it.
    """

    __tablename__ = "report_references"
    __table_args__ = (Index("ix_report_references_newest", "node_id", text("made_at DESC"), "report_id"),)

    node_id: Mapped[UUID] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    report_id: Mapped[UUID] = mapped_column(primary_key=True)
    made_at: Mapped[datetime]
    document: Mapped[bytes] = mapped_column(LargeBinary)


class SealedDocumentsRow(Base):
    """Documents of one node from ``start_at`` to ``end_at``, in order of arrival, as one block.

    hugeplan.fleet.sealing writes it. Partitioned by day. ``sizes_bytes`` are those of the documents as they came.
    ``taken_from`` and ``taken_to`` are the earliest and latest times that the reports say; null: an earlier version
    sealed them. ``report_count`` is how many of them have no row in ``reports`` any more.
    """

    __tablename__ = "sealed_documents"
    __table_args__ = (
        CheckConstraint("cardinality(report_ids) = cardinality(sizes_bytes)", name="sizes_bytes"),
        {"postgresql_partition_by": "RANGE (start_at)"},
    )

    node_id: Mapped[UUID] = mapped_column(primary_key=True)
    start_at: Mapped[datetime] = mapped_column(primary_key=True)
    first_report_id: Mapped[UUID] = mapped_column(primary_key=True)
    end_at: Mapped[datetime]
    report_ids: Mapped[list[UUID]] = mapped_column(ARRAY(Uuid))
    sizes_bytes: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    documents: Mapped[bytes] = mapped_column(LargeBinary)
    taken_from: Mapped[datetime | None]
    taken_to: Mapped[datetime | None]
    report_count: Mapped[int] = mapped_column(Integer, server_default=_ZERO)


class SampleRow(Base):
    """One memory sample of a node. Partitioned by day.

    ``memory`` and ``pools``, which are per NUMA node and page size, are null where the report's document says them.
    ``anon_shmem_bytes``: the release before left it null, as it is in its ``memory``.
    """

    __tablename__ = "samples"
    __table_args__ = (
        CheckConstraint("mem_total_bytes > 0", name="mem_total_bytes"),
        {"postgresql_partition_by": "RANGE (taken_at)"},
    )

    node_id: Mapped[UUID] = mapped_column(primary_key=True)
    taken_at: Mapped[datetime] = mapped_column(primary_key=True)
    report_id: Mapped[UUID] = mapped_column(primary_key=True)
    mem_total_bytes: Mapped[int]
    mem_available_bytes: Mapped[int | None]
    page_tables_bytes: Mapped[int | None]
    anon_huge_pages_bytes: Mapped[int | None]
    hugetlb_bytes: Mapped[int | None]
    pool_idle_bytes: Mapped[int | None]
    memory: Mapped[JsonObject | None] = mapped_column(JSONB(none_as_null=True))
    pools: Mapped[list[JsonObject] | None] = mapped_column(JSONB(none_as_null=True))
    anon_shmem_bytes: Mapped[int | None]


class SealedSamplesRow(Base):
    """Samples of one node from ``start_at`` to ``end_at``, in order, as blocks (hugeplan.fleet.sealed_samples).

    Partitioned by day. ``details`` is empty where the row of ``sealed_documents`` with the same ``first_report_id``
    says it, and so are ``report_ids`` where they are the same in their order.
    """

    __tablename__ = "sealed_samples"
    __table_args__ = ({"postgresql_partition_by": "RANGE (start_at)"},)

    node_id: Mapped[UUID] = mapped_column(primary_key=True)
    start_at: Mapped[datetime] = mapped_column(primary_key=True)
    first_report_id: Mapped[UUID] = mapped_column(primary_key=True)
    end_at: Mapped[datetime]
    report_ids: Mapped[list[UUID]] = mapped_column(ARRAY(Uuid))
    numbers: Mapped[bytes] = mapped_column(LargeBinary)
    details: Mapped[bytes] = mapped_column(LargeBinary)


class RollUp:
    """The samples of a node in one span of time. Sums and counts, so that a late sample is added where it belongs.

    Bytes; null is unknown. ``ordinary_bytes`` is memory in use that is not a huge page pool: what workloads take.
    ``anon_shmem_bytes`` is AnonPages + Shmem, which the planner's history is made of.
    """

    samples: Mapped[int]
    mem_total_bytes_max: Mapped[int]
    mem_available_bytes_min: Mapped[int | None]
    mem_available_bytes_sum: Mapped[float] = mapped_column(Double)
    mem_available_samples: Mapped[int]
    page_tables_bytes_max: Mapped[int | None]
    anon_huge_pages_bytes_max: Mapped[int | None]
    hugetlb_bytes_min: Mapped[int | None]
    hugetlb_bytes_max: Mapped[int | None]
    pool_idle_bytes_min: Mapped[int | None]
    pool_idle_bytes_max: Mapped[int | None]
    ordinary_bytes_max: Mapped[int | None]
    anon_shmem_bytes_max: Mapped[int | None]


def _roll_up_table() -> tuple[CheckConstraint, dict[str, str]]:
    return CheckConstraint("samples > 0", name="samples"), {"postgresql_partition_by": "RANGE (start_at)"}


class SampleHourRow(RollUp, Base):
    """A node's samples of one hour in one row. Partitioned by month, kept longer than the samples."""

    __tablename__ = "sample_hours"
    __table_args__ = _roll_up_table()

    node_id: Mapped[UUID] = mapped_column(primary_key=True)
    start_at: Mapped[datetime] = mapped_column(primary_key=True)


class SampleDayRow(RollUp, Base):
    """A node's samples of one day (UTC) in one row. Partitioned by month, kept as long as the hours or longer."""

    __tablename__ = "sample_days"
    __table_args__ = _roll_up_table()

    node_id: Mapped[UUID] = mapped_column(primary_key=True)
    start_at: Mapped[datetime] = mapped_column(primary_key=True)


class NodeFindingRow(Base):
    """A finding that holds for a node now, narrow for the fleet's counts: of a code and a state one, of whatever
    subject. All of them, with their texts, are in ``node_states.findings``."""

    __tablename__ = "node_findings"
    __table_args__ = (Index(None, "code", "state"),)

    node_id: Mapped[UUID] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    code: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True)
    state: Mapped[str]
    title: Mapped[str]
    since: Mapped[datetime]


class EventRow(Base):
    """Something that changed, in the order of commits: who reads events by rising ``id`` misses none."""

    __tablename__ = "events"
    __table_args__ = (Index(None, "at"), Index(None, "node_id", "id"))

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    at: Mapped[datetime]
    kind: Mapped[str]
    node_id: Mapped[UUID | None]
    node_name: Mapped[str | None]
    code: Mapped[str | None]
    subject: Mapped[str | None]
    state: Mapped[str | None]
    previous_state: Mapped[str | None]
    text: Mapped[str]


_PLANS = table("plans", column("id", Uuid()), column("digest", Text()))


class PlanInForceRow(Base):
    """The pools that a node is meant to have. ``source``: ``hand``, ``verify`` or ``label``.

    ``outcome`` and ``checks`` are what the newest report says of the saved plan; null: no report since it is in force.
    """

    __tablename__ = "plans_in_force"
    __table_args__ = (CheckConstraint("outcome IN ('in_force', 'not_in_force', 'undecided')", name="outcome"),)

    node_id: Mapped[UUID] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    plan_id: Mapped[UUID | None] = mapped_column(ForeignKey("plans.id", ondelete="SET NULL"), index=True)
    pools: Mapped[list[JsonObject]] = mapped_column(JSONB)
    source: Mapped[str]
    since: Mapped[datetime]
    set_by: Mapped[str]
    outcome: Mapped[str | None]
    verified_at: Mapped[datetime | None]
    checks: Mapped[list[JsonObject]] = mapped_column(JSONB, server_default=_EMPTY_LIST)
    digest: Mapped[str | None] = column_property(
        select(_PLANS.c.digest).where(_PLANS.c.id == plan_id).correlate_except(_PLANS).scalar_subquery()
    )

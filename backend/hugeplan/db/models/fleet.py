"""Tables of nodes, reports and samples. Large tables lead with node_id, so that they can be sharded by it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from hugeplan.db.base import Base, JsonbObject, JsonObject


class NodeRow(Base):
    """A machine and what its newest report says, so that the fleet is listed from one table.

    ``sampled_at`` is when the newest sample was taken; an older report that arrives later does not
    overwrite it. ``processes`` are only kept for the newest sample.
    """

    __tablename__ = "nodes"
    __table_args__ = (
        CheckConstraint("mem_total_bytes > 0", name="mem_total_bytes"),
        CheckConstraint("numa_node_count > 0", name="numa_node_count"),
        Index(None, "name", "id"),
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
    inventory: Mapped[JsonbObject]
    sample: Mapped[JsonbObject]
    processes: Mapped[list[JsonObject]] = mapped_column(JSONB)
    collectors: Mapped[list[JsonObject]] = mapped_column(JSONB)
    latest_run_id: Mapped[UUID | None]
    effective_granule_bytes: Mapped[int | None]


class ReportRow(Base):
    """That a report was stored. Its key makes ingestion idempotent; ``content_sha256`` tells a repeated
    report from another one with the same id.
    """

    __tablename__ = "reports"
    __table_args__ = (
        CheckConstraint("octet_length(content_sha256) = 32", name="content_sha256"),
        Index(None, "received_at"),
    )

    node_id: Mapped[UUID] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    report_id: Mapped[UUID] = mapped_column(primary_key=True)
    received_at: Mapped[datetime]
    content_sha256: Mapped[bytes] = mapped_column(LargeBinary)
    run_id: Mapped[UUID | None]


class ReportDocumentRow(Base):
    """A report's bytes as they came (docs/adr/0003). Partitioned by day of arrival."""

    __tablename__ = "report_documents"
    __table_args__ = ({"postgresql_partition_by": "RANGE (received_at)"},)

    node_id: Mapped[UUID] = mapped_column(primary_key=True)
    received_at: Mapped[datetime] = mapped_column(primary_key=True)
    report_id: Mapped[UUID] = mapped_column(primary_key=True)
    document: Mapped[bytes] = mapped_column(LargeBinary)


class SampleRow(Base):
    """One memory sample of a node. Partitioned by day; ``pools`` are per NUMA node and page size."""

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
    memory: Mapped[JsonbObject]
    pools: Mapped[list[JsonObject]] = mapped_column(JSONB)


class SampleHourRow(Base):
    """A node's samples of one hour in one row, kept longer than the samples. Bytes; null is unknown."""

    __tablename__ = "sample_hours"
    __table_args__ = (CheckConstraint("samples > 0", name="samples"), Index(None, "hour_at"))

    node_id: Mapped[UUID] = mapped_column(ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=True)
    hour_at: Mapped[datetime] = mapped_column(primary_key=True)
    samples: Mapped[int]
    mem_total_bytes_max: Mapped[int]
    mem_available_bytes_min: Mapped[int | None]
    mem_available_bytes_mean: Mapped[int | None]
    page_tables_bytes_max: Mapped[int | None]
    anon_huge_pages_bytes_max: Mapped[int | None]
    hugetlb_bytes_max: Mapped[int | None]

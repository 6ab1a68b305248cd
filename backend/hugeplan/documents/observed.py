"""The report's optional sections on what runs on a node: units of work, databases, limits, kubelet.

Fields and meanings: docs/report.md and the agent's report.schema.json. Every field may be absent or null: unknown.
A ``*_limit_bytes`` stands beside a ``*limited`` that tells unlimited (false) from unknown (null).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from hugeplan.documents.bounds import (
    ByteCount,
    DocumentModel,
    Label,
    Moment,
    PageBytes,
    PageCount,
    SmallCount,
    Text,
    Word,
)

Key = Annotated[str, StringConstraints(min_length=1, max_length=512)]
UserId = Annotated[int, Field(ge=0, le=2**32 - 2)]
Ticks = Annotated[int, Field(ge=0, le=2**63 - 1)]
Ratio = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class CloneHints(DocumentModel):
    """Hashes that differ between two machines with one machine id."""

    dmi_sha256: Sha256 | None = None
    mac_sha256: list[Sha256] | None = Field(default=None, max_length=64)


class HugePageMapping(DocumentModel):
    """One process's hugetlb mappings of one page size, in bytes; ``mapped`` counts untouched pages too."""

    page_bytes: PageBytes
    mapped_bytes: ByteCount | None = None
    shared_bytes: ByteCount | None = None
    private_bytes: ByteCount | None = None


class Buddyinfo(DocumentModel):
    """Free blocks of one zone: item n counts blocks of exactly ``base_page_bytes << n`` bytes."""

    numa_node: Annotated[int, Field(ge=0, le=4095)]
    zone: Word
    free_blocks: list[PageCount] = Field(max_length=32)


class Stall(DocumentModel):
    """One line of a file of /proc/pressure."""

    avg10_percent: float | None = None
    avg60_percent: float | None = None
    avg300_percent: float | None = None
    total_microseconds: Ticks | None = None


class ResourcePressure(DocumentModel):
    """Time in which some tasks, or all of them, waited for one resource."""

    some: Stall | None = None
    full: Stall | None = None


class Pressure(DocumentModel):
    """/proc/pressure."""

    cpu: ResourcePressure | None = None
    memory: ResourcePressure | None = None
    io: ResourcePressure | None = None


class Watermarks(DocumentModel):
    """Sums over the zones of /proc/zoneinfo."""

    min_bytes: ByteCount | None = None
    low_bytes: ByteCount | None = None
    high_bytes: ByteCount | None = None
    reserved_bytes: ByteCount | None = None


class PodIdentity(DocumentModel):
    """Which pod a unit is or belongs to."""

    uid: Label | None = None
    namespace: Label | None = None
    name: Label | None = None
    qos_class: Word | None = None


class ContainerIdentity(DocumentModel):
    """Which container a unit is."""

    id: Label | None = None
    name: Label | None = None
    runtime: Label | None = None


class UnitMemory(DocumentModel):
    """Ordinary memory of a unit, in bytes. ``source``: cgroup_v2, cgroup_v1, pss or rss."""

    source: Word
    anon_bytes: ByteCount | None = None
    shmem_bytes: ByteCount | None = None
    file_bytes: ByteCount | None = None
    usage_bytes: ByteCount | None = None
    working_set_bytes: ByteCount | None = None
    limit_bytes: ByteCount | None = None
    limited: bool | None = None
    swap_bytes: ByteCount | None = None
    kernel_bytes: ByteCount | None = None
    page_tables_bytes: ByteCount | None = None
    anon_huge_bytes: ByteCount | None = None
    hugetlb_bytes: ByteCount | None = None
    hugetlb_charged_bytes: ByteCount | None = None
    pss_bytes: ByteCount | None = None
    rss_bytes: ByteCount | None = None


class Unit(DocumentModel):
    """One unit of work. Units whose ``parent`` is null share nothing, so their memory may be added up."""

    key: Key
    kind: Word
    name: Label
    parent: Key | None = None
    cgroup_path: Text | None = None
    pod: PodIdentity | None = None
    container: ContainerIdentity | None = None
    process_count: SmallCount | None = None
    memory: UnitMemory
    databases: list[Key] = Field(default=[], max_length=256)


class Setting(DocumentModel):
    """One setting as it is written where it was found."""

    value: Label
    source: Word


class Segment(DocumentModel):
    """One large mapping of a database and what backs it."""

    bytes: ByteCount | None = None
    backing: Word | None = None
    page_bytes: PageBytes | None = None
    kind: Word | None = None


class DatabaseMemory(DocumentModel):
    """Memory of all processes of a database, in bytes."""

    source: Word | None = None
    private_bytes: ByteCount | None = None
    shared_bytes: ByteCount | None = None
    file_bytes: ByteCount | None = None
    hugetlb_bytes: ByteCount | None = None
    page_tables_bytes: ByteCount | None = None
    swap_bytes: ByteCount | None = None


class HugetlbLimit(DocumentModel):
    """The limit of one page size and counter (usage or reservation) that acts on a database."""

    page_bytes: PageBytes
    counter: Word
    limit_bytes: ByteCount
    usage_bytes: ByteCount | None = None
    cgroup_path: Text


class WalkCounters(DocumentModel):
    """Page walks of a database as its processor counted them, in all its processes; null is not known."""

    counted_at: Moment
    status: Word
    reason: Text | None = None
    event_set: Word | None = None
    walk_cycles_are: Word | None = None
    seconds: Ratio | None = None
    running_fraction: Ratio | None = None
    overhead_fraction: Ratio | None = None
    user_walk_fraction: Ratio | None = None
    kernel_walk_fraction: Ratio | None = None
    walk_fraction: Ratio | None = None
    cycles: Ticks | None = None
    instructions: Ticks | None = None
    data_walks: Ticks | None = None
    instruction_walks: Ticks | None = None
    walk_cycles: Ticks | None = None
    l2_hits: Ticks | None = None


class Database(DocumentModel):
    """One database server that runs on the node."""

    key: Key
    engine: Word
    engine_source: Word | None = None
    product: Word | None = None
    version: Word | None = None
    version_source: Word | None = None
    main_pid: SmallCount
    owner_uid: UserId | None = None
    start_time_ticks: Ticks | None = None
    process_count: SmallCount | None = None
    client_count: SmallCount | None = None
    unit: Key | None = None
    port: SmallCount | None = None
    settings: dict[str, Setting] = Field(default={}, max_length=256)
    settings_complete: bool | None = None
    settings_note: Text | None = None
    segments: list[Segment] = Field(default=[], max_length=64)
    huge_pages_status: Word | None = None
    huge_pages_status_source: Word | None = None
    memory: DatabaseMemory | None = None
    memlock_limit_bytes: ByteCount | None = None
    memlock_limited: bool | None = None
    hugetlb_limits: list[HugetlbLimit] | None = Field(default=None, max_length=64)
    allowed_numa_nodes: list[Annotated[int, Field(ge=0, le=4095)]] | None = Field(default=None, max_length=1024)
    counters: WalkCounters | None = None


class HugetlbCgroup(DocumentModel):
    """The hugetlb controller's files of one cgroup and page size, in bytes."""

    cgroup_path: Text
    unit: Key | None = None
    version: Annotated[int, Field(ge=1, le=2)]
    page_bytes: PageBytes
    usage_bytes: ByteCount | None = None
    limit_bytes: ByteCount | None = None
    limited: bool | None = None
    max_usage_bytes: ByteCount | None = None
    failures: Ticks | None = None
    rsvd_usage_bytes: ByteCount | None = None
    rsvd_limit_bytes: ByteCount | None = None
    rsvd_limited: bool | None = None
    rsvd_max_usage_bytes: ByteCount | None = None
    rsvd_failures: Ticks | None = None


class Kubelet(DocumentModel):
    """The kubelet of the node. ``capacity`` and ``allocatable`` are bytes by resource name."""

    pid: SmallCount | None = None
    started_at: Moment | None = None
    version: Label | None = None
    capacity: dict[str, ByteCount] | None = Field(default=None, max_length=256)
    allocatable: dict[str, ByteCount] | None = Field(default=None, max_length=256)
    resources_source: Word | None = None
    config: dict[str, object] | None = Field(default=None, max_length=256)
    config_source: Word | None = None

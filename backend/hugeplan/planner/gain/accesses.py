"""Cold memory accesses of one operation, engine by engine.

An *item* is what an engine finds one thing in: a hash bucket, a hash entry, a block descriptor, a block. The access
to an item that was not used lately costs a TLB miss and a page walk. Accesses to further base pages of the same item
(the second half of an 8 KiB block) are *near*: their page-table entry lies in the cache line just read.

PostgreSQL's figures were checked against a real server by clearing and reading the referenced bits of a backend's
pages around a known number of lookups (docs/model.md has the counts).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from hugeplan.planner.model import DatabaseInstance, Demand, Range, Source, Term, Workload

DEFAULT_ROW_BYTES = 128

CHAINED = Range(0.65, 0.9, 1.0)
"""Share of a walk an operation waits for when each item is found through the one before (bucket, entry, descriptor,
block): nearly all of it; an out-of-order core hides some behind independent work. Assumed: no counter says."""

INDEPENDENT = Range(0.1, 0.4, 1.0)
"""The same for reads whose addresses do not depend on each other: several walks run at once (2 to 6 walkers) and most
of their time hides behind other reads. Assumed."""


CLIENT_OPERATION_NS = Range(8_000.0, 20_000.0, 60_000.0)
"""CPU time of a client's short operation on one core, assumed where no throughput is given: a PostgreSQL key lookup by
prepared statement took 21 microseconds with its client (docs/model.md)."""

SERVER_OPERATION_NS = Range(2_000.0, 4_000.0, 10_000.0)
"""The same for one step of a loop inside the server; PostgreSQL's took 4 to 5.5 microseconds."""

PROGRAM_OPERATION_NS = Range(100.0, 500.0, 5_000.0)
"""The same for a program that reads its own memory. Assumed."""

_OPERATION_NS: Mapping[str, Range] = {
    "nested_loop": SERVER_OPERATION_NS,
    "scan": SERVER_OPERATION_NS,
    "vector_search": PROGRAM_OPERATION_NS,
    "random_access": PROGRAM_OPERATION_NS,
}


@dataclass(frozen=True, slots=True)
class AccessRegion:
    """Accesses to one kind of item.

    Attributes:
        name: the kind of item, in the engine's words.
        span_bytes: extent of memory over which the items lie.
        places: distinct items in use.
        place_bytes: bytes of one item.
        touches: items accessed per operation.
        near_touches: further base pages accessed per item, within the item.
        lines: cache lines read per item.
        popularity_rows: rows whose Zipf popularity the items carry; None: every item equally likely.
    """

    name: str
    span_bytes: float
    items: float
    item_bytes: float
    accesses: float
    near_accesses: float = 0.0
    lines: float = 1.0
    popularity_rows: int | None = None


@dataclass(frozen=True, slots=True)
class AccessProfile:
    """What one operation accesses in shared memory.

    ``warm_pages`` are base pages of shared memory used by every operation (locks, process array, counters);
    ``private_pages`` are hot pages outside shared memory, which take room in the TLB but keep their page size.
    ``uncertainty`` scales the accesses down and up for the range. ``inputs`` says where each figure came from.
    ``exposed`` is the share of a walk that the operation waits for. ``operation_ns``: how long an operation keeps a
    core, which is the time that neighbours have to replace cache lines.
    """

    regions: tuple[AccessRegion, ...]
    warm_pages: float
    private_pages: float
    zipf_s: float
    uncertainty: tuple[float, float]
    inputs: tuple[Term, ...]
    operation_ns: Range
    exposed: Range = CHAINED

    @property
    def cold_accesses(self) -> float:
        """Items accessed per operation, near accesses not counted."""
        return sum(region.accesses for region in self.regions)


@dataclass(frozen=True, slots=True)
class _DataSet:
    """The rows an instance really reads, from its workload or assumed from its pool."""

    row_bytes: int
    working_set_bytes: int
    pool_bytes: int
    zipf_s: float
    inputs: tuple[Term, ...]
    operation_ns: Range


def accessed_bytes(demand: Demand) -> int:
    """Memory in which an operation's items lie: all that a demand says about them."""
    return demand.pool_bytes or demand.segment_bytes


def _data_set(instance: DatabaseInstance, demand: Demand) -> _DataSet:
    """Row width, working set and skew; what is not given is assumed and listed so."""
    workload, pool = instance.workload, accessed_bytes(demand)
    row = workload.row_bytes or DEFAULT_ROW_BYTES
    working_set = min(workload.working_set_bytes or pool, pool)
    zipf = workload.zipf_s or 0.0
    given = {True: Source.GIVEN, False: Source.ASSUMED}
    return _DataSet(
        row_bytes=row,
        working_set_bytes=max(working_set, row),
        pool_bytes=max(pool, row),
        zipf_s=zipf,
        inputs=(
            Term("row_bytes", f"{row}", given[workload.row_bytes is not None]),
            Term("working_set_bytes", f"{working_set}", given[workload.working_set_bytes is not None]),
            Term("zipf_s", f"{zipf:g}", given[workload.zipf_s is not None]),
            *_assumed_operation(workload),
        ),
        operation_ns=operation_ns(workload),
    )


def operation_ns(workload: Workload) -> Range:
    """Time an operation keeps a core: from the given throughput per busy core, else assumed by its class."""
    rate = workload.operations_per_second_per_busy_core
    if rate is not None and rate > 0.0:
        return Range(1e9 / rate, 1e9 / rate, 1e9 / rate)
    return _OPERATION_NS.get(workload.operation_class or "", CLIENT_OPERATION_NS)


def _assumed_operation(workload: Workload) -> tuple[Term, ...]:
    """The input that says an operation's time was assumed; nothing where it was given (the percentage lists it)."""
    if workload.operations_per_second_per_busy_core:
        return ()
    assumed = operation_ns(workload)
    text = f"{assumed.low / 1000:g} to {assumed.high / 1000:g} microseconds"
    return (Term("time of an operation", text, Source.ASSUMED),)


def _next_power_of_two(value: float) -> int:
    return 1 << max(0, math.ceil(math.log2(max(1.0, value))))


PG_BLOCK = 8192
# Storage of the buffer table: src/backend/storage/buffer/buf_table.c and utils/hash/dynahash.c. An entry is a
# 16-byte element header and a 24-byte tag with the buffer number; a descriptor is padded to a cache line.
PG_HASH_ENTRY_BYTES, PG_DESCRIPTOR_BYTES, PG_BUCKET_BYTES, PG_PARTITIONS = 40, 64, 8, 128
PG_INDEX_ROW_BYTES = 16 + 4  # nbtree tuple of an 8-byte key, and its line pointer
PG_LEAF_FILL, PG_INNER_FILL = 0.90, 0.70  # nbtree defaults at build time
PG_TUPLE_OVERHEAD_BYTES = 24 + 8 + 4  # heap tuple header, an 8-byte key, line pointer
PG_TOAST_THRESHOLD_BYTES, PG_TOAST_CHUNK_BYTES = 2000, 1996
PG_LEAF_LINES = 16.0  # a binary search's; leaf and heap together were 23 lines in a traced server (docs/model.md)
PG_WARM_PAGES, PG_PRIVATE_PAGES = 30.0, 420.0  # counted on PostgreSQL 15 with referenced bits


def _postgresql_block_lookup(name: str, blocks: float, data: _DataSet, times: float) -> tuple[AccessRegion, ...]:
    """Finding a block in the buffer pool ``times`` per operation: hash bucket, hash entry, descriptor."""
    buffers = data.pool_bytes / PG_BLOCK
    buckets = _next_power_of_two(buffers + PG_PARTITIONS)
    used = max(1.0, min(buffers, data.working_set_bytes / PG_BLOCK))
    chain = 1.0 + used / buckets / 2.0  # entries looked at in a successful search of a chained table
    share = min(1.0, blocks / used)
    entries_span = used * PG_HASH_ENTRY_BYTES
    descriptors_span = used * PG_DESCRIPTOR_BYTES
    bucket_span = float(buckets * PG_BUCKET_BYTES)
    # Blocks of one table hash to any bucket; entries and descriptors are taken in load order.
    return (
        AccessRegion(f"{name} hash bucket", bucket_span, blocks, PG_BUCKET_BYTES, times),
        AccessRegion(f"{name} hash entry", entries_span * share, blocks, PG_HASH_ENTRY_BYTES, times * chain),
        AccessRegion(f"{name} descriptor", descriptors_span * share, blocks, PG_DESCRIPTOR_BYTES, times),
    )


def _scattered(regions: tuple[AccessRegion, ...], data: _DataSet) -> tuple[AccessRegion, ...]:
    """The same items spread over the whole extent of their structure (few hot blocks among many)."""
    used = max(1.0, data.working_set_bytes / PG_BLOCK)
    spans = (None, used * PG_HASH_ENTRY_BYTES, used * PG_DESCRIPTOR_BYTES)
    return tuple(
        replace(region, span_bytes=max(region.span_bytes, span or 0.0))
        for region, span in zip(regions, spans, strict=True)
    )


def postgresql_key_lookup(instance: DatabaseInstance, demand: Demand) -> AccessProfile:
    """One primary-key lookup through a B-tree whose root is warm: inner page, leaf page, heap page.

    Each block costs a hash bucket, a hash entry, a descriptor and the block itself. A leaf is read at both ends
    (page header and the special area in its last bytes), so both 4 KiB halves are always accessed; a heap tuple
    lies in the second half every other time. Source: PostgreSQL storage/buffer, access/nbtree, access/heap.
    """
    data = _data_set(instance, demand)
    inline = data.row_bytes <= PG_TOAST_THRESHOLD_BYTES
    tuple_bytes = min(data.row_bytes + PG_TUPLE_OVERHEAD_BYTES, PG_BLOCK - 24) if inline else 60
    rows_per_block = max(1, (PG_BLOCK - 24) // tuple_bytes)
    rows_per_leaf = (PG_BLOCK - 40) * PG_LEAF_FILL / PG_INDEX_ROW_BYTES
    chunks = 0 if inline else math.ceil(data.row_bytes / PG_TOAST_CHUNK_BYTES)
    bytes_per_row = PG_BLOCK / rows_per_block + PG_BLOCK / rows_per_leaf + chunks * (PG_BLOCK / 4 + 30)
    rows = max(1.0, data.working_set_bytes / bytes_per_row)
    heap_blocks, leaf_blocks = max(1.0, rows / rows_per_block), max(1.0, rows / rows_per_leaf)
    inner_blocks = leaf_blocks / ((PG_BLOCK - 40) * PG_INNER_FILL / PG_INDEX_ROW_BYTES)
    popularity_rows = int(rows) if data.zipf_s > 0 else None

    def blocks(name: str, count: float, near: float, lines: float, span: float) -> AccessRegion:
        return AccessRegion(name, span, count, PG_BLOCK, 1.0, near, lines, popularity_rows)

    row_lines = 5 + data.row_bytes / 64 if inline else 6.0  # header, line pointer, tuple header, the row
    regions = [
        *_postgresql_block_lookup("leaf", leaf_blocks, data, 1.0),
        blocks("leaf block", leaf_blocks, 1.0, PG_LEAF_LINES, leaf_blocks * PG_BLOCK),
        *_postgresql_block_lookup("heap", heap_blocks, data, 1.0),
        blocks("heap block", heap_blocks, min(1.0, 0.5 + data.row_bytes / PG_BLOCK), row_lines, heap_blocks * PG_BLOCK),
    ]
    if chunks:  # an out-of-line row: the toast index's leaf, then the chunks, four to a block
        toast_blocks = rows * chunks / 4
        extra = math.ceil(chunks / 4)
        regions += _postgresql_block_lookup("toast", toast_blocks, data, 1.0 + extra)
        regions.append(
            AccessRegion("toast blocks", toast_blocks * PG_BLOCK, toast_blocks, PG_BLOCK, 1.0 + extra, 1.0, 100)
        )
    if inner_blocks > 1.0:
        regions += _scattered(_postgresql_block_lookup("inner", inner_blocks, data, 1.0), data)
        regions.append(
            AccessRegion("inner block", leaf_blocks * PG_BLOCK, inner_blocks, PG_BLOCK, 1.0, 1.0, PG_LEAF_LINES)
        )
    reference = "PostgreSQL storage/buffer, nbtree and heap; counted on a real server"
    return AccessProfile(
        regions=tuple(regions),
        warm_pages=PG_WARM_PAGES,
        private_pages=PG_PRIVATE_PAGES,
        zipf_s=data.zipf_s,
        uncertainty=(0.85, 1.2),  # counted pages were 10 to 18 % above these
        inputs=(*data.inputs, Term("cold touches per lookup", "8 to 11", Source.COMPUTED, reference)),
        operation_ns=data.operation_ns,
    )


def innodb_key_lookup(instance: DatabaseInstance, demand: Demand) -> AccessProfile:
    """One primary-key lookup in a clustered index: page-hash cell, block descriptor, leaf page (16 KiB by default).

    The page directory lies at the end of the page, the record anywhere: about two further 4 KiB pages.
    Source: InnoDB buf0buf and page0cur; not counted on a real server, so its range is wide.
    """
    data = _data_set(instance, demand)
    block, descriptor = 16384.0, 480.0
    blocks = max(1.0, data.working_set_bytes / block)
    rows = blocks * max(1.0, 0.93 * block / (data.row_bytes + 20))
    popularity = int(rows) if data.zipf_s > 0 else None
    inner = blocks / 900.0
    pool_blocks = data.pool_bytes / block
    regions = [
        AccessRegion("page hash cell", pool_blocks * 2 * 8, blocks, 8.0, 1.0),
        AccessRegion("block descriptor", blocks * descriptor, blocks, descriptor, 1.5),
        AccessRegion("leaf page", blocks * block, blocks, block, 1.0, 2.0, 12.0, popularity),
    ]
    if inner > 1.0:
        regions += [
            AccessRegion("inner descriptor", blocks * descriptor, inner, descriptor, 2.0),
            AccessRegion("inner page", blocks * block, inner, block, 1.0, 2.0, 12.0),
        ]
    term = Term("cold touches per lookup", "3 to 5", Source.ASSUMED, "InnoDB buffer pool and page layout")
    return AccessProfile(tuple(regions), 20.0, 400.0, data.zipf_s, (0.5, 1.5), (*data.inputs, term), data.operation_ns)


def block_engine_key_lookup(instance: DatabaseInstance, demand: Demand) -> AccessProfile:
    """Oracle and Db2: hash bucket, block header and block, for the index leaf and for the table block."""
    data = _data_set(instance, demand)
    block = 8192.0
    blocks = max(1.0, data.working_set_bytes / block)
    popularity = int(blocks * max(1.0, block / (data.row_bytes + 10))) if data.zipf_s > 0 else None
    regions = (
        AccessRegion("hash bucket", data.pool_bytes / block * 16, blocks, 16.0, 2.0),
        AccessRegion("block header", blocks * 200.0, blocks, 200.0, 2.0),
        AccessRegion("block", blocks * block, blocks, block, 2.0, 0.75, 8.0, popularity),
    )
    term = Term("cold touches per lookup", "6", Source.ASSUMED, "hash bucket, header and block of leaf and row")
    return AccessProfile(regions, 20.0, 400.0, data.zipf_s, (0.5, 1.5), (*data.inputs, term), data.operation_ns)


def generic_lookup(instance: DatabaseInstance, demand: Demand) -> AccessProfile:
    """An engine without a rule: two random items per lookup, with a wide range."""
    data = _data_set(instance, demand)
    item = float(max(64, data.row_bytes))
    items = max(1.0, data.working_set_bytes / item)
    popularity = int(items) if data.zipf_s > 0 else None
    near = min(item, 65536.0) / 4096.0
    region = AccessRegion("row", items * item, items, item, 2.0, near if item > 4096 else 0.0, 2.0, popularity)
    term = Term("cold touches per lookup", "2", Source.ASSUMED, "no rule for this engine")
    return AccessProfile((region,), 5.0, 300.0, data.zipf_s, (0.5, 4.0), (*data.inputs, term), data.operation_ns)


def given_accesses(instance: DatabaseInstance, demand: Demand, accesses: float) -> AccessProfile:
    """The user-supplied count of cold accesses per operation, uniform over the working set."""
    data = _data_set(instance, demand)
    items = max(1.0, data.working_set_bytes / 64)
    popularity = max(1, data.working_set_bytes // data.row_bytes) if data.zipf_s > 0 else None
    region = AccessRegion("cold touch", float(data.working_set_bytes), items, 64.0, accesses, 0.0, 1.0, popularity)
    term = Term("cold_touches_per_operation", f"{accesses:g}", Source.GIVEN)
    return AccessProfile((region,), 0.0, 300.0, data.zipf_s, (0.9, 1.1), (*data.inputs, term), data.operation_ns)


_RULES: Mapping[str, Callable[[DatabaseInstance, Demand], AccessProfile]] = {
    "postgresql": postgresql_key_lookup,
    "mysql": innodb_key_lookup,
    "mariadb": innodb_key_lookup,
    "percona": innodb_key_lookup,
    "oracle": block_engine_key_lookup,
    "db2": block_engine_key_lookup,
}


def access_profile(instance: DatabaseInstance, demand: Demand) -> AccessProfile:
    """The accesses of one operation of an instance: the user-supplied count, else the engine's rule, else generic."""
    given = instance.workload.cold_touches_per_operation
    if given is not None:
        return given_accesses(instance, demand, given)
    return _RULES.get(instance.engine, generic_lookup)(instance, demand)

"""Cold memory accesses of one operation: the vocabulary, and the profile of an engine that has no rule.

An engine's own rule is in its folder's ``*_accesses.py`` and hangs on its row (:class:`Engine.accesses`).

An *item* is what an engine finds one thing in: a hash bucket, a hash entry, a block descriptor, a block. The access
to an item that was not used lately costs a TLB miss and a page walk. Accesses to further base pages of the same item
(the second half of an 8 KiB block) are *near*: their page-table entry lies in the cache line just read.

PostgreSQL's figures were checked against a real server by clearing and reading the referenced bits of a backend's
pages around a known number of lookups (docs/model-results.md has the counts).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hugeplan.planner.demand.model_error import ModelError, error_of_clients
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
prepared statement took 21 microseconds with its client (docs/model-results.md)."""

SERVER_OPERATION_NS = Range(2_000.0, 4_000.0, 10_000.0)
"""The same for one step of a loop inside the server; PostgreSQL's took 4 to 5.5 microseconds."""

PROGRAM_OPERATION_NS = Range(100.0, 500.0, 5_000.0)
"""The same for a program that reads its own memory. Assumed."""

OPERATION_CLASSES = ("key_lookup", "nested_loop", "oltp", "scan", "vector_search", "random_access")
"""What an operation may be called in a workload."""

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


LONGEST_SLOWDOWN: Final = 3.0
"""A client's operation that costs more than this multiple of a quiet one does more work, it is not just slower."""


@dataclass(frozen=True, slots=True)
class AccessProfile:
    """What one operation accesses in shared memory.

    ``warm_pages`` are base pages of shared memory used by every operation (locks, process array, counters);
    ``private_pages`` are hot pages outside shared memory, which take room in the TLB but keep their page size.
    ``uncertainty`` scales the accesses down and up for the range. ``inputs`` says where each figure came from.
    ``private_lines``: cache lines that each process reads of its own memory in every operation.
    ``exposed`` is the share of a walk that the operation waits for. ``operation_ns``: how long an operation keeps a
    core, which is the time that neighbours have to replace cache lines. ``model_error``: how far likely gains of such
    operations were off; None where the range of the parts is right.
    ``quiet_operation_ns``: what such an operation costs where nothing slows it; None: not known.
    """

    regions: tuple[AccessRegion, ...]
    warm_pages: float
    private_pages: float
    zipf_s: float
    uncertainty: tuple[float, float]
    inputs: tuple[Term, ...]
    operation_ns: Range
    exposed: Range = CHAINED
    private_lines: float = 0.0
    model_error: ModelError | None = None
    quiet_operation_ns: float | None = None

    @property
    def slowdown(self) -> float:
        """Factor by which walks take longer than on a quiet machine: 1 where nothing says that they do.

        A short operation that costs more than usual runs on a core and caches that others use as well, and its walks
        wait for the same memory. How much of the cost is slowness and how much is more work is not known: the root of
        both together is between the two. Source: docs/model-results.md; without it clients saved 1.65 times the likely
        value (median of 54 values), with it 0.95 times.
        """
        if self.quiet_operation_ns is None:
            return 1.0
        return math.sqrt(min(LONGEST_SLOWDOWN, max(1.0, self.operation_ns.likely / self.quiet_operation_ns)))

    @property
    def cold_accesses(self) -> float:
        """Items accessed per operation, near accesses not counted."""
        return sum(region.accesses for region in self.regions)


@dataclass(frozen=True, slots=True)
class DataSet:
    """The rows an instance really reads, from its workload or assumed from its pool."""

    row_bytes: int
    working_set_bytes: int
    buffer_pool_bytes: int
    zipf_s: float
    inputs: tuple[Term, ...]
    operation_ns: Range


def accessed_bytes(demand: Demand) -> int:
    """Memory in which an operation's items lie: all that a demand says about them."""
    return demand.pool_bytes or demand.segment_bytes


def client_lookup(regions: Sequence[AccessRegion], data: DataSet, accesses: Term) -> AccessProfile:
    """One row by its primary key for a client: ``regions`` by the engine, ``accesses`` says where they come from."""
    return AccessProfile(
        regions=tuple(regions),
        warm_pages=20.0,
        private_pages=400.0,
        zipf_s=data.zipf_s,
        uncertainty=(0.5, 1.5),
        inputs=(*data.inputs, accesses),
        operation_ns=data.operation_ns,
        model_error=error_of_clients(),
        quiet_operation_ns=CLIENT_OPERATION_NS.likely,
    )


def data_set(instance: DatabaseInstance, demand: Demand) -> DataSet:
    """Row width, working set and skew; what is not given is assumed and listed so."""
    workload, pool = instance.workload, accessed_bytes(demand)
    row = workload.row_bytes or DEFAULT_ROW_BYTES
    working_set = min(workload.working_set_bytes or pool, pool)
    zipf = workload.zipf_s or 0.0
    given = {True: Source.GIVEN, False: Source.ASSUMED}
    return DataSet(
        row_bytes=row,
        working_set_bytes=max(working_set, row),
        buffer_pool_bytes=max(pool, row),
        zipf_s=zipf,
        inputs=(
            Term("row_bytes", f"{row}", given[workload.row_bytes is not None]),
            Term("working_set_bytes", f"{working_set}", given[workload.working_set_bytes is not None]),
            Term("zipf_s", f"{zipf:g}", given[workload.zipf_s is not None]),
        ),
        operation_ns=operation_ns(workload),
    )


def operation_ns(workload: Workload) -> Range:
    """Time an operation keeps a core: from the given throughput per busy core, else assumed by its class."""
    rate = workload.operations_per_second_per_busy_core
    if rate is not None and rate > 0.0:
        return Range(1e9 / rate, 1e9 / rate, 1e9 / rate)
    return _OPERATION_NS.get(workload.operation_class or "", CLIENT_OPERATION_NS)


def generic_lookup(instance: DatabaseInstance, demand: Demand) -> AccessProfile:
    """An engine without a rule: two random items per lookup, with a wide range."""
    data = data_set(instance, demand)
    item = float(max(64, data.row_bytes))
    items = max(1.0, data.working_set_bytes / item)
    popularity = int(items) if data.zipf_s > 0 else None
    near = min(item, 65536.0) / 4096.0
    region = AccessRegion("row", items * item, items, item, 2.0, near if item > 4096 else 0.0, 2.0, popularity)
    term = Term("cold accesses per lookup", "2", Source.ASSUMED, "no rule for this engine")
    return AccessProfile((region,), 5.0, 300.0, data.zipf_s, (0.5, 4.0), (*data.inputs, term), data.operation_ns)


def given_accesses(instance: DatabaseInstance, demand: Demand, accesses: float) -> AccessProfile:
    """The user-supplied count of cold accesses per operation, uniform over the working set."""
    data = data_set(instance, demand)
    items = max(1.0, data.working_set_bytes / 64)
    popularity = max(1, data.working_set_bytes // data.row_bytes) if data.zipf_s > 0 else None
    region = AccessRegion("cold touch", float(data.working_set_bytes), items, 64.0, accesses, 0.0, 1.0, popularity)
    term = Term("cold_touches_per_operation", f"{accesses:g}", Source.GIVEN)
    return AccessProfile((region,), 0.0, 300.0, data.zipf_s, (0.9, 1.1), (*data.inputs, term), data.operation_ns)

"""Published gains by class of workload, used for the percentage when an operation's own cost is not known.

Ranges are what was published, widened to "no gain" at the low end, because gains near nothing and small losses are
published too (sheet section 7). Nothing here is used when the operation's cost is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hugeplan.planner.model import Range


@dataclass(frozen=True, slots=True)
class Band:
    """Gain in percent of throughput, base pages to large pages, and where it was published."""

    percent: Range
    source: str


PGBENCH = Band(Range(0.0, 7.5, 12.1), "pgbench -S, PostgreSQL: +5, +7.5, +8.4 and +12.1 % (n0derunner, FreeBSD D25237)")
HAMMERDB = Band(Range(0.0, 5.0, 6.8), "HammerDB TPROC-C, PostgreSQL: +3.8 % local, +6.8 % remote memory (n0derunner)")
DB2 = Band(Range(0.0, 9.0, 25.7), "DB2 9 OLTP on POWER5+: +5 to +13 % at 64K, up to +25.7 % at 16G (IBM)")
SPECJBB = Band(Range(0.0, 8.1, 10.0), "SPECjbb2005: +8 to +10 % (VMware)")
VECTOR_SEARCH = Band(Range(0.0, 5.1, 10.9), "HNSW search: +4 to +11 % (RaBitQ-Library)")
RANDOM_ACCESS = Band(Range(0.0, 40.0, 100.0), "random access kernels: +23 to +60 %; the native bound is about 2x")
OLTP = Band(Range(-2.8, 5.0, 13.0), "OLTP: +1 to +13 % published, -2.8 % seen in one build workload")

# Engine and class first, then class alone. A nested loop inside the server has no client in its operation, so its
# share of translation is between OLTP's and a random access kernel's.
_BANDS: Mapping[tuple[str | None, str], Band] = {
    ("postgresql", "key_lookup"): PGBENCH,
    ("postgresql", "oltp"): HAMMERDB,
    ("db2", "oltp"): DB2,
    ("db2", "key_lookup"): DB2,
    ("jvm", "oltp"): SPECJBB,
    (None, "vector_search"): VECTOR_SEARCH,
    (None, "nested_loop"): Band(
        Range(0.0, 15.0, 60.0), "between OLTP (+13 %) and random access kernels (+60 %): no published nested loop"
    ),
    (None, "random_access"): RANDOM_ACCESS,
    (None, "scan"): Band(Range(-2.8, 1.0, 5.0), "sequential reads share a page among many rows (sheet, oracle 7)"),
}


def band_of(engine: str, operation_class: str | None) -> Band:
    """The published band of an engine and operation class; ordinary OLTP where nothing closer was published."""
    kind = operation_class or "oltp"
    return _BANDS.get((engine, kind)) or _BANDS.get((None, kind)) or OLTP

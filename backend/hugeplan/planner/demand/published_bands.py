"""Published gains by class of workload: evidence beside a prediction, never in place of it.

Ranges are what was published, widened to "no gain" at the low end, because gains near nothing and small losses are
published too (sheet section 7). An engine's own bands are on its row (:class:`Engine.published`).
"""

from __future__ import annotations

from collections.abc import Mapping

from hugeplan.planner.model import PublishedGain, Range

VECTOR_SEARCH = PublishedGain(Range(0.0, 5.1, 10.9), "HNSW search: +4 to +11 % (RaBitQ-Library)")
RANDOM_ACCESS = PublishedGain(
    Range(0.0, 40.0, 180.0), "random access kernels: +23 to +60 %, and +177 % by shares of cycles (GUPS)"
)
OLTP = PublishedGain(Range(-2.8, 5.0, 13.0), "OLTP: +1 to +13 % published, -2.8 % seen in one build workload")

# Classes for which no engine has a band of its own. A nested loop inside the server has no client in its operation, so
# its share of translation is between OLTP's and a random access kernel's.
_CLASSES: Mapping[str, PublishedGain] = {
    "vector_search": VECTOR_SEARCH,
    "nested_loop": PublishedGain(
        Range(0.0, 15.0, 60.0), "between OLTP (+13 %) and random access kernels (+60 %): no published nested loop"
    ),
    "random_access": RANDOM_ACCESS,
    "scan": PublishedGain(Range(-2.8, 1.0, 5.0), "sequential reads share a page among many rows (sheet, oracle 7)"),
}


def band_of(own: Mapping[str, PublishedGain], operation_class: str | None) -> PublishedGain:
    """The engine's own band of an operation class, else the class's; ordinary OLTP where nothing closer is known."""
    kind = operation_class or "oltp"
    return own.get(kind) or _CLASSES.get(kind) or OLTP

"""Parallel since Java 23: counts of real virtual machines (smaps of Java 25, -XX:+UseLargePages)."""

from __future__ import annotations

import pytest

from hugeplan.planner.demand import DemandContext, demand_of
from hugeplan.planner.model import GIB, MIB, DatabaseInstance

#: Xmx in MiB -> pages of 2M. The first two: Java 25 with four processors or more, whose code cache is 242 MiB; the
#: others: Temurin 25.0.2 with two processors, whose code cache is 240 MiB, one page less.
MANY, TWO = {3072: 1683, 4096: 2203}, {1024: 632, 1300: 770, 2048: 1161, 2560: 1421, 3072: 1682}


@pytest.mark.parametrize(
    ("heap", "real", "off"), [*((h, p, 0) for h, p in MANY.items()), *((h, p, 1) for h, p in TWO.items())]
)
def test_counts_of_java_25(heap: int, real: int, off: int) -> None:
    jvm = DatabaseInstance(name="j", engine="jvm", version="25", settings={"Xmx": f"{heap}m", "gc": "Parallel"})
    found = demand_of(jvm, 2 * MIB, DemandContext(cpus=8, mem_total_bytes=64 * GIB))
    assert found.pages - real == off
    assert abs(found.pages - real) <= found.error_pages


@pytest.mark.parametrize("version", ["23", "24", "25"])
@pytest.mark.parametrize("heap", range(1, 40, 3))
def test_the_bitmap_is_a_64th_of_the_heap_and_the_error_covers_the_rest(version: str, heap: int) -> None:
    jvm = DatabaseInstance(name="j", engine="jvm", version=version, settings={"Xmx": f"{heap}g", "gc": "Parallel"})
    bare = DatabaseInstance(name="j", engine="jvm", version=version, settings={"Xmx": f"{heap}g", "gc": "Z"})
    context = DemandContext(cpus=8, mem_total_bytes=64 * GIB)
    more = demand_of(jvm, 2 * MIB, context).pages - demand_of(bare, 2 * MIB, context).pages
    bitmap = heap * 512 // 64
    starts = heap * 1024 * 2 // 3 // 512 // 2
    assert more == (bitmap if bitmap >= 10 else 0) + starts
    assert demand_of(jvm, 2 * MIB, context).error_pages >= heap

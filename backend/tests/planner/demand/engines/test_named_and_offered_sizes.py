"""What the settings name is respected or refused; sizes that a kernel cannot have together are not offered together."""

from __future__ import annotations

import pytest

from hugeplan.planner.errors import PageSizeError
from hugeplan.planner.model import (
    GIB,
    KIB,
    MIB,
    DatabaseInstance,
    NodeFacts,
    NumaNode,
    PlanRequest,
    Policy,
)
from hugeplan.planner.pages import kernel_page_sizes
from hugeplan.planner.plan import plan
from hugeplan.planner.units import parse_postgresql_bytes


def node(**facts: object) -> NodeFacts:
    return NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),), kernel_used_bytes=GIB, **facts)  # type: ignore[arg-type]


def postgresql(**settings: str) -> DatabaseInstance:
    return DatabaseInstance(
        name="db", engine="postgresql", version="17", settings={"shared_buffers": "8GB", **settings}
    )


@pytest.mark.parametrize(("named", "size"), [("1GB", GIB), ("2MB", 2 * MIB), ("1048576", GIB), ("2048kB", 2 * MIB)])
def test_huge_page_size_is_respected(named: str, size: int) -> None:
    found = plan(PlanRequest(node=node(), databases=(postgresql(huge_page_size=named),)))
    assert found.instances[0].page_bytes == size
    assert {pool.page_bytes for pool in found.pools} == {size}


@pytest.mark.parametrize("fields", [{"allowed": (2 * MIB,)}, {"page": 2 * MIB}, {"sizes": (2 * MIB,)}])
def test_or_refused_by_its_name(fields: dict[str, object]) -> None:
    database = postgresql(huge_page_size="1GB")
    if "page" in fields:
        database = DatabaseInstance(
            name="db", engine="postgresql", version="17", settings=database.settings, page_bytes=2 * MIB
        )
    facts = node(huge_page_sizes_bytes=fields.get("sizes", (2 * MIB, GIB)))
    policy = Policy(allowed_page_bytes=fields.get("allowed"))  # type: ignore[arg-type]
    with pytest.raises(PageSizeError, match="huge_page_size"):
        plan(PlanRequest(node=facts, databases=(database,), policy=policy))


@pytest.mark.parametrize(("least", "most"), [(4, 16), (8, 20), (2, 40)])
@pytest.mark.parametrize("settings", [{}, {"sga_max_size": "32G"}, {"sga_max_size": "2G"}])
def test_an_oracle_pool_range_is_kept(least: int, most: int, settings: dict[str, str]) -> None:
    database = DatabaseInstance(
        name="o", engine="oracle", settings=settings, pool_min_bytes=least * GIB, pool_max_bytes=most * GIB
    )
    found = plan(PlanRequest(node=node(), databases=(database,)))
    pool = found.instances[0].demand.pool_bytes
    assert pool is not None
    assert least * GIB <= pool <= most * GIB


@pytest.mark.parametrize("base", [4 * KIB, 64 * KIB])
def test_power_offers_radix_or_hash_sizes(base: int) -> None:
    assert kernel_page_sizes("ppc64le", base) == (2 * MIB, GIB)
    for sizes in ((2 * MIB, GIB), (16 * MIB, 16 * GIB)):
        facts = node(
            arch="ppc64le", base_page_bytes=base, huge_page_sizes_bytes=sizes, default_huge_page_bytes=sizes[0]
        )
        assert plan(PlanRequest(node=facts, databases=(postgresql(),))).feasible
    mixed = node(arch="ppc64le", base_page_bytes=base, huge_page_sizes_bytes=(2 * MIB, 16 * MIB, GIB))
    with pytest.raises(PageSizeError, match="radix"):
        plan(PlanRequest(node=mixed, databases=()))


@pytest.mark.parametrize(
    ("text", "unit", "size"),
    [
        ("0.2TB", 8192, 205 * GIB),
        ("0.1TB", 8192, 102 * GIB),
        ("1.5GB", 8192, 1536 * MIB),
        ("0.3GB", 8192, 307 * MIB),
        ("0.7 GB", MIB, 717 * MIB),
        ("1.3MB", 1024, 1331 * KIB),
        ("2.5kB", 1024, 2 * KIB),
        ("16384", 8192, 128 * MIB),
    ],
)
def test_fractions_are_rounded_in_the_next_smaller_unit(text: str, unit: int, size: int) -> None:
    assert parse_postgresql_bytes(text, unit, "f") == size

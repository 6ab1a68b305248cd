"""The largest buffer pool that a plan names is the largest: it fits, and one step above does not."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from support.seeds import SEEDS

from hugeplan.planner import plan as plan_module
from hugeplan.planner.choice.decide import ChoiceInputs
from hugeplan.planner.choice.pool_sizes import with_pool
from hugeplan.planner.demand import DemandContext, engine_named
from hugeplan.planner.demand.engines.jvm import COLLECTORS
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    FitOption,
    NodeFacts,
    NumaNode,
    PlanRequest,
    Policy,
    Reservations,
)
from hugeplan.planner.plan import plan


def node(gib: float, default: int = 2 * MIB) -> NodeFacts:
    numa = (NumaNode(id=0, mem_total_bytes=int(gib * GIB)),)
    return NodeFacts(name="n", numa=numa, kernel_used_bytes=256 * MIB, default_huge_page_bytes=default, cpus=8)


def option_of(request: PlanRequest) -> FitOption | None:
    found = plan(request)
    assert found.shortfall is not None
    return next((o for o in found.shortfall.options if o.kind == "pool"), None)


def stepped(request: PlanRequest, pool_bytes: int) -> int:
    """The engine's own step from a size."""
    (database,) = request.databases
    return engine_named(database.engine).pool_step(
        with_pool(database, pool_bytes),
        database.page_bytes or request.node.base_page_bytes,
        DemandContext.of_node(request.node),
    )


def fits(request: PlanRequest, pool_bytes: int) -> bool:
    (database,) = request.databases
    try:
        return plan(replace(request, databases=(with_pool(database, pool_bytes),))).feasible
    except PlannerError:
        return False


def test_mysql_on_1g_pages_is_told_a_pool() -> None:
    settings = {"innodb_buffer_pool_size": "40G"}  # 320 chunks of 128 MiB, each on a page of 1 GiB
    database = DatabaseInstance(name="db", engine="mysql", version="8.0", settings=settings, page_bytes=GIB)
    request = PlanRequest(node=node(64, GIB), databases=(database,), policy=Policy(free_margin_bytes=0))
    option = option_of(request)
    assert option is not None
    assert option.pool_bytes is not None
    assert fits(request, option.pool_bytes)
    step = stepped(request, option.pool_bytes)
    assert step == GIB  # eight instances of a chunk of 128 MiB
    assert not fits(request, option.pool_bytes + step)


def case(rng: random.Random) -> PlanRequest:
    gib = rng.choice((6, 20, 64, 200))
    pool = int(gib * rng.uniform(1.05, 3.0)) + 1
    default = rng.choice((2 * MIB, GIB))
    chunk = rng.choice((None, "64M", "128M", "999M", "1G", "2G"))
    mysql = {"innodb_buffer_pool_size": f"{pool}G"}
    chunked = mysql if chunk is None else {**mysql, "innodb_buffer_pool_chunk_size": chunk}
    engine, version, settings = rng.choice(
        (
            ("mysql", "8.0", chunked),
            ("mysql", "8.4", mysql),
            ("mariadb", "10.6", mysql),
            ("mariadb", "10.11.8", mysql),
            ("oracle", "19", {"sga_target": f"{pool}G"}),
            ("jvm", "17", {"Xmx": f"{pool}g"}),
            ("jvm", rng.choice(("11", "21", "25")), {"Xmx": f"{pool}g", "gc": rng.choice(COLLECTORS)}),
            ("mysql", "8.4", {**chunked, "innodb_buffer_pool_instances": str(rng.choice((1, 3, 8, 64)))}),
            ("oracle", "19", {"sga_target": f"{pool}G", "use_large_pages": "FALSE", "processes": "300"}),
            ("db2", "11.5", {"database_memory": f"{pool}G"}),
            ("postgresql", "17", {"shared_buffers": f"{pool}GB", "max_connections": "200", "huge_pages": "off"}),
            ("postgresql", "16", {"shared_buffers": f"{pool}GB", "max_connections": "50"}),
        )
    )
    size = default if engine in {"mysql", "oracle", "db2"} else rng.choice((2 * MIB, GIB))
    database = DatabaseInstance(
        name="db", engine=engine, version=version, settings=settings, page_bytes=rng.choice((None, size, size))
    )
    return PlanRequest(node=node(gib, default), databases=(database,), policy=Policy(free_margin_bytes=0))


@pytest.mark.parametrize("seed", SEEDS)
def test_one_step_above_does_not_fit(seed: int) -> None:
    rng = random.Random(seed)
    named = 0
    for number in range(40):
        request = case(rng)
        option = option_of(request) if not plan(request).feasible else None
        if option is None or option.pool_bytes is None:
            assert not any(fits(request, size * 32 * MIB) for size in (1, 2, 4, 8, 32)), (seed, number)
            continue
        named += 1
        found = option.pool_bytes
        step = stepped(request, found)
        assert fits(request, found), (seed, number)
        unit = max(step, MIB)
        above = [found + step, found + unit, *(found + unit * rng.randrange(1, 1_000) for _ in range(4))]
        above += [found + MIB, *(found + MIB * rng.randrange(1, 3_000) for _ in range(4))]
        assert not any(fits(request, size) for size in above), (seed, number, option.text)
    assert named > 20


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[PlanRequest]:
    """Changed requests that are planned for the options."""
    requests: list[PlanRequest] = []

    def counted(inputs: ChoiceInputs, request: PlanRequest) -> int:
        requests.append(request)
        return missing(inputs, request)

    missing = plan_module._missing
    monkeypatch.setattr(plan_module, "_missing", counted)
    return requests


@pytest.mark.parametrize(
    ("engine", "version", "settings"),
    [
        ("postgresql", "16", {"shared_buffers": "100GB", "max_connections": "50"}),
        ("postgresql", "17", {"shared_buffers": "100GB", "max_connections": "200", "huge_pages": "off"}),
        ("oracle", "19", {"sga_target": "100G"}),
        ("db2", "11.5", {"database_memory": "100G"}),
        ("mysql", "8.0", {"innodb_buffer_pool_size": "100G"}),
        ("mariadb", "11.4.5", {"innodb_buffer_pool_size": "100G"}),
        ("jvm", "17", {"Xmx": "100g", "gc": "Parallel"}),
    ],
)
def test_the_size_is_worked_out_not_searched_by_plans(
    engine: str, version: str, settings: dict[str, str], asked: list[PlanRequest]
) -> None:
    """A plan that does not fit plans three more at most: the pool that fits, one step above, and no other."""
    database = DatabaseInstance(name="db", engine=engine, version=version, settings=settings)
    assert option_of(PlanRequest(node=node(64), databases=(database,))) is not None
    assert len(asked) <= 3


def test_the_least_pool_is_one_that_the_engine_does_not_round_up() -> None:
    """Db2 takes a KiB less than its least, 1 MiB, and puts it on four pages of 1 GiB, which do not fit."""
    database = DatabaseInstance(
        name="db", engine="db2", version="11.5", settings={"database_memory": "132G"}, page_bytes=GIB
    )
    numa = tuple(NumaNode(id=i, mem_total_bytes=3 * GIB) for i in range(2))
    request = PlanRequest(
        node=replace(node(6, GIB), numa=numa), databases=(database,), policy=Policy(free_margin_bytes=0)
    )
    assert option_of(request) is not None


@pytest.mark.parametrize("beside_mib", [4600, 5182, 5600])
def test_a_cap_that_others_use_up_too_leaves_the_pool_that_fits(beside_mib: int) -> None:
    """What lacks is more than the pool takes, and the smallest pools are below the engine's least: one still fits."""
    heap = DatabaseInstance(name="db", engine="jvm", version="21", settings={"Xmx": "9826m", "gc": "G1"})
    others = (
        DatabaseInstance(name="a", engine="mariadb", settings={"innodb_buffer_pool_size": f"{beside_mib}M"}),
        replace(heap, name="b", settings={"Xmx": "3015m", "gc": "G1"}, page_bytes=2 * MIB),
    )
    request = PlanRequest(
        node=node(13),
        databases=(heap, *others),
        reservations=Reservations(kubernetes=True, provider="gke"),
        policy=Policy(slack_fraction=0.0, slack_min_pages=0),
    )

    def fits_with(pool_bytes: int) -> bool:
        return plan(replace(request, databases=(with_pool(heap, pool_bytes), *others))).feasible

    assert fits_with(64 * MIB)
    option = option_of(request)
    assert option is not None
    assert option.pool_bytes is not None
    assert fits_with(option.pool_bytes)
    assert not fits_with(option.pool_bytes + 2 * MIB)


@pytest.mark.parametrize(
    ("engine", "setting", "unit"), [("mariadb", "innodb_buffer_pool_size", "M"), ("jvm", "Xmx", "m")]
)
def test_where_not_even_the_least_pool_fits_no_other_is_planned(
    engine: str, setting: str, unit: str, asked: list[PlanRequest]
) -> None:
    """The least of these engines is above their first step; with 256 databases each plan takes 0.1 s."""
    sizes = (40_000, *range(4_000, 4_016))
    databases = tuple(DatabaseInstance(name=f"d{k}", engine=engine, settings={setting: f"{k}{unit}"}) for k in sizes)
    assert option_of(PlanRequest(node=node(64), databases=databases)) is None
    assert len(asked) <= 2

"""A fit is ok only where the size of every database is known: given, read, mapped, or its engine's own default."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    Meminfo,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    ObservedSegment,
    ObservedUnit,
    Plan,
    PlanRequest,
    Pool,
    State,
)
from hugeplan.planner.plan import plan
from hugeplan.planner.verdict import Answer, verdict

SIZES = {"postgresql": ("shared_buffers", "8GB"), "mysql": ("innodb_buffer_pool_size", "8G"),
         "mariadb": ("innodb_buffer_pool_size", "8G"), "redis": ("maxmemory", "8gb"), "jvm": ("Xmx", "8g")}  # fmt: skip
NODE = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),), kernel_used_bytes=GIB)
USED = ObservedUnit(key="pods/db", kind="pod", name="db", source="cgroup_v2", ordinary_bytes=20 * GIB)


def fit(found: Plan) -> State:
    (only,) = [finding for finding in found.findings if finding.code == "memory_fit"]
    return only.state


def observed(server: ObservedDatabase, instance: DatabaseInstance | None = None) -> Plan:
    """The plan of a node where one server is seen to run and its node's memory is known."""
    memory = Meminfo(
        mem_total_bytes=64 * GIB, mem_free_bytes=30 * GIB, buffers_bytes=0, cached_bytes=10 * GIB,
        s_reclaimable_bytes=0, s_unreclaim_bytes=GIB, kernel_stack_bytes=0, page_tables_bytes=0,
        anon_pages_bytes=20 * GIB, shmem_bytes=GIB,
    )  # fmt: skip
    sample = NodeSample(databases=(server,), memory=memory, units=(USED,), processes=())
    described = instance or DatabaseInstance(name="db", engine=server.engine, runs_as=server.key)
    return plan(PlanRequest(node=NODE, databases=(described,), sample=sample))


@pytest.mark.parametrize("engine", SIZES)
def test_a_setting_that_nobody_read_is_asked_for(engine: str) -> None:
    name, value = SIZES[engine]
    unread = DatabaseInstance(name="db", engine=engine, unread_settings=(name,))
    found = plan(PlanRequest(node=NODE, databases=(unread,)))
    assert (fit(found), found.fits, found.feasible) == (State.UNKNOWN, None, True)
    assert f"{name} of db was not read" in found.headline
    judged = verdict(found)
    assert judged.answer is Answer.NOT_ENOUGH_KNOWN
    assert name in judged.reason
    given = plan(PlanRequest(node=NODE, databases=(replace(unread, settings={name: value}),)))
    assert (fit(given), given.fits) == (State.OK, True)
    assert "not read" not in given.headline


@pytest.mark.parametrize("engine", sorted(SIZES.keys() - {"redis"}))
def test_a_described_database_without_a_size_has_its_engines_default(engine: str) -> None:
    found = plan(PlanRequest(node=NODE, databases=(DatabaseInstance(name="db", engine=engine),)))
    assert fit(found) is State.OK


def test_an_engine_without_a_default_has_no_size_until_it_is_given() -> None:
    """Redis takes whatever is written to it where maxmemory is not set."""
    found = plan(PlanRequest(node=NODE, databases=(DatabaseInstance(name="cache", engine="redis"),)))
    assert (fit(found), found.fits) == (State.UNKNOWN, None)


@pytest.mark.parametrize("engine", sorted(SIZES.keys() - {"redis"}))
@pytest.mark.parametrize("complete", [False, None])
def test_a_running_server_of_which_neither_settings_nor_mappings_were_read(engine: str, complete: bool | None) -> None:
    server = ObservedDatabase(key="db:1", engine=engine, unit="pods/db", settings_complete=complete)
    assert fit(observed(server)) is State.UNKNOWN
    name, value = SIZES[engine]
    told = DatabaseInstance(name="db", engine=engine, runs_as="db:1", settings={name: value})
    assert fit(observed(server, told)) is not State.UNKNOWN


@pytest.mark.parametrize("engine", ["postgresql", "mysql", "mariadb"])
def test_a_running_server_whose_settings_were_all_read_runs_at_its_default(engine: str) -> None:
    server = ObservedDatabase(
        key="db:1", engine=engine, unit="pods/db", settings_complete=True, shared_bytes=150 * MIB, private_bytes=MIB
    )
    assert fit(observed(server)) is State.OK


@pytest.mark.parametrize("engine", ["postgresql", "mysql", "mariadb"])
def test_a_mapping_of_the_defaults_size_tells_the_size(engine: str) -> None:
    segment = ObservedSegment(bytes=150 * MIB, backing="base")
    server = ObservedDatabase(key="db:1", engine=engine, unit="pods/db", segments=(segment,), shared_bytes=150 * MIB)
    assert fit(observed(server)) is State.OK


@pytest.mark.parametrize(("given", "meant"), [("32", "32GB"), ("16", "16GB")])
def test_a_size_without_a_unit_is_asked_about_before_anything_is_given_back(given: str, meant: str) -> None:
    pools = (Pool(page_bytes=2 * MIB, nr_hugepages=17_000, free_hugepages=17_000, resv_hugepages=0),)
    node = replace(NODE, numa=(NumaNode(id=0, mem_total_bytes=64 * GIB, pools=pools),))
    database = DatabaseInstance(name="db", engine="postgresql", settings={"shared_buffers": given})
    judged = verdict(plan(PlanRequest(node=node, databases=(database,), sample=NodeSample(databases=(), processes=()))))
    assert judged.answer is Answer.NOT_ENOUGH_KNOWN
    assert meant in judged.reason
    written = replace(database, settings={"shared_buffers": "256kB"})
    request = PlanRequest(node=node, databases=(written,), sample=NodeSample(databases=(), processes=()))
    assert verdict(plan(request)).answer is Answer.DO_IT

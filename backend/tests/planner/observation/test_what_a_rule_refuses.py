"""A running server whose settings or version no rule accepts is read as far as it can be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hugeplan.planner.demand import DemandContext
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
    PlanRequest,
)
from hugeplan.planner.observation.databases import (
    as_instance,
    as_it_runs,
    canonical_engine,
    instance_names,
    pages_as_set,
    pages_of,
    pool_bytes_of,
    server_name,
)
from hugeplan.planner.plan import plan
from hugeplan.scenario_file import ScenarioDocument, scenario_as_it_runs, to_request

CONTEXT = DemandContext()


def server(engine: str = "postgresql", **fields: object) -> ObservedDatabase:
    return ObservedDatabase(**{"key": "k", "engine": engine} | fields)


def test_a_setting_and_a_version_that_the_rule_refuses_are_left_out() -> None:
    found = as_instance(
        server(version="99", settings={"shared_buffers": "8GB", "max_connections": "many"}), "main", CONTEXT
    )
    assert (found.version, found.settings) == (None, {"shared_buffers": "8GB"})
    assert pool_bytes_of(found, CONTEXT) == 8 * GIB
    assert pool_bytes_of(DatabaseInstance(name="a", engine="postgresql", version="99"), CONTEXT) is None


def test_an_engine_without_rules_keeps_its_name_and_takes_no_pages() -> None:
    other = server("tarantool", port=3301)
    assert canonical_engine("tarantool") == "tarantool"
    assert as_instance(other, "t", CONTEXT).settings == {}
    assert pages_as_set(other, CONTEXT) == {}
    assert server_name(other) == "tarantool on port 3301"


@pytest.mark.parametrize(
    ("fields", "pages"),
    [
        ({"settings": {"shared_buffers": "8GB"}, "huge_pages_status": "off"}, {}),
        ({"settings": {"shared_buffers": "8GB", "huge_pages": "off"}}, {}),
    ],
)
def test_pages_that_a_server_would_take(fields: dict[str, object], pages: dict[int, int]) -> None:
    assert pages_as_set(server(**fields), CONTEXT) == pages
    (count,) = pages_as_set(server(settings={"shared_buffers": "8GB", "huge_pages": "try"}), CONTEXT).values()
    assert 4096 < count < 4400


def test_pages_that_a_server_maps() -> None:
    size = CONTEXT.default_huge_page_bytes
    segments = tuple(ObservedSegment(bytes=size, backing="hugetlb", page_bytes=page) for page in (size, None))
    assert pages_of(server(segments=segments), size) == {size: 2}
    assert pages_of(server(hugetlb_bytes=3 * size - 1), size) == {size: 3}
    assert pages_of(server(hugetlb_bytes=0), size) == {}
    assert pages_of(server(), size) is None


def test_servers_of_one_engine_are_told_apart_by_port_then_pid_then_place() -> None:
    same = [server(key=str(n), port=5432, pid=pid) for n, pid in enumerate((11, None))]
    named = instance_names([*same, server(key="2", port=5433), server("mysql", key="3")])
    assert named == {"0": "postgresql-pid-11", "1": "postgresql-2", "2": "postgresql-5433", "3": "mysql"}


SEGMENTS = (ObservedSegment(bytes=2 * GIB, backing="base", page_bytes=4096),)
HUGE = {"shared_buffers": "1GB", "huge_page_size": "3GB"}


@pytest.mark.parametrize(
    ("odd", "pages", "said"),
    [
        (server(settings=HUGE), {"postgresql-2": None}, "huge_page_size names pages of 3G"),
        (server(settings=HUGE | {"huge_pages": "off"}), {"postgresql-2": None}, "huge_page_size names pages of 3G"),
        (server("jvm", settings={"Xmx": "8g", "LargePageSizeInBytes": "3g"}), {"jvm": 2 * MIB}, "LargePageSize"),
        (server("db2", settings={"database_memory": "9000", "db2_large_page_mem": "DB:16GB"}), {"db2": 2 * MIB}, "16G"),
        (server(segments=SEGMENTS), {}, "shared_buffers is not known; expected the size that PostgreSQL runs with"),
        (server("generic"), {}, "segment_size is not set"),
    ],
)
def test_a_server_that_no_plan_takes_leaves_the_plan_of_the_others(
    odd: ObservedDatabase, pages: dict[str, int | None], said: str
) -> None:
    good = server(key="good", settings={"shared_buffers": "8GB"}, pid=1)
    memory = Meminfo(mem_total_bytes=64 * GIB, mem_free_bytes=40 * GIB, cached_bytes=GIB, anon_pages_bytes=10 * GIB)
    node = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=64 * GIB),))
    sample = NodeSample(memory=memory, databases=(good, odd), processes=())
    assert as_it_runs(replace(sample, databases=(odd,)), CONTEXT), "alone it is planned, and refused by its name"
    scenario = scenario_as_it_runs(node, sample).model_dump(mode="json", exclude_defaults=True)
    for request in (
        PlanRequest(node=node, databases=as_it_runs(sample, CONTEXT), sample=sample),
        to_request(ScenarioDocument.model_validate(scenario), node, sample=sample),
    ):
        found = plan(request)
        first, *others = found.instances
        assert (first.page_bytes, {one.name: one.page_bytes for one in others}) == (2 * MIB, pages)
        assert found.now is not None
        assert said in " ".join(found.now.notes)
        lacks = [f.reason for f in found.findings if f.title == "Its settings name a page size that the node lacks"]
        assert len(lacks) == (None in pages.values())

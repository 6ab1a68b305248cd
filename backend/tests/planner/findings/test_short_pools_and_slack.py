"""What engines do with a pool that is too small, slack that locks too much, and THP advice that agrees with itself."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    Finding,
    Meminfo,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    ObservedSegment,
    PlanRequest,
    Policy,
    Pool,
    State,
)
from hugeplan.planner.plan import plan
from hugeplan.scenario_file import load, to_request


def node(pages: int, page_bytes: int = 2 * MIB, **facts: object) -> NodeFacts:
    pools = (Pool(page_bytes=page_bytes, nr_hugepages=pages, free_hugepages=pages, resv_hugepages=0),)
    numa = (NumaNode(id=0, mem_total_bytes=64 * GIB, pools=pools),)
    return replace(NodeFacts(name="db-7", numa=numa, kernel_used_bytes=GIB), **facts)  # type: ignore[arg-type]


def finding(code: str, where: NodeFacts, *databases: DatabaseInstance, policy: Policy | None = None) -> Finding:
    found = plan(PlanRequest(node=where, databases=databases, policy=policy or Policy()))
    return next(f for f in found.findings if f.code == code)


@pytest.mark.parametrize(
    ("engine", "settings", "consequence"),
    [
        ("postgresql", {"shared_buffers": "2GB"}, "falls back to base pages as a whole, and all 907 pages (1.77 GiB)"),
        ("postgresql", {"shared_buffers": "2GB", "huge_pages": "on"}, "db will not start, and all 907 pages"),
        ("oracle", {"sga_target": "2G", "use_large_pages": "ONLY"}, "db will not start"),
        ("oracle", {"sga_target": "2G"}, "takes what there is and base pages for the rest"),
        ("mysql", {"innodb_buffer_pool_size": "2G"}, "falls back mapping by mapping"),
        ("jvm", {"Xmx": "2g", "gc": "G1"}, "falls back mapping by mapping"),
        ("jvm", {"Xmx": "2g", "gc": "Z"}, "db will not start, and all 907 pages"),
        ("jvm", {"-Xmx": "2g", "-XX:+UseZGC": "true"}, "db will not start"),
    ],
)
def test_a_partly_given_pool_says_what_the_engine_will_do(
    engine: str, settings: dict[str, str], consequence: str
) -> None:
    database = DatabaseInstance(name="db", engine=engine, settings=settings, page_bytes=2 * MIB)
    found = finding("pool_short", node(907), database)
    assert found.state is State.WRONG
    assert consequence in found.reason


def test_zgc_ends_on_a_part_of_its_pages_and_starts_where_none_is_free() -> None:
    """Measured with JDK 17 and 25: exit status 1 with too few pages, base pages and a warning with none."""
    database = DatabaseInstance(name="db", engine="jvm", settings={"Xmx": "2g", "UseZGC": "on"}, page_bytes=2 * MIB)
    found = finding("silent_fallback", node(907), database)
    assert found.state is State.ATTENTION
    assert found.title == "A short pool stops it, an empty one may go unnoticed"
    assert found.reason == (
        "With a short pool the engine does not start; with one that has no free page it uses base pages."
    )
    said = finding("will_not_start", node(907), database)
    assert (said.state, said.title) == (State.OK, "The plan holds the pages without which it does not start")
    assert "UseZGC = on needs all its huge pages" in said.reason
    said = finding("will_not_start", node(907), replace(database, settings={"Xmx": "90g", "gc": "Z"}))
    assert (said.state, said.title) == (State.WRONG, "It will not start: UseZGC = on needs all its huge pages")
    codes = {f.code for f in plan(PlanRequest(node=node(0), databases=(replace(database, page_bytes=0),))).findings}
    assert "will_not_start" not in codes, "with no page at all it starts"


@pytest.mark.parametrize(
    ("facts", "settings", "asked", "size"),
    [
        ({}, {}, None, 2 * MIB),
        ({}, {}, GIB, GIB),
        ({}, {"LargePageSizeInBytes": "1g"}, None, None),
        ({"arch": "ppc64le", "base_page_bytes": 64 << 10, "default_huge_page_bytes": 16 * MIB,
          "huge_page_sizes_bytes": (16 * MIB, 16 * GIB)}, {}, None, None),
    ],
)  # fmt: skip
def test_zgc_gets_pages_of_2m_or_is_told_that_it_ends(
    facts: dict[str, object], settings: dict[str, str], asked: int | None, size: int | None
) -> None:
    """JDK 17 and 25 end with "Incompatible large page size": such a plan kept the database down after its reboot."""
    where = replace(node(0), numa=(NumaNode(id=0, mem_total_bytes=1024 * GIB),), **facts)  # type: ignore[arg-type]
    database = DatabaseInstance(name="db", engine="jvm", settings={"Xmx": "512g", "UseZGC": "on", **settings})
    found = plan(PlanRequest(node=where, databases=(replace(database, page_bytes=asked),)))
    assert found.instances[0].page_bytes == size
    wrong = [f.reason for f in found.findings if f.code == "page_size_not_available" and f.state is State.WRONG]
    assert wrong == (["ZGC does not start with pages of 1G, it takes those of 2M alone."] if size == GIB else [])


def test_a_pool_that_lacks_only_slack_has_no_consequence() -> None:
    database = DatabaseInstance(name="db", engine="postgresql", settings={"shared_buffers": "2GB"}, page_bytes=2 * MIB)
    needed = plan(PlanRequest(node=node(0), databases=(database,))).pools[0].demand_pages
    found = finding("pool_short", node(needed), database)
    assert "falls back" not in found.reason


def test_one_slack_page_of_16g_loses_against_a_smaller_size() -> None:
    """The margin between two page sizes is smaller than a page of 16 GiB that stays idle."""
    numa = (NumaNode(id=0, mem_total_bytes=512 * GIB),)
    power = NodeFacts(
        name="p",
        numa=numa,
        arch="ppc64le",
        base_page_bytes=64 << 10,
        huge_page_sizes_bytes=(16 * MIB, 16 * GIB),
        default_huge_page_bytes=16 * MIB,
        kernel_used_bytes=GIB,
    )
    database = DatabaseInstance(name="db", engine="generic", settings={"segment_size": "96GiB"})
    found = plan(PlanRequest(node=power, databases=(database,)))
    assert found.instances[0].page_bytes != 16 * GIB


def test_slack_that_locks_much_is_a_finding() -> None:
    database = DatabaseInstance(name="db", engine="postgresql", settings={"shared_buffers": "8GB"}, page_bytes=GIB)
    found = finding("planned_idle", node(0), database, policy=Policy(slack_fraction=0.4))
    assert found.state is State.ATTENTION
    assert finding("planned_idle", node(0), replace(database, page_bytes=2 * MIB)).state is State.OK


@pytest.mark.parametrize(("in_use", "waits"), [(110, 48), (2, 0)])
def test_pages_that_the_server_uses_until_it_is_restarted_are_not_called_free(in_use: int, waits: int) -> None:
    server = ObservedDatabase(
        key="s",
        engine="postgresql",
        settings={"shared_buffers": "200MB"},
        segments=(ObservedSegment(bytes=in_use * 2 * MIB, backing="hugetlb", page_bytes=2 * MIB),),
        hugetlb_bytes=in_use * 2 * MIB,
    )
    where = node(112)
    pools = (replace((where.numa[0].pools or ())[0], free_hugepages=112 - in_use),)
    where = replace(where, numa=(replace(where.numa[0], pools=pools),))
    database = DatabaseInstance(
        name="db", engine="postgresql", runs_as="s", page_bytes=2 * MIB, settings={"shared_buffers": "100MB"}
    )
    memory = Meminfo(mem_total_bytes=64 * GIB, mem_free_bytes=60 * GIB, anon_pages_bytes=GIB, shmem_bytes=0)
    sample = NodeSample(memory=memory, databases=(server,), processes=())
    request = PlanRequest(node=where, databases=(database,), policy=Policy(slack_fraction=0), sample=sample)
    found = next(f for f in plan(request).findings if f.code == "pool_idle")
    assert found.state is State.ATTENTION
    said = " ".join((found.title, found.reason, found.fix or ""))
    assert ("these pages are free" in said) is not bool(waits)
    assert (f"{waits} of them are in use until then" in said and "estart" in (found.fix or "")) is bool(waits), said


@pytest.mark.parametrize(
    ("engine", "version", "mode", "state"),
    [
        ("mongodb", "8", "always", State.OK),
        ("mongodb", "8", "never", State.ATTENTION),
        ("mongodb", "7", "always", State.ATTENTION),
        ("redis", "7", "always", State.ATTENTION),
        ("redis", "7", "madvise", State.OK),
        ("postgresql", "17", "always", State.ATTENTION),
    ],
)
def test_thp_findings_agree_with_the_engines_own_advice(engine: str, version: str, mode: str, state: State) -> None:
    database = DatabaseInstance(name="db", engine=engine, version=version)
    found = finding("thp_always", node(0, thp_enabled=mode), database)
    assert found.state is state


@pytest.mark.parametrize("page_bytes", [2 * MIB, GIB])
@pytest.mark.parametrize(
    ("engine", "version", "settings"),
    [
        ("postgresql", "17", {"shared_buffers": "9GB"}),
        ("postgresql", "12", {"shared_buffers": "9GB"}),
        ("mysql", "8.0", {"innodb_buffer_pool_size": "11G"}),
        ("mariadb", "11.4", {"innodb_buffer_pool_size": "7G"}),
        ("oracle", "19c", {"sga_target": "9G"}),
        ("jvm", "21", {"Xmx": "9g"}),
    ],
)
def test_slack_of_nothing_is_at_most_a_page_per_pool_for_the_rules_error(
    engine: str, version: str, settings: dict[str, str], page_bytes: int
) -> None:
    """Two instances share the pool, so that their bounds are not added up either."""
    databases = [
        {"name": name, "engine": engine, "version": version, "settings": settings, "page_size": page_bytes}
        for name in ("a", "b")
    ]
    node = {"name": "n", "arch": "x86_64", "memory": "1TiB", "cpus": 16}
    document = {"schema_version": 1, "node": node, "databases": databases, "policy": {"slack": 0}}
    found = plan(to_request(load(json.dumps(document), "scenario")))
    assert sum(pool.pages for pool in found.pools) > 0
    uncertain = any(instance.demand.error_pages for instance in found.instances)
    for pool in found.pools:
        at_most = uncertain and pool.page_bytes == page_bytes
        assert pool.slack_pages == int(at_most)
    assert not [f for f in found.findings if f.code == "planned_idle" and f.state is not State.OK]


@pytest.mark.parametrize(("pool", "cpus"), [("40G", 16), ("9G", 4), ("200G", 64)])
def test_mysql_on_a_default_of_1g_names_both_fixes_and_the_first_one_helps(pool: str, cpus: int) -> None:
    where = replace(node(0), cpus=cpus, default_huge_page_bytes=GIB, numa=(NumaNode(id=0, mem_total_bytes=512 * GIB),))
    database = DatabaseInstance(name="shop", engine="mysql", settings={"innodb_buffer_pool_size": pool})
    found = finding("rounding_waste", where, database)
    assert found.state is State.ATTENTION
    assert "default_hugepagesz=2M" in (found.fix or "")
    chunk = re.search(r"innodb_buffer_pool_chunk_size = (\d+M)", found.fix or "")
    assert chunk
    settings = {**database.settings, "innodb_buffer_pool_chunk_size": chunk[1]}
    mended = plan(PlanRequest(node=where, databases=(replace(database, settings=settings, page_bytes=GIB),)))
    demand = mended.instances[0].demand
    assert 20 * demand.waste_bytes < demand.pages * GIB
    assert next(f for f in mended.findings if f.code == "rounding_waste").state is State.OK


@pytest.mark.parametrize(("page_bytes", "pages"), [(2 * MIB, 1536), (GIB, 3)])
def test_what_nobody_can_pass_gets_no_slack_and_is_told_nothing(page_bytes: int, pages: int) -> None:
    """A node with exactly the pages of its pods' limits was WRONG for want of the slack."""
    found = {}
    for is_limit in ("on", "off"):
        limit = DatabaseInstance(
            name="pod", engine="generic", settings={"segment_size": "3GiB", "is_limit": is_limit}, page_bytes=page_bytes
        )
        made = plan(PlanRequest(node=node(pages, page_bytes), databases=(limit,), policy=Policy()))
        found[is_limit] = sum(pool.pages for pool in made.pools)
        wrong = [f.code for f in made.findings if f.state is State.WRONG]
        assert (wrong == []) is (is_limit == "on")
        assert any(f.code == "wrong_default_size" for f in made.findings) is (
            is_limit == "off" or page_bytes == 2 * MIB
        )
    assert found["on"] == pages < found["off"]

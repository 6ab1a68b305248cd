"""A server that may allocate on some NUMA nodes only has its pages there, whether the scenario describes it or not."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import combinations

import pytest

from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    Finding,
    GlobalPool,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    ObservedSegment,
    Plan,
    PlanRequest,
    Pool,
)
from hugeplan.planner.plan import plan

PAGE = 2 * MIB


@dataclass(frozen=True)
class Server:
    """``has``: pages touched on each NUMA node; ``untouched`` ones are only reserved. ``nodes``: empty is all."""

    name: str
    has: tuple[int, ...]
    nodes: tuple[int, ...] = ()
    is_described: bool = False
    untouched: int = 0
    numa_node: int | None = None

    @property
    def pages(self) -> int:
        return sum(self.has) + self.untouched


def planned(
    *servers: Server,
    spare: tuple[int, ...] | None = None,
    is_free_known: bool = True,
    also: DatabaseInstance | None = None,
) -> Plan:
    """A node with 64 GiB on each NUMA node and these servers, with as many pages as they need, and the spare ones."""
    nodes = len(servers[0].has)
    touched = [sum(server.has[i] for server in servers) for i in range(nodes)]
    reserved = sum(server.untouched for server in servers)
    free = list(spare) if spare else [reserved if i == 0 else 0 for i in range(nodes)]
    numa = tuple(
        NumaNode(
            id=i,
            mem_total_bytes=64 * GIB,
            pools=(Pool(page_bytes=PAGE, nr_hugepages=used + more, free_hugepages=more if is_free_known else None),),
        )
        for i, (used, more) in enumerate(zip(touched, free, strict=True))
    )
    running = tuple(
        ObservedDatabase(
            key=server.name,
            engine="generic",
            settings={"segment_size": f"{server.pages * 2}MiB"},
            hugetlb_bytes=server.pages * PAGE,
            segments=(ObservedSegment(bytes=server.pages * PAGE, backing="hugetlb", page_bytes=PAGE),),
            allowed_numa_nodes=server.nodes or tuple(range(nodes)),
        )
        for server in servers
    )
    described = tuple(
        DatabaseInstance(
            name=server.name,
            engine="generic",
            settings={"segment_size": f"{server.pages * 2}MiB"},
            page_bytes=PAGE,
            runs_as=server.name,
            numa_node=server.numa_node,
        )
        for server in servers
        if server.is_described
    )
    total = GlobalPool(
        page_bytes=PAGE,
        nr_hugepages=sum(touched) + sum(free),
        free_hugepages=sum(free) if is_free_known else None,
        resv_hugepages=reserved if is_free_known else None,
    )
    sample = NodeSample(databases=running, processes=(), pools=(total,))
    databases = described if also is None else (*described, also)
    node = NodeFacts(name="n", numa=numa, kernel_used_bytes=GIB)
    return plan(PlanRequest(node=node, databases=databases, sample=sample))


def pools(found: Plan) -> dict[int, int]:
    return {pool.numa_node: pool.pages for pool in found.pools}


def held(found: Plan) -> dict[int, int]:
    return {pool.numa_node: pool.held_pages for pool in found.pools if pool.held_pages}


def said(found: Plan, code: str) -> list[Finding]:
    return [one for one in found.findings if one.code == code]


def lacking(found: Plan, servers: tuple[Server, ...]) -> tuple[int, ...] | None:
    """NUMA nodes with fewer pages than the servers need that may allocate on no other ones; None: none has."""
    count, have = len(servers[0].has), pools(found)
    needs = [
        (server.pages, {server.numa_node} if server.numa_node is not None else set(server.nodes or range(count)))
        for server in servers
    ]
    for size in range(1, count + 1):
        for chosen in combinations(range(count), size):
            if sum(pages for pages, nodes in needs if nodes <= {*chosen}) > sum(have.get(i, 0) for i in chosen):
                return chosen
    return None


@pytest.mark.parametrize("seed", range(40))
def test_whoever_starts_finds_its_pages_where_it_may_allocate(seed: int) -> None:
    """Found: 63 of 861 plans that fit moved pages of a server out of the NUMA nodes of its socket."""
    rng = random.Random(seed)
    for _ in range(5):
        count = rng.choice((2, 3, 4))
        servers = []
        for position in range(rng.randrange(1, 6)):
            nodes = tuple(sorted(rng.sample(range(count), rng.randrange(1, count)))) if rng.random() < 0.7 else ()
            has = [0] * count
            for i in rng.sample(nodes or range(count), rng.randrange(1, len(nodes or has) + 1)):
                has[i] = rng.choice((32, 80, 512, 1500))
            described = rng.random() < 0.6
            to = rng.choice(nodes) if nodes and described and rng.random() < 0.3 else None
            untouched = rng.choice((0, 0, 0, 200))
            servers.append(Server(f"s{position}", tuple(has), nodes, described, untouched, to))
        reserved = sum(server.untouched for server in servers)
        spare = [rng.choice((0, 0, 3, 700)) for _ in range(count)]
        spare[rng.randrange(count)] += reserved
        found = planned(*servers, spare=tuple(spare), is_free_known=rng.random() < 0.8)
        assert found.fits
        assert lacking(found, tuple(servers)) is None, servers
        assert not said(found, "numa_node_not_allowed") or {f.state for f in said(found, "numa_node_not_allowed")} == {
            "ok"
        }


def test_a_fix_that_is_followed_takes_no_page_of_a_neighbour() -> None:
    """Found: 256 pages of x were moved to node 2, where it may not allocate, and called not needed."""
    x = Server("x", (512, 0, 0, 0), (0, 1))
    y = Server("y", (0, 0, 512, 0), (2, 3), is_described=True, numa_node=0)
    (wrong,) = said(planned(x, y), "numa_node_not_allowed")
    assert wrong.fix.startswith("Leave numa_node out, set it to one of its nodes")
    for numa_node, on in ((None, {2, 3}), (2, {2}), (3, {3})):
        found = planned(x, Server("y", y.has, y.nodes, is_described=True, numa_node=numa_node))
        assert [f.state for f in said(found, "numa_node_not_allowed")] == ["ok"]
        assert held(found) == {0: 512}
        assert {i for i, pages in pools(found).items() if pages} == {0, *on}
        assert all("in use until then" not in f.reason or "node 0" not in f.subject for f in said(found, "pool_idle"))


def test_reserved_pages_of_a_bound_server_are_kept_on_its_node() -> None:
    """The kernel counts reserved pages for the whole node only: they were looked for where free pages are."""
    x = Server("x", (100, 0), (0,), untouched=412)
    found = planned(x, Server("y", (0, 80), (1,), is_described=True), spare=(412, 412))
    assert held(found) == {0: 512}


def test_where_the_free_count_is_not_known_the_pages_of_a_server_that_runs_are_kept() -> None:
    servers = (Server("x", (512, 0), (0,)), Server("y", (0, 256), is_described=True, numa_node=0))
    found = planned(*servers, is_free_known=False)
    assert pools(found)[0] >= 512 + 256


@pytest.mark.parametrize(
    ("x", "y", "loser"),
    [
        (Server("x", (512, 0), (0,)), Server("y", (0, 512), is_described=True), "x"),
        (Server("x", (512, 0)), Server("y", (0, 512), (1,), is_described=True), "y"),
        (Server("x", (512, 0, 0), (0, 1)), Server("y", (0, 512, 0), (1, 2), is_described=True), "x and y"),
        (Server("x", (512, 0), (0,)), Server("y", (0, 512), (1,), is_described=True), None),
        (Server("x", (512, 0, 0), (0, 1)), Server("y", (0, 512, 0), (1,), is_described=True), "y"),
        (Server("x", (512, 0, 0, 0), (0, 1)), Server("y", (0, 0, 512, 0), (2, 3), is_described=True), None),
        (Server("x", (0, 512)), Server("y", (512, 0), is_described=True), None),
    ],
)
def test_the_start_order_is_said_of_servers_that_nobody_described(x: Server, y: Server, loser: str | None) -> None:
    """Found: y takes pages on the node of x, and x does not start; no finding said so."""
    found = [f for f in said(planned(x, y), "start_order") if f.state != "ok"]
    assert [f.title for f in found] == ([f"Pages for {loser} may be taken on their NUMA nodes"] if loser else [])


def test_one_that_may_not_start_is_not_said_to_have_all_its_pages() -> None:
    """Found beside that very warning: ok, the plan holds the pages without which it does not start."""
    numa = tuple(NumaNode(id=i, mem_total_bytes=64 * GIB, pools=()) for i in range(2))
    settings = {"shared_buffers": "16000MB", "huge_pages": "on"}
    a, b = (
        DatabaseInstance(name=name, engine="postgresql", version="17", settings=settings, page_bytes=PAGE, numa_node=to)
        for name, to in (("a", None), ("b", 0))
    )
    found = plan(PlanRequest(node=NodeFacts(name="n", numa=numa, kernel_used_bytes=GIB), databases=(a, b)))
    assert {f.subject: f.state for f in said(found, "will_not_start")} == {"a": "ok", "b": "attention"}


@pytest.mark.parametrize(("nodes", "fits"), [((0, 1), False), ((), True)])
def test_what_a_server_needs_beside_its_pages_is_on_its_nodes_too(nodes: tuple[int, ...], *, fits: bool) -> None:
    """Two nodes of 64 GiB are full of another server's pages; two others are free."""
    x = Server("x", (28_000, 28_000, 0, 0), (0, 1))
    y = DatabaseInstance(name="y", engine="generic", settings={"segment_size": "60GiB"}, page_bytes=0, runs_as="y")
    found = planned(x, Server("y", (100, 0, 0, 0), nodes), also=y)
    assert found.fits is fits

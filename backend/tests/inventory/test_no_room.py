"""Nobody is told to reserve what a node has no room for, however the advice is spelled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from support.kubernetes_objects import container, listing, node, pod, postgres

from hugeplan.artifacts import Artifact, render
from hugeplan.formats.quantities import parse_quantity
from hugeplan.inventory.answer import FleetAnswer, answer
from hugeplan.inventory.document import inventory_document
from hugeplan.inventory.kubernetes import read_kubernetes
from hugeplan.inventory.text import inventory_text
from hugeplan.object_files import reasons, scenarios
from hugeplan.planner.pages import kubernetes_resource_name
from hugeplan.planner.plan import plan as make_plan
from hugeplan.planner.units import format_bytes
from hugeplan.scenarios.work import Question, request_of

Json = dict[str, Any]
SMALL, LARGE = {"shared_buffers": "1GB"}, {"shared_buffers": "99GB"}
CARRIES_OUT = re.compile(r"(Reserve \d|Apply the plan|^Set hugepages-|Set evictionSoft|Reserve the planned)")


def answered(*items: Json) -> FleetAnswer:
    return answer(read_kubernetes(listing(*items).encode()))


def fixes(found: FleetAnswer, name: str) -> list[str]:
    (one,) = (each for each in found.nodes if each.node.facts.name == name)
    return [finding.fix for finding in one.findings if finding.fix]


def test_a_node_that_does_not_fit_is_told_to_reserve_nothing_and_not_counted() -> None:
    found = answered(
        node("a"), node("b", pools={"2Mi": "0"}), postgres("pg-0", "a", SMALL), postgres("pg-1", "b", LARGE)
    )
    assert any(fix.startswith("Reserve ") for fix in fixes(found, "a"))
    assert [fix for fix in fixes(found, "b") if CARRIES_OUT.search(fix) and "Once the plan fits: " not in fix] == []
    assert any("the node has no room" in fix for fix in fixes(found, "b"))
    (fitting,) = (each for each in found.nodes if each.fits)
    total = sum(fitting.planned_bytes.values())
    first = inventory_text(found).splitlines()[0]
    assert first == f"Reserve {format_bytes(total)} of huge pages on 1 node of 2. 1 node does not fit: b."
    assert inventory_document(found)["planned_bytes"] == total


def test_where_no_node_fits_nothing_is_reserved() -> None:
    found = answered(node("b"), postgres("pg-1", "b", LARGE))
    first = inventory_text(found).splitlines()[0]
    assert first == "Reserve no huge pages yet on 1 node of 1. 1 node does not fit: b."
    assert inventory_document(found)["planned_bytes"] == 0


def test_what_is_not_known_to_fit_is_not_counted() -> None:
    unread = pod("pg-0", "a", container("db", "postgres:16"), labels={"cnpg.io/cluster": "orders"})
    found = answered(node("a"), unread, node("c"), postgres("pg-1", "c", SMALL))
    by_name = {each.node.facts.name: each for each in found.nodes}
    assert by_name["a"].fits is None
    assert by_name["a"].planned_bytes
    assert "Whether their plans fit is not known of 1 node." in inventory_text(found).splitlines()[0]
    assert found.fitting_bytes == sum(by_name["c"].planned_bytes.values())


@pytest.mark.parametrize("pool", ["0", "64Mi", "8Gi"])
@pytest.mark.parametrize(("image", "arguments"), [("postgres:16", []), ("mysql:8.4", ["--large-pages"])])
def test_nobody_is_told_to_carry_out_what_stands_in_for_a_size(image: str, arguments: list[str], pool: str) -> None:
    """A database of 8 GiB that insists on its pages does not start on those of its engine's default."""
    unread = pod("db-0", "a", container("db", image, args=arguments, limits={"memory": "16Gi"}))
    found = answered(node("a", pools={"2Mi": pool}), unread)
    assert found.nodes[0].fits is None
    said = fixes(found, "a")
    assert any(fix.startswith("Set ") and "to the size that the server is to have" in fix for fix in said)
    assert not [fix for fix in said if CARRIES_OUT.search(fix) or re.search(r"Release|[0-9]Mi|huge_pages = on", fix)]


@pytest.mark.parametrize("size", ["8Pi", "65Gi"])
def test_a_limit_larger_than_the_node_is_no_count_of_pages(size: str) -> None:
    """No such pod can ever have its pages; one of 64 GiB on 65 is counted, and then the plan does not fit."""
    limits = {"memory": "4Gi", "hugepages-2Mi": size}
    app = pod("x", "a", container("c", "app", limits=limits))
    found = answered(node("a", pools={"2Mi": "2Gi"}), postgres("pg-0", "a", SMALL, limits=limits), app)
    (one,) = found.nodes
    told = [int(n.replace(",", "")) for fix in fixes(found, "a") for n in re.findall(r"[Rr]eserve ([\d,]+)", fix)]
    assert max(told, default=0) * 2**21 <= one.node.facts.mem_total_bytes
    if size == "8Pi":
        assert "pod default/x is left out: it asks for 8 PiB, more than its node may have" in inventory_text(found)
        assert not any(one.planned_bytes.values())
    text = inventory_text(found)
    assert not re.search(r"plan.*\d,\d{3},\d{3},\d{3}", text)


def test_a_limit_that_fits_is_counted() -> None:
    app = pod("x", "a", container("c", "app", limits={"memory": "1Gi", "hugepages-2Mi": "3Gi"}))
    found = answered(node("a", pools={"2Mi": "2Gi"}), postgres("pg-0", "a", SMALL), app)
    assert any(re.match(r"Reserve [\d,]+ pages of 2M in all", fix) for fix in fixes(found, "a"))


def test_a_node_that_does_not_fit_is_in_no_group_that_is_told_to_carry_out_the_plan() -> None:
    found = answered(node("a"), node("b"), postgres("pg-0", "a", SMALL), postgres("pg-1", "b", LARGE))
    lines = inventory_text(found).splitlines()
    told = [line for line in lines if line.strip().startswith("Do: ")]
    assert any("Do: Once the plan fits: Set hugepages-2Mi" in line for line in told)
    same = [(i, line) for i, line in enumerate(lines) if "The same on" in line and "b, pg-1" in line]
    for i, _ in same:
        do = next(line for line in reversed(lines[:i]) if "Do: " in line)
        assert "Once the plan fits: " in do or not CARRIES_OUT.search(do.strip().removeprefix("Do: "))


def after_patches(files: Sequence[Artifact], pods: Sequence[Json]) -> Counter[str]:
    """What the scheduler counts of these pods once every patch of a StatefulSet is applied: bytes by resource."""
    patches = {}
    for file in files:
        if file.kind.startswith("statefulset_patch"):
            name = re.findall(r"statefulset (\S+)", file.install)[0]
            (patched,) = yaml.safe_load(file.content)["spec"]["template"]["spec"]["containers"]
            patches[name, patched["name"]] = patched["resources"]["limits"]
    asked: Counter[str] = Counter()
    for one in pods:
        own: Counter[str] = Counter()
        for each in one["spec"]["containers"]:
            owner = one["metadata"]["ownerReferences"][0]["name"]
            limits = each["resources"].get("limits", {}) | patches.get((owner, each["name"]), {})
            own.update({name: int(parse_quantity(limits[name]) or 0) for name in limits if limits[name] is not None})
        whole = {
            name: parse_quantity(size) for name, size in one["spec"].get("resources", {}).get("limits", {}).items()
        }
        asked.update({**own, **whole})
    return Counter({name: size for name, size in asked.items() if name.startswith("hugepages-")})


def held(name: str, *words: str, size: str = "2Mi", image: str = "postgres:16", kind: str = "StatefulSet") -> Json:
    limits = {"memory": "10Gi", f"hugepages-{size}": "9Gi"}
    return pod(f"{name}-0", "a", container("db", image, args=list(words), limits=limits), owner=(kind, name))


def beside(name: str, *, of_pod: bool = False) -> Json:
    """A database whose limit is its sidecar's, or its pod's."""
    limits = {"memory": "10Gi", "hugepages-2Mi": "9Gi"}
    database = container("db", "postgres:16", args=["-c", "shared_buffers=1GB"], limits={"memory": "10Gi"})
    if of_pod:
        return pod(f"{name}-0", "a", database, owner=("StatefulSet", name), resources={"limits": limits})
    return pod(f"{name}-0", "a", database, container("proxy", "proxy", limits=limits), owner=("StatefulSet", name))


STANDING = {
    "a page size that the node lacks": held("x", "-c", "shared_buffers=8GB", "-c", "huge_page_size=3GB"),
    "off": held("x", "-c", "shared_buffers=8GB", "-c", "huge_pages=off"),
    "off, pages of 1G": held("x", "-c", "shared_buffers=8GB", "-c", "huge_pages=off", size="1Gi"),
    "MySQL, off": held("x", "--innodb-buffer-pool-size=8G", "--large-pages=OFF", image="mysql:8.0.36"),
    "an engine without a pool": held("x", "redis-server", "--maxmemory", "1gb", image="redis:7"),
    "no patch, a limit above its need": held("x", "-c", "shared_buffers=1GB", kind="ReplicaSet"),
    "no patch, of another size": held("x", "-c", "shared_buffers=1GB", size="1Gi", kind="ReplicaSet"),
    "a patch": held("x", "-c", "shared_buffers=1GB"),
    "a patch, of another size": held("x", "-c", "shared_buffers=1GB", size="1Gi"),
    "a sidecar's": beside("x"),
    "the pod's": beside("x", of_pod=True),
    "no database": held("x", image="registry.example/app:1"),
}


@pytest.mark.parametrize("case", STANDING)
def test_after_the_patches_no_pod_asks_for_pages_that_are_not_reserved(case: str) -> None:
    """The scheduler counts a limit, whether its pages are used or not: the next pod would stay Pending."""
    pods = [STANDING[case], postgres("pg-0", "a", {"shared_buffers": "4GB"})]
    found = answered(node("a", pools={"2Mi": "9Gi", "1Gi": "9Gi"}), *pods)
    (one,) = found.nodes
    assert one.fits
    assert one.plan is not None
    ((_, document),), _ = scenarios(found)
    request = request_of(Question(document))
    for plan, asked in ((one.plan, one.request), (make_plan(request), request)):
        pools = Counter[str]()
        for pool in plan.pools:
            pools[kubernetes_resource_name(pool.page_bytes)] += pool.pages * pool.page_bytes
        wanted = after_patches(render(plan, asked, force=True), pods)
        assert wanted <= pools, (wanted, pools)
    told = [
        int(n.replace(",", ""))
        for fix in fixes(found, "a")
        for n in re.findall(r"[Rr]eserve ([\d,]+) pages of 2M", fix)
    ]
    assert all(count * 2**21 <= one.planned_bytes[2**21] for count in told), told


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({"max_connections": "32768"}, "1Gi"),
        ({"max_connections": "32768"}, None),
        ({"max_connections": "11500"}, "1Gi"),
        ({"shared_buffers": "60GB"}, "1Gi"),
        ({"shared_buffers": "99GB"}, None),
    ],
)
def test_a_pod_that_asks_for_more_than_it_can_have_takes_no_files_from_others(
    settings: dict[str, str], limit: str | None
) -> None:
    limits = {"memory": limit} if limit else {}
    odd = postgres("x", "a", settings, namespace="other", limits=limits)
    found = answered(node("a"), node("b"), postgres("db-0", "a", SMALL), postgres("db-1", "b", SMALL), odd)
    assert reasons(found, force=True) == [None, None]
    assert [each.fits for each in found.nodes] == [True, True]
    documents, _ = scenarios(found)
    assert sorted(one["name"] for _, document in documents for one in document["databases"]) == ["db-0", "db-1"]
    assert "databases other/x: beyond node or limits" in inventory_text(found)


@pytest.mark.parametrize("name", ["Bad_Name", "a..b", "good"])
def test_a_pod_whose_label_no_object_can_have_takes_no_files_from_others(name: str) -> None:
    """Found: the node by itself patched the object in all its pods, and the other's scenario had base pages for it."""
    one = container("postgres", "postgres:16", args=["-c", "shared_buffers=1GB"])
    odd = pod("x", "a", one, labels={"cnpg.io/cluster": name}, namespace="other")
    found = answered(node("a"), node("b"), postgres("db-0", "a", SMALL), postgres("db-1", "b", SMALL), odd)
    assert reasons(found, force=True) == [None, None]
    documents, notes = scenarios(found)
    assert not [note for note in notes if "page_size 0" in note]
    by_pod = {one["name"]: one for _, document in documents for one in document["databases"]}
    assert {by_pod[name]["stateful_set"] for name in ("db-0", "db-1")} == {"default/db"}
    assert "page_size" not in {*by_pod["db-0"], *by_pod["db-1"]}
    assert (by_pod["x"].get("operator_object") is None) is (name != "good")

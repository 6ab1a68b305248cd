"""Input as clusters and people give it: kubectl 1.25 to 1.34, 50 MB lists, mixed kinds, damage, doubles, notations."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest
from support.kubernetes_objects import container, listing, node, pod, postgres

from hugeplan.inventory.answer import answer
from hugeplan.inventory.kubernetes import read_kubernetes
from hugeplan.inventory.model import Inventory, InventoryError

Json = dict[str, Any]
MB = 10**6
OBJECTS = (
    node("db-1", pools={"2Mi": "2Gi", "1Gi": "0"}),
    node("app-1"),
    postgres("pg-0", "db-1", {"shared_buffers": "4GB"}, limits={"memory": "12Gi", "hugepages-2Mi": "2Gi"}),
    pod("web-1", "app-1", container(requests={"memory": "1Gi"}), container(requests={"memory": "2Gi"})),
    pod("web-2", "app-1", container(requests={"memory": "1Gi"})),
)
SERVICE: Json = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": []}}


def read(*objects: Json) -> Inventory:
    return read_kubernetes(listing(*objects).encode())


def _kubectl(version: int) -> str:
    """The objects as kubectl and an API server of 1.``version`` print them: fields that each release added."""
    objects = [copy.deepcopy(one) for one in OBJECTS]
    for one in objects:
        meta = one["metadata"]
        meta.update({"uid": f"uid-{meta['name']}", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"})
        if version <= 25:
            meta["managedFields"] = [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {}}}]
        (_age_node if one["kind"] == "Node" else _age_pod)(one, version)
    head: Json = {"resourceVersion": ""} if version >= 26 else {"resourceVersion": "", "selfLink": ""}
    return json.dumps({"apiVersion": "v1", "items": objects, "kind": "List", "metadata": head}, indent=4)


def _age_node(one: Json, version: int) -> None:
    status = one.setdefault("status", {})
    if version >= 30:
        status["runtimeHandlers"] = [{"name": "", "features": {"recursiveReadOnlyMounts": True}}]
    if version >= 31:
        status["features"] = {"supplementalGroupsPolicy": True}
    if version >= 33:
        status.setdefault("nodeInfo", {})["swap"] = {"capacity": 0}


def _age_pod(one: Json, version: int) -> None:
    status = one.setdefault("status", {})
    states = [{"name": c["name"], "ready": True, "image": "x"} for c in one["spec"]["containers"]]
    status["containerStatuses"] = states
    if version >= 27:
        states[0].update({"allocatedResources": {"memory": "1Gi"}, "resources": {"requests": {"memory": "1Gi"}}})
    if version >= 28:
        status["hostIPs"] = [{"ip": "10.0.0.1"}]
    if version >= 29:
        status["conditions"] = [{"type": "PodReadyToStartContainers", "status": "True", "lastProbeTime": None}]
    if version >= 31:
        states[0]["user"] = {"linux": {"uid": 0, "gid": 0, "supplementalGroups": [0]}}
        states[0]["volumeMounts"] = [{"name": "v", "mountPath": "/v", "recursiveReadOnly": "Disabled"}]
    if version >= 33:
        one["metadata"]["generation"], status["observedGeneration"] = 1, 1
    if version >= 34:
        one["spec"]["containers"][0]["restartPolicyRules"] = [{"action": "Restart", "exitCodes": {"operator": "In"}}]


@pytest.mark.parametrize("version", range(25, 35))
def test_every_kubectl_tells_the_same(version: int) -> None:
    assert [one.facts for one in read_kubernetes(_kubectl(version).encode()).nodes] == [
        one.facts for one in read(*OBJECTS).nodes
    ]
    found = read_kubernetes(_kubectl(version).encode())
    assert found.notes == ()
    for mine, plain in zip(found.nodes, read(*OBJECTS).nodes, strict=True):
        assert (mine.tenants, mine.databases, mine.requested_bytes) == (
            plain.tenants, plain.databases, plain.requested_bytes,
        )  # fmt: skip


def test_one_pass_and_object_by_object_tell_the_same() -> None:
    """An unknown kind anywhere sends the whole list the long way."""
    assert read(*OBJECTS).nodes == read(SERVICE, *OBJECTS).nodes == read(*OBJECTS, SERVICE).nodes


def test_custom_resources_are_read_in_one_pass_too() -> None:
    labels = {"cnpg.io/cluster": "shop", "cnpg.io/podRole": "instance"}
    cluster = {
        "apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": {"name": "shop", "namespace": "default"},
        "spec": {"instances": 1, "postgresql": {"parameters": {"shared_buffers": "6GB"}}},
    }  # fmt: skip
    one = pod(
        "shop-1", "db-1", container(name="postgres", image="ghcr.io/cloudnative-pg/postgresql:17.2"), labels=labels
    )
    for objects in ((node("db-1"), one, cluster), (SERVICE, node("db-1"), one, cluster)):
        (found,) = read(*objects).nodes[0].databases
        assert found.instance.settings["shared_buffers"] == "6GB"
    foreign = cluster | {"apiVersion": "example.com/v1"}
    (found,) = read(node("db-1"), one, foreign).nodes[0].databases
    assert "shared_buffers" not in found.instance.settings


def _large(kind: str) -> bytes:
    """50 MB of something."""
    if kind == "configmap":
        text = "x" * (50 * MB)
        return listing(
            *OBJECTS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": text}}
        ).encode()
    if kind == "services":
        one = json.dumps(SERVICE)
        return f'{{"apiVersion": "v1", "kind": "List", "items": [{",".join([one] * (50 * MB // len(one)))}]}}'.encode()
    if kind == "brackets":
        return b'{"apiVersion": "v1", "kind": "List", "items": ' + b"[" * (50 * MB)
    if kind == "cut":
        return _large("services")[: 50 * MB - 40]
    return b'{"apiVersion": "v1", "kind": "List", "items": [' + b" " * (50 * MB)


@pytest.mark.parametrize("kind", ["configmap", "services", "brackets", "cut", "spaces"])
def test_fifty_megabytes_of_anything_end_soon_in_an_answer_or_a_sentence(kind: str) -> None:
    data = _large(kind)
    started = time.process_time()
    if kind in {"configmap", "services"}:
        assert len(read_kubernetes(data).nodes) == (2 if kind == "configmap" else 0)
    else:
        with pytest.raises(InventoryError) as refused:
            read_kubernetes(data)
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 300
    assert time.process_time() - started < 30


def test_mixed_kinds_in_any_order_tell_the_same() -> None:
    other = {"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {"name": "db-1"}, "spec": {}}
    plain = read(*OBJECTS)
    mixed = read(OBJECTS[4], other, SERVICE, OBJECTS[1], OBJECTS[3], SERVICE, OBJECTS[0], OBJECTS[2])
    assert [one.facts for one in mixed.nodes] == [one.facts for one in plain.nodes]
    assert [one.databases for one in mixed.nodes] == [one.databases for one in plain.nodes]


def test_every_object_twice_counts_once_and_is_said() -> None:
    found = read(*OBJECTS, *OBJECTS)
    assert [one.tenants for one in found.nodes] == [one.tenants for one in read(*OBJECTS).nodes]
    assert any("is in the input twice" in note for note in found.notes)
    assert any("pods are in the input twice" in note for note in found.notes)


@pytest.mark.parametrize("place", range(1, 12))
def test_a_list_cut_anywhere_is_one_sentence(place: int) -> None:
    text = _kubectl(34).encode()
    with pytest.raises(InventoryError, match="cut off"):
        read_kubernetes(text[: len(text) * place // 12])


@pytest.mark.parametrize("notation", ["4294967296", "4Gi", "4096Mi", "4194304Ki", "4294967296000m", "4.294967296e9"])
def test_quantities_in_every_notation_are_the_same_tenant(notation: str) -> None:
    found = read(node("n"), pod("p", "n", container(requests={"memory": notation})))
    assert found.nodes[0].tenants[0].request_bytes == 4 << 30


@pytest.mark.parametrize("value", ["4GB", "many", "", "-4Gi", True, None, [], {}])
def test_a_quantity_that_is_none_is_unknown_and_the_rest_is_planned(value: object) -> None:
    found = read(*OBJECTS, pod("odd", "app-1", container(resources={"requests": {"memory": value}})))
    assert {one.node.facts.name for one in answer(found).nodes} == {"db-1", "app-1"}
    (app,) = [one for one in found.nodes if one.facts.name == "app-1"]
    is_left_out = any("Pod odd" in note for note in found.notes)
    assert is_left_out or app.pods_without_memory_request == 1
    assert app.requested_bytes == 4 << 30, "the others' requests stay"


@pytest.mark.parametrize("value", [None, True, ["1Gi"], {"a": 1}, "16GiB"])
def test_a_quantity_that_is_none_takes_no_pod_away(value: object) -> None:
    """The pod was left out, and the answer said that there is no database."""
    given = postgres("pg-0", "db-1", {"shared_buffers": "4GB"})
    given["spec"]["containers"][0]["resources"] = {"requests": {"memory": value}}
    found = read(node("db-1"), given)
    assert [one.instance.name for one in found.nodes[0].databases] == ["pg-0"]
    assert any("no Kubernetes quantity" in note for note in found.notes) is (value is not None)


@pytest.mark.parametrize("value", ["64GiB", "-2Mi", None, [1]])
def test_a_pool_that_is_no_quantity_is_unknown_and_its_size_stays(value: object) -> None:
    """The size vanished with it, and pages of another size were planned."""
    given = node("db-1", pools={"2Mi": "0", "1Gi": "0"})
    given["status"]["capacity"]["hugepages-2Mi"] = value
    (found,) = read(given, postgres("pg-0", "db-1", {"shared_buffers": "4GB"})).nodes
    assert found.facts.huge_page_sizes_bytes == (2 << 20, 1 << 30)
    assert (found.facts.numa[0].pools, found.hugetlb_pool_bytes) == (None, None)
    assert any(text.startswith(f"hugepages-2Mi: {value} is no") for text in found.unknown)


def test_what_has_no_limit_of_its_own_ends_at_the_pods() -> None:
    given = postgres("pg-0", "db-1", {"shared_buffers": "4GB"})
    given["spec"]["containers"].append({"name": "exporter", "image": "exporter", "resources": {}})
    given["spec"]["resources"] = {"requests": {"memory": "8Gi"}, "limits": {"memory": "10Gi"}}
    (found,) = read(node("db-1"), given).nodes
    assert [one.limit_bytes for one in found.tenants] == [10 << 30]
    whole = answer(read(node("db-1"), given))
    assert not [one for one in whole.all_findings if one.title == "A pod has no memory limit"]

"""Reading Kubernetes objects: shapes of kubectl and of the API, damage, and what it does to the inventory."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kubernetes_objects import container, listing, node, pod, postgres

from hugeplan.inventory.kubernetes import looks_like_kubernetes, read_kubernetes
from hugeplan.inventory.model import FoundNode, Inventory, InventoryError
from hugeplan.planner.model import GIB, KIB, MIB

Json = dict[str, Any]


def inventory(*items: Json) -> Inventory:
    """The inventory of one list."""
    return read_kubernetes(listing(*items).encode())


def only_node(*items: Json) -> FoundNode:
    """The one node of a list."""
    (found,) = inventory(*items).nodes
    return found


SMALL = (node("a"), postgres("pg-0", "a", {"shared_buffers": "1GB"}), pod("app", "a"))


class TestShapes:
    @pytest.mark.parametrize(
        "text",
        [
            listing(*SMALL),
            json.dumps({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": list(SMALL)}),
            # kubectl before 1.20 printed a selfLink; lists may hold lists.
            json.dumps({"apiVersion": "v1", "items": [{"apiVersion": "v1", "kind": "List", "items": list(SMALL)}],
                        "kind": "List", "metadata": {"resourceVersion": "", "selfLink": ""}}),
            # one command after the other, without anything between
            listing(SMALL[0]) + listing(*SMALL[1:]),
            listing(SMALL[0]) + "\n" + listing(*SMALL[1:]) + "\n",
            # one object per line, as jq -c prints them
            "\n".join(json.dumps(item) for item in SMALL),
            json.dumps(list(SMALL)),
            "\ufeff" + listing(*SMALL),
            yaml.safe_dump({"apiVersion": "v1", "items": list(SMALL), "kind": "List"}),
            yaml.safe_dump(list(SMALL)),
            "# of today\n---\n" + yaml.safe_dump_all(SMALL),
        ],
        ids=["kubectl", "kind first", "list in list", "two documents", "two lines", "json lines", "array", "bom",
             "yaml", "yaml list", "yaml documents"],
    )  # fmt: skip
    def test_every_shape_gives_the_same(self, text: str) -> None:
        assert looks_like_kubernetes(text.encode())
        found = read_kubernetes(text.encode())
        assert found.nodes == inventory(*SMALL).nodes
        assert found.notes == ()

    @pytest.mark.parametrize("word", ["=", "<<", "0x_", "0b_", "-0b_", "12", "2024-01-01T00:00:00Z"])
    def test_what_kubectl_prints_without_quotes_is_text_or_a_number(self, word: str) -> None:
        document = yaml.safe_dump({"apiVersion": "v1", "items": list(SMALL), "kind": "List"})
        noted = document.replace("  metadata:\n", f"  metadata:\n    annotations:\n      a: {word}\n      {word}: b\n")
        assert noted != document
        found = read_kubernetes(noted.encode())
        assert [one.facts.name for one in found.nodes] == [one.facts.name for one in inventory(*SMALL).nodes]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("apiVersion: v1\nitems: &a [*a]\nkind: List\n", "alias"),
            ("apiVersion: v1\nkind: [List\n", "line"),
            ("NAME   STATUS   ROLES\na      Ready    <none>\n", "use -o json"),
        ],
    )
    def test_what_is_neither_json_nor_plain_yaml_is_one_line(self, text: str, words: str) -> None:
        with pytest.raises(InventoryError) as refused:
            read_kubernetes(text.encode())
        assert words in str(refused.value)
        assert "\n" not in str(refused.value)

    def test_raw_lists_of_the_api_give_their_items_no_kind(self) -> None:
        def bare(item: Json) -> Json:
            return {key: value for key, value in item.items() if key not in {"kind", "apiVersion"}}

        text = json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": [bare(SMALL[0])]})
        text += json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [bare(one) for one in SMALL[1:]]})
        assert read_kubernetes(text.encode()).nodes == inventory(*SMALL).nodes

    def test_kinds_of_other_groups_are_passed_over(self) -> None:
        longhorn = {"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {"name": "a"}, "spec": {"x": 1}}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "dg=="}}
        assert inventory(longhorn, *SMALL, secret, longhorn).nodes == inventory(*SMALL).nodes

    def test_a_scenario_is_not_taken_for_kubernetes(self) -> None:
        assert not looks_like_kubernetes(b"node:\n  name: db1\n")
        assert not looks_like_kubernetes(b'{"node": {"name": "db1", "memory": "64GiB"}}')


class TestDamage:
    def test_every_cut_is_one_sentence(self) -> None:
        whole = listing(*SMALL).encode()
        for length in range(1, len(whole) - 1, 97):
            with pytest.raises(InventoryError) as refused:
                read_kubernetes(whole[:length], "cut.json")
            assert "\n" not in str(refused.value)
            assert "cut.json" in str(refused.value)

    def test_a_cut_document_says_that_it_was_cut(self) -> None:
        with pytest.raises(InventoryError, match="ends in the middle of a JSON document"):
            read_kubernetes(listing(*SMALL).encode()[:2000])

    @pytest.mark.parametrize(
        "data", [b"", b"  \n", b"apiVersion: [\n", b"NAME STATUS\na Ready\n", b"\xff\xfe{", b"{]", b"nul"]
    )
    def test_what_is_not_json(self, data: bytes) -> None:
        with pytest.raises(InventoryError):
            read_kubernetes(data)

    @given(st.binary(max_size=200))
    @settings(max_examples=200)
    def test_no_bytes_raise_anything_else(self, data: bytes) -> None:
        for given_bytes in (data, b'{"kind":"List","items":[' + data, listing(node("a")).encode() + data):
            try:
                read_kubernetes(given_bytes)
            except InventoryError:
                continue

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=10,
        ),
        st.sampled_from(["metadata", "spec", "status"]),
        st.sampled_from(["Pod", "Node", "ConfigMap", "PersistentVolumeClaim"]),
    )
    @settings(max_examples=300, deadline=None)
    def test_one_bad_object_does_not_spoil_the_others(self, value: Any, field: str, kind: str) -> None:
        bad = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "bad", "namespace": "x"}, field: value}
        found = inventory(SMALL[0], bad, *SMALL[1:])
        assert [one.facts.name for one in found.nodes if one.facts.name != "bad"] == ["a"]
        assert len(next(one for one in found.nodes if one.facts.name == "a").databases) == 1

    def test_an_unreadable_object_is_named(self) -> None:
        bad = pod("bad", "a")
        bad["spec"]["containers"] = "none"
        assert inventory(*SMALL, bad).notes == (
            "not read: Pod bad: Expected `array | null`, got `str` - at `$.spec.containers`",
        )

    def test_deep_lists_end(self) -> None:
        text = '{"kind":"List","items":[' * 200 + "]}" * 200
        assert read_kubernetes(text.encode()).nodes == ()


class TestNodes:
    def test_memory_pools_and_reservations_agree_with_the_kubelet(self) -> None:
        # Measured on a 1.34 node: kubeReserved 200Mi, systemReserved 200Mi, evictionHard 100Mi.
        one = node("m", memory_kib=24684112, reserved_kib=500 * 1024, pools={"2Mi": "1400Mi", "1Gi": "1Gi"})
        assert one["status"]["allocatable"]["memory"] == "21689936Ki"
        found = only_node(one)
        assert found.facts.mem_total_bytes == 24684112 * KIB
        assert found.hugetlb_pool_bytes == {2 * MIB: 1400 * MIB, GIB: GIB}
        reserved = found.reservations
        parts = (reserved.kube_reserved_bytes, reserved.system_reserved_bytes, reserved.eviction_hard_bytes)
        assert parts == (400 * MIB, 0, 100 * MIB)
        assert found.allocatable_bytes == 21689936 * KIB

    @pytest.mark.parametrize(
        ("arch", "pools", "base"),
        [
            ("amd64", {"2Mi": "0", "1Gi": "0"}, 4 * KIB),
            ("arm64", {"64Ki": "0", "2Mi": "0", "32Mi": "0", "1Gi": "0"}, 4 * KIB),
            ("arm64", {"2Mi": "0", "32Mi": "0", "1Gi": "0"}, 16 * KIB),
            ("arm64", {"2Mi": "0", "512Mi": "0", "16Gi": "0"}, 64 * KIB),
            ("s390x", {"1Mi": "0", "2Gi": "0"}, 4 * KIB),
        ],
    )
    def test_page_sizes_tell_the_base_page(self, arch: str, pools: dict[str, str], base: int) -> None:
        found = only_node(node("n", arch=arch, pools=pools))
        assert found.facts.base_page_bytes == base
        assert len(found.facts.huge_page_sizes_bytes) == len(pools)

    def test_pools_that_are_not_reported_are_unknown_not_none(self) -> None:
        found = only_node(node("n", pools={}))
        assert found.hugetlb_pool_bytes is None
        assert found.facts.numa[0].pools is None
        assert any("huge page sizes" in text for text in found.unknown)

    def test_nodes_that_cannot_be_planned_are_named(self) -> None:
        windows = node("w")
        windows["status"]["nodeInfo"]["operatingSystem"] = "windows"
        fresh = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "fresh"}, "status": {}}
        strange = node("s", memory_kib=1)
        strange["status"]["capacity"]["memory"] = "much"
        found = inventory(windows, fresh, strange, node("ok"))
        assert [one.facts.name for one in found.nodes] == ["ok"]
        assert sum("is left out" in note for note in found.notes) == 3

    def test_a_node_twice(self) -> None:
        same = inventory(node("a", memory_kib=1024**2), node("a", memory_kib=2 * 1024**2))
        assert [one.facts.mem_total_bytes for one in same.nodes] == [2 * GIB]
        assert "twice; the later one" in same.notes[0]
        (note,) = inventory(node("a", uid="1"), node("a", uid="2")).notes
        assert "two clusters" in note

    def test_pods_of_a_node_that_is_missing_are_counted(self) -> None:
        (note,) = inventory(node("a"), pod("x", "b"), pod("y", "b")).notes
        assert note == "node b is not in the input; its 2 pods are left out"


class TestPods:
    def test_requests_of_containers_sidecars_and_init_containers(self) -> None:
        one = pod(
            "p", "a",
            container("a", requests={"memory": "1Gi"}, limits={"memory": "2Gi"}),
            container("b", limits={"memory": "512Mi"}),
            initContainers=[
                container("sidecar", requests={"memory": "256Mi"}, limits={"memory": "256Mi"}, restartPolicy="Always"),
                container("first", requests={"memory": "4Gi"}, limits={"memory": "4Gi"}),
            ],
            overhead={"memory": "64Mi"},
        )  # fmt: skip
        (tenant,) = only_node(node("a"), one).tenants
        # The sidecar runs while the init container after it does.
        assert tenant.request_bytes == 4 * GIB + (256 + 64) * MIB
        assert tenant.limit_bytes == 4 * GIB + (256 + 64) * MIB

    @pytest.mark.parametrize(
        ("init", "expected"),
        [
            ([("i", 3), ("s", 1)], 3),  # before the sidecar it runs alone
            ([("s", 1), ("i", 3)], 4),
            ([("s", 1), ("s", 1), ("i", 1)], 4),  # 2 + two sidecars
            ([("s", 1), ("i", 5), ("s", 1)], 6),
            ([("i", 1)], 2),
        ],
    )
    def test_the_order_of_sidecars_and_init_containers_counts(self, init: list[tuple[str, int]], expected: int) -> None:
        """By hand, from PodRequests: the main container asks for 2; huge pages follow the same formula."""

        def asks(number: int, kind: str, units: int) -> Json:
            both = {"memory": f"{units}Gi", "hugepages-2Mi": f"{units}Gi"}
            always = {"restartPolicy": "Always"} if kind == "s" else {}
            return container(f"c{number}", requests=both, limits=both, **always)

        one = pod("p", "a", asks(0, "m", 2), initContainers=[asks(n, *own) for n, own in enumerate(init, 1)])
        found = only_node(node("a"), one)
        assert [tenant.request_bytes for tenant in found.tenants] == [expected * GIB]
        assert found.huge_page_users[0].limit_bytes == {2 * MIB: expected * GIB}

    def test_resources_of_the_pod_itself_replace_the_sum(self) -> None:
        own = {
            "requests": {"memory": "3Gi", "hugepages-2Mi": "1Gi"},
            "limits": {"memory": "5Gi", "hugepages-2Mi": "1Gi"},
        }
        one = pod("p", "a", container("a"), container("b", requests={"memory": "1Gi"}), resources=own,
                  overhead={"memory": "1Gi"})  # fmt: skip
        found = only_node(node("a"), one)
        (tenant,) = found.tenants
        assert (tenant.request_bytes, tenant.limit_bytes) == (4 * GIB, 6 * GIB)
        assert found.huge_page_users[0].limit_bytes == {2 * MIB: GIB}

    def test_a_container_without_a_request_makes_the_pod_unknown(self) -> None:
        found = only_node(node("a"), pod("p", "a", container("a", requests={"memory": "1Gi"}), container("b")))
        (tenant,) = found.tenants
        assert (tenant.request_bytes, tenant.limit_bytes) == (None, None)
        assert "memory of 1 pods without a memory request" in found.unknown

    def test_ended_pods_hold_nothing_and_pending_ones_have_no_node(self) -> None:
        waiting = postgres("pg-0", None)
        waiting["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "message": "0/1 nodes are available: 1 Insufficient hugepages-2Mi.",
            }
        ]
        found = inventory(node("a"), pod("done", "a", phase="Succeeded"), pod("bad", "a", phase="Failed"), waiting)
        assert found.nodes[0].pods == 0
        (database,) = found.not_scheduled
        assert database.not_scheduled_because == "0/1 nodes are available: 1 Insufficient hugepages-2Mi."

    def test_copies_of_a_workload_are_one_tenant(self) -> None:
        copies = [
            pod(f"web-{i}", "a", container(requests={"memory": "1Gi"}), owner=("ReplicaSet", "web")) for i in range(3)
        ]
        (tenant,) = only_node(node("a"), *copies).tenants
        assert (tenant.name, tenant.count, tenant.request_bytes) == ("default/web", 3, GIB)

    def test_what_runs_beside_a_database_is_a_tenant(self) -> None:
        metrics = container("metrics", "registry.example/metrics:1", requests={"memory": "64Mi"})
        own = {"image": "postgres:16", "requests": {"memory": "8Gi"}}
        sized = container("postgres", args=["-c", "shared_buffers=2GB"], **own)
        (tenant,) = only_node(node("a"), pod("pg-0", "a", sized, metrics)).tenants
        assert tenant.request_bytes == 64 * MIB
        assert "beside the database" in tenant.name
        # Without its size, what the server asks for stands in beyond what its default comes to: 7.8 GiB of the 8.
        tenant, unread = only_node(node("a"), pod("pg-0", "a", container("postgres", **own), metrics)).tenants
        assert tenant.request_bytes == 64 * MIB
        assert "settings not read" in unread.name
        assert unread.request_bytes is not None
        assert 7.5 * GIB < unread.request_bytes < 8 * GIB

    def test_measured_use_is_a_history(self) -> None:
        usage = {
            "apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics",
            "metadata": {"name": "app", "namespace": "default"},
            "containers": [{"name": "app", "usage": {"memory": "300Mi"}}],
        }  # fmt: skip
        (tenant,) = only_node(node("a"), pod("app", "a"), usage).tenants
        assert tenant.history is not None
        assert tenant.history.used_bytes == (300 * MIB,)

    def test_volumes_and_huge_page_mounts(self) -> None:
        claim = {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
            "status": {"capacity": {"storage": "100Gi"}},
        }  # fmt: skip
        one = pod(
            "pg-0", "a",
            container("postgres", "postgres:16", limits={"memory": "8Gi", "hugepages-2Mi": "4Gi"},
                      volumeMounts=[{"name": "huge", "mountPath": "/hugepages"}]),
            volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                     {"name": "huge", "emptyDir": {"medium": "HugePages"}}],
        )  # fmt: skip
        (found,) = only_node(node("a"), one, claim).databases
        assert found.volume_bytes == 100 * GIB
        assert found.hugetlbfs_mounts == (2 * MIB,)
        assert found.huge_pages_limit_bytes == {2 * MIB: 4 * GIB}
        assert found.instance.pod_hugepages_limit_bytes == 4 * GIB

    def test_pod_level_resources_of_1_34(self) -> None:
        one = pod("p", "a", container("c"), resources={"requests": {"memory": "3Gi"}, "limits": {"memory": "4Gi"}})
        (tenant,) = only_node(node("a"), one).tenants
        assert (tenant.request_bytes, tenant.limit_bytes) == (3 * GIB, 4 * GIB)

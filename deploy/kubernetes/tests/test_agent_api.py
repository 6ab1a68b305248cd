"""The agent's questions to a real API server, under the rights that the chart gives it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from test_chart import render

from hugeplan_agent.collectors import kubernetes_node
from hugeplan_agent.kubernetes_api import KubernetesApi, NotToldError
from rig.control_plane import ApiError, ControlPlane

SPACE = "asking"
NODE = "asked-node"
CAPACITY = {"cpu": "8", "memory": "65536000Ki", "hugepages-2Mi": "8Gi", "hugepages-1Gi": "0", "pods": "110"}
POD = {"containers": [{"name": "main", "image": "x", "env": [{"name": "PASSWORD", "value": "hidden"}]}]}


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A node with three pods, another node with one, and the chart's agent with its rights."""
    control_plane.kubectl("create", "namespace", SPACE)
    text = render({"agent": {"kubernetesApi": True}}, SPACE)
    control_plane.kubectl("apply", "--server-side", "-n", SPACE, "-f", "-", text=text)
    control_plane.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    control_plane.set_status(f"/api/v1/nodes/{NODE}", {"capacity": CAPACITY, "allocatable": CAPACITY})
    for name, node in (("a", NODE), ("b", NODE), ("c", NODE), ("far", "another-node")):
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": POD | {"nodeName": node}}
        control_plane.create(f"/api/v1/namespaces/{SPACE}/pods", body)
    yield control_plane
    control_plane.kubectl("delete", "node", NODE)
    control_plane.kubectl("delete", "pods", "--all", "-n", SPACE, "--grace-period=0", "--force")


def environment(cluster: ControlPlane) -> dict[str, str]:
    address = urlsplit(cluster.url)
    return {
        "KUBERNETES_SERVICE_HOST": str(address.hostname),
        "KUBERNETES_SERVICE_PORT": str(address.port),
        "HUGEPLAN_AGENT_NODE_NAME": NODE,
    }


class Account:
    """A service account's folder, as the kubelet mounts it; a new client for each question, so that none waits."""

    def __init__(self, cluster: ControlPlane, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        (folder / "ca.crt").write_bytes(cluster.certificate.read_bytes())
        self.use(cluster.service_account_token(SPACE, "demo-agent"))

    def use(self, token: str) -> None:
        (self.folder / "token").write_text(token)

    def api(self, **changed: str) -> KubernetesApi:
        return KubernetesApi(environment(self.cluster) | changed, self.folder)

    def refused(self, **changed: str) -> str:
        with pytest.raises(NotToldError) as refused:
            kubernetes_node.node_status(self.api(**changed))
        return str(refused.value)


@pytest.fixture
def account(cluster: ControlPlane, tmp_path: Path) -> Account:
    return Account(cluster, tmp_path)


def pods_of(api: KubernetesApi) -> list[str]:
    found = api.list_metadata("/api/v1/pods", {"fieldSelector": f"spec.nodeName={NODE}"})
    return sorted(item["metadata"]["name"] for item in found)


def test_it_reads_its_node(account: Account) -> None:
    assert not kubernetes_node.is_offered(environment(account.cluster), account.folder / "none")
    assert kubernetes_node.is_offered(environment(account.cluster), account.folder)
    read = kubernetes_node.node_status(account.api())
    assert kubernetes_node.resources(read["capacity"]) == {
        "memory": 65536000 << 10,
        "hugepages-2Mi": 8 << 30,
        "hugepages-1Gi": 0,
    }


def test_it_lists_the_metadata_of_its_own_nodes_pods_and_no_more(account: Account) -> None:
    api = account.api()
    found = api.list_metadata("/api/v1/pods", {"fieldSelector": f"spec.nodeName={NODE}"})
    assert sorted(item["metadata"]["name"] for item in found) == ["a", "b", "c"]
    assert "hidden" not in json.dumps(found)
    assert all("spec" not in item for item in found)
    assert set(kubernetes_node.names_of(found).values()) == {(SPACE, "a"), (SPACE, "b"), (SPACE, "c")}


def test_a_list_in_parts_is_whole(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the cache the API server makes parts of a list; here of one object each."""
    asked = []
    monkeypatch.setattr("hugeplan_agent.kubernetes_api.PAGE_ITEMS", 1)
    api = account.api()
    plain = api.get

    def from_etcd(path: str, query: dict[str, str], *rest: Any) -> dict[str, Any]:
        asked.append(query)
        return plain(path, {name: value for name, value in query.items() if name != "resourceVersion"}, *rest)

    monkeypatch.setattr(api, "get", from_etcd)
    assert pods_of(api) == ["a", "b", "c"]
    assert len(asked) >= 3
    assert all("continue" in query for query in asked[1:])


def test_a_list_that_expires_between_its_parts_is_begun_again(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """etcd is compacted, and the part that follows is asked for at a revision that is gone: a real 410."""
    cluster = account.cluster
    first = cluster.get(f"/api/v1/pods?limit=1&fieldSelector=spec.nodeName%3D{NODE}")
    token = first["metadata"]["continue"]
    later = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}}
    written = cluster.create(f"/api/v1/namespaces/{SPACE}/configmaps", later)
    compact(cluster, int(written["metadata"]["resourceVersion"]))
    # The API server keeps snapshots of the last minutes in memory; one that was restarted has etcd's history alone.
    assert cluster.api is not None
    cluster.api.kill()
    cluster.start_api()
    api = account.api()
    statuses: list[Any] = []
    plain = api.get

    def first_part_expires(path: str, query: dict[str, str], *rest: Any) -> dict[str, Any]:
        if not statuses:
            query = {name: value for name, value in query.items() if name != "resourceVersion"} | {"continue": token}
        try:
            found = plain(path, query, *rest)
        except NotToldError as error:
            statuses.append(error.status)
            raise
        statuses.append(200)
        return found

    monkeypatch.setattr(api, "get", first_part_expires)
    assert pods_of(api) == ["a", "b", "c"]
    assert statuses[0] == 410
    assert set(statuses[1:]) == {200}


def compact(cluster: ControlPlane, revision: int) -> None:
    """Make etcd forget what was before a revision."""
    (url,) = [word.removeprefix("--etcd-servers=") for word in cluster._api_command if "--etcd-servers=" in word]
    body = json.dumps({"revision": str(revision), "physical": True}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/v3/kv/compaction", data=body), timeout=30) as answer:
        assert answer.status == 200


def test_what_it_may_not_read_is_refused_and_said(account: Account) -> None:
    cluster = account.cluster
    token = cluster.service_account_token(SPACE, "demo-agent")
    for path in (
        "/api/v1/secrets",
        f"/api/v1/namespaces/{SPACE}/configmaps",
        "/api/v1/nodes",
        f"/api/v1/namespaces/{SPACE}/pods/a",
        f"/api/v1/nodes/{NODE}/proxy/configz",
        "/apis/apps/v1/deployments",
    ):
        with pytest.raises(ApiError) as refused:
            cluster.get(path, token=token)
        assert refused.value.status == 403, path
    with pytest.raises(ApiError) as refused:
        cluster.request("DELETE", f"/api/v1/namespaces/{SPACE}/pods/a", token=token)
    assert refused.value.status == 403
    with pytest.raises(NotToldError, match="403"):
        kubernetes_node.configz(account.api())


def test_tokens_that_are_no_good_are_said_and_a_renewed_one_is_taken(account: Account) -> None:
    cluster = account.cluster
    account.use("expired")
    assert "401" in account.refused()
    cluster.kubectl("create", "serviceaccount", "plain", "-n", SPACE)
    account.use(cluster.service_account_token(SPACE, "plain"))
    assert "403" in account.refused()
    api = account.api()
    with pytest.raises(NotToldError):
        kubernetes_node.node_status(api)
    account.use(cluster.service_account_token(SPACE, "demo-agent"))
    assert kubernetes_node.node_status(api), "the same client reads the renewed file"
    assert "404" in account.refused(HUGEPLAN_AGENT_NODE_NAME="no-such-node")
    assert "cannot be reached" in account.refused(KUBERNETES_SERVICE_PORT="1")


def test_an_api_server_killed_and_back(account: Account) -> None:
    cluster = account.cluster
    now = [0.0]
    api = KubernetesApi(environment(cluster), account.folder, clock=lambda: now[0])
    assert pods_of(api) == ["a", "b", "c"]
    assert cluster.api is not None
    cluster.api.kill()
    with pytest.raises(NotToldError, match="cannot be reached"):
        pods_of(api)
    cluster.start_api()
    with pytest.raises(NotToldError, match="not asked again"):
        pods_of(api)
    now[0] += 2.0
    assert pods_of(api) == ["a", "b", "c"]

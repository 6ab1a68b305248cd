"""The Prometheus source against a real Prometheus server with recorded series. SKIP where none is installed."""

from __future__ import annotations

import json
import math
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from threading import Event

import pytest
from support.http_server import answering

from hugeplan.cli import main
from hugeplan.inventory.answer import answer
from hugeplan.inventory.model import FoundNode, Inventory, InventoryError
from hugeplan.inventory.prometheus import queries, read_prometheus
from hugeplan.inventory.prometheus.client import TIMEOUT_SECONDS, PrometheusClient
from hugeplan.planner.model import GIB, MIB, State

HOUR = 3600
DAYS = 3
NODE_KIB = 64 * 1024 * 1024


def series(moments: list[int], lines: list[tuple[str, dict[str, str], float]]) -> dict[str, list[str]]:
    """Samples of every line at every moment, by metric."""
    found: dict[str, list[str]] = {}
    for name, labels, value in lines:
        written = ",".join(f'{key}="{text}"' for key, text in labels.items())
        for i, moment in enumerate(moments):
            # Memory in use grows and falls by a fifth over a day.
            wave = 1 + (0.2 * ((i % 24) / 24) if name == "container_memory_working_set_bytes" else 0)
            found.setdefault(name, []).append(f"{name}{{{written}}} {value * wave:.0f} {moment}")
    return found


def recorded() -> list[tuple[str, dict[str, str], float]]:
    """Two Kubernetes nodes with node_exporter on one, a host outside Kubernetes. Synthetic."""
    lines: list[tuple[str, dict[str, str], float]] = []
    for node, address in (("worker-1", "10.0.0.11"), ("worker-2", "10.0.0.12")):
        lines.append(
            ("kube_node_info", {"node": node, "internal_ip": address, "kernel_version": "6.1.0-18-amd64",
                                "kubelet_version": "v1.30.4", "container_runtime_version": "containerd://1.7.24"}, 1)
        )  # fmt: skip
        held = {"memory": NODE_KIB * 1024, "cpu": 16, "pods": 110, "hugepages_1Gi": 0,
                "hugepages_2Mi": 4 * GIB if node == "worker-1" else 0}  # fmt: skip
        for resource, value in held.items():
            lines.append(("kube_node_status_capacity", {"node": node, "resource": resource}, value))
        lines.append(
            ("kube_node_status_allocatable", {"node": node, "resource": "memory"},
             NODE_KIB * 1024 - held["hugepages_2Mi"] - 500 * MIB)
        )  # fmt: skip
    pods = [("db", "pg-0", "postgres", "postgres:16.4", "worker-1", 12 * GIB, 12 * GIB, 2 * GIB),
            ("web", "shop-1", "app", "registry.example/shop:v1", "worker-1", GIB, 4 * GIB, 0),
            ("web", "shop-2", "app", "registry.example/shop:v1", "worker-2", GIB, 4 * GIB, 0),
            ("batch", "done", "app", "registry.example/job:v1", "worker-2", 8 * GIB, 8 * GIB, 0)]  # fmt: skip
    for namespace, name, container, image, node, request, limit, huge in pods:
        pod = {"namespace": namespace, "pod": name}
        own = {**pod, "container": container}
        lines.append(("kube_pod_info", {**pod, "node": node}, 1))
        lines.append(("kube_pod_container_info", {**own, "image": f"docker.io/{image}", "image_spec": image}, 1))
        lines.append(("kube_pod_status_phase", {**pod, "phase": "Succeeded"}, 1 if name == "done" else 0))
        for metric, size in (("requests", request), ("limits", limit)):
            resource = {**own, "node": node, "resource": "memory", "unit": "byte"}
            lines.append((f"kube_pod_container_resource_{metric}", resource, size))
            if huge:
                resource = {**own, "node": node, "resource": "hugepages_2Mi", "unit": "byte"}
                lines.append((f"kube_pod_container_resource_{metric}", resource, huge))
        used = {**own, "job": "kubelet", "instance": "10.0.0.11:10250"}
        lines.append(("container_memory_working_set_bytes", {**used, "id": f"/{name}"}, request * 0.7))
        lines.append(("container_memory_working_set_bytes", {**used, "id": f"/{name}/before"}, request * 0.6))
    for job, of, said in (("t/m", "shop-1", -32.0 * GIB), ("kubelet", "shop-1", -32.0 * GIB),
                          ("kubelet", "shop-1", math.nan), ("t/m", "shop-2", 3.0 * GIB),
                          ("t/m", "huge", math.inf)):  # fmt: skip
        odd = {"namespace": "web", "pod": of, "container": f"x{said:.0f}", "job": job}
        lines.append(("container_memory_working_set_bytes", odd, said))
    exported = {"namespace": "db", "pod": "pg-0", "job": "db/pg", "instance": "10.1.0.5:9187"}
    strange = {**exported, "job": "t/m", "instance": "10.1.0.9:8080"}
    lines.append(("up", exported, 1))
    lines.append(("up", {**strange, "namespace": "t", "pod": "m"}, 1))
    lines.append(("pg_settings_shared_buffers_bytes", {**exported, "server": "localhost:5432"}, 4 * GIB))
    lines.append(("pg_settings_shared_buffers_bytes", strange, 16 * MIB))
    lines.append(("pg_settings_max_connections", exported, 250))
    for instance, name, total in (("10.0.0.11:9100", "worker-1", NODE_KIB * 1024), ("db1:9100", "db1", 128 * GIB)):
        host = {"instance": instance, "job": "node"}
        lines.append(("node_uname_info", {**host, "nodename": name, "machine": "x86_64", "release": "6.1.0"}, 1))
        for entry, value in {
            "MemTotal_bytes": total, "MemAvailable_bytes": total // 2, "SUnreclaim_bytes": GIB,
            "KernelStack_bytes": 32 * MIB, "PageTables_bytes": 300 * MIB, "AnonHugePages_bytes": GIB,
            "Hugepagesize_bytes": 2 * MIB, "HugePages_Total": 2048, "HugePages_Free": 1500, "HugePages_Rsvd": 10,
            "HugePages_Surp": 0,
        }.items():  # fmt: skip
            lines.append((f"node_memory_{entry}", host, value))
        for cpu in range(8):
            lines.append(("node_cpu_seconds_total", {**host, "cpu": str(cpu), "mode": "idle"}, 1000))
    for numa in (0, 1):
        lines.append(
            ("node_memory_numa_MemTotal", {"instance": "db1:9100", "job": "node", "node": str(numa)}, 64 * GIB)
        )
    return lines


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Prometheus that holds :func:`recorded` for the last days."""
    program, tool = shutil.which("prometheus"), shutil.which("promtool")
    if program is None or tool is None:
        pytest.skip("no prometheus and promtool on PATH (Debian package prometheus)")
    folder = tmp_path_factory.mktemp("prometheus")
    end = int(time.time()) // HOUR * HOUR
    moments = [*range(end - DAYS * 86_400, end, HOUR), int(time.time()) - 30]
    text = "".join(
        f"# TYPE {name} gauge\n" + "".join(f"{line}\n" for line in lines)
        for name, lines in series(moments, recorded()).items()
    )
    (folder / "series.om").write_text(text + "# EOF\n")
    (folder / "prometheus.yml").write_text("global: {scrape_interval: 1h}\n")
    made = subprocess.run(
        [tool, "tsdb", "create-blocks-from", "openmetrics", folder / "series.om", folder / "data"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [program, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
             f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=3650d"],
            stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while not _ready(url):
            assert server.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, "Prometheus was not ready within 60 s"
            time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait()


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=2) as found:  # noqa: S310 - the server above
            return bool(found.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="session")
def inventory(prometheus: str) -> Inventory:
    """What the source reads."""
    return read_prometheus(prometheus, days=DAYS)


def named(inventory: Inventory, name: str) -> FoundNode:
    """One node."""
    return next(node for node in inventory.nodes if node.facts.name == name)


def test_nodes_of_kubernetes_and_hosts_beside_it(inventory: Inventory) -> None:
    assert [node.facts.name for node in inventory.nodes] == ["db1", "worker-1", "worker-2"]
    worker = named(inventory, "worker-1")
    assert worker.facts.mem_total_bytes == NODE_KIB * 1024
    assert worker.hugetlb_pool_bytes == {2 * MIB: 4 * GIB, GIB: 0}
    assert worker.kubelet_version == "v1.30.4"
    reserved = worker.reservations
    assert (reserved.kube_reserved_bytes, reserved.eviction_hard_bytes) == (400 * MIB, 100 * MIB)


def test_node_exporter_adds_free_pages_and_the_kernels_memory(inventory: Inventory) -> None:
    worker, other = named(inventory, "worker-1"), named(inventory, "worker-2")
    pools = {pool.page_bytes: pool for pool in worker.facts.numa[0].pools or ()}
    assert (pools[2 * MIB].free_hugepages, pools[2 * MIB].resv_hugepages) == (1500, 10)
    assert pools[GIB].free_hugepages is None
    assert worker.facts.kernel_used_bytes == GIB + 32 * MIB
    assert other.facts.kernel_used_bytes is None
    assert any("no node_exporter of this node" in text for text in other.unknown)


def test_a_database_with_the_settings_that_its_exporter_reports(inventory: Inventory) -> None:
    (found,) = named(inventory, "worker-1").databases
    assert (found.instance.engine, found.instance.version) == ("postgresql", "16.4")
    assert found.instance.settings == {"shared_buffers": f"{4 * GIB}B", "max_connections": "250"}
    assert set(found.recognised.sources.values()) == {"database exporter"}
    assert found.huge_pages_limit_bytes == {2 * MIB: 2 * GIB}


def test_tenants_have_their_history_and_ended_pods_none(inventory: Inventory) -> None:
    (tenant,) = named(inventory, "worker-1").tenants
    assert tenant.name == "web/shop-1"
    assert tenant.history is not None
    assert len(tenant.history.used_bytes) > 2 * 24
    assert min(tenant.history.used_bytes) >= int(0.7 * GIB) - 1
    assert max(tenant.history.used_bytes) > min(tenant.history.used_bytes)
    assert [one.name for one in named(inventory, "worker-2").tenants] == ["web/shop-2"]


def test_who_else_says_what_a_pod_uses_takes_nothing_from_it_and_a_note_names_the_pod(
    inventory: Inventory, prometheus: str
) -> None:
    (tenant,), (raised,) = (named(inventory, f"worker-{number}").tenants for number in (1, 2))
    assert tenant.history is not None
    assert raised.history is not None
    assert min(tenant.history.used_bytes) >= int(0.7 * GIB) - 1
    assert max(tenant.history.used_bytes) <= 0.7 * 1.2 * GIB
    assert min(raised.history.used_bytes) > 3 * GIB
    assert [note for note in inventory.notes if "memory in use of pods" in note and "web/shop-2:" in note] != []
    with PrometheusClient(prometheus) as client:
        use = {one.labels["pod"]: one.value for one in client.query(queries.POD_USE)}
    assert use["huge"] == 2**60


def test_a_host_alone_has_what_is_in_use_as_one_tenant(inventory: Inventory) -> None:
    host = named(inventory, "db1")
    assert [numa.mem_total_bytes for numa in host.facts.numa] == [64 * GIB, 64 * GIB]
    (tenant,) = host.tenants
    assert tenant.history is not None
    assert set(tenant.history.used_bytes) == {64 * GIB - 4 * GIB}
    assert host.hugetlb_pool_bytes is None
    assert any("1G pool is not seen" in text for text in host.unknown)


def test_the_plan_uses_the_history_for_its_risk(inventory: Inventory) -> None:
    found = answer(inventory)
    worker = next(node for node in found.nodes if node.node.facts.name == "worker-1")
    assert worker.plan is not None
    assert worker.plan.risk.probability is not None
    short = [one for one in worker.findings if one.code == "pod_limit_below_segment"]
    assert [one.state for one in short] == [State.WRONG]
    assert "Bus error" not in short[0].reason
    # 1,500 of 2,048 pages are free and 10 of them reserved: what is in use stays.
    assert worker.planned_bytes[2 * MIB] >= (2048 - 1500) * 2 * MIB


def test_the_command(prometheus: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--prometheus", prometheus]) == 5
    out = capsys.readouterr().out
    assert "3 nodes" in out
    assert "db/pg-0" in out
    assert main(["plan", "--prometheus", prometheus, "--json"]) == 5
    document = json.loads(capsys.readouterr().out)
    assert document["source"] == f"Prometheus {prometheus}"


class TestFailures:
    """A server that is none, that refuses, or that knows nothing: one line each."""

    @pytest.mark.parametrize("url", ["prometheus:9090", "ftp://x", "http://", "http://[::1", "", "http://x y"])
    def test_what_is_no_url(self, url: str) -> None:
        with pytest.raises(InventoryError, match="expected a URL"):
            read_prometheus(url)

    def test_nobody_answers(self) -> None:
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            with pytest.raises(InventoryError, match="no answer"):
                read_prometheus(f"http://127.0.0.1:{held.getsockname()[1]}")

    @pytest.mark.parametrize(
        ("status", "body", "words"),
        [
            (200, b"<html>login</html>", "a web page, not Prometheus: a login"),
            (404, b"<html>not found</html>", "a path that is missing in the URL"),
            (200, b"login", "is this a Prometheus server"),
            (401, b"Unauthorized", "HTTP 401: it wants a token: put a bearer token into HUGEPLAN_PROMETHEUS_TOKEN"),
            (302, b"", "it sends on to https://login.example/x: give that URL"),
            (503, b"Service Unavailable\n", r"HTTP 503: it is not ready \(Service Unavailable\): try again"),
            (200, b'{"status":"success","data":{"resultType":"vector","result":[]}}', "has no value"),
            (200, b'{"status":"error","error":"bad query"}', "bad query"),
            (200, b'{"status":"success","data":{}}', "without a result"),
            (200, b'[]', "not an answer of Prometheus"),
            (200, b'{"status":"success","data":{"x":"\xe9"}}', "not JSON"),
            (200, b"[" * 100_000, "not JSON"),
            (503, b"<html>down</html>", "not ready: try again later"),
            (429, b"slow down", "asked too often"),
            (500, b"", "has failed: try again later"),
        ],
    )  # fmt: skip
    def test_answers_that_are_none(self, status: int, body: bytes, words: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                if status == 302:
                    self.send_header("Location", "https://login.example/x")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        with answering(Handler) as address, pytest.raises(InventoryError, match=words) as refused:
            read_prometheus(f"http://user:secret@{address}")
        assert "secret" not in str(refused.value)

    def test_a_server_that_thinks_too_long_is_named_with_the_query(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            words = r"no answer within 0.2 s to the query kube_node_info"
            address = f"http://127.0.0.1:{port}"
            with PrometheusClient(address, timeout_seconds=0.2) as client, pytest.raises(InventoryError, match=words):
                client.query("kube_node_info")
        assert TIMEOUT_SECONDS == 15

    def test_a_server_that_drips_is_not_waited_for_without_end(self) -> None:
        """Each byte came within the time limit, so the answer could take as long as it liked."""

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.send_response(200)
                self.end_headers()
                with suppress(OSError):
                    while True:
                        self.wfile.write(b" ")
                        self.wfile.flush()
                        stop.wait(0.02)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        stop = Event()
        with answering(Handler) as address:
            try:
                with (
                    PrometheusClient(f"http://{address}", timeout_seconds=0.5) as client,
                    pytest.raises(InventoryError, match="no answer within"),
                ):
                    client.query("kube_node_info")
            finally:
                stop.set()

    def test_a_prometheus_without_nodes(self, prometheus: str) -> None:
        with pytest.raises(InventoryError, match="HTTP 404"):
            read_prometheus(f"{prometheus}/elsewhere")

"""``hugeplan plan`` and ``import`` run whole: a database among the memory in use is not counted twice, or it is said.

A small server answers queries as Prometheus does, so these tests run where no Prometheus is installed.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from support.http_server import answering
from support.kubernetes_objects import container, listing, node, pod, postgres

from hugeplan.cli import main
from hugeplan.inventory.prometheus import queries
from hugeplan.planner.model import EVERYTHING_IN_USE, GIB, MIB

Json = dict[str, Any]
Row = tuple[dict[str, str], float]
NOW = 1_800_000_000
#: Expressions with functions, and the recorded rule of the server below that holds what they come to.
COMPUTED = {queries.POD_USE: "pod_use", queries.HOST_USE: "host_use", queries.CPUS: "cpus", queries.PHASES: "phases"}
MATCHER = re.compile(r'(\w+)(=~|=)"([^"]*)"')


def selected(rows: list[Row], expression: str) -> list[Row]:
    """The rows that a selector names: a metric, and labels that are equal or match."""
    expression = COMPUTED.get(expression, expression)
    name, _, matchers = expression.partition("{")
    wanted = [(label, how, text) for label, how, text in MATCHER.findall(matchers)]
    if name:
        wanted.append(("__name__", "=", name))
    return [
        (labels, value)
        for labels, value in rows
        if all(
            labels.get(label, "") == text if how == "=" else re.fullmatch(text, labels.get(label, ""))
            for label, how, text in wanted
        )
    ]


@contextmanager
def prometheus(rows: list[Row]) -> Iterator[str]:
    """The URL of a server that holds these series, each of one value over all time."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            query = form["query"][0]
            if query == "time()":
                data: Json = {"resultType": "scalar", "result": [NOW, str(NOW)]}
            elif self.path.endswith("_range"):
                start, end, step = (float(form[name][0]) for name in ("start", "end", "step"))
                moments = [start + step * k for k in range(int((end - start) / step) + 1)]
                result = [
                    {"metric": labels, "values": [[moment, f"{value:g}"] for moment in moments]}
                    for labels, value in selected(rows, query)
                ]
                data = {"resultType": "matrix", "result": result}
            else:
                result = [{"metric": labels, "value": [NOW, f"{value:.0f}"]} for labels, value in selected(rows, query)]
                data = {"resultType": "vector", "result": result}
            body = json.dumps({"status": "success", "data": data}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with answering(Handler) as address:
        yield f"http://{address}"


def row(name: str, value: float, **labels: str) -> Row:
    return {"__name__": name, **labels}, value


def host(instance: str, name: str, available_bytes: int) -> list[Row]:
    """node_exporter of a host of 64 GiB without pools."""
    own = {"instance": instance, "job": "node"}
    entries = {
        "MemTotal_bytes": 64 * GIB, "MemAvailable_bytes": available_bytes, "SUnreclaim_bytes": GIB,
        "KernelStack_bytes": 32 * MIB, "PageTables_bytes": 300 * MIB, "AnonHugePages_bytes": 0,
        "Hugepagesize_bytes": 2 * MIB, "HugePages_Total": 0, "HugePages_Free": 0, "HugePages_Rsvd": 0,
        "HugePages_Surp": 0,
    }  # fmt: skip
    return [
        row("node_uname_info", 1, **own, nodename=name, machine="x86_64", release="6.1.0"),
        *(row(f"node_memory_{entry}", value, **own) for entry, value in entries.items()),
        row("cpus", 16, **own),
        row("host_use", 64 * GIB - available_bytes, **own),
    ]


def in_kubernetes(image: str, settings: dict[str, float]) -> list[Row]:
    """A node of 64 GiB: a database pod that uses 36 GiB, 32 GiB of them its buffers, and a web pod that uses 8 GiB."""
    rows = [
        row("kube_node_info", 1, node="w1", internal_ip="10.0.0.11", kubelet_version="v1.34.2"),
        *(
            row(f"kube_node_status_{kind}", value, node="w1", resource=resource)
            for kind, memory in (("capacity", 64 * GIB), ("allocatable", 63 * GIB))
            for resource, value in {"memory": memory, "cpu": 16, "pods": 110, "hugepages_2Mi": 0}.items()
        ),
        *host("10.0.0.11:9100", "w1", 18 * GIB),
    ]
    for namespace, name, own_image, request, used in (
        ("db", "pg-0", image, 40 * GIB, 36 * GIB),
        ("web", "shop", "registry.example/shop:v1", 8 * GIB, 8 * GIB),
    ):
        own = {"namespace": namespace, "pod": name}
        memory = {**own, "container": "c", "node": "w1", "resource": "memory", "unit": "byte"}
        rows += [
            row("kube_pod_info", 1, **own, node="w1"),
            row("kube_pod_container_info", 1, **own, container="c", image=own_image, image_spec=own_image),
            row("kube_pod_container_resource_requests", request, **memory),
            row("kube_pod_container_resource_limits", request, **memory),
            row("pod_use", used, **own),
        ]
    return rows + [row(name, value, namespace="db", pod="pg-0") for name, value in {"up": 1, **settings}.items()]


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Json]:
    """``hugeplan plan ... --json``: its exit status and its document."""
    status = main(["plan", *arguments, "--json"])
    return status, json.loads(capsys.readouterr().out)


def from_stdin(capsys: pytest.CaptureFixture[str], text: str) -> tuple[int, Json]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return planned(capsys, "-")


SIZED = {
    "postgres:17": {"pg_settings_shared_buffers_bytes": 32.0 * GIB, "pg_settings_max_connections": 100},
    "mysql:8.4": {"mysql_global_variables_innodb_buffer_pool_size": 32.0 * GIB},
    "redis:7": {"redis_config_maxmemory": 32.0 * GIB},
}


def checks(document: Json) -> tuple[Json, str, str]:
    """The only node, and the states of its fit and of its check on double counting."""
    (found,) = document["nodes"]
    states = {one["code"]: one["state"] for one in found["findings"]}
    return found, states["memory_fit"], states["double_counting"]


@pytest.mark.parametrize("image", SIZED)
def test_prometheus_takes_a_sized_database_out_of_its_pods_use(image: str, capsys: pytest.CaptureFixture[str]) -> None:
    with prometheus(in_kubernetes(image, SIZED[image])) as url:
        _, document = planned(capsys, "--prometheus", url)
    found, fit, twice = checks(document)
    # 64 GiB less 32 GiB of the database and 8 GiB of the shop; counted twice its 36 GiB in use would not fit.
    assert (found["fits"], fit, twice) == (True, "ok", "ok")
    assert 16 * GIB < found["free_bytes"] < 24 * GIB


def test_kubectl_counts_a_database_pod_once(capsys: pytest.CaptureFixture[str]) -> None:
    forty, eight = {"memory": "40Gi"}, {"memory": "8Gi"}
    database = postgres("pg-0", "w1", {"shared_buffers": "32GB"}, limits=forty, requests=forty)
    web = pod("web", "w1", container(requests=eight, limits=eight))
    _, document = from_stdin(capsys, listing(node("w1"), database, web))
    found, fit, twice = checks(document)
    assert (found["fits"], fit, twice) == (True, "ok", "ok")
    assert 16 * GIB < found["free_bytes"] < 24 * GIB


UNREAD = (
    "postgres:17", "mysql:8.4", "mariadb:11.4", "redis:7", "mongo:8", "kafka:3.9",
    "registry.example/database/oracle-xe:21", "registry.example/db2:11.5.8.0",
)  # fmt: skip


def of_pod(found: Json) -> Json:
    """The states of the fit and what the plan says first, of the only node of an answer."""
    (fit,) = [one for one in found["findings"] if one["code"] == "memory_fit"]
    return fit


@pytest.mark.parametrize("image", UNREAD)
def test_prometheus_without_an_exporter_keeps_what_a_database_uses_and_leaves_the_fit_unknown(
    image: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with prometheus(in_kubernetes(image, {})) as url:
        status, document = planned(capsys, "--prometheus", url, "--artifacts", str(tmp_path))
    (found,) = document["nodes"]
    fit = of_pod(found)
    assert (found["fits"], fit["state"]) == (None, "unknown")
    assert status in (5, 6), "a script may not take it for a plan that fits"
    assert "pg-0" in fit["title"]
    assert "was not read" in found["headline"]
    # 64 GiB less the 36 GiB that the pod uses and the shop's 8; counted twice or dropped it is not within this.
    assert 10 * GIB < found["free_bytes"] < 20 * GIB
    # No file sets a limit that rests on a default.
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["plan.json"]


@pytest.mark.parametrize("image", UNREAD)
def test_kubectl_without_settings_leaves_the_fit_unknown(image: str, capsys: pytest.CaptureFixture[str]) -> None:
    forty, eight = {"memory": "40Gi"}, {"memory": "8Gi"}
    database = pod("pg-0", "w1", container("c", image=image, requests=forty, limits=forty))
    web = pod("web", "w1", container(requests=eight, limits=eight))
    _, document = from_stdin(capsys, listing(node("w1"), database, web))
    (found,) = document["nodes"]
    assert (found["fits"], of_pod(found)["state"]) == (None, "unknown")
    # The database's request stands in for what it takes.
    assert 10 * GIB < found["free_bytes"] < 18 * GIB


@pytest.mark.parametrize(
    ("engine", "settings"),
    [
        *((engine, "") for engine in ("postgresql", "mysql", "mariadb", "redis", "mongodb", "jvm", "oracle", "db2")),
        *((engine, "max_connections=300") for engine in ("postgresql", "mysql", "mariadb")),
        ("oracle", "processes=300"),
    ],
)
def test_a_table_without_a_size_leaves_the_fit_unknown(
    engine: str, settings: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = tmp_path / "hosts.csv"
    table.write_text(f"host,memory,used,database,engine,settings\ndb1,64GiB,36GiB,main,{engine},{settings}\n")
    assert main(["import", "csv", str(table), "--all", "--out", str(tmp_path / "out")]) == 0
    (file,) = (tmp_path / "out").iterdir()
    capsys.readouterr()
    _, document = planned(capsys, str(file))
    assert (of_pod(document["plan"])["state"], document["plan"]["fits"]) == ("unknown", None)
    assert "was not read" in document["plan"]["headline"]
    assert document["artifacts"] == []
    assert "not known" in document["artifacts_withheld"]


def test_an_import_keeps_what_was_not_read_until_the_scenario_says_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with prometheus(in_kubernetes("postgres:17", {})) as url:
        assert main(["import", "prometheus", url, "--all", "--out", str(tmp_path)]) == 0
    (file,) = tmp_path.iterdir()
    scenario = json.loads(file.read_text())
    capsys.readouterr()
    assert scenario["databases"][0]["unread_settings"] == ["shared_buffers"]
    _, document = planned(capsys, str(file))
    assert of_pod(document["plan"])["state"] == "unknown"
    scenario["databases"][0]["settings"] = {"shared_buffers": "8GB"}
    file.write_text(json.dumps(scenario))
    _, document = planned(capsys, str(file))
    assert of_pod(document["plan"])["state"] != "unknown"


def test_a_server_added_to_an_imported_host_leaves_the_fit_unknown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with prometheus(host("10.0.0.12:9100", "db1", 20 * GIB)) as url:
        assert main(["import", "prometheus", url, "--all", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    (file,) = tmp_path.iterdir()
    scenario = json.loads(file.read_text())
    assert [tenant["name"] for tenant in scenario["tenants"]] == [EVERYTHING_IN_USE]
    scenario["databases"] = [
        {"name": "pg", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "32GB"}}
    ]
    file.write_text(json.dumps(scenario))
    _, document = planned(capsys, str(file))
    states = {one["code"]: one["state"] for one in document["plan"]["findings"]}
    assert (states["memory_fit"], states["double_counting"]) == ("unknown", "unknown")
    assert "holds pg already" in document["plan"]["headline"]

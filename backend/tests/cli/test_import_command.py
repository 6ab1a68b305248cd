"""``hugeplan import``: every source, scenario files that plan alike, and a running service."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from support.http_server import answering
from support.kubernetes_objects import container, listing, node, pod
from support.kubernetes_objects import postgres as postgres_pod
from support.server import serving

from hugeplan import embedded
from hugeplan.cli import main
from hugeplan.planner.model import GIB, MIB
from hugeplan.scenario_file import load, to_request

CLUSTER = listing(
    node("db-1", pools={"2Mi": "2Gi", "1Gi": "0"}),
    node("app-1"),
    postgres_pod("pg-0", "db-1", {"shared_buffers": "4GB"}, limits={"memory": "12Gi", "hugepages-2Mi": "2Gi"}),
)
#: As a spreadsheet writes it: semicolons, and a cell that holds some in quotes.
TABLE = """\
Host;Memory;NUMA nodes;used;engine;version;settings;nr_hugepages
db1;256GiB;2;20GiB;postgresql;16;"shared_buffers=64GB; max_connections=500";
db1;256GiB;2;20GiB;mysql;8.0;innodb_buffer_pool_size=32G;
web1;64Gi;1;;;;;1024
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A file with a cluster."""
    path = tmp_path / "cluster.json"
    path.write_text(CLUSTER)
    return path


@pytest.fixture
def imports_url(postgres: embedded.EmbeddedPostgres, template: str, request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database of the test's own."""
    name = request.node.name[:60]
    postgres.ensure_database(name, template)
    return postgres.url(name)


class TestFiles:
    def test_a_scenario_file_plans_as_the_cluster_does(
        self, cluster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["import", "kubernetes", str(cluster), "--out", str(tmp_path / "out")]) == 0
        assert capsys.readouterr().out == f"{tmp_path / 'out' / 'db-1.json'}\n"
        main(["plan", str(tmp_path / "out" / "db-1.json"), "--json"])
        from_file = json.loads(capsys.readouterr().out)["plan"]["pools"]
        main(["plan", str(cluster), "--json"])
        (from_cluster,) = [one for one in json.loads(capsys.readouterr().out)["nodes"] if one["name"] == "db-1"]
        assert {(pool["page_bytes"], pool["pages"]) for pool in from_file if pool["pages"]} == {
            (pool["page_bytes"], pool["planned_pages"]) for pool in from_cluster["pools"] if pool["planned_pages"]
        }

    def test_no_file_patches_an_object_with_a_pod_on_a_node_without_room(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Found: the scenario of one node handed out a patch for pods of which another node can take none."""
        pair = [postgres_pod(f"pg-{i}", f"db-{i}", {"shared_buffers": "16GB"}, limits={"memory": "20Gi"})
                for i in range(2)]  # fmt: skip
        apps = [pod(f"a-{i}", "db-1", container(requests={"memory": "14Gi"}, limits={"memory": "14Gi"}))
                for i in range(4)]  # fmt: skip
        for others, patches, said in (([], ["db-0", "db-1"], ""), (apps, [], "pg-0 is planned on base pages")):
            cluster, out = tmp_path / "cluster.json", tmp_path / f"out{len(others)}"
            cluster.write_text(listing(node("db-0"), node("db-1"), *pair, *others))
            assert main(["import", "kubernetes", str(cluster), "--out", str(out)]) == 0
            assert said in capsys.readouterr().err
            for name in ("db-0", "db-1"):
                main(["plan", str(out / f"{name}.json"), "--artifacts", str(out / name)])
            found = sorted(path.parent.name for path in out.glob("*/*statefulset_patch"))
            assert (found, [*out.glob("db-0/*kernel*")] == []) == (patches, not patches)

    @pytest.mark.parametrize("case", ["odd", "no node", "no capacity", "unknown architecture", "larger than its node"])
    def test_no_file_patches_an_object_with_a_pod_that_is_not_planned(
        self, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Found: a stranger's pod of 64 MiB had the pod beside it left out, and the other node's file patched both."""
        size = "100GB" if case == "odd" else "8GB"
        memory = {"memory": "12Gi" if case == "larger than its node" else "4Gi"}
        pair = [postgres_pod(f"pg-{i}", f"db-{i}", {"shared_buffers": size}, limits=memory) for i in range(2)]
        first, second = node("db-0", memory_kib=2**28), node("db-1", memory_kib=2**22 if "larger" in case else 2**26)
        if case == "no capacity":
            second["status"]["capacity"]["memory"] = "lots"
        if case == "unknown architecture":
            second["status"]["nodeInfo"]["architecture"] = "sparc"
        more = [] if case == "no node" else [second]
        if case == "odd":
            more.append(postgres_pod("x-0", "db-1", {}, limits={"memory": "64Mi"}, namespace="evil"))
        cluster, out = tmp_path / "cluster.json", tmp_path / "out"
        cluster.write_text(listing(first, *more, *pair))
        main(["plan", str(cluster), "--artifacts", str(out)])
        assert "db-0: StatefulSet default/pg has a pod on db-1, too, which gets no file" in capsys.readouterr().err
        assert main(["import", "kubernetes", str(cluster), "--out", str(out)]) == 0
        assert "db-0: pg-0 is planned on base pages (page_size 0) in its scenario, as db-1" in capsys.readouterr().err
        main(["plan", str(out / "db-0.json"), "--artifacts", str(out / "from-scenario")])
        assert [*out.rglob("*statefulset_patch")] == []

    @pytest.mark.parametrize("case", ["request", "page sizes"])
    def test_a_scenario_hands_out_what_the_folder_of_its_node_does(
        self, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Found: a folder asked whether files are withheld, a scenario only whether the other node's plan fits."""
        sizes = [64, 16] if case == "request" else [128, 128]
        pools = [None, None] if case == "request" else [{"2Mi": "0"}, {"1Gi": "0"}]
        nodes = [node(f"db-{i}", memory_kib=sizes[i] * 2**20, pools=pools[i]) for i in range(2)]
        server = container("db", "mariadb:10.11", args=["--innodb-buffer-pool-size=8G"], limits={"memory": "10Gi"})
        pair = [postgres_pod(f"pg-{i}", f"db-{i}", {"shared_buffers": "8GB"}, limits={"memory": "8Gi"})
                if case == "page sizes" else pod(f"pg-{i}", f"db-{i}", server, owner=("StatefulSet", "pg"))
                for i in range(2)]  # fmt: skip
        cluster, out = tmp_path / "cluster.json", tmp_path / "out"
        cluster.write_text(listing(*nodes, *pair))
        main(["plan", str(cluster), "--artifacts", str(out / "folders")])
        assert main(["import", "kubernetes", str(cluster), "--out", str(out)]) == 0
        assert "db-0: pg-0 is planned on base pages (page_size 0) in its scenario, as db-1" in capsys.readouterr().err
        for name in ("db-0", "db-1"):
            main(["plan", str(out / f"{name}.json"), "--artifacts", str(out / name)])
        assert [*out.rglob("*statefulset_patch")] == []

    def test_a_pod_keeps_the_huge_pages_that_it_has(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Found: by a stranger's small pod on another node a file said huge_pages = off, in a container of 1 GiB."""
        limits = {"memory": "1Gi", "hugepages-2Mi": "8400Mi"}
        pair = [postgres_pod(f"pg-{i}", f"db-{i}", {"shared_buffers": "8GB"}, limits=limits) for i in range(2)]
        nodes = [node(f"db-{i}", pools={"2Mi": "8400Mi", "1Gi": "0"}) for i in range(2)]
        more = postgres_pod("x-0", "db-1", {"config_file": "/x"}, limits={"memory": "256Mi"}, namespace="evil")
        cluster, out = tmp_path / "cluster.json", tmp_path / "out"
        cluster.write_text(listing(*nodes, *pair, more))
        assert main(["import", "kubernetes", str(cluster), "--out", str(out)]) == 0
        assert "db-0: pg-0 has huge pages and keeps them" in capsys.readouterr().err
        main(["plan", str(out / "db-0.json"), "--artifacts", str(out / "db-0")])
        assert "Reserve 4,2" in capsys.readouterr().out
        assert [*out.rglob("*statefulset_patch")] == []
        assert "huge_pages = off" not in "".join(path.read_text() for path in out.rglob("*.conf"))

    def test_a_container_without_pages_beside_the_database_holds_nothing_back(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Found: a cluster of one node had no file, as the pod of the object had a Redis beside its PostgreSQL."""
        beside = container("redis", "redis:7", args=["--maxmemory", "100mb"], limits={"memory": "512Mi"})
        server = container("postgres", "postgres:16", args=["-c", "shared_buffers=8GB"], limits={"memory": "10Gi"})
        cluster, out = tmp_path / "cluster.json", tmp_path / "out"
        cluster.write_text(listing(node("db-0"), pod("pg-0", "db-0", server, beside, owner=("StatefulSet", "pg"))))
        main(["plan", str(cluster), "--artifacts", str(out / "folders")])
        assert main(["import", "kubernetes", str(cluster), "--out", str(out)]) == 0
        assert capsys.readouterr().err == ""
        main(["plan", str(out / "db-0.json"), "--artifacts", str(out / "db-0")])
        assert len([*out.rglob("*statefulset_patch")]) == 2

    def test_nodes_without_databases_are_taken_when_asked_for(
        self, cluster: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["import", "kubernetes", str(cluster), "--all"]) == 0
        assert [one["name"] for one in json.loads(capsys.readouterr().out)] == ["app-1", "db-1"]

    def test_wrong_input_is_one_line(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for source in ("kubernetes", "ansible", "csv"):
            assert main(["import", source, str(tmp_path / "missing")]) == 2
            err = capsys.readouterr().err
            assert err.count("\n") == 1
            assert "No such file or directory" in err


class TestCsv:
    def scenarios(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> list[dict[str, Any]]:
        path = tmp_path / "hosts.csv"
        path.write_text(text)
        assert main(["import", "csv", str(path), "--all"]) == 0
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return found

    def test_rows_of_one_host_share_it(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        db, web = self.scenarios(tmp_path, capsys, TABLE)
        request = to_request(load(json.dumps(db["scenario"])))
        assert [numa.mem_total_bytes for numa in request.node.numa] == [128 * GIB, 128 * GIB]
        assert {one.engine: dict(one.settings) for one in request.databases} == {
            "postgresql": {"shared_buffers": "64GB", "max_connections": "500"},
            "mysql": {"innodb_buffer_pool_size": "32G"},
        }
        assert request.tenants[0].request_bytes == 20 * GIB
        host = to_request(load(json.dumps(web["scenario"]))).node
        assert (host.mem_total_bytes, host.numa[0].pools and host.numa[0].pools[0].nr_hugepages) == (64 * GIB, 1024)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("host,memory\n", "no rows"),
            ("", "is empty"),
            ("host\na\n", "memory is missing"),
            ("host,memory,colour\na,1GiB,red\n", "'colour' is no column"),
            ("host,memory\na,64GB\n", "line 2: memory"),
            ("host,memory\na\n", "line 2: 1 cells, expected 2"),
            ("host,memory,engine\na,1GiB,abacus\n", "line 2: engine"),
            ("host,memory,engine,settings\na,1GiB,postgresql,big\n", "line 2: settings"),
            ("host,memory,arch\na,1GiB,z80\n", "line 2: arch"),
            ("host,memory,host\na,1GiB,b\n", "twice"),
        ],
    )
    def test_errors_name_the_line(
        self, text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "hosts.csv"
        path.write_text(text)
        assert main(["import", "csv", str(path)]) == 2
        err = capsys.readouterr().err
        assert words in err
        assert err.count("\n") == 1


class TestAnsible:
    FACTS = {  # noqa: RUF012 - never changed
        "ansible_facts": {
            "ansible_memtotal_mb": 64000, "ansible_architecture": "aarch64",
            "ansible_kernel": "6.12.0-55.el10.aarch64+64k",
            "ansible_nodename": "db2", "ansible_processor_vcpus": 32,
            "ansible_memory_mb": {"nocache": {"free": 50000, "used": 14000}},
        },
        "changed": False,
    }  # fmt: skip

    def check(self, out: str) -> None:
        """The one scenario."""
        (one,) = json.loads(out)
        request = to_request(load(json.dumps(one["scenario"])))
        assert one["name"] == "db2.example"
        assert (request.node.arch, request.node.base_page_bytes) == ("aarch64", 65536)
        assert request.node.mem_total_bytes == 64000 * MIB
        assert request.node.numa[0].pools is None
        assert request.tenants[0].request_bytes == 14000 * MIB

    def test_a_tree(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "db2.example").write_text(json.dumps(self.FACTS))
        (tmp_path / "down").write_text(json.dumps({"unreachable": True, "msg": "no route to host"}))
        assert main(["import", "ansible", str(tmp_path), "--all"]) == 0
        found = capsys.readouterr()
        self.check(found.out)
        assert found.err == "hugeplan import: host down is left out: no route to host\n"

    def test_the_output_of_the_module(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "facts.txt"
        path.write_text(
            f"db2.example | SUCCESS => {json.dumps(self.FACTS, indent=4)}\n"
            'down | UNREACHABLE! => {"msg": "no route to host", "unreachable": true}\n'
        )
        assert main(["import", "ansible", str(path), "--all"]) == 0
        self.check(capsys.readouterr().out)

    def test_cut_output(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "facts.txt"
        path.write_text(f"db2.example | SUCCESS => {json.dumps(self.FACTS)[:100]}")
        assert main(["import", "ansible", str(path), "--all"]) == 2
        assert f"host db2.example is left out: {path}: not valid JSON" in capsys.readouterr().err


class TestService:
    """Into a running service, as its user does it."""

    def test_large_nodes_go_in_several_bodies_and_what_is_refused_is_named(
        self, tmp_path: Path, imports_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sizes = {"huge": 700, **{f"n{number}": 70 for number in range(10)}, "odd" * 70: 1}
        settings = f"shared_buffers=1GB; shared_preload_libraries={'x' * 1500}"
        rows = [
            f"{name};1TiB;postgresql;17;{settings!r}".replace("'", '"') for name in sizes for _ in range(sizes[name])
        ]
        (tmp_path / "hosts.csv").write_text("\n".join(["host;memory;engine;version;settings", *rows]))
        with serving(imports_url, tmp_path) as server:
            assert server.admin_token is not None
            monkeypatch.setenv("HUGEPLAN_TOKEN", server.admin_token)
            status = main(["import", "csv", str(tmp_path / "hosts.csv"), "--to", server.url])
        said = capsys.readouterr()
        assert status == 1, said.err
        assert said.out.count("created") == 11  # of the huge one as many databases as a plan takes
        named = [line for line in said.err.splitlines() if "is not kept: " in line]
        assert ["scenario.node.name" in line for line in named] == [True]

    def test_created_then_replaced_and_refused_without_a_token(
        self, cluster: Path, imports_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with serving(imports_url, cluster.parent) as server:
            monkeypatch.delenv("HUGEPLAN_TOKEN", raising=False)
            assert main(["import", "kubernetes", str(cluster), "--to", server.url]) == 2
            assert "HUGEPLAN_TOKEN is not set" in capsys.readouterr().err
            monkeypatch.setenv("HUGEPLAN_TOKEN", "hp_wrong")
            assert main(["import", "kubernetes", str(cluster), "--to", server.url]) == 2
            assert "HTTP 401" in capsys.readouterr().err
            assert server.admin_token is not None
            monkeypatch.setenv("HUGEPLAN_TOKEN", server.admin_token)
            for word in ("created", "replaced"):
                assert main(["import", "kubernetes", str(cluster), "--to", server.url]) == 0
                assert capsys.readouterr().out.startswith(f"db-1 (imported): {word}, ")
        assert main(["import", "kubernetes", str(cluster), "--to", server.url]) == 2
        assert "Connection refused" in capsys.readouterr().err


def service(taken: list[int], most: int, unready: int = 0) -> type[BaseHTTPRequestHandler]:
    """One that takes ``most`` scenarios at a time, none of a node odd, and is not ready at first."""

    class Service(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            names = [one["name"] for one in body["scenarios"]]
            taken.append(len(names))
            status = 503 if len(taken) <= unready else 413 if len(names) > most or "odd (imported)" in names else 200
            kept = [{"name": name, "created": True, "id": "1"} for name in names]
            answer = json.dumps({"title": "No", "scenarios": kept, "refused": []}).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.send_header("retry-after", "0")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Service


@pytest.mark.parametrize(("unready", "status"), [(0, 1), (4, 1), (5, 2)])
def test_what_is_too_much_at_a_time_goes_in_halves_and_a_service_that_is_not_ready_is_asked_again(
    unready: int, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUGEPLAN_TOKEN", "hp_x")
    names = [*(f"n{number}" for number in range(9)), "odd"]
    (tmp_path / "h.csv").write_text("host,memory,engine\n" + "".join(f"{name},64Gi,redis\n" for name in names))
    taken: list[int] = []
    with answering(service(taken, most=3, unready=unready)) as at:
        assert main(["import", "csv", str(tmp_path / "h.csv"), "--to", f"http://{at}"]) == status
    said = capsys.readouterr()
    if status == 1:
        assert said.out.count("created") == 9
        assert "odd is not kept: --to http" in said.err
        assert taken[unready:] == [10, 5, 2, 3, 5, 2, 3, 1, 2, 1, 1]
    else:
        assert taken == [10] * 5
        assert "HTTP 503: No" in said.err

"""``hugeplan plan``: every example runs, this machine can be planned, and wrong input is one line with its place."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from hugeplan.cli import InputError, main, status_of_plans
from hugeplan.cli.files import read_run
from hugeplan.cli.plan import add_arguments
from hugeplan.cli.plan_scenario import parse_database, parse_workload
from hugeplan.cli.this_node import observe
from hugeplan.planner.demand import ENGINES, demand_of
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.ledger import free_bytes
from hugeplan.planner.model import GIB, MIB, PlanRequest
from hugeplan.planner.plan import plan
from tools.reference import schemas

EXAMPLES = sorted((Path(__file__).parents[3] / "docs" / "examples").glob("*.yaml"))

#: The others show a plan that does not fit and one without a pool (test_examples.py).
WITH_POOLS = [path for path in EXAMPLES if path.stem not in {"does-not-fit", "caches-without-a-pool"}]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["plan", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """The document of a plan that fits, whatever its findings say."""
    status, out, err = run(capsys, *arguments, "--json")
    assert (status in {0, 5}, err) == (True, "")
    document = json.loads(out)
    assert isinstance(document, dict)
    return document


class TestExamples:
    def test_there_are_ten(self) -> None:
        assert len(EXAMPLES) >= 10

    @pytest.mark.parametrize("path", WITH_POOLS, ids=lambda path: path.stem)
    def test_each_is_planned_and_fits(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        document = run_json(capsys, str(path))
        plan = document["plan"]
        parts = plan["ledger"]["parts"]
        assert sum(part["bytes"] for part in parts) == plan["ledger"]["mem_total_bytes"]
        assert all(part["bytes"] >= 0 for part in parts)
        assert sum(pool["pages"] for pool in plan["pools"]) > 0
        assert plan["headline"].startswith("Reserve ")
        assert {artifact["kind"] for artifact in document["artifacts"]} >= {"kernel_command_line", "numa_script"}

    @pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
    def test_each_is_valid_by_the_published_schema(self, path: Path) -> None:
        jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), json.loads(schemas.scenario()))

    @pytest.mark.parametrize("path", WITH_POOLS, ids=lambda path: path.stem)
    def test_the_whole_text_puts_counts_first(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        status, out, _ = run(capsys, str(path), "--verbose")
        assert status in {0, 5}
        order = [
            out.index(f"\n{title}\n")
            for title in ("Pools", "Databases", "Memory", "Gains", "Findings", "Files and checks")
        ]
        assert order == sorted(order)
        assert out.splitlines()[0].startswith("Reserve ")

    def test_the_kubernetes_example_shows_what_is_wrong_with_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        plan = run_json(capsys, str(next(p for p in EXAMPLES if p.stem == "kubernetes-mysql-30-pods")))["plan"]
        states = {finding["code"]: finding["state"] for finding in plan["findings"]}
        assert states["pod_limit_below_segment"] == "wrong"
        assert states["phantom_eviction"] == "attention"


class TestThisNode:
    def test_the_command_of_the_issue(self, capsys: pytest.CaptureFixture[str]) -> None:
        plan = run_json(
            capsys,
            "--node",
            "this",
            "--postgresql",
            "server=new,shared_buffers=1GB,max_connections=50",
            "--tenant",
            "app:64MiB x 4",
        )["plan"]
        meminfo = Path("/proc/meminfo").read_text(encoding="ascii")
        total = int(meminfo.split("MemTotal:")[1].split()[0]) * 1024
        assert plan["ledger"]["mem_total_bytes"] == total
        tenants = [part for part in plan["ledger"]["parts"] if part["kind"] == "tenants"]
        # Beside what was typed stands what runs here now.
        assert sum(part["bytes"] for part in tenants if part["name"] == "app") == 256 * MIB
        assert sum(part["bytes"] for part in tenants if part["name"] != "app") > 0

    def test_two_instances_of_one_engine_get_two_names(self, capsys: pytest.CaptureFixture[str]) -> None:
        both = ("--postgresql", "server=new,shared_buffers=128MB", "--postgresql", "server=new,shared_buffers=256MB")
        plan = run_json(capsys, "--node", "this", *both)["plan"]
        assert [instance["name"] for instance in plan["instances"]] == ["postgresql", "postgresql-2"]


MEMINFO = """\
MemTotal:       67108864 kB
MemFree:         4194304 kB
MemAvailable:    8388608 kB
Buffers:               0 kB
Cached:          5242880 kB
SReclaimable:          0 kB
SUnreclaim:       204800 kB
KernelStack:       10240 kB
PageTables:       102400 kB
AnonPages:      41943040 kB
Shmem:           1048576 kB
HugePages_Total:    1024
Hugepagesize:       2048 kB
Hugetlb:         2097152 kB
"""
NUMA = "Node {n} MemTotal:       33554432 kB\nNode {n} MemFree:        2097152 kB\nNode {n} HugePages_Total:   512\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A machine of two NUMA nodes with a pool of 1,024 pages, 24 of them free."""
    files = {
        "proc/meminfo": MEMINFO,
        "proc/cmdline": "quiet hugepages=1024\n",
        "proc/sys/kernel/osrelease": "6.12.0\n",
        "proc/sys/vm/hugetlb_optimize_vmemmap": "0\n",
        "proc/cpuinfo": "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nflags\t\t: fpu hypervisor sse\n",
        "proc/buddyinfo": "Node 0, zone   Normal " + " ".join(["4"] * 11) + "\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "sys/devices/system/cpu/online": "0-3,8-11\n",
        "sys/devices/system/node/online": "0-1\n",
    }
    for node in (0, 1):
        folder = f"sys/devices/system/node/node{node}"
        files[f"{folder}/meminfo"] = NUMA.format(n=node)
        files[f"{folder}/cpulist"] = "0-3\n" if node == 0 else "8-11\n"
        for name, value in (("nr_hugepages", 512), ("free_hugepages", 12), ("surplus_hugepages", 0)):
            files[f"{folder}/hugepages/hugepages-2048kB/{name}"] = f"{value}\n"
    counts = {"nr": 1024, "free": 24, "surplus": 3, "resv": 8, "nr_overcommit": 0}
    for name, value in counts.items():
        files[f"sys/kernel/mm/hugepages/hugepages-2048kB/{name}_hugepages"] = f"{value}\n"
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return tmp_path


class TestMachineTree:
    def test_facts(self, tree: Path) -> None:
        facts, _ = observe(str(tree))
        assert facts.mem_total_bytes == 64 * GIB
        assert [(n.id, n.mem_free_bytes) for n in facts.numa] == [(0, 2 * GIB), (1, 2 * GIB)]
        assert [pool.nr_hugepages for n in facts.numa for pool in n.pools or ()] == [512, 512]
        assert facts.thp_enabled == "madvise"
        assert facts.hvo_enabled is False
        assert facts.kernel_command_line == "hugepages=1024"
        assert facts.hardware is not None
        assert facts.hardware.virtualised

    def test_plan_starts_from_what_the_sample_saw(self, tree: Path) -> None:
        facts, sample = observe(str(tree))
        found = plan(PlanRequest(node=facts, sample=sample))
        assert found.now is not None
        ordinary = sum(tenant.now_bytes for tenant in found.now.tenants)
        assert ordinary == 41 * GIB
        assert sum(p.bytes for p in found.ledger.parts) == 64 * GIB
        assert free_bytes(found.ledger) == 4 * GIB

    def test_sample(self, tree: Path) -> None:
        _, sample = observe(str(tree))
        assert sample.pools is not None
        assert (sample.pools[0].nr_hugepages, sample.pools[0].surplus_hugepages) == (1024, 3)
        assert sample.pools[0].resv_hugepages == 8
        assert sample.numa is not None
        # Four blocks of each order 0 to 10: orders 9 and 10 hold 4 + 8 whole 2M pages.
        assert (sample.numa[0].free_blocks or {})[2 * MIB] == 12

    def test_a_machine_without_meminfo_is_one_line(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="/proc/meminfo cannot be read"):
            observe(str(tmp_path))


TOO_LARGE = (
    "node: {memory: 64GiB}\ntenants: [{name: app, request: 32Gi}]\n"
    "databases: [{name: m, engine: postgresql, settings: {shared_buffers: 48GB}}]\n"
)


class TestDoesNotFit:
    def test_says_so_first_exits_4_and_writes_nothing(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path, folder = tmp_path / "s.yaml", tmp_path / "files"
        path.write_text(TOO_LARGE, encoding="utf-8")
        status, out, _ = run(capsys, str(path), "--artifacts", str(folder))
        assert status == 4
        first = out.splitlines()[0]
        assert first.startswith("Does not fit node: ")
        assert "the largest shared_buffers that fits is " in first
        assert not folder.exists()

    def test_force_writes_the_warning_into_each_file(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path, folder = tmp_path / "s.yaml", tmp_path / "files"
        path.write_text(TOO_LARGE, encoding="utf-8")
        status, _, _ = run(capsys, str(path), "--artifacts", str(folder), "--force")
        assert status == 4
        files = [file for file in folder.glob("*/*/*") if file.suffix != ".json"]
        assert files
        for file in files:
            assert "WARNING: Does not fit node: " in "\n".join(file.read_text(encoding="utf-8").splitlines()[:2])


class TestWrongInput:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ((), "give a scenario file, or --node this"),
            (("--node", "that"), "expected this"),
            (("nowhere.yaml",), "nowhere.yaml: No such file or directory"),
            (("--node", "this", "--workload", "app"), "NAME:SIZE x COUNT"),
            (("--node", "this", "--tenant", "app:6GB"), "512Mi"),
            (("--node", "this", "--postgresql", "shared_buffers"), "shared_buffers=8GB"),
            (("--node", "this", "--postgresql", "shared_bufers=8GB"), "did you mean shared_buffers?"),
            (("--node", "this", "--tlbbench", "nowhere.json"), "nowhere.json: No such file or directory"),
        ],
    )
    def test_is_one_line(self, arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
        status, out, err = run(capsys, *arguments)
        assert (status, out) == (2, "")
        assert said in err
        assert err.count("\n") == 1

    def test_a_file_says_its_line(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "s.yaml"
        path.write_text("node:\n  memory: 64GB\n  cpu: 4\n", encoding="utf-8")
        status, _, err = run(capsys, str(path))
        assert status == 2
        assert [line.split(": ")[1] for line in err.splitlines()] == [f"{path}:2", f"{path}:3"]

    def test_a_setting_that_the_engine_refuses_says_its_line(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "s.yaml"
        path.write_text(
            "node: {memory: 64GiB}\ndatabases:\n- name: m\n  engine: postgresql\n  settings:\n    shared_buffers: 8X\n",
            encoding="utf-8",
        )
        status, _, err = run(capsys, str(path))
        assert status == 2
        assert f"{path}:6: databases[0].settings.shared_buffers: '8X'" in err

    def test_not_text(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "s.yaml"
        path.write_bytes(b"\xff\xfe")
        assert "is not UTF-8 text" in run(capsys, str(path))[2]


LEVEL = {"level": 1, "kind": "data", "page_bytes": 4096, "entries": 71, "source": "measured", "confidence": "high"}
RUN = json.dumps(
    {
        "schema_version": 1,
        "tool": {"name": "tlbbench", "version": "0.1.0"},
        "command": "run",
        "started_at": "2026-11-20T12:00:00Z",
        "environment": {
            "processor": {"architecture": "x86_64", "vendor": "AuthenticAMD", "family": 25, "model": 17},
            "hypervisor": {"present": False, "name": None},
        },
        "geometry": {"status": "ok", "levels": [LEVEL]},
    }
)


class TestTlbbenchDocument:
    def test_what_was_measured_comes_before_the_catalogue(self, tmp_path: Path) -> None:
        (tmp_path / "run.json").write_text(RUN, encoding="utf-8")
        hardware = read_run(str(tmp_path / "run.json"))
        first = [level.entries for level in hardware.levels if (level.level, level.page_bytes) == (1, 4096)]
        assert first[0] == 71
        assert hardware.virtualised is False

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("{", "not a tlbbench document"),
            ("[]", "not a tlbbench document with schema_version 1"),
            ('{"schema_version": 1, "geometry": {"levels": [{"x": 1}]}}', "wrong or missing field: tool"),
        ],
    )
    def test_a_broken_one_is_one_line(
        self, text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "run.json"
        path.write_text(text, encoding="utf-8")
        status, out, err = run(capsys, "--node", "this", "--tlbbench", str(path))
        assert (status, out) == (2, "")
        assert said in err
        assert err.count("\n") == 1

    def test_a_scenario_names_it_beside_itself(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "run.json").write_text(RUN, encoding="utf-8")
        scenario = tmp_path / "s.yaml"
        scenario.write_text("node: {memory: 64GiB, hardware: {run: run.json}}\n", encoding="utf-8")
        assert run(capsys, str(scenario))[0] == 0


class TestOptions:
    def test_a_database_with_commas_in_quotes(self) -> None:
        instance = parse_database(
            "postgresql", "name=main,version=17,shared_buffers=8GB,shared_preload_libraries='a,b',page_size=1GiB"
        ).instance
        assert (instance.name, instance.version, instance.page_bytes) == ("main", "17", GIB)
        assert dict(instance.settings) == {"shared_buffers": "8GB", "shared_preload_libraries": "a,b"}

    @pytest.mark.parametrize(("text", "count"), [("app:6GiB x 4", 4), ("app: 6Gi", 1), ("app:6GiB x4", 4)])
    def test_a_workload(self, text: str, count: int) -> None:
        workload = parse_workload(text)
        assert (workload.name, workload.request_bytes, workload.count) == ("app", 6 * GIB, count)

    def test_a_bad_count(self) -> None:
        with pytest.raises(PlannerError):
            parse_workload("app:6GiB x 99999999")

    @pytest.mark.parametrize("engine", ENGINES)
    def test_an_engine_s_option_says_what_may_be_given(self, engine: str) -> None:
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        meaning = next(row for row in parser.format_help().split("  --") if row.startswith(f"{engine} "))
        example = re.search(r"such as\s+(\w+)(=\S+)?\.\s", meaning)
        assert example is not None, meaning
        demand = demand_of(parse_database(engine, f"{example[1]}{example[2] or '=8'}").instance, 4096)
        assert (demand.pool_bytes == 8 * GIB) if example[2] else not demand.wants_pool
        assert ENGINES[engine].summary in " ".join(meaning.split())

    @pytest.mark.parametrize(
        ("fits", "wrong", "status"),
        [
            ([True, None, False], True, 4),
            ([False], False, 4),
            ([None, True], True, 5),
            ([True], True, 5),
            ([True, None], False, 6),
            ([True], False, 0),
            ([], False, 0),
        ],
    )
    def test_exit_status_4_counts_before_5_and_5_before_6(
        self, fits: list[bool | None], status: int, *, wrong: bool
    ) -> None:
        assert status_of_plans(fits, wrong=wrong) == status

    def test_artifacts_are_written_as_the_command_of_that_name_writes_them(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        _, document, _ = run(capsys, str(EXAMPLES[0]), "--artifacts", str(tmp_path / "out"), "--json")
        (tmp_path / "plan.json").write_text(document, encoding="utf-8")
        assert (tmp_path / "out/README.md").is_file()
        assert main(["artifacts", str(tmp_path / "plan.json"), "--diff", str(tmp_path / "out")]) == 0
        left = tmp_path / "out/1-gone/file"
        left.parent.mkdir()
        left.write_text("of an earlier plan", encoding="utf-8")
        _, _, said = run(capsys, str(EXAMPLES[0]), "--artifacts", str(tmp_path / "out"))
        assert said == f"hugeplan: {left}: not a file of this plan any more\n"

    @pytest.mark.parametrize("command", ["plan", "artifacts"])
    def test_files_of_an_earlier_plan_are_marked_where_there_are_none_now(
        self, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Found: they stayed beside a refusal, under a README that says to apply them."""
        run(capsys, str(EXAMPLES[0]), "--artifacts", str(tmp_path / "out"))
        large = next(path for path in EXAMPLES if path.stem == "does-not-fit")
        if command == "plan":
            _, _, said = run(capsys, str(large), "--artifacts", str(tmp_path / "out"))
        else:
            (tmp_path / "plan.json").write_text(run(capsys, str(large), "--json")[1], encoding="utf-8")
            assert main(["artifacts", str(tmp_path / "plan.json"), "--out", str(tmp_path / "out")]) == 1
            said = capsys.readouterr().err
        assert said.endswith("of an earlier plan stay for their ways back; install none of them\n")
        readme = (tmp_path / "out/README.md").read_text(encoding="utf-8")
        assert "**Install nothing from this folder.** The plan does not fit" in readme
        assert "Apply the numbered folders" not in readme

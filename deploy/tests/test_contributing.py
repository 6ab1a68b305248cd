"""CONTRIBUTING.md: each worked example is applied to this tree and run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path

import jsonschema
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SCENARIO = REPOSITORY / "docs/examples/bare-metal-postgresql.yaml"
MAX_LINES = 29


def examples() -> dict[str, str]:
    """Title -> diff."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    return dict(re.findall(r"^### (.+?)\n.*?^```diff\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def run(tree: Path, *words: str, codes: Collection[int] = (0, 5)) -> str:
    folders = f"{tree / 'backend'}{os.pathsep}{tree / 'agent'}"
    done = subprocess.run(
        words, cwd=tree, env=os.environ | {"PYTHONPATH": folders}, capture_output=True, text=True, check=False
    )
    assert done.returncode in codes, done.stdout + done.stderr
    return done.stdout


def check_engine(tree: Path) -> None:
    printed = run(tree, sys.executable, "-m", "hugeplan.cli", "size", "exampledb", "--set", "cache_size=3GiB")
    assert "1,536 pages of 2M" in printed


def check_operator(tree: Path) -> None:
    limits = {"memory": "8Gi", "hugepages-2Mi": "512Mi"}
    cluster = {
        "apiVersion": "postgres.example.com/v1", "kind": "ExamplePostgres", "metadata": {"name": "orders"},
        "spec": {
            "server": {"image": "postgres:17.2", "resources": {"limits": limits}},
            "parameters": {"shared_buffers": "1GB", "huge_pages": "on"},
        },
    }  # fmt: skip
    pod = {
        "apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running"},
        "metadata": {"name": "orders-0", "labels": {"postgres.example.com/cluster": "orders"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "server", "image": "postgres:17.2"}]},
    }  # fmt: skip
    node = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
        "status": {"capacity": {"memory": "32Gi", "cpu": "8"}, "allocatable": {"memory": "30Gi"},
                   "nodeInfo": {"architecture": "amd64"}},
    }  # fmt: skip
    dump = tree / "dump.json"
    dump.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [node, pod, cluster]}))
    command = (sys.executable, "-m", "hugeplan.cli", "plan", str(dump), "--json")
    (database,) = json.loads(run(tree, *command, codes={0, 5}))["nodes"][0]["databases"]
    assert (database["operator"], database["settings"]["shared_buffers"]) == ("Example operator", "1GB")
    file = tree / "orders.json"
    file.write_text(json.dumps(cluster))
    assert "limit-below-segment" in run(tree, sys.executable, "-m", "hugeplan.cli", "lint", str(file), codes={1})
    kinds = run(tree, sys.executable, "-c", "from hugeplan.artifacts.registry import KINDS; print(KINDS)")
    assert "example_postgresql" in kinds


def check_finding(tree: Path) -> None:
    plan = json.loads(run(tree, sys.executable, "-m", "hugeplan.cli", "plan", str(SCENARIO), "--json"))
    assert "few_cpus" in {finding["code"] for finding in plan["plan"]["findings"]}


def check_rule(tree: Path) -> None:
    program = (sys.executable, "-m", "hugeplan.cli")
    limits = {"memory": "8Gi", "hugepages-2Mi": "4Gi"}
    words = ["postgres", "-c", "shared_buffers=1GB"]
    container = {"name": "db", "image": "postgres:17.2", "args": words, "resources": {"limits": limits}}
    pod = {
        "apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running"}, "metadata": {"name": "db-0"},
        "spec": {"nodeName": "n1", "containers": [container]},
    }  # fmt: skip
    node = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
        "status": {"capacity": {"memory": "32Gi", "cpu": "8", "hugepages-2Mi": "4Gi"},
                   "allocatable": {"memory": "26Gi"}, "nodeInfo": {"architecture": "amd64"}},
    }  # fmt: skip
    dump = tree / "dump.json"
    dump.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [node, pod]}))
    answer = json.loads(run(tree, *program, "plan", str(dump), "--json", codes={0, 5}))
    said = [found for found in answer["nodes"][0]["findings"] if found["code"] == "limit_twice_over"]
    assert [found["subject"] for found in said] == ["default/db-0"], "of today, and not said again of the plan"

    scenario = tree / "scenario.yaml"
    scenario.write_text(
        "node: {name: n1, memory: 32GiB}\nreservations: {kubernetes: true}\n"
        "databases: [{name: db, engine: postgresql, version: '17', settings: {shared_buffers: 1GB},"
        " pod_hugepages_limit: 4GiB}]\n"
    )
    plan = run(tree, *program, "plan", str(scenario), "--json", codes={0, 5})
    assert "limit_twice_over" in {found["code"] for found in json.loads(plan)["plan"]["findings"]}

    conf = tree / "postgresql.conf"
    conf.write_text("shared_buffers = 1GB\nhuge_pages = on\n")
    manifest = tree / "pod.json"
    manifest.write_text(json.dumps(pod | {"spec": {"containers": [container]}}))
    assert "limit-twice-over" in run(tree, *program, "lint", str(conf), str(manifest), codes={0, 1})

    script = "import json, sys\nfrom hugeplan.documents.plan import *\n"
    del script
    kept = tree / "plan.json"
    kept.write_text(plan)
    verified = run(tree, sys.executable, "-c", VERIFY, str(kept))
    assert "limit_twice_over" in verified


VERIFY = """
import sys
from hugeplan.cli.plan_document import read_plan
from hugeplan.proof.observation import Observation
from hugeplan.proof.verdict import verify
plan = read_plan(sys.argv[1]).plan
limit = {"counter": "usage", "page_bytes": 2 << 20, "limit_bytes": 4 << 30, "cgroup_path": "/pod"}
server = {"key": "postgresql:5432", "engine": "postgresql", "hugetlb_limits": [limit], "segments": []}
print([found.code for found in verify(plan, Observation({}, {"databases": [server]})).findings])
"""


def check_artifact(tree: Path) -> None:
    plan = tree / "plan.json"
    plan.write_text(run(tree, sys.executable, "-m", "hugeplan.cli", "plan", str(SCENARIO), "--json"))
    run(tree, sys.executable, "-m", "hugeplan.cli", "artifacts", str(plan), "--out", str(tree / "files"))
    (message,) = {path.read_text() for path in (tree / "files").rglob("motd") if path.is_file()}
    assert message.startswith("Reserved for databases: ")


def check_collector(tree: Path) -> None:
    report = json.loads(run(tree, sys.executable, "-m", "hugeplan_agent", "observe"))
    assert report["sample"]["uptime_seconds"] > 0
    schema = json.loads(run(tree, sys.executable, "-m", "hugeplan_agent.report_schema"))
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(report)
    report["sample"]["uptime_seconds"] = -1
    assert [list(error.path) for error in validator.iter_errors(report)] == [["sample", "uptime_seconds"]]


def check_backing(tree: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler is installed")
    source = tree / "agent/tlbbench/src"
    for name in ("memory/backing.c", "memory/arena.c", "cli/run.c"):
        run(
            tree, "cc", "-std=c11", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", '-DTLBBENCH_VERSION="0"', "-Wall",
            "-Wextra", "-Werror", "-fsyntax-only", f"-I{source}", str(source / name),
        )  # fmt: skip


CHECKS: dict[str, Callable[[Path], None]] = {
    "A database engine": check_engine,
    "A database operator": check_operator,
    "A finding of the plan": check_finding,
    "A rule that runs in four places": check_rule,
    "An artifact": check_artifact,
    "A collector of the agent": check_collector,
    "A page-size backing of tlbbench": check_backing,
}


def test_each_example_has_a_check() -> None:
    assert set(examples()) == set(CHECKS)


def test_the_tests_that_it_names_are_there() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:backend|agent|deploy)/[\w/]*tests/[\w/.]+)", text)
    assert len(named) >= 8
    assert [path for path in named if not (REPOSITORY / path).exists()] == []
    sources = "".join(path.read_text() for path in (REPOSITORY / "backend/tests/planner/demand").rglob("test_*.py"))
    promises = re.findall(r"`(test_\w+)`", text)
    assert promises
    assert [name for name in promises if f"def {name}(" not in sources] == []


@pytest.mark.parametrize("title", CHECKS)
def test_the_example_applies_and_works(title: str, tmp_path: Path) -> None:
    diff = examples()[title]
    changed = [line for line in diff.splitlines() if re.match(r"[+-](?![+-]{2} )", line)]
    assert len(changed) <= MAX_LINES
    for part in ("backend/hugeplan", "migrations", "agent/hugeplan_agent", "agent/tlbbench/src"):
        shutil.copytree(REPOSITORY / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    applied = subprocess.run(
        ["git", "apply", "-C1", "-"], cwd=tmp_path, input=diff, capture_output=True, text=True, check=False
    )
    assert applied.returncode == 0, applied.stderr
    CHECKS[title](tmp_path)

"""An answer rests on facts: what is not excluded is not "ok", and what was named is not overruled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hugeplan.cli import main
from hugeplan.documents.report import Sample
from hugeplan.fleet.findings.base import idle_pages_by_size
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.model import GIB, MIB, Plan, State
from hugeplan.planner.plan import plan
from hugeplan.planner.units import exact_bytes
from hugeplan.scenario_file import load, to_request

ROOT = Path(__file__).parents[3]


def planned(node: dict[str, Any], *databases: dict[str, Any], **parts: Any) -> Plan:
    document = {"node": {"cpus": 16, "kernel_used": "1GiB", **node}, "databases": list(databases), **parts}
    return plan(to_request(load(yaml.safe_dump(document))))


def postgresql(buffers: str, **settings: str) -> dict[str, Any]:
    return {"name": "pg", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": buffers, **settings}}


def states(found: Plan, code: str) -> set[State]:
    return {finding.state for finding in found.findings if finding.code == code}


# --- pools whose reserved count is not known ------------------------------------------------------


@pytest.mark.parametrize(
    ("pool", "short", "idle"),
    [
        ({"nr_hugepages": 400, "free": 400}, State.UNKNOWN, State.UNKNOWN),
        ({"nr_hugepages": 400, "free": 400, "reserved": 0}, State.OK, State.ATTENTION),
        ({"nr_hugepages": 400, "free": 400, "reserved": 100}, State.OK, State.ATTENTION),
        ({"nr_hugepages": 400, "free": 150}, State.WRONG, State.ATTENTION),
        ({"nr_hugepages": 900, "free": 500}, State.UNKNOWN, State.UNKNOWN),
        ({"nr_hugepages": 900, "free": 500, "reserved": 300}, State.WRONG, State.ATTENTION),
        ({"nr_hugepages": 400}, State.UNKNOWN, State.UNKNOWN),
    ],
)
def test_free_pages_may_be_promised(pool: dict[str, int], short: State, idle: State) -> None:
    numa = [{"id": 0, "memory": "64GiB", "pools": [{"page_size": "2MiB", **pool}]}]
    found = planned({"numa_nodes": numa}, postgresql("448MB", huge_pages="on"))
    assert states(found, "pool_short") == {short}
    assert idle in states(found, "pool_idle")
    if short is State.UNKNOWN:
        assert not any("these pages are free" in f.fix for f in found.findings if f.fix)


def test_reserved_pages_are_free_pages() -> None:
    for pool in ({"nr_hugepages": 4, "free": 2, "reserved": 3}, {"nr_hugepages": 4, "reserved": 1}):
        numa = [{"id": 0, "memory": "64GiB", "pools": [{"page_size": "2MiB", **pool}]}]
        with pytest.raises(PlannerError, match="reserved"):
            planned({"numa_nodes": numa})


# --- a server that starts on huge pages only ------------------------------------------------------

ON = {"huge_pages": "on", "max_connections": "5"}
GKE = {"kubernetes": True, "provider": "gke"}
FAR = [{"id": 0, "memory": "64GiB", "cpulist": "0-15"}, {"id": 1, "memory": "256GiB", "cpulist": ""}]


@pytest.mark.parametrize(
    ("node", "database", "parts"),
    [
        ({"memory": "64GiB"}, postgresql("50GB", **ON), {"reservations": GKE}),
        ({"memory": "64GiB"}, postgresql("62GB", **ON), {"policy": {"page_sizes": ["1GiB"]}}),
        ({"numa_nodes": FAR}, postgresql("200GB", **ON), {}),
        (
            {"memory": "64GiB"},
            {"name": "ora", "engine": "oracle", "settings": {"sga_target": "52G", "use_large_pages": "ONLY"}},
            {"reservations": GKE},
        ),
    ],
)
def test_it_does_not_fit_where_its_pages_do_not(
    node: dict[str, Any], database: dict[str, Any], parts: dict[str, Any]
) -> None:
    found = planned(node, database, **parts)
    assert not found.feasible
    assert found.headline.startswith("Does not fit")
    assert states(found, "will_not_start") == {State.WRONG}
    assert "better off" not in found.headline


def test_it_gets_pages_that_gain_little() -> None:
    database = {**postgresql("8GB", **ON), "workload": {"working_set": "1MiB", "active_connections": 2}}
    found = planned({"memory": "64GiB"}, database)
    assert found.feasible
    assert found.instances[0].page_bytes
    assert states(found, "will_not_start") == {State.OK}


def test_a_pool_that_would_pay_and_finds_no_room_is_said() -> None:
    found = planned({"numa_nodes": FAR}, postgresql("200GB", huge_pages="try", max_connections="5"))
    assert found.feasible
    assert not found.instances[0].page_bytes
    assert found.headline.endswith("a pool would pay, and there is no room for it.")
    assert "other instances" not in found.instances[0].why


# --- page sizes that the user names ---------------------------------------------------------------

POWER_DB2 = {"name": "db2", "engine": "db2", "settings": {"database_memory": "32G", "db2_large_page_mem": "DB:16GB"}}


def test_a_page_size_that_db2_is_told_is_kept_or_refused() -> None:
    with pytest.raises(PlannerError) as refused:
        planned({"memory": "64GiB", "arch": "ppc64le", "base_page_size": "64KiB"}, POWER_DB2)
    assert refused.value.field.endswith("settings.db2_large_page_mem")
    hash_tables = {"memory": "64GiB", "arch": "ppc64le", "base_page_size": "64KiB"}
    kept = planned({**hash_tables, "huge_page_sizes": ["16GiB"], "default_huge_page_size": "16GiB"}, POWER_DB2)
    assert kept.instances[0].page_bytes in {16 * GIB, None}
    other = planned({**hash_tables, "default_huge_page_size": "16MiB"}, POWER_DB2)
    assert other.instances[0].page_bytes is None


def test_a_default_of_16m_says_hash_page_tables() -> None:
    node = {"memory": "64GiB", "arch": "ppc64le", "base_page_size": "64KiB", "default_huge_page_size": "16MiB"}
    found = planned(node, postgresql("8GB"))
    assert {gain.page_bytes for gain in found.gains if gain.page_bytes} <= {64 * 1024, 16 * MIB, 16 * GIB}
    assert found.instances[0].page_bytes == 16 * MIB


# --- memory without processors --------------------------------------------------------------------


def test_accesses_from_another_node_are_counted_where_processors_are() -> None:
    numa = [{"id": i, "memory": "64GiB", "cpulist": cpus} for i, cpus in enumerate(("0-15", "16-31", ""))]
    found = planned({"numa_nodes": numa}, postgresql("16GB"))
    (balance,) = [f for f in found.findings if f.code == "numa_imbalance"]
    assert "about 50 %" in balance.reason


# --- one source of a quantity ---------------------------------------------------------------------


def test_the_command_and_the_plan_agree_on_what_a_gib_is_worth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = "pool (GiB); tps\n8; 1000\n16; 7000\n32; 7100\n64; 9000\n128; 9500\n"
    file = tmp_path / "table.txt"
    file.write_text(table)
    assert main(["benefit", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()[1:5]
    worth = [float(line.split()[-1]) for line in lines]
    assert all(value > 0 for value in worth), lines
    database = {**postgresql("32GB"), "workload": {"benefit_table": table}}
    benefit = planned({"memory": "256GiB"}, database).instances[0].pool_benefit
    assert benefit is not None
    assert benefit.marginal_per_gib == pytest.approx(worth[2], rel=1e-3)


@pytest.mark.parametrize(
    ("size", "text"),
    [(GIB, "1 GiB"), (121 * GIB // 2, "60.5 GiB"), (61888 * MIB, "61,888 MiB"), (317 * GIB // 4, "79.25 GiB")],
)
def test_a_size_is_named_without_rounding(size: int, text: str) -> None:
    assert exact_bytes(size) == text


def test_idle_pages_of_a_fleet_are_unknown_without_the_reserved_count() -> None:
    report = json.loads((ROOT / "docs/report.example.json").read_text())["sample"]

    def idle(free: int, resv: int | None) -> int | None:
        pool = {**report["global_pools"][0], "nr_hugepages": 9, "free_hugepages": free, "resv_hugepages": resv}
        return idle_pages_by_size(Sample.model_validate({**report, "global_pools": [pool]}))[2 * MIB]

    assert [idle(5, None), idle(5, 2), idle(0, None)] == [None, 3, 0]


# --- page sizes that a JVM is told ----------------------------------------------------------------


def jvm(heap: str, **settings: str) -> dict[str, Any]:
    return {"name": "j", "engine": "jvm", "version": "17", "settings": {"Xmx": heap, **settings}}


@pytest.mark.parametrize("version", ["8", "11", "17", "21", "25"])
@pytest.mark.parametrize("heap", ["512m", "8g", "33g"])
def test_a_page_size_that_a_jvm_is_told_is_kept_or_refused(version: str, heap: str) -> None:
    told = {**jvm(heap, LargePageSizeInBytes="1g"), "version": version}
    free = planned({"memory": "64GiB"}, told)
    assert {pool.page_bytes for pool in free.pools if pool.pages} <= {GIB}
    assert free.instances[0].page_bytes in {GIB, None}
    asked = planned({"memory": "256GiB"}, {**told, "page_size": "1GiB"})
    assert asked.instances[0].page_bytes == GIB
    for parts in ({"page_size": "2MiB"}, {"settings": {"Xmx": heap, "LargePageSizeInBytes": "4m"}}):
        with pytest.raises(PlannerError) as refused:
            planned({"memory": "64GiB"}, {**told, **parts})
        assert refused.value.field.endswith("settings.LargePageSizeInBytes")
    with pytest.raises(PlannerError, match="LargePageSizeInBytes"):
        planned({"memory": "64GiB"}, told, policy={"page_sizes": ["2MiB"]})

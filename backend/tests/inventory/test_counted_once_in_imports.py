"""A database that runs among the memory that an import read is not counted twice, or the fit is unknown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hugeplan.inventory.ansible import read_ansible
from hugeplan.inventory.answer import request_of
from hugeplan.inventory.csv_table import read_csv
from hugeplan.inventory.model import FoundNode
from hugeplan.inventory.prometheus.client import Series
from hugeplan.inventory.prometheus.hosts import Host, history_of, host_node
from hugeplan.planner.model import EVERYTHING_IN_USE, GIB, KIB, DatabaseInstance, LedgerKind, Plan, Policy, State
from hugeplan.planner.plan import plan


def tenants_bytes(found: Plan) -> int:
    return sum(part.bytes for part in found.ledger.parts if part.kind is LedgerKind.TENANTS)


def fit_of(found: Plan) -> set[State]:
    return {finding.state for finding in found.findings if finding.code == "memory_fit"}


@pytest.mark.parametrize(
    ("engine", "settings"),
    [
        ("postgresql", "shared_buffers=32GB;max_connections=100"),
        ("mysql", "innodb_buffer_pool_size=32G"),
        ("mariadb", "innodb_buffer_pool_size=32G"),
        ("jvm", "Xmx=32g"),
        ("oracle", "sga_target=32G"),
    ],
)
def test_a_table_of_hosts_takes_its_databases_out_of_the_memory_in_use(engine: str, settings: str) -> None:
    table = f"host,memory,used,engine,settings\na,64GiB,44GiB,{engine},{settings}\nb,64GiB,20GiB,,\n"
    node, other = read_csv(table, "t.csv").nodes
    found = plan(request_of(node, Policy()))
    assert found.feasible
    assert 8 * GIB <= tenants_bytes(found) <= 12 * GIB
    assert any("44 GiB in use" in text and "assumed" in text for text in node.unknown)
    assert [tenant.request_bytes for tenant in other.tenants] == [20 * GIB]


def test_databases_larger_than_what_is_in_use_are_no_part_of_it_for_certain() -> None:
    table = (
        "host,memory,used,engine,settings\n"
        "a,64GiB,20GiB,postgresql,shared_buffers=16GB\n"
        "a,64GiB,20GiB,mysql,innodb_buffer_pool_size=8G\n"
    )
    (node,) = read_csv(table, "t.csv").nodes
    assert [(tenant.name, tenant.request_bytes) for tenant in node.tenants] == [(EVERYTHING_IN_USE, 20 * GIB)]
    short = plan(replace(request_of(node, Policy()), node=replace(node.facts, kernel_used_bytes=30 * GIB)))
    assert fit_of(short) == {State.UNKNOWN}


def facts_of_ansible(folder: Path) -> FoundNode:
    facts = {"memtotal_mb": 65_536, "architecture": "x86_64", "memory_mb": {"nocache": {"used": 45_056}}}
    (folder / "a").write_text(json.dumps({"ansible_facts": {f"ansible_{k}": v for k, v in facts.items()}}))
    (node,) = read_ansible(folder).nodes
    return node


def host_of_prometheus(_: Path) -> FoundNode:
    values = {"MemTotal": 64 * GIB, "MemAvailable": 20 * GIB, "Hugepagesize": 2048 * KIB, "HugePages_Total": 0}
    host = Host(instance="a:9100", names={"a"}, machine="x86_64", values=values)
    points = tuple((float(3600 * hour), 44.0 * GIB) for hour in range(48))
    return host_node(host, history_of(Series({}, *zip(*points, strict=True))))


@pytest.mark.parametrize("source", [facts_of_ansible, host_of_prometheus])
def test_a_fit_beside_everything_in_use_is_unknown(source: object, tmp_path: Path) -> None:
    node = source(tmp_path)  # type: ignore[operator]
    assert [tenant.name for tenant in node.tenants] == [EVERYTHING_IN_USE]
    database = DatabaseInstance(
        name="pg", engine="postgresql", version="16", settings={"shared_buffers": "32GB", "max_connections": "100"}
    )
    found = plan(replace(request_of(node, Policy()), databases=(database,)))
    assert fit_of(found) == {State.UNKNOWN}
    assert "holds pg already" in found.headline
    assert any(f.code == "double_counting" and f.state is State.UNKNOWN for f in found.findings)


@pytest.mark.parametrize("source", [facts_of_ansible, host_of_prometheus])
def test_what_cannot_fit_even_then_is_wrong(source: object, tmp_path: Path) -> None:
    node = source(tmp_path)  # type: ignore[operator]
    database = DatabaseInstance(
        name="pg", engine="postgresql", version="16", settings={"shared_buffers": "96GB", "max_connections": "100"}
    )
    found = plan(replace(request_of(node, Policy()), databases=(database,)))
    assert fit_of(found) == {State.WRONG}

"""All files of a plan agree on one number: each kind's counts, read as its reader would, are the plan's pools."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml
from artifacts import samples
from support.seeds import SEEDS

from hugeplan.artifacts import render
from hugeplan.planner.model import (
    GIB,
    MIB,
    DatabaseInstance,
    NodeFacts,
    NodeSample,
    NumaNode,
    ObservedDatabase,
    ObservedSegment,
    Plan,
    PlanRequest,
    Reservations,
)
from hugeplan.planner.plan import plan

Counts = dict[tuple[int, int | None], int]
"""Pages by (page size, NUMA node); None where the file holds the node's total."""
SIZES = {"2M": 2 * MIB, "1G": GIB, "2Mi": 2 * MIB, "1Gi": GIB, "2m": 2 * MIB, "1g": GIB}


def command_line(text: str) -> Counts:
    line = max(re.findall(r"default_hugepagesz=.*", text), key=len)
    found: Counts = {}
    for size, counts in re.findall(r" hugepagesz=(\w+) hugepages=([\d:,]+)", line):
        for part in counts.split(","):
            numa, _, pages = part.rpartition(":")
            found[SIZES[size], int(numa) if numa else None] = int(pages)
    return found


def reserve_lines(text: str) -> Counts:
    lines = re.findall(r"^\s*reserve (\d+) hugepages-(\d+)kB (\d+)$", text, re.M)
    return {(int(size) * 1024, int(numa)): int(pages) for numa, size, pages in lines}


def tmpfiles(text: str) -> Counts:
    lines = re.findall(r"node(\d+)/hugepages/hugepages-(\d+)kB/nr_hugepages - - - - (\d+)", text)
    return {(int(size) * 1024, int(numa)): int(pages) for numa, size, pages in lines}


def performance_profile(text: str) -> Counts:
    pages = yaml.safe_load(text)["spec"]["hugepages"]["pages"]
    return {(SIZES[row["size"]], row.get("node")): row["count"] for row in pages}


def totals(pattern: str) -> Callable[[str], Counts]:
    """Totals of the node by size: the pattern's groups are the size's label and the count."""

    def read(text: str) -> Counts:
        return {(SIZES[label], None): int(count) for label, count in re.findall(pattern, text)}

    return read


READERS: Mapping[str, Callable[[str], Counts]] = {
    "kernel_command_line": command_line,
    "systemd_boot": command_line,
    "tuned_profile": command_line,
    "cloud_config": command_line,
    "ansible_playbook": command_line,
    "openshift_tuned": command_line,
    "machine_config": command_line,
    "numa_script": reserve_lines,
    "eks_user_data": reserve_lines,
    "aks_daemonset": reserve_lines,
    "tmpfiles": tmpfiles,
    "performance_profile": performance_profile,
    "node_label": totals(r"pool-(2Mi|1Gi)=(\d+)"),
    "gke_system_config": totals(r"hugepage_size(2m|1g): (\d+)"),
    "terraform_gke": totals(r"hugepage_size_(2m|1g) = (\d+)"),
    "bottlerocket_settings": totals(r'static\."(2Mi|1Gi)"\]\ncount = "(\d+)"'),
}


def pools_of(found: Plan) -> Counts:
    return {(pool.page_bytes, pool.numa_node): pool.pages for pool in found.pools if pool.pages}


def by_size(counts: Counts) -> dict[int, int]:
    sizes = {size for size, _ in counts}
    return {size: sum(pages for (own, _), pages in counts.items() if own == size) for size in sizes}


def request_of(rng: random.Random) -> PlanRequest:
    nodes = rng.choice((1, 1, 2, 4))
    numa = tuple(NumaNode(id=i, mem_total_bytes=rng.randrange(40, 200) * GIB) for i in range(nodes))
    databases = []
    for index in range(rng.choice((1, 2, 3))):
        gib = rng.randrange(1, 25)
        engine, settings = rng.choice(
            (
                ("postgresql", {"shared_buffers": f"{gib}GB", "max_connections": str(rng.choice((20, 300)))}),
                ("mysql", {"innodb_buffer_pool_size": f"{gib}G"}),
                ("mariadb", {"innodb_buffer_pool_size": f"{gib}G"}),
                ("oracle", {"sga_target": f"{gib}G"}),
                ("jvm", {"Xmx": f"{gib}g"}),
            )
        )
        size = rng.choice((None, 2 * MIB) if engine == "mysql" else (None, 2 * MIB, GIB))
        bound = rng.choice((None, None, rng.randrange(nodes)))
        databases.append(
            DatabaseInstance(
                name=f"d{index}",
                engine=engine,
                settings=settings,
                page_bytes=size,
                numa_node=bound,
                stateful_set=rng.choice((None, f"shop/d{index}")),
                container="db",
            )
        )
    kubernetes = rng.random() < 0.6
    provider = rng.choice((None, "gke", "eks", "aks")) if kubernetes else None
    return PlanRequest(
        node=NodeFacts(name="n", numa=numa, kernel_used_bytes=GIB, cpus=16),
        databases=tuple(databases),
        reservations=Reservations(kubernetes=kubernetes, provider=provider, kube_reserved_bytes=GIB),
    )


def limits_in(value: Any) -> list[Any]:
    """Every mapping under "limits" in a parsed file."""
    if isinstance(value, dict):
        own = [value["limits"]] if isinstance(value.get("limits"), dict) else []
        return own + [found for part in value.values() for found in limits_in(part)]
    return [found for part in value for found in limits_in(part)] if isinstance(value, list) else []


@pytest.mark.parametrize("seed", SEEDS)
def test_every_file_has_the_plans_counts(seed: int) -> None:
    rng = random.Random(seed)
    met: set[str] = set()
    for number in range(40):
        request = request_of(rng)
        found = plan(request)
        if not found.feasible or not pools_of(found):
            continue
        pools = pools_of(found)
        pod_limits: dict[str, set[str]] = {}
        for artifact in render(found, request):
            where = (seed, number, artifact.kind)
            reader = READERS.get(artifact.kind)
            if reader is not None:
                counts = reader(artifact.content)
                met.add(artifact.kind)
                if any(numa is not None for _, numa in counts):
                    assert counts == pools, where
                else:
                    assert by_size(counts) == by_size(pools), where
            if artifact.kind == "sysctl":
                met.add(artifact.kind)
                value = re.search(r"^vm.nr_hugepages = (\d+)$", artifact.content, re.M)
                default = by_size(pools).get(request.node.default_huge_page_bytes, 0)
                assert value is not None, where
                assert int(value[1]) == default, where
            kind, _, name = artifact.kind.rpartition("-")
            if kind in {"pod", "statefulset_patch", "statefulset_snippet"}:
                met.add(kind)
                for limits in limits_in(yaml.safe_load(artifact.content)):
                    asked = {key: size for key, size in limits.items() if size is not None}  # null takes one away
                    pages = sorted(f"{key}={size}" for key, size in asked.items() if key.startswith("hugepages-"))
                    if pages:
                        pod_limits.setdefault(name, set()).add(" ".join(pages))
        assert all(len(limits) == 1 for limits in pod_limits.values()), (seed, number, pod_limits)
    assert met >= {"kernel_command_line", "sysctl", "numa_script", "pod", "statefulset_patch", "performance_profile"}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_second_plan_writes_the_same_bytes(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        request = request_of(rng)
        again = replace(request, databases=tuple(replace(d) for d in request.databases))
        assert render(plan(request), request) == render(plan(again), again)


@pytest.mark.parametrize(
    ("held_bytes", "page_bytes", "first"),
    [
        (8 * GIB, 2 * MIB, "postgresql_conf"),
        (8 * GIB, None, "postgresql_conf"),  # an agent without root reads no mappings
        (8 * GIB, GIB, "postgresql_conf"),  # on other pages it is not restarted before the reboot
        (0, 2 * MIB, "kernel_command_line"),
    ],
)
def test_who_needs_fewer_pages_gives_them_back_before_the_pool_is_lowered(
    held_bytes: int, page_bytes: int | None, first: str
) -> None:
    """Found: the node booted with the smaller pool, the server still had the larger plan's file, and did not start."""
    segments = (ObservedSegment(bytes=held_bytes, page_bytes=page_bytes),) if page_bytes else ()
    server = ObservedDatabase(key="here", engine="postgresql", settings={"shared_buffers": "7GB"}, version="17",
                              hugetlb_bytes=held_bytes, segments=segments)  # fmt: skip
    own = (samples.instance("postgresql", runs_as="here"),)
    request = replace(samples.request_of("postgresql"), databases=own, sample=NodeSample(databases=(server,)))
    steps = [a.kind for a in render(plan(request), request) if a.recommended]
    order = [kind for kind in steps if kind in {"postgresql_conf", "kernel_command_line"}]
    assert order[0] == first
    assert len(order) == 2

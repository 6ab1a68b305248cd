"""An artifact: text that a node or a cluster accepts, with the commands that prove it and undo it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest, PoolPlan
from hugeplan.planner.pages import sysfs_directory_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One file. ``kind`` is unique within a plan; ``verify`` and ``rollback`` are shell commands, one a line."""

    kind: str
    filename: str
    media_type: str
    content: str
    verify: str
    rollback: str


Renderer = Callable[[Plan, PlanRequest], Iterable[Artifact]]


def planned_pools(plan: Plan) -> tuple[PoolPlan, ...]:
    """Pools to write: planned ones, and present ones that the plan releases (zero pages)."""
    return tuple(pool for pool in plan.pools if pool.pages or pool.present_pages)


def pages_by_size(plan: Plan) -> Mapping[int, Mapping[int, int]]:
    """page size -> NUMA node -> pages, sizes and nodes in rising order."""
    found: dict[int, dict[int, int]] = {}
    for pool in sorted(planned_pools(plan), key=lambda p: (p.page_bytes, p.numa_node)):
        found.setdefault(pool.page_bytes, {})[pool.numa_node] = pool.pages
    return found


def count_path(numa_node: int, page_bytes: int) -> str:
    """The file that holds a pool's page count."""
    return f"/sys/devices/system/node/node{numa_node}/hugepages/{sysfs_directory_name(page_bytes)}/nr_hugepages"


def with_pool(plan: Plan, request: PlanRequest) -> list[tuple[DatabaseInstance, InstancePlan]]:
    """Instances that get huge pages, with their plans."""
    pairs = zip(request.databases, plan.instances, strict=True)
    return [(instance, planned) for instance, planned in pairs if planned.page_bytes is not None]


def is_kernel_setting(name: str) -> bool:
    """Whether an engine's advice is a sysctl (``kernel.shmmax``) and not a setting of its own."""
    return name.startswith(("kernel.", "vm."))


def one_line(text: str) -> str:
    """``text`` safe inside a comment: printable, on one line."""
    return re.sub(r"[^\x20-\x7e\u00a0-\uffff]", "?", text)


def slug(text: str) -> str:
    """``text`` as part of a file name: lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "instance"


def unique_kinds(kind: str, names: Iterable[str]) -> list[str]:
    """One kind for each name: ``kind`` alone when there is one, else with the name's slug, made unique."""
    given = list(names)
    if len(given) == 1:
        return [kind]
    kinds: list[str] = []
    for name in given:
        candidate = f"{kind}-{slug(name)}"
        number = 2
        while candidate in kinds:
            candidate = f"{kind}-{slug(name)}-{number}"
            number += 1
        kinds.append(candidate)
    return kinds

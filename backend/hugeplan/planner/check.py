"""Checks of a PlanRequest: what no rule could plan with is refused here, by the field's path."""

from __future__ import annotations

import math
from dataclasses import replace

from hugeplan.planner.demand import engine_named
from hugeplan.planner.demand.accesses import OPERATION_CLASSES
from hugeplan.planner.demand.base import closest_hint
from hugeplan.planner.errors import NodeFactsError, PageSizeError, PlannerError, PolicyError, TenantError
from hugeplan.planner.model import DatabaseInstance, NodeFacts, PlanRequest, Policy, Tenant, Workload
from hugeplan.planner.observation.workloads import LISTED_UNITS
from hugeplan.planner.pages import POWER_HASH_SIZES, page_label

TENANT_KINDS = ("pod", "service", "page_cache")
RESERVE_AT = ("boot", "runtime")
#: More slack than half of a pool is a mistyped percentage.
MOST_SLACK_FRACTION = 0.5
#: Parts of the ledger: each costs about 0.1 ms of arithmetic and 1 KB of the plan.
MOST_LEDGER_CELLS = 2_000
#: Page sizes times NUMA nodes and databases, of one of many nodes: 256 databases on 14 NUMA nodes with the four sizes
#: of arm64. The arithmetic takes 0.3 to 1.5 s then, and grows with this product.
MOST_SIZES_OF_ONE = 1_080


def require_bounded(request: PlanRequest, most_cells: int = MOST_LEDGER_CELLS, most_sizes: float = math.inf) -> None:
    """PlannerError for what takes long and says much: the ledger has a part for each workload and database on each NUMA
    node. A service asks this before it plans on what others say; a plan for oneself takes what it takes.
    """
    listed = len(request.tenants) + len(request.databases)
    if request.sample is not None and request.observed.include:
        listed += min(LISTED_UNITS, len(request.sample.units or ()))
    cells = listed * sum(numa.mem_total_bytes > 0 for numa in request.node.numa)
    sizes = (len(request.node.numa) + len(request.databases)) * len(request.node.huge_page_sizes_bytes)
    of_cells = (cells, most_cells, "NUMA nodes times workloads and databases")
    for value, most, what in (of_cells, (sizes, most_sizes, "page sizes times NUMA nodes and databases")):
        if value > most:
            raise PlannerError("scenario", value, f"{what} of at most {most}")


def checked_request(request: PlanRequest) -> PlanRequest:
    """The request with every engine under its canonical name, so that nothing below meets an alias.

    Raises a PlannerError for the first field that cannot be planned with.
    """
    _check_node(request.node)
    # The kernel lists sockets whose memory slots are empty: there is nothing to plan on them.
    with_memory = tuple(numa for numa in request.node.numa if numa.mem_total_bytes)
    if len(with_memory) < len(request.node.numa):
        request = replace(request, node=replace(request.node, numa=with_memory))
    ids = {numa.id for numa in request.node.numa}
    for index, tenant in enumerate(request.tenants):
        _check_tenant(tenant, f"tenants[{index}]", ids)
    names: set[str] = set()
    databases: list[DatabaseInstance] = []
    for index, instance in enumerate(request.databases):
        where = f"databases[{index}]"
        if instance.name in names:
            raise PlannerError(f"{where}.name", instance.name, "a name used once")
        names.add(instance.name)
        databases.append(_checked_database(instance, where, ids))
    _check_policy(request.policy, request.node)
    for name in ("kube_reserved_bytes", "system_reserved_bytes", "eviction_hard_bytes"):
        value = getattr(request.reservations, name)
        if value is not None and value < 0:
            raise PlannerError(f"reservations.{name}", value, "0 or more")
    return replace(request, databases=tuple(databases))


def _check_node(node: NodeFacts) -> None:
    if not node.numa:
        raise NodeFactsError("node.numa", "none", "at least one NUMA node")
    seen: set[int] = set()
    for index, numa in enumerate(node.numa):
        if numa.id in seen:
            raise NodeFactsError(f"node.numa[{index}].id", numa.id, "each NUMA node once")
        seen.add(numa.id)
        if numa.mem_total_bytes < 0:
            raise NodeFactsError(f"node.numa[{index}].mem_total_bytes", numa.mem_total_bytes, "0 or more")
    if not node.mem_total_bytes:
        raise NodeFactsError("node.numa[0].mem_total_bytes", 0, "memory on at least one NUMA node")
    if node.base_page_bytes <= 0:
        raise NodeFactsError("node.base_page_bytes", node.base_page_bytes, "more than 0")
    for size in node.huge_page_sizes_bytes:
        if size <= node.base_page_bytes or size % node.base_page_bytes:
            raise PageSizeError("node.huge_page_sizes_bytes", size, "multiples of the base page size above it")
    if node.arch == "ppc64le" and {size in POWER_HASH_SIZES for size in node.huge_page_sizes_bytes} == {True, False}:
        labels = ", ".join(page_label(size) for size in sorted(node.huge_page_sizes_bytes))
        raise PageSizeError("node.huge_page_sizes_bytes", labels, "2M and 1G (radix) or 16M and 16G (hash), not both")
    kernel = node.kernel_used_bytes
    if kernel is not None and not 0 <= kernel <= node.mem_total_bytes:
        raise NodeFactsError("node.kernel_used_bytes", kernel, f"0 to MemTotal ({node.mem_total_bytes})")


def _check_tenant(tenant: Tenant, where: str, ids: set[int]) -> None:
    if tenant.kind not in TENANT_KINDS:
        raise TenantError(f"{where}.kind", tenant.kind, f"one of {', '.join(TENANT_KINDS)}")
    if tenant.count < 0:
        raise TenantError(f"{where}.count", tenant.count, "0 or more")
    for name in ("request_bytes", "limit_bytes"):
        value = getattr(tenant, name)
        if value is not None and value < 0:
            raise TenantError(f"{where}.{name}", value, "0 or more")
    request, limit = tenant.request_bytes, tenant.limit_bytes
    if request is not None and limit is not None and limit < request:
        raise TenantError(f"{where}.limit_bytes", limit, f"at least the request ({request})")
    _check_numa(f"{where}.numa_node", tenant.numa_node, ids)
    history = tenant.history
    if history is None:
        return
    if len(history.times_seconds) != len(history.used_bytes):
        expected = f"as many values as times ({len(history.times_seconds)})"
        raise TenantError(f"{where}.history.used_bytes", len(history.used_bytes), expected)
    if not all(math.isfinite(t) for t in history.times_seconds):
        raise TenantError(f"{where}.history.times_seconds", "not finite", "seconds since the epoch")
    if any(a > b for a, b in zip(history.times_seconds, history.times_seconds[1:], strict=False)):
        raise TenantError(f"{where}.history.times_seconds", "not sorted", "times in rising order")


def _checked_database(instance: DatabaseInstance, where: str, ids: set[int]) -> DatabaseInstance:
    try:
        engine = engine_named(instance.engine)
    except PlannerError as error:
        raise error.within(where) from error
    _check_numa(f"{where}.numa_node", instance.numa_node, ids)
    if not math.isfinite(instance.weight) or instance.weight < 0:
        raise PlannerError(f"{where}.weight", instance.weight, "a finite number of at least 0")
    _check_workload(instance.workload, f"{where}.workload")
    low, high = instance.pool_min_bytes, instance.pool_max_bytes
    if (low is None) != (high is None):
        raise PlannerError(f"{where}.pool_range", "one bound", "both bounds or none")
    if low is not None and high is not None:
        if not 0 < low <= high:
            raise PlannerError(
                f"{where}.pool_range", f"{low} to {high}", "a lower bound above 0 and an upper one not below it"
            )
        if engine.pool_setting is None:
            raise PlannerError(f"{where}.pool_range", instance.engine, "an engine whose pool has a size setting")
    return instance if instance.engine == engine.name else replace(instance, engine=engine.name)


def _check_workload(workload: Workload, where: str) -> None:
    known = dict.fromkeys(OPERATION_CLASSES)
    operation = workload.operation_class
    if operation is not None and operation not in known:
        expected = f"one of {', '.join(OPERATION_CLASSES)}{closest_hint(operation, known)}"
        raise PlannerError(f"{where}.operation_class", operation, expected)


def _check_numa(field: str, numa_node: int | None, ids: set[int]) -> None:
    if numa_node is not None and numa_node not in ids:
        raise PlannerError(field, numa_node, f"one of the node's NUMA nodes: {', '.join(map(str, sorted(ids)))}")


def _check_policy(policy: Policy, node: NodeFacts) -> None:
    if not 0 <= policy.slack_fraction <= MOST_SLACK_FRACTION:
        share = policy.slack_fraction
        hint = f"; {share:g} means {100 * share:g} %; did you mean {share / 100:g}?" if share > 0 else ""
        raise PolicyError("policy.slack_fraction", share, f"0 to {MOST_SLACK_FRACTION:g}{hint}")
    if policy.slack_min_pages < 0:
        raise PolicyError("policy.slack_min_pages", policy.slack_min_pages, "0 or more")
    if not 0 < policy.risk < 1:
        raise PolicyError("policy.risk", policy.risk, "more than 0 and less than 1")
    if policy.reserve_at not in RESERVE_AT:
        raise PolicyError("policy.reserve_at", policy.reserve_at, f"one of {', '.join(RESERVE_AT)}")
    if policy.free_margin_bytes is not None and policy.free_margin_bytes < 0:
        raise PolicyError("policy.free_margin_bytes", policy.free_margin_bytes, "0 or more")
    have = set(node.huge_page_sizes_bytes)
    for size in policy.allowed_page_bytes or ():
        if size not in have:
            labels = ", ".join(page_label(s) for s in sorted(have)) or "none"
            raise PageSizeError("policy.allowed_page_bytes", page_label(size), f"the node's huge page sizes: {labels}")

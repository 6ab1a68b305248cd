"""A found node as a scenario document: what the planner page opens and what the service keeps.

The document says what is known and leaves out what is not, so that opening it plans with the same unknowns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hugeplan.inventory.answer import request_of, standing_limits
from hugeplan.inventory.instances import free_name
from hugeplan.inventory.model import FoundNode
from hugeplan.planner.model import (
    DatabaseInstance,
    MemoryHistory,
    NumaNode,
    Plan,
    Policy,
    Reservations,
    Tenant,
)

Json = dict[str, Any]


def scenario_document(node: FoundNode, plan: Plan | None = None) -> Json:
    """A scenario document of schema_version 1. Sizes are bytes; keys without a known value are left out.

    ``plan`` is the node's: limits of its databases' pods that stand beside it are in the document, too.
    """
    request = request_of(node, Policy(), standing_limits(node, plan))
    facts = node.facts
    found: Json = {
        "schema_version": 1,
        "node": _known(
            name=facts.name,
            arch=facts.arch,
            base_page_size=facts.base_page_bytes,
            huge_page_sizes=list(facts.huge_page_sizes_bytes),
            default_huge_page_size=facts.default_huge_page_bytes,
            numa_nodes=[_numa(numa) for numa in facts.numa],
            cpus=facts.cpus,
            kernel_used=facts.kernel_used_bytes,
            kernel_release=facts.kernel_release,
        ),
        "reservations": _reservations(request.reservations),
        **workload_documents(request.tenants, request.databases),
    }
    return found


def workload_documents(tenants: Sequence[Tenant], databases: Sequence[DatabaseInstance]) -> Json:
    """The two lists of a scenario document."""
    names: set[str] = set()  # equal copies of a workload are one row; others of its name ask for something else
    own: set[str] = set()
    return {
        "tenants": [{**_tenant(tenant), "name": free_name(names, tenant.name)} for tenant in tenants],
        "databases": [{**_database(one), "name": free_name(own, one.name)} for one in databases],
    }


def _size(size_bytes: int | None) -> int | None:
    return None if size_bytes is None else min(size_bytes, 2**62)


def _known(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _numa(numa: NumaNode) -> Json:
    pools = None
    if numa.pools is not None:
        pools = [
            _known(
                page_size=pool.page_bytes,
                nr_hugepages=pool.nr_hugepages,
                free=pool.free_hugepages,
                reserved=None if pool.free_hugepages is None else pool.resv_hugepages,
            )
            for pool in numa.pools
        ]
    return _known(id=numa.id, memory=numa.mem_total_bytes, free=numa.mem_free_bytes, pools=pools, cpulist=numa.cpulist)


def _reservations(given: Reservations) -> Json:
    return _known(
        kubernetes=given.kubernetes,
        provider=given.provider,
        kube_reserved=given.kube_reserved_bytes,
        system_reserved=given.system_reserved_bytes,
        eviction_hard=given.eviction_hard_bytes,
        max_pods=given.max_pods,
        kubelet_version=given.kubelet_version,
        only_sum=given.only_sum or None,
    )


def _tenant(tenant: Tenant) -> Json:
    return _known(
        name=tenant.name,
        kind=tenant.kind,
        count=tenant.count,
        request=_size(tenant.request_bytes),
        limit=_size(tenant.limit_bytes),
        history=None if tenant.history is None else _history(tenant.history),
    )


def _history(history: MemoryHistory) -> Json:
    return {"times": list(history.times_seconds), "used": list(history.used_bytes)}


def _database(instance: DatabaseInstance) -> Json:
    return _known(
        name=instance.name,
        engine=instance.engine,
        version=instance.version,
        settings=dict(instance.settings),
        page_size=instance.page_bytes,
        pod_hugepages_limit=_size(instance.pod_hugepages_limit_bytes),
        pod_memory_request=_size(instance.pod_memory_request_bytes),
        pod_memory_limit=_size(instance.pod_memory_limit_bytes),
        stateful_set=instance.stateful_set,
        container=instance.container,
        operator_object=None if instance.operator_object is None else _known(**asdict(instance.operator_object)),
        unread_settings=list(instance.unread_settings) or None,
    )

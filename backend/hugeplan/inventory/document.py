"""The answer for an inventory as one JSON document. The service answers the same document."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from hugeplan.inventory.answer import FleetAnswer, NodeAnswer
from hugeplan.inventory.model import FoundDatabase


def inventory_document(answer: FleetAnswer) -> dict[str, Any]:
    """Totals, nodes, databases, findings, and what is unknown. Sizes in bytes, counts in pages.

    ``planned_bytes`` are those of nodes that fit.
    """
    return {
        "source": answer.inventory.source,
        "pods": answer.inventory.pods,
        "planned_bytes": answer.fitting_bytes,
        "nodes_that_do_not_fit": [node.node.facts.name for node in answer.does_not_fit],
        "nodes": [_node(node) for node in answer.nodes],
        "not_scheduled": [_database(found) for found in answer.inventory.not_scheduled],
        "findings": [to_builtins(finding) for finding in answer.findings],
        "unknown": list(answer.inventory.unknown),
        "notes": list(answer.inventory.notes),
    }


def _node(answer: NodeAnswer) -> dict[str, Any]:
    node, plan = answer.node, answer.plan
    return {
        "name": node.facts.name,
        "architecture": node.facts.arch,
        "mem_total_bytes": node.facts.mem_total_bytes,
        "kubelet_version": node.kubelet_version,
        "pods": node.pods,
        "fits": answer.fits,
        "not_planned_because": answer.not_planned_because,
        "free_bytes": answer.free_bytes,
        "headline": None if plan is None else plan.headline,
        "shortfall": None if plan is None or plan.shortfall is None else to_builtins(plan.shortfall),
        "pools": _pools(answer),
        "allocatable_after_bytes": None
        if plan is None or plan.kubernetes is None
        else dict(plan.kubernetes.allocatable),
        "databases": [_database(found) for found in node.databases],
        "instances": []
        if plan is None
        else [
            {
                "name": planned.name,
                "engine": planned.engine,
                "page_bytes": planned.page_bytes,
                "pages": planned.demand.pages if planned.page_bytes is not None else 0,
                "why": planned.why,
            }
            for planned in plan.instances
        ],
        "findings": [to_builtins(finding) for finding in answer.findings],
        "unknown": [*node.unknown, *(() if plan is None else plan.unknowns)],
    }


def _pools(answer: NodeAnswer) -> list[dict[str, int | None]]:
    sizes = sorted({*answer.planned_bytes, *(answer.present_bytes or {})})
    return [
        {
            "page_bytes": size,
            "planned_pages": answer.planned_bytes.get(size, 0) // size,
            "present_pages": None if answer.present_bytes is None else answer.present_bytes.get(size, 0) // size,
        }
        for size in sizes
    ]


def _database(found: FoundDatabase) -> dict[str, Any]:
    recognised = found.recognised
    return {
        "name": found.instance.name,
        "namespace": found.namespace,
        "pod": found.workload,
        "node": found.node,
        "container": recognised.container,
        "engine": recognised.engine,
        "version": recognised.version,
        "settings": dict(found.instance.settings),
        "sources": {name: recognised.sources.get(name, recognised.source) for name in found.instance.settings},
        "source": recognised.source,
        "confidence": recognised.confidence.value,
        "operator": recognised.operator,
        "cluster": recognised.cluster,
        "huge_pages_limit_bytes": None
        if found.huge_pages_limit_bytes is None
        else {str(size): held for size, held in found.huge_pages_limit_bytes.items()},
        "memory_request_bytes": found.memory_request_bytes,
        "memory_limit_bytes": found.memory_limit_bytes,
        "volume_bytes": found.volume_bytes,
        "unknown": list(recognised.unknown),
        "notes": list(recognised.notes),
    }

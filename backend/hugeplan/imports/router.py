"""Routes of imports."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Query

from hugeplan.access.dependencies import Planner, Viewer
from hugeplan.access.gated_route import api_router
from hugeplan.api.beside import Beside
from hugeplan.api.body import UnreadBody
from hugeplan.api.dependencies import CurrentSettings, Writes
from hugeplan.api.json_body import JsonLimits
from hugeplan.imports import service
from hugeplan.imports.schemas import ImportReceipt, KubernetesImport, PodWorkloads, ScenarioImport
from hugeplan.scenarios.service import require_room_for_scenario

router = api_router("imports", below="/imports")

Save = Annotated[bool, Query(description="Keep each node with a database as a scenario, replacing an earlier import's")]


_KUBECTL: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"type": "object", "description": "kubectl get -o json"}}},
    }
}
Objects = Annotated[bytes, Depends(UnreadBody(service.INSTEAD))]
Pods = Annotated[bytes, Depends(UnreadBody(service.ONE_NODE))]
NodeName = Annotated[
    str | None, Query(max_length=253, description="Take the pods of this node; without it, all of them")
]


@router.post("/kubernetes/workloads", openapi_extra=_KUBECTL)
async def imports_kubernetes_workloads(
    _: Viewer, beside: Beside, *, settings: CurrentSettings, body: Pods, node_name: NodeName = None
) -> PodWorkloads:
    """Read ``kubectl get pods -A -o json`` as the workloads of one node, by the rules of the import. Keeps nothing."""
    return await service.read_pods(beside, body, limits=JsonLimits.of(settings), node_name=node_name)


@router.post("/kubernetes", openapi_extra=_KUBECTL)
async def imports_kubernetes(
    actor: Planner, session: Writes, beside: Beside, *, settings: CurrentSettings, body: Objects, save: Save = False
) -> KubernetesImport:
    """Plan every node of ``kubectl get nodes,pods,pvc -A -o json``, and say what is wrong today."""
    if save:
        await require_room_for_scenario(session, settings)
    return await service.import_kubernetes(
        session, beside, body, limits=JsonLimits.of(settings), save=save, by=actor.name
    )


@router.post("/scenarios")
async def imports_scenarios(
    actor: Planner, session: Writes, beside: Beside, *, settings: CurrentSettings, body: ScenarioImport
) -> ImportReceipt:
    """Keep scenarios that ``hugeplan import --to`` made from any source; the same names are replaced."""
    await require_room_for_scenario(session, settings)
    return await service.import_scenarios(session, beside, body, by=actor.name)

"""Routes of plans and saved scenarios."""

from __future__ import annotations

from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import Query, Request, Response

from hugeplan.access import audit
from hugeplan.access.dependencies import Planner, Viewer
from hugeplan.access.gated_route import api_router
from hugeplan.api.beside import Beside, json_answer
from hugeplan.api.dependencies import CurrentSettings, Reads, Writes
from hugeplan.api.pagination import Cursor, Limit, Page
from hugeplan.api.preconditions import IfMatch, etag
from hugeplan.api.schemas import JsonObject
from hugeplan.documents.plan_digest import short
from hugeplan.scenarios import plan_answers, plan_content, saved_plans, service
from hugeplan.scenarios.schemas import (
    ArtifactChanges,
    ArtifactDisposition,
    PlanArtifacts,
    PlanDifference,
    PlanFilter,
    PlanInputs,
    PlanKeep,
    PlanPreview,
    PlanState,
    PlanSummary,
    PlanVerification,
    SavedPlan,
    Scenario,
    ScenarioSummary,
    ScenarioVersion,
    ScenarioWrite,
    ScenarioYamlImport,
    UnreadPreview,
)
from hugeplan.scenarios.service import require_room_for_plan, require_room_for_scenario

router = api_router("planning")

ArtifactFile = Annotated[
    str | None, Query(max_length=253, description="Which file, where a plan has several of one kind; else the first")
]
Force = Annotated[bool, Query(description="Give the files of a plan that does not fit, each with a warning")]


@router.post("/plans/preview", response_model=PlanPreview)
async def plans_preview(_: Viewer, session: Reads, beside: Beside, body: UnreadPreview) -> Response:
    """Plan a scenario without saving anything."""
    return json_answer(await service.preview(session, beside, body))


@router.get("/nodes/{node_id}/scenario")
async def node_scenario(_: Viewer, session: Reads, node_id: UUID) -> JsonObject:
    """The first scenario of a node: its databases as they run today, ready to plan with its ``node_id``."""
    return await service.scenario_of_node(session, node_id)


@router.get("/scenarios")
async def scenarios_list(_: Viewer, session: Reads, limit: Limit = 50, cursor: Cursor = None) -> Page[ScenarioSummary]:
    """Saved scenarios, most recently changed first."""
    return await service.list_scenarios(session, limit=limit, cursor=cursor)


@router.post("/scenarios", status_code=201)
async def scenarios_create(
    actor: Planner,
    session: Writes,
    beside: Beside,
    *,
    settings: CurrentSettings,
    body: ScenarioWrite,
    response: Response,
) -> Scenario:
    """Save a scenario. Its ETag is in the answer's header. 409 where as many are kept as may be."""
    await require_room_for_scenario(session, settings)
    scenario = await service.create_scenario(session, beside, body, by=actor.name)
    response.headers["ETag"] = service.etag_of(scenario)
    response.headers["Location"] = f"/api/v1/scenarios/{scenario.id}"
    return scenario


@router.post("/scenarios/import", status_code=201)
async def scenarios_import(
    actor: Planner,
    session: Writes,
    beside: Beside,
    *,
    settings: CurrentSettings,
    body: ScenarioYamlImport,
    response: Response,
) -> Scenario:
    """Save a scenario from the YAML that ``hugeplan plan`` reads. A wrong line is named."""
    await require_room_for_scenario(session, settings)
    scenario = await service.import_yaml(session, beside, body, settings, by=actor.name)
    response.headers["ETag"] = service.etag_of(scenario)
    response.headers["Location"] = f"/api/v1/scenarios/{scenario.id}"
    return scenario


@router.get(
    "/scenarios/{scenario_id}/document.yaml",
    response_class=Response,
    responses={200: {"content": {"application/yaml": {"schema": {"type": "string"}}}, "description": "The scenario"}},
)
async def scenarios_export(_: Viewer, session: Reads, beside: Beside, scenario_id: UUID) -> Response:
    """A saved scenario as the YAML that ``hugeplan plan`` reads."""
    content = await service.export_yaml(session, beside, scenario_id)
    headers = {"Content-Disposition": f'attachment; filename="scenario-{scenario_id}.yaml"'}
    return Response(content, media_type="application/yaml", headers=headers)


@router.get("/scenarios/{scenario_id}/versions", response_model=Page[ScenarioVersion])
async def scenario_versions_list(
    _: Viewer, session: Reads, scenario_id: UUID, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """The versions of a saved scenario, newest first, each as it was sent. A page has about 1 MiB and may be short."""
    return json_answer(await service.list_versions(session, scenario_id, limit=limit, cursor=cursor))


@router.get("/scenarios/{scenario_id}")
async def scenarios_get(_: Viewer, session: Reads, scenario_id: UUID, response: Response) -> Scenario:
    """A saved scenario, with its ETag."""
    scenario = await service.get_scenario(session, scenario_id)
    response.headers["ETag"] = service.etag_of(scenario)
    return scenario


@router.put("/scenarios/{scenario_id}")
async def scenarios_replace(
    actor: Planner,
    session: Writes,
    beside: Beside,
    scenario_id: UUID,
    *,
    body: ScenarioWrite,
    response: Response,
    if_match: IfMatch = None,
) -> Scenario:
    """Replace a scenario. If-Match must name its current version."""
    scenario = await service.replace_scenario(session, beside, scenario_id, body, if_match=if_match, by=actor.name)
    response.headers["ETag"] = service.etag_of(scenario)
    return scenario


@router.delete("/scenarios/{scenario_id}", status_code=204)
async def scenarios_delete(_: Planner, session: Writes, scenario_id: UUID, if_match: IfMatch = None) -> None:
    """Delete a scenario and its drafts. If-Match must name its current version."""
    await service.delete_scenario(session, scenario_id, if_match)


@router.post("/scenarios/{scenario_id}/plans", status_code=201, response_model=SavedPlan)
async def scenario_plans_create(
    actor: Planner, session: Writes, beside: Beside, scenario_id: UUID, *, settings: CurrentSettings
) -> Response:
    """Compute the plan of a scenario's current version and save it."""
    await require_room_for_plan(session, settings, actor)
    return _kept(await saved_plans.create_plan(session, beside, scenario_id, by=actor))


def _kept(plan: plan_content.Answer) -> Response:
    headers = {"ETag": etag(plan.version), "Location": f"/api/v1/plans/{plan.id}"}
    return json_answer(plan.content, 201, headers)


@router.get("/scenarios/{scenario_id}/plans")
async def scenario_plans_list(
    _: Viewer, session: Reads, scenario_id: UUID, limit: Limit = 50, cursor: Cursor = None
) -> Page[PlanSummary]:
    """The saved plans of a scenario, newest first."""
    return await saved_plans.list_plans(session, PlanFilter(scenario_id=scenario_id), limit=limit, cursor=cursor)


@router.post("/plans", status_code=201, response_model=SavedPlan)
async def plans_create(
    actor: Planner,
    session: Writes,
    request: Request,
    *,
    beside: Beside,
    settings: CurrentSettings,
    body: PlanKeep,
) -> Response:
    """Keep a plan: computed once, with its node's newest sample, and never changed after. It is a draft."""
    await require_room_for_plan(session, settings, actor)
    plan = await saved_plans.keep_plan(session, beside, body, by=actor)
    audit.note(request, kind="plan", subject=plan.id, digest=plan.digest)
    return _kept(plan)


@router.get("/plans")
async def plans_list(
    _: Viewer,
    session: Reads,
    *,
    node_id: UUID | None = None,
    fleet_plan_id: UUID | None = None,
    state: PlanState | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[PlanSummary]:
    """Kept plans, newest first, of all nodes or of one."""
    wanted = PlanFilter(node_id=node_id, fleet_plan_id=fleet_plan_id, state=state)
    return await saved_plans.list_plans(session, wanted, limit=limit, cursor=cursor)


@router.get("/plans/{plan_id}", response_model=SavedPlan)
async def plans_get(_: Viewer, session: Reads, beside: Beside, plan_id: UUID) -> Response:
    """A kept plan, with the ETag of its state."""
    plan = await plan_answers.get_plan(session, beside, plan_id)
    return json_answer(plan.content, headers={"ETag": etag(plan.version)})


@router.get(
    "/plans/{plan_id}/document.json",
    response_class=Response,
    responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}, "description": "The document"}},
)
async def plan_documents_get(_: Viewer, session: Reads, beside: Beside, plan_id: UUID) -> Response:
    """All that was kept of a plan, the same bytes for ever; ``hugeplan apply`` and ``verify`` read it."""
    digest, content = await plan_answers.of_plan(session, beside, plan_id, plan_answers.document)
    name = str(plan_id) if digest is None else short(digest)
    headers = {"Content-Disposition": f'attachment; filename="plan-{name}.json"'}
    if digest is not None:
        headers["ETag"] = f'"{digest}"'
    return Response(content, media_type="application/json", headers=headers)


@router.get("/plans/{plan_id}/inputs", response_model=PlanInputs)
async def plan_inputs_get(_: Viewer, session: Reads, beside: Beside, plan_id: UUID) -> Response:
    """All that a saved plan was computed from."""
    return json_answer(await plan_answers.of_plan(session, beside, plan_id, plan_answers.inputs))


@router.get("/plans/{plan_id}/diff", response_model=PlanDifference)
async def plans_diff(_: Viewer, session: Reads, beside: Beside, plan_id: UUID, against: UUID) -> Response:
    """A saved plan beside another one: pools, findings, and the inputs that led to the difference."""
    return json_answer(await plan_answers.diff_plans(session, beside, plan_id, against))


@router.get(
    "/plans/{plan_id}/artifacts.zip",
    response_class=Response,
    responses={200: {"content": {"application/zip": {}}, "description": "The bundle"}},
)
async def plan_artifacts_zip(
    _: Viewer, session: Reads, beside: Beside, plan_id: UUID, *, force: Force = False
) -> Response:
    """All files of a saved plan as a bundle for a GitOps repository, with a README. 409 when it does not fit, or its
    node has another name now.
    """
    name, content = await plan_answers.of_files(session, beside, plan_id, partial(plan_content.zip_of, force=force))
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/zip", headers=headers)


@router.get("/plans/{plan_id}/verification")
async def plan_verification_get(_: Viewer, session: Reads, beside: Beside, plan_id: UUID) -> PlanVerification:
    """Is a saved plan in force on its node? Planned against the node's newest report, check by check."""
    return await plan_answers.verify_plan(session, beside, plan_id)


@router.post("/plans/{plan_id}/verification")
async def plan_verification_create(actor: Planner, session: Writes, beside: Beside, plan_id: UUID) -> PlanVerification:
    """Verify a saved plan; where its node's newest report says that it is in force, it is the plan in force."""
    return await plan_answers.put_in_force_if_verified(session, beside, plan_id, by=actor.name)


@router.get("/plans/{plan_id}/artifacts-diff", response_model=ArtifactChanges)
async def plan_artifacts_diff(
    _: Viewer, session: Reads, beside: Beside, plan_id: UUID, against: UUID | None = None
) -> Response:
    """The files of a saved plan against those of another one; without ``against``, of the plan in force on its node."""
    return json_answer(await plan_answers.diff_artifacts(session, beside, plan_id, against))


@router.get("/plans/{plan_id}/artifacts", response_model=PlanArtifacts)
async def plan_artifacts_list(
    _: Viewer, session: Reads, beside: Beside, plan_id: UUID, *, force: Force = False
) -> Response:
    """The files that apply a saved plan. 409 for one that does not fit, unless forced, and where its node has another
    name now.
    """
    return json_answer(await plan_answers.of_files(session, beside, plan_id, partial(plan_answers.files, force=force)))


@router.get(
    "/plans/{plan_id}/artifacts/{kind}",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The file"}},
)
async def plan_artifacts_get(
    _: Viewer,
    session: Reads,
    beside: Beside,
    plan_id: UUID,
    kind: str,
    *,
    filename: ArtifactFile = None,
    disposition: Annotated[ArtifactDisposition, Query()] = "attachment",
    force: Force = False,
) -> Response:
    """One file, as it is applied. 409 for a plan that does not fit, unless forced, and where its node has another name
    now.
    """
    wanted = partial(plan_content.file_of, kind=kind, filename=filename, force=force)
    artifact = await plan_answers.of_files(session, beside, plan_id, wanted)
    headers = {"Content-Disposition": f'{disposition}; filename="{artifact.filename}"'}
    return Response(artifact.content, media_type=artifact.media_type, headers=headers)

"""Planning, and keeping what was planned."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

import anyio.to_thread
import yaml
from pydantic import TypeAdapter, ValidationError

from hugeplan import __version__
from hugeplan.api.json_body import JsonLimits, parse_json
from hugeplan.api.pagination import Page, decode_cursor, decode_time_cursor, page_of
from hugeplan.api.schemas import JsonObject
from hugeplan.artifacts import Artifact, Restart, render, withheld
from hugeplan.artifacts.bundle import as_zip, bundle, changes
from hugeplan.db.models import PlanRow, ScenarioRow, ScenarioVersionRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.documents.plans import SCHEMA_VERSION, dump_plan, read_plan
from hugeplan.errors import (
    ConflictError,
    FieldProblem,
    InvalidInputError,
    NotFoundError,
    PlanDoesNotFitError,
    PreconditionFailedError,
    PreconditionRequiredError,
    from_validation,
    invalid_input,
    shown,
)
from hugeplan.fleet import edits
from hugeplan.fleet import service as fleet
from hugeplan.fleet.overview_schemas import PlanInForceWrite
from hugeplan.fleet.selector import NodeSelector
from hugeplan.hardware.catalogue import complete
from hugeplan.planner.demand import DemandContext
from hugeplan.planner.model import Plan, PlanRequest, Reservations
from hugeplan.planner.observation.databases import as_it_runs
from hugeplan.planner.other_node import MOST_TRIED, with_other_node
from hugeplan.planner.plan import plan
from hugeplan.proof import verify
from hugeplan.scenario_file import ScenarioDocument, ScenarioFileError, load, to_request
from hugeplan.scenario_file.documents import DatabaseDocument, ReservationsDocument, WorkloadDocument
from hugeplan.scenario_file.yaml_lines import parse_text
from hugeplan.scenarios import plan_difference, repository
from hugeplan.scenarios.schemas import (
    ArtifactChange,
    ArtifactChanges,
    PlanArtifact,
    PlanArtifacts,
    PlanDifference,
    PlanInputs,
    PlanPreview,
    PlanPreviewRequest,
    PlanSummary,
    PlanVerification,
    SavedPlan,
    Scenario,
    ScenarioSummary,
    ScenarioVersion,
    ScenarioWrite,
    ScenarioYamlImport,
)
from hugeplan.settings import Settings

MAX_LEDGER_CELLS = 20_000
"""Above 16 NUMA nodes with a thousand tenants, below a second of arithmetic."""

_REQUEST = TypeAdapter(PlanRequest)


async def _request_for(session: ReadSession, node_id: UUID | None, document: ScenarioDocument) -> PlanRequest:
    """What ``plan()`` takes, from a stored node or from the scenario's own."""
    if node_id is None:
        request = to_request(document, from_catalogue=complete)
    else:
        facts, sample = await fleet.get_facts(session, node_id)
        request = to_request(document, facts, sample=sample)
    _refuse_unbounded_work(request)
    return request


def _refuse_unbounded_work(request: PlanRequest) -> None:
    """Refuse a plan that would take minutes: the ledger has a part for each tenant on each NUMA node."""
    cells = len(request.node.numa) * (len(request.tenants) + len(request.databases))
    if cells > MAX_LEDGER_CELLS:
        expected = f"NUMA nodes times tenants and databases of at most {MAX_LEDGER_CELLS}"
        raise invalid_input([FieldProblem(field="scenario", value=str(cells), expected=expected)])


def _files_of(computed: Plan, request: PlanRequest, *, force: bool = False) -> PlanPreview:
    artifacts = [PlanArtifact.model_validate(artifact) for artifact in render(computed, request, force=force)]
    return PlanPreview(plan=computed, artifacts=artifacts, artifacts_withheld=None if force else withheld(computed))


async def compute(
    session: ReadSession, node_id: UUID | None, document: ScenarioDocument, *, force: bool = False
) -> PlanPreview:
    """The plan of a scenario and its files. The arithmetic runs beside the event loop, not on it."""
    return await _computed(session, node_id, await _request_for(session, node_id, document), force=force)


async def _computed(session: ReadSession, node_id: UUID | None, request: PlanRequest, *, force: bool) -> PlanPreview:
    found, files = await anyio.to_thread.run_sync(partial(_planned, request, force=force))
    if files is not None:
        return files
    others = await _other_nodes(session, node_id, request)
    found = await anyio.to_thread.run_sync(with_other_node, found, request, others)
    return await anyio.to_thread.run_sync(partial(_files_of, found, request, force=force))


def _planned(request: PlanRequest, *, force: bool) -> tuple[Plan, PlanPreview | None]:
    """The plan with its files; without them where it does not fit, as another node may be named in it first."""
    found = plan(request)
    return found, None if found.shortfall is not None else _files_of(found, request, force=force)


async def _other_nodes(session: ReadSession, node_id: UUID | None, request: PlanRequest) -> list[PlanRequest]:
    """The nodes of the fleet with the most available memory, as they run: where a database may move to."""
    synthetic = node_id is not None and (await fleet.require_node(session, node_id)).synthetic
    selector = NodeSelector(synthetic=synthetic, stale=False)
    page = await fleet.list_nodes(
        session, selector, sort="mem_available_bytes", descending=True, limit=MOST_TRIED + 1, cursor=None
    )
    others = []
    for item in page.items:
        if item.id == node_id:
            continue
        try:
            facts, sample = await fleet.get_facts(session, item.id)
            kubernetes, provider = await fleet.get_cluster(session, item.id)
        except InvalidInputError:  # its report lacks what a plan needs
            continue
        if facts.arch == request.node.arch:
            reservations = Reservations(kubernetes=kubernetes, provider=provider)
            others.append(PlanRequest(node=facts, reservations=reservations, policy=request.policy, sample=sample))
    return others


async def preview(session: ReadSession, body: PlanPreviewRequest) -> PlanPreview:
    """Plan a scenario without saving anything."""
    return await compute(session, body.node_id, body.scenario, force=body.force)


async def scenario_of_node(session: ReadSession, node_id: UUID) -> JsonObject:
    """The first scenario of a node: its databases as they run today, and whether a kubelet runs there. Workloads come
    from the sample by themselves."""
    facts, sample = await fleet.get_facts(session, node_id)
    kubernetes, provider = await fleet.get_cluster(session, node_id)
    databases = as_it_runs(sample, DemandContext.of_node(facts))
    document = ScenarioDocument(
        reservations=ReservationsDocument.model_validate({"kubernetes": kubernetes, "provider": provider}),
        databases=[
            DatabaseDocument(
                name=database.name,
                engine=database.engine,
                version=database.version,
                settings=dict(database.settings),
                workload=WorkloadDocument(active_connections=database.workload.active_connections),
                runs_as=database.runs_as,
            )
            for database in databases
        ],
    )
    return document.model_dump(mode="json", exclude_defaults=True)


# --- scenarios ----------------------------------------------------------------------------------


def etag_of(scenario: Scenario) -> str:
    """The ETag of a scenario's current version."""
    return f'"{scenario.version}"'


def _wanted_version(if_match: str | None, current: int) -> int:
    """The version that If-Match names. It is required, so that nobody overwrites an edit they have not seen."""
    if if_match is None:
        raise PreconditionRequiredError(
            "Send the ETag of the version you read in the header If-Match.",
            [FieldProblem(field="If-Match", value=None, expected=f'an ETag such as "{current}"')],
        )
    tags = [tag.strip() for tag in if_match.split(",")]
    if "*" in tags or f'"{current}"' in tags:
        return current
    if not all(re.fullmatch(r'(W/)?"[^"]*"', tag) for tag in tags):
        expected = f'an ETag such as "{current}"'
    else:
        expected = f'"{current}", the current version'
    raise PreconditionFailedError(
        "The scenario has another version. Read it again, and repeat your change on what it says now.",
        [FieldProblem(field="If-Match", value=if_match, expected=expected)],
    )


def _summary(row: ScenarioRow, latest_plan_id: UUID | None) -> ScenarioSummary:
    return ScenarioSummary(
        id=row.id,
        name=row.name,
        node_id=row.node_id,
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        latest_plan_id=latest_plan_id,
    )


def _scenario(row: ScenarioRow, latest_plan_id: UUID | None) -> Scenario:
    return Scenario(**_summary(row, latest_plan_id).model_dump(), scenario=row.document)


async def _check(session: ReadSession, body: ScenarioWrite) -> None:
    """Refuse a scenario that could not be planned: what is saved can always be opened."""
    await _request_for(session, body.node_id, body.scenario)


async def list_scenarios(session: ReadSession, *, limit: int, cursor: str | None) -> Page[ScenarioSummary]:
    """Saved scenarios, most recently changed first."""
    after = decode_time_cursor(cursor)
    rows = await repository.list_scenarios(session, after=after, limit=limit + 1)
    items, next_cursor = page_of(
        rows, limit, lambda row: (row[0].updated_at.isoformat(), str(row[0].id)), lambda row: _summary(*row)
    )
    return Page(items=items, next_cursor=next_cursor)


async def _stored(session: ReadSession, scenario_id: UUID) -> tuple[ScenarioRow, UUID | None]:
    found = await repository.get_scenario(session, scenario_id)
    if found is None:
        raise NotFoundError(f"There is no scenario {scenario_id}.")
    return found


async def get_scenario(session: ReadSession, scenario_id: UUID) -> Scenario:
    """A saved scenario."""
    return _scenario(*await _stored(session, scenario_id))


async def create_scenario(session: WriteSession, body: ScenarioWrite, spelled: JsonObject, *, by: str) -> Scenario:
    """Save a scenario; ``spelled`` is its document as it was sent."""
    await _check(session, body)
    now = datetime.now(UTC)
    row = ScenarioRow(
        id=uuid.uuid4(),
        name=body.name,
        node_id=body.node_id,
        version=1,
        document=spelled,
        created_at=now,
        updated_at=now,
    )
    await repository.add_scenario(session, row)
    await _keep_version(session, row, by)
    return _scenario(row, None)


async def save_by_name(
    session: WriteSession, documents: Sequence[tuple[str, JsonObject]], *, by: str
) -> list[ScenarioSummary]:
    """Create or replace scenarios by their names, each checked in full first; in the order given.

    Where several have a name, the most recently changed is replaced.
    """
    for name, document in documents:
        try:
            wanted = ScenarioWrite(name=name, scenario=ScenarioDocument.model_validate(document))
        except ValidationError as error:
            raise from_validation(error) from error
        await _check(session, wanted)
    found = await repository.scenarios_named(session, [name for name, _ in documents])
    now = datetime.now(UTC)
    saved = []
    for name, document in documents:
        row = found.get(name)
        if row is None:
            row = ScenarioRow(
                id=uuid.uuid4(), name=name, node_id=None, version=1, document=document, created_at=now, updated_at=now
            )
            await repository.add_scenario(session, row)
        else:
            row.document, row.updated_at, row.version = document, now, row.version + 1
        await _keep_version(session, row, by)
        saved.append(_summary(row, None))
    return saved


async def replace_scenario(
    session: WriteSession,
    scenario_id: UUID,
    body: ScenarioWrite,
    spelled: JsonObject,
    *,
    if_match: str | None,
    by: str,
) -> Scenario:
    """Replace a scenario whose version If-Match names."""
    row, latest_plan_id = await _stored(session, scenario_id)
    version = _wanted_version(if_match, row.version)
    await _check(session, body)
    values: dict[str, Any] = {
        "name": body.name,
        "node_id": body.node_id,
        "document": spelled,
        "updated_at": datetime.now(UTC),
    }
    if not await repository.replace_scenario(session, scenario_id, version, values):
        raise PreconditionFailedError("Somebody changed the scenario at the same moment. Read it again.")
    kept = ScenarioVersionRow(
        scenario_id=scenario_id,
        version=version + 1,
        name=body.name,
        node_id=body.node_id,
        document=spelled,
        saved_at=values["updated_at"],
        saved_by=by,
    )
    await repository.add_version(session, kept)
    summary = _summary(row, latest_plan_id).model_dump() | values | {"version": version + 1}
    summary["scenario"] = summary.pop("document")
    return Scenario(**summary)


async def delete_scenario(session: WriteSession, scenario_id: UUID, if_match: str | None) -> None:
    """Delete a scenario whose version If-Match names, with its plans."""
    row, _ = await _stored(session, scenario_id)
    version = _wanted_version(if_match, row.version)
    if not await repository.delete_scenario(session, scenario_id, version):
        raise PreconditionFailedError("Somebody changed the scenario at the same moment. Read it again.")


async def _keep_version(session: WriteSession, row: ScenarioRow, by: str) -> None:
    version = ScenarioVersionRow(
        scenario_id=row.id,
        version=row.version,
        name=row.name,
        node_id=row.node_id,
        document=row.document,
        saved_at=row.updated_at,
        saved_by=by,
    )
    await repository.add_version(session, version)


def _version(row: ScenarioVersionRow) -> ScenarioVersion:
    values = {name: getattr(row, name) for name in ScenarioVersion.model_fields if name != "scenario"}
    return ScenarioVersion.model_validate(values | {"scenario": row.document})


async def list_versions(
    session: ReadSession, scenario_id: UUID, *, limit: int, cursor: str | None
) -> Page[ScenarioVersion]:
    """The versions of a scenario, newest first."""
    await _stored(session, scenario_id)
    position = decode_cursor(cursor, int, str)
    before = None if position is None else position[0]
    rows = await repository.list_versions(session, scenario_id, before=before, limit=limit + 1)
    items, next_cursor = page_of(rows, limit, lambda row: (str(row.version), ""), _version)
    return Page(items=items, next_cursor=next_cursor)


async def export_yaml(session: ReadSession, scenario_id: UUID) -> str:
    """A scenario as the YAML that ``hugeplan plan`` reads. A stored node's facts are no part of it."""
    row, _ = await _stored(session, scenario_id)
    text: str = yaml.safe_dump(row.document, sort_keys=False, allow_unicode=True, default_flow_style=False)
    return text


async def import_yaml(session: WriteSession, body: ScenarioYamlImport, settings: Settings, *, by: str) -> Scenario:
    """Save a scenario from its YAML. InvalidInputError names the line that is wrong."""
    try:
        document = load(body.yaml)
    except ScenarioFileError as error:
        problems = [
            FieldProblem(
                field="yaml" if problem.line is None else f"yaml, line {problem.line}",
                value=shown(problem.value),
                expected=f"{problem.field or 'document'}: {problem.expected}",
            )
            for problem in error.problems
        ]
        raise invalid_input(problems) from error
    # As it was spelled, within the bounds of a JSON body: YAML has escapes for characters that JSON is refused for.
    spelled = parse_json(json.dumps(parse_text(body.yaml, "yaml")[0], default=str).encode(), JsonLimits.of(settings))
    write = ScenarioWrite(name=body.name, node_id=body.node_id, scenario=document)
    return await create_scenario(session, write, spelled, by=by)


# --- saved plans --------------------------------------------------------------------------------


def _plan_summary(row: PlanRow) -> PlanSummary:
    return PlanSummary(
        id=row.id,
        scenario_id=row.scenario_id,
        scenario_version=row.scenario_version,
        node_id=row.node_id,
        created_at=row.created_at,
        headline=row.headline,
    )


def _artifacts(row: PlanRow) -> list[PlanArtifact]:
    return [PlanArtifact.model_validate(artifact) for artifact in row.artifacts]


def _saved_plan(row: PlanRow) -> SavedPlan:
    try:
        plan_as_saved = read_plan(row.plan, row.schema_version)
    except ValueError as error:
        raise ConflictError(
            "This plan was saved by another version of hugeplan, which this one cannot read. Its files are still "
            f"at /api/v1/plans/{row.id}/artifacts; for the rest, plan the scenario again."
        ) from error
    artifacts = _artifacts(row) if plan_as_saved.feasible else []
    return SavedPlan(
        **_plan_summary(row).model_dump(),
        schema_version=row.schema_version,
        model_version=row.model_version,
        author=row.author,
        plan=plan_as_saved,
        artifacts=artifacts,
    )


async def create_plan(session: WriteSession, scenario_id: UUID, *, by: str) -> SavedPlan:
    """Compute the plan of a scenario's current version and save it.

    Files of a plan that does not fit are kept with a warning in each; they are handed out with ``force`` alone.
    """
    scenario, _ = await _stored(session, scenario_id)
    document = ScenarioDocument.model_validate(scenario.document)
    request = await _request_for(session, scenario.node_id, document)
    computed = await _computed(session, scenario.node_id, request, force=True)
    row = PlanRow(
        id=uuid.uuid4(),
        scenario_id=scenario.id,
        scenario_version=scenario.version,
        node_id=scenario.node_id,
        created_at=datetime.now(UTC),
        headline=computed.plan.headline,
        schema_version=SCHEMA_VERSION,
        model_version=__version__,
        author=by,
        scenario=scenario.document,
        request=_REQUEST.dump_python(request, mode="json"),
        plan=dump_plan(computed.plan),
        artifacts=[artifact.model_dump(mode="json") for artifact in computed.artifacts],
    )
    await repository.add_plan(session, row)
    return _saved_plan(row)


async def list_plans(session: ReadSession, scenario_id: UUID, *, limit: int, cursor: str | None) -> Page[PlanSummary]:
    """The saved plans of a scenario, newest first."""
    await _stored(session, scenario_id)
    after = decode_time_cursor(cursor)
    rows = await repository.list_plans(session, scenario_id, after=after, limit=limit + 1)
    items, next_cursor = page_of(rows, limit, lambda row: (row.created_at.isoformat(), str(row.id)), _plan_summary)
    return Page(items=items, next_cursor=next_cursor)


async def _stored_plan(session: ReadSession, plan_id: UUID) -> PlanRow:
    row = await repository.get_plan(session, plan_id)
    if row is None:
        raise NotFoundError(f"There is no plan {plan_id}.")
    return row


async def get_plan(session: ReadSession, plan_id: UUID) -> SavedPlan:
    """A saved plan. ConflictError when it was saved by a version with another form of plans."""
    return _saved_plan(await _stored_plan(session, plan_id))


async def get_inputs(session: ReadSession, plan_id: UUID) -> PlanInputs:
    """All that a saved plan was computed from."""
    row = await _stored_plan(session, plan_id)
    return PlanInputs(plan_id=plan_id, scenario=row.scenario, request=row.request)


async def diff_plans(session: ReadSession, plan_id: UUID, against: UUID) -> PlanDifference:
    """A saved plan beside another one: what is planned differently, and which inputs led to it."""
    rows = await _stored_plan(session, plan_id), await _stored_plan(session, against)
    new, old = (_saved_plan(row).plan for row in rows)
    return PlanDifference(
        plan_id=plan_id,
        against=against,
        headline=new.headline,
        headline_against=old.headline,
        feasible=new.feasible,
        feasible_against=old.feasible,
        pools=plan_difference.pool_changes(old, new),
        findings=plan_difference.finding_changes(old, new),
        inputs=plan_difference.input_changes(rows[1].request, rows[0].request),
    )


def _require_fit(row: PlanRow, *, force: bool) -> None:
    """PlanDoesNotFitError for a plan that does not fit, unless the caller insists."""
    if not force and not row.plan.get("feasible", True):
        raise PlanDoesNotFitError(f"{row.headline} {withheld(_saved_plan(row).plan)}")


async def list_artifacts(session: ReadSession, plan_id: UUID, *, force: bool = False) -> PlanArtifacts:
    """The files of a saved plan. PlanDoesNotFitError for one that does not fit, unless ``force``."""
    row = await _stored_plan(session, plan_id)
    _require_fit(row, force=force)
    return PlanArtifacts(plan_id=plan_id, items=_artifacts(row))


async def get_artifact(session: ReadSession, plan_id: UUID, kind: str, *, force: bool = False) -> PlanArtifact:
    """One file of a saved plan, by its kind. PlanDoesNotFitError for one that does not fit, unless ``force``."""
    row = await _stored_plan(session, plan_id)
    _require_fit(row, force=force)
    artifacts = _artifacts(row)
    for artifact in artifacts:
        if artifact.kind == kind:
            return artifact
    kinds = ", ".join(artifact.kind for artifact in artifacts) or "none"
    raise NotFoundError(f"This plan has no artifact {kind!r}; it has: {kinds}.")


def _rendered(row: PlanRow) -> list[Artifact]:
    """The stored files as the renderers make them."""
    fields = (artifact.model_dump() for artifact in _artifacts(row))
    return [Artifact(**{**item, "restart": Restart(item["restart"])}) for item in fields]


async def zip_artifacts(session: ReadSession, plan_id: UUID, *, force: bool = False) -> tuple[str, bytes]:
    """File name and bytes of the bundle of a saved plan. ConflictError when the plan has no files."""
    row = await _stored_plan(session, plan_id)
    _require_fit(row, force=force)
    artifacts = _rendered(row)
    if not artifacts:
        raise ConflictError("This plan changes nothing, so there is no file to apply.")
    node = str(row.plan["node"])
    return f"hugeplan-{plan_id}.zip", as_zip(bundle(node, row.headline, artifacts))


async def diff_artifacts(session: ReadSession, plan_id: UUID, against: UUID | None) -> ArtifactChanges:
    """What applying a plan changes in the files of another plan; None: of the plan in force on the plan's node.

    ConflictError where no saved plan is in force there.
    """
    if against is None:
        against = await _in_force_beside(session, plan_id)
    new, old = await _stored_plan(session, plan_id), await _stored_plan(session, against)
    found = changes(
        bundle(str(old.plan["node"]), old.headline, _rendered(old)),
        bundle(str(new.plan["node"]), new.headline, _rendered(new)),
    )
    items = [ArtifactChange(path=item.path, change=item.change, diff=item.diff) for item in found]
    return ArtifactChanges(plan_id=plan_id, against=against, items=items)


async def _in_force_beside(session: ReadSession, plan_id: UUID) -> UUID:
    row = await _stored_plan(session, plan_id)
    if row.node_id is None:
        raise ConflictError(
            "This plan was made for no observed node, so no plan is in force there; name one to compare."
        )
    found = await fleet.get_plan_in_force_id(session, row.node_id)
    if found is None:
        raise ConflictError("No saved plan is in force on this plan's node; name a plan to compare with.")
    return found


async def verify_plan(session: ReadSession, plan_id: UUID) -> PlanVerification:
    """A saved plan against the newest report of the node it was made for. ConflictError for a plan of no node."""
    row = await _stored_plan(session, plan_id)
    if row.node_id is None:
        raise ConflictError("This plan was made for no observed node, so there is no report to verify it with.")
    observed_at, observed = await fleet.get_observation(session, row.node_id)
    found = verify(_saved_plan(row).plan, observed)
    return PlanVerification(
        plan_id=plan_id,
        node_id=row.node_id,
        observed_at=observed_at,
        outcome=found.outcome.value,
        findings=list(found.findings),
    )


async def put_in_force_if_verified(session: WriteSession, plan_id: UUID, *, by: str) -> PlanVerification:
    """Verify a saved plan, and put it in force on its node when the newest report says that it is."""
    found = await verify_plan(session, plan_id)
    if found.outcome == "in_force":
        await edits.set_plan_in_force(session, found.node_id, PlanInForceWrite(plan_id=plan_id, source="verify"), by=by)
    return found

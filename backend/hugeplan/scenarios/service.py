"""Planning, and keeping scenarios with their versions. Plans that are kept are in ``saved_plans``."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import anyio.to_thread
import yaml
from pydantic import ValidationError

from hugeplan.api.json_body import JsonLimits, parse_json
from hugeplan.api.pagination import Page, decode_cursor, decode_time_cursor, page_of
from hugeplan.api.schemas import JsonObject
from hugeplan.artifacts import refused, render, withheld
from hugeplan.db.models import ScenarioRow, ScenarioVersionRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.errors import (
    FieldProblem,
    InvalidInputError,
    NotFoundError,
    PreconditionFailedError,
    PreconditionRequiredError,
    from_validation,
    invalid_input,
    shown,
)
from hugeplan.fleet import service as fleet
from hugeplan.fleet.selector import NodeSelector
from hugeplan.hardware.catalogue import complete
from hugeplan.planner.demand import DemandContext
from hugeplan.planner.memory.kubernetes import observed_reservations
from hugeplan.planner.model import Plan, PlanRequest
from hugeplan.planner.observation.databases import as_it_runs
from hugeplan.planner.other_node import MOST_TRIED, with_other_node
from hugeplan.planner.plan import plan
from hugeplan.scenario_file import ScenarioDocument, ScenarioFileError, load, to_request
from hugeplan.scenario_file.documents import DatabaseDocument, ReservationsDocument, WorkloadDocument
from hugeplan.scenario_file.yaml_lines import parse_text
from hugeplan.scenarios import repository
from hugeplan.scenarios.schemas import (
    PlanArtifact,
    PlanPreview,
    PlanPreviewRequest,
    Scenario,
    ScenarioSummary,
    ScenarioVersion,
    ScenarioWrite,
    ScenarioYamlImport,
)
from hugeplan.settings import Settings

MAX_LEDGER_CELLS = 20_000
"""Above 16 NUMA nodes with a thousand tenants, below a second of arithmetic."""


async def request_for(session: ReadSession, node_id: UUID | None, document: ScenarioDocument) -> PlanRequest:
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


@dataclass(frozen=True, slots=True)
class Files:
    """Which files a plan is answered with."""

    are_wanted: bool = True
    force: bool = False
    """Those of a plan that does not fit, too."""


def _with_files(computed: Plan, request: PlanRequest, files: Files) -> PlanPreview:
    artifacts = None
    if files.are_wanted:
        rendered = render(computed, request, force=files.force)
        artifacts = [PlanArtifact.model_validate(artifact) for artifact in rendered]
    why_not = refused(computed, request) or (None if files.force else withheld(computed))
    return PlanPreview(plan=computed, artifacts=artifacts, artifacts_withheld=why_not)


async def compute_request(
    session: ReadSession, node_id: UUID | None, request: PlanRequest, files: Files
) -> PlanPreview:
    """The plan of a request and its files, and where it does not fit, the nodes on which it would.

    The arithmetic runs beside the event loop, not on it.
    """
    found, answer = await anyio.to_thread.run_sync(_planned, request, files)
    if answer is not None:
        return answer
    others = await _other_nodes(session, node_id, request)
    found = await anyio.to_thread.run_sync(with_other_node, found, request, others)
    return await anyio.to_thread.run_sync(_with_files, found, request, files)


def _planned(request: PlanRequest, files: Files) -> tuple[Plan, PlanPreview | None]:
    """The plan with its files; without them where it does not fit, as another node may be named in it first."""
    found = plan(request)
    return found, None if found.shortfall is not None else _with_files(found, request, files)


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
        except InvalidInputError:  # its report lacks what a plan needs
            continue
        if facts.arch == request.node.arch:
            reservations = observed_reservations(sample)
            others.append(PlanRequest(node=facts, reservations=reservations, policy=request.policy, sample=sample))
    return others


async def preview(session: ReadSession, body: PlanPreviewRequest) -> PlanPreview:
    """Plan a scenario without saving anything."""
    request = await request_for(session, body.node_id, body.scenario)
    return await compute_request(session, body.node_id, request, Files(are_wanted=body.files, force=body.force))


async def scenario_of_node(session: ReadSession, node_id: UUID) -> JsonObject:
    """The first scenario of a node: its databases as they run today, and whether a kubelet runs there. Workloads come
    from the sample by themselves."""
    facts, sample = await fleet.get_facts(session, node_id)
    cluster = observed_reservations(sample)
    databases = as_it_runs(sample, DemandContext.of_node(facts))
    document = ScenarioDocument(
        reservations=ReservationsDocument.model_validate(
            {"kubernetes": cluster.kubernetes, "provider": cluster.provider}
        ),
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
    await request_for(session, body.node_id, body.scenario)


async def list_scenarios(session: ReadSession, *, limit: int, cursor: str | None) -> Page[ScenarioSummary]:
    """Saved scenarios, most recently changed first."""
    after = decode_time_cursor(cursor)
    rows = await repository.list_scenarios(session, after=after, limit=limit + 1)
    items, next_cursor = page_of(
        rows, limit, lambda row: (row[0].updated_at.isoformat(), str(row[0].id)), lambda row: _summary(*row)
    )
    return Page(items=items, next_cursor=next_cursor)


async def stored_scenario(session: ReadSession, scenario_id: UUID) -> tuple[ScenarioRow, UUID | None]:
    """A saved scenario and the id of its newest plan. NotFoundError where there is none."""
    found = await repository.get_scenario(session, scenario_id)
    if found is None:
        raise NotFoundError(f"There is no scenario {scenario_id}.")
    return found


async def get_scenario(session: ReadSession, scenario_id: UUID) -> Scenario:
    """A saved scenario."""
    return _scenario(*await stored_scenario(session, scenario_id))


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
    row, latest_plan_id = await stored_scenario(session, scenario_id)
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
    row, _ = await stored_scenario(session, scenario_id)
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
    await stored_scenario(session, scenario_id)
    position = decode_cursor(cursor, int, str)
    before = None if position is None else position[0]
    rows = await repository.list_versions(session, scenario_id, before=before, limit=limit + 1)
    items, next_cursor = page_of(rows, limit, lambda row: (str(row.version), ""), _version)
    return Page(items=items, next_cursor=next_cursor)


async def export_yaml(session: ReadSession, scenario_id: UUID) -> str:
    """A scenario as the YAML that ``hugeplan plan`` reads. A stored node's facts are no part of it."""
    row, _ = await stored_scenario(session, scenario_id)
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

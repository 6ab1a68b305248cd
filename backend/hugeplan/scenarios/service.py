"""Planning, and keeping scenarios with their versions. Plans that are kept are in ``saved_plans``."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec
from pydantic import TypeAdapter

from hugeplan.access.machines import CLONE_MARK
from hugeplan.access.service import Actor
from hugeplan.api.beside import RequestSandbox
from hugeplan.api.json_body import JsonLimits, parse_json
from hugeplan.api.pagination import Page, count, decode_cursor, decode_time_cursor, page_of, page_within
from hugeplan.api.preconditions import etag, require_match
from hugeplan.api.schemas import JsonObject, fields_of
from hugeplan.api.unread import Unread
from hugeplan.db.alone import alone
from hugeplan.db.locks import LockOfOne, keep_within
from hugeplan.db.models import ScenarioRow, ScenarioVersionRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.errors import ConflictError, NotFoundError, PreconditionFailedError
from hugeplan.fleet import service as fleet
from hugeplan.fleet.selector import NodeSelector
from hugeplan.planner.model import NodeFacts, NodeSample
from hugeplan.planner.observation.workloads import LISTED_UNITS
from hugeplan.planner.other_node import MOST_TRIED
from hugeplan.scenario_file import scenario_as_it_runs
from hugeplan.scenarios import repository, work
from hugeplan.scenarios.schemas import (
    PlanPreviewRequest,
    Scenario,
    ScenarioSummary,
    ScenarioVersion,
    ScenarioWrite,
    ScenarioYamlImport,
)
from hugeplan.settings import Settings
from hugeplan.trials import service as trials

_NODE_ID = TypeAdapter(UUID | None)
_MOST_PROCESSES: Final = 4_000
"""In the samples of other nodes, after which no further one is read: a thousand take 3 ms."""
_MOST_LISTED: Final = 300
"""Of other nodes, as one credential may have 256 clones."""
_VERSIONS_AT_ONCE: Final = 8
"""Each as large as a body may be."""


async def question(
    session: ReadSession, node_id: UUID | None, scenario: JsonObject | Unread[PlanPreviewRequest]
) -> work.Question:
    """What the sandbox is asked about a scenario: with the facts of a stored node, or with the scenario's own."""
    if node_id is None:
        return work.Question(scenario)
    facts, sample = await fleet.get_facts(session, node_id)
    return work.Question(scenario, await trials.with_trials(session, node_id, facts), sample)


async def compute(
    session: ReadSession, beside: RequestSandbox, node_id: UUID | None, asked: work.Question, files: work.Files
) -> bytes:
    """The plan of a scenario and its files as JSON, and where it does not fit, the nodes on which it would.

    The arithmetic runs in the sandbox, without a database connection.
    """
    payload = pickle.dumps((asked, files))
    answer = await beside.work(work.COMPUTE, payload, what="Planning this scenario", keep=True)
    if answer[:1] == work.UNFINISHED:
        others = await _other_nodes(session, node_id)
        payload, limits = pickle.dumps((answer, others)), work.limits_of_rest(answer)
        answer = await beside.work(work.FINISH, payload, what="Planning this scenario", limits=limits)
    return answer[1:]


async def _other_nodes(session: ReadSession, node_id: UUID | None) -> list[tuple[NodeFacts, NodeSample]]:
    """The nodes of the fleet with the most available memory, as they run: where a database may move to.

    Without those that are dear to plan and clones, of which one credential may have many; and none after those that
    were dear to read, or as many as are tried whose reports lack a figure: somebody may have made up hundreds of these.
    """
    synthetic = node_id is not None and (await fleet.require_node(session, node_id)).synthetic
    selector = NodeSelector(synthetic=synthetic, stale=False)
    page = await fleet.list_nodes(
        session, selector, sort="mem_available_bytes", descending=True, limit=_MOST_LISTED, cursor=None
    )
    others: list[tuple[NodeFacts, NodeSample]] = []
    odd = 0
    for item in page.items:
        if (
            item.id == node_id
            or CLONE_MARK in item.machine_id
            or item.numa_node_count * LISTED_UNITS > work.MOST_OTHER_CELLS
        ):
            continue
        if (
            len(others) == MOST_TRIED
            or odd == MOST_TRIED
            or sum(len(sample.processes or ()) for _, sample in others) > _MOST_PROCESSES
        ):
            break
        with alone(item.name) as tried:
            others.append(await fleet.get_facts(session, item.id))
        odd += tried.why is not None
    return others


async def preview(session: ReadSession, beside: RequestSandbox, body: Unread[PlanPreviewRequest]) -> bytes:
    """The PlanPreview of a scenario as JSON, without saving anything."""
    node_id = body.glance("node_id", _NODE_ID)
    return await compute(session, beside, node_id, await question(session, node_id, body), work.Files())


async def scenario_of_node(session: ReadSession, node_id: UUID) -> JsonObject:
    """The first scenario of a node: its databases as they run today, and whether a kubelet runs there. Workloads come
    from the sample by themselves."""
    return scenario_of(*await fleet.get_facts(session, node_id))


def scenario_of(facts: NodeFacts, sample: NodeSample) -> JsonObject:
    """``scenario_of_node`` of what is known of the node."""
    return scenario_as_it_runs(facts, sample).model_dump(mode="json", exclude_defaults=True)


# --- scenarios ----------------------------------------------------------------------------------


def etag_of(scenario: Scenario) -> str:
    """The ETag of a scenario's current version."""
    return etag(scenario.version)


def _require_match(if_match: str | None, current: int) -> int:
    require_match(if_match, current, "scenario")
    return current


def _summary(row: ScenarioRow, latest_plan_id: UUID | None) -> ScenarioSummary:
    return ScenarioSummary(**fields_of(ScenarioSummary, row, "latest_plan_id"), latest_plan_id=latest_plan_id)


def _scenario(row: ScenarioRow, latest_plan_id: UUID | None) -> Scenario:
    return Scenario(**_summary(row, latest_plan_id).model_dump(), scenario=row.document)


async def _check(session: ReadSession, beside: RequestSandbox, body: ScenarioWrite) -> None:
    """Refuse a scenario that could not be planned: what is saved can always be opened."""
    asked = await question(session, body.node_id, body.scenario)
    await beside.work(work.CHECK, pickle.dumps(asked), what="Checking this scenario")


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


async def create_scenario(session: WriteSession, beside: RequestSandbox, body: ScenarioWrite, *, by: str) -> Scenario:
    """Save a scenario, as it was sent."""
    await _check(session, beside, body)
    return await _create(session, body, by)


async def _create(session: WriteSession, body: ScenarioWrite, by: str) -> Scenario:
    now = datetime.now(UTC)
    row = ScenarioRow(
        id=uuid.uuid4(),
        name=body.name,
        node_id=body.node_id,
        version=1,
        document=body.scenario,
        created_at=now,
        updated_at=now,
    )
    await repository.add_scenarios(session, [row])
    await repository.add_versions(session, [_version_of(row, by)])
    return _scenario(row, None)


async def save_by_name(
    session: WriteSession, documents: Sequence[tuple[str, JsonObject]], *, by: str
) -> list[ScenarioSummary]:
    """Create or replace scenarios by their names, in the order given. Who calls has checked them in full.

    Where several have a name, the most recently changed is replaced.
    """
    found = await repository.scenarios_named(session, [name for name, _ in documents])
    now = datetime.now(UTC)
    rows = []
    for name, document in documents:
        row = found.get(name)
        if row is None:
            row = ScenarioRow(
                id=uuid.uuid4(), name=name, node_id=None, version=1, document=document, created_at=now, updated_at=now
            )
        else:
            row.document, row.updated_at, row.version = document, now, row.version + 1
        rows.append(row)
    await repository.add_scenarios(session, rows)
    await repository.add_versions(session, [_version_of(row, by) for row in rows])
    return [_summary(row, None) for row in rows]


async def replace_scenario(
    session: WriteSession,
    beside: RequestSandbox,
    scenario_id: UUID,
    body: ScenarioWrite,
    *,
    if_match: str | None,
    by: str,
) -> Scenario:
    """Replace a scenario whose version If-Match names."""
    row, latest_plan_id = await stored_scenario(session, scenario_id)
    version = _require_match(if_match, row.version)
    await _check(session, beside, body)
    values: dict[str, Any] = {
        "name": body.name,
        "node_id": body.node_id,
        "document": body.scenario,
        "updated_at": datetime.now(UTC),
    }
    if not await repository.replace_scenario(session, scenario_id, version, values):
        raise PreconditionFailedError("Somebody changed the scenario at the same moment. Read it again.")
    kept = ScenarioVersionRow(
        scenario_id=scenario_id,
        version=version + 1,
        name=body.name,
        node_id=body.node_id,
        document=body.scenario,
        saved_at=values["updated_at"],
        saved_by=by,
    )
    await repository.add_versions(session, [kept])
    summary = _summary(row, latest_plan_id).model_dump() | values | {"version": version + 1}
    summary["scenario"] = summary.pop("document")
    return Scenario(**summary)


async def delete_scenario(session: WriteSession, scenario_id: UUID, if_match: str | None) -> None:
    """Delete a scenario whose version If-Match names, with its drafts. Plans that were proposed stay."""
    row, _ = await stored_scenario(session, scenario_id)
    version = _require_match(if_match, row.version)
    if not await repository.delete_scenario(session, scenario_id, version):
        raise PreconditionFailedError("Somebody changed the scenario at the same moment. Read it again.")


def _version_of(row: ScenarioRow, by: str) -> ScenarioVersionRow:
    return ScenarioVersionRow(
        scenario_id=row.id,
        version=row.version,
        name=row.name,
        node_id=row.node_id,
        document=row.document,
        saved_at=row.updated_at,
        saved_by=by,
    )


def _version_json(row: Any) -> bytes:
    """A version as JSON, the document in the text that PostgreSQL keeps: nothing here reads it."""
    values = fields_of(ScenarioVersion, row, "scenario")
    return msgspec.json.encode(values | {"scenario": msgspec.Raw(row.document.encode())})


async def list_versions(session: ReadSession, scenario_id: UUID, *, limit: int, cursor: str | None) -> bytes:
    """The versions of a scenario, newest first: a page of them as JSON."""
    await stored_scenario(session, scenario_id)

    async def read(after: str | None, count_of_rows: int) -> Sequence[Any]:
        position = decode_cursor(after, count, str)
        before = None if position is None else position[0]
        return await repository.list_versions(session, scenario_id, before=before, limit=count_of_rows)

    items, next_cursor = await page_within(
        session,
        read,
        limit=limit,
        cursor=cursor,
        key=lambda row: (str(row.version), ""),
        at_once=_VERSIONS_AT_ONCE,
        item=_version_json,
        size=lambda _, made: len(made),
    )
    page = {"items": [msgspec.Raw(item) for item in items], "next_cursor": next_cursor}
    return msgspec.json.encode(page)


async def export_yaml(session: ReadSession, beside: RequestSandbox, scenario_id: UUID) -> bytes:
    """A scenario as the YAML that ``hugeplan plan`` reads. A stored node's facts are no part of it."""
    row, _ = await stored_scenario(session, scenario_id)
    return await beside.work(work.WRITE_YAML, pickle.dumps(row.document), what="Writing this scenario as YAML")


async def import_yaml(
    session: WriteSession, beside: RequestSandbox, body: ScenarioYamlImport, settings: Settings, *, by: str
) -> Scenario:
    """Save a scenario from its YAML. InvalidInputError names the line that is wrong."""
    asked = await question(session, body.node_id, {})
    payload = pickle.dumps((body.yaml, asked.facts, asked.sample))
    read = await beside.work(work.READ_YAML, payload, what="Reading this YAML")
    # As it was spelled, within the bounds of a JSON body: YAML has escapes for characters that JSON is refused for.
    spelled = parse_json(read, JsonLimits.of(settings))
    return await _create(session, ScenarioWrite(name=body.name, node_id=body.node_id, scenario=spelled), by)


async def require_room_for_scenario(session: WriteSession, settings: Settings) -> None:
    """ConflictError, now or before the commit, where as many scenarios are kept as may be."""
    most = settings.max_scenarios

    async def require_room(coming: int) -> None:
        if await repository.count_scenarios(session) + coming > most:
            raise ConflictError(
                f"{most} scenarios are kept, as many as may be (HUGEPLAN_MAX_SCENARIOS). Delete some, then save this"
                " one."
            )

    await keep_within(session, LockOfOne.SCENARIOS, "all", require_room)


async def require_room_for_plan(session: WriteSession, settings: Settings, actor: Actor) -> None:
    """ConflictError, now or before the commit, where somebody has as many plans that wait for a decision as may be."""
    most = settings.max_open_plans

    async def require_room(coming: int) -> None:
        if await repository.count_open_plans(session, actor.line_id) + coming > most:
            raise ConflictError(
                f"{actor.name} has {most} plans that are drafts or proposed, as many as may be"
                " (HUGEPLAN_MAX_OPEN_PLANS). Delete some or have them approved, then keep this one."
            )

    await keep_within(session, LockOfOne.OPEN_PLANS, actor.line_id, require_room)

"""Saved plans: kept with all that they were computed from, handed out as files, compared and verified."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from pydantic import TypeAdapter

from hugeplan import __version__
from hugeplan.api.beside import RequestSandbox
from hugeplan.api.pagination import Page, decode_time_cursor, page_of
from hugeplan.artifacts import Artifact, Restart, outside, withheld
from hugeplan.artifacts.bundle import as_zip, bundle, changes
from hugeplan.db.models import PlanRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.documents.plans import SCHEMA_VERSION, read_plan
from hugeplan.errors import (
    ConflictError,
    NotFoundError,
    PlanDoesNotFitError,
)
from hugeplan.fleet import edits
from hugeplan.fleet import service as fleet
from hugeplan.fleet.overview_schemas import PlanInForceWrite
from hugeplan.planner.model import PlanRequest
from hugeplan.proof import verify
from hugeplan.scenarios import plan_difference, repository, service, work
from hugeplan.scenarios.schemas import (
    ArtifactChange,
    ArtifactChanges,
    PlanArtifact,
    PlanArtifacts,
    PlanDifference,
    PlanInputs,
    PlanSummary,
    PlanVerification,
    SavedPlan,
)

_REQUEST = TypeAdapter(PlanRequest)


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


async def create_plan(session: WriteSession, beside: RequestSandbox, scenario_id: UUID, *, by: str) -> SavedPlan:
    """Compute the plan of a scenario's current version and save it.

    Files of a plan that does not fit are kept with a warning in each; they are handed out with ``force`` alone.
    """
    scenario, _ = await service.stored_scenario(session, scenario_id)
    asked = await service.question(session, scenario.node_id, scenario.document)
    files = work.Files(force=True, keep=True)
    kept = msgspec.json.decode(await service.compute(session, beside, scenario.node_id, asked, files))
    row = PlanRow(
        id=uuid.uuid4(),
        scenario_id=scenario.id,
        scenario_version=scenario.version,
        node_id=scenario.node_id,
        created_at=datetime.now(UTC),
        headline=kept["headline"],
        schema_version=SCHEMA_VERSION,
        model_version=__version__,
        author=by,
        scenario=scenario.document,
        request=kept["request"],
        plan=kept["plan"],
        artifacts=kept["artifacts"],
    )
    await repository.add_plan(session, row)
    return _saved_plan(row)


async def list_plans(session: ReadSession, scenario_id: UUID, *, limit: int, cursor: str | None) -> Page[PlanSummary]:
    """The saved plans of a scenario, newest first."""
    await service.stored_scenario(session, scenario_id)
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
    _require_sound(row)


def _require_sound(row: PlanRow) -> None:
    """ConflictError for files with names that a file may not use; an older version may have rendered and kept some."""
    # A plan of another version's form has its files alone.
    node, databases = row.plan.get("node"), (row.request or {}).get("databases")
    found = None if node is None else outside.refused_names(str(node), databases or ())
    if found is None:
        flaws = (outside.flaw(artifact) for artifact in _rendered(row))
        found = next((f"{flaw}; plan the scenario again." for flaw in flaws if flaw is not None), None)
    if found is not None:
        raise ConflictError(found)


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
    for row in (new, old):
        _require_sound(row)
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

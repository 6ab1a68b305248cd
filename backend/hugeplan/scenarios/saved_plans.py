"""Plans that are kept: frozen with all that they were computed from, handed out as files, compared and verified."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec

from hugeplan import __version__
from hugeplan.access.service import Actor
from hugeplan.api.beside import RequestSandbox
from hugeplan.api.pagination import Page, decode_time_cursor, page_within
from hugeplan.api.schemas import JsonObject
from hugeplan.artifacts import Artifact, Restart, files_key, outside, withheld
from hugeplan.artifacts.base import flaw, slug
from hugeplan.artifacts.bundle import Change, as_zip, bundle, changes
from hugeplan.artifacts.provenance import Provenance, with_provenance
from hugeplan.db.models import PlanInForceRow, PlanRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.documents.bounds import adapter
from hugeplan.documents.plan_digest import FORMAT, canonical, digest_of, short
from hugeplan.documents.plans import SCHEMA_VERSION, kept_fit, parts_to_verify, read_plan
from hugeplan.errors import ConflictError, NotFoundError, PlanDoesNotFitError, PlanFitUnknownError
from hugeplan.fleet import edits
from hugeplan.fleet import service as fleet
from hugeplan.fleet.overview_schemas import PlanInForceWrite
from hugeplan.fleet.stored import StoredNode
from hugeplan.planner.model import Finding, Plan, PlanRequest
from hugeplan.planner.verdict import Verdict
from hugeplan.proof import verdict, verify
from hugeplan.scenarios import plan_difference, repository, service, work
from hugeplan.scenarios.on_node import on_node
from hugeplan.scenarios.schemas import (
    ArtifactChange,
    ArtifactChanges,
    PlanArtifact,
    PlanArtifacts,
    PlanDifference,
    PlanFilter,
    PlanInputs,
    PlanKeep,
    PlanSummary,
    PlanVerification,
    SavedPlan,
)


async def summaries(session: ReadSession, rows: Sequence[PlanRow]) -> list[PlanSummary]:
    """Plans without their content, each with the nodes where it is in force."""
    nodes = await repository.in_force_of(session, [row.id for row in rows])
    return [_summary(row, nodes.get(row.id, [])) for row in rows]


async def summary(session: ReadSession, row: PlanRow) -> PlanSummary:
    """A plan without its content."""
    return (await summaries(session, [row]))[0]


T = TypeVar("T")

_ROWS_AT_ONCE: Final = 50
"""A plan of 256 databases, all of which a newer sample changed, is stale for 256 reasons."""
_FOR_READS, _FOR_WRITES = ThreadPoolExecutor(1, "kept-plans"), ThreadPoolExecutor(1, "kept-plans-first")
"""For work on kept plans: parsing a large report or plan takes longer than judging it, and all others are answered
meanwhile. One after the other: several threads would take the interpreter from them."""
_SUMMARY_COLUMNS = PlanSummary.model_fields.keys() - {"short_digest", "in_force"}


def _summary(row: PlanRow, nodes: Sequence[tuple[PlanInForceRow, str]]) -> PlanSummary:
    values = {name: getattr(row, name) for name in _SUMMARY_COLUMNS}
    values["short_digest"] = None if row.digest is None else short(row.digest)
    values["in_force"] = [on_node(in_force, name) for in_force, name in nodes]
    return PlanSummary.model_validate(values)


def _artifacts(row: PlanRow) -> list[PlanArtifact]:
    """The stored files, each with the line that names the plan's digest."""
    return [PlanArtifact.model_validate(asdict(artifact)) for artifact in _rendered(row)]


async def _saved_plan(session: ReadSession, row: PlanRow) -> SavedPlan:
    plan_as_saved = _plan_of(row)
    artifacts = _artifacts(row) if plan_as_saved.feasible else []
    return SavedPlan(
        **(await summary(session, row)).model_dump(),
        schema_version=row.schema_version,
        plan=plan_as_saved,
        verdict=None if row.verdict is None else adapter(Verdict).validate_python(row.verdict),
        artifacts=artifacts,
    )


def _plan_of(row: PlanRow) -> Plan:
    return _read(row.id, row.plan, row.schema_version)


def _read(plan_id: UUID, plan: JsonObject, version: int) -> Plan:
    try:
        return read_plan(plan, version)
    except ValueError as error:
        raise ConflictError(
            "This plan was saved by another version of hugeplan, which this one cannot read. Its files are still "
            f"at /api/v1/plans/{plan_id}/artifacts; for the rest, plan the scenario again."
        ) from error


def document_of(row: PlanRow) -> JsonObject:
    """All that was kept of a plan: what its digest covers, and the digest. The same for ever."""
    document: JsonObject = {
        "format": FORMAT,
        "id": str(row.id),
        "node_id": None if row.node_id is None else str(row.node_id),
        "node": row.node_name,
        "kept_at": _text(row.created_at),
        "kept_by": row.author,
        "sampled_at": _text(row.sampled_at),
        "run_id": None if row.run_id is None else str(row.run_id),
        "run_at": _text(row.run_at),
        "model_version": row.model_version,
        "schema_version": row.schema_version,
        "scenario": row.scenario,
        "request": row.request,
        "plan": row.plan,
        "verdict": row.verdict,
        "artifacts": row.artifacts,
    }
    return document if row.digest is None else document | {"digest": row.digest}


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat()


async def create_plan(session: WriteSession, beside: RequestSandbox, scenario_id: UUID, *, by: Actor) -> SavedPlan:
    """Compute the plan of a scenario's current version and keep it."""
    scenario, _ = await service.stored_scenario(session, scenario_id)
    wanted = Wanted(scenario.node_id, scenario.document, scenario_id=scenario.id, scenario_version=scenario.version)
    row = await keep(session, await computed(session, beside, wanted), by=by)
    return await _saved_plan(session, row)


async def keep_plan(session: WriteSession, beside: RequestSandbox, body: PlanKeep, *, by: Actor) -> SavedPlan:
    """Compute the plan of a scenario that is not saved, and keep it."""
    row = await keep(session, await computed(session, beside, Wanted(body.node_id, body.scenario)), by=by)
    return await _saved_plan(session, row)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a plan is made of: a node's newest sample, or the scenario's own node, and where the scenario is from."""

    node_id: UUID | None
    scenario: JsonObject
    scenario_id: UUID | None = None
    scenario_version: int | None = None
    fleet_plan_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Computed:
    """A plan with its files, its inputs and their times, before it is kept. ``plan`` is as it is stored."""

    wanted: Wanted
    headline: str
    request: JsonObject
    plan: JsonObject
    verdict: JsonObject
    artifacts: list[JsonObject]
    sampled_at: datetime | None
    run: tuple[UUID, datetime] | None


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the sandbox is asked about a plan, and the newest run of its node."""

    asked: work.Question
    run: tuple[UUID, datetime] | None


async def computed(
    session: ReadSession, beside: RequestSandbox, wanted: Wanted, inputs: Inputs | None = None
) -> Computed:
    """Compute a plan once. Nothing may have been written before: the arithmetic runs without a connection.

    Files of a plan that does not fit are kept with a warning in each; they are handed out with ``force`` alone.
    ``inputs`` where they have been read, with those of other plans.
    """
    if inputs is None:
        runs = {} if wanted.node_id is None else await repository.newest_runs(session, [wanted.node_id])
        asked = await service.question(session, wanted.node_id, wanted.scenario)
        inputs = Inputs(asked, None if wanted.node_id is None else runs.get(wanted.node_id))
    asked, run = inputs.asked, inputs.run
    taken_at = None if asked.sample is None else asked.sample.taken_at_seconds
    files = work.Files(force=True, keep=True)
    found = msgspec.json.decode(await service.compute(session, beside, wanted.node_id, asked, files))
    sampled_at = None if taken_at is None else datetime.fromtimestamp(taken_at, UTC)
    return Computed(wanted=wanted, sampled_at=sampled_at, run=run, **found)


newest_runs, add = repository.newest_runs, repository.add_plans


async def keep(session: WriteSession, made: Computed, *, by: Actor) -> PlanRow:
    """Keep a computed plan as a draft."""
    row = draft(made, by=by)
    await repository.add_plans(session, [row])
    return row


def draft(made: Computed, *, by: Actor) -> PlanRow:
    """A computed plan as a draft that is not kept yet."""
    now, wanted = datetime.now(UTC), made.wanted
    row = PlanRow(
        id=uuid.uuid4(),
        scenario_id=wanted.scenario_id,
        scenario_version=wanted.scenario_version,
        fleet_plan_id=wanted.fleet_plan_id,
        node_id=wanted.node_id,
        node_name=made.plan["node"],
        created_at=now,
        headline=made.headline,
        schema_version=SCHEMA_VERSION,
        model_version=__version__,
        author=by.name,
        author_id=by.line_id,
        sampled_at=made.sampled_at,
        run_id=None if made.run is None else made.run[0],
        run_at=None if made.run is None else made.run[1],
        scenario=wanted.scenario,
        request=made.request,
        plan=made.plan,
        verdict=made.verdict,
        artifacts=made.artifacts,
        version=1,
        state="draft",
        state_at=now,
    )
    row.digest = digest_of(document_of(row))
    return row


async def list_plans(session: ReadSession, wanted: PlanFilter, *, limit: int, cursor: str | None) -> Page[PlanSummary]:
    """Kept plans, newest first. NotFoundError for a scenario that is not there."""
    if wanted.scenario_id is not None:
        await service.stored_scenario(session, wanted.scenario_id)

    async def read(after: str | None, count: int) -> Sequence[PlanSummary]:
        rows = await repository.list_plans(session, wanted, after=decode_time_cursor(after), limit=count)
        return await summaries(session, rows)

    items, next_cursor = await page_within(
        read,
        limit=limit,
        cursor=cursor,
        at_once=_ROWS_AT_ONCE,
        key=lambda found: (found.created_at.isoformat(), str(found.id)),
        item=lambda found: found,
    )
    return Page(items=items, next_cursor=next_cursor)


async def stored_plan(session: ReadSession, plan_id: UUID) -> PlanRow:
    """A kept plan's row. NotFoundError where there is none."""
    row = await repository.get_plan(session, plan_id)
    if row is None:
        raise _no_plan(plan_id)
    return row


def _no_plan(plan_id: UUID) -> NotFoundError:
    return NotFoundError(f"There is no plan {plan_id}.")


async def get_document(session: ReadSession, plan_id: UUID) -> tuple[str | None, bytes]:
    """The digest of a plan, and its document: the same bytes for ever."""
    row = await stored_plan(session, plan_id)
    return row.digest, canonical(document_of(row))


async def get_plan(session: ReadSession, plan_id: UUID) -> SavedPlan:
    """A saved plan. ConflictError when it was saved by a version with another form of plans."""
    return await _saved_plan(session, await stored_plan(session, plan_id))


async def get_inputs(session: ReadSession, plan_id: UUID) -> PlanInputs:
    """All that a saved plan was computed from."""
    row = await stored_plan(session, plan_id)
    return PlanInputs(plan_id=plan_id, scenario=row.scenario, request=row.request)


async def _beside(session: ReadSession, judged: Callable[..., T], *given: Any) -> T:
    """The result of work on kept plans, which takes long. The session's connection goes back first: many may wait.

    What writes holds rows that others wait for, and has a thread of its own.
    """
    is_write = isinstance(session, WriteSession)
    if not is_write:
        await session.release()
    return await asyncio.get_running_loop().run_in_executor(_FOR_WRITES if is_write else _FOR_READS, judged, *given)


async def diff_plans(session: ReadSession, plan_id: UUID, against: UUID) -> PlanDifference:
    """A saved plan beside another one: what is planned differently, and which inputs led to it."""
    new, old = await stored_plan(session, plan_id), await stored_plan(session, against)
    return await _beside(session, _difference, new, old)


def _difference(row: PlanRow, row_against: PlanRow) -> PlanDifference:
    new, old = _plan_of(row), _plan_of(row_against)
    return PlanDifference(
        plan_id=row.id,
        against=row_against.id,
        headline=new.headline,
        headline_against=old.headline,
        feasible=new.feasible,
        feasible_against=old.feasible,
        pools=plan_difference.pool_changes(old, new),
        findings=plan_difference.finding_changes(old, new),
        inputs=plan_difference.input_changes(row_against.request, row.request),
    )


def _require_fit(row: PlanRow, *, force: bool) -> None:
    """PlanDoesNotFitError for a plan that does not fit, PlanFitUnknownError where that is not known and nobody approved
    the plan all the same; neither where the caller insists.
    """
    fits, has_room = kept_fit(row.plan), row.plan.get("feasible", True)
    if not force and not fits and not (has_room and row.approved_at and not row.approval_ended_at):
        refusal = PlanDoesNotFitError if fits is False else PlanFitUnknownError
        raise refusal(f"{row.headline} {withheld(_plan_of(row))}")
    _require_sound(row)


def _require_sound(row: PlanRow) -> None:
    """ConflictError for files with names that a file may not use; an older version may have rendered and kept some."""
    # A plan of another version's form has its files alone.
    node, databases = row.plan.get("node"), (row.request or {}).get("databases")
    found = None if node is None else outside.refused_names(str(node), databases or ())
    if found is None:
        flaws = (flaw(artifact) for artifact in _rendered(row))
        found = next((f"{flaw}; plan the scenario again." for flaw in flaws if flaw is not None), None)
    if found is not None:
        raise ConflictError(found)


async def list_artifacts(session: ReadSession, plan_id: UUID, *, force: bool = False) -> PlanArtifacts:
    """The files of a saved plan. PlanDoesNotFitError for one that does not fit, unless ``force``."""
    row = await stored_plan(session, plan_id)
    _require_fit(row, force=force)
    return PlanArtifacts(plan_id=plan_id, items=_artifacts(row))


async def get_artifact(
    session: ReadSession, plan_id: UUID, kind: str, *, filename: str | None = None, force: bool = False
) -> PlanArtifact:
    """One file of a saved plan, by its kind; the first of several unless ``filename`` names one.

    NotFoundError where there is none, PlanDoesNotFitError for a plan that does not fit, unless ``force``.
    """
    row = await stored_plan(session, plan_id)
    _require_fit(row, force=force)
    artifacts = _artifacts(row)
    for artifact in artifacts:
        if artifact.kind == kind and filename in {None, artifact.filename}:
            return artifact
    named = "" if filename is None else f" in a file {filename!r}"
    kinds = ", ".join(f"{artifact.kind} ({artifact.filename})" for artifact in artifacts) or "none"
    raise NotFoundError(f"This plan has no artifact {kind!r}{named}; it has: {kinds}.")


def _rendered(row: PlanRow) -> list[Artifact]:
    """The stored files, each with the line that names the plan's digest."""
    return list(with_provenance(_stored(row.artifacts), _provenance(row)))


def _stored(artifacts: Sequence[JsonObject]) -> list[Artifact]:
    fields = (PlanArtifact.model_validate(artifact).model_dump() for artifact in artifacts)
    return [Artifact(**{**i, "restart": Restart(i["restart"])}) for i in fields]


def _provenance(row: PlanRow) -> Provenance | None:
    if row.digest is None:
        return None
    return Provenance(row.digest, str(row.node_name), row.created_at, row.sampled_at)


async def zip_artifacts(
    session: ReadSession, plan_id: UUID, *, force: bool = False, group: Sequence[str] = ()
) -> tuple[str, bytes]:
    """File name and bytes of the bundle of a saved plan. ConflictError when the plan has no files."""
    row = await stored_plan(session, plan_id)
    _require_fit(row, force=force)
    node = str(row.plan["node"])
    name = f"hugeplan-{plan_id}.zip" if row.digest is None else f"hugeplan-{slug(node)}-{short(row.digest)}.zip"
    return name, _zip(node, row.headline, _rendered(row), provenance=_provenance(row), group=group)


def zip_computed(made: Computed, *, group: Sequence[str]) -> bytes:
    """The bundle of a plan that is not kept. ConflictError when it has no files, PlanFitUnknownError."""
    if not kept_fit(made.plan):
        raise PlanFitUnknownError(made.headline)
    return _zip(made.plan["node"], made.headline, _stored(made.artifacts), provenance=None, group=group)


def _zip(
    node: str, headline: str, artifacts: Sequence[Artifact], *, provenance: Provenance | None, group: Sequence[str]
) -> bytes:
    if not artifacts:
        raise ConflictError("This plan changes nothing, so there is no file to apply.")
    return as_zip(bundle(node, headline, artifacts, provenance=provenance, group=group))


def files_key_of(found: Computed | PlanRow) -> str | None:
    """What tells the files of a plan of this version's form apart from those of other nodes."""
    request = msgspec.convert(found.request, PlanRequest, str_keys=True)
    return files_key(read_plan(found.plan, SCHEMA_VERSION), request)


async def diff_artifacts(session: ReadSession, plan_id: UUID, against: UUID | None) -> ArtifactChanges:
    """What applying a plan changes in the files of another plan; None: of the plan in force on the plan's node.

    ConflictError where no saved plan is in force there.
    """
    if against is None:
        against = await _in_force_beside(session, plan_id)
    new, old = await stored_plan(session, plan_id), await stored_plan(session, against)
    for row in (new, old):
        _require_sound(row)
    found = await _beside(session, _changed_files, old, new)
    items = [ArtifactChange(path=item.path, change=item.change, diff=item.diff) for item in found]
    return ArtifactChanges(plan_id=plan_id, against=against, items=items)


def _changed_files(old: PlanRow, new: PlanRow) -> tuple[Change, ...]:
    return changes(
        bundle(str(old.plan["node"]), old.headline, _rendered(old), provenance=_provenance(old)),
        bundle(str(new.plan["node"]), new.headline, _rendered(new), provenance=_provenance(new)),
    )


async def _in_force_beside(session: ReadSession, plan_id: UUID) -> UUID:
    row = await stored_plan(session, plan_id)
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
    row = await repository.get_plan_to_verify(session, plan_id)
    if row is None:
        raise _no_plan(plan_id)
    if row.node_id is None:
        raise ConflictError("This plan was made for no observed node, so there is no report to verify it with.")
    node = await fleet.get_stored(session, row.node_id)
    found = await _beside(session, _verdict, plan_id, row.plan, row.schema_version, node)
    return PlanVerification(
        plan_id=plan_id,
        digest=row.digest,
        node_id=row.node_id,
        observed_at=node.last_report_at,
        outcome=found.outcome.value,
        findings=list(found.findings),
    )


def _verdict(plan_id: UUID, plan: str, version: int, node: StoredNode) -> verdict.Verdict:
    return verify(_read(plan_id, parts_to_verify(plan)[0], version), fleet.observation_of(node))


async def put_in_force_if_verified(session: WriteSession, plan_id: UUID, *, by: str) -> PlanVerification:
    """Verify a saved plan, and put it in force on its node when the newest report says that it is.

    ConflictError where nobody approved it: what stands on a node is no approval.
    """
    found = await verify_plan(session, plan_id)
    if found.outcome == "in_force":
        body = PlanInForceWrite(plan_id=plan_id)
        await edits.require_approved(session, found.node_id, body, second_person=False)
        await edits.set_plan_in_force(session, found.node_id, body, by=by, source="verify")
        await _keep_outcome(session, found)
    return found


async def put_in_force(session: WriteSession, plan_id: UUID, node_id: UUID, *, by: str) -> None:
    """A node is meant to follow a plan from now on; what its newest report says of it is kept at once."""
    await edits.set_plan_in_force(session, node_id, PlanInForceWrite(plan_id=plan_id), by=by)
    await _keep_outcome(session, await verify_plan(session, plan_id))


async def _keep_outcome(session: WriteSession, found: PlanVerification) -> None:
    checks = adapter(list[Finding]).dump_python(found.findings, mode="json")
    await repository.set_outcome(session, found.node_id, found.outcome, found.observed_at, checks)

"""What is answered about kept plans, each in a turn of its credential: rows are read, and worked on in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from hugeplan.api.beside import RequestSandbox
from hugeplan.api.schemas import ResponseModel
from hugeplan.db.models import PlanRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.documents.bounds import adapter
from hugeplan.documents.plan_digest import canonical
from hugeplan.documents.plans import parts_to_verify
from hugeplan.errors import ConflictError
from hugeplan.fleet import edits
from hugeplan.fleet import service as fleet
from hugeplan.fleet.overview_schemas import PlanInForceWrite
from hugeplan.fleet.stored import StoredNode
from hugeplan.planner.model import Finding
from hugeplan.proof import verdict, verify
from hugeplan.scenarios import plan_content as content
from hugeplan.scenarios import repository
from hugeplan.scenarios.saved_plans import found, misnamed, require_its_name, stored_plan
from hugeplan.scenarios.schemas import ArtifactChanges, PlanArtifacts, PlanInputs, PlanVerification

T = TypeVar("T")


async def of_plan(session: ReadSession, beside: RequestSandbox, plan_id: UUID, work: Callable[[PlanRow], T]) -> T:
    """What the work makes of a kept plan. NotFoundError where there is none."""
    async with beside.in_line():
        return await beside.thread(work, await stored_plan(session, plan_id))


async def of_files(session: ReadSession, beside: RequestSandbox, plan_id: UUID, work: Callable[[PlanRow], T]) -> T:
    """What the work makes of a kept plan's files. ConflictError where its node has another name now, also by force."""
    async with beside.in_line():
        row = await stored_plan(session, plan_id)
        await require_its_name(session, row)
        return await beside.thread(work, row)


async def get_plan(session: ReadSession, beside: RequestSandbox, plan_id: UUID) -> content.Answer:
    """A saved plan. ConflictError when it was saved by a version with another form of plans."""
    async with beside.in_line():
        row = await stored_plan(session, plan_id)
        nodes = await repository.in_force_of(session, [plan_id])
        withheld = await misnamed(session, row)
        return await beside.thread(content.saved_plan, row, nodes.get(plan_id, ()), withheld)


def document(row: PlanRow) -> tuple[str | None, bytes]:
    """The digest of a plan, and its document: the same bytes for ever."""
    return row.digest, canonical(content.document_of(row))


def inputs(row: PlanRow) -> bytes:
    """All that a saved plan was computed from: ``PlanInputs`` as JSON."""
    return _json(PlanInputs(plan_id=row.id, scenario=row.scenario, request=row.request))


def files(row: PlanRow, *, force: bool) -> bytes:
    """The files of a saved plan: ``PlanArtifacts`` as JSON."""
    return _json(PlanArtifacts(plan_id=row.id, items=content.files_of(row, force=force)))


def _json(answer: ResponseModel) -> bytes:
    return answer.model_dump_json().encode()


async def diff_plans(session: ReadSession, beside: RequestSandbox, plan_id: UUID, against: UUID) -> bytes:
    """A saved plan beside another one: ``PlanDifference`` as JSON."""
    async with beside.in_line():
        new, old = await stored_plan(session, plan_id), await stored_plan(session, against)
        return await beside.thread(lambda: _json(content.difference(new, old)))


async def diff_artifacts(session: ReadSession, beside: RequestSandbox, plan_id: UUID, against: UUID | None) -> bytes:
    """What applying a plan changes in the files of another plan: ``ArtifactChanges`` as JSON.

    ``against`` None: of the plan in force on the plan's node; ConflictError where none is, and where the plan's node
    has another name now. That of the other one may: its files are not what is applied.
    """
    async with beside.in_line():
        new = await stored_plan(session, plan_id)
        await require_its_name(session, new)
        old = await stored_plan(session, against or await _in_force_beside(session, new))
        return await beside.thread(_changes, old, new)


def _changes(old: PlanRow, new: PlanRow) -> bytes:
    return _json(ArtifactChanges(plan_id=new.id, against=old.id, items=content.changed_files(old, new)))


async def _in_force_beside(session: ReadSession, row: PlanRow) -> UUID:
    if row.node_id is None:
        raise ConflictError(
            "This plan was made for no observed node, so no plan is in force there; name one to compare."
        )
    in_force = await fleet.get_plan_in_force_id(session, row.node_id)
    if in_force is None:
        raise ConflictError("No saved plan is in force on this plan's node; name a plan to compare with.")
    return in_force


async def verify_plan(session: ReadSession, beside: RequestSandbox, plan_id: UUID) -> PlanVerification:
    """A saved plan against the newest report of the node it was made for. ConflictError for a plan of no node."""
    async with beside.in_line():
        row = found(await repository.get_plan_to_verify(session, plan_id), plan_id)
        if row.node_id is None:
            raise ConflictError("This plan was made for no observed node, so there is no report to verify it with.")
        node = await fleet.get_stored(session, row.node_id)
        judged = await beside.thread(_verdict, plan_id, row.plan, row.schema_version, node)
    return PlanVerification(
        plan_id=plan_id,
        digest=row.digest,
        node_id=row.node_id,
        observed_at=node.last_report_at,
        outcome=judged.outcome.value,
        findings=list(judged.findings),
    )


def _verdict(plan_id: UUID, plan: str, version: int, node: StoredNode) -> verdict.Verdict:
    return verify(content.plan_as_kept(plan_id, parts_to_verify(plan)[0], version), fleet.observation_of(node))


async def put_in_force_if_verified(
    session: WriteSession, beside: RequestSandbox, plan_id: UUID, *, by: str
) -> PlanVerification:
    """Verify a saved plan, and put it in force on its node when the newest report says that it is.

    ConflictError where nobody approved it: what stands on a node is no approval.
    """
    verified = await verify_plan(session, beside, plan_id)
    if verified.outcome == "in_force":
        body = PlanInForceWrite(plan_id=plan_id)
        await edits.require_approved(session, verified.node_id, body, second_person=False)
        await edits.set_plan_in_force(session, verified.node_id, body, by=by, source="verify")
        await _keep_outcome(session, verified)
    return verified


async def put_in_force(session: WriteSession, verified: PlanVerification, *, by: str) -> None:
    """A plan's node is meant to follow it from now on; what its newest report says of it is kept at once."""
    await edits.set_plan_in_force(session, verified.node_id, PlanInForceWrite(plan_id=verified.plan_id), by=by)
    await _keep_outcome(session, verified)


async def _keep_outcome(session: WriteSession, verified: PlanVerification) -> None:
    checks = adapter(list[Finding]).dump_python(verified.findings, mode="json")
    if not await repository.set_outcome(session, verified.node_id, verified.outcome, verified.observed_at, checks):
        raise ConflictError("The node has reported again since its plan was verified at this moment. Try again.")

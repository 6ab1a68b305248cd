"""The plans of a fleet plan's rows: each row's own plan is kept when it is opened or decided about."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from starlette.requests import ClientDisconnect

from hugeplan.access.service import Actor
from hugeplan.api.beside import RequestSandbox
from hugeplan.api.preconditions import etag
from hugeplan.api.schemas import JsonObject
from hugeplan.artifacts.base import slug
from hugeplan.artifacts.outside import is_listed_host
from hugeplan.db.alone import alone
from hugeplan.db.models import FleetPlanNodeRow, PlanRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.errors import (
    ConflictError,
    NotFoundError,
    PlanFitUnknownError,
    ProblemError,
    RateLimitedError,
    UnavailableError,
)
from hugeplan.events.records import write_events
from hugeplan.fleet import service as fleet
from hugeplan.fleet.present_names import called_otherwise, departure
from hugeplan.fleet.selector import silence
from hugeplan.fleet.stored import StoredNode, read_nodes_by_id
from hugeplan.fleet_plans import service as fleet_plans
from hugeplan.fleet_plans.schemas import FleetPlanDetail
from hugeplan.planner.pages import counted_pages
from hugeplan.plans import repository, service
from hugeplan.plans.service import FleetRowsDecided, FleetRowsDecision, SkippedRow
from hugeplan.scenarios import plan_answers, plan_content, saved_plans
from hugeplan.scenarios import service as scenarios
from hugeplan.scenarios.plan_content import Computed, Wanted
from hugeplan.scenarios.schemas import PlanVerification
from hugeplan.scenarios.work import Question
from hugeplan.trials import service as trials

ROWS_PER_CALL: Final = 20
SECONDS_PER_CALL: Final = 0.16
"""Of processor time, after which no further row is computed; and as much again, after which none is written."""
ROWS_READ: Final = 5
"""Of so many rows at a time is read what they are computed from: more might not be begun in this call."""
_STATES: Final = {"propose": "proposed", "approve": "approved", "in_force": "in_force"}
_BEFORE: Final = {"propose": "draft", "approve": "proposed", "in_force": "approved"}
_ORDER: Final = ("draft", "proposed", "approved", "in_force")


async def open_row(
    session: WriteSession, beside: RequestSandbox, job_id: UUID, node_id: UUID, *, by: Actor
) -> tuple[plan_content.Answer, bool]:
    """The plan of a row, and whether it was kept only now. ConflictError where the node has changed since."""
    job = await fleet_plans.get_job(session, job_id)
    row = await repository.fleet_row(session, job_id, node_id)
    if row is None:
        raise NotFoundError(f"The fleet plan has no row of node {node_id}.")
    found = await repository.plan_of_row(session, job_id, node_id)
    if found is None:
        plan = await saved_plans.drafted(beside, await _computed(session, beside, job, row), by=by)
        answer = await beside.thread(plan_content.saved_plan, plan)
        await repository.lock_nodes(session, [node_id])  # as decide does; others may have kept one meanwhile
        found = await repository.plan_of_row(session, job_id, node_id)
        if found is None:
            await saved_plans.add(session, [plan])
            return answer, True
    return await plan_answers.get_plan(session, beside, found.id), False


async def zip_group(session: ReadSession, beside: RequestSandbox, job_id: UUID, number: int) -> tuple[str, bytes]:
    """File name and bytes of the bundle of a group: the files of its node with the least memory, for all its nodes.

    A node that has no such files any more, or never had for its name, is passed over, and the bundle names it: it would
    leave all without. ConflictError where the plan does not fit or changes nothing, or no node that is tried has files.
    """
    job = await fleet_plans.get_job(session, job_id)
    nodes, left_out = await beside.thread(_in_order, await repository.group(session, job_id, number))
    if not nodes:
        raise NotFoundError(f"This fleet plan has no group {number}.")
    first, several = nodes[0], len(nodes) > 1
    if first.fits is False:
        raise ConflictError(f"The plan of {first.name} does not fit, so there is no file to apply.")
    if first.fits is None and several:  # somebody may have approved this node's all the same, and not the others'
        raise PlanFitUnknownError(
            f"Whether the plan of {first.name} fits is not known, nor whether it fits the others."
        )
    key = await fleet_plans.files_key_of_group(session, job_id, number)
    refused: ProblemError = ConflictError(f"Group {number} has no files.")
    spent = _Spent(beside)
    for tried, node in enumerate(nodes[:ROWS_PER_CALL]):
        if tried > 1 and spent.is_used_up():  # the first may be the one that takes long
            break
        try:
            found = await _of_group(session, beside, job, node)
            if (several or key) and key != await beside.thread(plan_content.files_key_of, found):
                raise ConflictError(
                    f"The files of {node.name} have changed since the fleet plan. Run the fleet plan again."
                )
            content = await beside.thread(_zip, found, node, nodes, left_out)
        except (UnavailableError, RateLimitedError):
            raise
        except ProblemError as error:
            refused = error if not tried else refused
            left_out[node.node_id] = departure(node.name, node.name_now) or "has no such files any more"
        else:
            return f"hugeplan-group-{number + 1}-{slug(job.name)}.zip", content
    raise refused


async def _of_group(
    session: ReadSession, beside: RequestSandbox, job: FleetPlanDetail, node: repository.NodeOfGroup
) -> Computed | PlanRow:
    if node.name_now is not None and (words := departure(node.name, node.name_now)):  # known before all of it is read
        raise ConflictError(f"{node.name} has another name ({words}). Run the fleet plan again.")
    kept = await repository.plan_of_row(session, job.id, node.node_id)
    if kept is not None:
        plan = await saved_plans.stored_plan(session, kept.id)
        await saved_plans.require_its_name(session, plan)
        return plan
    row = await repository.fleet_row(session, job.id, node.node_id)
    if row is None:
        raise fleet.unknown_node(node.node_id)
    return await _computed(session, beside, job, row)


def _in_order(rows: Sequence[repository.NodeOfGroup]) -> tuple[list[repository.NodeOfGroup], dict[UUID, str]]:
    """Who stands for the group, one after the other; and why some of them are not known. Of 10,000 it takes 0.1 s."""
    return sorted(rows, key=_stands_after), {row.node_id: words for row in rows if (words := _absence(row))}


def _zip(
    found: Computed,
    node: repository.NodeOfGroup,
    nodes: Sequence[repository.NodeOfGroup],
    left_out: Mapping[UUID, str],
) -> bytes:
    # What is no host's name is not in nodes.txt, and the README says it.
    names = sorted(f"{one.name} ({left_out[one.node_id]})" if one.node_id in left_out else one.name for one in nodes)
    return plan_content.zip_for_group(found, names if len(nodes) > 1 or names != [node.name] else [])


def _stands_after(node: repository.NodeOfGroup) -> tuple[bool, bool, int, str]:
    """The order in which nodes stand for their group: all that ``nodes.txt`` names have at least its memory."""
    return not is_listed_host(node.name), _absence(node) is not None, node.mem_total_bytes, node.name


def _absence(node: repository.NodeOfGroup) -> str | None:
    """Why nobody knows how a node of this name is; None where it reports."""
    return departure(node.name, node.name_now) or silence(node.last_report_at)


async def _computed(
    session: ReadSession, beside: RequestSandbox, job: FleetPlanDetail, row: FleetPlanNodeRow
) -> Computed:
    """The plan of a row. ConflictError where its node's newest report asks for other pools than the row says."""
    return await _computed_with(session, beside, job, row, await _read(session, job, [row]))


async def _computed_with(
    session: ReadSession, beside: RequestSandbox, job: FleetPlanDetail, row: FleetPlanNodeRow, read: _Read
) -> Computed:
    if row.group_number is None:
        raise ConflictError(f"{row.name} has no plan: {' '.join(row.exceptions)}")
    wanted = {(pool["numa_node"], pool["page_bytes"]): pool["pages"] for pool in read.pools[row.group_number]}
    stored = read.nodes.get(row.node_id)
    if stored is None:
        raise fleet.unknown_node(row.node_id)
    facts, sample = fleet.facts_as_stored(stored)
    if facts.name != row.name:
        raise ConflictError(called_otherwise(row.name, facts.name))
    scenario = scenarios.scenario_of(facts, sample) if job.scenario is None else job.scenario
    inputs = saved_plans.Inputs(Question(scenario, facts, sample), read.runs.get(row.node_id))
    question = Wanted(row.node_id, scenario, fleet_plan_id=job.id)
    made = await saved_plans.computed(session, beside, question, inputs)
    pools = {(pool["numa_node"], pool["page_bytes"]): pool["pages"] for pool in made.plan["pools"] if pool["pages"]}
    if pools != wanted:
        raise ConflictError(
            f"{row.name} has changed since the fleet plan: its row says {_pages(wanted)}, its newest report asks"
            f" for {_pages(pools)}. Run the fleet plan again."
        )
    return made


@dataclass(frozen=True, slots=True)
class _Read:
    """What the plans of some rows are computed from, read at once: statement by statement they cost more than the
    arithmetic."""

    asked: frozenset[UUID]
    pools: Mapping[int, Sequence[JsonObject]]
    nodes: Mapping[UUID, StoredNode]
    runs: Mapping[UUID, tuple[UUID, datetime]]


async def _read(session: ReadSession, job: FleetPlanDetail, rows: Sequence[FleetPlanNodeRow]) -> _Read:
    node_ids = [row.node_id for row in rows]
    numbers = {row.group_number for row in rows if row.group_number is not None}
    nodes = await read_nodes_by_id(session, node_ids)
    return _Read(
        asked=frozenset(node_ids),
        pools=await fleet_plans.pools_of_groups(session, job.id, numbers),
        nodes={stored.id: stored for stored in await trials.with_trials_of_each(session, nodes)},
        runs=await saved_plans.newest_runs(session, node_ids),
    )


def _pages(pools: dict[tuple[int, int], int]) -> str:
    by_size: dict[int, int] = {}
    for (_, size), pages in pools.items():
        by_size[size] = by_size.get(size, 0) + pages
    return " and ".join(counted_pages(pages, size) for size, pages in sorted(by_size.items())) or "no huge page"


async def decide(
    session: WriteSession,
    beside: RequestSandbox,
    job_id: UUID,
    body: FleetRowsDecision,
    *,
    by: Actor,
    second_person: bool,
) -> FleetRowsDecided:
    """Propose, approve or put in force the next rows of a fleet plan. A row that cannot be is named with its reason."""
    job = await fleet_plans.get_job(session, job_id)
    if job.status != "done":
        raise ConflictError(f"This fleet plan is {job.status}; its rows can be decided about when it is done.")
    rows = await repository.fleet_rows(
        session, job_id, group_number=body.group_number, after=body.after, limit=ROWS_PER_CALL + 1
    )
    last = rows[ROWS_PER_CALL - 1].position if len(rows) > ROWS_PER_CALL else None
    rows = rows[:ROWS_PER_CALL]
    made: dict[UUID, _Prepared] = {}
    failed: dict[UUID, str] = {}
    # All arithmetic comes before the first row is written: it runs without a connection.
    prepare = _Preparing(session, beside, job, body, rows, by=by)
    spent = _Spent(beside)
    for number, row in enumerate(rows):
        if number and spent.is_used_up():
            rows, last = rows[:number], rows[number - 1].position
            break
        with alone(f"row of {row.name}", ClientDisconnect) as tried:
            made[row.node_id] = await prepare.row(number)
        if tried.why is not None:
            failed[row.node_id] = tried.why
    spent = _Spent(beside)  # what was computed is written, and the locked nodes wait no longer than for one such time
    # All at once, in the order of reports: row by row, two calls would wait for each other.
    await repository.lock_nodes(session, made.keys())
    found = await repository.plans_of_rows(session, job_id, made.keys())
    done, already = 0, 0
    for number, row in enumerate(rows):
        if number and spent.is_used_up():
            rows, last = rows[:number], rows[number - 1].position
            break
        if row.node_id in failed:
            continue
        prepared, plan = made[row.node_id], found.get(row.node_id)
        with alone(f"row of {row.name}") as tried:
            async with session.begin_nested():  # what was done for other rows stands
                if plan is None:
                    await _propose_new(session, row, prepared, by=by)
                    done += 1
                elif await _advance(session, plan, prepared, body, by=by, second_person=second_person):
                    done += 1
                else:
                    already += 1
        if tried.why is not None:
            failed[row.node_id] = tried.why
    names = {row.node_id: row.name for row in rows}
    skipped = [
        SkippedRow(node_id=key, node_name=names[key], reason=reason) for key, reason in failed.items() if key in names
    ]
    return FleetRowsDecided(done=done, already=already, skipped=skipped, next=last)


class _Spent:
    """The time of rows that come one after the other, since it was made."""

    def __init__(self, beside: RequestSandbox) -> None:
        self._beside, self._begun = beside, time.monotonic()
        self._own = time.process_time() + beside.used_seconds

    def is_used_up(self) -> bool:
        """Whether no further row is to be begun."""
        # They take no more than has passed, and no more than all that was done.
        done = time.process_time() + self._beside.used_seconds - self._own
        return min(time.monotonic() - self._begun, done) > SECONDS_PER_CALL


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What was computed for a row before anything was written: its plan, or its kept plan beside a newer sample or
    report.
    """

    made: PlanRow | None = None
    looked: service.Looked | None = None
    verified: PlanVerification | None = None


class _Preparing:
    """What is computed for the rows of one call. What is read of nodes is read for some rows at a time."""

    def __init__(
        self,
        session: ReadSession,
        beside: RequestSandbox,
        job: FleetPlanDetail,
        body: FleetRowsDecision,
        rows: Sequence[FleetPlanNodeRow],
        *,
        by: Actor,
    ) -> None:
        self._session, self._beside, self._job, self._body, self._rows = session, beside, job, body, rows
        self._by = by
        self._kept: dict[UUID, repository.KeptOfRow] | None = None
        self._read: _Read | None = None

    async def row(self, number: int) -> _Prepared:
        """One row: its plan, or its kept plan beside a newer sample. ProblemError where it cannot be decided about."""
        row, body = self._rows[number], self._body
        if self._kept is None:
            node_ids = [each.node_id for each in self._rows]
            self._kept = await repository.plans_of_rows(self._session, self._job.id, node_ids)
        found = self._kept.get(row.node_id)
        if found is not None:
            if found.state != _BEFORE[body.to]:
                return _Prepared()
            if body.to == "in_force":
                return _Prepared(verified=await plan_answers.verify_plan(self._session, self._beside, found.id))
            kept = await saved_plans.stored_plan(self._session, found.id)
            return _Prepared(looked=await service.look(self._session, self._beside, kept))
        if body.to != "propose":
            return _Prepared()
        if row.fits is False:
            raise ConflictError(f"The plan of {row.name} does not fit.")
        if self._read is None or row.node_id not in self._read.asked:
            self._read = await _read(self._session, self._job, self._rows[number : number + ROWS_READ])
        made = await _computed_with(self._session, self._beside, self._job, row, self._read)
        return _Prepared(made=await saved_plans.drafted(self._beside, made, by=self._by))


def _is_there(state: str, body: FleetRowsDecision) -> bool:
    """Whether a plan in this state is where it is to be, or further."""
    return state in _ORDER[_ORDER.index(_STATES[body.to]) :]


async def _propose_new(session: WriteSession, row: FleetPlanNodeRow, prepared: _Prepared, *, by: Actor) -> None:
    if prepared.made is None:
        raise ConflictError(f"The plan of {row.name} is not proposed.")
    await saved_plans.require_its_name(session, prepared.made)
    proposed = service.propose_new(prepared.made, by=by)
    await saved_plans.add(session, [prepared.made])
    write_events(session, [proposed])


async def _advance(
    session: WriteSession,
    found: repository.KeptOfRow,
    prepared: _Prepared,
    body: FleetRowsDecision,
    *,
    by: Actor,
    second_person: bool,
) -> bool:
    """A kept plan one step on. False where it is there already, or further."""
    if _is_there(found.state, body):
        return False
    plan = await service.locked(session, found.id, etag(found.version))
    if _is_there(plan.state, body):
        return False
    if body.to == "propose":
        await service.propose(session, plan, prepared.looked, by=by)
    elif body.to == "approve":
        await service.approve(
            session,
            plan,
            prepared.looked,
            by=by,
            second_person=second_person,
            accept_unknown_fit=body.accept_unknown_fit,
        )
    else:
        await service.put_in_force(session, plan, prepared.verified, by=by)
    return True

"""Trials stored and listed. A node's agent sends its own node's alone, a planner any known node's."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec

from hugeplan.access.machines import CLONE_MARK, told_apart
from hugeplan.access.schemas import Role
from hugeplan.access.service import Actor
from hugeplan.api.beside import RequestSandbox
from hugeplan.api.pagination import Page, decode_time_cursor, page_within
from hugeplan.api.schemas import fields_of
from hugeplan.api.unread import Unread
from hugeplan.db.alone import alone
from hugeplan.db.locks import LockOfOne, lock_one
from hugeplan.db.models import NodeRow, TrialRow
from hugeplan.db.session import ReadSession, WriteSession
from hugeplan.documents.kept import unpack
from hugeplan.documents.trial import TrialDocument, TrialPageSize, TrialStatus
from hugeplan.errors import (
    ConflictError,
    FieldProblem,
    ForbiddenError,
    InvalidInputError,
    NotFoundError,
    invalid_input,
)
from hugeplan.fleet import service as fleet
from hugeplan.fleet.stored import StoredNode
from hugeplan.planner.gain.trial_prediction import MODEL, TrialPrediction
from hugeplan.planner.model import MIB, MeasuredTrial, NodeFacts, TrialDifference
from hugeplan.planner.units import format_change
from hugeplan.trials import repository, work
from hugeplan.trials.repository import TrialOfNode
from hugeplan.trials.schemas import FleetTrial, PredictedGain, Trial, TrialReceipt, TrialResult
from hugeplan.trials.work import POOL_PAGES, ReadTrial, answer_of

MOST_FOR_A_PLAN, MOST_OF_A_TYPE = 50, 200
"""How many of the newest trials a plan looks at: of its node, and of all nodes of its machine type."""

PREDICTED: Final = "predicted"
"""Member of a kept summary that is not the sender's: what was predicted by page size when the trial came."""

Item = TypeVar("Item", bound=Trial)
_ROWS_AT_ONCE: Final = 50
"""A summary has at most about 50 kB of a sender's text."""

_PREDICTIONS: Final = msgspec.json.Decoder(dict[str, TrialPrediction])
_PAGES: Final = {**POOL_PAGES, "thp": 2 * MIB}


async def read(beside: RequestSandbox, body: Unread[TrialDocument]) -> ReadTrial:
    """A trial as it was sent, read in the sandbox. InvalidInputError names the field that is wrong."""
    return work.decode(await beside.work(work.READ, pickle.dumps(body), what="Reading this trial"))


async def store(
    session: WriteSession, beside: RequestSandbox, actor: Actor, document: ReadTrial, *, most: int
) -> TrialReceipt:
    """Store a trial under its id, with what was predicted for it; the same content again changes nothing.

    Past the most of a node others go. ConflictError for other content, and where all that may be are its agent's own.
    """
    machine_id = document.machine_id
    if machine_id is None:
        expected = "the machine id that the node's agent reports under"
        raise invalid_input([FieldProblem(field="machine.machine_id", value=None, expected=expected)])
    of_token = actor.machine_id if actor.role is Role.AGENT else machine_id
    if of_token is None or machine_id not in (of_token, of_token.partition(CLONE_MARK)[0]):
        raise ForbiddenError(
            "This agent token belongs to another machine, or has sent no report yet.",
            [FieldProblem(field="machine.machine_id", value=machine_id, expected="the machine the token reports for")],
        )
    nodes = await repository.nodes_of_machine(session, machine_id)
    if not nodes:
        raise NotFoundError(f"No node reports under the machine id {machine_id}; its agent must have reported once.")
    # An agent reads nothing of other nodes, not even in a refusal.
    told = [node for node in nodes if actor.role is not Role.AGENT or node.machine_id == of_token]
    found = [node for node in _where_measured(document, nodes, told) if node in told]
    if len(found) != 1:
        known = "; ".join(f"{node.name} ({node.cpu_brand or 'unknown'})" for node in told[:10]) or "unknown"
        whose = "the agent's own node" if actor.role is Role.AGENT else "the nodes with this machine id"
        raise ConflictError(
            "It cannot be told which node this trial is of, or it is not the agent's own: names and processors of"
            f" {whose} are {known}. The agent of the node that it ran on may send it."
        )
    node_id = found[0].id
    predicted = await _predicted(session, beside, node_id, document)
    now, trial_id = datetime.now(UTC), UUID(document.id)
    values = {
        "node_id": node_id,
        "id": trial_id,
        "started_at": document.started_at,
        "ordered_at": min(document.started_at, now),
        "stored_at": now,
        "content_sha256": document.digest,
        "summary": document.summary | {PREDICTED: predicted},
        "document": document.document,
        "is_own": actor.role is Role.AGENT,
    }
    await lock_one(session, LockOfOne.TRIALS, node_id)
    created = await repository.insert_trial(session, values)
    if not created and await repository.content_of(session, node_id, trial_id) != values["content_sha256"]:
        raise ConflictError(f"The node has another trial with the id {document.id}.")
    if created and trial_id in await repository.delete_past(session, node_id, most):
        raise ConflictError(f"{most} trials of this node's agent are kept (HUGEPLAN_MAX_TRIALS_PER_NODE), and stay.")
    return TrialReceipt(id=trial_id, node_id=node_id, created=created)


def _where_measured(document: ReadTrial, nodes: Sequence[NodeRow], told: Sequence[NodeRow]) -> list[NodeRow]:
    """The nodes of a machine and its clones that a trial may be of: by the processor, of several by the name too.

    An agent may report another name than the host's, so a name that is no node's rules none out; nor does another
    node's where one node is told, an agent's own, and has the trial's processor.
    """
    name, processor = (document.summary["machine"][of] for of in ("name", "processor"))
    alike = [one for one in nodes if not (one.cpu_brand and processor) or one.cpu_brand.split() == processor.split()]
    if len(told) == 1 and processor and told[0].cpu_brand:
        return [one for one in alike if one in told]
    named = [one for one in alike if one.name in (name, told_apart(name, one.machine_id))]
    return named if named and len(nodes) > 1 else alike


async def _predicted(
    session: ReadSession, beside: RequestSandbox, node_id: UUID, document: ReadTrial
) -> dict[str, Any]:
    """By page size, what is predicted for the trial from what is known of its node now; empty where nothing can be."""
    if document.server is None:
        return {}
    try:
        facts, _ = await fleet.get_facts(session, node_id)
        payload = pickle.dumps((facts, document.server, document.answers))
        answer = await beside.work(work.PREDICT, payload, what="Predicting this trial")
    except InvalidInputError:  # the node's report lacks what a plan needs, or no plan could have such a server
        return {}
    found: dict[str, Any] = msgspec.json.decode(answer)
    return found


async def list_trials(session: ReadSession, node_id: UUID, *, limit: int, cursor: str | None) -> Page[Trial]:
    """The trials of a node, newest first."""
    return await _page(session, node_id, lambda found: _trial(found[0]), limit, cursor)


async def list_all_trials(session: ReadSession, *, limit: int, cursor: str | None) -> Page[FleetTrial]:
    """The trials of all nodes, newest first."""

    def item(found: TrialOfNode) -> FleetTrial:
        return FleetTrial(**_trial(found[0]).model_dump(), node_name=found[1], machine_type=found[2])

    return await _page(session, None, item, limit, cursor)


async def _page(
    session: ReadSession, of: UUID | None, item: Callable[[TrialOfNode], Item], limit: int, cursor: str | None
) -> Page[Item]:
    async def read(after: str | None, rows: int) -> Sequence[TrialOfNode]:
        return await repository.list_trials(session, of, after=decode_time_cursor(after), limit=rows)

    def key(found: TrialOfNode) -> tuple[str, str]:
        return found[0].ordered_at.isoformat(), str(found[0].id)

    items, following = await page_within(
        session, read, limit=limit, cursor=cursor, at_once=_ROWS_AT_ONCE, key=key, item=item
    )
    return Page(items=items, next_cursor=following)


async def get_document(session: ReadSession, trial_id: UUID) -> bytes:
    """A trial's document as it was sent. NotFoundError when there is none."""
    row = await repository.get_trial(session, trial_id)
    if row is None:
        raise NotFoundError(f"There is no trial {trial_id}.")
    return unpack(row.document)


async def with_trials(session: ReadSession, node_id: UUID, facts: NodeFacts) -> NodeFacts:
    """The facts with what trials say of the node: for a plan to take in place of its prediction where engine, page size
    and shape match, and to narrow the range of what was not tried."""
    by_type = await _differences(session, [node_id])
    return replace(facts, trials=await _measured_on(session, node_id), type_trials=next(iter(by_type.values()), ()))


async def with_trials_of_each(session: ReadSession, nodes: Sequence[StoredNode]) -> list[StoredNode]:
    """``with_trials`` of many nodes."""
    node_ids = [node.id for node in nodes]
    by_type, tried = await _differences(session, node_ids), await repository.nodes_with_trials(session, node_ids)
    measured = {node_id: await _measured_on(session, node_id) for node_id in sorted(tried)}
    return [
        replace(node, trials=measured.get(node.id, ()), type_trials=by_type.get(node.machine_type or "", ()))
        for node in nodes
    ]


async def _measured_on(session: ReadSession, node_id: UUID) -> tuple[MeasuredTrial, ...]:
    """What the node's newest trials measured and is an answer: of its own agent, then of others, newest first."""
    found: list[MeasuredTrial] = []
    for trial_id, summary in await repository.newest_summaries(session, node_id, limit=MOST_FOR_A_PLAN):
        with alone(f"trial {trial_id}"):
            document = _kept(summary)
            told = (_measured(trial_id, document, size) for size in document.page_sizes)
            found += [measured for measured in told if measured is not None]
    return tuple(found)


async def _differences(session: ReadSession, nodes: Collection[UUID]) -> dict[str, tuple[TrialDifference, ...]]:
    """By machine type of these nodes, how far predictions were off. Of the trials of one node the newest counts, with
    its smallest page size: a node is one witness, however often it is asked and whatever of."""
    found: dict[str, dict[tuple[object, ...], TrialDifference]] = {}
    for machine_type, node, is_own, kept in await repository.predictions(session, nodes, most=MOST_OF_A_TYPE):
        read: dict[str, TrialPrediction] = {}
        with alone(f"a trial of {node}"):
            read = _PREDICTIONS.decode(kept)
        told = [made.off_by for made in read.values() if made.off_by is not None and made.model == MODEL]
        for one in sorted(told, key=lambda off_by: off_by.page_bytes):
            of_type, what = found.setdefault(machine_type, {}), (node, one.engine)
            is_newest = not any(each[:2] == what for each in of_type)
            of_type.setdefault((*what, one.error_class), replace(one, speaks_for_any=is_newest, is_own=is_own))
    return {machine_type: tuple(of.values()) for machine_type, of in found.items()}


def _measured(trial_id: UUID, document: TrialDocument, size: TrialPageSize) -> MeasuredTrial | None:
    text, page, speedup = measured_here(document, size), _PAGES.get(size.page_size), answer_of(size)
    shape = document.shape
    if text is None or page is None or speedup is None:
        return None
    return MeasuredTrial(
        trial_id=str(trial_id),
        engine=document.engine,
        version=document.version,
        backing_kind="thp" if size.page_size == "thp" else "hugetlb",
        page_bytes=page,
        operation_class=shape.operation_class,
        row_bytes=shape.row_bytes,
        data_bytes=shape.data_bytes,
        clients=shape.clients,
        speedup=speedup,
        text=text,
    )


def _kept(summary: Mapping[str, Any]) -> TrialDocument:
    """A kept summary as a document: its page sizes have a number of blocks in place of the blocks, none no gain."""
    sizes = [size | {"blocks": ()} | ({} if size["blocks"] else {"gain": None}) for size in summary["page_sizes"]]
    own = {name: value for name, value in summary.items() if name != PREDICTED}
    return TrialDocument.model_validate({**own, "page_sizes": sizes})


def _trial(row: TrialRow) -> Trial:
    counts = [size["blocks"] for size in row.summary["page_sizes"]]
    document, predicted = _kept(row.summary), row.summary.get(PREDICTED, {})
    results = [
        TrialResult(
            **fields_of(TrialResult, size, "blocks", "text", "predicted"),
            blocks=count,
            text=measured_here(document, size),
            predicted=_predicted_gain(predicted.get(size.page_size)),
        )
        for size, count in zip(document.page_sizes, counts, strict=True)
    ]
    of_row = {name: getattr(row, name) for name in ("id", "node_id", "started_at", "stored_at")}
    return Trial(**of_row, **fields_of(Trial, document, *of_row, "page_sizes"), page_sizes=results)


def _predicted_gain(kept: Mapping[str, Any] | None) -> PredictedGain | None:
    if kept is None:
        return None
    percent = {name: 100.0 * (ratio - 1.0) for name, ratio in kept["gain"].items()}
    return PredictedGain(**percent, error_class=kept["error_class"])


def measured_here(document: TrialDocument, size: TrialPageSize) -> str | None:
    """``measured here on 23 Nov 2026: +7.5 % (+6.6 to +8.4)``; None where the interval says too little."""
    gain = size.gain
    if size.status is not TrialStatus.MEASURED or gain is None or gain.low is None or gain.high is None:
        return None
    day = f"{document.started_at.day} {document.started_at:%b %Y}"
    low, likely, high = (percent / 100 for percent in (gain.low, gain.likely, gain.high))
    return f"measured here on {day}: {format_change(likely)} ({format_change(low, '')} to {format_change(high, '')})"

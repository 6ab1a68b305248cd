"""What the sandbox does with trials: read them, and predict what they measured. One of some hundred blocks is 50,000
values."""

from __future__ import annotations

import hashlib
import pickle
import statistics
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

import msgspec

from hugeplan.api.unread import Unread
from hugeplan.documents.kept import pack
from hugeplan.documents.trial import TrialDocument, TrialPageSize, TrialStatus
from hugeplan.planner.demand import ENGINES
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.gain.trial_prediction import predicted
from hugeplan.planner.model import GIB, MIB, DatabaseInstance, Range, Workload

READ: Final = f"{__name__}:read"
PREDICT: Final = f"{__name__}:predict"
POOL_PAGES: Final = {"2M": 2 * MIB, "1G": GIB}

_LEAST_PERCENT, _MOST_PERCENT, _WIDEST_POINTS = -50.0, 200.0, 2.01
"""Gains that a plan takes, and the widest interval of them: a trial calls two points usable, and rounds its bounds.

Translation gives at most three times the work."""


class ReadTrial(msgspec.Struct, frozen=True):
    """What the service needs of a trial. ``document`` is packed as it is kept, ``digest`` that of its bytes.

    ``server``: what it measured, where that can be predicted; ``answers``: the gains (x) by page size.
    """

    id: str
    machine_id: str | None
    started_at: datetime
    summary: dict[str, Any]
    digest: bytes
    document: bytes
    server: DatabaseInstance | None
    answers: dict[str, Range]


decode = msgspec.msgpack.Decoder(ReadTrial).decode


def read(payload: bytes) -> bytes:
    """The trial, read. InvalidInputError names the field that is wrong."""
    body: Unread[TrialDocument] = pickle.loads(payload)  # noqa: S301 - the service wrote it
    document = body.read(TrialDocument)
    kept = document.model_dump_json().encode()
    found = ReadTrial(
        id=document.id,
        machine_id=document.machine.machine_id,
        started_at=document.started_at,
        summary=_summary(document),
        digest=hashlib.sha256(kept).digest(),
        document=pack(kept),
        server=_server(document),
        answers={one.page_size: answer for one in document.page_sizes if _count(one) and (answer := answer_of(one))},
    )
    return msgspec.msgpack.encode(found)


def _summary(document: TrialDocument) -> dict[str, object]:
    """The document without its blocks, with their number."""
    found = document.model_dump(mode="json", exclude={"page_sizes"})
    sizes = [one.model_dump(mode="json", exclude={"blocks"}) | {"blocks": _count(one)} for one in document.page_sizes]
    return found | {"page_sizes": sizes}


def _count(size: TrialPageSize) -> int:
    """How many blocks measured something: a gain without any is a claim."""
    return sum(bool(block.pairs) for block in size.blocks)


def _server(document: TrialDocument) -> DatabaseInstance | None:
    """None for programs, scripts, and where a figure is missing: such a trial cannot be predicted."""
    shape, engine = document.shape, ENGINES.get(document.engine)
    costs = [pair.base.cpu_ns for size in document.page_sizes for block in size.blocks for pair in block.pairs]
    known = shape.row_bytes and shape.data_bytes and shape.pool_bytes and shape.clients and costs
    if (
        engine is None
        or engine.pool_setting is None
        or not known
        or shape.operation_class != "key_lookup"
        or document.measure != "cpu_per_operation"
    ):
        return None
    return DatabaseInstance(
        name="trial",
        engine=engine.name,
        version=document.version,
        settings={engine.pool_setting: engine.format_size(shape.pool_bytes or 0)},
        connections=shape.clients,
        workload=Workload(
            row_bytes=shape.row_bytes,
            working_set_bytes=shape.data_bytes,
            active_connections=shape.clients,
            operations_per_second_per_busy_core=1e9 / statistics.median(costs),
            operation_class="key_lookup",
        ),
    )


def predict(payload: bytes) -> bytes:
    """By page size, what this model predicts for a trial's server on its node, as JSON; sizes without are left out."""
    facts, server, answers = pickle.loads(payload)  # noqa: S301 - the service wrote it
    found = {}
    for name, page_bytes in POOL_PAGES.items():
        with suppress(PlannerError):  # an engine, a version or sizes that no plan could have
            found[name] = predicted(facts, server, page_bytes, answers.get(name))
    return msgspec.json.encode({name: made for name, made in found.items() if made is not None})


def answer_of(size: TrialPageSize) -> Range | None:
    """The gain (x) that a page size was measured to have, where it is an answer that a plan may take.

    A sender may call anything measured: only what is narrow, in order, and within what translation can give counts.
    """
    gain = size.gain
    if size.status is not TrialStatus.MEASURED or gain is None or gain.low is None or gain.high is None:
        return None
    if not _LEAST_PERCENT <= gain.low <= gain.likely <= gain.high <= min(_MOST_PERCENT, gain.low + _WIDEST_POINTS):
        return None
    return Range(*(1.0 + percent / 100.0 for percent in (gain.low, gain.likely, gain.high)))

"""What was measured on a node, kept beside it: made when a run arrives, so that no read parses a run.

Geometry, latency curves and pressure points each come from the run that says most about them: the newest whose section
is complete, else the newest that has it. They may be three runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Final, Protocol
from uuid import UUID

import msgspec

from hugeplan.api.schemas import JsonObject
from hugeplan.benchmarks.records import granule_of_2m
from hugeplan.documents.kept import pack, unpack
from hugeplan.documents.tlbbench import TlbbenchDocument
from hugeplan.hardware.curves import hardware_facts_of
from hugeplan.planner.model import HardwareFacts

#: The form of what is kept. `hugeplan reparse` makes it again where it is older.
HARDWARE_VERSION: Final = 1


class RankedRun(Protocol):
    """A run's narrow row."""

    @property
    def id(self) -> UUID: ...
    @property
    def ordered_at(self) -> datetime: ...
    @property
    def geometry_rank(self) -> int: ...
    @property
    def latency_rank(self) -> int: ...
    @property
    def pressure_rank(self) -> int: ...


class Part(msgspec.Struct, frozen=True):
    """Which run a part comes from, and what decides whether a later one replaces it."""

    run_id: UUID
    rank: int
    ordered_at: datetime


class MeasuredState(msgspec.Struct, kw_only=True):
    """What is kept: the facts, the newest geometry without curves, and the runs that they come from.

    The database holds the facts packed (``hardware_packed``): they are most of it, and reading and compressing them as
    JSON took PostgreSQL longer than the rest of a report. Rows of earlier versions hold ``hardware`` itself.
    """

    version: int = HARDWARE_VERSION
    parts: dict[str, Part] = {}
    latest: Part | None = None
    hardware: HardwareFacts | None = None
    hardware_packed: bytes | None = None
    geometry: JsonObject | None = None
    effective_granule_bytes: int | None = None


_facts = msgspec.json.Decoder(HardwareFacts)


def packed(state: MeasuredState) -> MeasuredState:
    """The state as it is written into the database."""
    if state.hardware is None:
        return state
    facts = pack(msgspec.json.encode(state.hardware))
    return msgspec.structs.replace(state, hardware=None, hardware_packed=facts)


def unpacked(state: MeasuredState) -> MeasuredState:
    """The state with its facts, as it came from the database or not."""
    if state.hardware_packed is None:
        return state
    facts = _facts.decode(unpack(state.hardware_packed))
    return msgspec.structs.replace(state, hardware=facts, hardware_packed=None)


def chosen_parts(runs: Sequence[RankedRun]) -> dict[str, Part]:
    """The run of each part among all good runs of a node."""
    chosen: dict[str, Part] = {}
    for run in runs:
        for name, part in _offers(run).items():
            if name not in chosen or _is_better(part, chosen[name]):
                chosen[name] = part
    return chosen


def latest_part(runs: Sequence[RankedRun]) -> Part | None:
    """The newest run."""
    parts = [Part(run.id, 0, run.ordered_at) for run in runs]
    return max(parts, key=lambda part: (part.ordered_at, part.run_id), default=None)


def _offers(run: RankedRun) -> dict[str, Part]:
    ranks = {"geometry": run.geometry_rank, "latency": run.latency_rank, "pressure": run.pressure_rank}
    return {name: Part(run.id, rank, run.ordered_at) for name, rank in ranks.items() if rank}


def _is_better(part: Part, than: Part) -> bool:
    return (part.rank, part.ordered_at, part.run_id) > (than.rank, than.ordered_at, than.run_id)


def with_run(
    state: MeasuredState, run: RankedRun, document: TlbbenchDocument, made: HardwareFacts | None = None
) -> MeasuredState:
    """The state after a run has arrived: each part that the run says more about is taken from it. It is unpacked.

    ``made`` are the facts of the document, where they were made before.
    """
    taken = {
        name: part
        for name, part in _offers(run).items()
        if name not in state.parts or _is_better(part, state.parts[name])
    }
    newest = Part(run.id, 0, run.ordered_at)
    is_latest = state.latest is None or (newest.ordered_at, newest.run_id) > (
        state.latest.ordered_at,
        state.latest.run_id,
    )
    if state.parts.keys() <= taken.keys():
        state = msgspec.structs.replace(state, hardware=None, hardware_packed=None)  # nothing of it is used
    changed = msgspec.structs.replace(
        unpacked(state),
        version=HARDWARE_VERSION,
        parts=state.parts | taken,
        latest=newest if is_latest else state.latest,
    )
    return _with_parts(changed, taken, {run.id: document}, {} if made is None else {run.id: made})


def rebuilt(runs: Sequence[RankedRun], documents: Mapping[UUID, TlbbenchDocument]) -> MeasuredState:
    """The state from all good runs of a node; ``documents`` holds those of :func:`chosen_parts`."""
    parts = chosen_parts(runs)
    return _with_parts(MeasuredState(parts=parts, latest=latest_part(runs)), parts, documents)


def _with_parts(
    state: MeasuredState,
    taken: Mapping[str, Part],
    documents: Mapping[UUID, TlbbenchDocument],
    known: Mapping[UUID, HardwareFacts] = MappingProxyType({}),
) -> MeasuredState:
    facts = state.hardware
    # The three parts mostly come from one run: its facts are made once.
    made = {
        run_id: known.get(run_id) or hardware_facts_of(documents[run_id])
        for run_id in {part.run_id for part in taken.values()}
    }
    if "geometry" in taken:
        document = documents[taken["geometry"].run_id]
        new = made[taken["geometry"].run_id]
        facts = replace(new, curves=facts.curves, pressure=facts.pressure) if facts else _only_geometry(new)
        state = msgspec.structs.replace(
            state,
            geometry=_geometry(document, taken["geometry"]),
            effective_granule_bytes=granule_of_2m(document.geometry),
        )
    for name in ("latency", "pressure"):
        if name in taken:
            new = made[taken[name].run_id]
            field = "curves" if name == "latency" else "pressure"
            # Without any geometry yet, the processor is named by the run that has curves.
            facts = replace(facts or _only_geometry(new), **{field: getattr(new, field)})
    return msgspec.structs.replace(state, hardware=facts)


def _only_geometry(facts: HardwareFacts) -> HardwareFacts:
    return replace(facts, curves=(), pressure=())


def _geometry(document: TlbbenchDocument, part: Part) -> JsonObject | None:
    geometry = document.geometry
    if geometry is None:
        return None
    found: JsonObject = msgspec.to_builtins(
        {
            "run_id": part.run_id,
            "measured_at": document.started_at,
            "status": geometry.status,
            "reason": geometry.reason,
            "levels": geometry.levels,
            "effective_granule": geometry.effective_granule,
            "penalty": geometry.penalty,
            "clock": geometry.clock,
            "disagreements": geometry.disagreements,
        }
    )
    return found

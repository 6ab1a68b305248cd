"""What was measured on a node, kept beside it: made when a run arrives, so that no read parses a run.

Geometry, latency curves and pressure points each come from the run that says most about them: the newest whose section
is complete, else the newest that has it. They may be three runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
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


def measured_alone(document: TlbbenchDocument, run: RankedRun, facts: HardwareFacts | None = None) -> MeasuredState:
    """What one run says, by itself: the facts, the geometry and the granule of the parts that it has. It is unpacked.

    It needs nothing of the node, so it is made where the run is read. ``facts`` are those of the document, where they
    were made before.
    """
    offers = _offers(run)
    if not offers:
        return MeasuredState()
    facts = facts or hardware_facts_of(document)
    has_geometry = "geometry" in offers
    return MeasuredState(
        hardware=replace(
            facts,
            curves=facts.curves if "latency" in offers else (),
            pressure=facts.pressure if "pressure" in offers else (),
        ),
        geometry=_geometry(document, run.id) if has_geometry else None,
        effective_granule_bytes=granule_of_2m(document.geometry) if has_geometry else None,
    )


def with_run(state: MeasuredState, run: RankedRun, said: MeasuredState) -> MeasuredState:
    """The state after a run has arrived: each part that the run says more about is taken from it.

    ``said`` is :func:`measured_alone` of the run. Both may be packed; what is returned is packed or not.
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
    known = msgspec.structs.replace(
        state,
        version=HARDWARE_VERSION,
        parts=state.parts | taken,
        latest=newest if is_latest else state.latest,
    )
    if not taken:
        return known
    if state.parts.keys() <= taken.keys():
        # Nothing of before is left: what the run says is the state, and stays packed if it is.
        return msgspec.structs.replace(said, version=HARDWARE_VERSION, parts=known.parts, latest=known.latest)
    return _merged(unpacked(known), dict.fromkeys(taken, unpacked(said)))


def rebuilt(runs: Sequence[RankedRun], documents: Mapping[UUID, TlbbenchDocument]) -> MeasuredState:
    """The state from all good runs of a node; ``documents`` holds those of :func:`chosen_parts`."""
    parts = chosen_parts(runs)
    by_id = {run.id: run for run in runs}
    # The three parts mostly come from one run: what it says is made once.
    said = {
        run_id: measured_alone(documents[run_id], by_id[run_id]) for run_id in {part.run_id for part in parts.values()}
    }
    state = MeasuredState(parts=parts, latest=latest_part(runs))
    return _merged(state, {name: said[part.run_id] for name, part in parts.items()})


def _merged(state: MeasuredState, said: Mapping[str, MeasuredState]) -> MeasuredState:
    """The state with each part taken from what a run says, by the part's name. All are unpacked."""
    facts = state.hardware
    if "geometry" in said and (new := said["geometry"].hardware) is not None:
        facts = replace(new, curves=facts.curves, pressure=facts.pressure) if facts else _only_geometry(new)
        state = msgspec.structs.replace(
            state,
            geometry=said["geometry"].geometry,
            effective_granule_bytes=said["geometry"].effective_granule_bytes,
        )
    for name in ("latency", "pressure"):
        if name in said and (new := said[name].hardware) is not None:
            field = "curves" if name == "latency" else "pressure"
            # Without any geometry yet, the processor is named by the run that has curves.
            facts = replace(facts or _only_geometry(new), **{field: getattr(new, field)})
    return msgspec.structs.replace(state, hardware=facts)


def _only_geometry(facts: HardwareFacts) -> HardwareFacts:
    return replace(facts, curves=(), pressure=())


def _geometry(document: TlbbenchDocument, run_id: UUID) -> JsonObject | None:
    geometry = document.geometry
    if geometry is None:
        return None
    found: JsonObject = msgspec.to_builtins(
        {
            "run_id": run_id,
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

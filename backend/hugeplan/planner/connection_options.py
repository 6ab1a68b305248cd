"""Fewer connections, or less memory for each: what makes a plan fit that is short only by what is possible.

Where nobody said how many connections work at the same time, all of them are planned as if they did. The sizes here
follow from what is missing; each is planned before it is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from hugeplan.planner.demand import Engine, engine_named
from hugeplan.planner.memory.connections import ConnectionMemory, connection_memory
from hugeplan.planner.model import KIB, MIB, DatabaseInstance, Demand, FitOption
from hugeplan.planner.model.words import IDLE_CONNECTION_BYTES
from hugeplan.planner.pages import ceil_pages
from hugeplan.planner.units import format_bytes

Fits = Callable[[DatabaseInstance], bool]
"""Whether the plan fits with this instance in place of the one of its name."""

_WORK_MEM_MIN_BYTES = 64 * KIB


def connection_options(instance: DatabaseInstance, demand: Demand, short_bytes: int, fits: Fits) -> Iterator[FitOption]:
    """Changes of one instance's connections with which the plan fits; ``fits`` plans it with a changed instance."""
    found = connection_memory(demand, instance.workload)
    if found is None:
        return
    engine = engine_named(instance.engine)
    yield from _fewer_at_work(instance, found, short_bytes, fits)
    yield from _fewer(instance, engine, found, short_bytes, fits)
    yield from _less_each(instance, engine, found, short_bytes, fits)


def _fewer_at_work(
    instance: DatabaseInstance, found: ConnectionMemory, short_bytes: int, fits: Fits
) -> Iterator[FitOption]:
    saved = found.per_connection_bytes - found.idle_bytes
    active = found.active - ceil_pages(short_bytes, saved) if saved else 0
    changed = replace(instance, workload=replace(instance.workload, active_connections=active))
    if active > 0 and fits(changed):
        yield FitOption(
            kind="connections",
            text=(
                f"{instance.name} fits where no more than {active:,} of its {found.connections:,} connections work at"
                " the same time: set active_connections if that holds."
            ),
            instance=instance.name,
            setting="active_connections",
            value=str(active),
        )


def _fewer(
    instance: DatabaseInstance, engine: Engine, found: ConnectionMemory, short_bytes: int, fits: Fits
) -> Iterator[FitOption]:
    setting = "max_connections"
    if instance.connections is not None or setting not in {spec.name for spec in engine.settings}:
        return
    idle = found.connections - found.active
    each = found.idle_bytes if idle else found.per_connection_bytes
    least = found.active if idle else 0
    count = found.connections - ceil_pages(short_bytes, each)
    changed = replace(instance, settings={**instance.settings, setting: str(count)})
    if count > least and fits(changed):
        yield FitOption(
            kind="connections",
            text=f"{instance.name} fits with {setting} = {count:,} instead of {found.connections:,}.",
            instance=instance.name,
            setting=setting,
            value=str(count),
        )


def _less_each(
    instance: DatabaseInstance, engine: Engine, found: ConnectionMemory, short_bytes: int, fits: Fits
) -> Iterator[FitOption]:
    setting = "work_mem"
    if not found.active or setting not in {spec.name for spec in engine.settings}:
        return
    each = found.per_connection_bytes - ceil_pages(short_bytes, found.active) - IDLE_CONNECTION_BYTES
    unit = MIB if each >= MIB else KIB
    size = each // unit * unit
    if size < _WORK_MEM_MIN_BYTES:
        return
    value = engine.format_size(size)
    if fits(replace(instance, settings={**instance.settings, setting: value})):
        yield FitOption(
            kind="connections",
            text=f"{instance.name} fits with {setting} = {value} ({format_bytes(size)} for each working connection).",
            instance=instance.name,
            setting=setting,
            value=value,
        )

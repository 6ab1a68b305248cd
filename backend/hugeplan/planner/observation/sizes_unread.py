"""Databases whose size nobody read: the engine's default stands in for it, and a fit that rests on it is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hugeplan.planner.demand import engine_named, is_sized
from hugeplan.planner.model import DatabaseInstance, Demand, InstancePlan, ObservedDatabase, PlanRequest, named
from hugeplan.planner.observation.databases import EXPLAINED_FACTOR, mapped_bytes


class Unread(NamedTuple):
    """A setting that decides how much memory a database takes, and why it does not tell: ``was not read``."""

    setting: str
    why: str


def sizes_not_read(request: PlanRequest, instances: Sequence[InstancePlan]) -> dict[str, Unread]:
    """By instance the setting that decides how much memory it takes, where its value is not known.

    An import says so itself. A running server's size is not known where neither its settings nor its mappings tell it.
    An engine without a default size has none unless it is given; its 0 is no limit, which is no size.
    """
    found: dict[str, Unread] = {}
    for instance, planned in zip(request.databases, instances, strict=True):
        engine = engine_named(instance.engine)
        limitless = engine.pool_setting is None and planned.demand.private_fixed_bytes is None
        if not engine.sized_by or (is_sized(engine, instance) and not limitless):
            continue
        server = request.server(planned.runs_as)
        if not set(engine.sized_by).isdisjoint(instance.unread_settings) or (
            server is not None
            and not _tells_its_size(instance, server, planned.demand, request.node.default_huge_page_bytes)
        ):
            found[instance.name] = Unread(engine.sized_by[0], "was not read")
        elif limitless:
            found[instance.name] = Unread(engine.sized_by[0], "sets no limit")
    return found


def not_read(unread: Mapping[str, Unread]) -> str:
    """``shared_buffers of a and b was not read``; ``unread`` as :func:`sizes_not_read` says it."""
    sentences = []
    for why in dict.fromkeys(found.why for found in unread.values()):
        some = {name: found for name, found in unread.items() if found.why == why}
        sentences.append(f"{settings_of(some)} of {named(some, ' and ')} {why}")
    return ", and ".join(sentences)


def settings_of(unread: Mapping[str, Unread]) -> str:
    """``shared_buffers and maxmemory``: what is to be told."""
    return " and ".join(dict.fromkeys(found.setting for found in unread.values()))


def _tells_its_size(
    instance: DatabaseInstance, server: ObservedDatabase, demand: Demand, default_page_bytes: int
) -> bool:
    """Complete settings name what is no default. Mappings beyond the default were refused; far below, it is none.

    A share of memory is no size where the limit of that memory was not read, nor where mysqld may see less than that.
    """
    engine = engine_named(instance.engine)
    counted_bytes = demand.segment_bytes if demand.pool_bytes is None else demand.pool_bytes
    if server.segments and counted_bytes <= mapped_bytes(server, default_page_bytes) * EXPLAINED_FACTOR:
        return True
    if engine.shares_memory(instance):
        return False
    told = _plain(engine.sized_by)
    if engine.shared_by is not None:
        largest = max(server.segments, key=lambda segment: segment.bytes, default=None)
        is_whole = server.settings.get(engine.maps_as_it_grows or "") != "true"
        if server.memory_limit_bytes is None or (is_whole and largest is not None and largest.backing == "hugetlb"):
            return False
        told |= _plain((engine.shared_by,))
    return bool(server.settings_complete) or not told.isdisjoint(_plain(server.settings))


def _plain(names: Iterable[str]) -> set[str]:
    return {name.lower().replace("-", "_") for name in names}

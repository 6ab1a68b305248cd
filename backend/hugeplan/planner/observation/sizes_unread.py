"""Databases whose size nobody read: the engine's default stands in for it, and a fit that rests on it is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hugeplan.planner.demand import Engine, engine_named, is_sized
from hugeplan.planner.model import InstancePlan, ObservedDatabase, PlanRequest


def sizes_not_read(request: PlanRequest, instances: Sequence[InstancePlan]) -> dict[str, str]:
    """By instance the setting that decides how much memory it takes, where its value is not known.

    An import says so itself. A running server's size is not known where neither its settings nor its mappings tell it.
    An engine without a default size has none unless it is given.
    """
    found: dict[str, str] = {}
    for instance, planned in zip(request.databases, instances, strict=True):
        engine = engine_named(instance.engine)
        if not engine.sized_by or is_sized(engine, instance):
            continue
        server = request.server(planned.runs_as)
        if (
            not set(engine.sized_by).isdisjoint(instance.unread_settings)
            or (server is not None and not _tells_its_size(engine, server))
            or (engine.pool_setting is None and planned.demand.private_fixed_bytes is None)
        ):
            found[instance.name] = engine.sized_by[0]
    return found


def not_read(unread: Mapping[str, str]) -> str:
    """``shared_buffers of a and b was not read``; ``unread`` as :func:`sizes_not_read` says it."""
    return f"{' and '.join(dict.fromkeys(unread.values()))} of {' and '.join(unread)} was not read"


def _tells_its_size(engine: Engine, server: ObservedDatabase) -> bool:
    if server.settings_complete or server.segments:
        return True  # complete settings name what is no default; mappings beyond the default were refused
    return not _plain(engine.sized_by).isdisjoint(_plain(server.settings))


def _plain(names: Iterable[str]) -> set[str]:
    return {name.lower().replace("-", "_") for name in names}

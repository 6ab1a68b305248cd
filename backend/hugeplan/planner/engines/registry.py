"""The table of engines. Adding one is a file beside this one and a row here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from hugeplan.planner.engines import mysql, postgresql
from hugeplan.planner.engines.base import DemandContext, Engine, closest_hint, require_page_size
from hugeplan.planner.errors import PlannerError, UnknownEngineError
from hugeplan.planner.model import DatabaseInstance, Demand
from hugeplan.planner.pages import all_huge_page_sizes

_TABLE: Final = (
    postgresql.ENGINE,
    mysql.ENGINE,
)

#: Engines by name.
ENGINES: Final[Mapping[str, Engine]] = MappingProxyType({engine.name: engine for engine in _TABLE})

_ALIASES: Final[Mapping[str, str]] = {alias: engine.name for engine in _TABLE for alias in engine.aliases}


def engine_named(name: str) -> Engine:
    """The engine of a name or an alias, in any case."""
    key = name.strip().lower()
    key = _ALIASES.get(key, key)
    engine = ENGINES.get(key)
    if engine is None:
        raise UnknownEngineError("engine", name, f"one of {', '.join(ENGINES)}{closest_hint(key, ENGINES)}")
    return engine


def demand_of(instance: DatabaseInstance, page_bytes: int, context: DemandContext | None = None) -> Demand:
    """What one instance needs when its memory is mapped with pages of ``page_bytes``.

    ``page_bytes`` is a huge page size of the node, or its base page size for no huge pages at all. Without a
    context any page size of any architecture may be asked for, on 4K base pages and a 2M default. Errors are
    PlannerErrors that name the engine, the version or the setting.
    """
    where = context if context is not None else DemandContext(huge_page_sizes_bytes=all_huge_page_sizes())
    engine = engine_named(instance.engine)
    require_page_size(page_bytes, where)
    if instance.connections is not None and instance.connections < 0:
        raise PlannerError("connections", instance.connections, "0 or more")
    if instance.engine != engine.name:
        instance = replace(instance, engine=engine.name)
    return engine.demand(instance, page_bytes, where)

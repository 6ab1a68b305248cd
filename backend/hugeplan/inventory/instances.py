"""From a recognised database to an instance that the planner takes: what it does not take is named, never dropped."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from hugeplan.planner.demand import demand_of, engine_named
from hugeplan.planner.errors import PlannerError, UnknownVersionError
from hugeplan.planner.model import MIB, DatabaseInstance
from hugeplan.recognition import Recognised

Settings = tuple[tuple[str, str], ...]


def database_instance(
    name: str,
    recognised: Recognised,
    huge_pages_limit_bytes: Mapping[int, int] | None,
    memory_limit_bytes: int | None,
) -> tuple[DatabaseInstance, tuple[str, ...]]:
    """The instance, and a sentence for each value that the planner could not take.

    ``huge_pages_limit_bytes`` is by page size: empty is known to be none, None is not known.
    """
    version, settings, refused = usable(recognised.engine, recognised.version, tuple(recognised.settings.items()))
    limit: int | None = None
    if huge_pages_limit_bytes is not None:
        # More than one size: which of them the plan's page size will meet is only known after planning.
        limit = 0 if not huge_pages_limit_bytes else None
        if len(huge_pages_limit_bytes) == 1:
            (limit,) = huge_pages_limit_bytes.values()
    if recognised.engine in {"redis", "mongodb", "sqlserver"} and not settings and memory_limit_bytes is not None:
        refused = (*refused, "memory of the engine: not in the input; the container's limit bounds it")
    instance = DatabaseInstance(
        name=name,
        engine=recognised.engine,
        version=version,
        settings=dict(settings),
        pod_hugepages_limit_bytes=limit,
    )
    return instance, refused


@lru_cache(maxsize=4096)
def usable(engine: str, version: str | None, settings: Settings) -> tuple[str | None, Settings, tuple[str, ...]]:
    """The version and the settings that the engine's rule takes, and a sentence for each that it does not.

    Settings without a meaning for memory are left out in silence: a server has hundreds of them.
    """
    found = engine_named(engine)
    known = {spec.name.lower().replace("-", "_"): spec.name for spec in found.settings}
    kept = {}
    for name, value in settings:
        own = known.get(name.lower().replace("-", "_").lstrip("_"))
        if own is not None:
            kept[own] = value
    refused: list[str] = []
    for _ in range(len(kept) + 2):
        try:
            demand_of(DatabaseInstance(name="probe", engine=engine, version=version, settings=kept), 2 * MIB)
        except UnknownVersionError:
            refused.append(f"version {version}: no rule of its own; the rule of the newest known release is taken")
            version = None
        except PlannerError as error:
            name = error.field.removeprefix("settings.")
            if name not in kept:
                refused.append(f"settings: {error}")
                kept = {}
                continue
            refused.append(f"{name} = {kept.pop(name)}: {error.expected} is expected; the default is taken")
        else:
            break
    return version, tuple(kept.items()), tuple(refused)

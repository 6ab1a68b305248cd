"""Other engines: their settings as a plain list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hugeplan.artifacts.base import Artifact, Restart, one_line, slug
from hugeplan.artifacts.engines.common import FREE_FALLS, commented, per_instance
from hugeplan.planner.demand import ENGINES
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest, SettingAdvice

#: Engines with a dialect file of their own.
_OWN: Final = frozenset({"postgresql", "mysql", "mariadb", "oracle", "db2", "jvm", "redis"})


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One list per instance."""
    return per_instance("engine_settings", [name for name in ENGINES if name not in _OWN], plan, request, _write)


def _write(kind: str, _: DatabaseInstance, planned: InstancePlan, advice: tuple[SettingAdvice, ...]) -> Artifact:
    return Artifact(
        kind=kind,
        filename=f"{slug(planned.name)}-settings.txt",
        content="\n".join([*commented(planned, advice, lambda i: f"{i.name} = {one_line(i.value)}"), ""]),
        summary=f"The settings that {one_line(planned.name)} needs, to be written in its own way.",
        install="# write the settings into the engine's configuration and restart it",
        verify=FREE_FALLS,
        rollback="# set the previous values and restart the server",
        restart=Restart.ENGINE,
        avoid_when="The engine has a management tool that owns its settings.",
    )

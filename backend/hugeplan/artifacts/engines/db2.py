"""Db2: registry variables by db2set, database configuration by db2."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, Restart, all_of, one_line, slug
from hugeplan.artifacts.engines.common import per_instance
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest, SettingAdvice


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One script per Db2."""
    return per_instance("db2_settings", ("db2",), plan, request, _write)


def _write(kind: str, _: DatabaseInstance, planned: InstancePlan, advice: tuple[SettingAdvice, ...]) -> Artifact:
    name = f"{slug(planned.name)}-db2.sh"
    lines = [
        "#!/bin/sh",
        f"# {one_line(planned.name)}: settings of its plan; run as the instance owner with DB set",
        "set -eu",
    ]
    checks = []
    undo = []
    for item in advice:
        lines.append(f"# {one_line(item.reason)}")
        if item.name.startswith("DB2_"):
            lines.append(f"db2set {shlex.quote(f'{item.name}={item.value}')}")
            checks.append(f'test "$(db2set {item.name})" = {shlex.quote(item.value)}')
            undo.append(f"db2set {item.name}=")
        else:
            lines.append(f'db2 update database configuration for "$DB" using {item.name} {shlex.quote(item.value)}')
            undo.append(f'db2 update database configuration for "$DB" using {item.name} AUTOMATIC')
    return Artifact(
        kind=kind,
        filename=name,
        media_type="text/x-shellscript",
        content="\n".join([*lines, "db2stop", "db2start", ""]),
        summary=f"Puts the database memory of {one_line(planned.name)} on large pages, pinned.",
        install=f"DB=name sh {name}",
        verify=all_of(checks) if checks else "db2set -all",
        rollback="\n".join([*undo, "db2stop", "db2start"]),
        restart=Restart.ENGINE,
        avoid_when="STMM must tune DATABASE_MEMORY: with large pages it stays as it is set.",
    )

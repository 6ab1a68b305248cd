"""Db2: registry variables by db2set, database configuration by db2."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Final

from hugeplan.artifacts.base import Artifact, Restart, all_of, mark, one_line, slug
from hugeplan.artifacts.engines.common import NOT_ROOT, per_instance
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest, SettingAdvice

_READ: Final = 'db2 get database configuration for "$DB"'
#: Where no variable is set, it says so, perhaps with a warning's exit code.
_NONE_SET: Final = 'case $registry in *DBI1303W*) ;; *) echo "$registry" >&2; exit 1 ;; esac'
_UPDATE: Final = 'db2 update database configuration for "%s" using'


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One script per Db2."""
    return per_instance("db2_settings", ("db2",), plan, request, _write)


def _write(kind: str, _: DatabaseInstance, planned: InstancePlan, advice: tuple[SettingAdvice, ...]) -> Artifact:
    name = f"{slug(planned.name)}-db2.sh"
    before = f'"$HOME/before-hugeplan-$DB-{mark(repr(advice))}.sh"'  # of this plan: the one before has another
    lines = [
        "#!/bin/sh",
        f"# {one_line(planned.name)}: settings of its plan; run as the instance owner with DB set",
        "set -eu",
        "# What it has now is the way back; what is not set has no line in db2set -all.",
        f"configuration=$({_READ})",
        f"registry=$(db2set -all) || {_NONE_SET}",
        f"test -s {before} || {{",
        "{",
    ]
    checks, changes = [], []
    for item in advice:
        changes.append(f"# {one_line(item.reason)}")
        if item.name.startswith("DB2_"):
            now = f"printf '%s\\n' \"$registry\" | sed -n 's/^\\[i\\] *{item.name}=//p'"
            lines += [f"now=$({now})", f"""printf "db2set '%s'\\n" "{item.name}=$now\""""]
            changes.append(f"db2set {shlex.quote(f'{item.name}={item.value}')}")
            checks.append(f'test "$(db2set {item.name})" = {shlex.quote(item.value)}')
        else:
            now = f"printf '%s\\n' \"$configuration\" | sed -n 's/.*({item.name}) = *\\([A-Za-z0-9]*\\).*/\\1/p'"
            value = f'"${{now:?{item.name} was not read}}"'
            lines += [f"now=$({now})", f"""printf '{_UPDATE} %s %s\\n' "$DB" {item.name} {value}"""]
            changes.append(f"{_UPDATE % '$DB'} {item.name} {shlex.quote(item.value)}")
    whole = [f"}} > {before}.part", f"sync {before}.part", f"mv {before}.part {before}", "}"]
    return Artifact(
        kind=kind,
        filename=name,
        media_type="text/x-shellscript",
        content="\n".join([*lines, *whole, *changes, "db2stop", "db2start", ""]),
        summary=f"Puts the database memory of {one_line(planned.name)} on large pages, pinned.",
        install=f"{NOT_ROOT} &&\nDB=name sh {name}",
        verify=all_of([NOT_ROOT, *(checks or ["db2set -all"])]),
        rollback=f"{NOT_ROOT} && {{\nsh {before} && rm {before}\ndb2stop\ndb2start\n}}",
        restart=Restart.ENGINE,
        avoid_when="STMM must tune DATABASE_MEMORY: with large pages it stays as it is set.",
    )

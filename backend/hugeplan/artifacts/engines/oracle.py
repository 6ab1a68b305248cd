"""Oracle: initialisation parameters as SQL for the spfile."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, Restart, mark, one_line, slug
from hugeplan.artifacts.engines.common import per_instance
from hugeplan.artifacts.outside import sql_comment
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest, SettingAdvice


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One SQL file per Oracle instance."""
    return per_instance("oracle_parameters", ("oracle",), plan, request, _write)


def _write(kind: str, _: DatabaseInstance, planned: InstancePlan, advice: tuple[SettingAdvice, ...]) -> Artifact:
    name = f"{slug(planned.name)}-parameters.sql"
    # In $ORACLE_HOME/dbs, which other instances share; Oracle reads @ as its ORACLE_SID. Another plan has another.
    before = f"'before-hugeplan-@-{mark(repr(advice))}.ora'"
    lines = [
        f"-- {sql_comment(planned.name)}: settings of its plan; SQL*Plus as sysdba",
        f"CREATE PFILE={before} FROM SPFILE;",
    ]
    for item in advice:
        lines += [
            f"-- {sql_comment(item.reason)}",
            f"ALTER SYSTEM SET {item.name} = {one_line(item.value)} SCOPE = SPFILE;",
        ]
        if item.name == "memory_target":  # a limit of 0 that is set refuses sga_target: ORA-00849
            lines += ["-- ORA-32010: it was not set.", "ALTER SYSTEM RESET memory_max_target SCOPE = SPFILE;"]
    return Artifact(
        kind=kind,
        filename=name,
        media_type="application/sql",
        content="\n".join([*lines, ""]),
        summary=f"Lets {one_line(planned.name)} start only on huge pages, with automatic memory management off.",
        install=f"sqlplus / as sysdba @{name}\n# then: SHUTDOWN IMMEDIATE; STARTUP",
        verify="echo 'SELECT value FROM v$parameter WHERE name = '\"'\"'use_large_pages'\"'\"';' | "
        "sqlplus -S / as sysdba | grep -qw ONLY",
        # The file that a running instance uses is not written anew: ORA-32002.
        rollback=f"printf '%s\\n' 'SHUTDOWN IMMEDIATE' \"CREATE SPFILE FROM PFILE={before};\" STARTUP"
        " | sqlplus -S / as sysdba",
        restart=Restart.ENGINE,
        avoid_when="MEMORY_TARGET must stay: automatic memory management and huge pages exclude each other.",
    )

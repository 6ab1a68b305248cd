"""Oracle: initialisation parameters as SQL for the spfile."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hugeplan.artifacts.base import Artifact, Restart, mark, one_line, slug
from hugeplan.artifacts.engines.common import NOT_ROOT, per_instance
from hugeplan.artifacts.outside import sql_comment
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest, SettingAdvice

_STOPS: Final = "WHENEVER SQLERROR EXIT FAILURE"
_GOES_ON: Final = "WHENEVER SQLERROR CONTINUE"
_IS_ONLY: Final = (
    "echo 'SELECT value FROM v$parameter WHERE name = '\"'\"'use_large_pages'\"'\"';' | "
    "sqlplus -S / as sysdba | grep -qw ONLY"
)


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One SQL file per Oracle instance."""
    return per_instance("oracle_parameters", ("oracle",), plan, request, _write)


def _write(kind: str, _: DatabaseInstance, planned: InstancePlan, advice: tuple[SettingAdvice, ...]) -> Artifact:
    name = f"{slug(planned.name)}-parameters.sql"
    # In $ORACLE_HOME/dbs, which other instances share; Oracle reads @ as its ORACLE_SID. Another plan has another.
    own = mark(repr(advice))
    before = f"before-hugeplan-@-{own}.ora"
    first, *others = advice
    lines = [
        f"-- {sql_comment(planned.name)}: settings of its plan; SQL*Plus as sysdba",
        _STOPS,
        # Oracle overwrites a PFILE. The mark and the first change are one write.
        f"-- What it had before is kept once: the comment of {first.name} names the plans that were installed.",
        f"-- {sql_comment(first.reason)}",
        "DECLARE",
        "  marks VARCHAR2(255);",
        "BEGIN",
        f"  SELECT MAX(update_comment) INTO marks FROM v$spparameter WHERE name = '{first.name}';",  # noqa: S608 - it is the planner's
        f"  IF INSTR(NVL(marks, '-'), '{own}') = 0 THEN",
        f"    EXECUTE IMMEDIATE 'CREATE PFILE=''{before}'' FROM SPFILE';",
        f"    marks := SUBSTR('hugeplan {own} ' || REPLACE(marks, CHR(39)), 1, 200);",
        "  END IF;",
        f"  EXECUTE IMMEDIATE 'ALTER SYSTEM SET {first.name} = {one_line(first.value)} COMMENT = ''' || marks"
        " || ''' SCOPE = SPFILE';",
        "END;",
        "/",
    ]
    for item in others:
        lines += [
            f"-- {sql_comment(item.reason)}",
            f"ALTER SYSTEM SET {item.name} = {one_line(item.value)} SCOPE = SPFILE;",
        ]
        if item.name == "memory_target":  # a limit of 0 that is set refuses sga_target: ORA-00849
            reset = "ALTER SYSTEM RESET memory_max_target SCOPE = SPFILE;"
            lines += ["-- ORA-32010: it was not set.", _GOES_ON, reset, _STOPS]
    # The file that a running instance uses is not written anew: ORA-32002. What cannot be read ends it before.
    read, back = (f"CREATE SPFILE{name} FROM PFILE='{before}';" for name in (f"='{before}.read'", ""))
    words = " ".join(f'"{step}"' for step in (_STOPS, read, _GOES_ON, "SHUTDOWN IMMEDIATE", back, "STARTUP"))
    return Artifact(
        kind=kind,
        filename=name,
        media_type="application/sql",
        content="\n".join([*lines, ""]),
        summary=f"Lets {one_line(planned.name)} start only on huge pages, with automatic memory management off.",
        install=f"{NOT_ROOT} &&\nsqlplus / as sysdba @{name}\n# then: SHUTDOWN IMMEDIATE; STARTUP",
        verify=f"{NOT_ROOT} &&\n{_IS_ONLY}",
        rollback=f"{NOT_ROOT} &&\nprintf '%s\\n' {words} | sqlplus -S / as sysdba",
        restart=Restart.ENGINE,
        avoid_when="MEMORY_TARGET must stay: automatic memory management and huge pages exclude each other.",
    )

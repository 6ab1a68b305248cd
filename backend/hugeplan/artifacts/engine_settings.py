"""Engine settings: postgresql.conf, my.cnf, or a plain list for other engines, one file an instance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hugeplan.artifacts.base import Artifact, is_kernel_setting, one_line, slug, unique_kinds
from hugeplan.planner.choice.pool_sizes import is_ranged, setting_text
from hugeplan.planner.demand import engine_named
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest, SettingAdvice


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an engine's settings are written, proved and undone."""

    kind: str
    extension: str
    section: str | None
    verify: str
    rollback: str


_MYSQL_VERIFY = (
    "mysql -e \"SHOW GLOBAL VARIABLES LIKE 'large_pages'\"\n"
    "grep -E '^HugePages_(Total|Free|Rsvd)' /proc/meminfo  # free must fall when the server starts"
)
_DIALECTS = {
    "postgresql": Dialect(
        "postgresql_conf",
        "conf",
        None,
        'postgres -D "$PGDATA" -C shared_memory_size_in_huge_pages  # with the server stopped\n'
        'psql -c "SHOW huge_pages_status"  # PostgreSQL 17 and later; on is right',
        "# delete these lines from postgresql.conf and restart the server",
    ),
    "mysql": Dialect(
        "my_cnf", "cnf", "[mysqld]", _MYSQL_VERIFY, "# delete these lines from my.cnf and restart the server"
    ),
    "mariadb": Dialect(
        "my_cnf", "cnf", "[mariadb]", _MYSQL_VERIFY, "# delete these lines from my.cnf and restart the server"
    ),
}
_OTHER = Dialect(
    "engine_settings",
    "txt",
    None,
    "grep -E '^HugePages_(Total|Free|Rsvd)' /proc/meminfo  # free must fall when the server starts",
    "# set the former values and restart the server",
)


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One file for each instance with settings to write, with a pool or without."""
    by_dialect: dict[str, list[tuple[Dialect, DatabaseInstance, InstancePlan]]] = {}
    for instance, planned in zip(request.databases, plan.instances, strict=True):
        dialect = _DIALECTS.get(planned.engine, _OTHER)
        by_dialect.setdefault(dialect.kind, []).append((dialect, instance, planned))
    for kind, items in by_dialect.items():
        kinds = unique_kinds(kind, (planned.name for _, _, planned in items))
        for own_kind, (dialect, instance, planned) in zip(kinds, items, strict=True):
            advice = settings_to_write(instance, planned)
            if advice:
                yield _file(own_kind, dialect, planned, advice)


def settings_to_write(instance: DatabaseInstance, planned: InstancePlan) -> tuple[SettingAdvice, ...]:
    """The engine's advice, after the buffer pool where the planner sized it."""
    advice = tuple(item for item in planned.demand.settings if not is_kernel_setting(item.name))
    if planned.demand.pool_bytes is None or not is_ranged(instance):
        return advice
    name, value = pool_setting(planned)
    return (SettingAdvice(name=name, value=value, reason="Sized by the plan between the given bounds."), *advice)


def pool_setting(planned: InstancePlan) -> tuple[str, str]:
    """Name and value of the instance's buffer pool setting, as the engine writes it."""
    engine = engine_named(planned.engine)
    assert engine.pool_setting is not None
    assert planned.demand.pool_bytes is not None
    return engine.pool_setting, setting_text(engine, planned.demand.pool_bytes)


def _file(kind: str, dialect: Dialect, planned: InstancePlan, advice: tuple[SettingAdvice, ...]) -> Artifact:
    lines = [f"# {one_line(planned.name)}: settings of its plan"]
    if dialect.section is not None:
        lines.append(dialect.section)
    for item in advice:
        lines.append(f"# {one_line(item.reason)}")
        lines.append(f"{item.name} = {one_line(item.value)}")
    return Artifact(
        kind=kind,
        filename=f"{slug(planned.name)}-hugepages.{dialect.extension}",
        media_type="text/plain",
        content="\n".join([*lines, ""]),
        verify=dialect.verify,
        rollback=dialect.rollback,
    )

"""postgresql.conf: a file for conf.d, or lines to paste."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, Restart, all_of, one_line, slug
from hugeplan.artifacts.engines.common import commented, per_instance
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest, SettingAdvice


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One file per PostgreSQL."""
    return per_instance("postgresql_conf", ("postgresql",), plan, request, _write)


def _counted_for(instance: DatabaseInstance) -> list[str]:
    """What the pages depend on: this file does not set it, and a reader may believe that it does."""
    given = ", ".join(f"{one_line(name)} = {one_line(value)}" for name, value in sorted(instance.settings.items()))
    return [f"# Its pages are counted for {given}; plan again before one of them is changed."] if given else []


def _write(kind: str, instance: DatabaseInstance, planned: InstancePlan, advice: tuple[SettingAdvice, ...]) -> Artifact:
    name = f"{slug(planned.name)}-hugepages.conf"
    wanted = {item.name: item.value for item in advice}
    checks = [
        f"test \"$(psql -XAtc 'SHOW {name}')\" = {value}" for name, value in wanted.items() if name == "huge_pages"
    ]
    if wanted.get("huge_pages") == "on":
        # A server with huge_pages = on that answers has its pages; the status says so since PostgreSQL 17.
        checks.append('{ test "$(psql -XAtc "SELECT current_setting(\'huge_pages_status\', true)")" != off; }')
    return Artifact(
        kind=kind,
        filename=name,
        path=f"$PGDATA/conf.d/{name}",
        media_type="text/plain",
        content="\n".join(
            [
                *commented(planned, advice, lambda i: f"{i.name} = {one_line(i.value)}"),
                *_counted_for(instance),
                "",
            ]
        ),
        summary=f"Puts the shared memory of {one_line(planned.name)} on its planned pages."
        if planned.page_bytes is not None
        else f"Keeps {one_line(planned.name)} on base pages, as planned.",
        install=(
            f'install -D -m 0600 -o postgres {name} "$PGDATA/conf.d/{name}"\n'
            'grep -q "include_dir.*conf.d" "$PGDATA/postgresql.conf" || echo "include_dir = \'conf.d\'" >> '
            '"$PGDATA/postgresql.conf"\n'
            'postgres -D "$PGDATA" -C shared_memory_size_in_huge_pages  # with the server stopped\n'
            'pg_ctl -D "$PGDATA" restart'
        ),
        verify=all_of(checks) if checks else "psql -XAtc 'SHOW shared_buffers'",
        rollback=f'rm -f "$PGDATA/conf.d/{name}"\npg_ctl -D "$PGDATA" restart',
        restart=Restart.ENGINE,
        avoid_when="An operator or Patroni writes the configuration: set the parameters there.",
    )

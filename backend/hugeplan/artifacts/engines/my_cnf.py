"""my.cnf of MySQL and Percona Server, and MariaDB's, whose section and service differ."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, Restart, all_of, one_line, slug
from hugeplan.artifacts.engines.common import commented, per_instance
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest, SettingAdvice


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One file per MySQL."""
    return per_instance("my_cnf", ("mysql",), plan, request, _mysql)


def render_mariadb(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One file per MariaDB."""
    return per_instance("mariadb_cnf", ("mariadb",), plan, request, _mariadb)


def _mysql(kind: str, _: DatabaseInstance, planned: InstancePlan, advice: tuple[SettingAdvice, ...]) -> Artifact:
    return _file(kind, planned, advice, ("[mysqld]", "/etc/my.cnf.d", "mysqld", "mysql"))


def _mariadb(kind: str, _: DatabaseInstance, planned: InstancePlan, advice: tuple[SettingAdvice, ...]) -> Artifact:
    return _file(kind, planned, advice, ("[mariadb]", "/etc/mysql/mariadb.conf.d", "mariadb", "mariadb"))


def _file(
    kind: str, planned: InstancePlan, advice: tuple[SettingAdvice, ...], dialect: tuple[str, str, str, str]
) -> Artifact:
    section, folder, service, client = dialect
    name = f"{slug(planned.name)}-hugepages.cnf"
    head, *lines = commented(planned, advice, lambda i: f"{i.name} = {one_line(i.value)}")
    query = f'{client} -BNe "SELECT @@GLOBAL.large_pages"'
    on = any(item.name == "large_pages" and item.value == "ON" for item in advice)
    checks = [f'test "$({query})" = {int(on)}']
    if on:
        checks.append(
            "test \"$(awk '/^HugetlbPages/ {print $2}' /proc/$(pidof -s " + f'{service} mariadbd mysqld)/status)" -gt 0'
        )
    return Artifact(
        kind=kind,
        filename=name,
        path=f"{folder}/{name}",
        content="\n".join([head, section, *lines, ""]),
        summary=f"Puts the buffer pool of {one_line(planned.name)} on its planned pages."
        if planned.page_bytes is not None
        else f"Keeps {one_line(planned.name)} on base pages, as planned.",
        install=f"install -D -m 0644 {name} {folder}/{name}\nsystemctl restart {service}",
        verify=all_of(checks),
        rollback=f"rm -f {folder}/{name}\nsystemctl restart {service}",
        restart=Restart.ENGINE,
        avoid_when="An operator writes the option file: set the values there.",
    )

"""The JVM: an options file for ``java @file`` or JDK_JAVA_OPTIONS."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, Restart, one_line, put, put_back, slug
from hugeplan.artifacts.engines.common import commented, per_instance, servers_on_host
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest, SettingAdvice

_USER = "${JVM_USER:?the user that the program runs as}"


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One options file per JVM."""
    several = servers_on_host(plan, request, "jvm") > 1

    def write(kind: str, _: DatabaseInstance, planned: InstancePlan, advice: tuple[SettingAdvice, ...]) -> Artifact:
        # A process of any user may be called java; a container has its own alone.
        pid = "$(pidof -s java)" if request.reservations.kubernetes else f'$(pgrep -n -x -u "{_USER}" java)'
        if several and not request.reservations.kubernetes:  # the newest of a user may be another's
            own = (kind.partition("-")[2] or slug(planned.name)).upper().replace("-", "_")
            pid = f"${{JVM_PID_{own}:?the process id of this one JVM}}"
        return _write(pid, kind, planned, advice)

    return per_instance("jvm_options", ("jvm",), plan, request, write)


def _flag(item: SettingAdvice) -> str:
    if not item.value:
        return item.name
    return f"{item.name}{item.value}" if item.name in {"-Xms", "-Xmx"} else f"{item.name}={item.value}"


def _write(pid: str, kind: str, planned: InstancePlan, advice: tuple[SettingAdvice, ...]) -> Artifact:
    name = f"{slug(planned.name)}-jvm.options"
    lines = commented(planned, [item for item in advice if item.name.startswith("-")], _flag)
    path, content = f"/etc/java/{name}", "\n".join([*lines, ""])
    return Artifact(
        kind=kind,
        filename=name,
        content=content,
        summary=f"Puts heap and code cache of {one_line(planned.name)} on its planned pages.",
        install=f"{put(name, path, content)}\n# start the program as: java @{path} ...",
        verify=f"test \"$(awk '/^HugetlbPages/ {{print $2}}' /proc/{pid}/status)\" -gt 0",
        rollback=f"{put_back(path, content)}\n# start the program with its previous options",
        restart=Restart.ENGINE,
        avoid_when="The program sets its own heap options elsewhere: the last option wins.",
    )

"""redis.conf: THP kept away from a server that forks to save. The usual service alone reads the usual file."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, Restart, all_of, as_owner_of, one_line, put, put_back, slug
from hugeplan.artifacts.engines.common import commented, left_to_a_person, per_instance, servers_on_host
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest, SettingAdvice

#: Redis turns THP off for itself where the node's mode is always. The kernel is asked, as root asks no user's server.
_KEPT_AWAY = (
    "cat /sys/kernel/mm/transparent_hugepage/enabled {status} 2> /dev/null | awk '/\\[always\\]/ {{on = 1}}"
    " /^Name:/ {{n = {is_it}; found += n}} n && /^THP_enabled/ {{its += $2}} END {{exit !found || on && its}}'"
)
_USUAL = re.compile(r"systemd:(redis(?:-server)?)\.service")


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One file per Redis."""
    several = servers_on_host(plan, request, "redis") > 1

    def write(kind: str, _: DatabaseInstance, planned: InstancePlan, advice: tuple[SettingAdvice, ...]) -> Artifact:
        server = None if request.reservations.kubernetes else request.server(planned.runs_as)
        unit = (server and server.unit) or ""
        usual = _USUAL.fullmatch(unit)
        service = usual[1] if usual else "redis"
        # A container has its own processes alone.
        status, is_it = (
            ("/proc/[0-9]*/status", r"/\tredis-server$/")
            if request.reservations.kubernetes
            else (f"/proc/$(systemctl show --property MainPID --value {service})/status", "1")
        )
        file = _write(kind, planned, advice, service, _KEPT_AWAY.format(status=status, is_it=is_it))
        # Another service reads a file of its own; where its service is not known, the usual one may be another's.
        is_form = not request.reservations.kubernetes and usual is None and (several or server is not None)
        whose = f"Lines for the redis.conf that {one_line(planned.name)} alone reads: they keep THP away from it."
        return left_to_a_person(file, unit, whose, "port or socket: CONFIG GET disable-thp is yes") if is_form else file

    return per_instance("redis_conf", ("redis",), plan, request, write)


def _write(kind: str, planned: InstancePlan, advice: tuple[SettingAdvice, ...], service: str, verify: str) -> Artifact:
    name, owner = f"{slug(planned.name)}-redis.conf", as_owner_of("/etc/redis")  # redis itself on Debian
    line, conf = f"include /etc/redis/{name}", "/etc/redis/redis.conf"
    path, content = (
        f"/etc/redis/{name}",
        "\n".join([*commented(planned, advice, lambda i: f"{i.name} {one_line(i.value)}"), ""]),
    )
    return Artifact(
        kind=kind,
        filename=name,
        path=path,
        content=content,
        summary=f"Keeps transparent huge pages away from {one_line(planned.name)}.",
        install=all_of(
            [put(name, path, content, owner), f"{owner} last-line {conf} '{line}'", f"systemctl restart {service}"]
        ),
        verify=verify,
        rollback=put_back(path, content, f"systemctl restart {service}", line=f"{conf} '{line}'", user=owner),
        restart=Restart.ENGINE,
        avoid_when="Redis is older than 6.2, which has no disable-thp: set THP to madvise on the node.",
    )

"""redis.conf: THP kept away from a server that forks to save."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import KEEP, Artifact, Restart, as_owner_of, one_line, slug
from hugeplan.artifacts.engines.common import commented, per_instance
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest, SettingAdvice


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """One file per Redis."""
    return per_instance("redis_conf", ("redis",), plan, request, _write)


def _write(kind: str, _: DatabaseInstance, planned: InstancePlan, advice: tuple[SettingAdvice, ...]) -> Artifact:
    name, owner = f"{slug(planned.name)}-redis.conf", as_owner_of("/etc/redis")  # redis itself on Debian
    include = f"grep -q {name} /etc/redis/redis.conf || echo include /etc/redis/{name} >> /etc/redis/redis.conf"
    return Artifact(
        kind=kind,
        filename=name,
        path=f"/etc/redis/{name}",
        content="\n".join([*commented(planned, advice, lambda i: f"{i.name} {one_line(i.value)}"), ""]),
        summary=f"Keeps transparent huge pages away from {one_line(planned.name)}.",
        install=f"{owner} {KEEP} /etc/redis/{name} < {name}\n{owner} sh -c '{include}'\nsystemctl restart redis",
        verify='test "$(redis-cli config get disable-thp | tail -n 1)" = yes',
        rollback=f"{owner} rm -f /etc/redis/{name}\n"
        f"{owner} sed -i '\\|{name}|d' /etc/redis/redis.conf\nsystemctl restart redis",
        restart=Restart.ENGINE,
        avoid_when="Redis is older than 6.2, which has no disable-thp: set THP to madvise on the node.",
    )

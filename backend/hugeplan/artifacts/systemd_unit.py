"""A systemd unit that runs the NUMA script early at boot, before the kubelet and the databases."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import (
    Artifact,
    Restart,
    all_of,
    mark,
    one_line,
    planned_pools,
    pool_checks,
    put,
    put_back,
    restore_counts,
)
from hugeplan.artifacts.numa_files import SCRIPT_PATH
from hugeplan.planner.model import Plan, PlanRequest

NAME = "hugeplan-hugepages.service"
PATH = f"/etc/systemd/system/{NAME}"
#: Services of engines that must find the pages when they start.
_SERVICES = {
    "postgresql": ("postgresql.service",),
    "mysql": ("mysqld.service", "mysql.service"),
    "mariadb": ("mariadb.service",),
    "db2": ("db2.service",),
    "oracle": ("oracle-database.service",),
}


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """The unit, when there is any pool to write. It needs the NUMA script beside it."""
    if not planned_pools(plan):
        return
    engines = dict.fromkeys(name for i in plan.instances for name in _SERVICES.get(i.engine, ()))
    before = ["kubelet.service"] if request.reservations.kubernetes else list(engines)
    lines = [
        f"# {PATH}: pools of {one_line(plan.node)}; runs {SCRIPT_PATH} (hugeplan-reserve.sh)",
        "[Unit]",
        "Description=Huge pages per NUMA node, by hugeplan",
        "DefaultDependencies=no",
        "After=systemd-sysctl.service systemd-tmpfiles-setup.service local-fs.target",
        f"Before={' '.join([*before, 'sysinit.target'])}",
        "ConditionPathExists=/sys/devices/system/node",
        "",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        f"ExecStart={SCRIPT_PATH}",
        "",
        "[Install]",
        "WantedBy=sysinit.target",
        "",
    ]
    content = "\n".join(lines)
    yield Artifact(
        kind="systemd_unit",
        filename=NAME,
        path=PATH,
        content=content,
        summary="Runs the NUMA script early at each boot; the unit fails when the kernel gives fewer pages.",
        install="# the numa_script goes first\n"
        + all_of(
            [
                f"test -x {SCRIPT_PATH}",
                put(NAME, PATH, content),
                "systemctl daemon-reload",
                f"systemctl enable --now {NAME}",
            ]
        ),
        verify=all_of([f"systemctl is-active --quiet {NAME}", *pool_checks(plan)]),
        rollback=f"! sha256sum {PATH} 2>/dev/null | grep -q ^{mark(content)} || systemctl disable --now {NAME}\n"
        + put_back(
            PATH,
            content,
            "systemctl daemon-reload",
            f"{{ test ! -e {PATH} || systemctl enable {NAME}; }}",
            *restore_counts(plan),
        ),
        restart=Restart.KUBELET if request.reservations.kubernetes else Restart.NOTHING,
        avoid_when="Gigantic pages without hugetlb_cma=: they are only sure at boot, by the command line.",
    )

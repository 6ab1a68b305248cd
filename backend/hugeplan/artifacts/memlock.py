"""Locked memory: limits.d for logins, a LimitMEMLOCK drop-in for services.

Needed by engines that map System V segments or call mlock: Oracle, Db2, MySQL before 8.0.26, and a generic
segment. Anonymous MAP_HUGETLB mappings (PostgreSQL, newer MySQL, MariaDB, the JVM) are not charged to RLIMIT_MEMLOCK.
"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, Restart, left_as_comments, one_line, put, put_back
from hugeplan.planner.demand import engine_named
from hugeplan.planner.model import GIB, KIB, InstancePlan, Plan, PlanRequest, named
from hugeplan.planner.pages import ceil_pages
from hugeplan.planner.units import format_bytes

LIMITS_PATH = "/etc/security/limits.d/60-hugeplan.conf"
_DROP_IN = "/etc/systemd/system/UNIT.service.d/60-hugeplan.conf"
_RESTART = ("systemctl daemon-reload", "systemctl restart UNIT.service")
_FOR_ITS_UNIT = "# with the unit that starts the server in place of UNIT:\n"


def _locking(plan: Plan) -> list[InstancePlan]:
    with_pool = [i for i in plan.instances if i.page_bytes is not None]
    # What a generic segment is, nobody knows: the file does no harm.
    return [
        i for i in with_pool if i.engine == "generic" or engine_named(i.engine).locks_segment(i.demand.version or "")
    ]


def _kib(plan: Plan, request: PlanRequest) -> int:
    """Oracle's preinstallation rule: 90 % of memory; at least all segments that are locked.

    In whole GiB, as MemTotal differs by a few KiB between nodes of one kind, which are to get one file.
    """
    segments = sum(i.demand.pages * i.demand.page_bytes for i in _locking(plan))
    return ceil_pages(max(segments, request.node.mem_total_bytes * 9 // 10), GIB) * (GIB // KIB)


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """Both files, when an engine of the plan locks memory."""
    locking = _locking(plan)
    if not locking:
        return
    kib = _kib(plan, request)
    names = named(one_line(i.name) for i in locking)
    limits = "\n".join(
        [
            f"# {LIMITS_PATH}: locked memory for {names}, {format_bytes(kib * KIB)}",
            "# The servers' users are not in the plan: * is every user but root; write the user's name instead.",
            f"* soft memlock {kib}",
            f"* hard memlock {kib}",
            "",
        ]
    )
    drop_in = "\n".join(
        [
            f"# Locked memory for {names}",
            "# The unit's name is not in the plan: put the file beside the unit that starts the server.",
            "[Service]",
            "LimitMEMLOCK=infinity",
            "",
        ]
    )
    yield Artifact(
        kind="limits_d",
        filename="60-hugeplan-limits.conf",
        path=LIMITS_PATH,
        content=limits,
        summary="Lets logins that start the server lock its segments.",
        install=f"{put('60-hugeplan-limits.conf', LIMITS_PATH, limits)}\n# log in again, then start the server",
        verify=f'(v=$(ulimit -l) && {{ test "$v" = unlimited || test "$v" -ge {kib}; }})  # as the server\'s user',
        rollback=put_back(LIMITS_PATH, limits),
        restart=Restart.ENGINE,
        avoid_when="The server is started by systemd, which does not read limits.d: use the drop-in.",
    )
    yield Artifact(
        kind="memlock_dropin",
        filename="60-hugeplan-memlock.conf",
        content=drop_in,
        summary="Lets a server that systemd starts lock its segments.",
        install=_FOR_ITS_UNIT
        + left_as_comments("\n".join([put("60-hugeplan-memlock.conf", _DROP_IN, drop_in), *_RESTART])),
        verify=_FOR_ITS_UNIT + left_as_comments('test "$(systemctl show -P LimitMEMLOCK UNIT.service)" = infinity'),
        rollback=_FOR_ITS_UNIT + left_as_comments(put_back(_DROP_IN, drop_in, *_RESTART)),
        restart=Restart.ENGINE,
        avoid_when="The server is started from a login: use limits.d.",
    )

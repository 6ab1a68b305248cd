"""A huge page limit without a HugePages volume: right for engines that map by a flag, useless for hugetlbfs users."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.inventory.findings.base import NodeNow, finding
from hugeplan.planner.model import Finding, State
from hugeplan.planner.pages import kubernetes_resource_name

CODE = "huge_pages_without_mount"


def check(now: NodeNow) -> Iterable[Finding]:
    """One finding per pod that is not a known database, may use huge pages, and mounts no HugePages volume."""
    for user in now.node.huge_page_users:
        if user.is_database:
            continue  # PostgreSQL, MySQL, MariaDB and the JVM map with MAP_HUGETLB, Oracle and Db2 with shmget
        missing = [size for size, held in user.limit_bytes.items() if held and size not in user.hugetlbfs_mounts]
        if not missing:
            continue
        names = " and ".join(kubernetes_resource_name(size) for size in missing)
        yield finding(
            CODE,
            State.ATTENTION,
            user.subject,
            f"It has a limit for {names} and mounts no volume of it",
            f"A program that opens files on hugetlbfs needs an emptyDir volume with a HugePages medium, and"
            f" {user.owner_kind or 'the pod'} mounts none. A program that maps with MAP_HUGETLB or shmget does not.",
            fix="If the program uses hugetlbfs, add an emptyDir volume with the medium HugePages-SIZE and mount it.",
        )

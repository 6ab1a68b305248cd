"""Per NUMA node: a script that writes and proves every count, and the same as tmpfiles.d.

Both write /sys/devices/system/node/node*/hugepages, the only interface for other sizes than the default and for
counts per node. A write may be granted in part: the script reads back and fails; tmpfiles.d cannot.
"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts.base import Artifact, count_path, one_line, planned_pools
from hugeplan.planner.model import Plan, PlanRequest
from hugeplan.planner.pages import sysfs_directory_name

TMPFILES_PATH = "/etc/tmpfiles.d/60-hugeplan.conf"

_FUNCTION = """\
reserve() { # node directory count
    file=/sys/devices/system/node/node$1/hugepages/$2/nr_hugepages
    if [ ! -w "$file" ]; then
        echo "hugeplan: $file cannot be written" >&2
        failed=1
        return
    fi
    echo "$3" > "$file"
    now=$(cat "$file")
    if [ "$now" -lt "$3" ]; then
        echo 1 > /proc/sys/vm/compact_memory
        echo "$3" > "$file"
        now=$(cat "$file")
    fi
    if [ "$now" -ne "$3" ]; then
        echo "hugeplan: node $1 $2: asked for $3 pages, has $now" >&2
        failed=1
    fi
}
"""


def render(plan: Plan, _: PlanRequest) -> Iterable[Artifact]:
    """The script and the tmpfiles.d file, when there is any pool to write. Pools to release come first."""
    pools = sorted(planned_pools(plan), key=lambda p: (p.pages > 0, -p.page_bytes, p.numa_node))
    if not pools:
        return
    verify = "\n".join(
        f'test "$(cat {count_path(pool.numa_node, pool.page_bytes)})" -eq {pool.pages}' for pool in pools
    )
    undo = [(pool, pool.present_pages or 0) for pool in pools]
    rollback = "\n".join(f"echo {pages} > {count_path(pool.numa_node, pool.page_bytes)}" for pool, pages in undo)
    script = [
        "#!/bin/sh",
        f"# Huge pages of {one_line(plan.node)}, per NUMA node. Run as root; fails when a count is not reached.",
        "set -u",
        "failed=0",
        "",
        _FUNCTION,
        *(f"reserve {pool.numa_node} {sysfs_directory_name(pool.page_bytes)} {pool.pages}" for pool in pools),
        "exit $failed",
        "",
    ]
    yield Artifact(
        kind="numa_script",
        filename="hugeplan-reserve.sh",
        media_type="text/x-shellscript",
        content="\n".join(script),
        verify=verify,
        rollback=rollback,
    )
    tmpfiles = [
        f"# {TMPFILES_PATH}: huge pages of {one_line(plan.node)}, written at boot by systemd-tmpfiles",
        "# A count that cannot be met is met in part without an error: run the verify commands.",
        *(f"w {count_path(pool.numa_node, pool.page_bytes)} - - - - {pool.pages}" for pool in pools),
        "",
    ]
    yield Artifact(
        kind="tmpfiles",
        filename="60-hugeplan-tmpfiles.conf",
        media_type="text/plain",
        content="\n".join(tmpfiles),
        verify=f"systemd-tmpfiles --create {TMPFILES_PATH}\n{verify}",
        rollback=f"rm -f {TMPFILES_PATH}\n{rollback}",
    )

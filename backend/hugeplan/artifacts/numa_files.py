"""Per NUMA node: a script that writes and checks every count, the same as tmpfiles.d, and a unit that runs it early.

All write /sys/devices/system/node/node*/hugepages, the only interface for other sizes than the default and for
counts per node. A write may be granted in part: the script reads back and fails; tmpfiles.d cannot.
"""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.artifacts import kernel_command_line
from hugeplan.artifacts.base import (
    Artifact,
    all_of,
    count_path,
    one_line,
    planned_pools,
    pool_checks,
    put,
    put_back,
    restore_counts,
)
from hugeplan.planner.model import Plan, PlanRequest, PoolPlan
from hugeplan.planner.pages import sysfs_directory_name

SCRIPT_PATH = "/usr/local/sbin/hugeplan-reserve"
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
    more=$(cat "${file%/*}/surplus_hugepages" 2> /dev/null)
    if [ "$now" -gt "$3" ] && [ "$((now - ${more:-0}))" -eq "$3" ]; then
        echo "hugeplan: node $1 $2: $more more than $3 pages stay until who holds them ends" >&2
    elif [ "$now" -ne "$3" ]; then
        echo "hugeplan: node $1 $2: asked for $3 pages, has $now" >&2
        failed=1
    fi
}
"""


def ordered(plan: Plan) -> list[PoolPlan]:
    """Pools that shrink first, as the others may need their memory; then large pages before small ones."""
    return sorted(planned_pools(plan), key=lambda p: (p.pages > (p.present_pages or 0), -p.page_bytes, p.numa_node))


def script_text(plan: Plan) -> str:
    """The script that reserves, reads back, compacts once and fails when a count is not reached."""
    lines = [
        "#!/bin/sh",
        f"# Huge pages of {one_line(plan.node)}, per NUMA node. Run as root; fails when a count is not reached.",
        "set -u",
        "failed=0",
        "",
        _FUNCTION,
        *(f"reserve {pool.numa_node} {sysfs_directory_name(pool.page_bytes)} {pool.pages}" for pool in ordered(plan)),
        "exit $failed",
        "",
    ]
    return "\n".join(lines)


def render(plan: Plan, _: PlanRequest) -> Iterable[Artifact]:
    """The script and the tmpfiles.d file, when there is any pool to write."""
    pools = ordered(plan)
    if not pools:
        return
    script, counts, has_unit = script_text(plan), restore_counts(plan), kernel_command_line.has_pages(plan)
    # A later plan of the command line puts the unit aside, not its script: the counts are that plan's.
    speaks = f"grep -qs hugepages {kernel_command_line.PATH} /etc/kernel/cmdline"
    own = [f"{{ {speaks} || {line}; }}" if has_unit and line[0] != "#" else line for line in counts]
    yield Artifact(
        kind="numa_script",
        filename="hugeplan-reserve.sh",
        path=SCRIPT_PATH,
        media_type="text/x-shellscript",
        content=script,
        summary="Writes every count per NUMA node now, compacts memory once, and fails when a count is not reached.",
        install=all_of([put("hugeplan-reserve.sh", SCRIPT_PATH, script), f"chmod 0755 {SCRIPT_PATH}", SCRIPT_PATH]),
        verify=all_of(pool_checks(plan)),
        rollback=put_back(SCRIPT_PATH, script, *own),
        avoid_when="The pages must be there after a reboot: install the unit beside it, or use the command line.",
    )
    lines = [
        f"# {TMPFILES_PATH}: huge pages of {one_line(plan.node)}, written at boot by systemd-tmpfiles",
        "# A count that cannot be met is met in part without an error: run the verify commands.",
        *(f"w {count_path(pool.numa_node, pool.page_bytes)} - - - - {pool.pages}" for pool in pools),
        "",
    ]
    content = "\n".join(lines)
    yield Artifact(
        kind="tmpfiles",
        filename="60-hugeplan-tmpfiles.conf",
        path=TMPFILES_PATH,
        content=content,
        summary="Writes every count per NUMA node at each boot, without reading back.",
        install=all_of(
            [put("60-hugeplan-tmpfiles.conf", TMPFILES_PATH, content), f"systemd-tmpfiles --create {TMPFILES_PATH}"]
        ),
        verify=all_of(pool_checks(plan)),
        rollback=put_back(TMPFILES_PATH, content, *counts),
        avoid_when="A count that is met in part must be noticed: use the systemd unit.",
    )

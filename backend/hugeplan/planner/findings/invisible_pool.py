"""Will monitoring see the pool? /proc/meminfo's HugePages_ lines and node_exporter show the default size only."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.findings.base import FindingInputs, attention, ok
from hugeplan.planner.model import Finding
from hugeplan.planner.pages import page_label, sysfs_directory_name

CODE = "pool_invisible_to_monitoring"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each planned size that is not the default one."""
    default = inputs.node.default_huge_page_bytes
    sizes = sorted({pool.page_bytes for pool in inputs.pools if pool.pages})
    for page_bytes in sizes:
        label = page_label(page_bytes)
        if page_bytes == default:
            yield ok(
                CODE, label, "Monitoring sees this pool", "The default size is in /proc/meminfo and in node_exporter."
            )
        elif inputs.sample is not None and inputs.sample.non_default_pools_monitored:
            yield ok(CODE, label, "Monitoring sees this pool", "Pools of other sizes are monitored.")
        else:
            reason = f"node_exporter and HugePages_ in /proc/meminfo show {page_label(default)} only, not this pool."
            fix = f"Watch /sys/kernel/mm/hugepages/{sysfs_directory_name(page_bytes)}, or kube-state-metrics."
            yield attention(CODE, label, "Monitoring does not see this pool", reason, fix)

"""The node around the pools: default size, transparent huge pages, the kubelet, and what the next boot will reserve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hugeplan.planner.findings.base import attention, given, measured, ok, unknown, wrong
from hugeplan.planner.memory.kernel_parameters import after_writes, boot_pools
from hugeplan.planner.model import Finding, Plan, State, named
from hugeplan.planner.pages import (
    counted_pages,
    kubernetes_resource_name,
    page_label,
    usual_default_size,
)
from hugeplan.planner.units import format_bytes
from hugeplan.proof.causes import Cause, because
from hugeplan.proof.observation import Observation

DEFAULT = "verify_default_size"
"""Is the kernel's default huge page size the one that an engine of the plan needs, which takes no other?"""
THP = "verify_thp"
"""Are transparent huge pages as the plan's engines ask, else not always on beside a pool?"""
KUBELET = "verify_kubelet"
"""Does the kubelet know the pools as they are? It reads them at its start only."""
BOOT = "verify_next_boot"
"""Does the next boot reserve the plan again, by the command line as this kernel reads it and what writes later?"""
_ByNode = Mapping[int | None, int]
#: Engines that take the default size only.
_DEFAULT_ONLY = frozenset({"mysql", "oracle"})


def check_default_size(plan: Plan, observed: Observation) -> Iterable[Finding]:
    """One finding for the node, where an engine of the plan takes the default size only."""
    wanted = {i.page_bytes for i in plan.instances if i.engine in _DEFAULT_ONLY and i.page_bytes is not None}
    if not wanted:
        return
    real = observed.inventory.get("default_huge_page_bytes")
    names = named(i.name for i in plan.instances if i.engine in _DEFAULT_ONLY and i.page_bytes is not None)
    if real is None:
        yield unknown(DEFAULT, plan.node, "The default huge page size is not known", "It was not observed.")
    elif wanted != {real}:
        sizes = ", ".join(page_label(size) for size in sorted(wanted))
        title = f"The default huge page size is {page_label(real)}, not {sizes}"
        fix = f"Set default_hugepagesz={sizes} on the kernel command line and reboot."
        yield wrong(DEFAULT, plan.node, title, f"{names} takes pages of the default size only.", fix)
    else:
        yield ok(DEFAULT, plan.node, f"The default huge page size is {page_label(real)}", f"{names} takes it.")


def check_thp(plan: Plan, observed: Observation) -> Iterable[Finding]:
    """One finding for the node: what the engines ask for, else not ``always`` beside a pool."""
    enabled = (observed.inventory.get("thp") or {}).get("enabled")
    asked = {s.value for i in plan.instances for s in i.demand.settings if s.name == "transparent_hugepage/enabled"}
    if not asked and not any(i.page_bytes for i in plan.instances):
        return
    if enabled is None:
        yield unknown(THP, plan.node, "The mode of transparent huge pages is not known", "It was not observed.")
    elif asked and enabled not in asked:
        title = f"Transparent huge pages are {enabled}, the plan's engines ask for {', '.join(sorted(asked))}"
        reason = "The engines' vendors ask for another mode."
        yield attention(THP, plan.node, title, reason, "Install the thp_tmpfiles artifact.")
    elif not asked and enabled == "always":
        title = "Transparent huge pages are always on beside a database"
        reason = "Private memory is made of huge pages too, which wastes memory and stalls allocations."
        fix = "Set transparent_hugepage=madvise."
        yield attention(THP, plan.node, title, reason, fix, evidence=(measured("enabled", enabled),))
    else:
        yield ok(THP, plan.node, f"Transparent huge pages are {enabled}", "That is as the plan's engines want it.")


def check_kubelet(plan: Plan, observed: Observation) -> Iterable[Finding]:
    """One finding per page size where a kubelet runs, or the plan is for one: does it know the pool?"""
    kubelet = observed.sample.get("kubelet")
    if plan.kubernetes is None and kubelet is None:
        return
    if kubelet is None:
        yield unknown(
            KUBELET, plan.node, "Whether the kubelet knows the pools is not known", "No kubelet was observed."
        )
        return
    capacity = kubelet.get("capacity")
    for size in sorted({pool.page_bytes for pool in plan.pools}):
        resource = kubernetes_resource_name(size)
        pages = [int((observed.global_pool(size) or {}).get("nr_hugepages") or 0)]
        if capacity is None or (capacity.get(resource) is None and pages[0]):
            reason = f"Its capacity was not read; it started at {kubelet.get('started_at')}."
            fix = "Restart it after the pools changed, and let the agent read the node's status."
            yield unknown(KUBELET, resource, "Whether the kubelet knows the pool is not known", reason, fix)
        elif (capacity.get(resource) or 0) != pages[0] * size:
            title = "The kubelet started before the pool was changed"
            offered, held = format_bytes(capacity.get(resource) or 0), format_bytes(pages[0] * size)
            reason = f"It offers {offered}, the pool holds {held}."
            fix = "Restart the kubelet: it reads the pools at its start only."
            yield wrong(KUBELET, resource, title, reason, fix, evidence=(because(Cause.KUBELET),))
        else:
            yield ok(KUBELET, resource, "The kubelet knows the pool", f"It offers {format_bytes(pages[0] * size)}.")


def check_next_boot(plan: Plan, observed: Observation) -> Iterable[Finding]:
    """One finding for the node: does the command line reserve the plan again, as this kernel reads it?"""
    line = observed.inventory.get("kernel_command_line")
    sizes = observed.inventory.get("huge_page_sizes_bytes") or ()
    base = observed.inventory.get("base_page_bytes")
    if line is None or base is None:
        yield unknown(BOOT, plan.node, "What a reboot reserves is not known", "The kernel command line was not read.")
        return
    ids = tuple(n["id"] for n in observed.inventory.get("numa_nodes") or () if "id" in n) or (0,)
    found = boot_pools(
        line,
        tuple(sizes),
        usual_default_size(base, sizes),
        ids,
        kernel_release=observed.inventory.get("kernel_release"),
        arch=observed.inventory.get("architecture") or "x86_64",
    )
    for item in found.ignored:
        title = "The kernel ignores this word of its command line"
        fix = "hugeplan lint --fix writes the words in the right order."
        yield wrong(BOOT, item.word, title, f"{item.word}: {item.reason}.", fix, evidence=(given("word", item.word),))
    asked = {size: by_node for size, by_node in found.pools.items() if any(by_node.values())}
    files, later = _last_by_size(observed), [*later_counts(plan, observed, asked)]
    yield from later
    # What a file writes later counts, whatever the command line says of that size.
    planned, ends = _planned(plan, _numa_ids(observed)), _ends(observed, asked)
    left = {size for size in asked.keys() | planned.keys() if size not in files}
    states = {_state(ends.get(size, {}), planned.get(size, {})) for size in left}
    said = ", ".join(_words(size, by_node, observed) for size, by_node in sorted(asked.items()))
    if any(any(planned[size].values()) for size in left & planned.keys()) and not asked:
        reason = "The pools come from a unit, sysctl.d, tmpfiles.d or by hand; a reboot keeps only what is installed."
        fix = "Install one of the plan's files; large pages are sure on the command line only."
        yield attention(BOOT, plan.node, "The command line reserves nothing", reason, fix)
    elif State.ATTENTION in states:
        title = "The command line reserves something else than the plan"
        yield attention(BOOT, plan.node, title, f"It asks for {said}.", "Install the plan's command line.")
    elif State.UNKNOWN in states:
        yield unknown(BOOT, plan.node, _OPEN, f"The command line asks for {said}. {_SPREADS}", _BY_NODE)
    elif not found.ignored and observed.boot_counts is None:
        reason = "Whether sysctl.d, tmpfiles.d or a unit sets another count later was not looked at."
        yield ok(BOOT, plan.node, "The command line reserves the plan again", reason)
    elif not found.ignored and not later:
        reason = (
            "This boot's command line, and after it sysctl.d, tmpfiles.d and hugeplan's unit, end with the planned"
            " counts. What the boot loader has for the next one was not looked at."
        )
        yield ok(BOOT, plan.node, "A reboot reserves the plan again", reason)


_OPEN: Final = "Which NUMA node the next boot gives the pages is not known"
_SPREADS: Final = "The kernel spreads such a total over the NUMA nodes: not each kernel gives each node as many."
_BY_NODE: Final = "Write a count for each NUMA node."


def later_counts(
    plan: Plan, observed: Observation, asked: Mapping[int, Mapping[int | None, int]] | None = None
) -> Iterable[Finding]:
    """One finding for each page size with which the next boot does not end as planned, because of a file.

    ``asked``: what the command line asks for; None: what the plan does.
    """
    planned = _planned(plan, _numa_ids(observed))
    ends = _ends(observed, planned if asked is None else asked)
    for size, (path, own) in _last_by_size(observed).items():
        if size is None:
            reason = f"{path} sets {sum(own.values()):,} pages of the default size, which was not observed."
            yield unknown(BOOT, plan.node, "What a file's count reserves is not known", reason)
            continue
        sets, leaves, wanted = (_words(size, one, observed) for one in (own, ends[size], planned.get(size, {})))
        is_sure = None not in ends[size] or len(ends[size]) == 1
        said = f"{path} sets {sets}" + (f", which leaves {leaves}" if leaves != sets and is_sure else "")
        state = _state(ends[size], planned.get(size, {}))
        if state is State.UNKNOWN:
            yield unknown(BOOT, plan.node, _OPEN, f"{said}; {wanted} are planned. {_SPREADS}", _BY_NODE)
        elif state is State.ATTENTION:
            title = "A file sets another count after the command line"
            fix = "Take the count out of that file: the next boot ends with it."
            yield attention(BOOT, plan.node, title, f"{said}; {wanted} are planned.", fix)


def _ends(observed: Observation, before: Mapping[int, _ByNode]) -> dict[int | None, _ByNode]:
    """Pages by size and NUMA node once all files have written after a command line that asks for these."""
    nodes, default = _numa_ids(observed) or (0,), observed.inventory.get("default_huge_page_bytes")
    ends: dict[int | None, _ByNode] = {
        size: by_node if len(nodes) > 1 else {nodes[0]: sum(by_node.values())} for size, by_node in before.items()
    }
    for size in {size or default for _, size, _ in observed.boot_counts or ()}:
        counts = [by_node for _, own, by_node in observed.boot_counts or () if (own or default) == size]
        writes = (write for by_node in counts for write in by_node.items())
        ends[size] = after_writes(ends.get(size, {}), writes, nodes)
    return ends


def _state(end: _ByNode, planned: _ByNode) -> State:
    """Whether these counts are the planned ones on each NUMA node; unknown where a total may be spread that way."""
    counts = {numa: pages for numa, pages in end.items() if pages}
    wanted = {numa: pages for numa, pages in planned.items() if pages}
    if counts == wanted:
        return State.OK
    spread = [pages for numa, pages in planned.items() if numa not in end] if None in counts else []
    is_even = max(spread, default=2) - min(spread, default=0) <= 1
    # The share that a node with its own count had of the total may be one page more or less.
    own = sum(numa is not None for numa in end)
    may_be = is_even and abs(sum(counts.values()) - sum(wanted.values())) <= own
    return State.UNKNOWN if may_be else State.ATTENTION


def _words(size: int, by_node: _ByNode, observed: Observation) -> str:
    """``218 pages of 2M on NUMA node 1``; nodes without pages are left out, and the node's name where it is alone."""
    is_alone = len(_numa_ids(observed)) < 2
    each = [
        counted_pages(pages, size) + ("" if numa is None or is_alone else f" on NUMA node {numa}")
        for numa, pages in by_node.items()
        if pages
    ]
    return " and ".join(each) or counted_pages(0, size)


def _last_by_size(observed: Observation) -> dict[int | None, tuple[str, _ByNode]]:
    """Page size, None where the default is not known, to the last file after the command line and what it writes."""
    default = observed.inventory.get("default_huge_page_bytes")
    last: dict[int | None, tuple[str, _ByNode]] = {}
    for path, size, pages in observed.boot_counts or ():
        before, own = last.get(size or default, ("", {}))
        last[size or default] = (path, {**(own if before == path else {}), **pages})
    return last


def _numa_ids(observed: Observation) -> tuple[int, ...]:
    """NUMA nodes with memory, over which the kernel spreads."""
    return tuple(
        n["id"] for n in observed.inventory.get("numa_nodes") or () if n.get("mem_total_bytes") != 0 and "id" in n
    )


def _planned(plan: Plan, ids: Iterable[int]) -> dict[int, dict[int | None, int]]:
    planned: dict[int, dict[int | None, int]] = {}
    for pool in plan.pools:
        planned.setdefault(pool.page_bytes, dict.fromkeys(ids, 0))[pool.numa_node] = pool.pages
    return planned

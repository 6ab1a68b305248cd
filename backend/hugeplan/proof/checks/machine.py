"""The node around the pools: default size, transparent huge pages, the kubelet, and what the next boot will reserve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hugeplan.planner.findings.base import attention, given, measured, ok, unknown, wrong
from hugeplan.planner.memory.kernel_parameters import boot_pools
from hugeplan.planner.model import Finding, Plan, named
from hugeplan.planner.pages import (
    counted_pages,
    kubernetes_resource_name,
    page_label,
    split_exactly,
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
    planned = {size: by_node for size, by_node in _planned(plan, _numa_ids(observed)).items() if size not in files}
    left = {size for size in asked if size not in files}
    if any(any(by_node.values()) for by_node in planned.values()) and not asked:
        reason = "The pools come from a unit, sysctl.d, tmpfiles.d or by hand; a reboot keeps only what is installed."
        fix = "Install one of the plan's files; large pages are sure on the command line only."
        yield attention(BOOT, plan.node, "The command line reserves nothing", reason, fix)
    elif not all(_ends_with(asked.get(size, {}), planned.get(size, {})) for size in left | planned.keys()):
        title = "The command line reserves something else than the plan"
        said = ", ".join(_words(size, by_node, observed) for size, by_node in sorted(asked.items()))
        yield attention(BOOT, plan.node, title, f"It asks for {said}.", "Install the plan's command line.")
    elif not found.ignored and observed.boot_counts is None:
        reason = "Whether sysctl.d, tmpfiles.d or a unit sets another count later was not looked at."
        yield ok(BOOT, plan.node, "The command line reserves the plan again", reason)
    elif not found.ignored and not later:
        reason = "The command line, and after it sysctl.d, tmpfiles.d and hugeplan's unit, end with the planned counts."
        yield ok(BOOT, plan.node, "A reboot reserves the plan again", reason)


def later_counts(
    plan: Plan, observed: Observation, asked: Mapping[int, Mapping[int | None, int]] | None = None
) -> Iterable[Finding]:
    """One finding for each page size with which the next boot does not end as planned, because of a file.

    ``asked``: what the command line asks for; None: what the plan does.
    """
    ids = _numa_ids(observed)
    planned = _planned(plan, ids)
    before: Mapping[int, Mapping[Any, int]] = planned if asked is None else asked
    end: dict[int | None, dict[int, int]] = {size: _after({}, by_node, ids) for size, by_node in before.items()}
    last = _last_by_size(observed)
    default = observed.inventory.get("default_huge_page_bytes")
    for _, page_bytes, by_node in observed.boot_counts or ():
        end[page_bytes or default] = _after(end.get(page_bytes or default, {}), by_node, ids)
    for size, (path, own) in last.items():
        if size is None:
            reason = f"{path} sets {sum(own.values()):,} pages of the default size, which was not observed."
            yield unknown(BOOT, plan.node, "What a file's count reserves is not known", reason)
        elif not _ends_with(end[size], planned.get(size, {})):
            title = "A file sets another count after the command line"
            wanted = _words(size, planned.get(size, {}), observed)
            said = f"{path} sets {_words(size, own, observed)}"
            if _after({}, own, ids) != end[size]:
                said += f", which leaves {_words(size, end[size], observed)}"
            reason = f"{said}; {wanted} are planned."
            fix = "Take the count out of that file: the next boot ends with it."
            yield attention(BOOT, plan.node, title, reason, fix)


def _after(before: Mapping[int, int], written: Mapping[int | None, int], ids: Sequence[int]) -> dict[int, int]:
    """Pages by NUMA node once a file has written: a count of no node, which the kernel spreads, replaces all."""
    after = dict(before)
    if None in written:
        nodes = ids or (0,)
        after = dict(zip(nodes, split_exactly(written[None], [1] * len(nodes)), strict=True))
    return after | {numa: pages for numa, pages in written.items() if numa is not None}


def _ends_with(asked: Mapping[int | None, int] | Mapping[int, int], planned: Mapping[int, int]) -> bool:
    """Whether these counts are the planned ones on each NUMA node.

    Which one gets the odd page of a count that the kernel spreads is open.
    """
    counts = {numa: pages for numa, pages in asked.items() if pages}
    wanted = {numa: pages for numa, pages in planned.items() if pages}
    if counts == wanted:
        return True
    several = [*asked.values()] if None not in asked else [0]
    even = max(several) - min(several) <= 1 and (None in asked or asked.keys() == planned.keys())
    return bool(
        even
        and planned
        and sum(counts.values()) == sum(wanted.values())
        and max(planned.values()) - min(planned.values()) <= 1
    )


def _words(size: int, by_node: Mapping[int | None, int] | Mapping[int, int], observed: Observation) -> str:
    """``218 pages of 2M on NUMA node 1``; nodes without pages are left out, and the node's name where it is alone."""
    is_alone = len(_numa_ids(observed)) < 2
    each = [
        counted_pages(pages, size) + ("" if numa is None or is_alone else f" on NUMA node {numa}")
        for numa, pages in by_node.items()
        if pages
    ]
    return " and ".join(each) or counted_pages(0, size)


def _last_by_size(observed: Observation) -> dict[int | None, tuple[str, Mapping[int | None, int]]]:
    """Page size, None where the default is not known, to the file with the last count after the command line."""
    default = observed.inventory.get("default_huge_page_bytes")
    return {size or default: (path, pages) for path, size, pages in observed.boot_counts or ()}


def _numa_ids(observed: Observation) -> tuple[int, ...]:
    """NUMA nodes with memory, over which the kernel spreads."""
    return tuple(
        n["id"] for n in observed.inventory.get("numa_nodes") or () if n.get("mem_total_bytes") != 0 and "id" in n
    )


def _planned(plan: Plan, ids: Iterable[int]) -> dict[int, dict[int, int]]:
    planned: dict[int, dict[int, int]] = {}
    for pool in plan.pools:
        planned.setdefault(pool.page_bytes, dict.fromkeys(ids, 0))[pool.numa_node] = pool.pages
    return planned

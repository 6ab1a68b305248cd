"""Pools beside what draws from them: counts that replace each other, limits of pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from hugeplan.lint.engines_beside import CGROUP, MISSING, Limits, is_off
from hugeplan.lint.kinds import sysctl, systemd_unit, tmpfiles
from hugeplan.lint.kinds.sysctl import SHRUNK
from hugeplan.lint.kinds.sysctl import TWICE as TWICE_SET
from hugeplan.lint.model import Context, EngineFact, LimitFact, Notes, PoolFact, Reading, attention, wrong
from hugeplan.planner.memory.kernel_parameters import after_writes
from hugeplan.planner.pages import counted_pages, kubernetes_resource_name, page_label
from hugeplan.planner.units import format_bytes

NO_LIMIT_ON_POOL: Final = wrong(
    "pool-without-limit",
    "Beside a pool, PostgreSQL asks for huge pages from its first start on; a container without a huge page limit may "
    "use none.",
    "PostgreSQL src/bin/initdb/initdb.c: the first start reads postgresql.conf.sample, huge_pages = try; " + CGROUP,
)

INITDB: Final = attention(
    "pool-without-limit-at-first-start",
    "The first start of a new cluster reads the sample configuration, where huge_pages is try.",
    "PostgreSQL src/bin/initdb/initdb.c; sclorg/postgresql-container#419, CrunchyData/postgres-operator#3477",
)

ABOVE_POOL: Final = wrong(
    "limits-above-pool",
    "A pod whose limit is above the node's pool is never scheduled.",
    "kubernetes docs, Manage HugePages: huge pages are allocatable resources",
)

SUM_ABOVE_POOL: Final = attention(
    "limits-sum-above-pool",
    "All pods of these files together need more pages than one node reserves.",
    "kubernetes docs, Manage HugePages",
)

_ONE_FILE: Final = "Keep the count in one file."
_MOST_NODES: Final = 1024
"""The kernel's MAX_NUMNODES: a node beyond has no file."""
_Writes = list[tuple[int, PoolFact]]
#: What writes counts after the command line, in the order of a boot, and what its files together write.
_LATER: Final[Mapping[str, Callable[[_Writes], _Writes]]] = {
    sysctl.KIND: sysctl.written,
    tmpfiles.KIND: tmpfiles.written,
    systemd_unit.KIND: list,
}


def boot_name(name: str) -> str:
    """The name by which systemd sorts a file: without its folders; /etc/sysctl.conf is linked as 99-sysctl.conf."""
    last = name.rsplit("/", 1)[-1]
    return {"sysctl.conf": "99-sysctl.conf"}.get(last, last)


def hugetlb_pool_bytes(
    names: Sequence[str], files: Sequence[Sequence[Reading]], found: Sequence[Notes], context: Context
) -> dict[int, int]:
    """Bytes with which a boot with these files ends on one node, by page size.

    Command lines and files of platforms are ways to one count: the largest, not their sum. Counts of different NUMA
    nodes add up. Then sysctl.d, tmpfiles.d and units write; a file that replaces another's count gets a problem.
    """
    default = context.default_page_bytes or context.pmd_bytes
    held: dict[int, Mapping[int | None, int]] = {}
    by_file: dict[int, int] = {}
    writes: dict[str, list[tuple[str, int, list[PoolFact]]]] = {kind: [] for kind in _LATER}
    for i, readings in enumerate(files):
        own: dict[int, dict[int | None, int]] = {}
        for reading in readings:
            facts = [fact for fact in reading.facts if isinstance(fact, PoolFact)]
            if reading.kind in _LATER:
                writes[reading.kind].append((boot_name(names[i]), i, facts))
                continue
            for fact in facts:
                by_node = own.setdefault(fact.page_bytes or default, {})
                by_node[fact.numa_node] = by_node.get(fact.numa_node, 0) + (fact.pages or 0)
        for size, by_node in own.items():
            if sum(by_node.values()) >= sum(held.get(size, {}).values()):
                held[size], by_file[size] = by_node, i
    every = (f.numa_node for one in writes.values() for *_, facts in one for f in facts if f.numa_node is not None)
    nodes = context.numa_nodes or sorted({0, *(numa for numa in every if numa < _MOST_NODES)})
    for kind, of_kind in writes.items():
        of_kind.sort(key=lambda one: one[:2])
        held = _after_files(
            kind, of_kind, held, by_file=by_file, names=names, found=found, default=default, nodes=nodes
        )
    return {size: size * sum(by_node.values()) for size, by_node in held.items()}


def _after_files(
    kind: str,
    files: Sequence[tuple[str, int, Sequence[PoolFact]]],
    before: Mapping[int, Mapping[int | None, int]],
    *,
    by_file: dict[int, int],
    names: Sequence[str],
    found: Sequence[Notes],
    default: int,
    nodes: Sequence[int],
) -> dict[int, Mapping[int | None, int]]:
    """Pages by size and node once these files of one kind have written; ``by_file`` is the last that did."""
    written, held = _LATER[kind], dict(before)
    keys = set[str]()
    for _, i, facts in files:
        if default in by_file and keys.intersection(f.key for f in facts if f.pages is None):
            said = f"{names[i]} is read after {names[by_file[default]]}: it replaces the count and writes none."
            found[i].problem(SHRUNK, 0, f"pages of {page_label(default)}", said, _ONE_FILE)
            held[default] = before.get(default, {})
        for size, counts in _by_size(written([(i, fact) for fact in facts]), default).items():
            earlier = sum(held[size].values()) if size in held else None
            held[size] = after_writes(held.get(size, {}), counts, nodes)
            later, is_total = sum(held[size].values()), None in dict(counts)
            if earlier is not None and (later < earlier or (later > earlier and is_total)):
                less = 2 * later <= earlier
                said = f"{names[i]} is read after {names[by_file[size]]}: {later} replaces {earlier}" + (
                    ", so what was sized for the larger count does not get its pages." if less else "."
                )
                found[i].problem(SHRUNK if less else TWICE_SET, 0, f"pages of {page_label(size)}", said, _ONE_FILE)
            by_file[size] = i
        keys.update(fact.key for fact in facts if fact.pages is not None)
    ends = _by_size(written([(i, fact) for _, i, facts in files for fact in facts]), default)
    return {**before, **{size: after_writes(before.get(size, {}), own, nodes) for size, own in ends.items()}}


def _by_size(writes: _Writes, default: int) -> dict[int, list[tuple[int | None, int]]]:
    """NUMA nodes and counts, in the order of the writes, by page size."""
    by_size: dict[int, list[tuple[int | None, int]]] = {}
    for _, fact in writes:
        by_size.setdefault(fact.page_bytes or default, []).append((fact.numa_node, fact.pages or 0))
    return by_size


def limits_against_pools(
    limits: Sequence[tuple[int, LimitFact]], by_size: Mapping[int, int], found: list[Notes]
) -> None:
    if not by_size:
        return
    for file, limit in limits:
        for size, count in limit.hugepages:
            if count > by_size.get(size, 0):
                said = (
                    f"{limit.name} asks for {format_bytes(count)} of {page_label(size)}; the pool holds "
                    f"{format_bytes(by_size.get(size, 0))}."
                )
                fix = f"Reserve {counted_pages(-(-count // size), size)} or more on the node."
                found[file].problem(ABOVE_POOL, limit.position, limit.name, said, fix)
    for size, total in _asked_bytes([limit for _, limit in limits]).items():
        if by_size.get(size, 0) < total and not any(p.rule is ABOVE_POOL for notes in found for p in notes.problems):
            file, limit = next((f, item) for f, item in limits if any(s == size for s, _ in item.hugepages))
            said = (
                f"All pods together ask for {format_bytes(total)} of {page_label(size)}; one node reserves "
                f"{format_bytes(by_size.get(size, 0))}."
            )
            fix = "Reserve more, or spread the pods over nodes."
            found[file].problem(SUM_ABOVE_POOL, limit.position, limit.name, said, fix)


def _asked_bytes(limits: Sequence[LimitFact]) -> dict[int, int]:
    """Bytes that all pods ask for, by page size.

    Objects of one name and several kinds are ways to run the same database, such as a StatefulSet and an operator's
    custom resource: the largest, not their sum. A fragment ("the patch") is of some object, so it adds nothing.
    """
    by_object: dict[tuple[int, str], dict[str, int]] = {}
    for limit in sorted(limits, key=lambda one: one.is_whole_pod):
        kind, _, name = limit.name.partition(",")[0].rpartition(" ")
        for size, count in limit.hugepages:
            kinds = by_object.setdefault((size, name), {})
            own = count * (limit.replicas if limit.replicas is not None else 1)
            # A pod's own limit replaces the sum of its containers'.
            kinds[kind] = own if limit.is_whole_pod else kinds.get(kind, 0) + own
    named: dict[int, int] = {}
    fragments: dict[int, int] = {}
    for (size, _), kinds in by_object.items():
        largest = max(kinds.values())
        if "the" in kinds:
            fragments[size] = max(fragments.get(size, 0), largest)
        else:
            named[size] = named.get(size, 0) + largest
    return {size: max(named.get(size, 0), fragments.get(size, 0)) for size in {**named, **fragments}}


def without_limit(
    files: Sequence[Sequence[Reading]], limits: Limits, pools: Mapping[int, int], found: list[Notes]
) -> None:
    """PostgreSQL containers without a huge page limit beside a pool, where nothing was said of them yet."""
    if not any(pools.values()):
        return
    engines = [f for readings in files for r in readings for f in r.facts if isinstance(f, EngineFact)]
    off = (limits.container_of(f) for f in engines if f.engine == "postgresql" and is_off(f))
    switched_off = {id(beside[1]) for beside in off if beside is not None}
    said = {(file, p.subject) for file, notes in enumerate(found) for p in notes.problems if p.rule is MISSING}
    for file, limit in limits.items:
        if not limit.tries_pages_first or limit.hugepages or limits.of_whole_pod(limit):
            continue
        if (file, limit.name) in said:
            continue
        is_switched_off = id(limit) in switched_off
        then = (
            "; later starts use base pages, as huge_pages = off says."
            if is_switched_off
            else "; where it limits reservations, the server runs on base pages and nothing says so."
        )
        size = max(pools, key=lambda each: pools[each])
        found[file].problem(
            INITDB if is_switched_off else NO_LIMIT_ON_POOL,
            limit.position,
            limit.name,
            f"{limit.name} has no huge page limit on nodes with a pool of {format_bytes(pools[size])}. "
            "Where the container runtime limits use only, the first start (initdb) ends with a Bus error" + then,
            f"Write {kubernetes_resource_name(size)} under limits, with room for the shared memory, or keep "
            "the pod off nodes with a pool.",
        )

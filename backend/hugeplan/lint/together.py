"""Files beside each other: a segment against its pod's limit, limits against pools, pools against kubelets."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from hugeplan.lint.engines_beside import Limits, asks_for_pages, check_engine, engines_against_pools
from hugeplan.lint.model import (
    Context,
    DefaultSizeFact,
    EngineFact,
    KubeletFact,
    LimitFact,
    MemlockFact,
    Notes,
    Problem,
    Reading,
    attention,
)
from hugeplan.lint.pools_beside import hugetlb_pool_bytes, limits_against_pools, without_limit
from hugeplan.planner.demand.engines.mysql import MMAP_SINCE
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.units import format_bytes, format_kubernetes_bytes, parse_mysql_bytes

PHANTOM: Final = attention(
    "kubelet-phantom-eviction",
    "The kubelet's memory.available counts idle and used huge pages as free, so "
    "eviction starts late by the whole pool.",
    "kubernetes#137984; feature gate HugepageAwareEviction (#138127)",
)

TWICE: Final = attention(
    "kubelet-eviction-takes-the-pool-twice",
    "evictionHard is subtracted from allocatable memory, which lacks the pools already; evictionSoft is not.",
    "kubernetes pkg/kubelet/nodestatus/setters.go; pkg/kubelet/cm/node_container_manager_linux.go",
)

MEMLOCK: Final = attention(
    "memlock-below-buffer-pool",
    f"MySQL before {'.'.join(map(str, MMAP_SINCE))} maps the buffer pool with shmget(SHM_HUGETLB), and every release "
    "the MyISAM key buffer: without a limit of locked memory above them it falls back to base pages.",
    "MySQL Reference Manual, Large Page Support: memlock; mm/hugetlb.c hugetlb_file_setup()",
)


def default_size(files: Sequence[Sequence[Reading]], context: Context) -> Context:
    """The context with the default page size that a command line among the files names, where they agree on one."""
    named = {f.page_bytes for readings in files for r in readings for f in r.facts if isinstance(f, DefaultSizeFact)}
    if context.default_page_bytes is not None or len(named) != 1:
        return context
    return replace(context, default_page_bytes=named.pop())


def together(names: Sequence[str], files: Sequence[Sequence[Reading]], context: Context) -> list[tuple[Problem, ...]]:
    """Problems that only several parts show, one list per file. ``names`` are the files', in the same order."""
    found = [Notes() for _ in files]
    facts = [(i, fact) for i, readings in enumerate(files) for r in readings for fact in r.facts]
    limits = [(i, fact) for i, fact in facts if isinstance(fact, LimitFact)]
    pools = hugetlb_pool_bytes(names, files, found, context)
    if limits:
        beside = Limits(limits)
        for i, fact in facts:
            if isinstance(fact, EngineFact):
                check_engine(i, fact, beside, found, context)
        limits_against_pools(limits, pools, found)
        without_limit(files, beside, pools, found)
    else:
        engines_against_pools(facts, pools, found, context)
    buffers = _largest_buffers([fact for _, fact in facts if isinstance(fact, EngineFact)])
    for i, fact in facts:
        if isinstance(fact, MemlockFact):
            _memlock(i, fact, buffers, found)
        if isinstance(fact, KubeletFact):
            _kubelet(i, fact, sum(pools.values()), found)
    return [tuple(notes.problems) for notes in found]


def _largest_buffers(engines: Sequence[EngineFact]) -> int:
    """Bytes of the largest buffer pool of a MySQL with large pages; 0 without one."""
    largest = 0
    for engine in engines:
        if engine.engine != "mysql" or asks_for_pages(engine) is not True:
            continue
        pool = dict(engine.settings).get("innodb_buffer_pool_size", "128M")
        with suppress(PlannerError):  # the unit is a problem already
            largest = max(largest, parse_mysql_bytes(pool, "innodb_buffer_pool_size"))
    return largest


def _memlock(file: int, fact: MemlockFact, buffers: int, found: list[Notes]) -> None:
    """A limit of locked memory beside a my.cnf with large pages; of another user it says nothing."""
    if fact.owner not in {"the service", "*", "mysql", "@mysql"} or fact.limit_bytes >= buffers:
        return
    said = f"{fact.owner} may lock {format_bytes(fact.limit_bytes)}, below the buffer pool of {format_bytes(buffers)}."
    fix = "Write LimitMEMLOCK=infinity, or memlock unlimited."
    found[file].problem(MEMLOCK, fact.position, fact.owner, said, fix)


def _kubelet(file: int, fact: KubeletFact, pools_bytes: int, found: list[Notes]) -> None:
    hard = fact.eviction_hard_bytes
    if not pools_bytes or hard is None:
        return
    position = fact.position if fact.eviction_edit is None else fact.eviction_edit[0]
    if hard >= pools_bytes:
        said = (
            f"evictionHard is {format_bytes(hard)}, not below the pools of {format_bytes(pools_bytes)}: "
            "allocatable memory lacks the pools already, and loses this as well."
        )
        fix = "Write this threshold as evictionSoft with a grace period, and a small evictionHard."
        found[file].problem(TWICE, position, "evictionHard", said, fix)
    elif (fact.eviction_soft_bytes or 0) < pools_bytes:
        found[file].problem(
            PHANTOM,
            position,
            "evictionHard",
            f"memory.available is {format_bytes(pools_bytes)} too high beside these pools, and "
            f"evictionHard is {format_bytes(hard)}.",
            "Add evictionSoft with memory.available: "
            f"{format_kubernetes_bytes(hard + pools_bytes)} and a grace period.",
        )

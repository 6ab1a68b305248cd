"""Rules that read what only a report has, one function per rule."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.fleet.findings.base import NodeFinding, Observed, attention, idle_pages_by_size, pages_by_size, wrong
from hugeplan.fleet.observation import observed_database
from hugeplan.planner.errors import shown_value
from hugeplan.planner.findings.container_limits import silent_fallback as refused_by_limit
from hugeplan.planner.model import GIB, MIB
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

_LEAST_SEGMENT_BYTES = 64 * MIB
LEAST_AVAILABLE_FRACTION = 0.03
LEAST_IDLE_BYTES = GIB
LEAST_IDLE_FRACTION = 0.2
_PAGE_2M = 2 * MIB
LEAST_AHEAD_SECONDS = 60.0
_WHY = (
    ("dropped_size", "the spool was full"),
    ("dropped_age", "they were too old"),
    ("dropped_disk_full", "the disk was full"),
    ("dropped_rejected", "too many were refused"),
)


def silent_fallback(observed: Observed) -> Iterable[NodeFinding]:
    """A database uses no huge pages: beside idle ones it started too early or never asked, or there are none for it.

    Each database with a segment of 64 MiB outside huge page pools, unless a limit keeps it from them; without pages for
    it, from 1 GiB.
    """
    default = observed.inventory.default_huge_page_bytes
    idle = {size: pages * size for size, pages in idle_pages_by_size(observed.sample).items() if pages}
    for database in observed.sample.databases or ():
        if database.huge_pages_status not in {"off", "partial"}:
            continue
        if default is not None and refused_by_limit(observed_database(database), default):
            continue  # a rule over the sample says so
        segment = max((part.bytes or 0 for part in database.segments if part.backing != "hugetlb"), default=0)
        if segment < _LEAST_SEGMENT_BYTES:
            continue
        fitting = [size for size, free in idle.items() if free >= segment]
        lies = f"{database.engine} has {format_bytes(segment)} outside huge page pools"
        if not fitting:
            reason = f"{lies}, and no pool has as much free."
            fix = "Plan the node: the plan says which pages it needs and what they buy."
            if database.huge_pages_status == "partial":
                yield wrong("fallback_to_base_pages", database.key, "A part of it uses no huge page pool", reason, fix)
            elif segment >= LEAST_IDLE_BYTES:
                yield attention("fallback_to_base_pages", database.key, "It uses no huge page pool", reason, fix)
            continue
        size = max(fitting)
        yield wrong(
            "silent_fallback",
            database.key,
            "It runs on base pages beside an idle pool",
            f"{lies}, while {format_bytes(idle[size])} of {page_label(size)} pages are free.",
            "Restart it: it takes huge pages only when it starts. Set huge_pages=on (or the engine's equivalent) so "
            "that it refuses to start without them.",
        )


def memory_low(observed: Observed) -> Iterable[NodeFinding]:
    """Ordinary memory is nearly used up while pools hold pages.

    MemAvailable below 3 % of MemTotal.
    """
    memory = observed.sample.memory
    available, total = memory.mem_available_bytes, memory.mem_total_bytes
    if available is None or available >= LEAST_AVAILABLE_FRACTION * total:
        return
    pools = f", {format_bytes(memory.hugetlb_bytes)} are in huge page pools" if memory.hugetlb_bytes else ""
    reason = (
        f"{format_bytes(available)} of {format_bytes(total)} are available{pools}. "
        "Pages in a pool cannot be used for anything else."
    )
    fix = "Give idle huge pages back, or move workloads to another node."
    yield wrong("memory_low", observed.name, "Ordinary memory is nearly used up", reason, fix)


def pool_idle(observed: Observed) -> Iterable[NodeFinding]:
    """A large part of a pool that nothing uses: memory that nothing else on the node can use.

    Each page size of which a fifth and at least 1 GiB is idle.
    """
    total = pages_by_size(observed.sample)
    for size, pages in idle_pages_by_size(observed.sample).items():
        if pages is None or pages * size < LEAST_IDLE_BYTES or pages < LEAST_IDLE_FRACTION * total[size]:
            continue
        reason = (
            f"{pages:,} of {total[size]:,} pages of {page_label(size)} are neither used nor reserved: "
            f"{format_bytes(pages * size)} that nothing else on the node can use."
        )
        fix = "Give the pages back, or start what they were reserved for."
        yield attention("pool_idle", f"{page_label(size)} pool", "A large part of the pool is idle", reason, fix)


def surplus_pages(observed: Observed) -> Iterable[NodeFinding]:
    """Pages taken above the pool: they go when they are freed, and the next start may not get them.

    Each page size with surplus pages in use.
    """
    for pool in observed.sample.global_pools:
        if pool.surplus_hugepages:
            size = page_label(pool.page_bytes)
            reason = (
                f"{pool.surplus_hugepages:,} pages of {size} were taken above nr_hugepages (nr_overcommit_hugepages). "
                "They are freed with their last user, and fragmentation may keep the next start from getting them."
            )
            fix = "Reserve the pages with nr_hugepages, best at boot."
            yield attention("surplus_pages", f"{size} pool", "It lives on surplus pages", reason, fix)


def fractured_guest(observed: Observed) -> Iterable[NodeFinding]:
    """The hypervisor backs the guest's 2M pages with smaller ones, so they reach no further in the TLB.

    The effective page size of 2M pages, where a run measured it.
    """
    granule = observed.effective_granule_bytes
    if granule is not None and granule < _PAGE_2M:
        reason = (
            f"One TLB entry covers {page_label(granule)} of a 2M page here: the hypervisor backs the guest's "
            "memory with smaller pages. Huge pages then shorten the page walk and give no more TLB reach."
        )
        fix = "Ask for a machine type whose memory is backed by huge pages, or let the host's operator back it so."
        yield attention("fractured_guest", observed.name, "Its 2M pages are backed by smaller ones", reason, fix)


def clock_ahead(observed: Observed) -> Iterable[NodeFinding]:
    """The node's clock is ahead of the server's, so its times are taken from the arrival instead.

    A report that claims to be from the future, by more than a minute.
    """
    ahead = observed.clock_ahead_seconds
    if ahead is not None and ahead >= LEAST_AHEAD_SECONDS:
        reason = (
            f"The newest report was dated {ahead:.0f} s after its arrival. Its samples are kept under their arrival."
        )
        yield attention("clock_ahead", observed.name, "Its clock is ahead", reason, "Set the clock of the node (NTP).")


def cloned_machine_id(observed: Observed) -> Iterable[NodeFinding]:
    """Two machines report under one machine id: a disk image was cloned with its id in it.

    Told by firmware ids, hardware addresses, or boots that take turns (hugeplan.access.machines).
    """
    if observed.shares_machine_id:
        reason = "Two machines report under one machine id. Their hardware or their boots tell them apart."
        fix = "Give each clone a machine id of its own (empty /etc/machine-id in the image), then enrol it."
        yield attention("cloned_machine_id", observed.name, "Another machine has its machine id", reason, fix)


def name_of_another(observed: Observed) -> Iterable[NodeFinding]:
    """Another node has the name that this machine reports, so this one is shown by its machine id and gets no files.

    A name is the machine's that reported it first, until that is silent for a day; a machine that was enrolled with
    ``--name-pattern`` has only names of that pattern (hugeplan.fleet.ingest.names).
    """
    if observed.said_name not in {None, observed.name}:
        reason = (
            f"It reports the name {shown_value(str(observed.said_name))}, which another node has or its enrolment does"
            " not allow. No file is made for it."
        )
        fix = (
            "Where two machines have one name, give this one its own (node_name in the agent's configuration). Where "
            "it took the place of the other, delete that node, or wait until it has been silent for a day."
        )
        yield attention("name_of_another", observed.name, "It reports a name that is not its own", reason, fix)


def reports_lost(observed: Observed) -> Iterable[NodeFinding]:
    """Reports that the agent gave up: the history has gaps.

    Any report dropped or refused since the agent's spool was made.
    """
    spool = observed.spool
    if spool is None:
        return
    parts = [f"{count} because {why}" for name, why in _WHY if (count := getattr(spool, name))]
    if spool.rejected:
        parts.append(f"{spool.rejected} were refused by the server and are kept on the node")
    if parts:
        reason = f"The agent gave up reports: {', '.join(parts)}. The history of the node has gaps."
        fix = "See the agent's log; give its spool more room, or let it reach the server."
        yield attention("reports_lost", observed.name, "Reports were lost", reason, fix)


def collectors_failed(observed: Observed) -> Iterable[NodeFinding]:
    """A part of the report that the agent could not read.

    The collectors that failed, together: what they would have said is unknown.
    """
    failed = [collector for collector in observed.collectors if collector.status == "failed"]
    if failed:
        first = f" ({failed[0].reason})" if failed[0].reason else ""
        reason = f"Failed: {', '.join(collector.name for collector in failed)}{first}. What they observe is unknown."
        fix = "See the log of the agent, or give it the rights that the reasons name."
        yield attention("collectors_failed", observed.name, "The agent could not read everything", reason, fix)

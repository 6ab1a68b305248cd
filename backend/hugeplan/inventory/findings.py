"""What is wrong with a node as a source shows it: one function and one row per rule. Of a plan its own rules speak."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hugeplan.inventory.model import FoundDatabase, FoundNode, Inventory
from hugeplan.planner.memory.kubernetes import pod_memory
from hugeplan.planner.model import Demand, Finding, Plan, Source, State, Term, named
from hugeplan.planner.pages import kubernetes_resource_name, page_label
from hugeplan.planner.units import format_bytes, format_kubernetes_bytes
from hugeplan.recognition.base import Recognised


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseNow:
    """A database as it is set today: its demand at the page size that it would take, None where none fits.

    ``wants_pages`` is whether it asks for huge pages at all; ``refuses_start`` whether it stops on a shortage.
    """

    found: FoundDatabase
    demand: Demand | None
    wants_pages: bool
    refuses_start: bool

    @property
    def needed_bytes(self) -> int:
        """Bytes of huge pages that its segment takes."""
        return 0 if self.demand is None else self.demand.pages * self.demand.page_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNow:
    """A node with its databases as they are set today.

    ``planned_bytes`` is what the node's own plan reserves for what it counts, by page size: without the pages that it
    keeps because nobody knows whether they are in use. ``pool_plan_bytes`` is what that plan
    reserves, slack included: the one count that every finding of the node tells to reserve. ``room_bytes`` is free
    beside it; None: it does not fit.
    """

    node: FoundNode
    databases: Sequence[DatabaseNow]
    planned_bytes: Mapping[int, int] = field(default_factory=dict)
    pool_plan_bytes: Mapping[int, int] = field(default_factory=dict)
    room_bytes: int | None = None

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.facts.name

    @property
    def hugetlb_pool_bytes(self) -> Mapping[int, int]:
        """Bytes in pools by page size, without empty ones."""
        return {size: held for size, held in (self.node.hugetlb_pool_bytes or {}).items() if held}

    def limited_bytes(self, page_bytes: int) -> int:
        """The sum of the pods' limits at a page size."""
        return sum(user.limit_bytes.get(page_bytes, 0) for user in self.node.huge_page_users)

    def pages_to_reserve(self, page_bytes: int, enough_bytes: int) -> str | None:
        """``Reserve 4,218 pages of 2M in all``: what is enough here, or the plan of the node where it reserves more.

        None where the node has no room for them.
        """
        planned = self.pool_plan_bytes.get(page_bytes, 0)
        if self.room_bytes is None or enough_bytes > planned + self.room_bytes:
            return None
        return f"Reserve {max(enough_bytes, planned) // page_bytes:,} pages of {page_label(page_bytes)} in all"


NO_ROOM: Final = "Lower limits, make a buffer pool smaller or move pods: the node has no room for so many pages."


def limits_stand(recognised: Recognised) -> str:
    """Where the container's limits are written, so that nothing undoes the edit: ``of container db, in ...``."""
    where = f", in {recognised.limits_in}" if recognised.limits_in else ""
    return f"of container {recognised.container}{where}"


Check = Callable[[NodeNow], Iterable[Finding]]


def finding(
    code: str,
    state: State,
    subject: str,
    title: str,
    reason: str,
    *,
    fix: str | None = None,
    **evidence: object,
) -> Finding:
    """A finding whose evidence is what the source says."""
    terms = tuple(Term(name.replace("_", " "), str(value), Source.GIVEN) for name, value in evidence.items())
    return Finding(code=code, state=state, subject=subject, title=title, reason=reason, fix=fix, evidence=terms)


def pool_short(now: NodeNow) -> Iterable[Finding]:
    """Pods may use more pages than the node has: the pool shrank after they were scheduled.

    One finding per page size whose pods' limits exceed what the node reports.
    """
    if now.node.hugetlb_pool_bytes is None:
        return
    for size in sorted({size for user in now.node.huge_page_users for size in user.limit_bytes}):
        held, limited = now.node.hugetlb_pool_bytes.get(size, 0), now.limited_bytes(size)
        if limited <= held:
            continue
        planned = now.pool_plan_bytes.get(size, 0 if now.pool_plan_bytes else limited)
        told = now.pages_to_reserve(size, planned)
        if told and planned < limited:
            told = f"{f'{told} with' if planned > held else 'Apply'} the plan's files, which lower limits,"
        users = named(user.subject for user in now.node.huge_page_users if user.limit_bytes.get(size))
        yield finding(
            "pool_below_limits",
            State.WRONG,
            now.name,
            f"Its pods have limits for {format_bytes(limited - held)} of {page_label(size)} pages too many",
            f"The limits of {users} sum to {format_bytes(limited)}, the node reports {format_bytes(held)}:"
            " the pool was made smaller after they were scheduled. What starts last finds too few pages.",
            fix=f"{told} and restart the kubelet." if told else NO_ROOM,
            reserved=format_bytes(held),
            limits=format_bytes(limited),
        )


def idle_pool(now: NodeNow) -> Iterable[Finding]:
    """Reserved pages that no pod may use: taken from the node and used by nothing.

    One finding per pool whose pages exceed the limits of all pods on the node.
    """
    if not now.node.pods_are_known:
        return
    for size, held in now.hugetlb_pool_bytes.items():
        limited = now.limited_bytes(size)
        # Databases that ask for them and lack the limit have a finding of their own, which tells them to take it.
        limited += sum(
            database.needed_bytes
            for database in now.databases
            if database.wants_pages
            and database.demand is not None
            and database.demand.page_bytes == size
            and not database.found.huge_pages_limit_bytes
        )
        # What the node's own plan gives to its databases is no pool to release either.
        limited = max(limited, now.planned_bytes.get(size, 0))
        idle = held - limited
        if idle < size:
            continue
        kept = now.pool_plan_bytes.get(size, 0) > limited
        whose = (
            "no pod has a limit for them" if not limited else f"pods may use or ask for {format_bytes(limited)} of them"
        )
        yield finding(
            "pool_idle",
            State.ATTENTION,
            now.name,
            f"{idle // size:,} reserved pages of {page_label(size)} cannot be used by any pod",
            f"{format_bytes(held)} are reserved in pages of {page_label(size)}; {whose}."
            " Processes outside pods are not seen here.",
            fix=f"Release them: reserve {limited // size:,} of {held // size:,} pages of {page_label(size)}. It "
            f"gives {format_bytes(idle)} back to pods. Or give databases a limit for them."
            + kept
            * " The plan keeps them, since nobody knows whether they are in use.",
            reserved=format_bytes(held),
            limits=format_bytes(limited),
        )


def fallback(now: NodeNow) -> Iterable[Finding]:
    """``huge_pages = try`` without pages to take, and ``on`` without them: a silent fallback, or no start.

    One finding per database that asks for pages which the node has not reserved.
    """
    if now.node.hugetlb_pool_bytes is None:
        return
    for database in now.databases:
        demand = database.demand
        if not database.wants_pages or demand is None:
            continue
        held = now.node.hugetlb_pool_bytes.get(demand.page_bytes, 0)
        others = now.limited_bytes(demand.page_bytes) - _own(database, demand.page_bytes)
        left = max(0, held - others)
        if left >= database.needed_bytes:
            continue
        label = page_label(demand.page_bytes)
        told = _told(now, database, demand.page_bytes, others)
        shortage = f"It needs {demand.pages:,} pages of {label}; the node has {held // demand.page_bytes:,} reserved"
        shortage += f", of which other pods may use {format_bytes(others)}." if others else "."
        if database.refuses_start:
            title = "It will not start here"
            reason = f"{shortage} With fewer it does not start."
            fix = f"{told}." if told else NO_ROOM
            yield finding("silent_fallback", State.WRONG, database.found.subject, title, reason, fix=fix)
        else:
            yield finding(
                "silent_fallback",
                State.ATTENTION,
                database.found.subject,
                "It silently falls back to base pages",
                f"{shortage} Its settings try huge pages and do without.",
                fix=f"{told}, then let the engine insist on them." if told else NO_ROOM,
            )


def _told(now: NodeNow, database: DatabaseNow, page_bytes: int, others_bytes: int) -> str | None:
    """The count that is enough for it and for all other pods, and the limit that it lacks. None: there is no room."""
    # The plan counts others as its patches leave them, which may be lower than they are.
    planned = now.pool_plan_bytes.get(page_bytes)
    if planned and now.room_bytes is not None and planned <= now.hugetlb_pool_bytes.get(page_bytes, 0):
        return f"Apply the plan's files to {now.name}: they lower the limits of other pods"
    text = now.pages_to_reserve(page_bytes, others_bytes + database.needed_bytes if planned is None else planned)
    if text is None:
        return None
    text += f" on {now.name}"
    # Where pages are reserved already, a missing limit has a finding of its own.
    if database.found.huge_pages_limit_bytes == {} and not now.hugetlb_pool_bytes:
        amount = f"{kubernetes_resource_name(page_bytes)}: {format_kubernetes_bytes(database.needed_bytes)}"
        text += f" and set {amount} as request and limit {limits_stand(database.found.recognised)}"
    return text


def _own(database: DatabaseNow, page_bytes: int) -> int:
    return (database.found.huge_pages_limit_bytes or {}).get(page_bytes, 0)


def no_mount(now: NodeNow) -> Iterable[Finding]:
    """A huge page limit without a HugePages volume: right for engines that map by a flag, useless for hugetlbfs users.

    One finding per pod that is not a known database, may use huge pages, and mounts no HugePages volume.
    """
    for user in now.node.huge_page_users:
        if user.is_database:
            continue  # PostgreSQL, MySQL, MariaDB and the JVM map with MAP_HUGETLB, Oracle and Db2 with shmget
        missing = [size for size, held in user.limit_bytes.items() if held and size not in user.hugetlbfs_mounts]
        if not missing:
            continue
        names = " and ".join(kubernetes_resource_name(size) for size in missing)
        title = f"It has a limit for {names} and mounts no volume of it"
        reason = (
            f"A program that opens files on hugetlbfs needs an emptyDir volume with a HugePages medium, and"
            f" {user.owner_kind or 'the pod'} mounts none. A program that maps with MAP_HUGETLB or shmget does not."
        )
        fix = "If the program uses hugetlbfs, add an emptyDir volume with the medium HugePages-SIZE and mount it."
        yield finding("huge_pages_without_mount", State.ATTENTION, user.subject, title, reason, fix=fix)


def not_scheduled(found: FoundDatabase) -> Iterable[Finding]:
    """A database that waits for a node with enough huge pages, or was refused by the kubelet for lack of them.

    One finding per database without a node; the scheduler's words are the reason.
    """
    reason = found.not_scheduled_because or "The input does not say why."
    huge = "hugepages-" in reason
    yield finding(
        "database_not_scheduled",
        State.WRONG if huge else State.ATTENTION,
        found.subject,
        "It does not run for lack of huge pages" if huge else "It has no node yet",
        reason if reason.endswith(".") else f"{reason}.",
        fix="Reserve its pages on a node that has room for them, and restart its kubelet." if huge else None,
    )


def requests_after_plan(node: FoundNode, plan: Plan) -> Iterable[Finding]:
    """Would the node's pods still be scheduled once the plan's pools have left allocatable memory?

    One per database that alone is too large, and at most one for the sum.

    A database's memory request may fall by its segment, which then lies in the pool.
    """
    yield from _pending(node, plan)
    if node.requested_bytes is None or plan.kubernetes is None:
        return
    moved = 0
    planned_by_name = {planned.name: planned for planned in plan.instances}
    for found in node.databases:
        planned = planned_by_name[found.instance.name]
        if planned.page_bytes is None:
            continue
        already = sum((found.huge_pages_limit_bytes or {}).values())
        segment = max(0, planned.demand.segment_bytes - already)
        moved += min(segment, found.memory_request_bytes or 0)
    left = node.requested_bytes - moved
    offered = plan.kubernetes.allocatable["memory"]
    if left <= offered:
        return
    mend = "Move pods or a database to another node, or make a buffer pool smaller."
    spare = _spare_bytes(node, plan)
    if spare >= left - offered:
        mend = (
            f"Release {format_bytes(spare)} of pages that no pod can use: it is enough. Else move pods to another node."
        )
    yield finding(
        "requests_exceed_allocatable",
        State.WRONG,
        node.facts.name,
        f"Its pods' memory requests exceed what is left by {format_bytes(left - offered)}",
        f"Requests of {format_bytes(left)} remain after the databases' requests fall by {format_bytes(moved)} that move"
        f" into the pool; allocatable memory becomes {format_bytes(offered)}. Some pods would have to leave.",
        fix=mend,
        requests=format_bytes(left),
        allocatable=format_bytes(offered),
    )


def _spare_bytes(node: FoundNode, plan: Plan) -> int:
    """What the pools hold beyond all limits of pods and beyond what the plan gives to databases."""
    spare, names = 0, {found.instance.name for found in node.databases}  # other instances are limits themselves
    for size, held in (node.hugetlb_pool_bytes or {}).items():
        limited = sum(user.limit_bytes.get(size, 0) for user in node.huge_page_users)
        planned = sum(one.demand.pages * size for one in plan.instances if one.page_bytes == size and one.name in names)
        spare += max(0, held - limited - planned)
    return spare


def _pending(node: FoundNode, plan: Plan) -> Iterable[Finding]:
    """Databases whose patched request alone is more than what the node will offer: they stay Pending."""
    if plan.kubernetes is None:
        return
    offered = plan.kubernetes.allocatable["memory"]
    planned_by_name = {planned.name: planned for planned in plan.instances}
    for found in node.databases:
        planned = planned_by_name[found.instance.name]
        memory = pod_memory(plan, found.instance, planned) if planned.page_bytes is not None else None
        own = found.memory_request_bytes if memory is None else memory.request_bytes
        if own is None:
            continue
        # The scheduler counts the whole pod: sidecars and overhead too.
        request = own + (found.beside_request_bytes or 0)
        if request <= offered:
            continue
        yield finding(
            "patched_pod_stays_pending",
            State.WRONG,
            found.subject,
            f"Its request of {format_bytes(request)} is more than the {format_bytes(offered)} that {node.facts.name}"
            " will offer",
            "Allocatable memory falls by the pools, so the pod stays Pending after it is patched"
            f" ({memory.why if memory else 'it gets no huge pages'}).",
            fix="Lower its memory request, make its buffer pool smaller, or plan it for a larger node.",
            request=format_bytes(request),
            allocatable=format_bytes(offered),
        )


#: Rules about a node as it is.
RULES: Final[tuple[Check, ...]] = (pool_short, idle_pool, fallback, no_mount)


def findings_of_node(now: NodeNow) -> tuple[Finding, ...]:
    """All findings about a node as it is."""
    return tuple(found for rule in RULES for found in rule(now))


def findings_of_inventory(inventory: Inventory) -> tuple[Finding, ...]:
    """Findings about databases that have no node."""
    return tuple(found for database in inventory.not_scheduled for found in not_scheduled(database))

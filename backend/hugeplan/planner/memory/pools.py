"""From demands to pools: pages of each size on each NUMA node, with slack.

Pages of an instance bound to a NUMA node are reserved there. An unbound instance's pages are spread evenly, as the
kernel spreads ``nr_hugepages``, and move to another node where one has no room: the plan then names the counts per
node, because the kernel would do the same silently (Documentation/admin-guide/mm/hugetlbpage.rst).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hugeplan.planner.model import MIB, Demand, Explanation, NodeFacts, NumaNode, Policy, PoolPlan, Source, Term
from hugeplan.planner.observation.pools import PoolKey
from hugeplan.planner.observation.start import PagesInUse
from hugeplan.planner.pages import ceil_pages, split_exactly

#: The policy's least slack in pages is meant for small pages; from here on a whole page of slack is too dear.
LEAST_SLACK_PAGE_BYTES_MAX = 32 * MIB


@dataclass(frozen=True, slots=True)
class NumaPlacement:
    """Pages of one instance on each NUMA node, and its slack before rounding (bytes on each node).

    ``uncertain_on``: the NUMA node whose pool needs a page more for the error bound of the instance's rule.
    ``is_limit``: the instance is a limit, which gets no slack.
    """

    page_bytes: int
    pages: Mapping[int, int]
    slack_bytes: Mapping[int, int]
    uncertain_on: int | None = None
    is_limit: bool = False

    def spare_bytes(self, numa_node: int) -> int:
        """What one NUMA node holds beside the demand: slack, or a page for the error bound."""
        return max(self.slack_bytes.get(numa_node, 0), self.page_bytes if numa_node == self.uncertain_on else 0)


def slack_bytes(demand: Demand, policy: Policy) -> int:
    """Slack that one instance asks for: the policy's share of its segments.

    A single mapping's rounding waste counts as slack, because growth of the mapping fills it first.
    """
    share = 0 if demand.is_limit else int(demand.segment_bytes * policy.slack_fraction)
    single = len(demand.segments) == 1 and demand.segments[0].count == 1
    return max(0, share - demand.waste_bytes) if single else share


def least_slack_pages(page_bytes: int, policy: Policy) -> int:
    """The policy's least slack for a pool of this size; none for sizes where one page is more than 32 MiB."""
    return policy.slack_min_pages if page_bytes <= LEAST_SLACK_PAGE_BYTES_MAX else 0


def pool_slack_pages(slack: int, page_bytes: int, policy: Policy, *, uncertain: bool) -> int:
    """Slack of a pool with demand: bytes rounded up to whole pages, at least the policy's least.

    An error bound is not slack: it would lock a page per chunk of 1 GiB. The pool gets at least one page for the
    bounds of all its rules together, and the finding ``count_uncertain`` names what may be short.
    """
    return max(ceil_pages(slack, page_bytes), least_slack_pages(page_bytes, policy), int(uncertain))


def most_slack_pages(demand: Demand, nodes: int, policy: Policy) -> int:
    """The most slack that one instance can add to the pools of ``nodes`` NUMA nodes, rounding included."""
    least = 0 if demand.is_limit else least_slack_pages(demand.page_bytes, policy)
    share = ceil_pages(slack_bytes(demand, policy), demand.page_bytes)
    return max(share + nodes - 1 if share else 0, least * nodes, int(demand.error_pages > 0))


def most_idle_bytes(demand: Demand, nodes: int, policy: Policy) -> int:
    """The most that slack and the rest of the last page come to for a mapping of about this size.

    How full the last page is follows from the last per cent of a setting; a choice that rests on it turns with it.
    """
    share = int(demand.segment_bytes * policy.slack_fraction)
    return share + demand.page_bytes * (nodes if share else 1)


def spread_pages(pages: int, page_bytes: int, numa: Sequence[NumaNode], *rooms: Mapping[int, int]) -> dict[int, int]:
    """Pages by NUMA node: even, each node capped by its room, what is left over where room is.

    ``rooms``: the room that should be enough, then what there is. When no node has room for the rest, it is spread
    evenly anyway: the ledger then shows the shortage.
    """
    placed = {n.id: 0 for n in numa}
    left = pages
    for room in rooms:
        caps = {n.id: max(0, room[n.id]) // page_bytes for n in numa}
        open_nodes = [n.id for n in numa if placed[n.id] < caps[n.id]]
        while left and open_nodes:
            share, odd = divmod(left, len(open_nodes))
            for position, numa_id in enumerate(open_nodes):
                take = min(share + (position < odd), caps[numa_id] - placed[numa_id])
                placed[numa_id] += take
                left -= take
            open_nodes = [i for i in open_nodes if placed[i] < caps[i]]
    share, odd = divmod(left, len(numa))
    for position, n in enumerate(numa):
        placed[n.id] += share + (position < odd)
    return placed


def place_pages(
    demand: Demand, within: Sequence[int], node: NodeFacts, policy: Policy, rooms: Sequence[Mapping[int, int]]
) -> NumaPlacement:
    """Where the pages of one instance go: ``within`` these NUMA nodes, or anywhere where it is empty.

    ``rooms`` as in :func:`spread_pages`, before the instance's slack.
    """
    slack = slack_bytes(demand, policy)
    near, every = ([n for n in numa if n.id in within] for numa in (node.near_numa, node.numa))
    held = most_slack_pages(demand, 1, policy) * demand.page_bytes
    without_slack = [{i: size - held for i, size in room.items()} for room in rooms]
    pages = spread_pages(demand.pages, demand.page_bytes, near or every or node.near_numa, *without_slack)
    shares = {i: slack * count // demand.pages if demand.pages else 0 for i, count in pages.items()}
    most = max(pages, key=lambda i: pages[i])
    if demand.pages:
        shares[most] += slack - sum(shares.values())
    return NumaPlacement(demand.page_bytes, pages, shares, most if demand.error_pages else None, demand.is_limit)


def held_pages(in_use: PagesInUse, own_demand: Mapping[int, int]) -> dict[PoolKey, int]:
    """Huge pages in use by what the scenario does not describe, by (NUMA node, page size). No plan gives them away.

    A running server's pages are within the NUMA nodes that it may allocate from, wherever reserved ones were counted.
    What else is in use counts as others' unless it is known to be a described database's. ``own_demand``: pages that
    the scenario's databases will want, by page size; of a pool whose free count is not known they may use what is
    there.
    """
    held: Counter[PoolKey] = Counter()
    for size in {size for _, size in in_use.pools}:
        of_size = {numa_id: state for (numa_id, page), state in in_use.pools.items() if page == size}
        left = Counter({numa_id: state.kept for numa_id, state in of_size.items()})
        servers = [server for server in in_use.servers if server.page_bytes == size]
        total = own = sum(server.pages for server in servers if server.is_own)
        counted_elsewhere = 0
        # Those with the fewest NUMA nodes first: what they leave is the others'.
        for server in sorted(servers, key=lambda one: (len(one.numa_nodes) or len(of_size), one.is_own)):
            if server.is_own and not server.numa_nodes:
                continue
            nodes = server.numa_nodes or tuple(of_size)
            there = [left[i] for i in nodes]
            found = min(server.pages, sum(there))
            lacks = server.pages - found
            left.subtract(dict(zip(nodes, split_exactly(found, there), strict=True)))
            if server.is_own:
                own -= found
                continue
            counted_elsewhere += lacks
            pools = [of_size[i].pages if i in of_size else 0 for i in nodes]
            for shares in (split_exactly(found, there), split_exactly(lacks, pools)):
                held.update({(i, size): pages for i, pages in zip(nodes, shares, strict=True)})
        for is_known, mine in ((True, own), (False, max(0, own_demand.get(size, 0) - (total - own)))):
            rest = {i: left[i] for i, state in of_size.items() if (state.in_use is not None) is is_known}
            others = max(0, sum(rest.values()) - mine - counted_elsewhere)
            shares = split_exactly(others, list(rest.values())) if rest else ()
            held.update({(i, size): pages for i, pages in zip(rest, shares, strict=True)})
    return {key: pages for key, pages in held.items() if pages}


def pool_plans(
    placed: Sequence[NumaPlacement],
    node: NodeFacts,
    policy: Policy,
    in_use: PagesInUse,
    *,
    keep_present: bool = False,
) -> tuple[PoolPlan, ...]:
    """Pools by NUMA node and size: every size with demand, and every pool that the node has today.

    Pages that what the scenario does not describe maps or has reserved stay; only free and unreserved ones are
    released. ``keep_present``: nothing is released, because the scenario asks for nothing.
    """
    demand: dict[tuple[int, int], int] = {}
    slack: dict[tuple[int, int], int] = {}
    uncertain = {(item.uncertain_on, item.page_bytes) for item in placed}
    grows = {(i, item.page_bytes) for item in placed if not item.is_limit for i, pages in item.pages.items() if pages}
    for item in placed:
        for numa_id, pages in item.pages.items():
            key = (numa_id, item.page_bytes)
            demand[key] = demand.get(key, 0) + pages
            slack[key] = slack.get(key, 0) + item.slack_bytes.get(numa_id, 0)
    present = {key: state.pages for key, state in in_use.pools.items()}
    sizes = {page_bytes for _, page_bytes in demand}
    own = {size: sum(pages for (_, page), pages in demand.items() if page == size) for size in sizes}
    held = held_pages(in_use, own)
    named = held_pages(in_use, dict.fromkeys(sizes, sum(present.values())))
    keys = {key for key, pages in demand.items() if pages} | {key for key, pages in present.items() if pages}
    plans = []
    for numa_id, page_bytes in sorted(keys):
        key = (numa_id, page_bytes)
        wanted, others = demand.get(key, 0), held.get(key, 0)
        extra = pool_slack_pages(slack[key], page_bytes, policy, uncertain=key in uncertain) if key in grows else 0
        if keep_present:
            others = min(others, present.get(key, 0))
            extra = present.get(key, 0) - others
        elif key in in_use.pools and in_use.pools[key].in_use is None:
            # Whether any page is in use is not known: none is released, and the databases may use what is there.
            others = max(named.get(key, 0), in_use.pools[key].pages - wanted - extra)
        plans.append(
            PoolPlan(
                numa_node=numa_id,
                page_bytes=page_bytes,
                demand_pages=wanted + others,
                slack_pages=extra,
                pages=wanted + others + extra,
                present_pages=_present(node, present, numa_id, page_bytes),
                explanation=_explanation(wanted, others, slack.get(key, 0), page_bytes, policy),
                held_pages=others,
                held_by=in_use.holders.get(page_bytes, ()) if others else (),
                surplus_pages=_surplus_pages(node, key),
            )
        )
    return tuple(plans)


def _explanation(demand: int, held: int, slack: int, page_bytes: int, policy: Policy) -> Explanation:
    least = least_slack_pages(page_bytes, policy)
    others = (Term("held by others", f"{held:,} pages", Source.MEASURED),) if held else ()
    return Explanation(
        f"pages = demand + {'held by others + ' if held else ''}max(ceil(slack / page), least slack)",
        (
            Term("demand", f"{demand:,} pages", Source.COMPUTED),
            *others,
            Term("slack", f"{slack} bytes: {policy.slack_fraction:.4g} of the segments", Source.GIVEN),
            Term("least slack", f"{least:,} pages", Source.GIVEN),
        ),
        "policy of the scenario; the demand's own rule is with each instance",
    )


def present_pages(node: NodeFacts) -> dict[tuple[int, int], int]:
    """Allocated pages today by (NUMA node, page size); nothing for nodes whose pools are unknown."""
    return {(n.id, pool.page_bytes): pool.nr_hugepages for n in node.numa for pool in n.pools or ()}


def _surplus_pages(node: NodeFacts, key: PoolKey) -> int:
    """Pages beyond ``nr_hugepages`` as it was written (HugePages_Surp)."""
    return sum(
        pool.surplus_hugepages or 0
        for numa in node.numa
        for pool in numa.pools or ()
        if (numa.id, pool.page_bytes) == key
    )


def _present(node: NodeFacts, present: Mapping[tuple[int, int], int], numa_id: int, page_bytes: int) -> int | None:
    known = (numa_id, page_bytes) in present or any(n.id == numa_id and n.pools is not None for n in node.numa)
    return present.get((numa_id, page_bytes), 0) if known else None

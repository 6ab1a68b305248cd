"""Choosing: page sizes for all instances and pools for the ranged ones, within the memory there is.

Page sizes are chosen by score, with the risk of the workloads within the policy where any choice allows it. Pools with
a range are then sized for these page sizes, and page sizes chosen once more for the sized pools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hugeplan.planner.choice.candidates import InstanceCandidates, candidates_of_all, demand_at
from hugeplan.planner.choice.instance_claims import fixed_claim, private_claim
from hugeplan.planner.choice.optimiser import Budgets, Option, OptionSet, Selection, best_first, select
from hugeplan.planner.choice.page_size_candidate import Candidate
from hugeplan.planner.choice.pool_sizes import Ranged, SizedPool, at_minimum, at_size, is_ranged, size_pools, with_pool
from hugeplan.planner.demand import DemandContext, engine_named
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.memory.claims import Claims, shared_claims
from hugeplan.planner.memory.kubernetes import NodeReserved, huge_page_cap_bytes, resolve_reservations
from hugeplan.planner.memory.ledger import Claim
from hugeplan.planner.memory.page_tables import instance_tables
from hugeplan.planner.memory.pools import held_pages, pool_slack_pages, slack_bytes
from hugeplan.planner.model import DatabaseInstance, LedgerKind, NodeFacts, PlanRequest, Policy
from hugeplan.planner.observation.pools import PoolKey
from hugeplan.planner.observation.start import PagesInUse, Start, pages_in_use
from hugeplan.planner.risk.probability import TenantDemand, tenant_demand

#: Free memory that a plan leaves where the policy does not say: one per cent of MemTotal.
FREE_MARGIN_PERCENT = 1
#: Rounds of sizing pools for page sizes and choosing page sizes for pools; two reach a fixed point but for ties.
_ROUNDS = 2
#: Combinations that are placed and counted at most before a plan is called too large.
COUNTED_MAX = 64


@dataclass(frozen=True, slots=True)
class Aside:
    """Free memory that a choice should leave: in all, and on each NUMA node."""

    total: int = 0
    by_node: Mapping[int, int] = field(default_factory=dict)


#: Bytes that a choice misses once its pages are placed, with some free memory left aside.
Lacks = Callable[[Sequence[InstanceCandidates], Sequence[int], Aside], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceInputs:
    """What stays the same while instances are weighed.

    ``excess`` is what :func:`tenant_excess_bytes` says; ``start`` the node as observed, None where it was not.
    """

    request: PlanRequest
    context: DemandContext
    reserved: NodeReserved
    shared: Claims
    margin_bytes: int
    tenants: TenantDemand
    excess: tuple[int, dict[int, int]]
    start: Start | None
    in_use: PagesInUse
    weigh_gains: bool = True

    @property
    def node(self) -> NodeFacts:
        return self.request.node

    @property
    def policy(self) -> Policy:
        return self.request.policy

    def held(self, candidates: Iterable[Candidate]) -> dict[PoolKey, int]:
        """Huge pages that others hold when these candidates, or one of several each, are chosen."""
        if not self.in_use.pools:
            return {}
        wanted: dict[int, int] = {}
        for candidate in candidates:
            if candidate.is_pool:
                wanted[candidate.page_bytes] = wanted.get(candidate.page_bytes, 0) + candidate.demand.pages
        return held_pages(self.in_use, wanted)


def margin_bytes(request: PlanRequest) -> int:
    """Free memory that a plan leaves: the policy's, else one per cent of MemTotal."""
    margin = request.policy.free_margin_bytes
    return request.node.mem_total_bytes * FREE_MARGIN_PERCENT // 100 if margin is None else margin


def choice_inputs(request: PlanRequest, start: Start | None = None, *, weigh_gains: bool = True) -> ChoiceInputs:
    """What a checked request brings to the choice; ``start`` is the observed node that it starts from."""
    kubelet = None if request.sample is None else request.sample.kubelet
    reserved = resolve_reservations(request.reservations, request.node.mem_total_bytes, kubelet)
    shared, tenants = shared_claims(request, reserved, start), tenant_demand(request.tenants)
    return ChoiceInputs(
        request=request,
        context=DemandContext.of_node(request.node),
        reserved=reserved,
        shared=shared,
        margin_bytes=margin_bytes(request),
        tenants=tenants,
        excess=tenant_excess_bytes(request, tenants, shared.claims),
        start=start,
        in_use=pages_in_use(request, start),
        weigh_gains=weigh_gains,
    )


def tenant_excess_bytes(
    request: PlanRequest, demand: TenantDemand, claims: Sequence[Claim]
) -> tuple[int, dict[int, int]]:
    """What workloads may need beyond what the ledger sets aside, at the policy's risk: in all, and by NUMA node."""
    planned = [claim for claim in claims if claim.kind is LedgerKind.TENANTS]

    def more(part: TenantDemand, own: Iterable[Claim]) -> int:
        if not part.tenants:
            return 0
        return max(0, part.quantile_bytes(request.policy.risk) - sum(claim.bytes for claim in own))

    by_node = {
        numa.id: more(demand.bound_to(numa.id), (c for c in planned if c.numa_node == numa.id))
        for numa in request.node.numa
    }
    return more(demand, planned), by_node


def decide(
    inputs: ChoiceInputs, lacks: Lacks
) -> tuple[tuple[InstanceCandidates, ...], Selection, dict[str, SizedPool]]:
    """Page sizes for all instances, and pools for the ranged ones, each chosen with the other.

    ``lacks``: bytes that a choice misses once its pages are placed, by candidates and picks.
    """
    _check_ranges(inputs)
    smallest = tuple(at_minimum(instance) for instance in inputs.request.databases)
    at_least = candidates = _candidates(inputs, smallest)
    selection = _select(inputs, candidates, lacks)
    sized: dict[str, SizedPool] = {}
    if not any(is_ranged(instance) for instance in smallest):
        return candidates, selection, sized
    for _ in range(_ROUNDS):
        before = selection.chosen  # candidates stand in the same order whatever the pool
        sized = _size(inputs, at_least, before)
        candidates = _candidates(inputs, _at_sizes(inputs, sized, at_least, before))
        selection = _select(inputs, candidates, lacks)
        if selection.chosen == before:
            break
    return candidates, selection, sized


def _candidates(inputs: ChoiceInputs, instances: Sequence[DatabaseInstance]) -> tuple[InstanceCandidates, ...]:
    return candidates_of_all(inputs.node, instances, inputs.policy, inputs.context, weigh_gains=inputs.weigh_gains)


def _check_ranges(inputs: ChoiceInputs) -> None:
    """Both ends of a range are pools that the engine takes; an error names the range, not a setting nobody wrote."""
    for index, instance in enumerate(inputs.request.databases):
        if not is_ranged(instance):
            continue
        field = f"settings.{engine_named(instance.engine).pool_setting}"
        for name, size in (("min", instance.pool_min_bytes), ("max", instance.pool_max_bytes)):
            try:
                demand_at(with_pool(instance, size or 0), inputs.node.base_page_bytes, inputs.context)
            except PlannerError as error:
                if error.field == field:
                    raise PlannerError(f"databases[{index}].pool_range.{name}", size, error.expected) from error
                raise error.within(f"databases[{index}]") from error


def _select(inputs: ChoiceInputs, candidates: Sequence[InstanceCandidates], lacks: Lacks) -> Selection:
    """Page sizes with the highest total score that fit. Sizes that are not available are left out.

    The instances are weighed by name, so that their order changes nothing. What fits is first looked for with each
    instance's slack rounded up by itself, by whole pages on each NUMA node; better choices that this refuses are placed
    and counted before they are given up.
    """
    order = sorted(range(len(candidates)), key=lambda i: candidates[i].instance.name)
    ordered = [candidates[i] for i in order]
    sets = [_options(inputs, p, lean=False) for p in ordered]
    room = _room(inputs, ordered)
    best = sum(max(option.score for option in s.options) for s in sets)

    def back(picks: Sequence[int]) -> tuple[int, ...]:
        in_order = [0] * len(order)
        for place, pick in zip(order, picks, strict=True):
            in_order[place] = pick
        return tuple(in_order)

    # Slack goes into pages that stand and are not known to be in use: it may cost nothing.
    certain = all(state.in_use is not None for state in inputs.in_use.pools.values())
    found = None
    for aside in _asides(inputs):
        budgets = room.less(aside.total, aside.by_node)
        found = select(sets, budgets)
        fits = found.fits and not lacks(candidates, back(found.chosen), aside)
        if fits and found.score >= best:  # every instance has what it would take by itself
            return replace(found, chosen=back(found.chosen))
        lean = [_options(inputs, p, lean=True) for p in ordered]
        for picks in best_first(lean, budgets, COUNTED_MAX, above=found.score if fits else None):
            has_room = not certain or _has_room(inputs.policy, lean, ordered, picks, budgets)
            if has_room and not lacks(candidates, back(picks), aside):
                score = sum(s.options[i].score for s, i in zip(sets, picks, strict=True))
                return Selection(back(picks), score, fits=True, exact=True)
        if fits:
            return replace(found, chosen=back(found.chosen))
    assert found is not None
    return replace(found, chosen=back(found.chosen), fits=False)


def _has_room(
    policy: Policy,
    lean: Sequence[OptionSet],
    candidates: Sequence[InstanceCandidates],
    picks: Sequence[int],
    budgets: Budgets,
) -> bool:
    """Whether the slack of a choice fits beside its options without slack, in one pool per page size: its least."""
    picked = [p.candidates[i] for p, i in zip(candidates, picks, strict=True)]
    pools = [d for c in picked if c.is_pool for d in (c.demand, *c.smaller) if d.pages]
    least = 0
    for size in {d.page_bytes for d in pools}:
        slack = sum(slack_bytes(d, policy) for d in pools if d.page_bytes == size)
        uncertain = any(d.error_pages for d in pools if d.page_bytes == size)
        if not all(d.is_limit for d in pools if d.page_bytes == size):
            least += size * pool_slack_pages(slack, size, policy, uncertain=uncertain)
    chosen = [s.options[i] for s, i in zip(lean, picks, strict=True)]
    in_pools = least + sum(option.pools for option in chosen)
    is_under_cap = budgets.pools is None or in_pools <= budgets.pools
    return is_under_cap and least + sum(option.cost for option in chosen) <= budgets.total


def _asides(inputs: ChoiceInputs) -> list[Aside]:
    """What to leave free, the most first: what the workloads may need at the policy's risk, the margin, nothing.

    Nothing at once where only asked whether it fits: what fits with memory left aside fits without.
    """
    if not inputs.weigh_gains and not any(is_ranged(instance) for instance in inputs.request.databases):
        return [Aside()]
    more, more_by_node = inputs.excess
    asides = [Aside(inputs.margin_bytes), Aside()]
    if more > inputs.margin_bytes or any(more_by_node.values()):
        asides.insert(0, Aside(max(more, inputs.margin_bytes), more_by_node))
    return asides


def _options(inputs: ChoiceInputs, p: InstanceCandidates, *, lean: bool) -> OptionSet:
    """The candidates as options; ``lean`` without slack. One that is not available is taken when no other is open."""
    numa_node = p.instance.numa_node
    far = any(numa.id == numa_node and numa.is_far for numa in inputs.node.numa)
    most = max(c.cost_bytes for c in p.candidates)
    closed = inputs.node.mem_total_bytes * 2 + most if any(c.obstacle is None for c in p.candidates) else 0

    def option(c: Candidate) -> Option:
        off = c.slack_bytes if lean else 0
        near = 0 if far else c.hugetlb_pool_bytes - off if numa_node is None else c.cost_bytes - off
        return Option(c.cost_bytes - off + (closed if c.obstacle else 0), c.score, c.hugetlb_pool_bytes - off, near)

    return OptionSet(tuple(option(c) for c in p.candidates), numa_node)


def _room(inputs: ChoiceInputs, candidates: Sequence[InstanceCandidates]) -> Budgets:
    """Memory for segments and page tables: by NUMA node (bound claims taken off), in total (all of them), in pools."""
    own = (claim(p) for p in candidates for claim in (private_claim, fixed_claim))
    claims: list[Claim] = [*inputs.shared.claims, *(claim for claim in own if claim is not None)]
    by_node = {numa.id: numa.mem_total_bytes for numa in inputs.node.numa}
    for claim in claims:
        if claim.numa_node is not None:
            by_node[claim.numa_node] -= claim.bytes
    total = inputs.node.mem_total_bytes - sum(claim.bytes for claim in claims)
    held = 0
    for (numa_id, page_bytes), pages in inputs.held(c for p in candidates for c in p.candidates).items():
        by_node[numa_id] -= pages * page_bytes
        held += pages * page_bytes
    cap = huge_page_cap_bytes(inputs.request)
    near = sum(by_node[numa.id] for numa in inputs.node.near_numa)
    return Budgets(
        by_node,
        total - held,
        None if cap is None else cap - held,
        near if len(inputs.node.near_numa) < len(inputs.node.numa) else None,
    )


def _size(inputs: ChoiceInputs, candidates: Sequence[InstanceCandidates], picks: Sequence[int]) -> dict[str, SizedPool]:
    """Pools for the ranged instances from what the fixed ones and the workloads' risk leave."""
    chosen = [(p, p.candidates[i]) for p, i in zip(candidates, picks, strict=True)]
    room = _room(inputs, candidates)
    more, more_by_node = inputs.excess
    by_node = {i: size - more_by_node[i] for i, size in room.by_node.items()}
    total = room.total - inputs.margin_bytes - more
    ranged = []
    for p, candidate in sorted(chosen, key=lambda pair: pair[0].instance.name):
        total -= candidate.cost_bytes
        if p.instance.numa_node is not None:
            by_node[p.instance.numa_node] -= candidate.cost_bytes
        if is_ranged(p.instance):
            ranged.append(Ranged(instance=p.instance, page_bytes=candidate.page_bytes, numa_node=p.instance.numa_node))

    # The provider's cap is on huge pages alone: it says nothing about pools on base pages.
    on_pools = any(item.page_bytes > inputs.node.base_page_bytes for item in ranged)
    if on_pools and room.pools is not None:
        total = min(total, room.pools - sum(candidate.hugetlb_pool_bytes for _, candidate in chosen))

    def cost(instance: DatabaseInstance, page_bytes: int) -> int:
        demand = demand_at(instance, page_bytes, inputs.context)
        own = demand.segment_bytes + demand.on_base_bytes + sum(size * pages for size, pages in demand.also_pages)
        own += max(0, demand.waste_bytes - page_bytes)  # of many mappings; of the last page of one, a page is held back
        slack = max(int(own * inputs.policy.slack_fraction), page_bytes if demand.error_pages else 0)
        return own + slack + instance_tables(inputs.node, demand, instance.workload).bytes

    answers, _ = size_pools(ranged, cost, by_node, total)
    return {item.instance.name: answer for item, answer in zip(ranged, answers, strict=True)}


def _at_sizes(
    inputs: ChoiceInputs, sized: dict[str, SizedPool], candidates: Sequence[InstanceCandidates], picks: Sequence[int]
) -> tuple[DatabaseInstance, ...]:
    """The instances at their sizes; ``sized`` takes up what filling the last page changed."""
    instances = []
    for p, i in zip(candidates, picks, strict=True):
        instance = p.instance
        if instance.name in sized:
            page_bytes = p.candidates[i].page_bytes
            instance, sized[instance.name] = at_size(
                instance, sized[instance.name], page_bytes, inputs.context, inputs.policy
            )
        instances.append(instance)
    return tuple(instances)

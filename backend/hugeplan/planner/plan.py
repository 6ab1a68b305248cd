"""plan(): from facts, reservations, tenants, databases and policy to pools, a ledger, gains and findings.

The order matters: page sizes are chosen by score within the memory there is, pools with a range are then sized,
sizes are chosen once more for the sized pools, pages are placed on NUMA nodes, and everything is written into the
ledger that all findings look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hugeplan.planner.candidates import Candidate, Prospect, demand_at, prospect, tables_bytes
from hugeplan.planner.check import check_request
from hugeplan.planner.claims import (
    Claims,
    instance_claims,
    page_cache_claim,
    page_cache_wish,
    private_claim,
    shared_claims,
)
from hugeplan.planner.engines import DemandContext, engine_named
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.findings import findings_of
from hugeplan.planner.findings.base import FindingInputs
from hugeplan.planner.forecast import forecasts
from hugeplan.planner.kubernetes import NodeReserved, gke_huge_page_cap_bytes, kubernetes_view, resolve_reservations
from hugeplan.planner.ledger import Claim, build_ledger, free_bytes, sum_bytes
from hugeplan.planner.model import (
    DatabaseInstance,
    InstancePlan,
    Ledger,
    LedgerKind,
    NodeFacts,
    Plan,
    PlanRequest,
    Policy,
    PoolPlan,
)
from hugeplan.planner.net_memory import net_memory
from hugeplan.planner.pools import Placed, place, pool_plans
from hugeplan.planner.reservation import Budgets, Option, OptionSet, Selection, select
from hugeplan.planner.risk import risk, tenant_demand
from hugeplan.planner.sentences import headline, why_instance
from hugeplan.planner.sizing import Ranged, SizedPool, at_minimum, at_size, is_ranged, size_pools
from hugeplan.planner.units import format_bytes

#: Free memory that a plan leaves where the policy does not say: one per cent of MemTotal.
FREE_MARGIN_PERCENT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """What stays the same while instances are weighed."""

    request: PlanRequest
    context: DemandContext
    reserved: NodeReserved
    shared: Claims
    margin_bytes: int

    @property
    def node(self) -> NodeFacts:
        return self.request.node

    @property
    def policy(self) -> Policy:
        return self.request.policy


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """An instance with the candidate chosen for it, and the sentence about its pool if the planner sized it."""

    prospect: Prospect
    candidate: Candidate
    sized: SizedPool | None = None


def plan(request: PlanRequest) -> Plan:
    """The plan for one node. Raises PlannerError with the field's path for input that cannot be planned."""
    check_request(request)
    scene = _scene(request)
    prospects, selection, sized = _decide(scene)
    chosen = [
        _Chosen(prospect=p, candidate=p.candidates[i], sized=sized.get(p.instance.name))
        for p, i in zip(prospects, selection.chosen, strict=True)
    ]
    return _assemble(scene, chosen, selection)


#: Rounds of sizing pools for page sizes and choosing page sizes for pools; two reach a fixed point but for ties.
_ROUNDS = 2


def _decide(scene: _Scene) -> tuple[tuple[Prospect, ...], Selection, dict[str, SizedPool]]:
    """Page sizes for all instances, and pools for the ranged ones, each chosen with the other."""
    smallest = tuple(at_minimum(instance) for instance in scene.request.databases)
    at_least = prospects = _prospects(scene, smallest)
    selection = _select(scene, prospects)
    sized: dict[str, SizedPool] = {}
    if not any(is_ranged(instance) for instance in smallest):
        return prospects, selection, sized
    for _ in range(_ROUNDS):
        before = selection.chosen  # candidates stand in the same order whatever the pool
        sized = _size(scene, at_least, before)
        prospects = _prospects(scene, _at_sizes(scene, sized, at_least, before))
        selection = _select(scene, prospects)
        if selection.chosen == before:
            break
    return prospects, selection, sized


def margin_bytes(request: PlanRequest) -> int:
    """Free memory that a plan leaves: the policy's, else one per cent of MemTotal."""
    margin = request.policy.free_margin_bytes
    return request.node.mem_total_bytes * FREE_MARGIN_PERCENT // 100 if margin is None else margin


def _scene(request: PlanRequest) -> _Scene:
    reserved = resolve_reservations(request.reservations, request.node.mem_total_bytes)
    return _Scene(
        request=request,
        context=DemandContext.of_node(request.node),
        reserved=reserved,
        shared=shared_claims(request, reserved),
        margin_bytes=margin_bytes(request),
    )


def _prospects(scene: _Scene, instances: Sequence[DatabaseInstance]) -> tuple[Prospect, ...]:
    found = []
    for index, instance in enumerate(instances):
        try:
            found.append(prospect(scene.node, instance, scene.policy, scene.context))
        except PlannerError as error:
            raise error.within(f"databases[{index}]") from error
    return tuple(found)


def _select(scene: _Scene, prospects: Sequence[Prospect]) -> Selection:
    """Page sizes with the highest total score that fit. Sizes that cannot be had are left out."""
    by_node, total = _room(scene, prospects)
    sets = []
    for p in prospects:
        # An option that cannot be had costs more than there is, so that it is taken only when nothing else is open.
        closed = scene.node.mem_total_bytes * 2 if any(c.obstacle is None for c in p.candidates) else 0
        sets.append(
            OptionSet(
                tuple(Option(c.cost_bytes + (closed if c.obstacle else 0), c.score) for c in p.candidates),
                p.instance.numa_node,
            )
        )
    return select(sets, Budgets(by_node, total - scene.margin_bytes))


def _room(scene: _Scene, prospects: Iterable[Prospect]) -> tuple[dict[int, int], int]:
    """Memory for segments and page tables: by NUMA node (bound claims taken off) and in total (all of them)."""
    private = (private_claim(p) for p in prospects)
    claims: list[Claim] = [*scene.shared.claims, *(claim for claim in private if claim is not None)]
    by_node = {numa.id: numa.mem_total_bytes for numa in scene.node.numa}
    for claim in claims:
        if claim.numa_node is not None:
            by_node[claim.numa_node] -= claim.bytes
    return by_node, scene.node.mem_total_bytes - sum(claim.bytes for claim in claims)


def _size(scene: _Scene, prospects: Sequence[Prospect], picks: Sequence[int]) -> dict[str, SizedPool]:
    """Pools for the ranged instances from what the fixed ones and the tenants' risk leave."""
    chosen = [(p, p.candidates[i]) for p, i in zip(prospects, picks, strict=True)]
    by_node, total = _room(scene, prospects)
    total -= scene.margin_bytes
    demand = tenant_demand(scene.request.tenants)
    if demand.tenants:
        planned = sum(claim.bytes for claim in scene.shared.claims if claim.kind is LedgerKind.TENANTS)
        total -= max(0, demand.quantile_bytes(scene.policy.risk) - planned)
    if scene.request.reservations.provider == "gke":
        total = min(total, gke_huge_page_cap_bytes(scene.node.mem_total_bytes))
    ranged = []
    for p, candidate in chosen:
        total -= candidate.cost_bytes
        if p.instance.numa_node is not None:
            by_node[p.instance.numa_node] -= candidate.cost_bytes
        if is_ranged(p.instance):
            ranged.append(Ranged(instance=p.instance, page_bytes=candidate.page_bytes, numa_node=p.instance.numa_node))

    def cost(instance: DatabaseInstance, page_bytes: int) -> int:
        demand = demand_at(instance, page_bytes, scene.context)
        own = demand.segment_bytes + sum(size * pages for size, pages in demand.also_pages)
        return own + int(own * scene.policy.slack_fraction) + tables_bytes(scene.node, demand)

    answers, _ = size_pools(ranged, cost, by_node, total)
    return {item.instance.name: answer for item, answer in zip(ranged, answers, strict=True)}


def _at_sizes(
    scene: _Scene, sized: dict[str, SizedPool], prospects: Sequence[Prospect], picks: Sequence[int]
) -> tuple[DatabaseInstance, ...]:
    """The instances at their sizes; ``sized`` takes up what filling the last page changed."""
    instances = []
    for p, i in zip(prospects, picks, strict=True):
        instance = p.instance
        if instance.name in sized:
            page_bytes = p.candidates[i].page_bytes
            instance, sized[instance.name] = at_size(
                instance, sized[instance.name], page_bytes, scene.context, scene.policy
            )
        instances.append(instance)
    return tuple(instances)


def _place_all(scene: _Scene, chosen: Sequence[_Chosen]) -> tuple[list[Placed], list[Placed]]:
    """Pages of every pool instance on NUMA nodes, and its smaller huge pages: bound first, then larger pages first."""
    by_node, _ = _room(scene, (c.prospect for c in chosen))
    placed: list[Placed] = [Placed(0, {}, {})] * len(chosen)
    besides: list[Placed] = []
    order = sorted(
        (
            (i, demand)
            for i, c in enumerate(chosen)
            if c.candidate.is_pool
            for demand in (c.candidate.demand, *c.candidate.smaller)
        ),
        key=lambda item: (chosen[item[0]].prospect.instance.numa_node is None, -item[1].page_bytes, item[0]),
    )
    for i, demand in order:
        spot = place(demand, chosen[i].prospect.instance.numa_node, scene.node, scene.policy, by_node)
        for numa_id, pages in spot.pages.items():
            by_node[numa_id] -= pages * spot.page_bytes
        if demand is chosen[i].candidate.demand:
            placed[i] = spot
        else:
            besides.append(spot)
    return placed, besides


def _instance_plan(item: _Chosen, spot: Placed, node: NodeFacts) -> InstancePlan:
    p, candidate = item.prospect, item.candidate
    others = [c for c in p.candidates if c is not candidate and c.obstacle is None]
    runner_up = max(others, key=lambda c: c.score, default=None)
    nodes = tuple(numa_id for numa_id, pages in sorted(spot.pages.items()) if pages)
    bound = p.instance.numa_node
    return InstancePlan(
        name=p.instance.name,
        engine=p.engine.name,
        numa_nodes=nodes or ((bound,) if bound is not None else tuple(n.id for n in node.numa)),
        page_bytes=candidate.page_bytes if candidate.is_pool else None,
        demand=candidate.demand,
        page_tables_base_bytes=p.base_tables_bytes,
        page_tables_huge_bytes=candidate.page_tables_bytes,
        chosen=candidate.as_choice(),
        runner_up=None if runner_up is None else runner_up.as_choice(),
        why=why_instance(p, candidate, runner_up, item.sized),
    )


def _assemble(scene: _Scene, chosen: Sequence[_Chosen], selection: Selection) -> Plan:
    request, node = scene.request, scene.node
    placed, besides = _place_all(scene, chosen)
    pools = pool_plans([spot for spot in (*placed, *besides) if spot.pages], node, scene.policy)
    instances = tuple(_instance_plan(item, spot, node) for item, spot in zip(chosen, placed, strict=True))
    own = [instance_claims(item.prospect, item.candidate, node) for item in chosen]
    ledger, wishes = _ledger(scene, chosen, own, pools)
    room_for_tenants = free_bytes(ledger) + sum_bytes(ledger, LedgerKind.TENANTS, LedgerKind.PAGE_CACHE)
    kubernetes = kubernetes_view(node, request.reservations, pools) if request.reservations.kubernetes else None
    verdict = risk(request.tenants, room_for_tenants, scene.policy)
    gains = tuple(gain for item in chosen for gain in item.prospect.gains)
    net = net_memory(node, pools, instances, [part for item in chosen for part in item.candidate.smaller])
    findings = findings_of(
        FindingInputs(
            request=request,
            pools=pools,
            instances=instances,
            ledger=ledger,
            gains=gains,
            risk=verdict,
            net_memory=net,
            kubernetes=kubernetes,
            margin_bytes=scene.margin_bytes,
            reserved=scene.reserved,
            page_cache_wishes=wishes,
            as_planned=tuple(_as_planned(item) for item in chosen),
            pool_uses={d.name: engine_named(d.engine).pool_use(d, scene.context) for d in request.databases},
            obstacles={c.prospect.instance.name: c.candidate.obstacle for c in chosen if c.candidate.obstacle},
        )
    )
    return Plan(
        node=node.name,
        headline=headline(node, pools, instances, ledger, verdict),
        pools=pools,
        instances=instances,
        ledger=ledger,
        gains=gains,
        findings=findings,
        net_memory=net,
        risk=verdict,
        kubernetes=kubernetes,
        assumptions=_assumptions(scene, chosen, selection),
        unknowns=_unknowns(scene, own, chosen),
        forecasts=forecasts(request.tenants, room_for_tenants),
    )


def _as_planned(item: _Chosen) -> DatabaseInstance:
    """The instance with the plan's page size and the engine's own advice in its settings."""
    p, candidate = item.prospect, item.candidate
    known = {spec.name for spec in p.engine.settings}
    advised = {advice.name: advice.value for advice in candidate.demand.settings if advice.name in known}
    size = candidate.page_bytes if candidate.is_pool else 0
    return replace(p.instance, settings={**p.instance.settings, **advised}, page_bytes=size)


def _ledger(
    scene: _Scene, chosen: Sequence[_Chosen], own: Sequence[Claims], pools: Sequence[PoolPlan]
) -> tuple[Ledger, Mapping[str, tuple[int, int]]]:
    """The ledger, and by instance the page cache (wanted, granted): granted from what is free above the margin."""
    claims = [*scene.shared.claims, *(claim for part in own for claim in part.claims)]
    ledger = build_ledger(scene.node, claims, pools)
    wishes = page_cache_wish([(c.prospect, c.candidate) for c in chosen])
    if not wishes:
        return ledger, {}
    left = max(0, free_bytes(ledger) - scene.margin_bytes)
    granted: dict[str, tuple[int, int]] = {}
    for p, wanted in wishes:
        size = min(wanted, left)
        left -= size
        granted[p.instance.name] = (wanted, size)
        claims.append(page_cache_claim(p, wanted, size))
    return build_ledger(scene.node, claims, pools), granted


def _assumptions(scene: _Scene, chosen: Sequence[_Chosen], selection: Selection) -> tuple[str, ...]:
    found = list(scene.shared.assumptions)
    if scene.policy.free_margin_bytes is None:
        found.append(f"free margin: {format_bytes(scene.margin_bytes)} (1 % of MemTotal)")
    if any(c.candidate.demand.process_per_connection for c in chosen):
        found.append("page tables: every connection touches the whole segment (upper bound)")
    found += [f"{c.prospect.instance.name}: {c.sized.basis}" for c in chosen if c.sized is not None]
    if not selection.exact:
        found.append("page sizes: chosen by least loss per byte, not proven best (too many combinations)")
    return tuple(found)


def _unknowns(scene: _Scene, own: Sequence[Claims], chosen: Sequence[_Chosen]) -> tuple[str, ...]:
    found = [*scene.shared.unknowns, *(unknown for part in own for unknown in part.unknowns)]
    if scene.node.hvo_enabled is None and any(c.candidate.is_pool for c in chosen):
        found.append("whether HVO (hugetlb_free_vmemmap) is on: the struct pages it would return are left out")
    if any(numa.pools is None for numa in scene.node.numa):
        found.append("the node's present pools")
    return tuple(found)


def with_settings(instance: DatabaseInstance, settings: Mapping[str, str]) -> DatabaseInstance:
    """The instance with some settings replaced; for what-ifs."""
    return replace(instance, settings={**instance.settings, **settings})

"""plan(): from facts, reservations, workloads, databases and policy to pools, a ledger, gains and findings.

The order matters: page sizes are chosen by score within the memory there is, pools with a range are then sized,
sizes are chosen once more for the sized pools, pages are placed on NUMA nodes, and everything is written into the
ledger that all findings look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from hugeplan.planner.check import checked_request
from hugeplan.planner.choice.candidates import InstanceCandidates
from hugeplan.planner.choice.decide import Aside, ChoiceInputs, choice_inputs, decide
from hugeplan.planner.choice.instance_claims import instance_claims, page_cache_claim, page_cache_demands
from hugeplan.planner.choice.optimiser import Selection
from hugeplan.planner.choice.page_size_candidate import Candidate
from hugeplan.planner.choice.pool_sizes import SizedPool
from hugeplan.planner.demand import counted_settings, engine_named
from hugeplan.planner.difference import difference, segment_moves, starting_point
from hugeplan.planner.findings import findings_of, once_it_fits
from hugeplan.planner.findings.base import FindingInputs
from hugeplan.planner.findings.fit import fits
from hugeplan.planner.memory.claims import Claims, reclaimable_claim
from hugeplan.planner.memory.kubernetes import kubernetes_view
from hugeplan.planner.memory.ledger import Claim, build_ledger, free_bytes, free_under, sum_bytes
from hugeplan.planner.memory.net_memory import net_memory
from hugeplan.planner.memory.pools import NumaPlacement, place_pages, pool_plans
from hugeplan.planner.model import (
    DatabaseInstance,
    Gain,
    InstancePlan,
    Ledger,
    LedgerKind,
    NodeFacts,
    Plan,
    PlanRequest,
    PoolPlan,
    Tenant,
)
from hugeplan.planner.observation.server_owners import ServerOwners, made_by
from hugeplan.planner.observation.sizes_unread import not_read, sizes_not_read
from hugeplan.planner.observation.start import started
from hugeplan.planner.observation.told_apart import perhaps_twice
from hugeplan.planner.pool_benefit.benefit_of_size import table_says
from hugeplan.planner.risk.forecast import forecasts
from hugeplan.planner.risk.probability import risk_of
from hugeplan.planner.sentences import Doubt, headline, why_instance
from hugeplan.planner.shortfall import missing_bytes, shortfall_of
from hugeplan.planner.units import format_bytes

#: Parts of the ledger whose own history the risk uses in place of the planned amount.
_GIVES_WAY = (LedgerKind.TENANTS, LedgerKind.PAGE_CACHE, LedgerKind.RECLAIMABLE)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """An instance with the candidate chosen for it, and the sentence about its pool if the planner sized it."""

    instance_candidates: InstanceCandidates
    candidate: Candidate
    sized: SizedPool | None = None


def plan(request: PlanRequest) -> Plan:
    """The plan for one node. Raises PlannerError with the field's path for input that cannot be planned."""
    request, start = started(checked_request(request))
    inputs = choice_inputs(request, start)
    placing = _Placing(inputs)
    candidates, selection, sized = decide(inputs, placing.lacks)
    return _assemble(inputs, placing.of(candidates, selection.chosen), selection, sized)


def _missing(inputs: ChoiceInputs, request: PlanRequest) -> int:
    """What the request lacks in bytes with other databases; gains change no byte, so memory alone weighs page sizes."""
    request = checked_request(request)
    if request.sample is None:  # nothing else that was worked out depends on the databases
        changed = replace(inputs, request=request, weigh_gains=False)
    else:
        changed = choice_inputs(*started(request), weigh_gains=False)
    placing = _Placing(changed)
    candidates, selection, _ = decide(changed, placing.lacks)
    return 0 if selection.fits else placing.lacks(candidates, selection.chosen, Aside())


@dataclass(frozen=True, slots=True)
class _Placed:
    """A choice with its pages placed: one page size per instance, their claims, and the pools.

    ``claims`` are the shared ones and those of all instances. ``free_bytes`` is what they and the pools leave, ``room``
    what the bound ones and the pools leave of each NUMA node, ``missing_bytes`` as :func:`missing_bytes` says it.
    """

    chosen: Sequence[_Chosen]
    own: Sequence[Claims]
    placements: Sequence[NumaPlacement]
    pools: tuple[PoolPlan, ...]
    claims: Sequence[Claim]
    room: Mapping[int, int]
    free_bytes: int
    missing_bytes: int


class _Placing:
    """The choices of one plan, each placed once, however often it is asked for."""

    def __init__(self, inputs: ChoiceInputs) -> None:
        self._inputs = inputs
        self._placed: dict[tuple[int, ...], _Placed] = {}

    def lacks(self, candidates: Sequence[InstanceCandidates], picks: Sequence[int], aside: Aside) -> int:
        """What a choice misses in bytes once its pages are placed and everything is in the ledger.

        What is bound to no NUMA node moves away from memory that is left aside on one.
        """
        placed = self.of(candidates, picks)
        by_node = (size - placed.room[numa_id] for numa_id, size in aside.by_node.items() if size)
        return max(placed.missing_bytes, aside.total - placed.free_bytes, *by_node)

    def of(self, candidates: Sequence[InstanceCandidates], picks: Sequence[int]) -> _Placed:
        """The choice with its pages placed. Its candidates are told apart as objects, which it keeps alive."""
        chosen = [_Chosen(p, p.candidates[i]) for p, i in zip(candidates, picks, strict=True)]
        key = tuple(id(item.candidate) for item in chosen)
        if key not in self._placed:
            inputs = self._inputs
            own = [instance_claims(item.instance_candidates, item.candidate, inputs.node) for item in chosen]
            claims = [*inputs.shared.claims, *(claim for part in own for claim in part.claims)]
            placements, besides = _place_all(inputs, chosen, claims)
            pools = _pools(inputs, placements, besides)
            room = _room_by_node(inputs.node, pools, claims)
            free = sum(room.values()) - sum(claim.bytes for claim in claims if claim.numa_node is None)
            # What is bound to none goes where room is: while there is enough, no NUMA node runs out.
            is_enough = min(free, *room.values()) >= 0 and not any(claim.within for claim in claims)
            by_node = {0: free} if is_enough else free_under(inputs.node, claims, pools)
            missing = missing_bytes(by_node, pools, inputs.request)
            self._placed[key] = _Placed(chosen, own, placements, pools, claims, room, free, missing)
        return self._placed[key]


def _pools(
    inputs: ChoiceInputs, placements: Sequence[NumaPlacement], besides: Sequence[NumaPlacement]
) -> tuple[PoolPlan, ...]:
    placed = [placement for placement in (*placements, *besides) if placement.pages]
    # An observed node without a described database keeps its pools: nobody asked to change them.
    keep = inputs.start is not None and not inputs.request.databases
    return pool_plans(placed, inputs.node, inputs.policy, inputs.in_use, keep_present=keep)


def _place_all(
    inputs: ChoiceInputs, chosen: Sequence[_Chosen], claims: Sequence[Claim]
) -> tuple[list[NumaPlacement], list[NumaPlacement]]:
    """Pages of every pool instance on NUMA nodes, and its smaller huge pages: fewest nodes first, then larger pages."""
    by_node = {numa.id: numa.mem_total_bytes for numa in inputs.node.numa}
    for claim in claims:
        if claim.numa_node is not None:
            by_node[claim.numa_node] -= claim.bytes
    for (numa_id, page_bytes), pages in inputs.held([c.candidate for c in chosen]).items():
        by_node[numa_id] -= pages * page_bytes
    placements: list[NumaPlacement] = [NumaPlacement(0, {}, {})] * len(chosen)
    besides: list[NumaPlacement] = []
    order = sorted(
        (
            (i, demand)
            for i, c in enumerate(chosen)
            if c.candidate.is_pool
            for demand in (c.candidate.demand, *c.candidate.smaller)
        ),
        key=lambda item: (
            len(chosen[item[0]].instance_candidates.instance.within) or len(by_node),
            -item[1].page_bytes,
            -item[1].pages,
            chosen[item[0]].instance_candidates.instance.name,
        ),
    )
    for i, demand in order:
        within = chosen[i].instance_candidates.instance.within
        # What workloads that are bound to a NUMA node may come to need stays free there, where others have room.
        enough = {numa_id: size - inputs.excess[1][numa_id] for numa_id, size in by_node.items()}
        placement = place_pages(demand, within, inputs.node, inputs.policy, (enough, by_node))
        for numa_id, pages in placement.pages.items():
            by_node[numa_id] -= pages * placement.page_bytes + placement.spare_bytes(numa_id)
        if demand is chosen[i].candidate.demand:
            placements[i] = placement
        else:
            besides.append(placement)
    return placements, besides


def _room_by_node(node: NodeFacts, pools: Sequence[PoolPlan], claims: Iterable[Claim]) -> dict[int, int]:
    """What pools and the claims that are bound to a NUMA node leave of it."""
    room = {numa.id: numa.mem_total_bytes for numa in node.numa}
    for pool in pools:
        room[pool.numa_node] -= pool.pages * pool.page_bytes
    for claim in claims:
        if claim.numa_node is not None:
            room[claim.numa_node] -= claim.bytes
    return room


def _instance_plan(
    item: _Chosen, placement: NumaPlacement, request: PlanRequest, running: Mapping[str, str], owners: ServerOwners
) -> InstancePlan:
    p, candidate = item.instance_candidates, item.candidate
    others = [c for c in p.candidates if c is not candidate and c.obstacle is None]
    runner_up = max(others, key=lambda c: c.score, default=None)
    nodes = tuple(numa_id for numa_id, pages in sorted(placement.pages.items()) if pages)
    why, why_besides_score = why_instance(p, candidate, runner_up, item.sized)
    runs_as = running.get(p.instance.name, p.instance.runs_as)
    server = request.server(runs_as)
    return InstancePlan(
        name=p.instance.name,
        engine=p.engine.name,
        numa_nodes=nodes or p.instance.within or tuple(n.id for n in request.node.numa),
        page_bytes=candidate.page_bytes if candidate.is_pool else None,
        demand=candidate.demand,
        page_tables_base_bytes=p.base_tables_bytes,
        page_tables_huge_bytes=candidate.page_tables_bytes,
        chosen=candidate.as_choice(),
        runner_up=None if runner_up is None else runner_up.as_choice(),
        why=why,
        pool_benefit=table_says(p.instance.workload.benefit_points, candidate.demand.pool_bytes),
        why_besides_score=why_besides_score,
        runs_as=runs_as,
        pod=owners.pod_of(runs_as or "", server.unit if server else None) or made_by(p.instance),
        owner_uid=None if server is None else server.owner_uid,
        counted_settings=counted_settings(p.instance, changeable=True) | _loaded(p.instance),
    )


def _loaded(instance: DatabaseInstance) -> dict[str, str]:
    """The libraries that a server preloads: verify does not know what others take. Empty text where none are named."""
    names = {one.name for one in engine_named(instance.engine).settings} & {"shared_preload_libraries"}
    return {name: counted_settings(instance).get(name, "") for name in names}


def _marked(gain: Gain, candidate: Candidate) -> Gain:
    """The gain, marked where it is what the chosen candidate brings."""
    kind = "hugetlb" if candidate.is_pool else "base"
    is_chosen = gain.backing_kind == kind and gain.page_bytes == candidate.page_bytes
    return replace(gain, is_chosen=True) if is_chosen else gain


def _assemble(inputs: ChoiceInputs, placed: _Placed, selection: Selection, sized: Mapping[str, SizedPool]) -> Plan:
    request, node = inputs.request, inputs.node
    chosen = [replace(item, sized=sized.get(item.instance_candidates.instance.name)) for item in placed.chosen]
    pools = placed.pools
    matched = () if inputs.start is None else inputs.start.matched
    running = {match.instance: match.database.key for match in matched}
    owners = ServerOwners.of(request.sample)
    instances = tuple(
        _instance_plan(item, placement, request, running, owners)
        for item, placement in zip(chosen, placed.placements, strict=True)
    )
    ledger, cache_demands = _ledger(inputs, placed)
    room_for_tenants = free_bytes(ledger) + sum_bytes(ledger, *_GIVES_WAY)
    reservations = request.reservations
    kubernetes = kubernetes_view(node, reservations, pools, inputs.reserved) if reservations.kubernetes else None
    verdict = risk_of(
        inputs.tenants,
        room_for_tenants,
        inputs.policy,
        # What pools and all that is bound to a NUMA node leave of it for the workloads that are bound to it.
        _room_by_node(node, pools, (claim for claim in placed.claims if claim.kind not in _GIVES_WAY)),
        known=inputs.start is not None and request.observed.include,
    )
    unread = sizes_not_read(request, instances)
    if unread and verdict.meets_policy:
        verdict = replace(verdict, probability=None, meets_policy=None, basis=not_read(unread), numa_nodes=())
    shortfall = shortfall_of(request, ledger, pools, instances, partial(_missing, inputs))
    gains = tuple(_marked(gain, item.candidate) for item in chosen for gain in item.instance_candidates.gains)
    smaller = [part for item in chosen for part in item.candidate.smaller]
    memory = None if inputs.start is None else inputs.start.sample.memory
    tables_now = None if memory is None else memory.page_tables_bytes
    net = net_memory(node, pools, instances, smaller, ledger, tables_now_bytes=tables_now)
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
            margin_bytes=inputs.margin_bytes,
            reserved=inputs.reserved,
            page_cache_demands=cache_demands,
            as_planned=tuple(_as_planned(item) for item in chosen),
            in_use=inputs.in_use,
            unread=unread,
            pool_uses={d.name: engine_named(d.engine).pool_use(d, inputs.context) for d in request.databases},
            obstacles={
                c.instance_candidates.instance.name: c.candidate.obstacle for c in chosen if c.candidate.obstacle
            },
        )
    )
    now = change = None
    if inputs.start is not None:
        now = starting_point(node, inputs.start, inputs.in_use.pools)
        moves = segment_moves(instances, inputs.start)
        change = difference(now, ledger, pools, states=inputs.in_use.pools, moves=moves)
    fit = fits(findings, feasible=shortfall is None)
    doubt = None
    if fit is None:
        twice = perhaps_twice(request, instances, ledger) if shortfall else {}
        doubt = Doubt(unread, twice)
    return Plan(
        node=node.name,
        headline=headline(node, pools, instances, verdict, shortfall=shortfall, doubt=doubt),
        pools=pools,
        instances=instances,
        ledger=ledger,
        gains=gains,
        findings=findings if fit else once_it_fits(findings, unread),
        net_memory=net,
        risk=verdict,
        kubernetes=kubernetes,
        assumptions=_assumptions(inputs, chosen, selection),
        unknowns=_unknowns(inputs, placed.own, chosen),
        forecasts=forecasts([t for t in request.tenants if not _is_constant(t)], room_for_tenants),
        feasible=shortfall is None,
        fits=fit,
        shortfall=shortfall,
        now=now,
        difference=change,
    )


def _is_constant(tenant: Tenant) -> bool:
    """An observed unit with one value: its changes over time are in everything else."""
    return tenant.observed is not None and tenant.history is not None and len(set(tenant.history.used_bytes)) == 1


def _as_planned(item: _Chosen) -> DatabaseInstance:
    """The instance with the plan's page size and the engine's own advice in its settings."""
    p, candidate = item.instance_candidates, item.candidate
    known = {spec.name for spec in p.engine.settings}
    advised = {advice.name: advice.value for advice in candidate.demand.settings if advice.name in known}
    size = candidate.page_bytes if candidate.is_pool else 0
    return replace(p.instance, settings={**p.instance.settings, **advised}, page_bytes=size)


def _ledger(inputs: ChoiceInputs, placed: _Placed) -> tuple[Ledger, Mapping[str, tuple[int, int]]]:
    """The ledger, and by instance the page cache (wanted, granted): granted from what is free above the margin."""
    claims = list(placed.claims)
    by_name = sorted(placed.chosen, key=lambda c: c.instance_candidates.instance.name)
    cache_demands = page_cache_demands([(c.instance_candidates, c.candidate) for c in by_name])
    free = placed.free_bytes
    left = max(0, free - inputs.margin_bytes)
    granted: dict[str, tuple[int, int]] = {}
    for p, wanted in cache_demands:
        size = min(wanted, left)
        left -= size
        granted[p.instance.name] = (wanted, size)
        claims.append(page_cache_claim(p, wanted, size))
    if inputs.start is not None:
        in_cache = sum(size for _, size in granted.values())
        claims.append(reclaimable_claim(inputs.start, free - in_cache, in_cache))
    return build_ledger(inputs.node, claims, placed.pools), granted


def _assumptions(inputs: ChoiceInputs, chosen: Sequence[_Chosen], selection: Selection) -> tuple[str, ...]:
    found = list(inputs.shared.assumptions)
    if inputs.policy.free_margin_bytes is None:
        found.append(f"free margin: {format_bytes(inputs.margin_bytes)} (1 % of MemTotal)")
    if any(c.candidate.demand.process_per_connection for c in chosen):
        found.append(
            "page tables: each active connection touches the working set, or the whole segment where it is unknown"
        )
    far = [str(numa.id) for numa in inputs.node.numa if numa.is_far]
    if far and any(c.candidate.is_pool for c in chosen):
        nodes = f"NUMA node{'s' if len(far) > 1 else ''} {', '.join(far)}"
        found.append(f"{nodes}: memory without processors, so pages only for databases that are bound there")
    found += [f"{c.instance_candidates.instance.name}: {c.sized.basis}" for c in chosen if c.sized is not None]
    if not selection.exact:
        found.append("page sizes: chosen by least loss per byte, not proven best (too many combinations)")
    return tuple(found)


def _unknowns(inputs: ChoiceInputs, own: Sequence[Claims], chosen: Sequence[_Chosen]) -> tuple[str, ...]:
    found = [*inputs.shared.unknowns, *(unknown for part in own for unknown in part.unknowns)]
    if inputs.node.hvo_enabled is None and any(c.candidate.is_pool for c in chosen):
        found.append("whether HVO (hugetlb_free_vmemmap) is on: the struct pages it would return are left out")
    if any(numa.pools is None for numa in inputs.node.numa):
        found.append("the node's present pools")
    return tuple(found)

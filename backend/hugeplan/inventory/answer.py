"""The plan of a whole inventory: one request per node, its plan, and what is wrong today.

Nodes without a database and without pools are not planned: there is nothing to reserve, and what they hold is in
their line. Every plan is widened by what the source cannot tell, because such facts are None in its request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hugeplan.inventory.findings import findings_of_inventory, findings_of_node, requests_after_plan
from hugeplan.inventory.instances import MAX_DATABASES, free_name
from hugeplan.inventory.model import FoundNode, Inventory, alone
from hugeplan.inventory.now import claims, node_now
from hugeplan.planner.demand import DemandContext, as_found
from hugeplan.planner.findings import findings_by, once_it_fits, what_is_wrong
from hugeplan.planner.findings.base import Facts
from hugeplan.planner.fleet import NodePlan, plan_node
from hugeplan.planner.memory.kubernetes import huge_page_limits
from hugeplan.planner.model import DatabaseInstance, Finding, Plan, PlanRequest, Policy, State
from hugeplan.planner.observation.sizes_unread import sizes_not_read
from hugeplan.planner.other_node import MOST_TRIED, with_other_node
from hugeplan.planner.pages import kubernetes_resource_name, page_label
from hugeplan.planner.units import format_iec_bytes
from hugeplan.recognition.operators import owner


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnswer:
    """One node: its plan (None: nothing to plan, or ``not_planned_because``) and its findings, the worst first.

    ``fits`` is None without a plan, and where sizes were not read. ``planned_bytes`` and ``present_bytes`` are by page
    size.
    """

    node: FoundNode
    request: PlanRequest
    plan: Plan | None
    findings: tuple[Finding, ...]
    fits: bool | None
    free_bytes: int | None
    planned_bytes: Mapping[int, int]
    present_bytes: Mapping[int, int] | None
    not_planned_because: str | None = None

    @property
    def missing_pages(self) -> dict[int, int] | None:
        """Planned pages that are not there, by page size; None where the present ones are not known."""
        return self._difference(1)

    @property
    def idle_pages(self) -> dict[int, int] | None:
        """Present pages beyond the plan, by page size; None where the present ones are not known."""
        return self._difference(-1)

    def _difference(self, sign: int) -> dict[int, int] | None:
        if self.present_bytes is None:
            return None
        sizes = self.planned_bytes.keys() | self.present_bytes.keys()
        found = {s: sign * (self.planned_bytes.get(s, 0) - self.present_bytes.get(s, 0)) // s for s in sorted(sizes)}
        return {size: pages for size, pages in found.items() if pages > 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAnswer:
    """Every node's answer in the inventory's order, and findings about databases without a node."""

    inventory: Inventory
    nodes: tuple[NodeAnswer, ...]
    findings: tuple[Finding, ...]

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """All findings of the fleet, the worst first."""
        found = [*self.findings, *(finding for node in self.nodes for finding in node.findings)]
        return tuple(sorted(found, key=_severity))

    @property
    def does_not_fit(self) -> tuple[NodeAnswer, ...]:
        """Nodes whose plan does not fit."""
        return tuple(node for node in self.nodes if node.fits is False)

    @property
    def fitting_bytes(self) -> int:
        """What can be reserved: huge pages of the plans that are known to fit."""
        return sum(sum(node.planned_bytes.values()) for node in self.nodes if node.fits)


_WORST_FIRST = {State.WRONG: 0, State.ATTENTION: 1, State.UNKNOWN: 2, State.OK: 3}


def _severity(finding: Finding) -> int:
    return _WORST_FIRST[finding.state]


def answer(inventory: Inventory, policy: Policy | None = None) -> FleetAnswer:
    """Plan every node of an inventory."""
    chosen = Policy() if policy is None else policy
    notes: list[str] = []
    nodes = _with_other_nodes([_answer_alone(node, chosen) for node in inventory.nodes], notes)
    return FleetAnswer(
        inventory=replace(inventory, notes=(*inventory.notes, *notes)),
        nodes=nodes,
        findings=findings_of_inventory(inventory),
    )


def _with_other_nodes(nodes: Sequence[NodeAnswer], notes: list[str]) -> tuple[NodeAnswer, ...]:
    """Nodes that do not fit with another node that takes a database, the one with the most free memory first."""
    if all(node.fits is not False for node in nodes):
        return tuple(nodes)
    open_nodes = (node for node in nodes if node.fits is not False and node.not_planned_because is None)
    candidates = sorted(open_nodes, key=_room_bytes, reverse=True)
    return tuple(_with_other_node(node, candidates, notes) for node in nodes)


def _with_other_node(node: NodeAnswer, candidates: Sequence[NodeAnswer], notes: list[str]) -> NodeAnswer:
    if node.fits is False and node.plan is not None:
        others = [other.request for other in candidates if other.node.facts.arch == node.node.facts.arch][:MOST_TRIED]
        with alone(f"{node.node.facts.name}: no other node was looked for", notes):
            return replace(node, plan=with_other_node(node.plan, node.request, others))
    return node


def _room_bytes(node: NodeAnswer) -> int:
    """Free memory under the plan; of a node without one what its pods do not request."""
    if node.free_bytes is not None:
        return node.free_bytes
    return _unrequested_bytes(node.request)


def _unrequested_bytes(request: PlanRequest) -> int:
    return request.node.mem_total_bytes - sum((t.request_bytes or 0) * t.count for t in request.tenants)


Limits = Mapping[tuple[str, int], int]


def request_of(node: FoundNode, policy: Policy, standing: Limits | None = None) -> PlanRequest:
    """What the planner is asked for a node: its databases, and every other claim on huge pages as a segment.

    ``standing`` is what :func:`standing_limits` says of an earlier plan; None: of pods without a database alone.
    """
    others = [
        (subject, size, held // size * size)
        for (subject, size), held in (standing_limits(node, None) if standing is None else standing).items()
        # No pod can map more than there is, whatever it asks for.
        if size <= held <= node.facts.mem_total_bytes and size in node.facts.huge_page_sizes_bytes
    ]
    if len(node.databases) + len(others) > MAX_DATABASES:
        sizes = sorted({size for _, size, _ in others})
        first = max(0, MAX_DATABASES - len(node.databases) - len(sizes))
        rest = [(size, [held for _, own, held in others[first:] if own == size]) for size in sizes]
        others = [*others[:first], *((f"{len(held):,} more pods", size, sum(held)) for size, held in rest if held)]
    names = {found.instance.name for found in node.databases}
    context = DemandContext.of_node(node.facts)
    return PlanRequest(
        node=node.facts,
        reservations=node.reservations,
        tenants=node.tenants,
        databases=(
            *(as_found(found.instance, context)[0] for found in node.databases),
            *(_as_instance(free_name(names, f"{one} ({page_label(size)})"), size, held) for one, size, held in others),
        ),
        policy=policy,
        sample=node.sample,
    )


def standing_limits(node: FoundNode, found: Plan | None) -> Limits:
    """Bytes that pods ask for beside what ``found`` gives their databases, by pod and page size.

    The scheduler counts a limit whether its pages are used or not. A patch writes the limits of its container anew: a
    StatefulSet's those of all sizes, an operator's those that it names. Every other limit stands.
    """
    moved: Counter[tuple[str, int]] = Counter()
    planned = {one.name: one for one in (() if found is None else found.instances)}
    for database in node.databases:
        one, instance = planned.get(database.instance.name), database.instance
        given = huge_page_limits(one, found.pools, found.instances) if found and one and one.page_bytes else {}
        is_patched = bool(given) and owner(instance) is not None and not database.limits_are_the_pods
        for size, limit in (database.huge_pages_limit_bytes or {}).items():
            own = given.get(kubernetes_resource_name(size))
            is_written = is_patched and (own is not None or instance.operator_object is None)
            moved[database.subject, size] += limit if found is None or is_written else min(limit, own or 0)
    limits = {(user.subject, size): held for user in node.huge_page_users for size, held in user.limit_bytes.items()}
    return {key: held - moved[key] for key, held in limits.items() if held > moved[key]}


def _as_instance(name: str, page_bytes: int, limit: int) -> DatabaseInstance:
    """A pod of which only its limit is known: it may map as much, so its pages stay."""
    return DatabaseInstance(
        name=name,
        engine="generic",
        settings={"segment_size": format_iec_bytes(limit), "is_limit": "on"},
        page_bytes=page_bytes,
        pod_hugepages_limit_bytes=limit,
    )


def _answer_alone(node: FoundNode, policy: Policy) -> NodeAnswer:
    """Nobody's pod ends the plan of other nodes by what nobody foresaw."""
    try:
        return _node_answer(node, policy)
    except Exception as error:
        request = PlanRequest(
            node=node.facts, reservations=node.reservations, tenants=node.tenants, databases=(), policy=policy
        )
        return _without_plan(node, request, (), f"internal error: {type(error).__name__}: {error}")


def _node_answer(node: FoundNode, policy: Policy) -> NodeAnswer:
    request, answered = _planned(node, policy)
    found = None if answered is None else answered.plan
    by_size = {} if found is None else _reserved_by(found)
    taken = {} if found is None else _reserved_by(found, keeps=False)
    misfit = answered is not None and answered.fits is False
    unread = {} if found is None else sizes_not_read(request, found.instances)
    free = None if answered is None else answered.free_bytes
    room = None if misfit else max(0, _unrequested_bytes(request) if free is None else free)
    now = replace(node_now(node), planned_bytes=taken, pool_plan_bytes=by_size, room_bytes=room)
    limits = what_is_wrong(findings_by(Facts(claims=claims(now))))
    today = (*(once_it_fits(limits, {}) if misfit else limits), *findings_of_node(now))
    today = once_it_fits(today, unread) if unread else today
    present = node.hugetlb_pool_bytes
    if answered is None:
        return _without_plan(node, request, today, None)
    if found is None:
        return _without_plan(node, request, today, answered.why_not)
    said = _said_of(node, today)
    own = tuple(
        finding
        if finding.subject == node.facts.name
        else replace(finding, subject=f"{node.facts.name}, {finding.subject}")
        for finding in found.findings
        if not _is_said(node, finding, said)
    )
    findings = (*today, *requests_after_plan(node, found), *own)
    return NodeAnswer(
        node=node,
        request=request,
        plan=found,
        findings=tuple(sorted(findings, key=_severity)),
        fits=answered.fits,
        free_bytes=answered.free_bytes,
        planned_bytes={size: held for size, held in sorted(by_size.items()) if held},
        present_bytes=present,
    )


def _planned(node: FoundNode, policy: Policy) -> tuple[PlanRequest, NodePlan | None]:
    """The plan beside all limits that stand under it. More of them stand the less room is left for databases."""
    standing: Limits = standing_limits(node, None)
    while True:
        request = request_of(node, policy, standing)
        answered = plan_node(request) if request.databases else None
        now = standing_limits(node, None if answered is None else answered.plan)
        if all(held <= standing.get(key, 0) for key, held in now.items()):
            return request, answered
        standing = {**standing, **{key: max(held, standing.get(key, 0)) for key, held in now.items()}}


def _reserved_by(found: Plan, *, keeps: bool = True) -> dict[int, int]:
    """Bytes that a plan reserves, by page size, with or without what it ``keeps`` for others."""
    by_size: dict[int, int] = {}
    for pool in found.pools:
        pages = pool.pages - (0 if keeps else pool.held_pages)
        by_size[pool.page_bytes] = by_size.get(pool.page_bytes, 0) + pages * pool.page_bytes
    return by_size


def _said_of(node: FoundNode, today: Sequence[Finding]) -> dict[tuple[str, str], int]:
    """How bad the worst finding on today's state is, by its code and the plan's name of its subject."""
    names = {found.subject: found.instance.name for found in node.databases}
    said: dict[tuple[str, str], int] = {}
    for finding in today:
        key = (finding.code, names.get(finding.subject, finding.subject))
        said[key] = min(said.get(key, _severity(finding)), _severity(finding))
    return said


def _is_said(node: FoundNode, finding: Finding, said: Mapping[tuple[str, str], int]) -> bool:
    """Whether the same rule said as much of today: of the same database, or of the node whose pool this is about."""
    is_database = any(found.instance.name == finding.subject for found in node.databases)
    about = finding.subject if is_database else node.facts.name
    return _severity(finding) >= said.get((finding.code, about), len(_WORST_FIRST))


def _without_plan(node: FoundNode, request: PlanRequest, today: Sequence[Finding], because: str | None) -> NodeAnswer:
    return NodeAnswer(
        node=node,
        request=request,
        plan=None,
        findings=tuple(sorted(today, key=_severity)),
        fits=None,
        free_bytes=None,
        planned_bytes={},
        present_bytes=node.hugetlb_pool_bytes,
        not_planned_because=because,
    )

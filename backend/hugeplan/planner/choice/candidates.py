"""The candidates of several instances: demands and gains worked out together, and remembered between two plans."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, Final

from hugeplan.planner.choice.page_size_candidate import Candidate, CandidateSetting, candidate_at, candidate_sizes
from hugeplan.planner.demand import DemandContext, Engine, OnShortage, demand_of, engine_named
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.gain.page_size_gain import Gains, gains_of_all
from hugeplan.planner.memory.page_tables import InstanceTables, instance_tables
from hugeplan.planner.model import DatabaseInstance, Demand, Gain, NodeFacts, Policy
from hugeplan.planner.remembered import Answers, Key, remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceCandidates:
    """An instance with everything its choice needs: candidates by page size, gains, page tables at base pages."""

    instance: DatabaseInstance
    engine: Engine
    base_demand: Demand
    base_tables_bytes: int
    candidates: tuple[Candidate, ...]
    gains: tuple[Gain, ...]


def candidates_of_all(
    node: NodeFacts,
    instances: Sequence[DatabaseInstance],
    policy: Policy,
    context: DemandContext,
    *,
    weigh_gains: bool = True,
) -> tuple[InstanceCandidates, ...]:
    """The candidates of several instances, whose gains are worked out together.

    Remembered: while one setting of a scenario moves, the other instances stay as they are. PlannerErrors name the
    instance by its place.
    """
    weighing = _weighing(node, policy, context, weigh_gains)
    keys = [Key((weighing, _content(instance))) for instance in instances]
    known = {key: found for key in keys if (found := _answers.get(key)) is not None}
    fresh = []
    for index, (key, instance) in enumerate(zip(keys, instances, strict=True)):
        if key in known:
            continue
        # Without gains they are those that are known with them, but for the gains.
        key_with_gains = None if weigh_gains else Key((_weighing(node, policy, context, True), _content(instance)))
        if key_with_gains is not None and (found := _answers.get(key_with_gains)) is not None:
            known[key] = replace(
                found, gains=(), candidates=tuple(replace(c, gain_score=0.0) for c in found.candidates)
            )
            continue
        try:
            fresh.append((key, _prepared(weighing, instance)))
        except PlannerError as error:
            raise error.within(f"databases[{index}]") from error
    known.update(zip((key for key, _ in fresh), _with_gains(weighing, [one for _, one in fresh]), strict=True))
    _answers.keep(known)
    return tuple(
        found if (found := known[key]).instance is instance else replace(found, instance=instance)
        for key, instance in zip(keys, instances, strict=True)
    )


class _Weighing(Key):
    """What the candidates of all instances of one request depend on besides the instance."""

    __slots__ = ("context", "node", "policy", "weigh_gains")

    def __init__(self, node: NodeFacts, policy: Policy, context: DemandContext, weigh_gains: bool) -> None:
        super().__init__((node, policy, context, weigh_gains))
        self.node, self.policy, self.context, self.weigh_gains = node, policy, context, weigh_gains


_latest: Answers[bool, _Weighing] = Answers(2)


def _weighing(node: NodeFacts, policy: Policy, context: DemandContext, weigh_gains: bool) -> _Weighing:
    """The same object while one node is planned again and again: its hash reads all of the node's curves."""
    known = _latest.get(weigh_gains)
    if known is not None and known.node is node and known.policy is policy and known.context == context:
        return known
    _latest[weigh_gains] = made = _Weighing(node, policy, context, weigh_gains)
    return made


_answers: Answers[Key, InstanceCandidates] = Answers(1024)


def _content(instance: DatabaseInstance) -> Hashable:
    """An instance as something hashable: its settings are a mapping."""
    return tuple(
        tuple(sorted(instance.settings.items())) if name == "settings" else getattr(instance, name)
        for name in _INSTANCE_FIELDS
    )


_INSTANCE_FIELDS = tuple(field.name for field in fields(DatabaseInstance))


@dataclass(frozen=True, slots=True)
class _Prepared:
    """An instance with its demands and page tables by page size, before gains are known."""

    instance: DatabaseInstance
    engine: Engine
    demands: Mapping[int, Demand]
    tables: Mapping[int, InstanceTables]


def _prepared(weighing: _Weighing, instance: DatabaseInstance) -> _Prepared:
    node, context = weighing.node, weighing.context
    engine = engine_named(instance.engine)
    sizes = candidate_sizes(node, instance, weighing.policy)
    base = demand_at(instance, node.base_page_bytes, context)
    demands = {node.base_page_bytes: base}
    if base.wants_pool:
        demands |= {size: demand_at(instance, size, context) for size in sizes}
    tables = {size: instance_tables(node, demand, instance.workload) for size, demand in demands.items()}
    return _Prepared(instance, engine, demands, tables)


def _with_gains(weighing: _Weighing, prepared: Sequence[_Prepared]) -> list[InstanceCandidates]:
    node = weighing.node
    found: Sequence[Gains] = [Gains((), {})] * len(prepared)
    if weighing.weigh_gains and prepared:
        found = gains_of_all(node, [(one.instance, one.demands) for one in prepared])
    return [_all_candidates(weighing, one, gains) for one, gains in zip(prepared, found, strict=True)]


def _all_candidates(weighing: _Weighing, one: _Prepared, gains: Gains) -> InstanceCandidates:
    node, instance = weighing.node, one.instance
    base = one.demands[node.base_page_bytes]
    setting = CandidateSetting(
        node=node, instance=instance, engine=one.engine, policy=weighing.policy, tables=one.tables, gains=gains
    )
    candidates = [candidate_at(setting, demand) for demand in one.demands.values()]
    pools = [candidate for candidate in candidates if candidate.is_pool]
    has_pool = any(candidate.obstacle is None for candidate in pools)
    if not _base_is_open(instance, base) or (has_pool and _insists(weighing, one)):
        candidates = pools
    return InstanceCandidates(
        instance=instance,
        engine=one.engine,
        base_demand=base,
        base_tables_bytes=one.tables[node.base_page_bytes].bytes,
        candidates=tuple(candidates),
        gains=gains.shown,
    )


#: Fields of an instance of which no rule of an engine asks: instances that differ in them alone share their demands.
_NOT_OF_DEMAND: Final = frozenset(
    {"name", "settings", "numa_node", "weight", "pool_min_bytes", "pool_max_bytes", "runs_as", "walks_now"}
    | {"page_tables_now_bytes", "pod_hugepages_limit_bytes", "pod_memory_request_bytes"}
    | {"stateful_set", "container", "operator_object"}
)
_OF_DEMAND: Final = tuple(name for name in _INSTANCE_FIELDS if name not in _NOT_OF_DEMAND)
_of_demand: Final = attrgetter(*_OF_DEMAND)


def demand_at(instance: DatabaseInstance, page_bytes: int, context: DemandContext) -> Demand:
    """:func:`demand_of`, remembered: while one setting of a scenario moves, the other instances stay as they are."""
    return _demand_at(_of_demand(instance), tuple(sorted(instance.settings.items())), page_bytes, context)


@remembered(4096)
def _demand_at(
    values: tuple[Any, ...], settings: tuple[tuple[str, str], ...], page_bytes: int, context: DemandContext
) -> Demand:
    known = dict(zip(_OF_DEMAND, values, strict=True))
    return demand_of(DatabaseInstance(name=known["engine"], settings=dict(settings), **known), page_bytes, context)


def _insists(weighing: _Weighing, one: _Prepared) -> bool:
    """Whether the settings let the server start on huge pages only: base pages are then no choice."""
    shortage = one.engine.pool_use(one.instance, weighing.context).on_shortage
    return one.engine.refusal is not None and shortage is OnShortage.REFUSE


def _base_is_open(instance: DatabaseInstance, base: Demand) -> bool:
    """Base pages are weighed unless the reader named a huge page size."""
    return not base.wants_pool or not instance.page_bytes

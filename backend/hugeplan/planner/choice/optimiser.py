"""The optimiser's two exact problems, free of engines and nodes.

* :func:`select` picks one option per instance (its page size): the highest total score whose memory fits.
* :func:`allocate` sizes buffer pools between their bounds: the highest total benefit that fits.

Memory budgets nest: what is bound to a NUMA node must fit that node, and everything together must fit the total.
With such nested budgets, equal steps and concave benefits the greedy choice of the best next step is optimal
(a separable concave function over a polymatroid; Federgruen and Groenevelt, Operations Research 34, 1986);
benefits that are not concave are solved by dynamic programming instead. Both are checked against brute force.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hugeplan.planner.choice.integer_program import Row, best_selection

#: Combinations of page sizes up to which the best is found by looking at all of them.
EXHAUSTIVE_LIMIT = 4096

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Budgets:
    """Room by NUMA node and in total, in bytes or in steps. ``total`` may be less than the sum of the nodes."""

    by_node: Mapping[int, int]
    total: int

    def limits(self) -> dict[int | None, int]:
        """The room by node, and under None in total."""
        limits: dict[int | None, int] = {None: self.total}
        limits.update(self.by_node.items())
        return limits


@dataclass(frozen=True, slots=True)
class Option:
    """One way to serve an instance: memory it takes and its score (higher is better)."""

    cost: int
    score: float


@dataclass(frozen=True, slots=True)
class OptionSet:
    """The options of one instance, bound to ``numa_node`` or (None) to none."""

    options: tuple[Option, ...]
    numa_node: int | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """Chosen option by instance. ``fits`` False: no combination fits, the smallest one is returned.

    ``exact`` False: it is not proven that none is better.
    """

    chosen: tuple[int, ...]
    score: float
    fits: bool
    exact: bool


def select(sets: Sequence[OptionSet], budgets: Budgets) -> Selection:
    """One option per instance, the highest sum of scores that fits the budgets.

    Each instance's best option is taken when all of them fit together. Else every combination is weighed while
    there are at most EXHAUSTIVE_LIMIT of them; beyond that an integer program finds the best. Only where that is not
    solved in time are options given up by least score per byte saved.
    """
    best = tuple(max(range(len(s.options)), key=lambda i: (s.options[i].score, -i)) for s in sets)
    if _fits(sets, best, budgets):
        return Selection(best, _score(sets, best), fits=True, exact=True)
    combinations = 1
    for s in sets:
        combinations *= len(s.options)
    if combinations <= EXHAUSTIVE_LIMIT:
        chosen = _best_of_all(sets, budgets)
        if chosen is not None:
            return Selection(chosen, _score(sets, chosen), fits=True, exact=True)
        return _smallest(sets, exact=True)
    return _by_integer_program(sets, best, budgets)


def _best_of_all(sets: Sequence[OptionSet], budgets: Budgets) -> tuple[int, ...] | None:
    """The first of the best combinations that fit; None where none does. What is over budget is not gone into."""
    found: tuple[float, tuple[int, ...]] | None = None
    left = budgets.limits()

    def descend(index: int, score: float, chosen: tuple[int, ...]) -> None:
        nonlocal found
        if index == len(sets):
            if found is None or score > found[0]:
                found = (score, chosen)
            return
        numa_node = sets[index].numa_node
        for i, option in enumerate(sets[index].options):
            cost = option.cost
            if cost > left[None] or (numa_node is not None and cost > left[numa_node]):
                continue
            left[None] -= cost
            if numa_node is not None:
                left[numa_node] -= cost
            descend(index + 1, score + option.score, (*chosen, i))
            left[None] += cost
            if numa_node is not None:
                left[numa_node] += cost

    descend(0, 0.0, ())
    return None if found is None else found[1]


def _by_integer_program(sets: Sequence[OptionSet], best: Sequence[int], budgets: Budgets) -> Selection:
    """The best of all combinations where it is found and proven, else what giving up options leads to."""
    rows = [
        Row(frozenset(i for i, s in enumerate(sets) if key is None or s.numa_node == key), limit)
        for key, limit in budgets.limits().items()
    ]
    scores, costs = ([[getattr(o, part) for o in s.options] for s in sets] for part in ("score", "cost"))
    found = best_selection(scores, costs, rows)
    if found.chosen is None and found.proven:
        return _smallest(sets, exact=True)
    given_up = _give_up_least(sets, best, budgets)
    # The solver counts in floating point: what it calls fitting is counted again in bytes.
    if found.chosen is None or not _fits(sets, found.chosen, budgets):
        return given_up
    solved = Selection(found.chosen, _score(sets, found.chosen), fits=True, exact=found.proven)
    return solved if solved.exact or not given_up.fits or solved.score >= given_up.score else given_up


def _score(sets: Sequence[OptionSet], chosen: Sequence[int]) -> float:
    return sum(s.options[i].score for s, i in zip(sets, chosen, strict=True))


def _excess(sets: Sequence[OptionSet], chosen: Sequence[int], budgets: Budgets) -> dict[int | None, int]:
    """Bytes over budget by node, None for the total; only what is over."""
    used: dict[int | None, int] = {None: 0}
    for s, i in zip(sets, chosen, strict=True):
        cost = s.options[i].cost
        used[None] += cost
        if s.numa_node is not None:
            used[s.numa_node] = used.get(s.numa_node, 0) + cost
    limits = budgets.limits()
    return {key: value - limits[key] for key, value in used.items() if value > limits[key]}


def _fits(sets: Sequence[OptionSet], chosen: Sequence[int], budgets: Budgets) -> bool:
    return not _excess(sets, chosen, budgets)


def _smallest(sets: Sequence[OptionSet], *, exact: bool) -> Selection:
    chosen = tuple(min(range(len(s.options)), key=lambda i: (s.options[i].cost, -s.options[i].score)) for s in sets)
    return Selection(chosen, _score(sets, chosen), fits=False, exact=exact)


def _give_up_least(sets: Sequence[OptionSet], start: Sequence[int], budgets: Budgets) -> Selection:
    chosen = list(start)
    while excess := _excess(sets, chosen, budgets):
        moves = []
        for index, s in enumerate(sets):
            if None not in excess and s.numa_node not in excess:
                continue
            now = s.options[chosen[index]]
            for i, option in enumerate(s.options):
                if option.cost < now.cost:
                    moves.append(((now.score - option.score) / (now.cost - option.cost), index, i))
        if not moves:
            return _smallest(sets, exact=False)
        _, index, i = min(moves)
        chosen[index] = i
    return Selection(tuple(chosen), _score(sets, chosen), fits=True, exact=False)


@dataclass(frozen=True, slots=True)
class Ask:
    """A buffer pool to size: ``benefits[k]`` is its benefit k steps above its minimum (index 0: the minimum)."""

    benefits: tuple[float, ...]
    numa_node: int | None = None


@dataclass(frozen=True, slots=True)
class Allocation:
    """Steps above the minimum by ask, and their summed benefit.

    ``next_marginal`` is the best step that found no memory, in benefit; None when every step that pays was granted.
    """

    steps: tuple[int, ...]
    benefit: float
    next_marginal: float | None
    method: str


def is_concave(benefits: Sequence[float], tolerance: float = 1e-9) -> bool:
    """Whether each step is worth no more than the one before, within ``tolerance`` of the largest benefit."""
    marginals = np.diff(np.asarray(benefits, dtype=np.float64))
    if marginals.size < 2:
        return True
    scale = max(1.0, float(np.abs(np.asarray(benefits)).max()))
    return bool(np.all(np.diff(marginals) <= tolerance * scale))


def allocate(asks: Sequence[Ask], budgets: Budgets, price: float = 0.0) -> Allocation:
    """Steps for each ask that maximise the summed benefit less ``price`` a step; budgets are counted in steps.

    ``price`` is what one step of memory is worth to everybody else: a step whose benefit does not exceed it stays
    free. Greedy when every benefit is concave, dynamic programming otherwise.
    """
    if all(is_concave(ask.benefits) for ask in asks):
        return _allocate_greedy(asks, budgets, price)
    return _allocate_by_table(asks, budgets, price)


def _allocate_greedy(asks: Sequence[Ask], budgets: Budgets, price: float) -> Allocation:
    steps = [0] * len(asks)
    left = budgets.limits()
    heap = [(-(ask.benefits[1] - ask.benefits[0]), i) for i, ask in enumerate(asks) if len(ask.benefits) > 1]
    heapq.heapify(heap)
    blocked: float | None = None
    while heap:
        negative, i = heapq.heappop(heap)
        if -negative <= price:
            break
        keys = {None, asks[i].numa_node}
        if any(left[key] < 1 for key in keys):
            blocked = max(blocked or 0.0, -negative)
            continue
        for key in keys:
            left[key] -= 1
        steps[i] += 1
        benefits = asks[i].benefits
        if steps[i] + 1 < len(benefits):
            heapq.heappush(heap, (-(benefits[steps[i] + 1] - benefits[steps[i]]), i))
    return Allocation(tuple(steps), _benefit(asks, steps), blocked, "greedy")


def _benefit(asks: Sequence[Ask], steps: Sequence[int]) -> float:
    return float(sum(ask.benefits[k] for ask, k in zip(asks, steps, strict=True)))


def _allocate_by_table(asks: Sequence[Ask], budgets: Budgets, price: float) -> Allocation:
    """Dynamic programming: per node first, then the nodes and the unbound asks together."""
    groups: dict[int | None, list[int]] = {}
    for i, ask in enumerate(asks):
        groups.setdefault(ask.numa_node, []).append(i)
    tables: list[tuple[Floats, list[tuple[int, NDArray[np.int64]]]]] = []
    for numa_node, members in groups.items():
        cap = budgets.total if numa_node is None else min(budgets.total, budgets.by_node[numa_node])
        tables.append(_group_table([(i, asks[i].benefits) for i in members], max(0, cap), price))
    joint = np.zeros(1)
    picks: list[NDArray[np.int64]] = []
    for values, _ in tables:
        joint, pick = _combine(joint, values, max(0, budgets.total))
        picks.append(pick)
    steps = [0] * len(asks)
    used = int(np.argmax(joint))
    for (_, trail), pick in zip(reversed(tables), reversed(picks), strict=True):
        own = int(pick[used])
        used -= own
        for i, choice in reversed(trail):
            steps[i] = int(choice[own])
            own -= steps[i]
    more = [
        ask.benefits[k + 1] - ask.benefits[k] for ask, k in zip(asks, steps, strict=True) if k + 1 < len(ask.benefits)
    ]
    wanted = max((value for value in more if value > price), default=None)
    return Allocation(tuple(steps), _benefit(asks, steps), wanted, "dynamic programming")


def _group_table(
    members: Sequence[tuple[int, tuple[float, ...]]], cap: int, price: float
) -> tuple[Floats, list[tuple[int, NDArray[np.int64]]]]:
    """Best benefit of a group by steps used (0..cap), and the choice that reached it for each member."""
    values = np.zeros(1)
    trail: list[tuple[int, NDArray[np.int64]]] = []
    for i, benefits in members:
        own = np.asarray(benefits, dtype=np.float64) - price * np.arange(len(benefits))
        values, pick = _combine(values, own, cap)
        trail.append((i, pick))
    return values, trail


def _combine(first: Floats, second: Floats, cap: int) -> tuple[Floats, NDArray[np.int64]]:
    """Max-plus convolution up to ``cap`` steps: best sums, and how many steps ``second`` took for each."""
    size = min(cap, len(first) + len(second) - 2) + 1
    best = np.full(size, -np.inf)
    pick = np.zeros(size, dtype=np.int64)
    for k in range(min(len(second), size)):
        stop = min(size, k + len(first))
        candidate = first[: stop - k] + second[k]
        better = candidate > best[k:stop]
        best[k:stop] = np.where(better, candidate, best[k:stop])
        pick[k:stop] = np.where(better, k, pick[k:stop])
    return best, pick

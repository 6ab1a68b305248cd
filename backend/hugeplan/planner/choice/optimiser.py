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
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hugeplan.planner.choice.integer_program import Row, best_selection

#: Combinations of page sizes up to which the best is found by looking at all of them.
EXHAUSTIVE_LIMIT = 4096
#: Scores closer than this are the same: sums of the same parts in another order.
_SAME_SCORE = 1e-9

Floats = NDArray[np.float64]
Key = int | str | None
"""A limit: a NUMA node, None for all memory, or a word."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """Room by NUMA node and in total, in bytes or in steps. ``total`` may be less than the sum of the nodes.

    ``pools``: the most that pools may take (a provider's cap); ``near``: room of the NUMA nodes with processors. None:
    no such limit.
    """

    by_node: Mapping[int, int]
    total: int
    pools: int | None = None
    near: int | None = None

    def less(self, size: int, by_node: Mapping[int, int] | None = None) -> Budgets:
        """The same with ``size`` less in total, and ``by_node`` less on each NUMA node."""
        rooms = {i: room - (by_node or {}).get(i, 0) for i, room in self.by_node.items()}
        return replace(self, by_node=rooms, total=self.total - size)

    def limits(self) -> dict[Key, int]:
        """The room by node, under None in total, and under a word for each other limit."""
        limits: dict[Key, int] = {None: self.total}
        limits.update(self.by_node.items())
        if self.pools is not None:
            limits["pools"] = self.pools
        if self.near is not None:
            limits["near"] = self.near
        return limits


@dataclass(frozen=True, slots=True)
class Option:
    """One way to serve an instance: memory it takes and its score (higher is better).

    ``pools``: what of it lies in pools; ``near``: what must lie on NUMA nodes with processors.
    """

    cost: int
    score: float
    pools: int = 0
    near: int = 0


@dataclass(frozen=True, slots=True)
class OptionSet:
    """The options of one instance, bound to ``numa_node`` or (None) to none."""

    options: tuple[Option, ...]
    numa_node: int | None = None

    def uses(self, option: Option, limits: Mapping[Key, int]) -> list[tuple[Key, int]]:
        """What an option takes of each limit."""
        found: list[tuple[Key, int]] = [(None, option.cost)]
        if self.numa_node is not None:
            found.append((self.numa_node, option.cost))
        if "pools" in limits:
            found.append(("pools", option.pools))
        if "near" in limits:
            found.append(("near", option.near))
        return found


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
    combinations = math.prod(len(s.options) for s in sets)
    if combinations <= EXHAUSTIVE_LIMIT:
        chosen = next(best_first(sets, budgets, 1), None)
        if chosen is not None:
            return Selection(chosen, _score(sets, chosen), fits=True, exact=True)
        return _smallest(sets, exact=True)
    return _by_integer_program(sets, best, budgets)


def best_first(
    sets: Sequence[OptionSet], budgets: Budgets, most: int, *, above: float | None = None
) -> Iterator[tuple[int, ...]]:
    """Up to ``most`` combinations that fit, the highest score first; the best one alone where there are too many.

    ``above``: only those with a higher score.
    """
    floor = -math.inf if above is None else above + _SAME_SCORE
    tops = [max(option.score for option in s.options) for s in sets]
    if sum(tops) <= floor:
        return
    if math.prod(len(s.options) for s in sets) > EXHAUSTIVE_LIMIT:
        found = select(sets, budgets)
        if found.fits and found.score > floor:
            yield found.chosen
        return
    rest = [sum(tops[i:]) for i in range(len(sets) + 1)]
    limits = budgets.limits()
    left = dict(limits)
    uses = [[(option.score, s.uses(option, limits)) for option in s.options] for s in sets]
    found_all: list[tuple[float, tuple[int, ...]]] = []

    def descend(index: int, score: float, chosen: tuple[int, ...]) -> None:
        if score + rest[index] <= floor:
            return
        if index == len(sets):
            found_all.append((-score, chosen))
            return
        for i, (own, taken) in enumerate(uses[index]):
            if all(size <= left[key] for key, size in taken):
                for key, size in taken:
                    left[key] -= size
                descend(index + 1, score + own, (*chosen, i))
                for key, size in taken:
                    left[key] += size

    descend(0, 0.0, ())
    for _, chosen in sorted(found_all)[:most]:
        yield chosen


def _by_integer_program(sets: Sequence[OptionSet], best: Sequence[int], budgets: Budgets) -> Selection:
    """The best of all combinations where it is found and proven, else what giving up options leads to."""
    limits = budgets.limits()
    uses = [[dict(s.uses(option, limits)) for option in s.options] for s in sets]
    rows = [Row([[use.get(key, 0) for use in of] for of in uses], limit) for key, limit in limits.items()]
    scores = [[option.score for option in s.options] for s in sets]
    found = best_selection(scores, rows)
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


def _excess(sets: Sequence[OptionSet], chosen: Sequence[int], budgets: Budgets) -> dict[Key, int]:
    """What is over each limit, None for the total; only what is over."""
    limits = budgets.limits()
    used: dict[Key, int] = dict.fromkeys(limits, 0)
    for s, i in zip(sets, chosen, strict=True):
        for key, size in s.uses(s.options[i], limits):
            used[key] = used.get(key, 0) + size
    return {key: value - limits[key] for key, value in used.items() if value > limits[key]}


def _fits(sets: Sequence[OptionSet], chosen: Sequence[int], budgets: Budgets) -> bool:
    return not _excess(sets, chosen, budgets)


def _smallest(sets: Sequence[OptionSet], *, exact: bool) -> Selection:
    chosen = tuple(min(range(len(s.options)), key=lambda i: (s.options[i].cost, -s.options[i].score)) for s in sets)
    return Selection(chosen, _score(sets, chosen), fits=False, exact=exact)


def _give_up_least(sets: Sequence[OptionSet], start: Sequence[int], budgets: Budgets) -> Selection:
    chosen = list(start)
    limits = budgets.limits()
    for _ in range(4 * sum(len(s.options) for s in sets)):
        excess = _excess(sets, chosen, budgets)
        if not excess:
            return Selection(tuple(chosen), _score(sets, chosen), fits=True, exact=False)
        moves = []
        for index, s in enumerate(sets):
            now = s.options[chosen[index]]
            taken = dict(s.uses(now, limits))
            for i, option in enumerate(s.options):
                saved = sum(max(0, taken[key] - size) for key, size in s.uses(option, limits) if key in excess)
                if saved:
                    moves.append(((now.score - option.score) / saved, index, i))
        if not moves:
            return _smallest(sets, exact=False)
        _, index, i = min(moves)
        chosen[index] = i
    return _smallest(sets, exact=False)


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


def allocate(asks: Sequence[Ask], budgets: Budgets) -> Allocation:
    """Steps for each ask that maximise the summed benefit; budgets are counted in steps.

    A step without a benefit stays free. Greedy when every benefit is concave, dynamic programming otherwise.
    """
    if all(is_concave(ask.benefits) for ask in asks):
        return _allocate_greedy(asks, budgets)
    return _allocate_by_table(asks, budgets)


def _allocate_greedy(asks: Sequence[Ask], budgets: Budgets) -> Allocation:
    steps = [0] * len(asks)
    left = budgets.limits()
    heap = [(-(ask.benefits[1] - ask.benefits[0]), i) for i, ask in enumerate(asks) if len(ask.benefits) > 1]
    heapq.heapify(heap)
    blocked: float | None = None
    while heap:
        negative, i = heapq.heappop(heap)
        if -negative <= 0.0:
            break
        keys: set[Key] = {None, asks[i].numa_node}
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


def _allocate_by_table(asks: Sequence[Ask], budgets: Budgets) -> Allocation:
    """Dynamic programming: per node first, then the nodes and the unbound asks together."""
    groups: dict[int | None, list[int]] = {}
    for i, ask in enumerate(asks):
        groups.setdefault(ask.numa_node, []).append(i)
    tables: list[tuple[Floats, list[tuple[int, NDArray[np.int64]]]]] = []
    for numa_node, members in groups.items():
        cap = budgets.total if numa_node is None else min(budgets.total, budgets.by_node[numa_node])
        tables.append(_group_table([(i, asks[i].benefits) for i in members], max(0, cap)))
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
    wanted = max((value for value in more if value > 0.0), default=None)
    return Allocation(tuple(steps), _benefit(asks, steps), wanted, "dynamic programming")


def _group_table(
    members: Sequence[tuple[int, tuple[float, ...]]], cap: int
) -> tuple[Floats, list[tuple[int, NDArray[np.int64]]]]:
    """Best benefit of a group by steps used (0..cap), and the choice that reached it for each member."""
    values = np.zeros(1)
    trail: list[tuple[int, NDArray[np.int64]]] = []
    for i, benefits in members:
        own = np.asarray(benefits, dtype=np.float64)
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

"""Sentences of a plan: what to do, and why this size and not the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hugeplan.planner.choice.candidates import InstanceCandidates
from hugeplan.planner.choice.page_size_candidate import TIE_SCORE, Candidate
from hugeplan.planner.choice.pool_sizes import SizedPool
from hugeplan.planner.demand import engine_named, lacks_size
from hugeplan.planner.model import InstancePlan, LedgerKind, NodeFacts, Plan, PoolPlan, Risk, Shortfall, named
from hugeplan.planner.observation.sizes_unread import Unread, not_read
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import exact_bytes, format_bytes, format_chance


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why it is not known whether a plan fits: settings that tell no size, and bytes that were perhaps counted
    twice, each by database."""

    unread: Mapping[str, Unread]
    perhaps_twice: Mapping[str, int]


def headline(
    node: NodeFacts,
    pools: Sequence[PoolPlan],
    instances: Sequence[InstancePlan],
    risk: Risk,
    *,
    shortfall: Shortfall | None,
    doubt: Doubt | None,
) -> str:
    """The first line of a plan: pages to reserve, or why none; whether it fits, where it does not or is in doubt."""
    if shortfall is not None:
        where = "" if shortfall.numa_node is None else f" on NUMA node {shortfall.numa_node}"
        best = next((option for option in shortfall.options if option.kind == "pool"), None)
        fits = "" if best is None else f"; the largest {best.setting} that fits is {exact_bytes(best.pool_bytes or 0)}"
        short = f"{format_bytes(shortfall.shortfall_bytes)} short{where}"
        if doubt is None:
            return f"Does not fit {node.name}: {short}{fits}."
        return f"Whether it fits {node.name} is not known: as counted {short}{_unless(doubt)}{fits}."
    text = _what_to_do(node, pools, instances, risk, {} if doubt is None else doubt.unread)
    return text if doubt is None else f"{text} Whether it fits is not known: {not_read(doubt.unread)}."


def _unless(doubt: Doubt) -> str:
    if doubt.unread:
        return f", and {not_read(doubt.unread)}"
    return f", unless what was observed there holds {named(doubt.perhaps_twice, ' and ')} already"


def _what_to_do(
    node: NodeFacts,
    pools: Sequence[PoolPlan],
    instances: Sequence[InstancePlan],
    risk: Risk,
    unread: Mapping[str, Unread],
) -> str:
    wanted = [pool for pool in pools if pool.pages]
    if wanted and risk.meets_policy is False and risk.probability is not None:
        chance = f"{format_chance(risk.probability.likely)}, above the accepted {format_chance(risk.policy)}"
        return f"{_reserve(node, wanted)} But the risk that ordinary memory runs out is then {chance}."
    if wanted:
        return _reserve(node, wanted)
    if not instances:
        return f"Reserve no huge pages on {node.name}: no database is described."
    if any(instance.name in unread and not engine_named(instance.engine).has_default_size for instance in instances):
        return f"Reserve no huge pages on {node.name}: not every database there has a known size."
    if all(instance.runner_up is None for instance in instances):
        one = "its database" if len(instances) == 1 else "none of its databases"
        verb = "does not use any as it is set" if len(instances) == 1 else "uses any as it is set"
        return f"Reserve no huge pages on {node.name}: {one} {verb}."
    no_room = any(i.runner_up and i.chosen and i.runner_up.score > i.chosen.score for i in instances)
    why = "a pool would pay, and there is no room for it" if no_room else "no instance is better off with a pool"
    return f"Reserve no huge pages on {node.name}: {why}."


#: Page tables above this part of the node are named in the short answer.
HEAVY_TABLES = 10
#: Above so many NUMA nodes the headline gives the least and the most of a node; the pools list every count.
_NODES_IN_WORDS = 4


def _reserve(node: NodeFacts, pools: Sequence[PoolPlan]) -> str:
    if not pools:
        return ""
    counts: dict[int, dict[int, int]] = {}
    for pool in pools:
        counts.setdefault(pool.page_bytes, {})[pool.numa_node] = pool.pages
    parts = []
    for page_bytes, by_node in sorted(counts.items()):
        pages = sum(by_node.values())
        noun = "page" if pages == 1 else "pages"
        parts.append(f"{pages:,} {noun} of {page_label(page_bytes)} ({format_bytes(pages * page_bytes)})")
    text = f"Reserve {' and '.join(parts)} on {node.name}"
    return f"{text}: {_where(counts)}." if len(node.numa) > 1 else f"{text}."


def _where(counts: Mapping[int, Mapping[int, int]]) -> str:
    """Pages on each NUMA node, by page size where there are several: "4,250 on NUMA node 0, 4,250 on node 1"."""
    parts = []
    for page_bytes, by_node in sorted(counts.items()):
        size = f" of {page_label(page_bytes)}" if len(counts) > 1 else ""
        if len(by_node) > _NODES_IN_WORDS:
            least, most = min(by_node.values()), max(by_node.values())
            each = f"{least:,}" if least == most else f"{least:,} to {most:,}"
            parts.append(f"{each}{size} on each of {len(by_node)} NUMA nodes")
            continue
        for position, (numa_id, pages) in enumerate(sorted(by_node.items())):
            parts.append(f"{pages:,}{size if position == 0 else ''} on {'NUMA ' if not parts else ''}node {numa_id}")
    return ", ".join(parts)


def why_instance(
    p: InstanceCandidates, chosen: Candidate, runner_up: Candidate | None, sized: SizedPool | None
) -> tuple[str, str]:
    """Why this size and count, what the runner-up was, and by how much it lost; the second time without the score."""
    sentences = [_why_size(p, chosen)]
    if chosen.is_pool:
        sentences.append(_why_count(chosen))
    if sized is not None:
        sentences.append(sized.why)
    if runner_up is not None:
        sentences.append(_why_not(chosen, runner_up))
    sentences += [
        f"{_label(c)} is not available: {c.obstacle}." for c in p.candidates if c.obstacle and c is not chosen
    ]
    return " ".join(sentences), " ".join(sentences[1:] if _is_by_score(p, chosen) else sentences)


def heavy_tables(planned: InstancePlan, mem_total_bytes: int) -> str | None:
    """What an instance's page tables take, where that is more than a tenth of the node; None where it is not."""
    size = planned.page_tables_huge_bytes
    if size * HEAVY_TABLES <= mem_total_bytes:
        return None
    page = page_label(planned.demand.page_bytes)
    share = 100 * size / mem_total_bytes
    return (
        f"Page tables of {planned.name} on {page} pages take {format_bytes(size)}, {share:.0f} % of the node's memory."
    )


def tables_were_read(plan: Plan) -> bool:
    """Whether the page tables of today are known, so that some come back; else there are fewer than on base pages."""
    changes = () if plan.difference is None else plan.difference.memory
    return any(change.kind is LedgerKind.PAGE_TABLES and change.now_bytes for change in changes)


def _label(candidate: Candidate) -> str:
    label = page_label(candidate.page_bytes)
    return label if candidate.is_pool else f"no pool ({label})"


def _is_by_score(p: InstanceCandidates, chosen: Candidate) -> bool:
    """Whether the size was chosen by score: the engine takes a pool, and the scenario leaves the size open."""
    free = p.base_demand.wants_pool and p.instance.page_bytes is None
    return free and chosen.is_pool and not chosen.obstacle


def _why_size(p: InstanceCandidates, chosen: Candidate) -> str:
    if not p.base_demand.wants_pool:
        unknown = lacks_size(p.engine, p.instance)
        return p.base_demand.notes[0] if unknown else f"{p.engine.title} takes no hugetlb pool."
    if p.instance.page_bytes == 0:
        return "Huge pages are forbidden for this instance."
    if p.instance.page_bytes is not None:
        return f"{page_label(chosen.page_bytes)} is what the scenario asks for."
    if chosen.obstacle:
        return f"No size is available: {chosen.obstacle}."
    if not chosen.is_pool:
        return "No pool: the gain does not pay for one, or no pool fits."
    return f"{page_label(chosen.page_bytes)}: {chosen.sentence()}."


def _why_count(chosen: Candidate) -> str:
    demand = chosen.demand
    mappings = sum(segment.count for segment in demand.segments)
    how = "one mapping" if mappings == 1 else f"{mappings} mappings, each rounded up"
    besides = "".join(
        f" {part.pages:,} pages of {page_label(part.page_bytes)} hold its smaller mappings." for part in chosen.smaller
    )
    return (
        f"{demand.pages:,} pages hold {format_bytes(demand.segment_bytes)} in {how},"
        f" {_empty(demand.waste_bytes, mappings)}.{besides}"
    )


def _empty(waste_bytes: int, mappings: int) -> str:
    last = "last pages" if mappings > 1 else "last page"
    return f"{format_bytes(waste_bytes)} of the {last} stay empty" if waste_bytes else f"no part of the {last} is empty"


def _why_not(chosen: Candidate, other: Candidate) -> str:
    lead = chosen.score - other.score
    if lead < 0:
        return (
            f"{_label(other)} has a score higher by {-lead:.2f} but does not fit:"
            " the node, a NUMA node or the provider's cap has no room for it beside the rest."
        )
    reasons = [
        (chosen.gain_score - other.gain_score, "gain"),
        (chosen.memory_score - other.memory_score, "memory"),
        (other.operation_score - chosen.operation_score, "operation"),
    ]
    most, reason = max(reasons)
    tie = " (a tie by gain and memory)" if reason == "operation" and lead <= TIE_SCORE else ""
    return f"The runner-up, {_label(other)}, scores {lead:.2f} less, most of it by {reason} ({most:+.2f}){tie}."


_HOURS_PER_DAY = 24
_ON_THE_CURVE = 1e-6


def risk_sentence(risk: Risk) -> str:
    """The risk in one sentence for somebody who decides; what one sample cannot say is said to be unknown."""
    what = "Risk that ordinary memory runs out"
    if risk.probability is None:
        return f"{what}: unknown; {risk.basis}."
    likely, high = risk.probability.likely, risk.probability.high
    accepted = format_chance(risk.policy)
    if risk.meets_policy is not None:
        verdict = "within" if risk.meets_policy else "above"
        return f"{what}: {format_chance(likely)}, at most {format_chance(high)}; {verdict} the accepted {accepted}."
    if high <= risk.policy:
        return (
            f"{what}: {format_chance(likely)} if the workloads stay as described; not all were measured or have a"
            f" limit, so whether that is within the accepted {accepted} is not sure."
        )
    # Only the bound of a short history is 1 / (values + 1); other doubts (replicas, seen above the room) are not.
    values = 1 / high - 1
    by_history = abs(values - round(values)) < _ON_THE_CURVE
    if likely > risk.policy or values > _HOURS_PER_DAY or not by_history:
        seen = f"{format_chance(likely)} by what was seen, {format_chance(high)} at worst"
        return f"{what}: {seen}; whether that is within the accepted {accepted} is not sure."
    only = "only one sample" if round(values) == 1 else f"only {round(values)} samples"
    tomorrow = format_chance(1 / (_HOURS_PER_DAY + 1))
    days = math.ceil(values_for(risk.policy) / _HOURS_PER_DAY)
    return (
        f"{what}: unknown, {only}. From tomorrow a running agent knows it to within {tomorrow},"
        f" after {days} days to the accepted {accepted}."
    )


def values_for(policy: float) -> int:
    """Hourly values, none above the room, after which the risk is known to be within a policy: 1 / (n + 1)."""
    return math.ceil(1 / policy - 1 - _ON_THE_CURVE)

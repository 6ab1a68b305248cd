"""What to do with a plan, with the reason: do it, do it after something else, don't, or not enough is known.

A plan is not held back by a fault that it mends. What a database has already is no gain of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hugeplan.planner.memory.ledger import sum_bytes
from hugeplan.planner.model import Finding, Gain, LedgerKind, Plan, PlanRequest, State, subject_words
from hugeplan.planner.pages import counted_pages
from hugeplan.planner.question import Question, biggest_question
from hugeplan.planner.sentences import risk_sentence, tables_were_read
from hugeplan.planner.units import format_bytes, format_chance, format_change, with_minus


class Answer(StrEnum):
    """What to do."""

    DO_IT = "do_it"
    DO_IT_AFTER = "do_it_after"
    DONT = "dont"
    NOT_ENOUGH_KNOWN = "not_enough_known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer and its reason in one sentence.

    ``after``: what has to be done first. ``gains``: one sentence per database, against how it runs today.
    ``costs``: what the databases need either way, what the pools add, and what stays for others. ``available_*_bytes``:
    memory that programs can get, reclaimable cache included, today and as planned; None where the node was not seen.
    ``on_huge_pages``: instances that run on huge pages today: the plan buys them no speed. ``certainty``: high, medium
    or low, of the largest gain; ``exact`` where only pages are counted. ``question``: what would narrow the gain most.
    ``approve_if`` and ``do_not_approve_if``: what a signer has to know to be true, or to be
    false.
    """

    answer: Answer
    reason: str
    after: tuple[str, ...]
    gains: tuple[str, ...]
    approve_if: tuple[str, ...]
    do_not_approve_if: tuple[str, ...]
    # Null or empty in verdicts of before there were rows.
    costs: tuple[str, ...] = ()
    shortage: str | None = None
    available_now_bytes: int | None = None
    available_planned_bytes: int | None = None
    certainty: str | None = None
    on_huge_pages: tuple[str, ...] = ()
    question: Question | None = None


#: Faults of the node as it is that the plan's own files mend.
_MENDED: Final = frozenset(
    {
        "pool_short",
        "pool_idle",
        "numa_imbalance",
        "fallback_to_base_pages",
        "silent_fallback",
        "wrong_default_size",
        "memlock_too_low",
        "surplus_pages",
        "buffer_pool_mistaken_for_segment",
        "kubelet_not_restarted",
    }
)
#: Limits of containers that the files of a plan on Kubernetes raise.
_MENDED_IN_PODS: Final = frozenset({"pod_limit_below_segment", "time_bomb"})
#: What has to be answered first, by state: the whole plan rests on a size that nobody read, or that was misread.
_ASKED_FIRST: Final = {State.UNKNOWN: ("memory_fit",), State.ATTENTION: ("size_without_unit",)}
#: Without a database, whether idle pages wait for one decides.
_ASKED_OF_NO_DATABASE: Final = {State.ATTENTION: ("pool_idle",)}
#: Said by the answer itself.
_SAID: Final = frozenset({"memory_fit", "risk_above_policy"})
_RUNS: Final = "fallback_to_base_pages"


def verdict(plan: Plan, request: PlanRequest | None = None) -> Verdict:
    """The verdict on a plan; ``request`` is what it was made of, for the question that would make it surer."""
    gains = tuple(_gains(plan))
    after = tuple(f"{subject_words(it.subject)}: {it.title}. {it.fix}".strip() for it in _blocking(plan))
    change = locked_change_bytes(plan) if request is None or _is_known_today(request) else None
    answer, reason = _answer(plan, after, gains, change)
    return Verdict(
        answer=answer,
        reason=reason,
        after=after,
        gains=gains,
        approve_if=tuple(_approve_if(plan)),
        do_not_approve_if=tuple(_do_not_approve_if(plan)),
        costs=tuple(_costs(plan, change)),
        shortage=risk_sentence(plan.risk),
        available_now_bytes=None if plan.now is None else plan.now.available_bytes,
        available_planned_bytes=_available_bytes(plan),
        certainty=_certainty(plan),
        on_huge_pages=tuple(sorted(_on_huge_pages(plan))),
        question=None if request is None else biggest_question(plan, request, without=_on_huge_pages(plan)),
    )


def _is_known_today(request: PlanRequest) -> bool:
    """Whether the pools that the node has today are known, on each NUMA node or in all."""
    in_all = request.sample is not None and request.sample.pools is not None
    return in_all or all(numa.pools is not None for numa in request.node.numa)


def _answer(plan: Plan, after: tuple[str, ...], gains: tuple[str, ...], change: int | None) -> tuple[Answer, str]:
    refused = _refused(plan, change)
    if refused is not None:
        return refused
    if after:
        return Answer.DO_IT_AFTER, after[0]
    if _gives_back(plan):
        return Answer.DO_IT, f"{format_bytes(-(change or 0))} go back to everyone else."
    if plan.risk.meets_policy is None:
        return Answer.NOT_ENOUGH_KNOWN, risk_sentence(plan.risk)
    best = _best_gain(plan)
    if best is not None:
        return Answer.DO_IT, f"{best.instance}: {_words(best)}."
    return Answer.DO_IT, gains[0] if gains else plan.headline


def _refused(plan: Plan, change: int | None) -> tuple[Answer, str] | None:
    """Why not, whatever else is known."""
    risk, basis = plan.risk, _sentence(plan.risk.basis)
    if plan.fits is False:
        return Answer.DONT, plan.headline if plan.shortfall is None else plan.shortfall.reason
    asks = _ASKED_FIRST if plan.instances else _ASKED_FIRST | _ASKED_OF_NO_DATABASE
    for finding in plan.findings:
        if finding.code in asks.get(finding.state, ()):
            return Answer.NOT_ENOUGH_KNOWN, f"{finding.reason} {finding.fix}".strip()
    # Memory that is given back makes a shortage less likely than it is today, however likely that is.
    if risk.meets_policy is False and not _gives_back(plan):
        if risk.probability is not None and risk.probability.low <= risk.policy:
            return Answer.NOT_ENOUGH_KNOWN, f"The risk of shortage may be above {format_chance(risk.policy)}. {basis}"
        return Answer.DONT, f"Ordinary memory runs out more often than the policy allows. {basis}"
    if all(pool.pages == pool.present_pages for pool in plan.pools):
        unknown = f"{plan.headline} Which huge pages the node has today is not known."
        known = "There is nothing to change: the node has the planned pools already."
        return (Answer.NOT_ENOUGH_KNOWN, unknown) if change is None else (Answer.DONT, known)
    return None


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _gives_back(plan: Plan) -> bool:
    """Whether the pools get smaller in all, and larger on no NUMA node."""
    by_node: dict[int, int] = {}
    for pool in plan.pools:
        if pool.present_pages is None:
            return False
        change = (pool.pages - pool.present_pages) * pool.page_bytes
        by_node[pool.numa_node] = by_node.get(pool.numa_node, 0) + change
    return sum(by_node.values()) < 0 and all(change <= 0 for change in by_node.values())


def locked_change_bytes(plan: Plan) -> int | None:
    """Bytes that the plan adds to the pools, negative: returns; None where a pool of today is not known."""
    if any(pool.present_pages is None for pool in plan.pools):
        return None
    return sum((pool.pages - (pool.present_pages or 0)) * pool.page_bytes for pool in plan.pools)


def _available_bytes(plan: Plan) -> int:
    """What programs can still get under the plan: free memory, and cache that gives way."""
    return sum_bytes(plan.ledger, LedgerKind.FREE, LedgerKind.RECLAIMABLE)


def _costs(plan: Plan, change: int | None) -> Iterator[str]:
    net = plan.net_memory
    if net.locked_bytes:
        yield (
            f"{format_bytes(net.used_bytes)} the databases need either way; the pools hold"
            f" {format_bytes(net.idle_bytes)} more that nobody uses."
        )
    if change is None:
        yield "What is reserved today is not known."
    elif change > 0:
        yield f"{format_bytes(change)} are taken from ordinary memory."
    elif change < 0:
        yield f"{format_bytes(-change)} go back to ordinary memory."
    tables = net.returned_page_tables_bytes
    if tables > 0 and plan.fits is not False:
        size = format_bytes(tables)
        less = f"Page tables take up to {size} less than on base pages."
        yield f"Up to {size} of page tables come back." if tables_were_read(plan) else less
    before, after = None if plan.now is None else plan.now.available_bytes, _available_bytes(plan)
    if after < 0:
        yield f"{format_bytes(-after)} are missing."
    elif before is not None:
        yield f"Available to programs: {format_bytes(before)} today, {format_bytes(after)} under the plan."
    else:
        yield f"Available to programs: {format_bytes(after)} under the plan."


def _certainty(plan: Plan) -> str:
    best = _best_gain(plan)
    return "exact" if best is None else best.confidence.value


def _best_gain(plan: Plan) -> Gain | None:
    """The largest gain against today; None where no database moves to huge pages with a known one."""
    there = _on_huge_pages(plan)
    chosen = [g for g in plan.gains if g.is_chosen and g.backing_kind != "base" and g.instance not in there]
    return max(chosen, key=lambda gain: gain.saving_ns_per_operation.likely, default=None)


def _blocking(plan: Plan) -> Iterator[Finding]:
    return (finding for finding in plan.findings if speaks_against(plan, finding) and finding.code not in _SAID)


def speaks_against(plan: Plan, finding: Finding) -> bool:
    """Whether a finding is wrong under the plan, too: neither its files mend the fault, nor does it lower the risk."""
    if finding.code == "risk_above_policy" and _gives_back(plan):
        return False
    mended = _MENDED if plan.kubernetes is None else _MENDED | _MENDED_IN_PODS
    return finding.state is State.WRONG and finding.code not in mended


def _gains(plan: Plan) -> Iterator[str]:
    """Each database's gain by its name; one that runs on huge pages today gains nothing by them."""
    there = _on_huge_pages(plan)
    for instance in () if plan.fits is False else plan.instances:
        chosen = next((g for g in plan.gains if g.instance == instance.name and g.is_chosen), None)
        if instance.page_bytes is None:
            yield f"{instance.name}: stays on base pages, no change."
        elif instance.name in there:
            yield f"{instance.name}: already on huge pages, no speed change."
        elif chosen is None:
            yield f"{instance.name}: the gain is unknown."
        else:
            yield f"{instance.name}: {_words(chosen)}."


def _on_huge_pages(plan: Plan) -> set[str]:
    """Instances that run on huge pages today."""
    there = {finding.subject for finding in plan.findings if finding.code == _RUNS and finding.state is State.OK}
    if plan.now is not None:
        there |= {match.instance for match in plan.now.matches if match.in_pool_bytes}
    return there


def _words(gain: Gain) -> str:
    if gain.measured_here is not None:
        return f"{gain.measured_here.text} of throughput"
    if gain.speedup is not None:
        low, likely, high = (x - 1 for x in (gain.speedup.low, gain.speedup.likely, gain.speedup.high))
        return f"{format_change(likely)} throughput likely, {format_change(low, '')} to {format_change(high)}"
    saving = gain.saving_ns_per_operation
    ns = [with_minus(f"{each:,.0f}") for each in (saving.likely, saving.low, saving.high)]
    return f"{ns[0]} ns less per operation likely, {ns[1]} to {ns[2]} ns"


def _approve_if(plan: Plan) -> Iterator[str]:
    for instance in plan.instances:
        demand = instance.demand
        version = "" if demand.version is None else f" {demand.version}"
        size = "unknown" if demand.pool_bytes is None else format_bytes(demand.pool_bytes)
        yield f"{instance.name} is {demand.engine}{version} with a pool of {size}, and stays so."
    probability, policy = plan.risk.probability, plan.risk.policy
    if probability is None or probability.low <= policy < probability.high:
        yield f"It is acceptable that the risk of shortage is not known to the policy's {format_chance(policy)} yet."
    else:
        high = format_chance(probability.high)
        yield f"A risk of shortage of up to {high} is acceptable; the policy is {format_chance(policy)}."


def _do_not_approve_if(plan: Plan) -> Iterator[str]:
    yield "The node's memory or its databases have changed since the sample."
    for page_bytes in sorted({pool.page_bytes for pool in plan.pools}):
        pools = [pool for pool in plan.pools if pool.page_bytes == page_bytes and pool.present_pages is not None]
        if (fewer := sum((pool.present_pages or 0) - pool.pages for pool in pools)) > 0:
            pages = counted_pages(fewer, page_bytes)
            yield f"A server that is not described, and is stopped or waits for its restart, needs the {pages} that go."
    for finding in plan.findings:
        if finding.state is State.UNKNOWN:
            yield f"It matters here and is not known: {subject_words(finding.subject)}: {finding.title}."
    for note in plan.unknowns:
        yield f"It matters here and is not known: {note}"

"""Does an instance that insists on huge pages get them? If not, it does not start."""

from __future__ import annotations

from collections.abc import Iterable

from hugeplan.planner.demand import OnShortage, engine_named
from hugeplan.planner.findings.base import FindingInputs, attention, given, ok, wrong
from hugeplan.planner.findings.contention import lost_orders, takers_of_bound
from hugeplan.planner.findings.count_uncertain import pages_short
from hugeplan.planner.memory.kubernetes import huge_page_cap_bytes
from hugeplan.planner.memory.ledger import free_bytes_by_node
from hugeplan.planner.model import Finding
from hugeplan.planner.pages import counted_pages

CODE = "will_not_start"


def check(inputs: FindingInputs) -> Iterable[Finding]:
    """One finding for each instance that refuses base pages."""
    cap = huge_page_cap_bytes(inputs.request)
    capped = cap is not None and sum(pool.pages * pool.page_bytes for pool in inputs.pools) > cap
    short = capped or any(free < 0 for free in free_bytes_by_node(inputs.ledger).values())
    may_lack = pages_short(inputs)
    losers = {*takers_of_bound(inputs)}
    losers |= {it.instance for order in lost_orders(inputs) or () for it in order.outcomes if not it.starts}
    for instance, planned in zip(inputs.request.databases, inputs.instances, strict=True):
        engine = engine_named(planned.engine)
        use = inputs.pool_uses[instance.name]
        refusal = use.all_or_none if use.all_or_none and planned.page_bytes else engine.refusal
        if use.on_shortage is not OnShortage.REFUSE or refusal is None:
            continue
        setting, refusing = refusal
        value = instance.settings.get(setting, refusing)
        if planned.page_bytes is not None and not short and instance.name in may_lack:
            pages = counted_pages(may_lack[instance.name], planned.demand.page_bytes)
            title = "It may not start: its count may be off by more than the slack"
            why = f"{setting} = {value} needs all its huge pages, and may need up to {pages} more than the plan holds."
            fix = "Raise policy.slack_min_pages, or compare with the running server's own count."
            yield attention(CODE, instance.name, title, why, fix, evidence=(given(setting, value),))
            continue
        if planned.page_bytes is not None and not short and instance.name in losers:
            title = "It may not start: another server may take its pages first"
            why = f"{setting} = {value} needs all its huge pages, and who starts first may take some of them."
            fix = "Do what the finding start_order says."
            yield attention(CODE, instance.name, title, why, fix, evidence=(given(setting, value),))
            continue
        if planned.page_bytes is not None and not short:
            reason = f"{setting} = {value} needs all its huge pages, and the plan holds them all."
            yield ok(CODE, instance.name, "The plan holds the pages without which it does not start", reason)
            continue
        if planned.page_bytes is not None:
            pages = counted_pages(planned.demand.pages, planned.demand.page_bytes)
            room = "the provider allows fewer" if capped else "the node has no memory for all that the plan holds"
            why = f"It needs {pages}, and {room}."
            fix = f"Make the plan fit, or change {setting}."
        elif (excluded := engine.ruled_out(instance)) is not None:
            why = f"It gets none: {excluded}."
            fix = f"Change what excludes huge pages, or change {setting}."
        else:
            why = "The plan gives it none."
            fix = f"Let the planner choose its page size and make room for it, or change {setting}."
        title = f"It will not start: {setting} = {value} needs all its huge pages"
        yield wrong(CODE, instance.name, title, why, fix, evidence=(given(setting, value),))

"""A plan as text: counts first, then ledger, gains, findings and the next commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hugeplan.planner.columns import table, wrapped
from hugeplan.planner.model import LedgerKind, Plan, Range, State, subject_words
from hugeplan.planner.pages import page_label
from hugeplan.planner.printable import one_line
from hugeplan.planner.sentences import tables_were_read
from hugeplan.planner.units import format_bytes, format_chance, format_change

if TYPE_CHECKING:
    from hugeplan.artifacts import Artifact

_MARKS = {State.WRONG: "WRONG", State.ATTENTION: "LOOK", State.UNKNOWN: "?", State.OK: "ok"}


def plan_text(plan: Plan, artifacts: Sequence[Artifact]) -> str:
    """The whole plan for a reader at a terminal."""
    sections = (
        ("", [plan.headline]),
        ("Why it does not fit, and what would", _shortfall(plan)),
        ("Now -> planned", _difference(plan)),
        ("Pools", _pools(plan)),
        ("Databases", _instances(plan)),
        ("Memory", _ledger(plan)),
        ("Gains", _gains(plan)),
        ("Risk and forecast", _risk(plan)),
        ("Kubernetes", _kubernetes(plan)),
        ("Findings", _findings(plan)),
        ("Assumed", list(plan.assumptions)),
        ("Not known", list(plan.unknowns)),
        ("Files and checks", _files(artifacts)),
    )
    blocks = []
    for title, lines in sections:
        if lines:
            head = [title] if title else []
            shown = [part for line in lines for part in wrapped(line, "  ")] if title else map(one_line, lines)
            blocks.append("\n".join([*head, *shown]))
    return "\n\n".join(blocks) + "\n"


def _shortfall(plan: Plan) -> list[str]:
    if plan.shortfall is None:
        return []
    return [plan.shortfall.reason, *(option.text for option in plan.shortfall.options)]


def _difference(plan: Plan) -> list[str]:
    """Kinds of memory now and as planned, and what moves."""
    if plan.difference is None or plan.now is None:
        return []
    rows = [("", "now", "planned", "change")]
    for item in plan.difference.memory:
        change = item.planned_bytes - item.now_bytes
        sign = "+" if change > 0 else "-"
        shown = "" if change == 0 else f"{sign}{format_bytes(abs(change))}"
        rows.append((_KINDS[item.kind], format_bytes(item.now_bytes), format_bytes(item.planned_bytes), shown))
    lines = table(rows, frozenset({1, 2, 3}))
    lines += [f"{move}." for move in plan.difference.moves]
    lines += [f"{match.instance} is {match.key}: {match.why}." for match in plan.now.matches]
    return lines


_KINDS = {
    LedgerKind.KERNEL: "kernel",
    LedgerKind.SYSTEM_RESERVED: "system-reserved",
    LedgerKind.KUBE_RESERVED: "kube-reserved",
    LedgerKind.EVICTION: "eviction threshold",
    LedgerKind.TENANTS: "workloads",
    LedgerKind.ENGINE_PRIVATE: "databases outside pools",
    LedgerKind.PAGE_TABLES: "page tables",
    LedgerKind.PAGE_CACHE: "page cache relied on",
    LedgerKind.RECLAIMABLE: "page cache, given back when needed",
    LedgerKind.POOL: "huge page pools",
    LedgerKind.POOL_SLACK: "pools: slack and idle pages",
    LedgerKind.FREE: "free",
}


def _pools(plan: Plan) -> list[str]:
    rows = [("size", "NUMA node", "pages", "bytes", "demand", "slack", "present")]
    for pool in plan.pools:
        rows.append(
            (
                page_label(pool.page_bytes),
                str(pool.numa_node),
                str(pool.pages),
                format_bytes(pool.pages * pool.page_bytes),
                str(pool.demand_pages),
                str(pool.slack_pages),
                "?" if pool.present_pages is None else str(pool.present_pages),
            )
        )
    return table(rows, frozenset({1, 2, 3, 4, 5, 6})) if plan.pools else []


def _instances(plan: Plan) -> list[str]:
    lines = []
    for item in plan.instances:
        size = "no pool" if item.page_bytes is None else f"{item.demand.pages:,} pages of {page_label(item.page_bytes)}"
        lines.append(f"{item.name} ({item.engine}): {size}")
        lines.append(f"  {item.why}")
        if item.pool_benefit is not None:
            lines.append(f"  measured throughput: {item.pool_benefit.statement}")
        lines += [f"  set {s.name} = {s.value}: {s.reason}" for s in item.demand.settings]
        lines += [
            f"  {fit.direction} {fit.setting} to {fit.value}: {format_bytes(fit.waste_before_bytes)} unused becomes"
            f" {format_bytes(fit.waste_after_bytes)}"
            for fit in item.demand.fits
        ]
        lines += [f"  note: {note}" for note in item.demand.notes]
    return lines


def _ledger(plan: Plan) -> list[str]:
    """One row a part; bytes of each NUMA node and in total, which sum to MemTotal."""
    nodes = sorted({part.numa_node for part in plan.ledger.parts})
    kinds = list(LedgerKind)
    parts: dict[tuple[int, str], dict[int, int]] = {}
    sources: dict[tuple[int, str], str] = {}
    for part in plan.ledger.parts:
        key = (kinds.index(part.kind), part.name)
        own = parts.setdefault(key, {})
        own[part.numa_node] = own.get(part.numa_node, 0) + part.bytes
        sources[key] = part.source.value
    several = len(nodes) > 1
    rows = [("", *(f"node {n}" for n in nodes if several), "total", "")]
    for key in sorted(parts):
        by_node = parts[key]
        own_cells = [format_bytes(by_node.get(n, 0)) for n in nodes if several]
        rows.append((key[1], *own_cells, format_bytes(sum(by_node.values())), sources[key]))
    sums = {n: sum(p.bytes for p in plan.ledger.parts if p.numa_node == n) for n in nodes}
    totals = [format_bytes(sums[n]) for n in nodes if several]
    rows.append(("MemTotal", *totals, format_bytes(sum(sums.values())), f"{sum(sums.values())} bytes"))
    lines = table(rows, frozenset(range(1, len(rows[0]) - 1)))
    if plan.ledger.struct_page_bytes is not None:
        lines.append(f"Outside MemTotal: {format_bytes(plan.ledger.struct_page_bytes)} of struct pages (without HVO).")
    net = plan.net_memory
    hvo = "unknown" if net.returned_hvo_bytes is None else format_bytes(net.returned_hvo_bytes)
    less = "given back" if tables_were_read(plan) else "less than on base pages"
    lines.append(
        f"Locked {format_bytes(net.locked_bytes)}, idle {format_bytes(net.idle_bytes)}; {less}:"
        f" page tables up to {format_bytes(net.returned_page_tables_bytes)}, struct pages {hvo};"
        f" net {format_bytes(net.net_bytes)}."
    )
    return lines


def _percent(speedup: Range | None) -> str:
    if speedup is None:
        return "not known"
    low, likely, high = (x - 1 for x in (speedup.low, speedup.likely, speedup.high))
    return f"{format_change(likely)} ({format_change(low, '')} to {format_change(high, '')})"


def _gains(plan: Plan) -> list[str]:
    rows = [("instance", "pages", "ns less an operation", "throughput", "page tables", "confidence")]
    for gain in plan.gains:
        ns = gain.saving_ns_per_operation
        rows.append(
            (
                gain.instance,
                gain.backing,
                f"{ns.likely:.0f} ({ns.low:.0f} to {ns.high:.0f})",
                _percent(gain.speedup),
                format_bytes(gain.page_tables_bytes),
                gain.confidence.value,
            )
        )
    chosen = {(i.name, i.page_bytes) for i in plan.instances}
    said = [gain.statement for gain in plan.gains if (gain.instance, gain.page_bytes) in chosen]
    return [*table(rows, frozenset({2, 3, 4})), *said] if plan.gains else []


def _risk(plan: Plan) -> list[str]:
    risk = plan.risk
    if risk.probability is None:
        lines = [f"Whether ordinary memory runs out cannot be said: {risk.basis}."]
    else:
        p = risk.probability
        verdict = {True: "within", False: "above", None: "possibly above"}[risk.meets_policy]
        lines = [
            f"Ordinary memory runs out: {format_chance(p.likely)} likely ({format_chance(p.low)} to"
            f" {format_chance(p.high)}), {verdict} the accepted {format_chance(risk.policy)}: {risk.basis}."
        ]
    for item in plan.forecasts:
        days = item.days_until_full
        text = "" if days is None else f"{days.likely:.0f} days ({days.low:.0f} to {days.high:.0f}) until it is full; "
        lines.append(f"{item.subject}: {text}{item.basis}.")
    return lines


def _kubernetes(plan: Plan) -> list[str]:
    view = plan.kubernetes
    if view is None:
        return []
    lines = [f"allocatable {name}: {format_bytes(size)}" for name, size in view.allocatable.items()]
    if view.phantom_eviction_bytes:
        lines.append(
            f"memory.available lies {format_bytes(view.phantom_eviction_bytes)} too high; the finding says what to set."
        )
    for entry in view.reserved_memory:
        lines.append(f"reservedMemory: numaNode {entry['numa_node']}, memory {entry['memory']} bytes")
    return lines


def _findings(plan: Plan) -> list[str]:
    lines = []
    for item in plan.findings:
        lines.append(f"{_MARKS[item.state]:>5}  {subject_words(item.subject)}: {item.title}. {item.reason}")
        if item.fix and item.state is not State.OK:
            lines.append(f"       Do: {item.fix}")
    return lines


def _files(artifacts: Sequence[Artifact]) -> list[str]:
    if not artifacts:
        return []
    lines = ["Write them with --artifacts DIR, then run the checks."]
    for item in artifacts:
        lines.append(f"{item.kind}: {item.filename}")
        lines += [f"  check: {line}" for line in item.verify.splitlines()]
    return lines

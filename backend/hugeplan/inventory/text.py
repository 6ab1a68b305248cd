"""The answer for an inventory as text: what to do, then nodes, databases, findings, and what is not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hugeplan.inventory.answer import FleetAnswer, NodeAnswer
from hugeplan.inventory.model import FoundDatabase
from hugeplan.inventory.now import left_idle_bytes, node_now
from hugeplan.planner.columns import table, wrapped
from hugeplan.planner.demand import engine_named
from hugeplan.planner.model import Finding, State, subject_words
from hugeplan.planner.pages import page_label
from hugeplan.planner.units import format_bytes

#: Lines of a section, without --verbose.
LINES = 25
_SUBJECTS = 4
_MARKS = {State.WRONG: "WRONG", State.ATTENTION: "LOOK", State.UNKNOWN: "?", State.OK: "ok"}


def inventory_text(answer: FleetAnswer, *, verbose: bool = False) -> str:
    """The whole answer for a reader at a terminal."""
    sections = (
        ("", _headline(answer)),
        ("Nodes", _nodes(answer, verbose)),
        ("Databases", _databases(answer, verbose)),
        ("Findings", _findings(answer, verbose)),
        ("Not known", _unknown(answer)),
        ("Notes on the input", [*answer.inventory.notes]),
    )
    blocks = []
    for title, lines in sections:
        if lines:
            shown = [part for line in lines for part in wrapped(line, "  " if title else "")]
            blocks.append("\n".join([title, *shown] if title else shown))
    return "\n\n".join(blocks) + "\n"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _headline(answer: FleetAnswer) -> list[str]:
    """One sentence with what to do, one with what was read, one with what is wrong."""
    planned = [node for node in answer.nodes if node.planned_bytes]
    fitting = [node for node in planned if node.fits]
    unknown = sum(node.fits is None for node in planned)
    databases = [found for node in answer.nodes for found in node.node.databases]
    engines = Counter(engine_named(found.instance.engine).title for found in databases)
    kinds = ", ".join(f"{name} {count:,}" for name, count in engines.most_common())
    first = "No node needs huge pages: no database was found."
    unplanned = sum(node.not_planned_because is not None for node in answer.nodes)
    if unplanned:
        first = f"No huge pages are planned: {_count(unplanned, 'node')} of {len(answer.nodes):,} have no plan."
    elif databases or answer.inventory.not_planned:
        first = "No node needs huge pages: no database that was found is planned with them."
    if planned:
        what = f"{format_bytes(answer.fitting_bytes)} of huge pages" if fitting else "no huge pages yet"
        first = f"Reserve {what} on {_count(len(fitting) or len(planned), 'node')} of {len(answer.nodes):,}."
    if unknown:
        first += f" Whether their plans fit is not known of {_count(unknown, 'node')}."
    misfits = answer.does_not_fit
    if misfits:
        names = ", ".join(node.node.facts.name for node in misfits[:_SUBJECTS])
        verb = "does not fit" if len(misfits) == 1 else "do not fit"
        first += f" {_count(len(misfits), 'node')} {verb}: {names}{', ...' if len(misfits) > _SUBJECTS else ''}."
    lines = [first]
    for node in misfits[:_SUBJECTS]:
        if node.plan is not None and node.plan.shortfall is not None:
            lines.append(f"  {node.node.facts.name}: {node.plan.headline}")
            lines += [f"    {option.text}" for option in node.plan.shortfall.options if option.kind == "node"]
    read = f"Read: {_count(len(answer.nodes), 'node')}, {_count(answer.inventory.pods, 'pod')}"
    lines.append(f"{read}, {_count(len(databases), 'database')}{f' ({kinds})' if kinds else ''}.")
    present = sum(sum((node.present_bytes or {}).values()) for node in answer.nodes)
    idle = sum(
        pages * size for node in answer.nodes if node.present_bytes for size, pages in _outside_limits(node).items()
    )
    fallen = sum(sum(left_idle_bytes(node_now(node.node)).values()) for node in answer.nodes)
    if present and not all(node.node.pods_are_known for node in answer.nodes):
        lines.append(
            f"Reserved today: {format_bytes(present)}; without pods in the input whether they are used is unknown."
        )
    elif present and fallen:
        lines.append(
            f"Reserved today: {format_bytes(present)}, of which {format_bytes(idle + fallen)} lie idle: no pod may use"
            f" {format_bytes(idle)}, and databases whose limit is too small leave {format_bytes(fallen)}."
        )
    elif present:
        lines.append(f"Reserved today: {format_bytes(present)}, of which no pod may use {format_bytes(idle)}.")
    states = Counter(finding.state for finding in answer.all_findings)
    lines.append(
        f"Findings: {states[State.WRONG]:,} wrong, {states[State.ATTENTION]:,} need attention,"
        f" {states[State.UNKNOWN]:,} that this source cannot answer."
    )
    return lines


def _outside_limits(node: NodeAnswer) -> dict[int, int]:
    """Pages that no pod's limit covers, by page size."""
    found = {}
    for size, held in (node.present_bytes or {}).items():
        limited = sum(user.limit_bytes.get(size, 0) for user in node.node.huge_page_users)
        found[size] = max(0, held - limited) // size
    return found


def _worst(node: NodeAnswer) -> int:
    rank = {State.WRONG: 0, State.ATTENTION: 1}
    first = min((rank.get(finding.state, 2) for finding in node.findings), default=2)
    return -1 if node.fits is False else first


def _nodes(answer: FleetAnswer, verbose: bool) -> list[str]:
    """One line per node with a database, a pool or a finding; the worst first."""
    shown = [
        node
        for node in answer.nodes
        if node.node.databases or node.findings or any((node.present_bytes or {}).values())
    ]
    shown.sort(key=lambda node: (_worst(node), node.node.facts.name))
    sizes = sorted({size for node in shown for size in (*node.planned_bytes, *(node.present_bytes or {}))})
    used = [
        size for size in sizes if any(n.planned_bytes.get(size) or (n.present_bytes or {}).get(size) for n in shown)
    ]
    head = ["node", "memory", "databases"]
    for size in used:
        head += [f"{page_label(size)} plan", f"{page_label(size)} today"]
    rows: list[list[str]] = [[*head, "free after", "verdict"]]
    limit = len(shown) if verbose else LINES
    for node in shown[:limit]:
        cells = [node.node.facts.name, format_bytes(node.node.facts.mem_total_bytes), str(len(node.node.databases))]
        for size in used:
            cells += [_pages(node.planned_bytes, size), _pages(node.present_bytes, size)]
        cells += ["?" if node.free_bytes is None else format_bytes(node.free_bytes), _verdict(node)]
        rows.append(cells)
    lines = table(rows, frozenset(range(1, len(rows[0]) - 1))) if shown else []
    rest = len(answer.nodes) - len(shown)
    if len(shown) > limit:
        lines.append(f"... and {len(shown) - limit:,} more (--verbose shows them)")
    if rest:
        lines.append(f"{_count(rest, 'node')} without a database and without pools: nothing to reserve.")
    return lines


def _pages(held: Mapping[int, int] | None, size: int) -> str:
    return "?" if held is None else f"{held.get(size, 0) // size:,}"


def _verdict(node: NodeAnswer) -> str:
    """One to three words: whether it fits, then how many findings say wrong."""
    if node.not_planned_because is not None:
        return "not planned"
    wrong = sum(finding.state is State.WRONG for finding in node.findings)
    unknown = "nothing to plan" if node.plan is None else "fit not known"
    fit = {True: "fits", False: "DOES NOT FIT", None: unknown}[node.fits]
    return f"{fit}, {wrong} wrong" if wrong else fit


def _databases(answer: FleetAnswer, verbose: bool) -> list[str]:
    """One line per database: what it is, what it needs, what it may use, where its settings were read."""
    rows: list[Sequence[str]] = [("database", "node", "engine", "buffer pool", "needs", "limit today", "read from")]
    placed: list[tuple[FoundDatabase, str]] = []
    for node in answer.nodes:
        plans = {} if node.plan is None else {planned.name: planned for planned in node.plan.instances}
        for found in node.node.databases:
            planned = plans.get(found.instance.name)
            need = "?"
            if planned is not None:
                need = "no pool"
                if planned.page_bytes is not None:
                    need = f"{planned.demand.pages:,} x {page_label(planned.page_bytes)}"
            placed.append((found, need))
    placed += [(found, "?") for found in answer.inventory.not_scheduled]
    limit = len(placed) if verbose else LINES
    for found, need in placed[:limit]:
        rows.append(
            (
                found.subject,
                found.node or "none",
                " ".join(part for part in (found.instance.engine, found.instance.version) if part),
                _pool_setting(found),
                need,
                _limits(found),
                found.recognised.source,
            )
        )
    lines = table(rows, frozenset({3, 4, 5})) if placed else []
    if len(placed) > limit:
        lines.append(f"... and {len(placed) - limit:,} more (--verbose shows them)")
    return lines


def _pool_setting(found: FoundDatabase) -> str:
    name = engine_named(found.instance.engine).pool_setting
    value = found.instance.settings.get(name or "")
    return value or ("not read" if name in found.instance.unread_settings else "default")


def _limits(found: FoundDatabase) -> str:
    if found.huge_pages_limit_bytes is None:
        return "?"
    held = [f"{format_bytes(size)} of {page_label(page)}" for page, size in found.huge_pages_limit_bytes.items()]
    return ", ".join(held) or "none"


def _findings(answer: FleetAnswer, verbose: bool) -> list[str]:
    """What needs action, grouped by check and by how its advice begins; one example in full."""
    groups: dict[tuple[str, State, str], list[Finding]] = {}
    for finding in answer.all_findings:
        if finding.state in {State.WRONG, State.ATTENTION}:
            begins = (finding.fix or "").partition(" ")[0]  # "Once the plan fits" is another advice than "Reserve"
            groups.setdefault((finding.code, finding.state, begins), []).append(finding)
    lines: list[str] = []
    for (_, state, _), members in groups.items():
        shown = members if verbose else members[:1]
        for finding in shown:
            lines.append(f"{_MARKS[state]:>5}  {subject_words(finding.subject)}: {finding.title}. {finding.reason}")
            if finding.fix:
                lines.append(f"       Do: {finding.fix}")
        if len(members) > len(shown):
            names = list(dict.fromkeys(finding.subject for finding in members[1:]))
            more = "; ".join(names[:_SUBJECTS]) + ("; ..." if len(names) > _SUBJECTS else "")
            own = ", each with its own figures (--verbose)" if len({finding.fix for finding in members}) > 1 else ""
            lines.append(f"       The same on {len(members) - 1:,} more{own}: {more}")
    return lines


def _unknown(answer: FleetAnswer) -> list[str]:
    """What the source cannot tell: for all nodes, then what is only so on some of them, then of databases."""
    per_node = Counter(text for node in answer.nodes for text in node.node.unknown)
    per_database = Counter(
        text for node in answer.nodes for found in node.node.databases for text in found.recognised.unknown
    )
    total = len(answer.nodes)
    lines = [*answer.inventory.unknown]
    for text, count in per_node.most_common(LINES):
        lines.append(text if count == total else f"{text} (on {_count(count, 'node')})")
    lines += [f"{text} ({_count(count, 'database')})" for text, count in per_database.most_common(LINES)]
    for node in answer.nodes:
        if node.not_planned_because is not None:
            lines.append(f"{node.node.facts.name} is not planned: {node.not_planned_because}")
    return lines

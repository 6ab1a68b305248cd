"""A plan as an answer: what to do, what it costs, what it buys and how sure that is; then how to apply it.

The rest of a plan (every part of the ledger, every page size, every check) is ``plan_text``, behind ``--verbose``.
"""

from __future__ import annotations

from collections.abc import Sequence

from hugeplan.artifacts import Artifact
from hugeplan.artifacts.base import Restart
from hugeplan.planner.columns import table, wrapped
from hugeplan.planner.model import Finding, Gain, Plan, State, subject_words
from hugeplan.planner.pages import page_label
from hugeplan.planner.sentences import heavy_tables, risk_sentence, tables_were_read
from hugeplan.planner.units import format_bytes, format_change

#: Findings that fit before a reader stops reading.
MOST_FINDINGS = 5

_RESTARTS = {
    Restart.ENGINE: "then restart the database",
    Restart.KUBELET: "then restart the kubelet",
    Restart.REBOOT: "then reboot",
    Restart.NODES: "then replace the nodes",
}


def plan_answer(plan: Plan, artifacts: Sequence[Artifact], *, basis: Sequence[str] = ()) -> str:
    """The short form of a plan for a reader at a terminal; ``basis`` says what its counts rest on."""
    sections = [
        (
            "",
            [
                plan.headline,
                *basis,
                *_shortfall(plan),
                *_tables(plan),
                *_cost(plan),
                *_benefit(plan),
                risk_sentence(plan.risk),
            ],
        ),
        ("Now -> plan", _change(plan)),
        ("Needs action", _findings(plan)),
    ]
    if plan.feasible:
        sections += [
            ("Apply", _steps(artifacts)),
            ("Verify (reads only, fails while the plan is not in force)", _commands(artifacts, "verify")),
            ("Roll back", _commands(artifacts, "rollback")),
        ]
    sections.append(("", ["--verbose shows the whole ledger, every page size, every check and every file."]))
    blocks = []
    for title, lines in sections:
        if lines:
            shown = [part for line in lines for part in _shown(line, "  " if title else "")]
            blocks.append("\n".join([*([title] if title else []), *shown]))
    return "\n\n".join(blocks) + "\n"


def _shown(line: str, indent: str) -> list[str]:
    """Sentences are wrapped; what a reader pastes into a shell is not."""
    return [indent + line] if line.lstrip().startswith(("$ ", "> ")) else wrapped(line, indent)


def _shortfall(plan: Plan) -> list[str]:
    if plan.shortfall is None:
        return []
    # The headline names the largest pool of a single database.
    said = {"pool"} if len(plan.instances) == 1 else set()
    options = [option for option in plan.shortfall.options if option.kind not in said]
    return [plan.shortfall.reason, *(f"- {option.text}" for option in options)]


def _tables(plan: Plan) -> list[str]:
    """Page tables that take more than a tenth of the node."""
    found = (heavy_tables(planned, plan.ledger.mem_total_bytes) for planned in plan.instances)
    return [sentence for sentence in found if sentence is not None]


def _cost(plan: Plan) -> list[str]:
    net = plan.net_memory
    if not net.locked_bytes:
        return []
    text = f"It costs {format_bytes(net.locked_bytes)} of ordinary memory"
    if net.idle_bytes:
        text += f" ({format_bytes(net.idle_bytes)} idle)"
    returned = net.returned_page_tables_bytes + (net.returned_hvo_bytes or 0)
    if returned > 0:
        what = "page tables and struct pages" if net.returned_hvo_bytes else "page tables"
        size = f"up to {format_bytes(returned)}"
        if tables_were_read(plan):
            return [f"{text}; {what} give back {size}."]
        text += f"; {what} take {size} less than on base pages"
        if any(i.page_bytes and i.demand.process_per_connection for i in plan.instances):
            text += " when warm"  # each connection's tables grow as it touches the pool
    return [f"{text}."]


def _benefit(plan: Plan) -> list[str]:
    """One line per database with a pool: likely value, range, how sure and why not surer."""
    lines = []
    for instance in plan.instances:
        gain = _chosen_gain(plan, instance.name, instance.page_bytes)
        if gain is None or gain.speedup is None:
            continue
        if gain.measured_here is not None:
            lines.append(f"It buys the database {instance.name} throughput, {gain.measured_here.text}.")
            continue
        low, likely, high = (x - 1 for x in (gain.speedup.low, gain.speedup.likely, gain.speedup.high))
        weakest = next((term for term in gain.inputs if term.source.value in {"unknown", "assumed"}), None)
        because = "" if weakest is None else f": {weakest.name} is {weakest.source.value}"
        lines.append(
            f"It buys the database {instance.name} {format_change(likely)} throughput, likely"
            f" ({format_change(low, '')} to {format_change(high)});"
            f" confidence is {gain.confidence.value}{because}."
        )
    return lines


def _chosen_gain(plan: Plan, name: str, page_bytes: int | None) -> Gain | None:
    if page_bytes is None:
        return None
    found = (gain for gain in plan.gains if gain.instance == name and gain.page_bytes == page_bytes)
    return next((gain for gain in found if gain.backing_kind == "hugetlb"), None)


def _change(plan: Plan) -> list[str]:
    rows = [("pool", "NUMA node", "now", "in use", "plan", "bytes")]
    if plan.difference is not None:
        for change in plan.difference.pools:
            size = change.planned_pages * change.page_bytes
            rows.append(
                (
                    page_label(change.page_bytes),
                    str(change.numa_node),
                    _count(change.now_pages),
                    _count(change.in_use_pages),
                    f"{change.planned_pages:,}",
                    format_bytes(size),
                )
            )
    else:
        for pool in plan.pools:
            size = pool.pages * pool.page_bytes
            now = _count(pool.present_pages)
            label, node = page_label(pool.page_bytes), str(pool.numa_node)
            rows.append((label, node, now, "?", f"{pool.pages:,}", format_bytes(size)))
    lines = table(rows, frozenset({1, 2, 3, 4, 5})) if len(rows) > 1 else []
    if plan.difference is not None:
        lines += [f"{move}." for move in plan.difference.moves]
    return lines


def _count(pages: int | None) -> str:
    return "?" if pages is None else f"{pages:,}"


def _findings(plan: Plan) -> list[str]:
    # What does not fit, and a risk that is not known, are said above.
    said = {"memory_fit"} if plan.shortfall is not None else set()
    if plan.risk.meets_policy is None:
        said.add("risk_above_policy")
    action: list[Finding] = [
        f for f in plan.findings if f.state in {State.WRONG, State.ATTENTION} and f.code not in said
    ]
    lines = []
    for finding in action[:MOST_FINDINGS]:
        mark = "WRONG " if finding.state is State.WRONG else ""
        fix = f" Do: {finding.fix}" if finding.fix else ""
        lines.append(f"- {mark}{subject_words(finding.subject)}: {finding.title}. {finding.reason}{fix}")
    rest = len(action) - MOST_FINDINGS
    if rest > 0:
        lines.append(f"and {rest} more.")
    unknown = sum(f.state is State.UNKNOWN for f in plan.findings)
    if unknown:
        lines.append(f"{unknown} check{'s' if unknown > 1 else ''} could not be made for want of facts.")
    return lines


def _recommended(artifacts: Sequence[Artifact]) -> list[Artifact]:
    """The recommended path in its order."""
    own = [item for item in artifacts if item.recommended]
    return sorted(own, key=lambda item: item.step or 0)


def _steps(artifacts: Sequence[Artifact]) -> list[str]:
    own = _recommended(artifacts)
    lines = ["Write the files with --artifacts DIR. Each step is made in its own folder there:"] if own else []
    for item in own:
        restart = _RESTARTS.get(item.restart)
        lines.append(f"{item.place.partition('/')[0]}: {item.summary}{f' ({restart})' if restart else ''}")
        lines += _prompted(item.install)
    return lines


def _commands(artifacts: Sequence[Artifact], which: str) -> list[str]:
    """The commands of the recommended path; undone in the reverse order."""
    own = _recommended(artifacts)
    ordered = reversed(own) if which == "rollback" else own
    return [line for item in ordered for line in _prompted(getattr(item, which))]


def _prompted(commands: str) -> list[str]:
    """Commands as a shell would show them: ``$`` before a command, ``>`` before a line that goes on with it."""
    lines, goes_on, depth = [], False, 0
    for line in commands.splitlines():
        lines.append(f"{'>' if goes_on else '$'} {line}")
        depth += line in {"(", "{"} or (line.startswith("if ") and line.endswith("; then"))
        depth -= line.startswith((")", "}")) or line == "fi" or (line.startswith("else ") and line.endswith("; fi"))
        goes_on = depth > 0 or line.endswith(("&&", "|", "\\"))
    return lines

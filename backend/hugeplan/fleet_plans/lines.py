"""The lines of a fleet plan: what a job says of each node, from what is stored of it. No database, so that several
processes work on the lines of one job.
"""

from __future__ import annotations

import logging
import math
import time
import zlib
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import msgspec

from hugeplan.artifacts import files_key
from hugeplan.documents.plans import require_small
from hugeplan.fleet.facts import IncompleteReportError, SharedHardware
from hugeplan.fleet.selector import silence
from hugeplan.fleet.stored import StoredNode, as_observed, read_measured
from hugeplan.planner.check import MOST_SIZES_OF_ONE, require_bounded
from hugeplan.planner.errors import PlannerError
from hugeplan.planner.fleet import KEPT_ANSWERS, NodePlan, SharedPlans
from hugeplan.planner.model import Plan, State, subject_words
from hugeplan.planner.verdict import Answer, locked_change_bytes, speaks_against, verdict
from hugeplan.scenario_file import ScenarioDocument, scenario_as_it_runs, to_request
from hugeplan.signals import TimeOverError, ended_at

FINE, ATTENTION, WRONG = 0, 1, 2
MOST_NODE_SECONDS: Final = 3.0
"""Of processor time for one node. A usual node takes 5 ms."""
SAVED_PART: Final = 1 / 12
"""Of what is saved, that one node may take: many that take long leave something for one that comes after them."""
MOST_EXCEPTIONS: Final = 20
MOST_JSON_BYTES: Final = 6 * 1024**2
MOST_PLAN_BYTES: Final = 384 * 1024
"""Of a group's plan as a job keeps it: one of 256 databases has 160 kB, and 310 kB with the four page sizes of arm64
(5 MB as JSON). Each odd node may be a group of its own."""
#: The answer that a reader of a group has to see first is the largest.
_RANKS: Final = {Answer.DO_IT: 0, Answer.DO_IT_AFTER: 1, Answer.NOT_ENOUGH_KNOWN: 2, Answer.DONT: 3}
#: Findings that the line says with figures of its own.
_IN_THE_LINE: Final = frozenset({"pool_short", "memory_fit"})

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """What the lines of a group have in common, and how bad the worst is. Figures of two parts of a group add up.

    ``worst``: rank and name of the node whose verdict gives the reason; the name decides between equals.
    """

    sizes: tuple[dict[str, int | None], ...]
    returned_bytes: int | None
    answers: Counter[str]
    nodes_wrong: int
    nodes_attention: int
    nodes_not_fitting: int
    risk_high: float | None
    risk_policy: float
    risk_unknown: int
    worst: tuple[int, str]
    reason: str

    def __add__(self, other: GroupFigures) -> GroupFigures:
        first = self if (-self.worst[0], self.worst[1]) <= (-other.worst[0], other.worst[1]) else other
        risks = [risk for risk in (self.risk_high, other.risk_high) if risk is not None]
        return replace(
            self,
            answers=self.answers + other.answers,
            nodes_wrong=self.nodes_wrong + other.nodes_wrong,
            nodes_attention=self.nodes_attention + other.nodes_attention,
            nodes_not_fitting=self.nodes_not_fitting + other.nodes_not_fitting,
            risk_high=max(risks, default=None),
            risk_unknown=self.risk_unknown + other.risk_unknown,
            worst=first.worst,
            reason=first.reason,
        )

    def as_stored(self) -> dict[str, Any]:
        """As the database keeps it and the API answers it."""
        kept = {name: getattr(self, name) for name in self.__slots__ if name not in ("worst", "sizes")}
        return kept | {"sizes": list(self.sizes)}


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """The plan, compressed JSON, that stands for a group so far: of its node with the least memory, then by name."""

    order: tuple[int, str]
    machine_type: str | None
    headline: str
    pools: list[dict[str, int]]
    plan: bytes
    files_key: str | None
    figures: GroupFigures


@dataclass(frozen=True, slots=True)
class Lines:
    """Rows of some nodes, with the group of each in place of its number, and a plan for each of these groups.

    ``cut_nodes``: how many took longer than they may.
    """

    rows: list[dict[str, Any]]
    plans: dict[Hashable, GroupPlan]
    cut_nodes: int = 0


class LinePlanner:
    """Plans stored nodes for one scenario; without one, each as it runs. Nodes that were measured alike share the
    hardware's facts, nodes that ask the same question their answer.
    """

    def __init__(
        self, scenario: ScenarioDocument | None, *, saved_seconds: float = math.inf, seconds_per_node: float = 0.0
    ) -> None:
        """``saved_seconds``: of processor time, for nodes that take more than ``seconds_per_node``, which each has. A
        node that takes less adds to it. So nodes that take long use up their own time alone, however many they are.
        """
        self._scenario = scenario
        self._hardware = SharedHardware()
        self._plans = SharedPlans()
        self._read_measured = lru_cache(KEPT_ANSWERS)(read_measured)
        self._saved_seconds = saved_seconds
        self._seconds_per_node = seconds_per_node

    def lines(self, nodes: Sequence[StoredNode]) -> Lines:
        """The lines of some nodes. A node that cannot be planned has a line that says why."""
        found, cut_nodes = Lines([], {}), 0
        for node in nodes:
            self._saved_seconds += self._seconds_per_node
            seconds = min(MOST_NODE_SECONDS, max(self._seconds_per_node, SAVED_PART * self._saved_seconds))
            began = time.process_time()
            try:
                with ended_at(began + seconds):
                    row = self._add(node, found.plans)
            except TimeOverError:
                cut_nodes += 1
                row = _odd_row(node, f"takes more than {seconds:.2g} s of processor time to plan; plan it by itself.")
            except (IncompleteReportError, PlannerError) as error:
                row = _odd_row(node, str(error))
            except MemoryError:  # the job's limit, whichever node is at hand
                raise
            except Exception:  # whatever is odd about one node, the others get their plans
                _logger.exception("a node of a fleet plan could not be planned", extra={"node": node.name})
                row = _odd_row(node, "Internal error: the service's log says more.")
            self._saved_seconds -= time.process_time() - began
            found.rows.append(row)
        return replace(found, cut_nodes=cut_nodes)

    def _add(self, node: StoredNode, plans: dict[Hashable, GroupPlan]) -> dict[str, Any]:
        """The line and the group of a node, whose plan stands for the group where it has the least memory so far.

        PlannerError for a node that takes more than a preview may.
        """
        facts, sample = as_observed(node, measured=self._read_measured, hardware=self._hardware)
        scenario = scenario_as_it_runs(facts, sample) if self._scenario is None else self._scenario
        request = to_request(scenario, facts, sample=sample)
        require_bounded(request, most_sizes=MOST_SIZES_OF_ONE)
        answer = self._plans.plan_node(request)
        if answer.plan is None:
            return _odd_row(node, answer.why_not or "")
        order = (node.mem_total_bytes, node.name)
        row = _planned_row(node, answer, answer.plan)
        figures = _figures(row, answer.plan)
        today = tuple((size["page_bytes"], size["present_pages"]) for size in figures.sizes)
        # What was measured on a node is true of it alone: its plan stands for no other.
        measured = tuple(gain.measured_here.trial_id for gain in answer.plan.gains if gain.measured_here)
        group = (node.machine_type, today, answer.group, measured, files_key(answer.plan, request))
        before = plans.get(group)
        figures = figures if before is None else before.figures + figures
        if before is None or order < before.order:
            plans[group] = _group_plan(order, answer, answer.plan, group, figures)
        else:
            plans[group] = replace(before, figures=figures)
        return row | {"group_number": group}


def _row(node: StoredNode) -> dict[str, Any]:
    """A line that knows nothing but its node."""
    return {
        "node_id": node.id,
        "name": node.name,
        "severity": FINE,
        "exceptions": [],
        "group_number": None,
        "mem_total_bytes": node.mem_total_bytes,
        "locked_bytes": None,
        "free_bytes": None,
        "fits": None,
        "missing_pages": None,
        "idle_pages": None,
    }


def _odd_row(node: StoredNode, why: str) -> dict[str, Any]:
    """The line of a node that cannot be planned."""
    return _row(node) | {"severity": WRONG, "exceptions": [f"{node.name}: {why}"]}


def _planned_row(node: StoredNode, answer: NodePlan, plan: Plan) -> dict[str, Any]:
    silent = silence(node.last_report_at)
    exceptions = [f"{node.name} has been {silent}."] if silent else []
    severity = ATTENTION if silent else FINE
    if plan.fits is not True:
        exceptions.append(plan.headline if plan.shortfall is None else f"{plan.headline} {plan.shortfall.reason}")
        severity = max(severity, ATTENTION if plan.fits is None else WRONG)
    for finding in plan.findings:
        if finding.state in (State.WRONG, State.ATTENTION) and finding.code not in _IN_THE_LINE:
            exceptions.append(f"{subject_words(finding.subject)}: {finding.title}")
            severity = max(severity, WRONG if speaks_against(plan, finding) else ATTENTION)
    if answer.missing_pages:
        exceptions.append(f"{answer.missing_pages:,} pages of the plan are not there.")
        severity = max(severity, ATTENTION)
    return _row(node) | {
        "severity": severity,
        "exceptions": exceptions[:MOST_EXCEPTIONS],
        "locked_bytes": plan.net_memory.locked_bytes,
        "free_bytes": answer.free_bytes,
        "fits": answer.fits,
        "missing_pages": answer.missing_pages,
        "idle_pages": answer.idle_pages,
    }


def _figures(row: dict[str, Any], plan: Plan) -> GroupFigures:
    """The figures of a group of one node."""
    change = locked_change_bytes(plan)
    risk = _known_risk(plan)
    judged = verdict(plan)
    return GroupFigures(
        sizes=tuple(_sizes(plan)),
        returned_bytes=None if change is None else -change,
        answers=Counter([judged.answer.value]),
        nodes_wrong=int(row["severity"] == WRONG),
        nodes_attention=int(row["severity"] == ATTENTION),
        nodes_not_fitting=int(row["fits"] is False),
        risk_high=risk,
        risk_policy=plan.risk.policy,
        risk_unknown=int(risk is None),
        worst=(_RANKS[judged.answer] * (WRONG + 1) + row["severity"], row["name"]),
        reason=f"{row['name']}: {judged.reason}",
    )


def _known_risk(plan: Plan) -> float | None:
    """The upper bound of the risk of shortage; None where it may be within the policy or above it: that is unknown."""
    probability, policy = plan.risk.probability, plan.risk.policy
    if probability is None or probability.low <= policy < probability.high:
        return None
    return probability.high


def _sizes(plan: Plan) -> list[dict[str, int | None]]:
    """Pages of all NUMA nodes now and as planned, sizes that are neither there nor planned left out."""
    found: dict[int, tuple[int | None, int]] = {}
    for pool in plan.pools:
        present, planned = found.get(pool.page_bytes, (0, 0))
        known = None if present is None or pool.present_pages is None else present + pool.present_pages
        found[pool.page_bytes] = (known, planned + pool.pages)
    return [
        {"page_bytes": size, "present_pages": present, "planned_pages": planned}
        for size, (present, planned) in sorted(found.items())
        if planned or present != 0
    ]


def _group_plan(
    order: tuple[int, str], answer: NodePlan, plan: Plan, group: tuple[Any, ...], figures: GroupFigures
) -> GroupPlan:
    # It stands for several nodes, and a user has another number on each of them.
    plan = replace(plan, instances=tuple(replace(one, owner_uid=None) for one in plan.instances))
    whole = require_small(msgspec.json.encode(plan), MOST_JSON_BYTES)
    return GroupPlan(
        order=order,
        machine_type=group[0],
        headline=plan.headline,
        pools=[{"numa_node": numa, "page_bytes": size, "pages": pages} for numa, size, pages in answer.pools],
        plan=require_small(zlib.compress(whole, 1), MOST_PLAN_BYTES),
        files_key=group[-1],
        figures=figures,
    )


def summary_of(rows: Sequence[dict[str, Any]], groups: int, seconds: float) -> dict[str, Any]:
    """All lines in numbers."""
    planned = sum(row["locked_bytes"] is not None for row in rows)
    return {
        "nodes": len(rows),
        "groups": groups,
        "plans_computed": planned,
        "nodes_wrong": sum(row["severity"] == WRONG for row in rows),
        "nodes_attention": sum(row["severity"] == ATTENTION for row in rows),
        "nodes_without_facts": len(rows) - planned,
        "nodes_not_fitting": sum(row["fits"] is False for row in rows),
        "nodes_fit_unknown": sum(row["fits"] is None for row in rows),
        "nodes_missing_pages": sum(bool(row["missing_pages"]) for row in rows),
        "nodes_idle_pages": sum(bool(row["idle_pages"]) for row in rows),
        "mem_total_bytes": sum(row["mem_total_bytes"] for row in rows),
        "locked_bytes": sum(row["locked_bytes"] or 0 for row in rows),
        "seconds": round(seconds, 3),
    }

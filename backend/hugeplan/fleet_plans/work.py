"""What the sandbox does with the scenario of a fleet plan: check that it can be planned. It needs no database."""

from __future__ import annotations

import pickle
from typing import Final

from hugeplan.errors import FieldProblem, invalid_input
from hugeplan.planner.model import GIB, MIB, NodeFacts, NumaNode
from hugeplan.planner.plan import plan
from hugeplan.scenario_file import ScenarioDocument, to_request
from hugeplan.scenario_file.unchecked import checked

CHECK: Final = f"{__name__}:check"


def check(payload: bytes) -> bytes:
    """Refuse a scenario that no node can be planned for, before a job looks at the first; nothing for the others."""
    scenario = pickle.loads(payload)  # noqa: S301 - the service wrote it
    document = checked(scenario)
    if document.node is not None:
        expected = "no node: the facts come from the selected nodes"
        raise invalid_input([FieldProblem(field="scenario.node", value="a node", expected=expected)])
    plan(to_request(document, _any_node(document)))
    return b""


def _any_node(scenario: ScenarioDocument) -> NodeFacts:
    """A node that has room for everything, with the page sizes and the NUMA nodes that the scenario names."""
    wanted = [*(tenant.numa_node for tenant in scenario.tenants), *(one.numa_node for one in scenario.databases)]
    ids = {0, *(numa_id for numa_id in wanted if numa_id is not None)}
    sizes = {2 * MIB, GIB, *(database.page_size or 2 * MIB for database in scenario.databases)}
    return NodeFacts(
        name="any node",
        huge_page_sizes_bytes=tuple(sorted(sizes | set(scenario.policy.page_sizes or ()))),
        numa=tuple(NumaNode(id=numa_id, mem_total_bytes=1 << 46) for numa_id in sorted(ids)),
    )

"""What a node's newest report says of the plan that it is meant to follow: yes, partly, no, or nothing yet."""

from __future__ import annotations

from typing import Any, Literal

from hugeplan.api.schemas import JsonObject
from hugeplan.db.models import PlanInForceRow
from hugeplan.proof.checks.pools import COUNT as POOL_COUNT
from hugeplan.scenarios.schemas import PlanOnNode


def on_node(row: PlanInForceRow, name: str) -> PlanOnNode:
    """What the newest report of a node says of the plan that it is meant to follow."""
    return PlanOnNode(
        node_id=row.node_id,
        node_name=name,
        answer=_answer(row),
        wrong=[f"{check['subject']}: {check['title']}" for check in row.checks if _is_wrong(check)],
        since=row.since,
        verified_at=row.verified_at,
        source=row.source,  # type: ignore[arg-type]
        by=row.set_by,
    )


def _is_wrong(check: JsonObject) -> Any:
    state = check["state"]
    return state == "wrong" or (state == "attention" and check["code"] == POOL_COUNT)


def _answer(row: PlanInForceRow) -> Literal["yes", "partly", "no", "unknown"]:
    if row.outcome is None:
        return "unknown"
    pools = [check["state"] for check in row.checks if check["code"] == POOL_COUNT]
    if row.outcome == "in_force":
        # More pages than planned are enough for the databases, and not what was approved.
        return "partly" if "attention" in pools else "yes"
    if "ok" in pools:
        return "partly"
    return "unknown" if row.outcome == "undecided" else "no"

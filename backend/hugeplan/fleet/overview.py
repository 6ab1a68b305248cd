"""Many nodes at once: summary, groups, drift and page-size wins."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

import msgspec

from hugeplan.api.pagination import Page, count, decode_cursor, encode_cursor, page_within
from hugeplan.db.alone import alone
from hugeplan.db.session import ReadSession
from hugeplan.documents.decoding import convert
from hugeplan.documents.report import GlobalPool, NumaPool
from hugeplan.errors import FieldProblem, invalid_input
from hugeplan.fleet import overview_repository as repository
from hugeplan.fleet.findings.base import PlannedPool
from hugeplan.fleet.findings.plan_drift import compared
from hugeplan.fleet.newest import newest_of
from hugeplan.fleet.overview_schemas import (
    DriftPool,
    FleetFinding,
    FleetMemory,
    FleetPart,
    FleetPool,
    FleetSummary,
    Grouping,
    MachineWins,
    NodeDrift,
    NodeGroup,
    PageSizeWins,
    SizeWins,
)
from hugeplan.fleet.selector import STALE_AFTER, NodeSelector
from hugeplan.fleet.service import plan_in_force
from hugeplan.planner.evaluation.win_matrix import TIE
from hugeplan.planner.findings import silent_fallback, time_bomb

_ROWS_AT_ONCE: Final = 10
"""A node has at most 4,096 pools, about 400 kB."""
_COUNTED_CODES = {"time_bombs": time_bomb.CODE, "silent_fallbacks": silent_fallback.CODE}


async def summary(session: ReadSession, selector: NodeSelector, *, by: Grouping, label: str | None) -> FleetSummary:
    """The selected nodes in numbers, and by group. InvalidInputError for groups by a label without its key."""
    if by == "label" and not label:
        raise invalid_input([FieldProblem(field="label_key", value=None, expected="a label's key where by is label")])
    stale_before = datetime.now(UTC) - STALE_AFTER
    selector = await selector.once(session)
    total = await repository.totals(session, selector, stale_before)
    states = await repository.plan_states(session, selector)
    findings = await _findings(session, selector)
    key = repository.grouping_key(by, label)
    by_code = {name: sum(f.nodes for f in findings if f.code == code) for name, code in _COUNTED_CODES.items()}
    return FleetSummary(
        nodes=total.nodes,
        nodes_synthetic=total.nodes_synthetic,
        nodes_stale=total.nodes_stale,
        nodes_wrong=total.nodes_wrong,
        nodes_attention=total.nodes_attention,
        nodes_fractured=total.nodes_fractured,
        nodes_measured=total.nodes_measured,
        **by_code,
        memory=FleetMemory(**{name: int(getattr(total, name)) for name in FleetMemory.model_fields}),
        pools=[
            FleetPool(
                page_bytes=row.page_bytes,
                nodes=row.nodes,
                nr_hugepages=int(row.nr_hugepages),
                free_hugepages=int(row.free_hugepages),
                total_bytes=row.page_bytes * int(row.nr_hugepages),
                free_bytes=row.page_bytes * int(row.free_hugepages),
                nodes_unknown=row.nodes_unknown,
            )
            for row in await repository.pools(session, selector)
        ],
        plan_states={
            "match": states.get("match", 0),
            "short": states.get("short", 0),
            "idle": states.get("idle", 0),
            "drifted": states.get("drifted", 0),
            "none": states.get(None, 0),
        },
        findings=findings,
        parts=[FleetPart.model_validate(row) for row in await repository.parts(session, selector, key, stale_before)],
        updated_at=total.updated_at,
    )


async def _findings(session: ReadSession, selector: NodeSelector) -> list[FleetFinding]:
    rows = await repository.findings(session, selector)
    texts = await repository.stored_findings(session, [row.example_node_id for row in rows])
    found = []
    for row in rows:
        name, stored = texts.get(row.example_node_id, ("", []))
        of_row = (one for one in stored if (one["code"], one["state"]) == (row.code, row.state))
        first = next(of_row, {})
        texts_of = {"example_node_name": name, "title": first.get("title", row.code), "fix": first.get("fix")}
        found.append(FleetFinding(**row._mapping, **texts_of))
    return found


async def drift(
    session: ReadSession, selector: NodeSelector, *, matching: bool, limit: int, cursor: str | None
) -> Page[NodeDrift]:
    """Nodes with a plan in force beside their pools, by name; without ``matching``, only those that differ."""
    read_bytes: Counter[UUID] = Counter()
    selector = await selector.once(session)

    async def read(after: str | None, rows: int) -> Sequence[Any]:
        key = decode_cursor(after, str, UUID)
        return await repository.drift(session, selector, matching=matching, after=key, limit=rows)

    items, next_cursor = await page_within(
        session,
        read,
        limit=limit,
        cursor=cursor,
        key=lambda row: (row.name, str(row.id)),
        at_once=_ROWS_AT_ONCE,
        item=lambda row: _node_drift(row, partial(read_bytes.__setitem__, row.id)),
        read_bytes=lambda row: read_bytes[row.id],
    )
    return Page(items=items, next_cursor=next_cursor)


class _Pools(msgspec.Struct):
    """The pools of a sample, of which nothing else is read: one of many units takes a tenth of a second."""

    pools: list[dict[str, Any]] = []
    global_pools: list[dict[str, Any]] = []


def _node_drift(row: Any, told: Callable[[int], None]) -> NodeDrift:
    in_force = plan_in_force(row.PlanInForceRow)
    planned = [PlannedPool(pool.page_bytes, pool.pages, pool.numa_node) for pool in in_force.pools]
    pools: list[DriftPool] = []
    with alone(row.name) as tried:
        sample = msgspec.json.decode(newest_of(row, told).sample, type=_Pools)
        actual_pools = [convert(NumaPool, pool) for pool in sample.pools]
        totals = [convert(GlobalPool, pool) for pool in sample.global_pools]
        pools = [
            DriftPool(
                numa_node=numa,
                page_bytes=size,
                planned_pages=wanted,
                actual_pages=actual,
                state="match" if wanted == actual else "short" if actual < wanted else "idle",
            )
            for numa, size, wanted, actual in compared(planned, actual_pools, totals)
        ]
    return NodeDrift(
        node_id=row.id,
        node_name=row.name,
        state=row.plan_state,
        since=row.since,
        sampled_at=row.sampled_at,
        plan_in_force=in_force,
        pools=pools,
        pools_unknown_because=tried.why,
    )


async def page_size_wins(
    session: ReadSession, selector: NodeSelector, *, latest_only: bool, runs: Sequence[UUID] = ()
) -> PageSizeWins:
    """The win matrix over the runs of the selected nodes, from the sums that each run left when it was stored."""
    selector = await selector.once(session)
    counts = await repository.wins_counts(session, selector, latest_only=latest_only, runs=runs)
    kinds = [row.machine_type for row in counts if row.machine_type is not None]
    rows = await repository.wins(session, selector, None, latest_only=latest_only, runs=runs)
    by_machine: dict[str | None, list[Any]] = defaultdict(list)
    for row in await repository.wins(session, selector, kinds, latest_only=latest_only, runs=runs):
        by_machine[row.machine_type].append(row)
    machines = []
    for found in counts:
        sizes = _size_wins(of_machine := by_machine.get(found.machine_type, []))
        machines.append(
            MachineWins(
                machine_type=found.machine_type,
                nodes=found.nodes,
                runs=found.runs,
                cases=_cases(of_machine),
                best=_best(sizes),
                sizes=sizes,
            )
        )
    machines.sort(key=lambda found: (-found.cases, found.machine_type or ""))
    return PageSizeWins(
        nodes=counts[0].all_nodes if counts else 0,
        runs=counts[0].all_runs if counts else 0,
        cases=_cases(rows),
        sizes=_size_wins(rows),
        machines=machines,
    )


def _cases(rows: Sequence[Any]) -> int:
    """Every case is counted once, in the row of ties."""
    return int(sum(row.cases for row in rows if row.backing == TIE))


def _size_wins(rows: Sequence[Any]) -> list[SizeWins]:
    total = _cases(rows)
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        for name in ("cases", "wins", "lowest", "log_sum", "log_count"):
            sums[row.backing][name] += float(getattr(row, name))
    return [_one_size(backing, found, total) for backing, found in sorted(sums.items())]


def _one_size(backing: str, found: Mapping[str, float], total: int) -> SizeWins:
    mean = None
    if found["log_count"]:
        mean = 100.0 * math.expm1(found["log_sum"] / found["log_count"])
    return SizeWins(
        backing=backing,
        cases=int(found["cases"]),
        wins=int(found["wins"]),
        share=found["wins"] / total if total else 0.0,
        lowest_share=found["lowest"] / total if total else 0.0,
        mean_delta_percent=mean,
    )


def _best(sizes: Sequence[SizeWins]) -> str | None:
    """The backing with the smallest mean time against base pages."""
    compared_sizes = [size for size in sizes if size.mean_delta_percent is not None]
    best = min(compared_sizes, key=lambda size: size.mean_delta_percent or 0.0, default=None)
    return None if best is None else best.backing


async def groups(session: ReadSession, selector: NodeSelector, *, limit: int, cursor: str | None) -> Page[NodeGroup]:
    """Groups of like nodes, the largest first."""
    after = decode_cursor(cursor, count, str)
    rows = await repository.groups(session, selector, after=after, limit=limit + 1)
    next_cursor = None
    if len(rows) > limit:
        next_cursor = encode_cursor(str(rows[limit - 1].nodes), rows[limit - 1].group_key)
    return Page(items=[_group(row) for row in rows[:limit]], next_cursor=next_cursor)


def _group(row: Any) -> NodeGroup:
    """A group; its pools are as they are set, which is the same on all of its nodes."""
    listed = msgspec.json.decode(row.pools)
    pools = [{"page_bytes": pool["page_bytes"], "nr_hugepages": pool["nr_hugepages"]} for pool in listed]
    return NodeGroup.model_validate(dict(row._mapping) | {"pools": pools})

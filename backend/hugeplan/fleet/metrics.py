"""The fleet's findings and pools for Prometheus, so that alerts need no polling of the API.

Every process tells the same numbers: an alert takes their max, not their sum.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from fastapi import Request
from fastapi.responses import Response
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from hugeplan.api import health
from hugeplan.db.session import Database
from hugeplan.fleet import overview_repository as repository
from hugeplan.fleet.selector import STALE_AFTER, NodeSelector

KEPT_SECONDS: Final = 15.0
_NODES: Final = {
    "nodes": "hugeplan_fleet_nodes",
    "nodes_stale": "hugeplan_fleet_nodes_stale",
    "nodes_wrong": "hugeplan_fleet_nodes_wrong",
    "nodes_attention": "hugeplan_fleet_nodes_attention",
    "mem_total_bytes": "hugeplan_fleet_memory_bytes",
    "page_tables_bytes": "hugeplan_fleet_page_tables_bytes",
}


class FleetMetrics(Collector):
    """What the database said last. Nothing is told of a database that does not answer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._found: list[Metric] = []
        self._until = 0.0
        self._one_at_a_time = asyncio.Lock()

    def collect(self) -> Iterator[Metric]:
        """The metrics of the last look."""
        yield from self._found

    async def refresh(self) -> None:
        """Check again when the last check is too old."""
        async with self._one_at_a_time:
            if time.monotonic() < self._until:
                return
            try:
                self._found = await self._look()
            except (SQLAlchemyError, OSError):
                self._found = []
            self._until = time.monotonic() + KEPT_SECONDS

    async def _look(self) -> list[Metric]:
        everything = NodeSelector()
        async with self._database.read() as session:
            totals = await repository.totals(session, everything, datetime.now(UTC) - STALE_AFTER)
            findings = await repository.findings(session, everything)
            pools = await repository.pools(session, everything)
            states = await repository.plan_states(session, everything)
        by_code = GaugeMetricFamily(
            "hugeplan_fleet_finding_nodes", "Nodes with a finding, by its code and state.", labels=("code", "state")
        )
        for found in findings:
            by_code.add_metric((found.code, found.state), found.nodes)
        pages = GaugeMetricFamily("hugeplan_fleet_pool_pages", "Pages in pools.", labels=("page_bytes",))
        free = GaugeMetricFamily("hugeplan_fleet_pool_free_pages", "Free pages in pools.", labels=("page_bytes",))
        for pool in pools:
            pages.add_metric((str(pool.page_bytes),), int(pool.nr_hugepages))
            free.add_metric((str(pool.page_bytes),), int(pool.free_hugepages))
        plans = GaugeMetricFamily(
            "hugeplan_fleet_plan_nodes", "Nodes by their state beside the plan in force.", labels=("state",)
        )
        for plan_state, nodes in states.items():
            plans.add_metric((plan_state or "none",), nodes)
        plain: list[Metric] = [
            GaugeMetricFamily(name, f"The fleet's {column}, as GET /fleet/summary has it.", getattr(totals, column))
            for column, name in _NODES.items()
        ]
        return [*plain, by_code, pages, free, plans]


async def render_metrics(request: Request) -> Response:
    """The metrics of this process and of the fleet."""
    fleet: FleetMetrics = request.app.state.fleet_metrics
    await fleet.refresh()
    return health.render_metrics(request)

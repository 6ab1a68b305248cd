"""Reports per second beside the yardstick, in alternating rounds, and p99 at half of the bar's rate."""

from __future__ import annotations

import asyncio
import json
import statistics
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.support.figures import Figure, figure, processor_seconds
from bench.support.load import Load, ReportMaker, run_load
from bench.support.world import BACKEND
from support.reports import report, run

CONNECTIONS = 8
ROUNDS = 5
SECONDS = 4.0
RECORDED = BACKEND.parent / "frontend" / "e2e" / "recorded" / "guest.json"
Machine = tuple[str, str]
"""A machine id and its token."""


def body_of(machine: str, kind: str) -> tuple[bytes, str]:
    """A report's bytes and the id in them: samples only (about 5.8 kB), or with the recorded quick run."""
    document = report(machine_id=machine, node_name=f"bench-{machine[:6]}")
    if kind == "samples":
        document["sample"]["processes"] = [
            {"pid": 1000 + n, "start_time_ticks": 5 + n, "name": f"postgres: worker {n}", "rss_bytes": 2**30 + n,
             "vm_pte_bytes": 8192, "shared_hugetlb_bytes": 2**28}
            for n in range(24)
        ]  # fmt: skip
    else:
        recorded = json.loads(Path(RECORDED).read_text(encoding="utf-8"))
        document["run"] = recorded.get("run") or run()
    document["created_at"] = document["sample"]["taken_at"] = datetime.now(UTC).isoformat()
    return json.dumps(document).encode(), document["report_id"]


def makers(port: int, machines: list[Machine], kind: str) -> list[Any]:
    """One maker of requests per machine."""
    return [ReportMaker(port, token, *body_of(machine, kind)) for machine, token in machines]


def ingest(port: int, yard_port: int, machines: list[Machine], server_pid: int) -> Iterator[Figure]:
    """The rows of ingest. Beside the yardstick, ``budget_seconds`` is what makes half of its rate."""
    for kind, bar in (("samples", 600), ("quick run", 150)):
        own: list[Load] = []
        yard: list[Load] = []
        cpu: list[float] = []
        size = len(body_of("0" * 32, kind)[0])
        asyncio.run(run_load(port, makers(port, machines, kind), seconds=1.0))
        asyncio.run(run_load(yard_port, makers(yard_port, machines, kind), seconds=1.0))
        for _ in range(ROUNDS):
            yard.append(asyncio.run(run_load(yard_port, makers(yard_port, machines, kind), seconds=SECONDS)))
            used = processor_seconds(server_pid)
            own.append(asyncio.run(run_load(port, makers(port, machines, kind), seconds=SECONDS)))
            cpu.append((processor_seconds(server_pid) - used) / len(own[-1].seconds))
        rate = statistics.median(load.rate for load in own)
        ratio = statistics.median(a.rate / b.rate for a, b in zip(own, yard, strict=True))
        yield figure(
            f"{kind} ({size} bytes), {CONNECTIONS} connections: time per report",
            1 / rate,
            1 / bar,
            reports_per_second=round(rate, 1),
            bar_per_second=bar,
            p99_ms=round(1000 * statistics.median(load.quantile(0.99) for load in own), 1),
            server_cpu_ms=round(1000 * statistics.median(cpu), 2),
        )
        yield figure(
            f"{kind}: beside the yardstick",
            1 / rate,
            2 * ratio / rate,
            ratio=round(ratio, 2),
            bar_ratio=0.5,
            ratios=[round(a.rate / b.rate, 2) for a, b in zip(own, yard, strict=True)],
            yardstick_per_second=round(statistics.median(load.rate for load in yard), 1),
        )
        half = asyncio.run(run_load(port, makers(port, machines, kind), seconds=2 * SECONDS, rate=bar / 2))
        yield figure(
            f"p99 at {bar // 2} reports per second, {kind}",
            half.quantile(0.99),
            0.150,
            median_seconds=round(half.median, 6),
            reports_per_second=round(half.rate, 1),
        )

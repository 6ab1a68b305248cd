"""What the first requests would build, built before the service says that it is ready."""

from __future__ import annotations

import anyio.to_thread

from hugeplan.documents.bounds import adapter
from hugeplan.documents.decoding import struct_of
from hugeplan.documents.report import Report
from hugeplan.hardware import catalogue
from hugeplan.planner.model import GIB, DatabaseInstance, NodeFacts, NumaNode, Plan, PlanRequest
from hugeplan.planner.plan import plan


async def warm() -> None:
    """Compile the decoders of reports and of kept plans, read the catalogue, and make a plan."""
    await anyio.to_thread.run_sync(_build)


def _build() -> None:
    struct_of(Report)
    catalogue.catalogue()
    adapter(Plan)
    node = NodeFacts(name="warm", numa=(NumaNode(id=0, mem_total_bytes=16 * GIB, pools=()),), cpus=4)
    database = DatabaseInstance(name="a", engine="postgresql", version="17", settings={"shared_buffers": "4GB"})
    plan(PlanRequest(node=node, databases=(database,)))

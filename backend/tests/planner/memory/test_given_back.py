"""What base pages would cost in page tables is bounded by the node, by active connections and by what they touch."""

from __future__ import annotations

from hugeplan.planner.model import GIB, DatabaseInstance, NodeFacts, NumaNode, Plan, PlanRequest, Workload
from hugeplan.planner.plan import plan

NODE = NodeFacts(name="n", numa=(NumaNode(id=0, mem_total_bytes=768 * GIB),), kernel_used_bytes=GIB)


def planned(**workload: int) -> Plan:
    settings = {"shared_buffers": "512GB", "max_connections": "5000"}
    instance = DatabaseInstance(
        name="db", engine="postgresql", settings=settings, page_bytes=2 << 20, workload=Workload(**workload)
    )
    return plan(PlanRequest(node=NODE, databases=(instance,)))


def test_no_node_gives_back_more_than_it_has() -> None:
    found = planned()
    assert 0 < found.net_memory.returned_page_tables_bytes <= NODE.mem_total_bytes - 512 * GIB


def test_fewer_active_connections_and_a_smaller_working_set_give_back_less() -> None:
    few = planned(active_connections=20).net_memory.returned_page_tables_bytes
    # 20 processes, 8 bytes per 4K page of 512 GiB: 20 GiB, and their 2M tables off.
    assert 19 * GIB < few < 21 * GIB
    small = planned(active_connections=20, working_set_bytes=64 * GIB).net_memory.returned_page_tables_bytes
    assert 2 * GIB < small < 3 * GIB

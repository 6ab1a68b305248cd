"""What a primary-key lookup accesses in an engine with hashed block headers (Oracle Database, Db2)."""

from __future__ import annotations

from hugeplan.planner.demand.accesses import AccessProfile, AccessRegion, client_lookup, data_set
from hugeplan.planner.model import DatabaseInstance, Demand, Source, Term


def block_engine_key_lookup(instance: DatabaseInstance, demand: Demand) -> AccessProfile:
    """Oracle and Db2: hash bucket, block header and block, for the index leaf and for the table block."""
    data = data_set(instance, demand)
    block = 8192.0
    blocks = max(1.0, data.working_set_bytes / block)
    popularity = int(blocks * max(1.0, block / (data.row_bytes + 10))) if data.zipf_s > 0 else None
    regions = (
        AccessRegion("hash bucket", data.buffer_pool_bytes / block * 16, blocks, 16.0, 2.0),
        AccessRegion("block header", blocks * 200.0, blocks, 200.0, 2.0),
        AccessRegion("block", blocks * block, blocks, block, 2.0, 0.75, 8.0, popularity),
    )
    term = Term("cold accesses per lookup", "6", Source.ASSUMED, "hash bucket, header and block of leaf and row")
    return client_lookup(regions, data, term)

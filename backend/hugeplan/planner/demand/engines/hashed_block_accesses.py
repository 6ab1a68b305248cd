"""What a primary-key lookup accesses in a buffer pool with hashed blocks: InnoDB, Oracle Database, Db2."""

from __future__ import annotations

from hugeplan.planner.demand.accesses import AccessProfile, AccessRegion, client_lookup, data_set
from hugeplan.planner.model import DatabaseInstance, Demand, Source, Term


def innodb_key_lookup(instance: DatabaseInstance, demand: Demand) -> AccessProfile:
    """One primary-key lookup in a clustered index: page-hash cell, block descriptor, leaf page (16 KiB by default).

    The page directory lies at the end of the page, the record anywhere: about two further 4 KiB pages.
    Source: InnoDB buf0buf and page0cur; not counted on a real server, so its range is wide.
    """
    data = data_set(instance, demand)
    block, descriptor = 16384.0, 480.0
    blocks = max(1.0, data.working_set_bytes / block)
    rows = blocks * max(1.0, 0.93 * block / (data.row_bytes + 20))
    popularity = int(rows) if data.zipf_s > 0 else None
    inner = blocks / 900.0
    pool_blocks = data.buffer_pool_bytes / block
    regions = [
        AccessRegion("page hash cell", pool_blocks * 2 * 8, blocks, 8.0, 1.0),
        AccessRegion("block descriptor", blocks * descriptor, blocks, descriptor, 1.5),
        AccessRegion("leaf page", blocks * block, blocks, block, 1.0, 2.0, 12.0, popularity),
    ]
    if inner > 1.0:
        regions += [
            AccessRegion("inner descriptor", blocks * descriptor, inner, descriptor, 2.0),
            AccessRegion("inner page", blocks * block, inner, block, 1.0, 2.0, 12.0),
        ]
    term = Term("cold accesses per lookup", "3 to 5", Source.ASSUMED, "InnoDB buffer pool and page layout")
    return client_lookup(tuple(regions), data, term)


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

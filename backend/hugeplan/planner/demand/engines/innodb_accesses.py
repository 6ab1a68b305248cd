"""What a primary-key lookup in InnoDB (MySQL, Percona Server, MariaDB) accesses in the buffer pool."""

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

"""What a primary-key lookup in PostgreSQL accesses in shared memory, block by block.

The counts were checked on a real server by clearing and reading the referenced bits of a backend's pages
(docs/model-results.md).
"""

from __future__ import annotations

import math
from dataclasses import replace

from hugeplan.planner.demand.accesses import CLIENT_OPERATION_NS, AccessProfile, AccessRegion, DataSet, data_set
from hugeplan.planner.demand.model_error import ModelError, error_of_clients, error_of_rows
from hugeplan.planner.model import DatabaseInstance, Demand, Source, Term


def _next_power_of_two(value: float) -> int:
    return 1 << max(0, math.ceil(math.log2(max(1.0, value))))


PG_BLOCK = 8192
# Storage of the buffer table: src/backend/storage/buffer/buf_table.c and utils/hash/dynahash.c. An entry is a
# 16-byte element header and a 24-byte tag with the buffer number; a descriptor is padded to a cache line.
PG_HASH_ENTRY_BYTES, PG_DESCRIPTOR_BYTES, PG_BUCKET_BYTES, PG_PARTITIONS = 40, 64, 8, 128
PG_INDEX_ROW_BYTES = 16 + 4  # nbtree tuple of an 8-byte key, and its line pointer
PG_LEAF_FILL, PG_INNER_FILL = 0.90, 0.70  # nbtree defaults at build time
PG_TUPLE_OVERHEAD_BYTES = 24 + 8 + 4  # heap tuple header, an 8-byte key, line pointer
PG_TOAST_THRESHOLD_BYTES, PG_TOAST_CHUNK_BYTES = 2000, 1996
PG_CHUNK_OVERHEAD_BYTES = 24 + 8 + 4 + 4  # heap tuple header, chunk_id with chunk_seq, length word, line pointer
PG_VALUE_COPIES = 3  # of a client's row: fetched from its chunks or its block, as text, and in the send buffer
PG_LEAF_LINES = (
    16.0  # a binary search's; leaf and heap together were 23 lines in a traced server (docs/model-results.md)
)
PG_PRIVATE_LINES = {False: 680.0, True: 290.0}  # of a client's lookup, of a step inside the server; traced as above
PG_WARM_PAGES, PG_PRIVATE_PAGES = 30.0, 420.0  # counted on PostgreSQL 15 with referenced bits


def _postgresql_block_lookup(name: str, blocks: float, data: DataSet, times: float) -> tuple[AccessRegion, ...]:
    """Finding a block in the buffer pool ``times`` per operation: hash bucket, hash entry, descriptor."""
    buffers = data.buffer_pool_bytes / PG_BLOCK
    buckets = _next_power_of_two(buffers + PG_PARTITIONS)
    used = max(1.0, min(buffers, data.working_set_bytes / PG_BLOCK))
    share = min(1.0, blocks / used)
    entries_span = used * PG_HASH_ENTRY_BYTES
    descriptors_span = used * PG_DESCRIPTOR_BYTES
    bucket_span = float(buckets * PG_BUCKET_BYTES)
    # Blocks of one table hash to any bucket; entries and descriptors are taken in load order.
    return (
        AccessRegion(f"{name} hash bucket", bucket_span, blocks, PG_BUCKET_BYTES, times),
        AccessRegion(f"{name} hash entry", entries_span * share, blocks, PG_HASH_ENTRY_BYTES, times),
        AccessRegion(f"{name} descriptor", descriptors_span * share, blocks, PG_DESCRIPTOR_BYTES, times),
    )


def _chained_entries(lookups: float, data: DataSet) -> AccessRegion:
    """Entries of other blocks that a search compares first: half the load of a bucket, anywhere in the table."""
    buffers = data.buffer_pool_bytes / PG_BLOCK
    used = max(1.0, min(buffers, data.working_set_bytes / PG_BLOCK))
    load = used / _next_power_of_two(buffers + PG_PARTITIONS)
    return AccessRegion("chained entries", used * PG_HASH_ENTRY_BYTES, used, PG_HASH_ENTRY_BYTES, lookups * load / 2.0)


def _scattered(regions: tuple[AccessRegion, ...], data: DataSet) -> tuple[AccessRegion, ...]:
    """The same items spread over the whole extent of their structure (few hot blocks among many)."""
    used = max(1.0, data.working_set_bytes / PG_BLOCK)
    spans = (None, used * PG_HASH_ENTRY_BYTES, used * PG_DESCRIPTOR_BYTES)
    return tuple(
        replace(region, span_bytes=max(region.span_bytes, span or 0.0))
        for region, span in zip(regions, spans, strict=True)
    )


class _Toast:
    """A row's value out of line: chunks in key order in a heap of their own, found through an index of their own.

    Source: PostgreSQL access/common/toast_internals.c and heap_fetch_toast_slice. A value of 4,096 bytes pinned
    1.00 leaf and 1.32 blocks of chunks in a real server; these rules say 1 and 1.34 (docs/model-results.md).
    """

    def __init__(self, row_bytes: int) -> None:
        self.row_bytes = row_bytes
        self.chunks = math.ceil(row_bytes / PG_TOAST_CHUNK_BYTES)
        self.heap_bytes = row_bytes + self.chunks * PG_CHUNK_OVERHEAD_BYTES
        self.chunks_per_leaf = (PG_BLOCK - 40) * PG_LEAF_FILL / PG_INDEX_ROW_BYTES
        #: Blocks that a value's chunks lie in: a boundary between two blocks stands at one gap in so many chunks.
        self.blocks_per_row = 1.0 + (self.chunks - 1) * self.heap_bytes / self.chunks / PG_BLOCK

    @property
    def bytes_per_row(self) -> float:
        """Heap and index blocks of one value."""
        return self.heap_bytes + self.chunks * PG_BLOCK / self.chunks_per_leaf

    def regions(self, rows: float, data: DataSet) -> tuple[AccessRegion, ...]:
        """The leaf that lists the value's chunks, and the blocks that hold them; both halves of each are read."""
        leaves = max(1.0, rows * self.chunks / self.chunks_per_leaf)
        blocks = max(1.0, rows * self.heap_bytes / PG_BLOCK)
        per_row, lines = self.blocks_per_row, 5.0 + self.row_bytes / 64 / self.blocks_per_row
        return (
            *_postgresql_block_lookup("toast leaf", leaves, data, 1.0),
            AccessRegion("toast leaf block", leaves * PG_BLOCK, leaves, PG_BLOCK, 1.0, 1.0, PG_LEAF_LINES),
            *_postgresql_block_lookup("toast", blocks, data, per_row),
            AccessRegion("toast blocks", blocks * PG_BLOCK, blocks, PG_BLOCK, per_row, 1.0, lines),
        )


def _model_error(instance: DatabaseInstance, *, inline: bool) -> ModelError:
    """The class of the rows and the clients; that of all clients where the rows' size is not given."""
    work = instance.workload
    clients = work.active_connections or instance.connections
    return error_of_clients() if work.row_bytes is None else error_of_rows(inline=inline, clients=clients)


def postgresql_key_lookup(instance: DatabaseInstance, demand: Demand) -> AccessProfile:
    """One primary-key lookup through a B-tree whose root is warm: inner page, leaf page, heap page.

    Each block costs a hash bucket, a hash entry, a descriptor and the block itself. A leaf is read at both ends
    (page header and the special area in its last bytes), so both 4 KiB halves are always accessed; a heap tuple
    lies in the second half every other time. Source: PostgreSQL storage/buffer, access/nbtree, access/heap.
    """
    data = data_set(instance, demand)
    inline = data.row_bytes <= PG_TOAST_THRESHOLD_BYTES
    tuple_bytes = min(data.row_bytes + PG_TUPLE_OVERHEAD_BYTES, PG_BLOCK - 24) if inline else 60
    rows_per_block = max(1, (PG_BLOCK - 24) // tuple_bytes)
    rows_per_leaf = (PG_BLOCK - 40) * PG_LEAF_FILL / PG_INDEX_ROW_BYTES
    toast = None if inline else _Toast(data.row_bytes)
    bytes_per_row = PG_BLOCK / rows_per_block + PG_BLOCK / rows_per_leaf + (toast.bytes_per_row if toast else 0.0)
    rows = max(1.0, data.working_set_bytes / bytes_per_row)
    heap_blocks, leaf_blocks = max(1.0, rows / rows_per_block), max(1.0, rows / rows_per_leaf)
    inner_blocks = leaf_blocks / ((PG_BLOCK - 40) * PG_INNER_FILL / PG_INDEX_ROW_BYTES)
    popularity_rows = int(rows) if data.zipf_s > 0 else None

    def blocks(name: str, count: float, near: float, lines: float, span: float) -> AccessRegion:
        return AccessRegion(name, span, count, PG_BLOCK, 1.0, near, lines, popularity_rows)

    row_lines = 5 + data.row_bytes / 64 if inline else 6.0  # header, line pointer, tuple header, the row
    regions = [
        *_postgresql_block_lookup("leaf", leaf_blocks, data, 1.0),
        blocks("leaf block", leaf_blocks, 1.0, PG_LEAF_LINES, leaf_blocks * PG_BLOCK),
        *_postgresql_block_lookup("heap", heap_blocks, data, 1.0),
        blocks("heap block", heap_blocks, min(1.0, 0.5 + data.row_bytes / PG_BLOCK), row_lines, heap_blocks * PG_BLOCK),
    ]
    if toast:
        regions += toast.regions(rows, data)
    if inner_blocks > 1.0:
        regions += _scattered(_postgresql_block_lookup("inner", inner_blocks, data, 1.0), data)
        regions.append(
            AccessRegion("inner block", leaf_blocks * PG_BLOCK, inner_blocks, PG_BLOCK, 1.0, 1.0, PG_LEAF_LINES)
        )
    lookups = sum(region.accesses for region in regions if region.name.endswith("hash bucket"))
    regions.append(_chained_entries(lookups, data))
    reference = "PostgreSQL storage/buffer, nbtree and heap; counted on a real server"
    in_server = instance.workload.operation_class == "nested_loop"
    return AccessProfile(
        regions=tuple(regions),
        warm_pages=PG_WARM_PAGES,
        private_pages=PG_PRIVATE_PAGES,
        zipf_s=data.zipf_s,
        uncertainty=(0.85, 1.2),  # counted pages were 6 to 22 % above these
        inputs=(*data.inputs, Term("cold accesses per lookup", "8 to 11", Source.COMPUTED, reference)),
        operation_ns=data.operation_ns,
        private_lines=PG_PRIVATE_LINES[in_server] + (0.0 if in_server else PG_VALUE_COPIES * data.row_bytes / 64),
        model_error=None if in_server else _model_error(instance, inline=inline),
        quiet_operation_ns=None if in_server else CLIENT_OPERATION_NS.likely,
    )

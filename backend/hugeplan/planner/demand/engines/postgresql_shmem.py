"""The size of PostgreSQL's main shared memory segment, term by term as the server adds it up.

The server computes the size in ``CalculateShmemSize()`` (src/backend/storage/ipc/ipci.c): a sum of estimates, one
for each subsystem. The terms that grow with a setting in a way of their own (buffers, hash tables, SLRU caches,
locks, AIO handles) are written out below, one function each. What grows in plain proportion to a count of
processes or slots is a linear term whose coefficients were fitted to rows taken from real servers
(``backend/tools/postgresql_oracle.py`` takes the rows and refits; the residual is the server's own rounding to
8 kB). All sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hugeplan.planner.pages import ceil_to_multiple
from hugeplan.planner.remembered import remembered

BLOCK_BYTES: Final = 8192
#: The fit's residual and the server's rounding to 8 kB.
MODEL_ERROR_BYTES: Final = 16 * 1024
_POINTER_BYTES: Final = 8
_CACHE_LINE_BYTES: Final = 128

# dynahash.c: header of a shared table, smallest directory, buckets in a segment, tag in front of an element.
_HASH_HEADER_BYTES: Final = 848
_HASH_DIRECTORY_ENTRIES: Final = 256
_HASH_SEGMENT_BUCKETS: Final = 256
_HASH_ELEMENT_TAG_BYTES: Final = 16

# Entry sizes of the big tables: BufferLookupEnt (buf_table.c), LOCK and PROCLOCK (lock.h), PREDICATELOCKTARGET,
# PREDICATELOCK and SERIALIZABLEXID (predicate_internals.h).
_BUFFER_LOOKUP_ENTRY_BYTES: Final = 24
_LOCK_ENTRY_BYTES: Final = 152
_PROCLOCK_ENTRY_BYTES: Final = 64
_PREDICATE_TARGET_ENTRY_BYTES: Final = 32
_PREDICATE_LOCK_ENTRY_BYTES: Final = 56
_SERIALIZABLE_XID_ENTRY_BYTES: Final = 16
_BUFFER_PARTITIONS: Final = 128

# For each shared buffer: the block, its descriptor padded to 64 B, its I/O condition variable, its checkpoint slot.
_BYTES_PER_BUFFER: Final = BLOCK_BYTES + 64 + 16 + 20
#: What one more buffer adds on average, its lookup entry and its checkpoint request included: for first guesses only.
MARGINAL_BYTES_PER_BUFFER: Final = _BYTES_PER_BUFFER + _HASH_ELEMENT_TAG_BYTES + _BUFFER_LOOKUP_ENTRY_BYTES + 32

#: The checkpointer's request queue stopped growing at this many entries in the minors of August 2025.
CHECKPOINT_REQUESTS_MAX: Final = 10_000_000
CHECKPOINT_CAP_SINCE_MINOR: Final[Mapping[int, int]] = {13: 22, 14: 19, 15: 14, 16: 10, 17: 6, 18: 0}

_SLRU_LSN_GROUPS_PER_PAGE: Final = 1024  # clog.c: CLOG_LSNS_PER_PAGE
_SLRU_HEADER_BYTES: Final = 88
_SLRU_BANK_SLOTS: Final = 16
_IO_WORKERS_MAX: Final = 32
_RING_PAGE_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Layout:
    """What differs between major versions.

    ``special_workers``: processes beside the configured ones that count as backends. ``status_slots``: auxiliary
    entries of the backend status arrays. The rest are the fitted coefficients in bytes: a constant, and bytes for
    each backend, prepared transaction, background worker slot, WAL sender, replication slot, logical replication
    worker, autovacuum worker and replication origin.
    """

    special_workers: int
    status_slots: int
    checkpoint_request_bytes: int
    const: float
    per_backend: float
    per_prepared: float
    per_worker: float
    per_wal_sender: float
    per_slot: float
    per_logical_worker: float
    per_autovacuum: float
    per_origin: float = 0.0


#: Fitted by backend/tools/postgresql_oracle.py to servers 15.19, 16.15, 17.11 and 18.6.
LAYOUTS: Final[Mapping[int, Layout]] = {
    15: Layout(1, 6, 24, 1166310.3, 6143.4, 5243.7, 563.2, 90.0, 323.8, 108.9, 28.5),
    16: Layout(1, 6, 24, 1185161.4, 6151.4, 5243.3, 558.6, 103.2, 326.9, 113.9, 18.8),
    17: Layout(2, 6, 32, 556412.0, 6158.5, 5247.5, 1491.3, 96.7, 330.5, 126.9, 28.9),
    18: Layout(2, 38, 32, 669440.5, 6479.4, 5190.6, 1480.7, 89.3, 287.2, 128.6, 45.2, 56.5),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShmemSettings:
    """The settings that change the segment, in bytes, blocks and counts; defaults are the server's.

    ``wal_buffers`` and ``io_max_concurrency`` are None where the server chooses; a ``*_buffers`` of an SLRU cache
    is None where the server derives it from shared_buffers. ``addin_bytes`` is what preloaded libraries ask for.
    """

    shared_buffers: int = 16384
    max_connections: int = 100
    max_locks_per_transaction: int = 64
    max_pred_locks_per_transaction: int = 64
    max_prepared_transactions: int = 0
    max_worker_processes: int = 8
    autovacuum_max_workers: int = 3
    autovacuum_worker_slots: int = 16
    max_wal_senders: int = 10
    max_replication_slots: int = 10
    max_active_replication_origins: int = 10
    max_logical_replication_workers: int = 4
    wal_buffers: int | None = None
    wal_segment_bytes: int = 16 * 1024**2
    track_activity_query_bytes: int = 1024
    min_dynamic_shared_memory_bytes: int = 0
    old_snapshot_threshold_minutes: int = -1
    hot_standby: bool = True
    transaction_buffers: int | None = None
    commit_timestamp_buffers: int | None = None
    subtransaction_buffers: int | None = None
    multixact_offset_buffers: int = 16
    multixact_member_buffers: int = 32
    notify_buffers: int = 16
    serializable_buffers: int = 32
    io_max_concurrency: int | None = None
    io_max_combine_limit: int = 16
    io_uring: bool = False
    addin_bytes: int = 0


def _next_power_of_two(count: int) -> int:
    return 1 if count <= 1 else 1 << (count - 1).bit_length()


def _maxalign(size_bytes: int) -> int:
    return (size_bytes + 7) & ~7


@remembered(8192)
def hash_table_bytes(entries: int, entry_bytes: int) -> int:
    """Bytes reserved for a shared hash table (``hash_estimate_size``, src/backend/utils/hash/dynahash.c).

    Buckets are the next power of two, in segments of 256 pointers under a directory of at least 256; elements are
    allocated in groups of at least 32, so the table grows in steps and the overhead is no constant percentage.
    """
    buckets = _next_power_of_two(entries)
    segments = _next_power_of_two((buckets - 1) // _HASH_SEGMENT_BUCKETS + 1)
    directory = max(_HASH_DIRECTORY_ENTRIES, segments)
    element = _HASH_ELEMENT_TAG_BYTES + _maxalign(entry_bytes)
    allocation = 256
    while allocation // element < 32:
        allocation *= 2
    group = allocation // element
    groups = (entries - 1) // group + 1
    return (
        _HASH_HEADER_BYTES
        + directory * _POINTER_BYTES
        + segments * _HASH_SEGMENT_BUCKETS * _POINTER_BYTES
        + groups * group * element
    )


@remembered(1024)  # most of a segment's dozen caches have one of a few sizes
def slru_bytes(slots: int, lsn_groups: int, major: int) -> int:
    """Bytes of one SLRU cache (``SimpleLruShmemSize``, src/backend/access/transam/slru.c); banks of 16 since 17."""
    page_number_bytes = 8 if major >= 17 else 4
    size = _SLRU_HEADER_BYTES
    for per_slot in (_POINTER_BYTES, 4, 1, page_number_bytes, 4, _CACHE_LINE_BYTES):
        size += _maxalign(slots * per_slot)
    if major >= 17:
        banks = slots // _SLRU_BANK_SLOTS
        size += _maxalign(banks * _CACHE_LINE_BYTES) + _maxalign(banks * 4)
    size += _maxalign(slots * lsn_groups * 8)
    return ceil_to_multiple(size, 32) + slots * BLOCK_BYTES


def slru_autotune_slots(shared_buffers: int) -> int:
    """Slots of an SLRU cache set to 0 since 17: shared_buffers/512 in whole banks, 16 to 1024 (slru.c)."""
    share = shared_buffers // 512
    return min(max(_SLRU_BANK_SLOTS, share - share % _SLRU_BANK_SLOTS), 1024)


def max_backends(major: int, settings: ShmemSettings) -> int:
    """``MaxBackends`` (InitializeMaxBackends, src/backend/utils/init/postinit.c)."""
    autovacuum = settings.autovacuum_worker_slots if major >= 18 else settings.autovacuum_max_workers
    return (
        settings.max_connections
        + autovacuum
        + LAYOUTS[major].special_workers
        + settings.max_worker_processes
        + settings.max_wal_senders
    )


def buffer_pool_bytes(settings: ShmemSettings) -> int:
    """Blocks, descriptors, condition variables and checkpoint slots (``BufferShmemSize``, buf_init.c)."""
    return settings.shared_buffers * _BYTES_PER_BUFFER


def buffer_lookup_bytes(settings: ShmemSettings) -> int:
    """The buffer mapping hash table (``BufTableShmemSize``, buf_table.c): one entry a buffer and a partition."""
    return hash_table_bytes(settings.shared_buffers + _BUFFER_PARTITIONS, _BUFFER_LOOKUP_ENTRY_BYTES)


def checkpointer_queue_bytes(major: int, settings: ShmemSettings, *, capped: bool) -> int:
    """The checkpointer's request queue (``CheckpointerShmemSize``, checkpointer.c): a request a buffer, capped."""
    requests = min(settings.shared_buffers, CHECKPOINT_REQUESTS_MAX) if capped else settings.shared_buffers
    return requests * LAYOUTS[major].checkpoint_request_bytes


def wal_buffer_blocks(settings: ShmemSettings) -> int:
    """wal_buffers in blocks; by default shared_buffers/32, 8 blocks to one WAL segment (``XLOGChooseNumBuffers``)."""
    if settings.wal_buffers is not None:
        return settings.wal_buffers
    return max(min(settings.shared_buffers // 32, settings.wal_segment_bytes // BLOCK_BYTES), 8)


def wal_bytes(settings: ShmemSettings) -> int:
    """WAL buffers with one page address each (``XLOGShmemSize``, xlog.c)."""
    return wal_buffer_blocks(settings) * (BLOCK_BYTES + 8)


def _with_lock_margin(size_bytes: int) -> int:
    """Both lock managers add a tenth because their tables may not fill evenly."""
    return size_bytes + size_bytes // 10


def lock_table_bytes(major: int, settings: ShmemSettings) -> int:
    """The lock manager's two tables (``LockShmemSize``, lock.c)."""
    locks = settings.max_locks_per_transaction * (max_backends(major, settings) + settings.max_prepared_transactions)
    return _with_lock_margin(
        hash_table_bytes(locks, _LOCK_ENTRY_BYTES) + hash_table_bytes(2 * locks, _PROCLOCK_ENTRY_BYTES)
    )


def predicate_lock_bytes(major: int, settings: ShmemSettings) -> int:
    """The predicate lock manager's tables (``PredicateLockShmemSize``, predicate.c), its linear lists aside."""
    transactions = max_backends(major, settings) + settings.max_prepared_transactions
    targets = settings.max_pred_locks_per_transaction * transactions
    return _with_lock_margin(
        hash_table_bytes(targets, _PREDICATE_TARGET_ENTRY_BYTES)
        + hash_table_bytes(2 * targets, _PREDICATE_LOCK_ENTRY_BYTES)
    ) + hash_table_bytes(10 * transactions, _SERIALIZABLE_XID_ENTRY_BYTES)


def activity_bytes(major: int, settings: ShmemSettings) -> int:
    """The query texts of pg_stat_activity (``BackendStatusShmemSize``, backend_status.c)."""
    return (max_backends(major, settings) + LAYOUTS[major].status_slots) * settings.track_activity_query_bytes


#: Transaction status of all transaction ids: 2^31 of them at 32768 per block (CLOG_MAX_ALLOWED_BUFFERS, clog.c). The
#: setting takes larger values, the server does not.
_TRANSACTION_BUFFERS_MAX: Final = 65_536


def slru_total_bytes(major: int, settings: ShmemSettings) -> int:
    """All SLRU caches: fixed sizes or shares of shared_buffers before 17, settings of their own since."""
    buffers = settings.shared_buffers
    if major < 17:
        transaction = min(128, max(4, buffers // 512))  # clog.c
        commit_timestamp = min(256, max(4, buffers // 256))  # commit_ts.c
        return slru_bytes(transaction, _SLRU_LSN_GROUPS_PER_PAGE, major) + slru_bytes(commit_timestamp, 0, major)
    automatic = slru_autotune_slots(buffers)
    fixed = (
        settings.commit_timestamp_buffers or automatic,
        settings.subtransaction_buffers or automatic,
        settings.multixact_offset_buffers,
        settings.multixact_member_buffers,
        settings.notify_buffers,
        settings.serializable_buffers,
    )
    transaction = min(settings.transaction_buffers or automatic, _TRANSACTION_BUFFERS_MAX)
    return slru_bytes(transaction, _SLRU_LSN_GROUPS_PER_PAGE, major) + sum(
        slru_bytes(slots, 0, major) for slots in fixed
    )


def known_assigned_xids_bytes(major: int, settings: ShmemSettings) -> int:
    """The standby's transaction ids, 65 per process, 5 bytes each (``ProcArrayShmemSize``, procarray.c)."""
    if not settings.hot_standby:
        return 0
    return 65 * (max_backends(major, settings) + settings.max_prepared_transactions) * 5


def old_snapshot_bytes(major: int, settings: ShmemSettings) -> int:
    """The time map of old_snapshot_threshold, gone in 17 (``SnapMgrShmemSize``, snapmgr.c)."""
    if major >= 17 or settings.old_snapshot_threshold_minutes <= 0:
        return 0
    return (settings.old_snapshot_threshold_minutes + 10) * 4


def aio_bytes(major: int, settings: ShmemSettings) -> int:
    """Handles of asynchronous I/O since 18 (``AioShmemSize``, src/backend/storage/aio/aio_init.c).

    io_max_concurrency = -1 is 64 or shared_buffers divided by all processes, whichever is less, at least 1.
    A handle is 144 B and, for each block it may combine, 16 B of iovec and 8 B of data.
    """
    if major < 18:
        return 0
    processes = max_backends(major, settings) + LAYOUTS[major].status_slots
    return processes * io_concurrency(major, settings) * (144 + settings.io_max_combine_limit * 24)


def io_concurrency(major: int, settings: ShmemSettings) -> int:
    """I/O operations a process may have under way (``AioChooseMaxConcurrency``, aio_init.c)."""
    if settings.io_max_concurrency is not None:
        return settings.io_max_concurrency
    processes = max_backends(major, settings) + LAYOUTS[major].status_slots
    return max(1, min(settings.shared_buffers // processes, 64))


def io_uring_bytes(major: int, settings: ShmemSettings) -> int:
    """Rings of io_method = io_uring since 18, one for each process that is no I/O worker (method_io_uring.c).

    A ring has a power of two of entries: 64 B each for submissions, 36 B each and a header for the queues, both in
    whole pages. Kernels before 6.5 map them outside the segment. Checked with a server 18.6 built with liburing.
    """
    if major < 18 or not settings.io_uring:
        return 0
    processes = max_backends(major, settings) + LAYOUTS[major].status_slots - _IO_WORKERS_MAX
    entries = _next_power_of_two(io_concurrency(major, settings))
    submissions = ceil_to_multiple(entries * 64, _RING_PAGE_BYTES)
    queues = ceil_to_multiple(entries * 36 + 320, _RING_PAGE_BYTES)
    return processes * (256 + submissions + queues)


def fast_path_lock_bytes(major: int, settings: ShmemSettings) -> int:
    """Fast-path lock slots since 18, in groups of 16 per process (``FastPathLockShmemSize``, proc.c)."""
    if major < 18:
        return 0
    processes = max_backends(major, settings) + LAYOUTS[major].status_slots + settings.max_prepared_transactions
    groups = max(1, min(_next_power_of_two(settings.max_locks_per_transaction) // 16, 1024))
    return processes * groups * 72


def linear_counts(major: int, settings: ShmemSettings) -> tuple[int, ...]:
    """The counts that the fitted coefficients multiply, in the order of :class:`Layout`, constant first."""
    return (
        1,
        max_backends(major, settings),
        settings.max_prepared_transactions,
        settings.max_worker_processes,
        settings.max_wal_senders,
        settings.max_replication_slots,
        settings.max_logical_replication_workers,
        settings.autovacuum_worker_slots if major >= 18 else settings.autovacuum_max_workers,
        settings.max_active_replication_origins if major >= 18 else 0,
    )


def linear_bytes(major: int, settings: ShmemSettings) -> int:
    """Everything that grows in proportion to processes and slots: PGPROC, signals, status arrays and so on."""
    layout = LAYOUTS[major]
    coefficients = (
        layout.const,
        layout.per_backend,
        layout.per_prepared,
        layout.per_worker,
        layout.per_wal_sender,
        layout.per_slot,
        layout.per_logical_worker,
        layout.per_autovacuum,
        layout.per_origin,
    )
    counts = linear_counts(major, settings)
    return round(sum(c * n for c, n in zip(coefficients, counts, strict=True)))


def terms_of_buffers(major: int, settings: ShmemSettings, *, checkpoint_capped: bool = True) -> dict[str, int]:
    """The terms that follow shared_buffers, by name, if only through a default that is a share of it."""
    return {
        "shared_buffers": buffer_pool_bytes(settings),
        "buffer lookup table": buffer_lookup_bytes(settings),
        "checkpointer queue": checkpointer_queue_bytes(major, settings, capped=checkpoint_capped),
        "wal_buffers": wal_bytes(settings),
        "SLRU caches": slru_total_bytes(major, settings),
        "AIO handles": aio_bytes(major, settings),
        "io_uring rings": io_uring_bytes(major, settings),
    }


def terms_beside_buffers(major: int, settings: ShmemSettings) -> dict[str, int]:
    """The other terms with a rule of their own, by name: the same for every shared_buffers."""
    return {
        "lock tables": lock_table_bytes(major, settings),
        "predicate locks": predicate_lock_bytes(major, settings),
        "query texts": activity_bytes(major, settings),
        "standby transaction ids": known_assigned_xids_bytes(major, settings),
        "old snapshots": old_snapshot_bytes(major, settings),
        "fast-path locks": fast_path_lock_bytes(major, settings),
        "dynamic shared memory": settings.min_dynamic_shared_memory_bytes,
        "preloaded libraries": settings.addin_bytes,
    }


def structural_terms(major: int, settings: ShmemSettings, *, checkpoint_capped: bool = True) -> dict[str, int]:
    """The terms with a rule of their own, by name; the fitted linear term is not among them."""
    return {
        **terms_of_buffers(major, settings, checkpoint_capped=checkpoint_capped),
        **terms_beside_buffers(major, settings),
    }


def shared_memory_terms(major: int, settings: ShmemSettings, *, checkpoint_capped: bool = True) -> dict[str, int]:
    """All terms in bytes; their sum, rounded up to the next 8 kB, is what the server asks for."""
    terms = structural_terms(major, settings, checkpoint_capped=checkpoint_capped)
    terms["processes and slots"] = linear_bytes(major, settings)
    return terms


def rounded_segment_bytes(total_bytes: int) -> int:
    """The sum of all terms to the next 8 kB; the server adds a whole block when it is a multiple already."""
    return total_bytes + BLOCK_BYTES - total_bytes % BLOCK_BYTES


def shared_memory_bytes(major: int, settings: ShmemSettings, *, checkpoint_capped: bool = True) -> int:
    """Bytes of the main segment."""
    return rounded_segment_bytes(
        sum(shared_memory_terms(major, settings, checkpoint_capped=checkpoint_capped).values())
    )

"""MySQL and Percona Server: the InnoDB buffer pool, chunk by chunk, on the kernel's default huge page size.

InnoDB maps each chunk on its own, and each mapping holds the chunk, its block descriptors and a page of allocator
metadata. The mapping is asked for with plain MAP_HUGETLB, so only the *default* huge page size is ever used, and a
chunk that does not get its pages falls back to base pages alone, with a warning in the error log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from hugeplan.planner.demand import settings
from hugeplan.planner.demand.base import (
    DemandContext,
    DemandParts,
    Engine,
    OnShortage,
    PageChoice,
    PoolUse,
    Remarks,
    build_demand,
    computed,
    require_version,
    whole_mapping,
)
from hugeplan.planner.demand.engines.hashed_block_accesses import innodb_key_lookup
from hugeplan.planner.demand.settings import Dialect, SettingTable, Value, integer, option_names, underscored
from hugeplan.planner.errors import SettingValueError
from hugeplan.planner.model import GIB, KIB, MIB, DatabaseInstance, Demand, Explanation, FitSuggestion, SettingAdvice
from hugeplan.planner.pages import ceil_pages, ceil_to_multiple, page_label
from hugeplan.planner.units import format_bytes, format_mysql_bytes, parse_mysql_bytes

VERSIONS: Final = ("9.7", "9.6", "9.5", "9.4", "9.3", "9.2", "9.1", "9.0", "8.4", "8.3", "8.2", "8.1", "8.0", "5.7")
DEFAULT_VERSION: Final = "8.4"

_CHUNK_BYTES: Final = 128 * MIB
_POOL_BYTES: Final = 128 * MIB
_POOL_MIN_BYTES: Final = 5 * MIB
_METADATA_BYTES: Final = 4096
_SYSV_VERSIONS: Final = frozenset({"5.7"})  # shmget with SHM_HUGETLB, without the allocator's page of metadata
MMAP_SINCE: Final = (8, 0, 26)  # the pool by mmap with MAP_HUGETLB, which RLIMIT_MEMLOCK does not bound
_KEY_BUFFER_BYTES: Final = 8 * MIB
_INSTANCES_THRESHOLD_BYTES: Final = GIB
_CONNECTIONS: Final = 151
_CPUS: Final = 32
"""Assumed where they are not known."""
CPUS_UNKNOWN: Final = "processors are not known"
_MOST_INSTANCES: Final = 64
_SEES_ITS_CONTAINER_SINCE: Final = (9, 3)

#: sizeof(buf_block_t): 392 from the manual's SHOW ENGINE INNODB STATUS sample (131072 pages -> 2198863872 bytes) and
#: servers of 5.7; 384 in one of 8.0; 368 traced in 9.7.4. The manual's 66 pages for a 128 MiB chunk hold for all.
DESCRIPTOR_BYTES: Final = 392
_DESCRIPTOR_9_BYTES: Final = 368
_DESCRIPTOR_BYTES_LOW: Final = 360
_DESCRIPTOR_BYTES_HIGH: Final = 400

_LARGE_PAGES_ON: Final = SettingAdvice(
    name="large_pages", value="ON", reason="InnoDB asks for huge pages only with it."
)

# A connection's own buffers (sort, join, read) are allocated when needed; thread stack and net buffer always.
_THREAD_PRIVATE_BYTES: Final = MIB + 16 * KIB + 256 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class InnodbPool:
    """The buffer pool as InnoDB sets it up, in bytes and counts."""

    buffer_pool_bytes: int
    chunk_bytes: int
    instances: int
    page_size_bytes: int

    @property
    def chunks(self) -> int:
        """Chunks of all instances together."""
        return self.buffer_pool_bytes // self.chunk_bytes


def default_instances(version: str, buffer_pool_bytes: int, chunk_bytes: int, cpus: int | None) -> int:
    """innodb_buffer_pool_instances when it is not set.

    Up to 8.0: 8 from 1 GiB, else 1. Since 8.4: 1 up to 1 GiB, above it the smaller of half the chunks and a
    quarter of the processors, 1 to 64 (MySQL 8.4 manual, innodb_buffer_pool_instances).
    """
    if is_older_default(version):
        return 8 if buffer_pool_bytes >= _INSTANCES_THRESHOLD_BYTES else 1
    if buffer_pool_bytes <= _INSTANCES_THRESHOLD_BYTES:
        return 1
    by_chunks = buffer_pool_bytes // chunk_bytes // 2
    by_cpus = (_CPUS if cpus is None else cpus) // 4
    return max(1, min(by_chunks, by_cpus, _MOST_INSTANCES))


def is_older_default(version: str) -> bool:
    """Whether a version has the defaults of 8.0 and before (8.1 to 8.3 do)."""
    return _numbers(version) < (8, 4)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def maps_by_shmget(version: str) -> bool:
    """Whether a release maps the pool with shmget(SHM_HUGETLB): 8.0 without its patch counts as current.

    Then RLIMIT_MEMLOCK must cover it, or the server's group is vm.hugetlb_shm_group (mm/hugetlb.c hugetlb_file_setup).
    """
    numbers = tuple(int(number) for number in re.findall(r"[0-9]{1,9}", version)[:3])
    return len(numbers) > 1 and numbers != (8, 0) and numbers < MMAP_SINCE


def aligned_pool(
    buffer_pool_bytes: int, chunk_bytes: int, instances: int, page_size_bytes: int = 16 * KIB
) -> InnodbPool:
    """innodb_buffer_pool_size rounded up to whole chunks in every instance.

    A chunk larger than the pool's share of an instance is first cut to that share (MySQL manual, Configuring InnoDB
    Buffer Pool Size; srv0start.cc and buf0buf.h, buf_pool_size_align).
    """
    if chunk_bytes * instances > buffer_pool_bytes:
        chunk_bytes = -(-buffer_pool_bytes // instances)
    return InnodbPool(
        buffer_pool_bytes=ceil_to_multiple(buffer_pool_bytes, chunk_bytes * instances),
        chunk_bytes=chunk_bytes,
        instances=instances,
        page_size_bytes=page_size_bytes,
    )


def chunk_mapping_bytes(chunk_bytes: int, page_size_bytes: int, descriptor_bytes: int = DESCRIPTOR_BYTES) -> int:
    """One chunk with its block descriptors, both in whole InnoDB pages (buf_chunk_init, buf0buf.cc)."""
    whole = chunk_bytes // page_size_bytes * page_size_bytes
    blocks = whole // page_size_bytes
    return whole + ceil_to_multiple(blocks * descriptor_bytes, page_size_bytes)


def chunk_pages(
    chunk_bytes: int,
    page_size_bytes: int,
    page_bytes: int,
    descriptor_bytes: int = DESCRIPTOR_BYTES,
    metadata_bytes: int = _METADATA_BYTES,
) -> int:
    """Huge pages of one chunk: mapping plus one page of metadata, rounded up (large_page_alloc.h)."""
    return ceil_pages(chunk_mapping_bytes(chunk_bytes, page_size_bytes, descriptor_bytes) + metadata_bytes, page_bytes)


def descriptor_bytes_of(version: str) -> int:
    """sizeof(buf_block_t) of a release line."""
    return _DESCRIPTOR_9_BYTES if version.startswith("9.") else DESCRIPTOR_BYTES


def metadata_bytes_of(version: str, base_page_bytes: int) -> int:
    """What the allocator puts in front of a chunk: a page of the processor since 8.0, nothing in 5.7."""
    return 0 if version in _SYSV_VERSIONS else max(_METADATA_BYTES, base_page_bytes)


def _values(instance: DatabaseInstance, context: DemandContext) -> Mapping[str, Value]:
    """What is given; without a size a dedicated server's pool, too: 128 MiB below 1 GiB, half to 4 GiB, else 3/4.

    The share is of all memory, since 9.3 of the container's (MySQL manual, Enabling Automatic InnoDB Configuration for
    a Dedicated MySQL Server, and Container Detection and Configuration).
    """
    values = TABLE.read(instance.settings)
    if not shares_memory(instance):
        return values
    for name in ("server_memory", "container_aware"):
        if name in values:
            raise SettingValueError(f"settings.{name}", values[name], "innodb_buffer_pool_size beside it")
    version = require_version(instance.version, VERSIONS, DEFAULT_VERSION, "MySQL")
    sees_container = _numbers(version) >= _SEES_ITS_CONTAINER_SINCE
    memory = context.memory_of(instance) if sees_container else context.mem_total_bytes
    if memory is None:
        expected = "a size such as 8G, or the node's memory (innodb_dedicated_server takes a share of it)"
        raise SettingValueError("settings.innodb_buffer_pool_size", "not set", expected)
    if memory < GIB:
        return values
    return {**values, "innodb_buffer_pool_size": memory // 2 if memory <= 4 * GIB else memory * 3 // 4}


def shares_memory(instance: DatabaseInstance) -> bool:
    """Whether a share of the memory that the server sees is its buffer pool: a dedicated one without a size."""
    values = TABLE.read(instance.settings)
    if (instance.version or "").startswith("5."):  # 5.7 has no such variable
        return False
    return bool(values.get("innodb_dedicated_server")) and "innodb_buffer_pool_size" not in values


def pool_of(values: Mapping[str, Value], version: str, cpus: int | None) -> InnodbPool:
    """The buffer pool that the settings give."""
    buffer_pool_bytes = integer(values, "innodb_buffer_pool_size", _POOL_BYTES)
    chunk_bytes = integer(values, "innodb_buffer_pool_chunk_size", _CHUNK_BYTES)
    page_size_bytes = integer(values, "innodb_page_size", 16 * KIB)
    if page_size_bytes & (page_size_bytes - 1):
        raise SettingValueError("settings.innodb_page_size", page_size_bytes, "4K, 8K, 16K, 32K or 64K")
    instances = integer(values, "innodb_buffer_pool_instances", 0)
    if instances == 0:
        instances = default_instances(version, buffer_pool_bytes, chunk_bytes, cpus)
    elif buffer_pool_bytes < _INSTANCES_THRESHOLD_BYTES:
        instances = 1  # below 1 GiB the setting is ignored (manual, innodb_buffer_pool_instances)
    return aligned_pool(buffer_pool_bytes, chunk_bytes, instances, page_size_bytes)


def pool_step(instance: DatabaseInstance, _: int, context: DemandContext) -> int:
    """A chunk for every instance; a MiB where the pool is too small for that and its chunks are cut.

    And a MiB below 1 GiB where whole chunks end above it: such a pool has one instance, the rounded size has several.
    """
    version = require_version(instance.version, VERSIONS, DEFAULT_VERSION, "MySQL")
    values = _values(instance, context)
    pool = pool_of(values, version, context.cpus)
    whole = integer(values, "innodb_buffer_pool_chunk_size", _CHUNK_BYTES) * pool.instances
    asked = integer(values, "innodb_buffer_pool_size", _POOL_BYTES)
    return MIB if whole > asked or asked < _INSTANCES_THRESHOLD_BYTES < pool.buffer_pool_bytes else whole


def large_pages_off(values: Mapping[str, Value]) -> tuple[SettingAdvice, ...]:
    """Advice to a server on base pages: none where its settings do not ask for huge pages."""
    reason = "No huge pages are planned for this instance; with ON it takes those of others."
    return (SettingAdvice(name="large_pages", value="OFF", reason=reason),) if values.get("large_pages") else ()


def demand(instance: DatabaseInstance, page_bytes: int, context: DemandContext) -> Demand:
    """What a MySQL server needs when the default huge page size is ``page_bytes``.

    Errors: UnknownVersionError, UnknownSettingError, SettingValueError or UnitError, naming the setting.
    """
    version = require_version(instance.version, VERSIONS, DEFAULT_VERSION, "MySQL")
    values = _values(instance, context)
    pool = pool_of(values, version, context.cpus)
    most = _largest_pool(values, version, context.cpus)
    metadata = metadata_bytes_of(version, context.base_page_bytes)
    descriptor = descriptor_bytes_of(version)
    mapping_bytes = chunk_mapping_bytes(pool.chunk_bytes, pool.page_size_bytes, descriptor) + metadata
    segment = whole_mapping(
        "InnoDB buffer pool chunk",
        mapping_bytes,
        page_bytes,
        _explanation(pool, descriptor, mapping_bytes, page_bytes),
        pool.chunks,
    )
    huge = page_bytes > context.base_page_bytes

    def refit(chunk_bytes: int) -> InnodbPool:
        return pool_of({**values, "innodb_buffer_pool_chunk_size": chunk_bytes}, version, context.cpus)

    parts = DemandParts(
        segments=(segment,),
        default_version=DEFAULT_VERSION,
        buffer_pool_bytes=pool.buffer_pool_bytes,
        remarks=Remarks(
            error_pages=_error_pages(pool, most, page_bytes, version, values, metadata),
            settings=(_LARGE_PAGES_ON,),
            fits=fit_suggestions(pool, refit, page_bytes, (descriptor, metadata)),
            notes=(
                *_assumed(instance, pool, most),
                *_notes(pool, values, page_bytes, context, _two_ways(pool, refit, page_bytes, (descriptor, metadata))),
            ),
        )
        if huge
        else Remarks(settings=large_pages_off(values)),
        private_bytes_per_connection=_THREAD_PRIVATE_BYTES,
        connections=integer(values, "max_connections", _CONNECTIONS),
        page_cache_bytes=0,  # InnoDB keeps its own cache and does not count on the kernel's
    )
    return build_demand(instance, page_bytes, parts)


def _largest_pool(values: Mapping[str, Value], version: str, cpus: int | None) -> InnodbPool:
    """The pool of the processors that make it largest, where the node's are not known."""
    counts = (cpus,) if cpus is not None else range(4, 4 * _MOST_INSTANCES + 1, 4)
    return max((pool_of(values, version, each) for each in counts), key=lambda one: one.buffer_pool_bytes)


def _error_pages(  # noqa: PLR0917 - one for each thing that it is about
    pool: InnodbPool, most: InnodbPool, page_bytes: int, version: str, values: Mapping[str, Value], metadata_bytes: int
) -> int:
    """Pages by which the count changes over the descriptor sizes that releases have had, and up to ``most``.

    In 5.7 the MyISAM key cache asks for huge pages too; not traced, so it is included in the error bound.
    """
    sizes = (descriptor_bytes_of(version), _DESCRIPTOR_BYTES_LOW, _DESCRIPTOR_BYTES_HIGH)
    here, low, high = (
        one.chunks * chunk_pages(one.chunk_bytes, one.page_size_bytes, page_bytes, size, metadata_bytes)
        for one, size in zip((pool, pool, most), sizes, strict=True)
    )
    caches = integer(values, "key_buffer_size", _KEY_BUFFER_BYTES) if version in _SYSV_VERSIONS else 0
    return max(high - here, here - low) + ceil_pages(caches, page_bytes)


def fitting_chunk_bytes(
    chunk_bytes: int,
    page_size_bytes: int,
    page_bytes: int,
    descriptor_bytes: int = DESCRIPTOR_BYTES,
    metadata_bytes: int = _METADATA_BYTES,
) -> int | None:
    """The largest chunk, in whole MiB, that with descriptors and metadata fills the whole pages in ``chunk_bytes``.

    1 GiB on 1G pages: 999M needs one page where 1024M needs two. Counted with the largest descriptor that a release
    has had, so that an upgrade does not double the pages. None when no chunk fits.
    """
    descriptor_bytes = max(descriptor_bytes, _DESCRIPTOR_BYTES_HIGH)
    # Blocks and descriptors take whole InnoDB pages, and a MiB is whole InnoDB pages: no chunk is tried for it.
    room = (max(1, chunk_bytes // page_bytes) * page_bytes - metadata_bytes) // page_size_bytes * page_size_bytes
    megabytes = room // (MIB + MIB // page_size_bytes * descriptor_bytes)
    return megabytes * MIB if megabytes > 0 else None


def fit_suggestions(
    pool: InnodbPool, refit: Callable[[int], InnodbPool], page_bytes: int, header: tuple[int, int]
) -> tuple[FitSuggestion, ...]:
    """innodb_buffer_pool_chunk_size that fills whole pages, when it wastes less than today's.

    ``refit`` gives the pool that the same settings make with another chunk size: the server rounds the pool anew and
    may choose other instances. ``header``: bytes of a descriptor, bytes of metadata per chunk.
    """
    descriptor_bytes, metadata_bytes = header
    chunk = fitting_chunk_bytes(
        max(pool.chunk_bytes, page_bytes), pool.page_size_bytes, page_bytes, descriptor_bytes, metadata_bytes
    )
    if chunk is None or chunk == pool.chunk_bytes:
        return ()
    fitted = refit(chunk)
    before, after = (_waste_bytes(p, page_bytes, descriptor_bytes, metadata_bytes) for p in (pool, fitted))
    if fitted.chunk_bytes != chunk or before - after < max(page_bytes, pool.buffer_pool_bytes // 100):
        return ()
    return (
        FitSuggestion(
            setting="innodb_buffer_pool_chunk_size",
            value=format_mysql_bytes(chunk),
            direction="shrink" if chunk < pool.chunk_bytes else "grow",
            waste_before_bytes=before,
            waste_after_bytes=after,
            reason=(
                f"A chunk with its descriptors then fills whole pages of {page_label(page_bytes)}; "
                f"the pool becomes {format_bytes(fitted.buffer_pool_bytes)}."
            ),
        ),
    )


def _waste_bytes(pool: InnodbPool, page_bytes: int, descriptor_bytes: int, metadata_bytes: int) -> int:
    mapping = chunk_mapping_bytes(pool.chunk_bytes, pool.page_size_bytes, descriptor_bytes) + metadata_bytes
    return pool.chunks * (ceil_pages(mapping, page_bytes) * page_bytes - mapping)


def _explanation(pool: InnodbPool, descriptor_bytes: int, mapping_bytes: int, page_bytes: int) -> Explanation:
    return Explanation(
        formula="pages = chunks x ceil((chunk + ceil(blocks x descriptor, InnoDB page) + metadata) / page)",
        inputs=(
            computed("buffer pool, whole chunks", pool.buffer_pool_bytes),
            computed("chunk", pool.chunk_bytes),
            computed("instances", pool.instances, is_bytes=False),
            computed("descriptor", descriptor_bytes, "sizeof(buf_block_t)"),
            computed("one mapping", mapping_bytes),
            computed("page", page_bytes),
        ),
        reference="MySQL storage/innobase/buf/buf0buf.cc buf_chunk_init; include/detail/ut/large_page_alloc.h",
    )


def _two_ways(pool: InnodbPool, refit: Callable[[int], InnodbPool], page_bytes: int, header: tuple[int, int]) -> str:
    """How to stop small chunks from taking a large page each: larger chunks, or a smaller default page size.

    A chunk that the server would cut again, because the pool is too small for it, is not advised.
    """
    fitting = fitting_chunk_bytes(page_bytes, pool.page_size_bytes, page_bytes, *header)
    if fitting is None or refit(fitting).chunk_bytes != fitting:
        return "Boot with default_hugepagesz=2M."
    larger = format_mysql_bytes(fitting)
    return f"Set innodb_buffer_pool_chunk_size = {larger}, or boot with default_hugepagesz=2M."


def _assumed(instance: DatabaseInstance, pool: InnodbPool, most: InnodbPool) -> tuple[str, ...]:
    """What the pool's size rests on that is no setting."""
    notes = []
    if shares_memory(instance):
        size = format_bytes(pool.buffer_pool_bytes)
        notes.append(f"innodb_dedicated_server = ON: the pool is a share of the memory that the server sees, {size}.")
    if most.buffer_pool_bytes > pool.buffer_pool_bytes:
        size = format_bytes(most.buffer_pool_bytes)
        notes.append(
            f"The {CPUS_UNKNOWN}: {_CPUS} are assumed, so {pool.instances} instances. With others the pool is"
            f" up to {size}; give the node's cpus."
        )
    return tuple(notes)


def _notes(
    pool: InnodbPool,
    values: Mapping[str, Value],
    page_bytes: int,
    context: DemandContext,
    larger_chunks: str,
) -> tuple[str, ...]:
    """What to know beside the count; ``larger_chunks`` says how to fill large pages."""
    notes = []
    if not values.get("large_pages", False):
        notes.append("large_pages is OFF by default; without it no huge page is used.")
    if page_bytes != context.default_huge_page_bytes:
        notes.append(
            f"MySQL only uses the kernel's default huge page size, here {page_label(context.default_huge_page_bytes)}; "
            f"{page_label(page_bytes)} pages need default_hugepagesz={page_label(page_bytes)}."
        )
    if pool.chunk_bytes < page_bytes:
        times = pool.chunks * ceil_pages(pool.chunk_bytes, page_bytes) * page_bytes / pool.buffer_pool_bytes
        notes.append(
            f"Each {format_bytes(pool.chunk_bytes)} chunk takes a whole {page_label(page_bytes)} page: "
            f"{times:.3g} times the pool. {larger_chunks}"
        )
    if pool.chunks > 1000:
        notes.append(f"{pool.chunks} chunks; the manual advises at most 1000.")
    notes.append(
        "A chunk that gets no huge pages falls back to base pages alone, with only a warning in the error log."
    )
    return tuple(notes)


def ruled_out(instance: DatabaseInstance) -> str | None:
    """Why the settings exclude huge pages; None when they do not. Not set is not off: the plan advises to set it."""
    off = TABLE.read(instance.settings).get("large_pages") is False
    return "large_pages = OFF: InnoDB asks for no huge page until it is ON" if off else None


def pool_use(instance: DatabaseInstance, context: DemandContext) -> PoolUse:
    """Only the default size, each chunk on its own."""
    values = TABLE.read(instance.settings)
    off = instance.page_bytes == 0 or values.get("large_pages") is False
    return PoolUse(
        page_sizes_bytes=() if off else (context.default_huge_page_bytes,), on_shortage=OnShortage.BASE_PAGES
    )


SETTINGS: Final = (
    settings.size("innodb_buffer_pool_size", "The buffer pool.", "128M", minimum=_POOL_MIN_BYTES, maximum=2**63 - 1),
    settings.size(
        "innodb_buffer_pool_chunk_size",
        "Unit in which the pool is mapped and resized.",
        "128M",
        minimum=MIB,
        maximum=2**63 - 1,
    ),
    settings.count("innodb_buffer_pool_instances", "Parts of the pool; each has whole chunks.", minimum=1, maximum=64),
    settings.size(
        "innodb_page_size", "InnoDB's block size; not an OS page size.", "16K", minimum=4 * KIB, maximum=64 * KIB
    ),
    settings.switch("innodb_dedicated_server", "Without a size the pool is a share of all memory.", "OFF"),
    settings.text("server_memory", "Not counted: give innodb_buffer_pool_size beside it.", matters=False),
    settings.text("container_aware", "Not counted: give innodb_buffer_pool_size beside it.", matters=False),
    settings.switch("large_pages", "Whether huge pages are asked for.", "OFF"),
    settings.count("max_connections", "Client connections.", "151", minimum=1, maximum=100_000),
    settings.size("key_buffer_size", "MyISAM key cache; on base pages since 8.0.", "8M", matters=False),
    settings.switch("innodb_numa_interleave", "Spread the pool over NUMA nodes.", "OFF", matters=False),
    settings.size(
        "innodb_log_buffer_size",
        "Log buffer, on base pages.",
        "64M",
        minimum=256 * KIB,
        maximum=4 * GIB - 1,
        matters=False,
    ),
)
TABLE: Final = SettingTable(
    SETTINGS,
    Dialect(
        "MySQL",
        parse_mysql_bytes,
        format_mysql_bytes,
        underscored,
        without_a_rule=lambda: option_names("mysql_options.txt"),
    ),
)

ENGINE: Final = Engine(
    name="mysql",
    title="MySQL and Percona Server",
    versions=VERSIONS,
    settings=SETTINGS,
    page_choice=PageChoice.DEFAULT,
    demand=demand,
    pool_use=pool_use,
    pool_setting="innodb_buffer_pool_size",
    sized_by=("innodb_buffer_pool_size",),
    shares_memory=shares_memory,
    pool_step=pool_step,
    accesses=innodb_key_lookup,
    ruled_out=ruled_out,
    locks_segment=maps_by_shmget,
    aliases=("percona", "percona server"),
    summary="The InnoDB buffer pool, one mapping per chunk, on the default huge page size only.",
)

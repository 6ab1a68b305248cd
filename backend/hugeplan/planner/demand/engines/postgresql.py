"""PostgreSQL: one shared memory segment, mapped with huge pages of one size.

The number of pages is ``floor(segment / page) + 1`` as the server prints it (``shared_memory_size_in_huge_pages``,
``InitializeShmemGUCs`` in src/backend/storage/ipc/ipci.c); the segment's own arithmetic is in
:mod:`hugeplan.planner.demand.engines.postgresql_shmem`. Only this segment uses huge pages: the memory of sorts and
hashes, of each process and of parallel queries' dynamic segments stays on base pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

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
)
from hugeplan.planner.demand.engines import postgresql_shmem as shmem
from hugeplan.planner.demand.engines.postgresql_accesses import postgresql_key_lookup
from hugeplan.planner.demand.engines.postgresql_fit import fit_suggestions
from hugeplan.planner.demand.engines.postgresql_guc import setting_specs
from hugeplan.planner.demand.engines.postgresql_inputs import (
    DEFAULT_VERSION,
    EXACT_SINCE,
    VERSIONS,
    Values,
    checkpoint_queue_is_capped,
    layout_of,
    library_bytes,
    parse_version,
    read_settings,
    require_possible_processes,
)
from hugeplan.planner.model import (
    MIB,
    DatabaseInstance,
    Demand,
    Explanation,
    PublishedGain,
    Range,
    Segment,
    SettingAdvice,
    Term,
    named,
)
from hugeplan.planner.pages import ceil_pages, page_label
from hugeplan.planner.remembered import remembered
from hugeplan.planner.units import format_bytes, format_postgresql_bytes

PGBENCH: Final = PublishedGain(
    Range(0.0, 7.5, 12.1), "pgbench -S, PostgreSQL: +5, +7.5, +8.4 and +12.1 % (n0derunner, FreeBSD D25237)"
)
HAMMERDB: Final = PublishedGain(
    Range(0.0, 5.0, 6.8), "HammerDB TPROC-C, PostgreSQL: +3.8 % local, +6.8 % remote memory (n0derunner)"
)
_GSS_STATUS_BYTES: Final = 72  # PgBackendGSSStatus: only in builds with Kerberos, one for each backend status slot
_SSL_STATUS_BYTES: Final = 328  # PgBackendSSLStatus: absent from builds without TLS
_SLOT_SYNC_MINOR: Final = 5  # from here at the latest 17 counts the slot synchronisation worker
_OLDER_FRACTION: Final = 0.02
_OLDER_BYTES: Final = 16 * MIB

# A fresh backend's private memory with huge pages on (A. Freund, Measuring the memory overhead of a Postgres
# connection, 2020: 1.3 MiB), before its caches grow.
_BACKEND_PRIVATE_BYTES: Final = 1_363_149
_WORK_MEM_BYTES: Final = 4 * MIB


def demand(instance: DatabaseInstance, page_bytes: int, context: DemandContext) -> Demand:
    """What a PostgreSQL cluster needs at one page size.

    Errors: UnknownVersionError, UnknownSettingError, SettingValueError or UnitError, naming the setting.
    """
    major, minor = parse_version(instance.version)
    values, libraries, settings = read_settings(major, tuple(sorted(instance.settings.items())))
    capped = checkpoint_queue_is_capped(major, minor)
    layout_major = layout_of(major)
    require_possible_processes(shmem.max_backends(layout_major, settings), settings)
    unknown = tuple(name for name in libraries if library_bytes(name, major, values) is None)
    if unknown and instance.extension_bytes is not None:  # measured on the running server, so no longer unknown
        settings = replace(settings, addin_bytes=settings.addin_bytes + instance.extension_bytes)
        unknown = ()
    size_bytes, terms = _segment_terms(layout_major, settings, capped=capped)
    pages = huge_pages_needed(size_bytes, page_bytes, context.base_page_bytes)
    uncertainty = uncertainty_bytes((major, minor), settings, size_bytes, unknown)
    segment = Segment(
        name="main shared memory segment",
        segment_bytes=size_bytes,
        count=1,
        pages=pages,
        explanation=_explanation(terms, size_bytes, page_bytes),
    )
    buffers_bytes = settings.shared_buffers * shmem.BLOCK_BYTES
    parts = DemandParts(
        segments=(segment,),
        default_version=DEFAULT_VERSION,
        buffer_pool_bytes=buffers_bytes,
        remarks=Remarks(
            error_pages=error_pages(size_bytes, uncertainty, page_bytes, context.base_page_bytes),
            settings=advice(values, page_bytes, context, unknown),
            fits=(
                fit_suggestions(layout_major, settings, page_bytes, capped=capped)
                if page_bytes > context.base_page_bytes
                else ()
            ),
            notes=_notes((major, minor), settings, values, page_bytes, unknown),
        ),
        private_bytes_per_connection=private_bytes_per_connection(values),
        connections=settings.max_connections,
        process_per_connection=True,
        page_cache_bytes=page_cache_bytes(values, buffers_bytes),
    )
    return build_demand(instance, page_bytes, parts)


def huge_pages_needed(size_bytes: int, page_bytes: int, base_page_bytes: int) -> int:
    """Pages as the server counts them: ``floor(size / page) + 1``; base pages are simply rounded up."""
    if page_bytes <= base_page_bytes:
        return ceil_pages(size_bytes, page_bytes)
    return size_bytes // page_bytes + 1


def uncertainty_bytes(
    version: tuple[int, int | None],
    settings: shmem.ShmemSettings,
    size_bytes: int,
    unknown_libraries: tuple[str, ...],
) -> tuple[int, int]:
    """How far below and above ours the real segment may be, in bytes, as far as it is known.

    Builds differ: one without TLS has no status buffer for it (smaller), one with Kerberos has one more (larger).
    Early minors of 17 count one backend less.
    """
    major, minor = version
    layout = layout_of(major)
    slots = shmem.max_backends(layout, settings) + shmem.LAYOUTS[layout].status_slots
    below = shmem.MODEL_ERROR_BYTES + slots * _SSL_STATUS_BYTES
    above = shmem.MODEL_ERROR_BYTES + slots * _GSS_STATUS_BYTES
    if major < EXACT_SINCE:
        older = _OLDER_BYTES + round(size_bytes * _OLDER_FRACTION)
        below, above = below + older, above + older
    if major == 17 and minor is not None and minor < _SLOT_SYNC_MINOR:
        fewer = replace(settings, max_connections=max(settings.max_connections - 1, 1))
        capped = checkpoint_queue_is_capped(major, minor)
        below += max(size_bytes - shmem.shared_memory_bytes(layout, fewer, checkpoint_capped=capped), 0)
    below += shmem.io_uring_bytes(layout, settings)  # a kernel before 6.5 maps the rings elsewhere
    return below, above + len(unknown_libraries) * 8 * MIB


def error_pages(size_bytes: int, uncertainty: tuple[int, int], page_bytes: int, base_page_bytes: int) -> int:
    """Pages by which the count changes when the segment is off by its uncertainty, the larger of both directions."""
    below_bytes, above_bytes = uncertainty
    here = huge_pages_needed(size_bytes, page_bytes, base_page_bytes)
    above = huge_pages_needed(size_bytes + above_bytes, page_bytes, base_page_bytes)
    below = huge_pages_needed(max(size_bytes - below_bytes, 0), page_bytes, base_page_bytes)
    return max(above - here, here - below)


def private_bytes_per_connection(values: Values) -> int:
    """Base-page memory of one busy connection: a fresh backend and one work_mem."""
    work_mem = values.get("work_mem", _WORK_MEM_BYTES)
    return _BACKEND_PRIVATE_BYTES + int(work_mem)


def page_cache_bytes(values: Values, buffers_bytes: int) -> int | None:
    """Page cache the planner of queries counts on: effective_cache_size above shared_buffers; None if it is not set."""
    effective = values.get("effective_cache_size")
    return None if effective is None else max(int(effective) - buffers_bytes, 0)


def advice(
    values: Values, page_bytes: int, context: DemandContext, unknown_libraries: Sequence[str]
) -> tuple[SettingAdvice, ...]:
    """Settings that put the segment on huge pages, and that make a failure loud where the count has a bound."""
    if page_bytes <= context.base_page_bytes:
        return (SettingAdvice(name="huge_pages", value="off", reason="No huge pages are planned for this instance."),)
    mode, why = "on", "With try the server falls back to base pages without a message; with on it refuses to start."
    if unknown_libraries:
        mode = "try"
        why = f"What {named(unknown_libraries)} takes is not known: with on and too few pages it would not start."
    result = [SettingAdvice(name="huge_pages", value=mode, reason=why)]
    if page_bytes != context.default_huge_page_bytes or "huge_page_size" in values:
        result.append(
            SettingAdvice(
                name="huge_page_size",
                value=format_postgresql_bytes(page_bytes),
                reason=f"The kernel's default huge page size is {page_label(context.default_huge_page_bytes)}.",
            )
        )
    if str(values.get("shared_memory_type", "mmap")) != "mmap":
        result.append(
            SettingAdvice(name="shared_memory_type", value="mmap", reason="On Linux huge pages need an mmap segment.")
        )
    return tuple(result)


@remembered(1024)  # asked for at every page size
def _segment_terms(major: int, settings: shmem.ShmemSettings, *, capped: bool) -> tuple[int, tuple[Term, ...]]:
    """Bytes of the segment, and what they are made of."""
    terms = shmem.shared_memory_terms(major, settings, checkpoint_capped=capped)
    inputs = tuple(computed(name, size) for name, size in terms.items() if size)
    return shmem.rounded_segment_bytes(sum(terms.values())), inputs


def _explanation(terms: tuple[Term, ...], size_bytes: int, page_bytes: int) -> Explanation:
    return Explanation(
        formula="pages = floor(segment / page) + 1; segment = sum of the terms, to the next 8 kB",
        inputs=(*terms, computed("segment", size_bytes), computed("page", page_bytes)),
        reference="PostgreSQL src/backend/storage/ipc/ipci.c, CalculateShmemSize and InitializeShmemGUCs",
    )


def _notes(
    version: tuple[int, int | None],
    settings: shmem.ShmemSettings,
    values: Values,
    page_bytes: int,
    unknown_libraries: tuple[str, ...],
) -> tuple[str, ...]:
    major, minor = version
    notes = []
    if str(values.get("huge_pages", "try")) == "try":
        notes.append("huge_pages = try falls back to base pages without a message; set it to on.")
    if str(values.get("huge_pages", "try")) == "off":
        notes.append("huge_pages = off: this instance uses no huge page until it is set to on.")
    if str(values.get("shared_memory_type", "mmap")) != "mmap":
        notes.append("shared_memory_type is not mmap: on Linux this instance uses no huge page until it is.")
    given_size = values.get("huge_page_size")
    if given_size not in {None, 0} and int(given_size or 0) != page_bytes:
        notes.append(
            f"huge_page_size is {format_bytes(int(given_size or 0))}, "
            f"but the count is for {page_label(page_bytes)} pages."
        )
    if major < EXACT_SINCE:
        notes.append(
            f"PostgreSQL {major} cannot print its page count; the count is the layout of 15 with a larger error."
        )
    if unknown_libraries:
        notes.append(
            f"No rule for the shared memory of {', '.join(unknown_libraries)}: "
            "8 MiB each is in the error, not in the count."
        )
    if settings.io_uring:
        notes.append("io_method = io_uring: the rings are counted; kernels before 6.5 map them outside the segment.")
    beyond = settings.shared_buffers - shmem.CHECKPOINT_REQUESTS_MAX
    if minor is None and beyond > 0 and shmem.CHECKPOINT_CAP_SINCE_MINOR.get(major, 0) > 0:
        extra = beyond * shmem.LAYOUTS[layout_of(major)].checkpoint_request_bytes
        since = shmem.CHECKPOINT_CAP_SINCE_MINOR[major]
        notes.append(
            f"Before {major}.{since} the segment is {format_bytes(extra)} larger at this shared_buffers; "
            "give the minor version."
        )
    if major >= 15:
        notes.append(
            "Check with the server stopped: postgres -D $PGDATA -C shared_memory_size_in_huge_pages; while it runs:"
            " SHOW shared_memory_size_in_huge_pages."
        )
    return tuple(notes)


def ruled_out(instance: DatabaseInstance) -> str | None:
    """Why the settings exclude huge pages; None when they do not."""
    major, _ = parse_version(instance.version)
    values, _, _ = read_settings(major, tuple(sorted(instance.settings.items())))
    if str(values.get("huge_pages", "try")) == "off":
        return "huge_pages = off: the server asks for no huge page"
    kind = str(values.get("shared_memory_type", "mmap"))
    return None if kind == "mmap" else f"shared_memory_type = {kind}: only mmap can use huge pages on Linux"


def named_size(instance: DatabaseInstance) -> int | None:
    """huge_page_size where it is set; 0 is the kernel's default size and leaves the choice open."""
    major, _ = parse_version(instance.version)
    values, _, _ = read_settings(major, tuple(sorted(instance.settings.items())))
    return int(values.get("huge_page_size", 0)) or None


def pool_use(instance: DatabaseInstance, context: DemandContext) -> PoolUse:
    """One size: huge_page_size, else the planned one, else the default. ``on`` refuses to start, ``try`` falls back."""
    major, _ = parse_version(instance.version)
    values, _, _ = read_settings(major, tuple(sorted(instance.settings.items())))
    mode = str(values.get("huge_pages", "try"))
    named = int(values.get("huge_page_size", 0)) or instance.page_bytes or context.default_huge_page_bytes
    anonymous = str(values.get("shared_memory_type", "mmap")) == "mmap"  # no other type maps huge pages on Linux
    sizes = () if mode == "off" or instance.page_bytes == 0 or not anonymous else (named,)
    shortage = OnShortage.REFUSE if mode == "on" else OnShortage.BASE_PAGES
    return PoolUse(page_sizes_bytes=sizes, on_shortage=shortage)


ENGINE: Final = Engine(
    name="postgresql",
    title="PostgreSQL",
    versions=VERSIONS,
    settings=setting_specs(),
    page_choice=PageChoice.NAMED,
    named_size=named_size,
    size_setting="huge_page_size",
    demand=demand,
    pool_use=pool_use,
    pool_setting="shared_buffers",
    also_read=frozenset({"pg_stat_statements.max", "reserved_connections", "superuser_reserved_connections"}),
    sized_by=("shared_buffers",),
    process_per_connection=True,
    accesses=postgresql_key_lookup,
    ruled_out=ruled_out,
    published={"key_lookup": PGBENCH, "oltp": HAMMERDB},
    refusal=("huge_pages", "on"),
    format_size=format_postgresql_bytes,
    aliases=("postgres", "pg", "pgsql"),
    summary="One shared memory segment of shared_buffers and 2 to 12 % more.",
)

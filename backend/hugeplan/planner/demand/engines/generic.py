"""Any program that maps memory with huge pages: so many mappings of so many bytes each."""

from __future__ import annotations

from dataclasses import replace
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
    given,
    whole_mapping,
)
from hugeplan.planner.demand.settings import Dialect, SettingTable, integer, optional
from hugeplan.planner.errors import SettingValueError
from hugeplan.planner.model import KIB, DatabaseInstance, Demand, Explanation
from hugeplan.planner.units import format_iec_bytes

VERSIONS: Final = ("any",)


def demand(instance: DatabaseInstance, page_bytes: int, context: DemandContext) -> Demand:  # noqa: ARG001 - one shape for all
    """Each mapping rounded up on its own. Errors: UnknownSettingError, SettingValueError or UnitError."""
    values = _TABLE.read(instance.settings)
    size_bytes = integer(values, "segment_size", 0)
    if size_bytes == 0:
        raise SettingValueError("settings.segment_size", "not set", "a size such as 8GiB")
    count = integer(values, "segments", 1)
    segment = whole_mapping(
        "segment",
        size_bytes,
        page_bytes,
        Explanation(
            formula="pages = segments x ceil(segment / page)",
            inputs=(given("segment", size_bytes), given("segments", count, is_bytes=False), given("page", page_bytes)),
            reference="Linux Documentation/admin-guide/mm/hugetlbpage.rst",
        ),
        count,
    )
    parts = DemandParts(
        segments=(segment,),
        default_version=None,
        buffer_pool_bytes=size_bytes * count,
        remarks=Remarks(),
        private_bytes_per_connection=optional(values, "private_per_connection"),
        process_per_connection=bool(values.get("process_per_connection", False)),
    )
    found = build_demand(instance, page_bytes, parts)
    return replace(found, is_limit=bool(values.get("is_limit", False)))


def pool_use(instance: DatabaseInstance, context: DemandContext) -> PoolUse:
    """The planned size, else the default; the program is taken to refuse to start on a shortage."""
    size = instance.page_bytes if instance.page_bytes is not None else context.default_huge_page_bytes
    return PoolUse(page_sizes_bytes=(size,) if size else (), on_shortage=OnShortage.REFUSE)


SETTINGS: Final = (
    settings.size("segment_size", "Size of one mapping.", minimum=4 * KIB),
    settings.count("segments", "How many mappings.", "1", minimum=1, maximum=1_000_000),
    settings.switch("is_limit", "Whether nobody maps more, as with a pod's limit: it gets no slack.", "off"),
    settings.size("private_per_connection", "Base-page memory of one connection."),
    settings.switch("process_per_connection", "Whether each connection is a process that maps the segments.", "off"),
)
_TABLE: Final = SettingTable(SETTINGS, Dialect("a generic segment"))

ENGINE: Final = Engine(
    name="generic",
    title="Generic segment",
    versions=VERSIONS,
    settings=SETTINGS,
    page_choice=PageChoice.NAMED,
    demand=demand,
    pool_use=pool_use,
    pool_setting="segment_size",
    sized_by=("segment_size",),
    format_size=format_iec_bytes,
    summary="So many mappings of so many bytes each.",
)

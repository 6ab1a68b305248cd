"""What each database engine needs: one file per engine in ``engines``, the table of them in ``registry``."""

from hugeplan.planner.demand.base import (
    DemandContext,
    Engine,
    OnShortage,
    PageChoice,
    PoolUse,
    PossibleMemory,
    SettingKind,
    SettingSpec,
)
from hugeplan.planner.demand.registry import (
    ENGINES,
    access_profile,
    as_found,
    context_with_page_size,
    counted_settings,
    demand_of,
    differs,
    engine_named,
    is_sized,
    lacks_size,
    require_named_size,
)

__all__ = [
    "ENGINES",
    "DemandContext",
    "Engine",
    "OnShortage",
    "PageChoice",
    "PoolUse",
    "PossibleMemory",
    "SettingKind",
    "SettingSpec",
    "access_profile",
    "as_found",
    "context_with_page_size",
    "counted_settings",
    "demand_of",
    "differs",
    "engine_named",
    "is_sized",
    "lacks_size",
    "require_named_size",
]

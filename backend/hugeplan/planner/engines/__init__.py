"""What each database engine needs: one file an engine, one table of them."""

from hugeplan.planner.engines.base import (
    DemandContext,
    Engine,
    OnShortage,
    PageChoice,
    PoolUse,
    SettingKind,
    SettingSpec,
)
from hugeplan.planner.engines.registry import ENGINES, context_with_page_size, demand_of, engine_named

__all__ = [
    "ENGINES",
    "DemandContext",
    "Engine",
    "OnShortage",
    "PageChoice",
    "PoolUse",
    "SettingKind",
    "SettingSpec",
    "context_with_page_size",
    "demand_of",
    "engine_named",
]

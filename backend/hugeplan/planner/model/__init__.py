"""The planner's words as frozen dataclasses: what goes in, what comes out.

Everything here is plain data. Bytes and pages are integers; times are floats in the unit of their name.
``None`` always means *unknown*: it widens a range or becomes a finding, and is never read as zero.
A tuple is used wherever order matters or hashing is wanted; an empty tuple means *known to be none*
unless a field says otherwise.
"""

from __future__ import annotations

from hugeplan.planner.model.demand import (
    Demand,
    FitSuggestion,
    Segment,
    SettingAdvice,
)
from hugeplan.planner.model.hardware import (
    CurvePoint,
    EffectiveGranule,
    HardwareFacts,
    LatencyCurve,
    PressurePoint,
    TlbLevel,
)
from hugeplan.planner.model.ledger import (
    Ledger,
    LedgerKind,
    LedgerPart,
    PoolPlan,
)
from hugeplan.planner.model.node import (
    NodeFacts,
    NumaNode,
    Pool,
)
from hugeplan.planner.model.observed import (
    GlobalPool,
    NodeSample,
    NumaMemory,
    ProcessMemory,
)
from hugeplan.planner.model.request import (
    BenefitPoint,
    DatabaseInstance,
    MemoryHistory,
    PlanRequest,
    Policy,
    Reservations,
    Tenant,
    Workload,
)
from hugeplan.planner.model.result import (
    Choice,
    Finding,
    Forecast,
    Gain,
    InstancePlan,
    KubernetesView,
    NetMemory,
    NumaRisk,
    Plan,
    PoolBenefit,
    PublishedGain,
    Risk,
)
from hugeplan.planner.model.words import (
    GIB,
    KIB,
    MIB,
    Confidence,
    Explanation,
    Range,
    Source,
    State,
    Term,
)

__all__ = [
    "GIB",
    "KIB",
    "MIB",
    "BenefitPoint",
    "Choice",
    "Confidence",
    "CurvePoint",
    "DatabaseInstance",
    "Demand",
    "EffectiveGranule",
    "Explanation",
    "Finding",
    "FitSuggestion",
    "Forecast",
    "Gain",
    "GlobalPool",
    "HardwareFacts",
    "InstancePlan",
    "KubernetesView",
    "LatencyCurve",
    "Ledger",
    "LedgerKind",
    "LedgerPart",
    "MemoryHistory",
    "NetMemory",
    "NodeFacts",
    "NodeSample",
    "NumaMemory",
    "NumaNode",
    "NumaRisk",
    "Plan",
    "PlanRequest",
    "Policy",
    "Pool",
    "PoolBenefit",
    "PoolPlan",
    "PressurePoint",
    "ProcessMemory",
    "PublishedGain",
    "Range",
    "Reservations",
    "Risk",
    "Segment",
    "SettingAdvice",
    "Source",
    "State",
    "Tenant",
    "Term",
    "TlbLevel",
    "Workload",
]

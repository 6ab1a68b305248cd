"""The tlbbench document of a synthetic machine type: latency from TLB reach, labelled by its profile."""

from __future__ import annotations

from typing import Any, Final

from hugeplan.hardware import catalogue
from hugeplan.planner.model import GIB, MIB
from tools.seed.fleet import Machine

PROFILE: Final = "synthetic"
_SIZES: Final = (("4K", "base", 4096), ("2M", "hugetlb", 2 * MIB), ("1G", "hugetlb", GIB))
_FOOTPRINTS: Final = tuple(MIB * 4**k for k in range(7))
_MEMORY_NS, _CACHE_NS, _CACHE_BYTES = 95.0, 12.0, 32 * MIB
_WALK_NS: Final = {4096: 28.0, 2 * MIB: 14.0, GIB: 6.0}


def synthetic_run(machine: Machine, started_at: str, *, fractured: bool) -> dict[str, Any]:
    """A run of this machine type. Latency is the memory's, plus a page walk for the share that the TLB does not reach;
    the figures are of the right size and measured nowhere.
    """
    entry = catalogue.by_cpuid(machine.vendor, machine.family, machine.model, machine.stepping)
    entries = max((level.entries or 0 for level in entry.levels if level.level == 2), default=1024) if entry else 1024
    granule = 4096 if fractured else 2 * MIB
    head = {"status": "ok", "reason": None}
    return {
        "schema_version": 1,
        "tool": {"name": "tlbbench", "version": "0.1.0"},
        "command": "run",
        "profile": PROFILE,
        "seed": 1,
        "started_at": started_at,
        "duration_seconds": 1.0,
        "exit_status": 0,
        "sections": [{"name": name, **head} for name in ("geometry", "latency")],
        "environment": {
            "processor": {
                "architecture": "x86_64",
                "vendor": machine.vendor,
                "family": machine.family,
                "model": machine.model,
                "stepping": machine.stepping,
                "brand": machine.brand,
            },
            "hypervisor": {"present": machine.hypervisor is not None, "name": machine.hypervisor},
        },
        "geometry": head
        | {
            "levels": [],
            "effective_granule": [
                {
                    "backing": "2M",
                    "backing_kind": "hugetlb",
                    "page_bytes": 2 * MIB,
                    "granule_bytes": granule,
                    "status": "fractured" if fractured else "ok",
                }
            ],
            "penalty": [{"level": "l2_hit", "page_bytes": 4096, "ns": 2.4}],
            "clock": {"core_hz": 3.0e9, "l1_hit_ns": 1.6, "l1_hit_cycles": 5.0},
        },
        "latency": head | {"curves": [_curve(*size, entries, fractured) for size in _SIZES]},
    }


def _curve(backing: str, kind: str, page_bytes: int, entries: int, fractured: bool) -> dict[str, Any]:
    reach = entries * (4096 if fractured and page_bytes > 4096 else page_bytes)
    points = []
    for footprint in _FOOTPRINTS:
        cached = min(1.0, _CACHE_BYTES / footprint)
        missed = max(0.0, 1.0 - reach / footprint)
        ns = cached * _CACHE_NS + (1 - cached) * _MEMORY_NS + missed * _WALK_NS[page_bytes]
        points.append({"x": footprint, "ns_min": ns * 0.98, "ns_p10": ns * 0.99, "ns_p50": ns, "ns_p90": ns * 1.01})
    return {
        "name": f"latency random_64b {backing}",
        "x_name": "footprint_bytes",
        "backing": backing,
        "backing_kind": kind,
        "page_bytes": page_bytes,
        "layout": "random_64b",
        "granted_fraction": 1.0,
        "status": "ok",
        "points": points,
    }

"""Reports and runs as an agent sends them, with any part replaced."""

from __future__ import annotations

import copy
import uuid
from datetime import UTC, datetime
from typing import Any

MIB = 1024**2
GIB = 1024**3
MACHINE_ID = "0123456789abcdef0123456789abcdef"


def curve(backing: str = "2M", page_bytes: int = 2 * MIB, *, points: int = 3, **changes: Any) -> dict[str, Any]:
    """A latency curve."""
    kind = "base" if backing == "4K" else "hugetlb"
    return {
        "name": f"latency line_per_page {backing}",
        "x_name": "footprint_bytes",
        "backing": backing,
        "backing_kind": kind,
        "page_bytes": page_bytes,
        "layout": "line_per_page",
        "granted_fraction": 1.0,
        "status": "ok",
        "reason": None,
        "points": [
            {
                "x": 65536 * 4**i,
                "ns_min": 1.5 + i,
                "ns_p10": 1.6 + i,
                "ns_p50": 1.7 + i,
                "ns_p90": 1.9 + i,
                "ns_mad": None,
                "batches": 25,
                "dropped": 1,
            }
            for i in range(points)
        ],
    } | changes


def run(**changes: Any) -> dict[str, Any]:
    """A tlbbench document with geometry and latency curves."""
    return {
        "schema_version": 1,
        "tool": {"name": "tlbbench", "version": "0.1.0"},
        "command": "run",
        "profile": "quick",
        "seed": 1,
        "started_at": "2026-11-20T12:00:00Z",
        "duration_seconds": 41.2,
        "exit_status": 0,
        "sections": [
            {"name": "geometry", "status": "ok", "reason": None, "duration_seconds": 3.1},
            {"name": "latency", "status": "ok", "reason": None, "duration_seconds": 30.0},
        ],
        "environment": {"zulu": 1, "alpha": {"kept": "in order"}},
        "geometry": {
            "status": "ok",
            "reason": None,
            "levels": [
                {
                    "level": 1,
                    "kind": "data",
                    "page_bytes": 4096,
                    "entries": 96,
                    "entries_min": 95,
                    "entries_max": 97,
                    "ways": "full",
                    "source": "measured",
                    "confidence": "high",
                    "note": None,
                }
            ],
            "effective_granule": [
                {
                    "backing": "THP",
                    "backing_kind": "thp",
                    "page_bytes": 2 * MIB,
                    "granule_bytes": 2 * MIB,
                    "status": "ok",
                },
                {
                    "backing": "2M",
                    "backing_kind": "hugetlb",
                    "page_bytes": 2 * MIB,
                    "granule_bytes": 4096,
                    "status": "fractured",
                },
            ],
            "penalty": [
                {"level": "l2_hit", "page_bytes": 4096, "ns": 2.33, "ns_min": 2.2, "ns_max": 2.5, "cycles": 7.0}
            ],
            "clock": {"core_hz": 3.0e9, "l1_hit_ns": 1.67, "l1_hit_cycles": 5.0},
            "disagreements": [
                {
                    "level": 1,
                    "page_bytes": 4096,
                    "field": "entries",
                    "values": {"cpuid": 64, "measured": 96},
                    "text": ".",
                }
            ],
            "curves": [curve(name="geometry aliased 4K", x_name="pages", layout="aliased")],
        },
        "latency": {
            "status": "ok",
            "reason": None,
            "curves": [curve("4K", 4096), curve("2M", 2 * MIB)],
            "paired_deltas": [
                {
                    "backing": "2M",
                    "layout": "line_per_page",
                    "x": GIB,
                    "delta_ns": -35.1,
                    "ci95_low_ns": -38,
                    "ci95_high_ns": -31,
                }
            ],
            "pressure": {
                "status": "ok",
                "reason": None,
                "region_bytes": 512 * MIB,
                "region_backing": "2M",
                "lines_per_page": 16,
                "points": [
                    {
                        "backing": "2M",
                        "backing_kind": "hugetlb",
                        "page_bytes": 2 * MIB,
                        "footprint_bytes": 512 * MIB,
                        "lines_between": 64,
                        "wait_ns": 0,
                        "period_ns": 950.0,
                        "base_ns_p50": 364.0,
                        "ns_p50": 257.0,
                        "delta_ns": -107.0,
                        "ci95_low_ns": -120.0,
                        "ci95_high_ns": -94.0,
                        "pairs": 6,
                    }
                ],
            },
        },
        "vendor_extension": {"kept": True},
    } | changes


def _inventory() -> dict[str, Any]:
    return {
        "architecture": "x86_64",
        "kernel_release": "6.12.0",
        "kernel_command_line": "ro quiet",
        "cpu": {
            "vendor": "AuthenticAMD",
            "family": 26,
            "model": 2,
            "stepping": 1,
            "brand": "AMD EPYC",
            "online": 16,
        },
        "hypervisor": "KVM",
        "virtualised": True,
        "base_page_bytes": 4096,
        "huge_page_sizes_bytes": [2 * MIB, GIB],
        "default_huge_page_bytes": 2 * MIB,
        "thp": {"enabled": "madvise", "defrag": "madvise", "shmem_enabled": "never"},
        "hvo_enabled": False,
        "cgroup_version": 2,
        "numa_nodes": [{"id": 0, "mem_total_bytes": 64 * GIB, "cpus": "0-15"}],
    }


def _sample() -> dict[str, Any]:
    return {
        "taken_at": datetime.now(UTC).isoformat(),
        "memory": {
            "mem_total_bytes": 64 * GIB,
            "mem_free_bytes": 40 * GIB,
            "mem_available_bytes": 50 * GIB,
            "cached_bytes": 5 * GIB,
            "slab_bytes": GIB,
            "s_unreclaim_bytes": 512 * MIB,
            "kernel_stack_bytes": 64 * MIB,
            "page_tables_bytes": 128 * MIB,
            "anon_huge_pages_bytes": None,
            "hugetlb_bytes": 2 * GIB,
        },
        "pools": [
            {
                "numa_node": 0,
                "page_bytes": 2 * MIB,
                "nr_hugepages": 1024,
                "free_hugepages": 512,
                "surplus_hugepages": 0,
            },
            {"numa_node": 0, "page_bytes": GIB, "nr_hugepages": 0, "free_hugepages": 0, "surplus_hugepages": 0},
        ],
        "global_pools": [
            {
                "page_bytes": 2 * MIB,
                "nr_hugepages": 1024,
                "free_hugepages": 512,
                "resv_hugepages": 0,
                "surplus_hugepages": 0,
                "nr_overcommit_hugepages": 0,
            },
            {"page_bytes": GIB, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": 0, "surplus_hugepages": 0},
        ],
        "numa": [{"id": 0, "mem_total_bytes": 64 * GIB, "mem_free_bytes": 40 * GIB, "anon_huge_pages_bytes": None}],
        "processes": [
            {"pid": 10, "start_time_ticks": 5, "name": "small", "rss_bytes": MIB, "vm_pte_bytes": 4096},
            {"pid": 11, "start_time_ticks": 6, "name": "postgres", "rss_bytes": GIB, "vm_pte_bytes": 8192},
        ],
    }


def report(**changes: Any) -> dict[str, Any]:
    """A report without a run. ``sample`` and ``inventory`` changes are merged into their first level."""
    document: dict[str, Any] = {
        "schema_version": 1,
        "report_id": str(uuid.uuid4()),
        "agent_version": "0.1.0",
        "created_at": datetime.now(UTC).isoformat(),
        "machine_id": MACHINE_ID,
        "node_name": "db-7",
        "synthetic": False,
        "inventory": _inventory() | changes.pop("inventory", {}),
        "sample": _sample() | changes.pop("sample", {}),
        "run": None,
        "collectors": [{"name": "meminfo", "status": "ok", "duration_seconds": 0.001, "reason": None}],
    }
    return copy.deepcopy(document | changes)

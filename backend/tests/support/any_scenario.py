"""Random scenarios over everything that the document's types allow."""

from __future__ import annotations

import random
from typing import Any

from hugeplan.planner.demand import ENGINES
from hugeplan.planner.model import GIB

MACHINES = (
    ("x86_64", 4096), ("aarch64", 4096), ("aarch64", 16384), ("aarch64", 65536),
    ("ppc64le", 65536), ("riscv64", 4096), ("s390x", 4096),
)  # fmt: skip
WORDS = ("hugepages=3", "hugepagesz=2M", "hugepagesz=1G", "default_hugepagesz=1G", "quiet")


class Dice:
    """Random parts of a scenario, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def size(self, low_gib: float, high_gib: float) -> int:
        return self.rng.randrange(int(low_gib * GIB), int(high_gib * GIB))

    def maybe(self, key: str, value: Any, chance: float = 0.4) -> dict[str, Any]:
        return {key: value} if self.rng.random() < chance else {}

    def node(self) -> dict[str, Any]:
        arch, base = self.rng.choice(MACHINES)
        nodes = self.rng.choice((1, 1, 2, 4))
        line = " ".join(self.rng.choice(WORDS) for _ in range(5))
        cpu = {"vendor": "GenuineIntel", "family": 6, "model": self.rng.choice((143, 85, 1))}
        return {
            "arch": arch,
            "base_page_size": base,
            "numa_nodes": [{"id": i, "memory": self.size(0.01, 300)} for i in range(nodes)],
            **self.maybe("thp", self.rng.choice(("always", "madvise", "never"))),
            **self.maybe("hvo", self.rng.random() < 0.5),
            **self.maybe("cpus", self.rng.randrange(1, 256)),
            **self.maybe("kernel_command_line", line),
            **self.maybe("hardware", {"virtualised": self.rng.choice((True, False, None)), "cpu": cpu}),
        }

    def tenant(self, name: str, nodes: int) -> dict[str, Any]:
        points = self.rng.choice((0, 1, 5, 30, 200))
        history = {"times": [43200 * k for k in range(points)], "used": [self.size(0, 5) for _ in range(points)]}
        return {
            "name": name,
            "kind": self.rng.choice(("pod", "service", "page_cache")),
            "count": self.rng.choice((0, 1, 3, 40, 3000)),
            **self.maybe("request", self.size(0, 3), 0.7),
            **self.maybe("limit", self.size(3, 9), 0.7),
            **self.maybe("history", history),
            **self.maybe("numa_node", self.rng.randrange(nodes), 0.3),
        }

    def database(self, name: str, nodes: int) -> dict[str, Any]:
        engine = ENGINES[self.rng.choice(tuple(ENGINES))]
        gib = self.rng.choice((1, 5, 30, 100))
        unit = {"postgresql": "GB", "generic": "GiB"}.get(engine.name, "G")
        table = [
            {"pool": k * GIB, "throughput": self.rng.random() * 1000 + 1} for k in range(1, self.rng.randrange(2, 9))
        ]
        workload = {
            "operation": self.rng.choice(("key_lookup", "oltp", "scan", "nested_loop")),
            "active_connections": self.rng.choice((0, 1, 64)),
            **self.maybe("working_set", self.size(0.1, 50)),
            **self.maybe("zipf_s", self.rng.choice((0, 0.5, 1, 1.3))),
            **self.maybe("benefit", table),
        }
        result = {
            "name": name,
            "engine": engine.name,
            "workload": workload,
            "weight": self.rng.choice((0, 0.1, 1, 1000)),
            **self.maybe("connections", self.rng.choice((0, 1, 50, 3000))),
            **self.maybe("page_size", self.rng.choice(("auto", "none", "2MiB", "1GiB", "16MiB")), 0.3),
            **self.maybe("numa_node", self.rng.randrange(nodes), 0.3),
        }
        if engine.pool_setting is not None:
            result["settings"] = {engine.pool_setting: f"{gib}{unit}"}
            result |= self.maybe("pool_range", {"min": self.size(0.5, 2), "max": self.size(2, 60)}, 0.3)
        return result

    def scenario(self) -> dict[str, Any]:
        node = self.node()
        nodes = len(node["numa_nodes"])
        return {
            "node": node,
            "reservations": {
                "kubernetes": self.rng.random() < 0.5,
                "provider": self.rng.choice((None, "gke", "eks", "aks")),
                "memory_manager_static": self.rng.random() < 0.5,
            },
            "tenants": [self.tenant(f"t{i}", nodes) for i in range(self.rng.randrange(4))],
            "databases": [self.database(f"d{i}", nodes) for i in range(self.rng.randrange(5))],
            "policy": {
                "reserve_at": self.rng.choice(("boot", "runtime")),
                "risk": self.rng.choice((0.01, 0.5, 0.0001)),
                "slack": self.rng.choice((0, 0.01, 0.2)),
                "slack_min_pages": self.rng.choice((0, 2, 50)),
                **self.maybe("free_margin", self.size(0, 40), 0.2),
            },
        }

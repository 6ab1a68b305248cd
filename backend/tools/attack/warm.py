"""Each kind of work done once, as on any service that has been used: its start is not an attack's cost."""

from __future__ import annotations

from hugeplan.access.schemas import Role
from tools.attack.rig import Target, expect

SCENARIO = {
    "node": {"name": "warm", "memory": "64GiB", "cpus": 8},
    "databases": [{"name": "db", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "8GB"}}],
}
SCENARIO_TEXT = (
    "node: {name: warm, memory: 64GiB, cpus: 8}\ndatabases:\n- {name: db, engine: postgresql, version: 17}\n"
)
KUBERNETES = {
    "kind": "List",
    "apiVersion": "v1",
    "items": [
        {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": "n"},
            "status": {"capacity": {"cpu": "8", "memory": "64Gi"}, "nodeInfo": {"architecture": "amd64"}},
        }
    ],
}


def warm_up(running: Target) -> None:
    """One lint, preview and import: the processes that do them start."""
    files = {"files": [{"name": "60-huge.conf", "text": "vm.nr_hugepages = 512\n"}]}
    expect(running.ask(Role.VIEWER, "POST", "/lint", json=files), 200)
    expect(running.ask(Role.VIEWER, "POST", "/plans/preview", json={"scenario": SCENARIO}), 200)
    expect(running.ask(Role.PLANNER, "POST", "/imports/kubernetes", json=KUBERNETES), 200)
    expect(running.ask(Role.PLANNER, "POST", "/scenarios/import", json={"name": "warm", "yaml": SCENARIO_TEXT}), 201)
    expect(running.ask(Role.VIEWER, "GET", "/nodes"), 200)

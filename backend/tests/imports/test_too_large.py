"""What is too large for the sandbox is refused with the command that has no such limit, or with what is smaller."""

from __future__ import annotations

import json
import subprocess
import sys
from asyncio import to_thread

import httpx
import pytest
from support.kubernetes_objects import cluster

EMPTY_OBJECTS = json.dumps({"kind": "List", "items": [{}] * 80_000})  # 400 kB, and more values than 150,000
EMPTY_LISTS = json.dumps({"kind": "List", "items": [[]] * 80_000})
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def large_cluster() -> str:
    """Of 6,000 pods; the least that may not be sent has about a tenth of them."""
    text = cluster(200, 6_000, databases_per_ten_nodes=3)
    assert len(text) > 5 * 4 * 1024**2
    return text


async def test_a_cluster_that_is_too_large_gets_the_command_and_the_command_plans_it(
    planner: httpx.AsyncClient, large_cluster: str
) -> None:
    found = await planner.post("/api/v1/imports/kubernetes", content=large_cluster.encode(), headers=JSON)
    assert found.status_code == 413
    said = "The body may have at most 4194304 bytes; the command line has no such limit: "
    assert found.json()["detail"] == f"{said}kubectl get nodes,pods,pvc,configmaps -A -o json | hugeplan plan -."
    words = [sys.executable, "-m", "hugeplan.cli", *found.json()["detail"].rstrip(".").split("| hugeplan ")[1].split()]
    done = await to_thread(subprocess.run, words, input=large_cluster, capture_output=True, text=True, check=False)
    assert "Read: 200 nodes, 6,000 pods" in done.stdout


@pytest.mark.parametrize("text", [EMPTY_OBJECTS, EMPTY_LISTS], ids=["objects", "lists"])
async def test_too_many_values_get_the_command(planner: httpx.AsyncClient, text: str) -> None:
    found = await planner.post("/api/v1/imports/kubernetes", content=text.encode(), headers=JSON)
    assert found.status_code == 422
    assert "at most 150000 commas and opening brackets; the command line has no such limit: kubectl" in found.text


async def test_too_many_pods_for_a_plan_of_one_node_are_asked_for_by_node(
    viewer: httpx.AsyncClient, large_cluster: str
) -> None:
    for text, status in ((large_cluster, 413), (EMPTY_OBJECTS, 422)):
        found = await viewer.post("/api/v1/imports/kubernetes/workloads", content=text.encode(), headers=JSON)
        assert found.status_code == status
        assert "send one node's pods: kubectl get pods -A -o json --field-selector spec.nodeName=NODE" in found.text

"""What the sandbox does with inventories: read and plan them. It needs no database."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

from hugeplan.api.json_body import parse_json
from hugeplan.errors import FieldProblem, invalid_input
from hugeplan.inventory.answer import answer
from hugeplan.inventory.document import inventory_document
from hugeplan.inventory.kubernetes import read_kubernetes
from hugeplan.inventory.kubernetes.build import read_workloads
from hugeplan.inventory.model import InventoryError
from hugeplan.inventory.scenario import workload_documents
from hugeplan.inventory.text import inventory_text
from hugeplan.object_files import scenarios

_SMALL = [
    {
        "kind": "Node",
        "metadata": {"name": "small"},
        "status": {
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "nodeInfo": {"architecture": "amd64", "kubeletVersion": "v1.34.0"},
        },
    },
    {
        "kind": "Pod",
        "metadata": {"name": "db-0", "namespace": "db"},
        "spec": {
            "nodeName": "small",
            "containers": [{"name": "db", "image": "postgres:17", "args": ["-c", "shared_buffers=64GB"]}],
        },
        "status": {"phase": "Running"},
    },
]
"""A database that does not fit: what to do about that is planned, too."""


def prepare() -> None:
    """Load what the planner loads when it first needs it, and fill what it remembers; called before the first fork."""
    _planned(json.dumps({"kind": "List", "items": _SMALL}).encode())


def plan_kubernetes(payload: bytes) -> bytes:
    """The plan of every node of Kubernetes objects as JSON, and the scenarios of nodes with a database."""
    limits, body = pickle.loads(payload)  # noqa: S301 - the service wrote it
    parse_json(body, limits)
    return _planned(body)


def _planned(body: bytes) -> bytes:
    try:
        inventory = read_kubernetes(body, "the body")
    except InventoryError as error:
        raise invalid_input([FieldProblem(field="body", value=None, expected=str(error))]) from error
    if not inventory.nodes:
        expected = "objects with at least one Node: kubectl get nodes,pods,pvc -A -o json"
        raise invalid_input([FieldProblem(field="body", value=None, expected=expected)])
    answered = answer(inventory)
    documents, notes = scenarios(answered)
    answered = replace(answered, inventory=replace(answered.inventory, notes=(*answered.inventory.notes, *notes)))
    document = inventory_document(answered)
    # By this name the next import replaces it.
    found = [(f"{node.facts.name} (imported)", scenario) for node, scenario in documents if node.databases]
    return json.dumps({"answer": document, "text": inventory_text(answered), "scenarios": found}).encode()


def read_workloads_of_pods(payload: bytes) -> bytes:
    """The workloads of one node out of pods, as a scenario spells them, and what was left out."""
    limits, body, node = pickle.loads(payload)  # noqa: S301 - the service wrote it
    parse_json(body, limits)
    try:
        found = read_workloads(body, "the body", node)
    except InventoryError as error:
        raise invalid_input([FieldProblem(field="body", value=None, expected=str(error))]) from error
    if not (found.pods or found.elsewhere or found.waiting or found.ended):
        expected = "objects with at least one Pod: kubectl get pods -A -o json"
        raise invalid_input([FieldProblem(field="body", value=None, expected=expected)])
    document = workload_documents(found.tenants, [one.instance for one in found.databases])
    left = {"pods": found.pods, "elsewhere": found.elsewhere, "waiting": found.waiting, "ended": found.ended}
    return json.dumps({**document, **left, "notes": found.notes}).encode()

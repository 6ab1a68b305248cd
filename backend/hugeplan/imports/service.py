"""Inventories in, plans and scenarios out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio.to_thread

from hugeplan.db.session import WriteSession
from hugeplan.errors import FieldProblem, invalid_input
from hugeplan.imports.schemas import ImportReceipt, KubernetesImport, SavedScenario, ScenarioImport
from hugeplan.inventory.answer import answer
from hugeplan.inventory.document import inventory_document
from hugeplan.inventory.errors import InventoryError
from hugeplan.inventory.kubernetes import read_kubernetes
from hugeplan.inventory.model import Inventory
from hugeplan.inventory.scenario import scenario_document
from hugeplan.scenarios import service as scenarios

Documents = Sequence[tuple[str, dict[str, Any]]]


def imported_name(node: str) -> str:
    """The name under which an imported node's scenario is kept, so that the next import replaces it."""
    return f"{node} (imported)"


def _plan(data: bytes) -> tuple[Inventory, dict[str, Any]]:
    inventory = read_kubernetes(data, "the body")
    return inventory, inventory_document(answer(inventory))


async def import_kubernetes(session: WriteSession, data: bytes, *, save: bool, by: str) -> KubernetesImport:
    """Plan every node of the objects; with ``save`` keep each node with a database as a scenario."""
    try:
        inventory, document = await anyio.to_thread.run_sync(_plan, data)
    except InventoryError as error:
        raise invalid_input([FieldProblem(field="body", value=None, expected=str(error))]) from error
    if not inventory.nodes:
        expected = "objects with at least one Node: kubectl get nodes,pods,pvc -A -o json"
        raise invalid_input([FieldProblem(field="body", value=None, expected=expected)])
    kept: list[SavedScenario] = []
    if save:
        documents = [
            (imported_name(node.facts.name), scenario_document(node)) for node in inventory.nodes if node.databases
        ]
        kept = await _keep(session, documents, by)
    return KubernetesImport(answer=document, scenarios=kept)


async def import_scenarios(session: WriteSession, body: ScenarioImport, spelled: Any, *, by: str) -> ImportReceipt:
    """Keep scenarios that a command line made; ``spelled`` is the body as it was sent."""
    names = [one.name for one in body.scenarios]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise invalid_input([FieldProblem(field="scenarios.name", value=twice, expected="each name once")])
    documents = [(one["name"], one["scenario"]) for one in spelled["scenarios"]]
    return ImportReceipt(source=body.source, scenarios=await _keep(session, documents, by))


async def _keep(session: WriteSession, documents: Documents, by: str) -> list[SavedScenario]:
    kept = await scenarios.save_by_name(session, documents, by=by)
    return [SavedScenario(id=one.id, name=one.name, created=one.version == 1) for one in kept]

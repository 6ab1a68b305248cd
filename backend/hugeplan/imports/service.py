"""Inventories in, plans and scenarios out."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from hugeplan.api.beside import RequestSandbox
from hugeplan.api.json_body import JsonLimits
from hugeplan.db.session import WriteSession
from hugeplan.errors import shown
from hugeplan.imports.schemas import (
    ImportReceipt,
    KubernetesImport,
    PodWorkloads,
    RefusedScenario,
    SavedScenario,
    ScenarioImport,
)
from hugeplan.scenarios import service as scenarios
from hugeplan.scenarios import work

INSTEAD: Final = (
    "the command line has no such limit: kubectl get nodes,pods,pvc,configmaps -A -o json | hugeplan plan -"
)
PLAN_KUBERNETES: Final = "hugeplan.imports.work:plan_kubernetes"
READ_WORKLOADS: Final = "hugeplan.imports.work:read_workloads_of_pods"
ONE_NODE: Final = "send one node's pods: kubectl get pods -A -o json --field-selector spec.nodeName=NODE"
Documents = Sequence[tuple[str, dict[str, Any]]]


async def import_kubernetes(
    session: WriteSession, beside: RequestSandbox, data: bytes, *, limits: JsonLimits, save: bool, by: str
) -> KubernetesImport:
    """Plan every node of the objects; with ``save`` keep each node with a database as a scenario."""
    payload = pickle.dumps((limits, data))
    planned = await beside.work(PLAN_KUBERNETES, payload, what="Planning these nodes", instead=INSTEAD)
    found = msgspec.json.decode(planned)
    kept, refused = await _keep(session, beside, found["scenarios"] if save else [], by)
    return KubernetesImport(answer=found["answer"], text=found["text"], scenarios=kept, refused=refused)


async def read_pods(beside: RequestSandbox, data: bytes, *, limits: JsonLimits, node_name: str | None) -> PodWorkloads:
    """The workloads that pods are to a plan of one node. Nothing is kept."""
    payload = pickle.dumps((limits, data, node_name))
    found = await beside.work(READ_WORKLOADS, payload, what="Reading these pods", instead=ONE_NODE)
    return PodWorkloads.model_validate_json(found)


async def import_scenarios(
    session: WriteSession, beside: RequestSandbox, body: ScenarioImport, *, by: str
) -> ImportReceipt:
    """Keep those of the scenarios that a command line made which can be planned; the others are named."""
    documents = [(one.name, one.scenario) for one in body.scenarios]
    kept, refused = await _keep(session, beside, documents, by)
    return ImportReceipt(source=body.source, scenarios=kept, refused=refused)


async def _keep(
    session: WriteSession, beside: RequestSandbox, documents: Documents, by: str
) -> tuple[list[SavedScenario], list[RefusedScenario]]:
    if not documents:
        return [], []
    reasons = await beside.work(work.CHECK_EACH, pickle.dumps(documents), what="Checking these scenarios")
    good: dict[str, dict[str, Any]] = {}
    refused = []
    for (name, document), wrong in zip(documents, msgspec.json.decode(reasons), strict=True):
        reason = wrong or ("name: expected each name once" if name in good else None)
        if reason is None:
            good[name] = document
        else:
            refused.append(RefusedScenario(name=shown(name) or "", reason=reason))
    await beside.turn_to_keep()
    kept = await scenarios.save_by_name(session, list(good.items()), by=by)
    return [SavedScenario(id=one.id, name=one.name, created=one.version == 1) for one in kept], refused

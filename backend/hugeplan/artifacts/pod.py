"""Pod resources: the huge page limit and the ordinary memory of each database on a Kubernetes node.

Rules: huge page request equals limit, the quantity is whole pages, cpu or memory must be set as well
(kubernetes pkg/apis/core/validation); a limit below the mapping is SIGBUS or a fallback.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hugeplan.artifacts.base import (
    Artifact,
    Restart,
    all_of,
    node_checks,
    slug,
    unique_kinds,
    with_pool,
    yaml_text,
)
from hugeplan.artifacts.engines.in_pod import pod_names
from hugeplan.planner.memory.kubernetes import huge_page_limits, pod_memory
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest
from hugeplan.planner.units import format_kubernetes_bytes

_NO_MEMORY = "memory: left out, the connections of this engine are not known to the plan; a pod needs cpu or memory."


def resources(plan: Plan, instance: DatabaseInstance, planned: InstancePlan) -> tuple[dict[str, Any], list[str]]:
    """``resources`` of the container, and comments: the old and new memory with the reason, or what is left out."""
    limits = huge_page_limits(planned, plan.pools, plan.instances)
    pages = {name: format_kubernetes_bytes(size) for name, size in limits.items()}
    memory = pod_memory(plan, instance, planned)
    amounts = {"requests": dict(pages), "limits": dict(pages)}
    for part, size in (("requests", memory.request_bytes), ("limits", memory.limit_bytes)):
        if size is not None:
            amounts[part]["memory"] = format_kubernetes_bytes(size)
    if memory.request_bytes is None and memory.limit_bytes is None:
        return amounts, [_NO_MEMORY]
    return amounts, [f"memory: {memory.why}."]


def render(plan: Plan, request: PlanRequest) -> Iterable[Artifact]:
    """Per database with a pool, on Kubernetes nodes: the container's resources and a patch of its StatefulSet."""
    if not request.reservations.kubernetes:
        return
    found = [(i, planned) for i, planned in with_pool(plan, request) if not _has_its_pages(i, planned)]
    names = [planned.name for _, planned in found]
    for kind, patch_kind, (instance, planned) in zip(
        unique_kinds("pod", names), unique_kinds("statefulset_patch", names), found, strict=True
    ):
        amounts, left_out = resources(plan, instance, planned)
        names_of_pages = " and ".join(name for name in amounts["limits"] if name != "memory")
        yield Artifact(
            kind=kind,
            filename=f"{slug(planned.name)}-resources.yaml",
            media_type="application/yaml",
            content=yaml_text(
                [f"Container resources of {planned.name}; restart the kubelet after the pool changes.", *left_out],
                {"resources": amounts},
            ),
            summary=f"The limits that let the container of {planned.name} use its huge pages.",
            install="# put them into the container of the pod template, then apply it",
            verify=all_of(node_checks(plan)),
            rollback=f"# remove the {names_of_pages} lines and set huge_pages back before the pod restarts",
            restart=Restart.ENGINE,
            avoid_when="An operator makes the pod: use its custom resource.",
        )
        yield _patch(instance, planned, patch_kind, amounts, left_out)


def _has_its_pages(instance: DatabaseInstance, planned: InstancePlan) -> bool:
    """A pod of which only its huge page limit is known, and that has it: there is nothing to patch in it."""
    needed = planned.demand.pages * planned.demand.page_bytes
    return instance.engine == "generic" and (instance.pod_hugepages_limit_bytes or 0) >= needed


def _patch(
    instance: DatabaseInstance, planned: InstancePlan, kind: str, amounts: dict[str, Any], left_out: list[str]
) -> Artifact:
    """A strategic merge patch: the container is found by its name, everything else of the template stays."""
    names = pod_names(instance, planned)
    name, container = names.stateful_set, names.container
    of_set = f"statefulset {name}{names.in_namespace}"
    file = f"{slug(planned.name)}-statefulset-patch.yaml"
    document = {"spec": {"template": {"spec": {"containers": [{"name": container, "resources": amounts}]}}}}
    limit, amount = next(iter(amounts["limits"].items()))
    path = f'{{.spec.template.spec.containers[?(@.name=="{container}")].resources.limits.{limit}}}'
    before = f"kubectl get {of_set} -o yaml > {name}-before.yaml"
    assumed = [
        f"The name of the {what} is not in the plan: {used} is the database's name in it."
        for what, known, used in (
            ("StatefulSet", instance.stateful_set, name),
            ("container", instance.container, container),
        )
        if known is None
    ]
    return Artifact(
        kind=kind,
        filename=file,
        media_type="application/yaml",
        content=yaml_text(
            [
                f"Strategic merge patch for the StatefulSet of {planned.name}.",
                *assumed,
                "Volumes: left out, MAP_HUGETLB needs none.",
                *left_out,
            ],
            document,
        ),
        summary=f"Gives the container of {planned.name} its limits and starts its pods again.",
        install=f"{before}\nkubectl patch {of_set} --type strategic --patch-file {file}",
        verify=all_of([f"test \"$(kubectl get {of_set} -o jsonpath='{path}')\" = {amount}"]),
        rollback=f"kubectl replace -f {name}-before.yaml",
        restart=Restart.ENGINE,
        avoid_when="An operator owns the StatefulSet: it would undo the patch.",
    )

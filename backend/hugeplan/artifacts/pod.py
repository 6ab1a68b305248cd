"""Pod resources: the huge page limit and the ordinary memory of each database on a Kubernetes node.

Rules: huge page request equals limit, the quantity is whole pages, cpu or memory must be set as well
(kubernetes pkg/apis/core/validation); a limit below the mapping is SIGBUS or a fallback.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

from hugeplan.artifacts.base import (
    Artifact,
    Restart,
    all_of,
    left_as_comments,
    node_checks,
    one_line,
    slug,
    unique_kinds,
    with_pool,
    yaml_text,
)
from hugeplan.artifacts.engines.common import unsaid
from hugeplan.artifacts.engines.in_pod import pod_names
from hugeplan.artifacts.order import with_change
from hugeplan.artifacts.owners import Needs, limits_field, made_once, needs, saved_once
from hugeplan.planner.memory.kubernetes import pod_memory
from hugeplan.planner.model import DatabaseInstance, InstancePlan, Plan, PlanRequest
from hugeplan.planner.pages import huge_page_sizes, kubernetes_resource_name
from hugeplan.planner.units import format_bytes, format_kubernetes_bytes
from hugeplan.recognition.operators import Owner, owner, patched

#: Kind of the form that stands where no patch can be written.
SNIPPET: Final = "statefulset_snippet"
_NO_MEMORY = "memory: left out, the connections of this engine are not known to the plan; a pod needs cpu or memory."


def resources(own: Needs, *, sets: bool = False) -> tuple[dict[str, Any], list[str]]:
    """``resources`` of the container, and comments: the old and new memory with the reason, or what is left out.

    ``sets``: the same file sets what makes the engine ask for pages. Where nobody has read that it asks, memory is not
    lowered: the pool may be ordinary memory, and the kernel ends a server that has less.
    """
    pages = {name: format_kubernetes_bytes(size) for name, size in own.pages.items()}
    memory, stays = own.memory, ""
    amounts = {"requests": dict(pages), "limits": dict(pages)}
    missing = [*dict.fromkeys(word for one in own.pods for word in unsaid(*one, sets=sets))]
    requests = [instance.pod_memory_request_bytes or 0 for instance, _ in own.pods]
    limits = [instance.pod_memory_limit_bytes or 0 for instance, _ in own.pods]
    for part, size, old in (("requests", memory.request_bytes, requests), ("limits", memory.limit_bytes, limits)):
        if size is not None:
            kept = max(size, *old) if missing else size
            stays = stays if kept == size else f"stays as it is until the input says {_all(missing)}; then "
            amounts[part]["memory"] = format_kubernetes_bytes(kept)
    if memory.request_bytes is None and memory.limit_bytes is None:
        return amounts, [_NO_MEMORY]
    return amounts, [f"memory: {stays}{memory.why}."]


def _all(words: Iterable[str]) -> str:
    return one_line(" and ".join(words))


def never_scheduled(plan: Plan, request: PlanRequest) -> str | None:
    """Whose memory request stays until the input says that its engine asks for pages, where the node will not offer it.

    None: nobody's. Its pod would wait for ever. Without a pool an engine that only asks runs on: its settings go first.
    """
    asked = sum(_requested(one.request_bytes, one.limit_bytes) * one.count for one in request.tenants)
    staying = ""
    for instance, planned in zip(request.databases, plan.instances, strict=True):
        request_bytes = _requested(instance.pod_memory_request_bytes, instance.pod_memory_limit_bytes)
        if planned.page_bytes:
            found, memory = patched(instance), pod_memory(plan, instance, planned)
            lowered = _requested(memory.request_bytes, memory.limit_bytes)
            missing = unsaid(instance, planned, sets=found is not None and not found[1].option_file)
            if missing and lowered < request_bytes:
                staying = f"{one_line(planned.name)} stays until the input says {_all(missing)}"
            else:
                request_bytes = lowered
        asked += request_bytes
    if not staying or plan.kubernetes is None or asked <= (offered := plan.kubernetes.allocatable["memory"]):
        return None
    return (
        f"The memory request of {staying}, and {one_line(plan.node)} will offer {format_bytes(offered)} of the"
        f" {format_bytes(asked)} requested: give the engine these settings first (a value that only asks starts without"
        " a pool, a JVM with ZGC only where no page is free), then plan with them"
    )


def _requested(request_bytes: int | None, limit_bytes: int | None) -> int:
    """What the scheduler counts: Kubernetes makes a limit without a request the request."""
    return (limit_bytes or 0) if request_bytes is None else request_bytes


def render(plan: Plan, request: PlanRequest, of_objects: Mapping[Owner, Needs]) -> Iterable[Artifact]:
    """Per database with a pool, on Kubernetes nodes: the container's resources; per StatefulSet of them: a patch.

    Nothing for a database whose operator's object is patched. Without a known owner the patch is a snippet with
    placeholders, which neither kubectl nor the API server takes.
    """
    if not request.reservations.kubernetes:
        return
    found = [(i, planned) for i, planned in with_pool(plan, request) if not _has_its_pages(i, planned)]
    found = [(i, planned) for i, planned in found if patched(i) is None]
    for kind, (instance, planned) in zip(unique_kinds("pod", _names(found)), found, strict=True):
        amounts, left_out = resources(_needs(plan, instance, planned, of_objects))
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
            install=f"# put them into {_place(instance)}, then apply it",
            verify=all_of(node_checks(plan)),
            rollback=f"# remove the {names_of_pages} lines and set huge_pages back before the pod restarts",
            restart=Restart.ENGINE,
            avoid_when="The operator's version has another field for them."
            if instance.operator_object is not None
            else "An operator makes the pod: use its custom resource.",
        )
    own = [(i, planned) for i, planned in found if i.operator_object is None]
    # A container of a set is patched once, however many of its pods run here.
    known = {owner(i): (i, planned) for i, planned in reversed(own) if owner(i) is not None}
    forms = [(i, planned) for i, planned in own if owner(i) is None]
    for kind, pairs in (("statefulset_patch", [*reversed(known.values())]), (SNIPPET, forms)):
        for own_kind, (instance, planned) in zip(unique_kinds(kind, _names(pairs)), pairs, strict=True):
            of_all = _needs(plan, instance, planned, of_objects)
            amounts, notes = resources(of_all)
            if kind != SNIPPET:
                amounts = {part: amounts[part] | _no_other(request, amounts[part]) for part in amounts}
            patch = with_change(_patch(instance, planned, own_kind, amounts, notes), planned, request)
            yield made_once(patch, plan.node, of_all)


def _no_other(request: PlanRequest, amounts: Mapping[str, Any]) -> dict[str, None]:
    """Pages of the machine's other sizes, which an earlier plan may have asked for: a merge alone takes nothing away,
    and the way back of the first patch knows the fields of the first patch.
    """
    sizes = huge_page_sizes(request.node.arch, request.node.base_page_bytes)
    return {name: None for size in sizes if (name := kubernetes_resource_name(size)) not in amounts}


def _needs(plan: Plan, instance: DatabaseInstance, planned: InstancePlan, of_objects: Mapping[Owner, Needs]) -> Needs:
    own = owner(instance)
    return needs(plan, instance, planned) if own is None else of_objects[own]


def _names(pairs: Iterable[tuple[DatabaseInstance, InstancePlan]]) -> list[str]:
    return [planned.name for _, planned in pairs]


def _place(instance: DatabaseInstance) -> str:
    found = instance.operator_object
    return "the container of the pod template" if found is None else limits_field(found)


def _has_its_pages(instance: DatabaseInstance, planned: InstancePlan) -> bool:
    """A pod of which only its huge page limit is known, and that has it: there is nothing to patch in it."""
    needed = planned.demand.pages * planned.demand.page_bytes
    return instance.engine == "generic" and (instance.pod_hugepages_limit_bytes or 0) >= needed


def _patch(
    instance: DatabaseInstance, planned: InstancePlan, kind: str, amounts: dict[str, Any], left_out: list[str]
) -> Artifact:
    """A strategic merge patch: the container is found by its name, everything else of the template stays."""
    names, is_known = pod_names(instance), owner(instance) is not None
    name, container = names.stateful_set, names.container
    of_set = f"statefulset {shlex.quote(name)}{names.in_namespace}"
    file = f"{slug(planned.name)}-{'statefulset-patch' if is_known else 'statefulset-snippet'}.yaml"
    document = {"spec": {"template": {"spec": {"containers": [{"name": container, "resources": amounts}]}}}}
    limit, amount = next(iter(amounts["limits"].items()))
    path = f'{{.spec.template.spec.containers[?(@.name=="{container}")].resources.limits.{limit}}}'
    save, before = saved_once(f"kubectl get {of_set}", document, names.namespace, name if is_known else planned.name,
                              container, nulls=True)  # fmt: skip
    comments = [f"Strategic merge patch for the StatefulSet {instance.stateful_set}."]
    summary = (
        f"Gives container {container} of StatefulSet {instance.stateful_set} its limits and starts its pods again."
    )
    if not is_known:
        summary = (
            f"What makes the pods of {planned.name} is not known, or which container, so no object is patched: a form"
            " for its StatefulSet, or for an operator's object, with placeholders to fill in."
        )
        comments = [
            f"NOT TO BE APPLIED AS IT IS. {summary}",
            "Write the limits into what makes the pods; NAMESPACE and other names in capitals are placeholders.",
        ]
    run = str if is_known else left_as_comments
    return Artifact(
        kind=kind,
        filename=file,
        media_type="application/yaml",
        content=yaml_text([*comments, "Volumes: left out, MAP_HUGETLB needs none.", *left_out], document),
        summary=summary,
        install=run(f"{save}kubectl patch {of_set} --type strategic --patch-file {file}"),
        verify=run(f"test \"$(kubectl get {of_set} -o jsonpath='{path}')\" = {amount}"),
        rollback=run(f"kubectl patch {of_set} --type strategic --patch-file {before} && rm {before}"),
        restart=Restart.ENGINE,
        avoid_when="An operator owns the StatefulSet: it would undo the patch. Or another node with a pod of it lacks"
        " the pages: that pod would wait."
        if is_known
        else "The placeholders stand: kubectl and the API server refuse them. An operator makes the pods: use its"
        " custom resource.",
    )

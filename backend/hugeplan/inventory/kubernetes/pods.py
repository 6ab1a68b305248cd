"""A Pod object in the terms of an inventory: its containers, what it asks for, and what its ConfigMaps put into it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from hugeplan.formats.quantities import huge_page_size, parse_quantity
from hugeplan.inventory.kubernetes.config_maps import ConfigMaps, Volumes
from hugeplan.inventory.kubernetes.objects import Container, Pod, ResourceRequirements, Resources
from hugeplan.planner.model import OperatorObject
from hugeplan.planner.pages import kubernetes_resource_name
from hugeplan.planner.units import format_bytes
from hugeplan.recognition import ContainerView, PodView, may_hold_database
from hugeplan.recognition.engines.jvm import LARGE_PAGES_OPTION

#: Pods in these phases hold no memory.
_ENDED: Final = frozenset({"Succeeded", "Failed"})
_IS_HUGE_PAGES: Final = re.compile("hugepages-").match
_HUGE_PAGES_MEDIUM: Final = "HugePages"
#: More containers of a pod than these are counted in its memory, and not looked into.
MAX_CONTAINERS: Final = 64
_MAX_PAGE_SHIFT: Final = 40


class PodMemory(NamedTuple):
    """What a whole pod asks for, as the scheduler counts it. None: at least one container does not say.

    ``huge_pages_bytes`` is by page size; a container without such a limit adds nothing, because it may use none.
    """

    request_bytes: int | None
    limit_bytes: int | None
    huge_pages_bytes: Mapping[int, int]


def holds_memory(pod: Pod) -> bool:
    """Whether the pod is scheduled or will be, and has not ended."""
    return (pod.status.phase if pod.status is not None else None) not in _ENDED


def _quantity(found: Resources | None, name: str) -> int | None:
    value = None if found is None else found.get(name)
    return None if value is None else parse_quantity(value)


def _container_memory(container: Container) -> tuple[int | None, int | None]:
    """Request and limit. The API server sets a missing request to the limit; so does this."""
    needs = container.resources
    if needs is None:
        return None, None
    limit = _quantity(needs.limits, "memory")
    request = _quantity(needs.requests, "memory")
    return (limit if request is None else request), limit


def huge_pages_of(needs: ResourceRequirements | None) -> dict[int, int]:
    """Limits of huge pages by page size; requests equal them wherever the API server has accepted the pod."""
    found: dict[int, int] = {}
    if needs is None:
        return found
    for part in (needs.requests, needs.limits):
        for name in part or ():
            if name.startswith("hugepages-"):
                size, held = huge_page_size(name), parse_quantity((part or {})[name])
                if size and size.bit_count() == 1 and size.bit_length() <= _MAX_PAGE_SHIFT and held is not None:
                    found[size] = held
    return found


def unreadable_quantities(pod: Pod) -> list[str]:
    """Memory and huge pages of a pod that are no Kubernetes quantity, such as 1GiB; the API server refuses the pod."""
    found = []
    parts = [("the pod", pod.spec.resources)]
    parts += [(one.name, one.resources) for one in (*(pod.spec.initContainers or ()), *(pod.spec.containers or ()))]
    for holder, needs in parts:
        for field, values in () if needs is None else (("requests", needs.requests), ("limits", needs.limits)):
            found += [
                f"{holder}, {field}: {name}: {value}"
                for name, value in (values or {}).items()
                if value is not None and (name == "memory" or _IS_HUGE_PAGES(name)) and parse_quantity(value) is None
            ]
    return found


def _sum_known(parts: Sequence[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def plain_pod(pod: Pod) -> PodMemory | None:
    """The memory of a pod whose one container runs no database: most pods of a cluster. None: look closer."""
    spec, containers = pod.spec, pod.spec.containers
    if (
        containers is None
        or len(containers) != 1
        or spec.initContainers
        or spec.overhead is not None
        or spec.resources is not None
        or not _is_plain(containers[0])
        or may_hold_database(pod.metadata.labels or (), (_outline(containers[0]),))
    ):
        return None
    request, limit = _container_memory(containers[0])
    return PodMemory(request, limit, {})


def _outline(container: Container) -> tuple[str, str, tuple[str, ...]]:
    return container.name, container.image or "", (*(container.command or ()), *(container.args or ()))


def _is_plain(container: Container) -> bool:
    """No huge pages in its resources, no JVM that asks for them, no variables from elsewhere that might."""
    needs = container.resources
    if needs is not None:
        for part in (needs.requests, needs.limits):
            if part and any(map(_IS_HUGE_PAGES, part)):
                return False
    if container.envFrom:
        return False
    for variable in container.env or ():
        if variable.valueFrom is not None or (variable.value and LARGE_PAGES_OPTION in variable.value):
            return False
    for words in (container.command, container.args):
        if words:
            for word in words:
                if LARGE_PAGES_OPTION in word:
                    return False
    return True


def pod_memory(pod: Pod, excluded: frozenset[str] = frozenset()) -> PodMemory:
    """What the pod asks for by the scheduler's formula: see :func:`_effective`; plus the pod's overhead.

    The pod's own resources (Kubernetes 1.34) replace the sum, resource by resource. ``excluded`` are containers left
    out, since the plan counts them by their engine's rule; then what runs beside them counts alone.
    Source: kubernetes staging/src/k8s.io/component-helpers/resource/helpers.go, PodRequests and PodLimits.
    """
    spec = pod.spec
    running = [c for c in spec.containers or () if c.name not in excluded]
    before = spec.initContainers or ()
    asked = [_container_memory(container) for container in running]
    init = [(one.restartPolicy == "Always", _container_memory(one)) for one in before]
    if excluded:
        init = [one for one in init if one[0]]
    request = _effective([a[0] for a in asked], [(always, found[0]) for always, found in init])
    limit = _effective([a[1] for a in asked], [(always, found[1]) for always, found in init])
    if not excluded and spec.resources is not None:
        own_limit = _quantity(spec.resources.limits, "memory")
        own_request = _quantity(spec.resources.requests, "memory")
        limit = limit if own_limit is None else own_limit
        # The API server gives a pod with a limit and without a request what its containers ask for, those that do not
        # say left out, else the limit.
        said = _effective([a[0] or 0 for a in asked], [(always, found[0] or 0) for always, found in init]) or None
        if own_request is not None:
            request = own_request
        elif own_limit is not None:
            request = said or own_limit
    if excluded and limit is None and spec.resources is not None:
        limit = _quantity(spec.resources.limits, "memory")  # what has no limit of its own ends at the pod's
    overhead = _quantity(spec.overhead, "memory") or 0
    held = [huge_pages_of(container.resources) for container in running]
    held_before = [(one.restartPolicy == "Always", huge_pages_of(one.resources)) for one in before]
    sizes = {size for own in (*held, *(own for _, own in held_before)) for size in own}
    huge = {
        size: _effective([own.get(size, 0) for own in held], [(a, own.get(size, 0)) for a, own in held_before]) or 0
        for size in sorted(sizes)
    }
    if not excluded:
        huge |= huge_pages_of(spec.resources)
    return PodMemory(
        request_bytes=None if request is None else request + overhead,
        limit_bytes=None if limit is None else limit + overhead,
        huge_pages_bytes=huge,
    )


def container_share(pod: Pod, container: ContainerView, beside: PodMemory) -> tuple[int | None, int | None]:
    """Request and limit of a container; without its own what the pod's (Kubernetes 1.34) leaves to it."""
    found = []
    needs = pod.spec.resources
    overhead = _quantity(pod.spec.overhead, "memory") or 0
    others = max(0, (beside.request_bytes or 0) - overhead)
    for own, whole in (
        (container.memory_request_bytes, None if needs is None else needs.requests),
        (container.memory_limit_bytes, None if needs is None else needs.limits),
    ):
        of_pod = _quantity(whole, "memory")
        found.append(own if own is not None or of_pod is None else max(0, of_pod - others))
    return found[0], found[1]


def _effective(running: Sequence[int | None], before: Sequence[tuple[bool, int | None]]) -> int | None:
    """The most that is needed at one moment. ``before``: init containers in their order, and whether each is a sidecar.

    A sidecar goes on running: it counts with everything after it, other init containers included. An init container
    counts with the sidecars that were started before it. None: a container that goes on running does not say.
    """
    sidecars, most = 0, 0
    for is_sidecar, size in before:
        if is_sidecar:
            if size is None:
                return None
            sidecars += size
            most = max(most, sidecars)
        else:
            most = max(most, sidecars + (size or 0))
    total = _sum_known(running)
    return None if total is None else max(total + sidecars, most)


def pod_view(pod: Pod, config_maps: ConfigMaps | None) -> PodView:
    """The pod as recognition reads it; with None for ``config_maps`` without its containers."""
    namespace = pod.metadata.namespace or "default"
    owner = next((one for one in pod.metadata.ownerReferences or () if one.controller), None)
    labels = pod.metadata.labels or {}
    containers: tuple[ContainerView, ...] = ()
    if config_maps is not None:
        found = (pod.spec.containers or ())[:MAX_CONTAINERS]
        volumes = Volumes(pod.spec.volumes or () if may_hold_database(labels, map(_outline, found)) else ())
        containers = tuple(_container_view(container, namespace, volumes, config_maps) for container in found)
    return PodView(
        namespace=namespace,
        name=pod.metadata.name,
        labels=labels,
        containers=containers,
        owner_kind=None if owner is None else owner.kind,
        owner_name=None if owner is None else owner.name,
        owner_group=None if owner is None else owner.apiVersion.rpartition("/")[0],
    )


def custom_maker(view: PodView) -> OperatorObject | None:
    """The custom resource that makes a pod of an operator without a row in the table; None for Kubernetes' own kinds.

    KubeBlocks keeps its clusters' name in a label; of others the pod's controller is all that the pod tells.
    """
    cluster = view.labels.get("app.kubernetes.io/instance")
    if view.labels.get("app.kubernetes.io/managed-by") == "kubeblocks" and cluster:
        return OperatorObject(group="apps.kubeblocks.io", kind="Cluster", namespace=view.namespace, name=cluster)
    group = view.owner_group or ""
    if "." not in group or group.endswith(".k8s.io") or not view.owner_kind or not view.owner_name:
        return None
    return OperatorObject(group=group, kind=view.owner_kind, namespace=view.namespace, name=view.owner_name)


def _container_view(container: Container, namespace: str, volumes: Volumes, config_maps: ConfigMaps) -> ContainerView:
    request, limit = _container_memory(container)
    return ContainerView(
        name=container.name,
        image=container.image or "",
        command=tuple(container.command or ()),
        arguments=tuple(container.args or ()),
        environment=config_maps.environment(container, namespace) if container.env or container.envFrom else {},
        memory_request_bytes=request,
        memory_limit_bytes=limit,
        huge_pages_limit_bytes=huge_pages_of(container.resources),
        files=config_maps.files(container, namespace, volumes),
    )


def hugetlbfs_mounts(pod: Pod, container_name: str | None = None) -> tuple[int, ...]:
    """Page sizes of HugePages volumes that a container (or any) mounts. ``HugePages`` alone is the pod's one size."""
    media = {
        volume.name: volume.emptyDir.medium or ""
        for volume in pod.spec.volumes or ()
        if volume.emptyDir is not None and (volume.emptyDir.medium or "").startswith(_HUGE_PAGES_MEDIUM)
    }
    sizes: set[int] = set()
    for container in pod.spec.containers or () if media else ():
        if container_name not in {None, container.name}:
            continue
        own = set(huge_pages_of(container.resources))
        for mount in container.volumeMounts or ():
            medium = media.get(mount.name)
            if medium == _HUGE_PAGES_MEDIUM:
                sizes |= own
            elif medium is not None:
                sizes |= {parse_quantity(medium.removeprefix(f"{_HUGE_PAGES_MEDIUM}-")) or 0} - {0}
    return tuple(sorted(sizes))


def refused_for_pages(pod: Pod) -> bool:
    """Whether the kubelet refused the pod, or ended it at its own restart, because huge pages are missing."""
    return pod.status is not None and (pod.status.reason or "").startswith("OutOfhugepages")


def ended_above_pool(pod: Pod, hugetlb_pool_bytes: Mapping[int, int]) -> str | None:
    """Why a pod that is to run always has ended, where its limits are above its node's pools; None for other pods.

    The kubelet drops the reason OutOfhugepages where the server it ends exits with 0, as PostgreSQL does: the phase of
    the exit is Succeeded, and the reason is kept for an unchanged phase only.
    Source: pkg/kubelet/kubelet_pods.go generateAPIPodStatus(). ``hugetlb_pool_bytes`` is the node's, by page size.
    """
    if holds_memory(pod) or (pod.spec.restartPolicy or "Always") != "Always":
        return None
    if pod.status is None or pod.status.reason:
        return None
    for size, limit in sorted(pod_memory(pod).huge_pages_bytes.items()):
        held = hugetlb_pool_bytes.get(size, 0)
        if limit > held:
            name = kubernetes_resource_name(size)
            return (
                f"It is to run always and has ended ({pod.status.phase}); its limit of {format_bytes(limit)} of {name} "
                f"is above the {format_bytes(held)} of node {pod.spec.nodeName}."
            )
    return None


def not_scheduled_because(pod: Pod) -> str | None:
    """The scheduler's words for why the pod has no node, or the kubelet's for why it may not run there."""
    if refused_for_pages(pod) and pod.status is not None:
        return f"{pod.status.message or pod.status.reason} (node {pod.spec.nodeName})"
    for condition in (pod.status.conditions if pod.status is not None else None) or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message
    return None

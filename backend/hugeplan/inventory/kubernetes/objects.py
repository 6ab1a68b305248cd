"""The fields of Kubernetes objects that an inventory needs. Everything else is passed over while decoding.

Fields are named as in the API. Absent lists and maps decode to None, since the API server leaves empty ones out.
"""

from __future__ import annotations

from typing import Any

import msgspec

#: Quantities by resource. What is none (null, a list) is said to be none; the object around it counts all the same.
Resources = dict[str, Any]


class Part(msgspec.Struct, gc=False):
    """A part of an object. None refers back to its parent, so the cycle collector need not look at the millions."""


class Object(Part, kw_only=True):
    """Every object. Its ``kind`` is read with :func:`of_any_kind` or, as a tag of the type, :func:`of_one_kind`."""

    apiVersion: str = ""  # noqa: N815


def of_any_kind(base: type[Any]) -> type[Any]:
    """The type with ``kind`` as a field, which items of raw lists leave out."""
    return msgspec.defstruct(base.__name__, [("kind", str, "")], bases=(base,), kw_only=True, gc=False)


def of_one_kind(base: type[Any], kind: str) -> type[Any]:
    """The type for objects that say they are of this kind: a member of a union that is decoded in one pass."""
    return msgspec.defstruct(f"{kind}Object", [], bases=(base,), tag_field="kind", tag=kind, kw_only=True, gc=False)


class OwnerReference(Part):
    apiVersion: str = ""  # noqa: N815
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class Meta(Part):
    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str] | None = None
    ownerReferences: list[OwnerReference] | None = None  # noqa: N815


class Head(Object, kw_only=True):
    kind: str = ""
    metadata: Meta | None = None


class ListHead(Object, kw_only=True):
    kind: str = ""
    items: list[msgspec.Raw] | None = None


class KeyReference(Part):
    name: str | None = None
    key: str | None = None


class ValueFrom(Part):
    configMapKeyRef: KeyReference | None = None  # noqa: N815


class Variable(Part):
    name: str = ""
    value: str | None = None
    valueFrom: ValueFrom | None = None  # noqa: N815


class VariablesFrom(Part):
    configMapRef: KeyReference | None = None  # noqa: N815


class ResourceRequirements(Part):
    requests: Resources | None = None
    limits: Resources | None = None


class VolumeMount(Part):
    name: str = ""
    mountPath: str = ""  # noqa: N815
    subPath: str | None = None  # noqa: N815


class Container(Part):
    name: str = ""
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[Variable] | None = None
    envFrom: list[VariablesFrom] | None = None  # noqa: N815
    resources: ResourceRequirements | None = None
    volumeMounts: list[VolumeMount] | None = None  # noqa: N815
    restartPolicy: str | None = None  # noqa: N815


class KeyToPath(Part):
    key: str = ""
    path: str = ""


class ConfigMapVolume(Part):
    name: str | None = None
    items: list[KeyToPath] | None = None


class EmptyDir(Part):
    medium: str | None = None


class ClaimReference(Part):
    claimName: str = ""  # noqa: N815


class ProjectedSource(Part):
    configMap: ConfigMapVolume | None = None  # noqa: N815


class Projected(Part):
    sources: list[ProjectedSource] | None = None


class Volume(Part):
    name: str = ""
    configMap: ConfigMapVolume | None = None  # noqa: N815
    emptyDir: EmptyDir | None = None  # noqa: N815
    persistentVolumeClaim: ClaimReference | None = None  # noqa: N815
    projected: Projected | None = None


class PodSpec(Part):
    nodeName: str | None = None  # noqa: N815
    containers: list[Container] | None = None
    initContainers: list[Container] | None = None  # noqa: N815
    volumes: list[Volume] | None = None
    overhead: Resources | None = None
    resources: ResourceRequirements | None = None
    restartPolicy: str | None = None  # noqa: N815


class Condition(Part):
    type: str = ""
    status: str = ""
    message: str | None = None


class PodStatus(Part):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    conditions: list[Condition] | None = None


class Pod(Object):
    metadata: Meta
    spec: PodSpec
    status: PodStatus | None = None


class NodeInfo(Part):
    architecture: str | None = None
    kernelVersion: str | None = None  # noqa: N815
    kubeletVersion: str | None = None  # noqa: N815
    containerRuntimeVersion: str | None = None  # noqa: N815
    machineID: str | None = None  # noqa: N815
    operatingSystem: str | None = None  # noqa: N815


class NodeStatus(Part):
    capacity: Resources | None = None
    allocatable: Resources | None = None
    nodeInfo: NodeInfo | None = None  # noqa: N815


class NodeSpec(Part):
    providerID: str | None = None  # noqa: N815


class Node(Object):
    metadata: Meta
    status: NodeStatus | None = None
    spec: NodeSpec | None = None


class ConfigMap(Object):
    metadata: Meta
    data: dict[str, str] | None = None


class ClaimStatus(Part):
    capacity: Resources | None = None


class ClaimSpec(Part):
    resources: ResourceRequirements | None = None


class Claim(Object):
    metadata: Meta
    spec: ClaimSpec | None = None
    status: ClaimStatus | None = None


class MetricsContainer(Part):
    name: str = ""
    usage: Resources | None = None


class PodMetrics(Object):
    metadata: Meta
    timestamp: str | None = None
    containers: list[MetricsContainer] | None = None


class NodeMetrics(Object):
    metadata: Meta
    usage: Resources | None = None


class CustomResource(Object):
    metadata: Meta
    spec: dict[str, Any] | None = None

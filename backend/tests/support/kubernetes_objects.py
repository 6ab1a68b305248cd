"""Kubernetes objects for tests, in the shape that ``kubectl get -o json`` prints them. Synthetic: no real cluster."""

from __future__ import annotations

from typing import Any

import msgspec

GIB = 2**30
Json = dict[str, Any]


def node(
    name: str,
    *,
    memory_kib: int = 65 * 1024 * 1024,
    reserved_kib: int = 1024 * 1024,
    pools: dict[str, str] | None = None,
    arch: str = "amd64",
    kubelet: str = "v1.34.2",
    uid: str | None = None,
    **labels: str,
) -> Json:
    """A ready node. ``pools`` maps ``2Mi`` to a quantity such as ``1400Mi``."""
    held = {"1Gi": "0", "2Mi": "0"} if pools is None else pools
    huge = {f"hugepages-{size}": quantity for size, quantity in held.items()}
    pool_kib = sum(_kib(quantity) for quantity in held.values())
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": uid or f"uid-{name}",
            "labels": {"kubernetes.io/arch": arch, "kubernetes.io/hostname": name, **labels},
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "resourceVersion": "12345",
        },
        "spec": {"podCIDR": "10.244.0.0/24", "providerID": f"test:///{name}"},
        "status": {
            "addresses": [{"address": "10.0.0.1", "type": "InternalIP"}, {"address": name, "type": "Hostname"}],
            "capacity": {"cpu": "16", "ephemeral-storage": "102107096Ki", "memory": f"{memory_kib}Ki", "pods": "110",
                         **huge},
            "allocatable": {"cpu": "15900m", "ephemeral-storage": "94101899518",
                            "memory": f"{memory_kib - reserved_kib - pool_kib}Ki", "pods": "110", **huge},
            "conditions": [
                {"type": kind, "status": "True" if kind == "Ready" else "False", "reason": "Kubelet",
                 "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
                 "message": "kubelet is posting ready status"}
                for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
            ],
            "images": [{"names": [f"registry.example/app-{i}:v{i}"], "sizeBytes": 10**8 + i} for i in range(30)],
            "nodeInfo": {
                "architecture": arch, "bootID": "b", "containerRuntimeVersion": "containerd://1.7.24",
                "kernelVersion": "6.1.0-18-amd64", "kubeProxyVersion": kubelet, "kubeletVersion": kubelet,
                "machineID": f"{abs(hash(name)):032x}"[:32], "operatingSystem": "linux", "osImage": "Debian",
                "systemUUID": "s",
            },
        },
    }  # fmt: skip


def _kib(quantity: str) -> int:
    for suffix, factor in (("Ki", 1), ("Mi", 1024), ("Gi", 1024**2)):
        if quantity.endswith(suffix):
            return int(quantity.removesuffix(suffix)) * factor
    return int(quantity) // 1024


def container(name: str = "app", image: str = "registry.example/app:v1", **fields: Any) -> Json:
    """A container; ``limits`` and ``requests`` are its resources."""
    limits, requests = fields.pop("limits", None), fields.pop("requests", None)
    resources = {key: value for key, value in (("limits", limits), ("requests", requests)) if value is not None}
    return {
        "name": name, "image": image, "imagePullPolicy": "IfNotPresent", "resources": resources,
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", **fields,
    }  # fmt: skip


def pod(
    name: str,
    node_name: str | None,
    *containers: Json,
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    owner: tuple[str, str] | None = None,
    volumes: list[Json] | None = None,
    **spec: Any,
) -> Json:
    """A running pod with what the API server and the kubelet add to one."""
    phase = spec.pop("phase", "Running" if node_name else "Pending")
    found: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}", "labels": labels or {"app": name},
            "annotations": {"checksum/config": "0" * 64}, "creationTimestamp": "2026-01-01T00:00:00Z",
            "resourceVersion": "23456",
        },
        "spec": {
            "containers": list(containers) or [container()],
            "dnsPolicy": "ClusterFirst", "enableServiceLinks": True, "priority": 0, "restartPolicy": "Always",
            "schedulerName": "default-scheduler", "securityContext": {}, "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "tolerations": [
                {"effect": "NoExecute", "key": f"node.kubernetes.io/{key}", "operator": "Exists",
                 "tolerationSeconds": 300}
                for key in ("not-ready", "unreachable")
            ],
            "volumes": [
                *(volumes or []),
                {"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
                ]}},
            ],
            **({"nodeName": node_name} if node_name else {}),
            **spec,
        },
        "status": {
            "phase": phase, "hostIP": "10.0.0.1", "podIP": "10.244.0.7", "qosClass": "Burstable",
            "startTime": "2026-01-01T00:00:00Z",
            "conditions": [
                {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-01-01T00:00:00Z"}
                for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [
                {"name": one["name"], "image": one["image"], "imageID": f"{one['image']}@sha256:{'0' * 64}",
                 "containerID": f"containerd://{'0' * 64}", "ready": True, "started": True, "restartCount": 0,
                 "lastState": {}, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
                for one in (containers or (container(),))
            ],
        },
    }  # fmt: skip
    if owner is not None:
        found["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": owner[0], "name": owner[1], "uid": "u", "controller": True,
             "blockOwnerDeletion": True}
        ]  # fmt: skip
    return found


def postgres(
    name: str, node_name: str | None, settings: dict[str, str] | None = None, *, version: str = "16", **fields: Any
) -> Json:
    """A PostgreSQL pod of the official image with its settings as arguments."""
    arguments = [word for pair in (settings or {}).items() for word in ("-c", "=".join(pair))]
    resources = {key: fields.pop(key) for key in ("limits", "requests") if key in fields}
    one = container("postgres", f"postgres:{version}", args=["postgres", *arguments], **resources)
    return pod(name, node_name, one, owner=("StatefulSet", name.rpartition("-")[0] or name), **fields)


def listing(*items: Json, kind: str = "List") -> str:
    """What ``kubectl get ... -o json`` prints: indented by four, the kind after the items."""
    document = {"apiVersion": "v1", "items": items, "kind": kind, "metadata": {"resourceVersion": ""}}
    # Python's own encoder takes a quarter of a minute to indent a cluster of thirty thousand pods.
    return msgspec.json.format(msgspec.json.encode(document), indent=4).decode()


def cluster(nodes: int, pods: int, databases_per_ten_nodes: int = 5) -> str:
    """A cluster of nodes with pods spread over them, some of which are databases. Deterministic."""
    items: list[Json] = [
        node(
            f"worker-{i:04d}",
            memory_kib=(65 + 64 * (i % 3)) * 1024 * 1024 - 137 * i,
            pools={"1Gi": "0", "2Mi": f"{2048 * (i % 4 == 0) * 2}Mi"},
        )
        for i in range(nodes)
    ]
    databases = nodes * databases_per_ten_nodes // 10
    for i in range(databases):
        home = f"worker-{i * nodes // databases:04d}"
        items.append(
            postgres(
                f"pg-{i}-0", home,
                {"shared_buffers": f"{4 + 4 * (i % 4)}GB", "max_connections": str(100 + 50 * (i % 3))},
                namespace=f"db-{i % 20}",
                limits={"memory": "24Gi", **({"hugepages-2Mi": "4Gi"} if i % 3 == 0 else {})},
            )
        )  # fmt: skip
    for i in range(pods - databases):
        size = (i * 7919) % 11 + 1
        one = container(
            requests={"cpu": "100m", "memory": f"{size * 64}Mi"}, limits={"memory": f"{size * 128}Mi"},
            env=[{"name": f"SETTING_{k}", "value": f"value-{k}"} for k in range(6)],
            volumeMounts=[{"name": "kube-api-access", "mountPath": "/var/run/secrets", "readOnly": True}],
        )  # fmt: skip
        workload = f"app-{i % 700}-6d4b75cb6d"
        items.append(
            pod(f"{workload}-{i:05d}", f"worker-{i % nodes:04d}", one, namespace=f"team-{i % 40}",
                owner=("ReplicaSet", workload))
        )  # fmt: skip
    return listing(*items)
